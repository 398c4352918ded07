#include "sample/changer.h"

#include "base/err.h"
#include "model/select.h"
#include "sample/errand.h"
#include "sample/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One GPU. Only one thread at a time works on it. */
struct gpu {
    struct gp_source_device *device; /* NULL: not opened */
    struct gp_reading *reading;      /* its identity, and that of its instances */
    bool skipped;                    /* excluded by its index */
    gp_call_name call;
    atomic_bool out;   /* given up: a thread hangs in the driver, or could not be started */
    bool is_unstarted; /* given up because of the latter */
    struct gp_target *first;
    size_t target_count; /* targets starting there */
};

struct gp_changer {
    struct gp_changer_config config;
    struct gp_want identity;
    unsigned gpu_count;
    struct gpu *gpus;
    struct gp_target *targets;
    size_t target_count;
    size_t target_room;
    struct gp_value host[GP_HOST__COUNT];
    int open_result;
    struct gp_err open_err;
    bool is_open;
    atomic_uint given_up; /* steps whose threads have not all returned */
    uint32_t controls;    /* controls to read */
    struct gp_part part;  /* the partitioning step in progress, its target, and its result */
    const struct gp_target *parted;
    int part_result;
    struct gp_err part_err;
};

/* ---- on the threads: if a GPU is out, only its stuck thread may access its data ---- */

/* Whether this step has work to do on the GPU. */
static bool is_held(struct gpu *gpu)
{
    return !atomic_load(&gpu->out) && gpu->device;
}

static void open_source(void *ctx, size_t i)
{
    struct gp_changer *c = ctx;
    struct gp_metric_set want = {0};
    (void)i;
    gp_metric_set_add(&want, GP_DRIVER_VERSION);
    c->open_result = c->config.source->ops->open(c->config.source, &c->gpu_count, &c->open_err);
    c->is_open = c->open_result == 0;
    if (c->is_open)
        c->config.source->ops->read_host(c->config.source, &want, c->host);
}

static void close_source(void *ctx, size_t i)
{
    struct gp_changer *c = ctx;
    (void)i;
    for (unsigned g = 0; c->gpus && g < c->gpu_count; g++)
        if (c->gpus[g].device)
            c->config.source->ops->detach(c->gpus[g].device);
    c->config.source->ops->close(c->config.source);
    c->is_open = false;
}

static void take_hold(void *ctx, size_t i)
{
    struct gp_changer *c = ctx;
    struct gpu *gpu = &c->gpus[i];
    const struct gp_source_ops *ops = c->config.source->ops;
    if (gpu->reading && !gpu->skipped &&
        ops->attach(c->config.source, (unsigned)i, &gpu->call, &gpu->device, gpu->reading) == 0)
        ops->read(gpu->device, &c->identity, gpu->reading);
}

static void read_target(struct gp_changer *c, struct gp_target *target)
{
    for (unsigned id = 0; !target->left_alone && id < GP_CONTROL__COUNT; id++)
        if (c->controls & 1u << id)
            c->config.source->ops->controls->read(target->device, (enum gp_control_id)id,
                                                  &target->settings[id]);
}

static void read_gpu(void *ctx, size_t i)
{
    struct gp_changer *c = ctx;
    struct gpu *gpu = &c->gpus[i];
    for (size_t t = 0; is_held(gpu) && t < gpu->target_count; t++)
        read_target(c, &gpu->first[t]);
}

bool gp_target_needs(const struct gp_target *target, enum gp_control_id id)
{
    const struct gp_setting *now = &target->settings[id];
    const struct gp_control_value *to_be = now->has_pending ? &now->pending : &now->value;
    return !now->known || !gp_control_satisfies(id, to_be, &target->changes[id].value);
}

static void check_target(struct gp_changer *c, struct gp_target *target)
{
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        struct gp_err err = {0};
        struct gp_change *change = &target->changes[id];
        if (!change->wanted)
            continue;
        change->code = c->config.source->ops->controls->check(
            target->device, (enum gp_control_id)id, &change->value, &err);
        (void)snprintf(change->words, sizeof(change->words), "%s", err.text);
    }
}

static void check_gpu(void *ctx, size_t i)
{
    struct gp_changer *c = ctx;
    struct gpu *gpu = &c->gpus[i];
    for (size_t t = 0; is_held(gpu) && t < gpu->target_count; t++)
        check_target(c, &gpu->first[t]);
}

/* Reads the value back after the driver has accepted a change. */
static enum gp_outcome verify(enum gp_control_id id, struct gp_change *change)
{
    const struct gp_setting *after = &change->after;
    if (gp_control_table[id].kind == GP_CONTROL_CLEAR)
        return GP_OUTCOME_DONE;
    if (after->status != GP_STATUS_OK || !after->known)
        return GP_OUTCOME_UNVERIFIED;
    if (after->has_pending && gp_control_satisfies(id, &after->pending, &change->value))
        return GP_OUTCOME_PENDING;
    if (gp_control_satisfies(id, &after->value, &change->value) && !after->has_pending)
        return GP_OUTCOME_DONE;
    change->code = GP_EFAIL;
    (void)snprintf(change->words, sizeof(change->words),
                   "the driver accepted the change, but reports another value");
    return GP_OUTCOME_FAILED;
}

/* Whether MIG mode is pending until a reset. */
static bool waits_for_mig(const struct gp_target *target)
{
    const struct gp_change *mode = &target->changes[GP_CONTROL_MIG_MODE];
    const struct gp_setting *now =
        mode->outcome == GP_OUTCOME_PENDING ? &mode->after : &target->settings[GP_CONTROL_MIG_MODE];
    bool done = mode->outcome == GP_OUTCOME_DONE;
    return !done && now->known && now->has_pending && !now->value.n[0] && now->pending.n[0];
}

static bool apply_change(struct gp_changer *c, struct gp_target *target, enum gp_control_id id)
{
    struct gp_change *change = &target->changes[id];
    struct gp_err err = {0};
    if (id == GP_CONTROL_MIG_INSTANCES && !target->is_mig && waits_for_mig(target)) {
        change->code = GP_EFAIL;
        change->outcome = GP_OUTCOME_FAILED;
        (void)snprintf(change->words, sizeof(change->words),
                       "MIG mode takes effect after a GPU reset; set this again then");
        return false;
    }
    if (!change->anew && !gp_target_needs(target, id)) {
        change->after = target->settings[id];
        change->outcome = GP_OUTCOME_SAME;
        return true;
    }
    const struct gp_control_ops *ops = c->config.source->ops->controls;
    change->code = ops->apply(target->device, id, &change->value, &err);
    change->driver_code = err.driver_code;
    (void)snprintf(change->words, sizeof(change->words), "%s", err.text);
    change->outcome = GP_OUTCOME_FAILED;
    /* Also after a refusal: some steps may have succeeded. A lost GPU is not queried. */
    if (change->code != GP_EDRIVER)
        ops->read(target->device, id, &change->after);
    if (change->code == 0)
        change->outcome = verify(id, change);
    return change->outcome != GP_OUTCOME_FAILED;
}

static void apply_gpu(void *ctx, size_t i)
{
    struct gp_changer *c = ctx;
    struct gpu *gpu = &c->gpus[i];
    bool going_on = is_held(gpu);
    for (size_t t = 0; t < gpu->target_count; t++)
        for (unsigned id = 0; going_on && id < GP_CONTROL__COUNT; id++)
            if (gpu->first[t].changes[id].wanted)
                going_on = apply_change(c, &gpu->first[t], (enum gp_control_id)id);
}

static void part_gpu(void *ctx, size_t i)
{
    struct gp_changer *c = ctx;
    if (is_held(&c->gpus[i]) && c->parted->index == i)
        c->part_result =
            c->config.source->ops->controls->part(c->gpus[i].device, &c->part, &c->part_err);
}

/* ---- on the caller's side ---- */

/* NULL if it is unknown. */
static const char *text_of(const struct gp_value *values, enum gp_metric m)
{
    const struct gp_value *v = &values[m - GP_DEVICE__FIRST];
    return v->status == GP_STATUS_OK ? v->s : NULL;
}

static bool is_chosen(struct gp_changer *c, unsigned index, const struct gp_value *values)
{
    const struct gp_identity identity = {
        .uuid = text_of(values, GP_UUID),
        .bus_id = text_of(values, GP_PCI_BUS_ID),
        .serial = text_of(values, GP_SERIAL),
        .name = text_of(values, GP_NAME),
    };
    return gp_selection_matches(c->config.selection, index, &identity);
}

static bool is_chosen_instance(struct gp_changer *c, unsigned gpu, const struct gp_mig_reading *mig)
{
    const struct gp_identity identity = {
        .uuid = text_of(mig->values, GP_UUID), .is_mig = true, .gpu = gpu, .mig_index = mig->index};
    return gp_selection_matches(c->config.selection, UINT32_MAX, &identity);
}

/* Whether all requested GPUs are among those that have responded. An index matches before its GPU
 * has responded. */
static bool is_settled(void *ctx, const bool *done)
{
    struct gp_changer *c = ctx;
    for (unsigned i = 0; i < c->gpu_count; i++) {
        const struct gp_reading *reading = done[i] ? c->gpus[i].reading : NULL;
        if (!done[i] && gp_selection_matches(c->config.selection, i, NULL))
            return false;
        if (!reading)
            continue;
        (void)is_chosen(c, i, reading->values);
        for (size_t m = 0; m < reading->mig_count; m++)
            (void)is_chosen_instance(c, i, &reading->mig[m]);
    }
    return gp_selection_is_settled(c->config.selection);
}

static void tell_gpus(void *ctx, const bool *done)
{
    const struct gp_changer *c = ctx;
    char whom[200] = "";
    size_t used = 0;
    for (unsigned i = 0; i < c->gpu_count && used < sizeof(whom); i++) {
        const char *call = atomic_load_explicit(&c->gpus[i].call, memory_order_relaxed);
        if (!done[i])
            used += (size_t)snprintf(whom + used, sizeof(whom) - used, "%sGPU %u (%s)",
                                     used ? ", " : "", i, call ? call : "not started");
    }
    c->config.on_wait(whom);
}

static void tell_driver(void *ctx, const bool *done)
{
    const struct gp_changer *c = ctx;
    (void)done;
    c->config.on_wait("starting the driver (nvmlInit)");
}

static struct gp_errands errands_of(struct gp_changer *c, void (*work)(void *ctx, size_t i),
                                    size_t count, void (*on_wait)(void *ctx, const bool *done))
{
    return (struct gp_errands){.work = work,
                               .ctx = c,
                               .count = count,
                               .timeout_ns = c->config.timeout_ns,
                               .on_wait = c->config.on_wait ? on_wait : NULL,
                               .patience_ns = c->config.patience_ns,
                               .given_up = &c->given_up};
}

static void describe_silence(const struct gp_changer *c, const struct gpu *gpu,
                             struct gp_target *target)
{
    const char *call = atomic_load_explicit(&gpu->call, memory_order_relaxed);
    if (gpu->is_unstarted) {
        target->code = GP_ENOMEM;
        (void)snprintf(target->words, sizeof(target->words), "out of memory for a thread");
        return;
    }
    target->code = GP_ETIMEOUT;
    (void)snprintf(target->words, sizeof(target->words), "no response within %.1f s (%s)",
                   (double)c->config.timeout_ns / 1e9, call ? call : "not started");
}

/* Runs a step on all GPUs. Those that do not finish in time (or before enough others have) are
 * out. */
static void run_step(struct gp_changer *c, void (*step)(void *ctx, size_t i),
                     bool (*is_enough)(void *ctx, const bool *done))
{
    struct gp_errands errands = errands_of(c, step, c->gpu_count, tell_gpus);
    errands.is_enough = is_enough;
    bool *done = calloc(c->gpu_count ? c->gpu_count : 1, sizeof(*done));
    const bool is_over = !done || gp_errands_run(&errands, done);
    for (unsigned i = 0; i < c->gpu_count; i++) {
        struct gpu *gpu = &c->gpus[i];
        if (done && done[i])
            continue;
        gpu->is_unstarted = is_over && !atomic_load(&gpu->out);
        atomic_store(&gpu->out, true);
        for (size_t t = 0; t < gpu->target_count; t++)
            if (gpu->first[t].code == 0)
                describe_silence(c, gpu, &gpu->first[t]);
    }
    free(done);
}

static struct gp_target *add_target(struct gp_changer *c, unsigned index,
                                    const struct gp_value *values)
{
    struct gp_target *target = &c->targets[c->target_count++];
    struct gpu *gpu = &c->gpus[index];
    if (!gpu->first)
        gpu->first = target;
    gpu->target_count++;
    target->index = index;
    const char *uuid = text_of(values, GP_UUID);
    const char *bus = gpu->reading && !atomic_load(&gpu->out)
                          ? text_of(gpu->reading->values, GP_PCI_BUS_ID)
                          : NULL;
    const char *name = text_of(values, GP_NAME);
    (void)snprintf(target->uuid, sizeof(target->uuid), "%s", uuid ? uuid : "");
    (void)snprintf(target->name, sizeof(target->name), "%s", name ? name : "");
    (void)snprintf(target->bus, sizeof(target->bus), "%s", bus ? bus : "");
    return target;
}

/* Records why a GPU is unreachable. */
static void describe_failure(const struct gp_changer *c, const struct gpu *gpu,
                             struct gp_target *target)
{
    if (atomic_load(&gpu->out)) {
        describe_silence(c, gpu, target);
    } else if (!gpu->reading || gpu->reading->status != GP_STATUS_OK) {
        enum gp_status status = gpu->reading ? gpu->reading->status : GP_STATUS_NONE;
        target->is_asleep = status == GP_STATUS_ASLEEP;
        target->code = !gpu->reading                       ? GP_ENOMEM
                       : status == GP_STATUS_NO_PERMISSION ? GP_EPERM
                       : target->is_asleep                 ? GP_EFAIL
                                                           : GP_EDRIVER;
        target->driver_code = gpu->reading ? gpu->reading->driver_code : 0;
        (void)snprintf(target->words, sizeof(target->words), "%s",
                       gpu->reading ? gpu->reading->status_text : "out of memory");
    }
}

/* Adds the selected ones of a GPU and its instances as targets. */
static void choose(struct gp_changer *c, unsigned index)
{
    static const struct gp_value nothing[GP_DEVICE__COUNT];
    struct gpu *gpu = &c->gpus[index];
    struct gp_selection *selection = c->config.selection;
    bool out = atomic_load(&gpu->out);
    const struct gp_reading *reading = out ? NULL : gpu->reading;
    const struct gp_value *values = reading ? reading->values : nothing;
    const char *name = text_of(values, GP_NAME);
    bool matches = is_chosen(c, index, values);
    /* A GPU without a known name is not excluded by a selection by name. */
    if (matches || (!name && gp_selection_names_models(selection)))
        describe_failure(c, gpu, add_target(c, index, values));
    for (size_t m = 0; reading && m < reading->mig_count; m++) {
        const struct gp_mig_reading *mig = &reading->mig[m];
        /* An instance of a selected GPU is not a separate target, but it matches the term. */
        if (!is_chosen_instance(c, index, mig) || matches)
            continue;
        struct gp_target *target = add_target(c, index, mig->values);
        target->is_mig = true;
        target->mig_index = mig->index;
        target->device = c->config.source->ops->controls->instance(gpu->device, m);
        if (!target->name[0] && name)
            (void)snprintf(target->name, sizeof(target->name), "%s", name);
    }
    for (size_t t = 0; !out && t < gpu->target_count; t++)
        if (!gpu->first[t].is_mig) {
            gpu->first[t].device = gpu->device;
            gpu->first[t].reading = reading;
        }
}

/* A GPU that cannot be identified may be the requested one. */
static int check_selection(struct gp_changer *c, struct gp_err *err)
{
    struct gp_err why = {0};
    int r = gp_selection_check(c->config.selection, c->gpu_count, &why);
    for (unsigned i = 0; r < 0 && i < c->gpu_count; i++)
        if (atomic_load(&c->gpus[i].out))
            return gp_err_set(err, r, "%s; it may be GPU %u, which does not respond", why.text, i);
    return r < 0 ? gp_err_set(err, r, "%s", why.text) : 0;
}

static int take_gpus(struct gp_changer *c, struct gp_err *err)
{
    size_t room = c->gpu_count;
    bool by_index = gp_selection_is_by_index(c->config.selection);
    int r = gp_selection_check_indices(c->config.selection, c->gpu_count, err);
    if (r < 0)
        return r;
    c->gpus = calloc(c->gpu_count, sizeof(*c->gpus));
    for (unsigned i = 0; c->gpus && i < c->gpu_count; i++) {
        c->gpus[i].reading = gp_reading_new();
        c->gpus[i].skipped = by_index && !gp_selection_matches(c->config.selection, i, NULL);
    }
    if (c->gpus)
        run_step(c, take_hold, is_settled);
    for (unsigned i = 0; c->gpus && i < c->gpu_count; i++)
        if (!atomic_load(&c->gpus[i].out) && c->gpus[i].reading)
            room += c->gpus[i].reading->mig_count;
    c->targets = c->gpus ? calloc(room, sizeof(*c->targets)) : NULL;
    if (!c->targets)
        return gp_err_set(err, GP_ENOMEM, "out of memory for %u GPUs", c->gpu_count);
    for (unsigned i = 0; i < c->gpu_count; i++)
        choose(c, i);
    return check_selection(c, err);
}

static int open_session(struct gp_changer *c, struct gp_err *err)
{
    const struct gp_errands errands = errands_of(c, open_source, 1, tell_driver);
    bool done;
    if (!gp_errands_run(&errands, &done))
        return gp_thread_no_start(GP_ETIMEOUT, c->config.timeout_ns, err);
    if (!done)
        return gp_thread_no_start(GP_ENOMEM, c->config.timeout_ns, err);
    if (!c->is_open)
        return gp_err_copy(err, &c->open_err);
    if (c->gpu_count == 0)
        return gp_thread_no_start(GP_ENODEV, c->config.timeout_ns, err);
    return 0;
}

int gp_changer_new(const struct gp_changer_config *config, struct gp_changer **ret,
                   struct gp_err *err)
{
    static const enum gp_metric identity[] = {GP_NAME, GP_UUID, GP_PCI_BUS_ID};
    struct gp_changer *c = calloc(1, sizeof(*c));
    *ret = NULL;
    if (!c) {
        config->source->ops->free(config->source);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    c->config = *config;
    if (config->want)
        c->identity = *config->want;
    c->identity.mig = gp_selection_names_mig(config->selection);
    if (gp_selection_names_serials(config->selection))
        gp_metric_set_add(&c->identity.metrics, GP_SERIAL);
    for (size_t i = 0; i < GP_ARRAY_LEN(identity); i++)
        gp_metric_set_add(&c->identity.metrics, identity[i]);
    int r = open_session(c, err);
    if (r == 0)
        r = take_gpus(c, err);
    if (r < 0 && gp_changer_free(c))
        return r;
    *ret = c;
    return r < 0 ? GP_ETIMEOUT : 0;
}

struct gp_target *gp_changer_targets(struct gp_changer *changer, size_t *ret_count)
{
    *ret_count = changer->target_count;
    return changer->targets;
}

const struct gp_value *gp_changer_host(const struct gp_changer *changer)
{
    return changer->host;
}

void gp_changer_read(struct gp_changer *changer, uint32_t controls)
{
    changer->controls = controls;
    run_step(changer, read_gpu, NULL);
}

int gp_changer_check(struct gp_changer *changer, struct gp_err *err)
{
    run_step(changer, check_gpu, NULL);
    for (size_t t = 0; t < changer->target_count; t++) {
        const struct gp_target *target = &changer->targets[t];
        for (unsigned id = 0; target->code == 0 && id < GP_CONTROL__COUNT; id++)
            if (target->changes[id].code)
                return gp_err_set(err, target->changes[id].code, "GPU %u: %s", target->index,
                                  target->changes[id].words);
    }
    return 0;
}

void gp_changer_apply(struct gp_changer *changer)
{
    for (size_t t = 0; t < changer->target_count; t++)
        changer->targets[t].tried = changer->targets[t].code == 0;
    run_step(changer, apply_gpu, NULL);
}

int gp_changer_part(struct gp_changer *changer, struct gp_target *target, struct gp_part *part,
                    struct gp_err *err)
{
    changer->part = *part;
    changer->parted = target;
    changer->part_result = GP_EFAIL;
    changer->part_err = (struct gp_err){0};
    if (target->code == 0)
        run_step(changer, part_gpu, NULL);
    if (target->code)
        return gp_err_set(err, target->code, "GPU %u: %s", target->index, target->words);
    *part = changer->part;
    return changer->part_result < 0 ? gp_err_copy(err, &changer->part_err) : 0;
}

enum gp_outcome gp_target_outcome(const struct gp_target *target, enum gp_control_id id)
{
    if (target->code)
        return target->tried ? GP_OUTCOME_HUNG : GP_OUTCOME_FAILED;
    return target->changes[id].outcome;
}

bool gp_outcome_may_have_changed(enum gp_outcome outcome)
{
    return outcome == GP_OUTCOME_DONE || outcome == GP_OUTCOME_PENDING ||
           outcome == GP_OUTCOME_UNVERIFIED || outcome == GP_OUTCOME_HUNG;
}

bool gp_changer_free(struct gp_changer *c)
{
    enum { TRIES = 3 }; /* without memory for a thread */
    bool is_done;
    if (!c)
        return true;
    if (atomic_load(&c->given_up) > 0)
        return false;
    const struct gp_errands closing = errands_of(c, close_source, 1, NULL);
    for (int n = 0; c->is_open && n < TRIES; n++)
        if (!gp_errands_run(&closing, &is_done))
            return false;
    if (c->is_open)
        return false;
    for (unsigned i = 0; c->gpus && i < c->gpu_count; i++)
        gp_reading_unref(c->gpus[i].reading);
    free(c->gpus);
    free(c->targets);
    c->config.source->ops->free(c->config.source);
    free(c);
    return true;
}
