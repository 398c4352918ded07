/* nvidia-smi mig: lists, and changes in sequence; the first failure stops it. */
#include "smi/command.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/reading.h"
#include "source/nvml/nvml.h"

#include <stdio.h>
#include <string.h>

enum {
    OPT_PROFILES,
    OPT_PLACEMENTS,
    OPT_CREATE_GPU,
    OPT_WITH_COMPUTE,
    OPT_DESTROY_GPU,
    OPT_INSTANCES,
    OPT_COMPUTE_PROFILES,
    OPT_CREATE_COMPUTE,
    OPT_DESTROY_COMPUTE,
    OPT_COMPUTE_INSTANCES,
    OPT_GPU_INSTANCE,
    OPT_COMPUTE_INSTANCE,
    OPT_HELP,
#define X(id, kind, names, value, help) OPT_##id,
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        OPT__COUNT,
};

static const struct gp_smi_option options[] = {
    [OPT_PROFILES] = {"-lgip --list-gpu-instance-profiles", GP_SMI_FLAG, NULL, NULL,
                      "list the profiles of GPU instances, and how many of each fit"},
    [OPT_PLACEMENTS] = {"-lgipp --list-gpu-instance-possible-placements", GP_SMI_FLAG, NULL, NULL,
                        "list their possible placements"},
    [OPT_CREATE_GPU] = {"-cgi --create-gpu-instance", GP_SMI_VALUE, NULL, "PROFILES",
                        "create GPU instances: a comma-separated list of profile numbers or names, "
                        "optionally with a placement: 19:4"},
    [OPT_WITH_COMPUTE] = {"-C --default-compute-instance", GP_SMI_FLAG, NULL, NULL,
                          "also create a compute instance that fills each"},
    [OPT_DESTROY_GPU] = {"-dgi --destroy-gpu-instance", GP_SMI_FLAG, NULL, NULL,
                         "destroy GPU instances: all, or those of -gi"},
    [OPT_INSTANCES] = {"-lgi --list-gpu-instances", GP_SMI_FLAG, NULL, NULL,
                       "list the GPU instances"},
    [OPT_COMPUTE_PROFILES] =
        {"-lcip --list-compute-instance-profiles", GP_SMI_FLAG, NULL, NULL,
         "list the profiles of compute instances in GPU instances: all, or those of -gi"},
    [OPT_CREATE_COMPUTE] =
        {"-cci --create-compute-instance", GP_SMI_OPTIONAL, NULL, "PROFILES",
         "create compute instances in them; by default, one that fills the GPU instance"},
    [OPT_DESTROY_COMPUTE] = {"-dci --destroy-compute-instance", GP_SMI_FLAG, NULL, NULL,
                             "destroy compute instances: all, or those of -gi and -ci"},
    [OPT_COMPUTE_INSTANCES] = {"-lci --list-compute-instances", GP_SMI_FLAG, NULL, NULL,
                               "list the compute instances"},
    [OPT_GPU_INSTANCE] = {"-gi --gpu-instance-id", GP_SMI_VALUE, NULL, "IDS",
                          "only in these GPU instances"},
    [OPT_COMPUTE_INSTANCE] = {"-ci --compute-instance-id", GP_SMI_VALUE, NULL, "IDS",
                              "only these compute instances"},
    [OPT_HELP] = {"-h --help", GP_SMI_FLAG, NULL, NULL, "show this help"},
#define X(id, kind, names, value, help) [OPT_##id] = {names, kind, NULL, value, help},
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        [OPT__COUNT] = {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct gp_smi_syntax syntax = {
    "nvidia-smi mig", "list, create and destroy MIG instances.", options, OPT_HELP, OPT_ID,
};

/* ---- lists ---- */

static void want(const void *ctx, struct gp_want *want)
{
    gp_smi_mig_want(ctx, want);
}

static int refuse(const void *ctx, struct gp_strbuf *message, const struct gp_snapshot *snapshot)
{
    return gp_smi_mig_refuse(ctx, message, snapshot);
}

static void print(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot)
{
    gp_smi_mig_print(sb, ctx, form, snapshot);
}

/* What -gi and -ci select from. */
enum filter { BY_GPU_INSTANCE = 1, BY_COMPUTE_INSTANCE = 2 };

/* ---- changes ---- */

struct run {
    const struct gp_smi_request *request;
    struct gp_changer *changer;
    struct gp_target *target; /* the current GPU */
    struct gp_strbuf *sb;     /* not printed yet */
    int (*flush)(struct gp_strbuf *sb);
    bool found;  /* something was found to change */
    int written; /* exit status if output could not be written */
};

/* Returns the exit status that ends the command, or 0. */
static int carry_out(struct run *run, struct gp_part *part)
{
    struct gp_err err = {0};
    int r = gp_changer_part(run->changer, run->target, part, &err);
    run->found = true;
    if (r == GP_ETIMEOUT)
        err.driver_code = GP_SMI_EXIT_TIMEOUT;
    gp_smi_mig_say(run->sb, run->target->index, part,
                   r < 0 ? gp_nvml_return_text(err.driver_code) : NULL);
    int written = run->flush(run->sb);
    run->written = run->written ? run->written : written;
    return r < 0 ? gp_smi_exit_of(err.driver_code) : 0;
}

/* The next profile of a comma-separated list; false at its end. */
static bool next_profile(const char **list, struct gp_part *part)
{
    size_t n = strcspn(*list, ",");
    if (!**list)
        return false;
    (void)snprintf(part->profile, sizeof(part->profile), "%.*s", (int)n, *list);
    *list += n + ((*list)[n] == ',');
    return true;
}

static int create_gpu_instances(struct run *run)
{
    const char *list = run->request->gpu_profiles;
    struct gp_part part = {.step = GP_PART_CREATE_GPU};
    int status = 0;
    while (status == 0 && next_profile(&list, &part)) {
        status = carry_out(run, &part);
        struct gp_part whole = {.step = GP_PART_CREATE_COMPUTE, .gpu_instance = part.gpu_instance};
        if (status == 0 && run->request->with_compute)
            status = carry_out(run, &whole);
    }
    return status;
}

/* The rows of a list of this GPU: the number in a column. */
static const struct gp_list *list_of(const struct run *run, enum gp_scope scope)
{
    return &run->target->reading->lists[gp_list_index(scope)];
}

static unsigned number_at(const struct gp_list *list, size_t row, enum gp_metric m)
{
    enum gp_scope scope = gp_metric_table[m].scope;
    const struct gp_value *v =
        &list->values[row * gp_scope_width(scope) + (size_t)(m - gp_scope_table[scope].first)];
    return gp_value_is_present(v) ? (unsigned)v->i : 0;
}

static int create_compute_instances(struct run *run)
{
    const struct gp_list *instances = list_of(run, GP_SCOPE_GI);
    int status = 0;
    for (size_t i = 0; status == 0 && i < instances->count; i++) {
        const char *list = run->request->compute_profiles;
        struct gp_part part = {.step = GP_PART_CREATE_COMPUTE,
                               .gpu_instance = number_at(instances, i, GP_GI_ID)};
        if (!gp_smi_mig_has_id(&run->request->mig.gpu_instances, part.gpu_instance))
            continue;
        if (!*list)
            status = carry_out(run, &part);
        while (status == 0 && next_profile(&list, &part))
            status = carry_out(run, &part);
    }
    return status;
}

static int destroy_compute_instances(struct run *run)
{
    const struct gp_list *instances = list_of(run, GP_SCOPE_CI);
    int status = 0;
    for (size_t i = 0; status == 0 && i < instances->count; i++) {
        struct gp_part part = {.step = GP_PART_DESTROY_COMPUTE,
                               .gpu_instance = number_at(instances, i, GP_CI_GI),
                               .compute_instance = number_at(instances, i, GP_CI_ID)};
        if (gp_smi_mig_has_id(&run->request->mig.gpu_instances, part.gpu_instance) &&
            gp_smi_mig_has_id(&run->request->mig.compute_instances, part.compute_instance))
            status = carry_out(run, &part);
    }
    return status;
}

static int destroy_gpu_instances(struct run *run)
{
    const struct gp_list *instances = list_of(run, GP_SCOPE_GI);
    int status = 0;
    for (size_t i = 0; status == 0 && i < instances->count; i++) {
        struct gp_part part = {.step = GP_PART_DESTROY_GPU,
                               .gpu_instance = number_at(instances, i, GP_GI_ID)};
        if (gp_smi_mig_has_id(&run->request->mig.gpu_instances, part.gpu_instance))
            status = carry_out(run, &part);
    }
    return status;
}

/* The actions, and the list of objects for each. */
static const struct gp_smi_mig_change {
    int option;
    unsigned takes; /* enum filter, or-ed */
    int (*change)(struct run *run);
    enum gp_smi_mig_list list;
    enum gp_scope scope; /* GP_SCOPE_DEVICE: no list */
} changes[] = {
    {OPT_CREATE_GPU, 0, create_gpu_instances, GP_SMI_MIG_INSTANCES, GP_SCOPE_DEVICE},
    {OPT_CREATE_COMPUTE, BY_GPU_INSTANCE, create_compute_instances, GP_SMI_MIG_INSTANCES,
     GP_SCOPE_GI},
    {OPT_DESTROY_COMPUTE, BY_GPU_INSTANCE | BY_COMPUTE_INSTANCE, destroy_compute_instances,
     GP_SMI_MIG_COMPUTE_INSTANCES, GP_SCOPE_CI},
    {OPT_DESTROY_GPU, BY_GPU_INSTANCE, destroy_gpu_instances, GP_SMI_MIG_INSTANCES, GP_SCOPE_GI},
};

static bool is_enabled(const struct gp_target *target)
{
    const struct gp_value *mode = &target->reading->values[GP_MIG_MODE - GP_DEVICE__FIRST];
    return gp_value_is_present(mode) && strcmp(mode->s, "Enabled") == 0;
}

/* Prints that there was nothing to change. */
static int end_without(struct run *run, const struct gp_smi_mig_change *change, bool any,
                       enum gp_status why)
{
    int code = why == GP_STATUS_NO_PERMISSION ? GP_SMI_EXIT_NO_PERMISSION : GP_SMI_EXIT_NOT_FOUND;
    if (!any)
        gp_strbuf_adds(run->sb, GP_SMI_NO_MIG);
    else
        gp_strbuf_addf(run->sb, "No %s instances found: %s\n",
                       change->scope == GP_SCOPE_CI ? "compute" : "GPU", gp_nvml_return_text(code));
    return code;
}

static int change_all(struct run *run, const struct gp_smi_mig_change *change)
{
    size_t count;
    bool any = false;
    enum gp_status why = GP_STATUS_OK;
    const struct gp_smi_form form =
        gp_smi_form_of_driver(&gp_changer_host(run->changer)[GP_DRIVER_VERSION], false);
    struct gp_target *targets = gp_changer_targets(run->changer, &count);
    int status = 0;
    for (size_t t = 0; status == 0 && t < count; t++) {
        run->target = &targets[t];
        if (targets[t].code)
            return gp_smi_say_unreachable(run->sb, &form, &targets[t]);
        if (targets[t].is_mig || !is_enabled(&targets[t]))
            continue;
        any = true;
        if (change->scope != GP_SCOPE_DEVICE && list_of(run, change->scope)->status != GP_STATUS_OK)
            why = list_of(run, change->scope)->status;
        status = change->change(run);
    }
    return status || run->found ? status : end_without(run, change, any, why);
}

void gp_smi_mig_change_want(const struct gp_smi_request *request, struct gp_want *want)
{
    const struct gp_smi_mig mig = {.list = request->change->list};
    *want = (struct gp_want){.fresh = true};
    gp_smi_mig_want(&mig, want);
    if (request->change->scope == GP_SCOPE_DEVICE)
        want->lists = 0;
}

int gp_smi_mig_change(const struct gp_smi_request *request, struct gp_changer *changer,
                      int (*flush)(struct gp_strbuf *sb), struct gp_strbuf *sb)
{
    struct run run = {.request = request, .changer = changer, .sb = sb, .flush = flush};
    int status = change_all(&run, request->change);
    if (run.written)
        gp_strbuf_reset(sb);
    return run.written ? run.written : status;
}

/* ---- the command ---- */

static const struct {
    int option;
    unsigned takes; /* enum filter, or-ed */
    enum gp_smi_mig_list list;
} lists[] = {
    {OPT_PROFILES, 0, GP_SMI_MIG_PROFILES},
    {OPT_PLACEMENTS, 0, GP_SMI_MIG_PLACEMENTS},
    {OPT_INSTANCES, BY_GPU_INSTANCE, GP_SMI_MIG_INSTANCES},
    {OPT_COMPUTE_PROFILES, BY_GPU_INSTANCE, GP_SMI_MIG_COMPUTE_PROFILES},
    {OPT_COMPUTE_INSTANCES, BY_GPU_INSTANCE | BY_COMPUTE_INSTANCE, GP_SMI_MIG_COMPUTE_INSTANCES},
};

static int take_ids(struct gp_smi_request *request, struct gp_strbuf *sb, const char *text,
                    const char *option, struct gp_smi_mig_ids *ret)
{
    if (!text || gp_smi_mig_parse_ids(text, ret))
        return 0;
    return gp_smi_refuse_value(request, sb, option, text);
}

/* Which list or change is requested; whether the options can be combined. */
static bool choose(const char *const *given, struct gp_smi_request *ret)
{
    unsigned takes = 0;
    size_t asked = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        if (!given[lists[i].option])
            continue;
        asked++;
        ret->mig.list = lists[i].list;
        takes = lists[i].takes;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(changes); i++) {
        if (!given[changes[i].option])
            continue;
        asked++;
        ret->change = &changes[i];
        takes = changes[i].takes;
    }
    return asked == 1 && (!given[OPT_WITH_COMPUTE] || given[OPT_CREATE_GPU]) &&
           (!given[OPT_GPU_INSTANCE] || takes & BY_GPU_INSTANCE) &&
           (!given[OPT_COMPUTE_INSTANCE] || takes & BY_COMPUTE_INSTANCE);
}

int gp_smi_read_mig(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    const char *given[OPT__COUNT] = {NULL};
    int status;
    ret->show = (struct gp_smi_show){want, print, refuse};
    ret->ctx = &ret->mig;
    ret->mig = (struct gp_smi_mig){.list = GP_SMI_MIG_PROFILES};
    if (!gp_smi_begin(&syntax, argc, argv, given, ret, sb, &status))
        return status;
    if (!choose(given, ret))
        return gp_smi_refuse_combination(ret, sb);
    ret->gpu_profiles = given[OPT_CREATE_GPU];
    ret->compute_profiles = given[OPT_CREATE_COMPUTE];
    ret->with_compute = given[OPT_WITH_COMPUTE];
    status = take_ids(ret, sb, given[OPT_GPU_INSTANCE], "-gi", &ret->mig.gpu_instances);
    return status
               ? status
               : take_ids(ret, sb, given[OPT_COMPUTE_INSTANCE], "-ci", &ret->mig.compute_instances);
}
