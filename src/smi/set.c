#include "smi/set.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/settings.h"
#include "smi/processes.h"
#include "source/nvml/nvml.h"

#include <string.h>
#include <unistd.h>

struct run {
    const struct gp_smi_set *set;
    struct gp_smi_form form;
    struct gp_changer *changer;
    struct gp_target *targets;
    size_t count;
    struct gp_strbuf *sb; /* not printed yet */
    int (*flush)(struct gp_strbuf *sb);
    bool changed;
    int warning;     /* exit status of the first warning */
    int unreachable; /* exit status for the first GPU that did not respond; the others are set */
    size_t reached;  /* GPUs that responded */
};

/* ---- one GPU ---- */

/* A change that failed without a driver's code has words of its own: the driver accepts a value,
 * but does not keep it. */
static const char *error_of(const struct run *run, const struct gp_target *target, int driver_code)
{
    const char *words =
        run->set->control < GP_CONTROL__COUNT ? target->changes[run->set->control].words : "";
    return driver_code || !*words ? gp_nvml_return_text(driver_code ? driver_code : GP_NVML_UNKNOWN)
                                  : words;
}

/* Returns the exit status that stops the command, or 0. */
static int say(struct run *run, const struct gp_target *target, enum gp_smi_result result,
               int driver_code)
{
    const struct gp_setting *now =
        run->set->control < GP_CONTROL__COUNT ? &target->settings[run->set->control] : NULL;
    const struct gp_smi_saying saying = {
        .gpu = target->bus,
        .word = run->set->word,
        .control = run->set->control,
        .value = run->set->setting->only_reads ? &now->value : &run->set->value,
        .setting = now,
        .error = error_of(run, target, driver_code),
    };
    bool is_warning = gp_smi_setting_say(run->sb, run->set->id, result, &run->form, &saying);
    if (is_warning && !run->warning)
        run->warning = gp_smi_exit_of(driver_code);
    return is_warning || result < GP_SMI_INVALID ? 0 : gp_smi_exit_of(driver_code);
}

/* Whether the GPU has the setting and accepts the value: what nvidia-smi checks itself. */
static int check(struct run *run, struct gp_target *target, bool *ret_fits)
{
    const struct gp_setting *now = &target->settings[run->set->control];
    struct gp_change *change = &target->changes[run->set->control];
    *ret_fits = false;
    if (now->status != GP_STATUS_OK)
        return say(run, target, gp_smi_result_of(now->driver_code), now->driver_code);
    bool judges = gp_smi_setting_has(run->set->id, GP_SMI_INVALID, &run->form);
    /* Also called for a reset: the value is then the GPU's own default. */
    bool is_within = gp_control_check(run->set->control, now, &change->value, NULL) == 0;
    if (judges && (!is_within || gp_changer_check(run->changer, NULL) < 0))
        return say(run, target, GP_SMI_INVALID, GP_SMI_EXIT_USAGE);
    *ret_fits = true;
    return 0;
}

/* Whether nvidia-persistenced runs; the driver leaves persistence mode to it. */
static bool has_daemon(const char *root)
{
    char path[GP_PATH_SIZE];
    if (!root)
        return true;
    return gp_io_path(path, root, "/run/nvidia-persistenced/socket") && access(path, F_OK) == 0;
}

static enum gp_smi_result success_of(const struct run *run, const struct gp_change *change,
                                     enum gp_outcome outcome)
{
    if (outcome == GP_OUTCOME_SAME)
        return GP_SMI_SAME;
    if (outcome != GP_OUTCOME_PENDING || !change->driver_code) {
        bool alone = run->set->value.n[0] && !has_daemon(run->set->root) &&
                     gp_smi_setting_has(run->set->id, GP_SMI_DONE_ALONE, &run->form);
        return alone ? GP_SMI_DONE_ALONE : GP_SMI_DONE;
    }
    return change->driver_code == GP_NVML_IN_USE ? GP_SMI_PENDING_IN_USE : GP_SMI_PENDING;
}

static void warn_of_loss(struct run *run, const struct gp_target *target)
{
    const struct gp_setting *mode = &target->settings[GP_CONTROL_PERSISTENCE];
    if (!run->set->setting->is_lost_unless_persistent || !mode->known || mode->value.n[0])
        return;
    gp_strbuf_addf(run->sb,
                   "\nWarning: persistence mode is disabled on device %s. See the Known Issues "
                   "section of the nvidia-smi(1) man page for more information. Run with [--help | "
                   "-h] switch to get more information on how to enable persistence mode.\n",
                   target->bus);
    if (!run->warning)
        run->warning = GP_SMI_EXIT_OTHER;
}

/* A GPU that does not respond keeps no other one from being set, but its status is returned in the
 * end. */
static void leave_out(struct run *run, int status)
{
    run->unreachable = run->unreachable ? run->unreachable : status;
}

static int change(struct run *run, struct gp_target *target)
{
    struct gp_change *change = &target->changes[run->set->control];
    gp_changer_apply(run->changer);
    enum gp_outcome outcome = gp_target_outcome(target, run->set->control);
    if (target->code) {
        leave_out(run, say(run, target, GP_SMI_FAILED, GP_SMI_EXIT_TIMEOUT));
        return 0;
    }
    if (outcome == GP_OUTCOME_FAILED)
        return say(run, target, gp_smi_result_of(change->driver_code), change->driver_code);
    /* a value that takes effect only after a reset is not set yet */
    if (outcome == GP_OUTCOME_SAME && target->settings[run->set->control].has_pending)
        outcome = GP_OUTCOME_DONE;
    enum gp_smi_result result = success_of(run, change, outcome);
    (void)say(run, target, result, change->driver_code);
    run->changed = run->changed || outcome != GP_OUTCOME_SAME;
    if (result == GP_SMI_DONE)
        warn_of_loss(run, target);
    return 0;
}

static int set_one(struct run *run, struct gp_target *target)
{
    struct gp_change *change_of = &target->changes[run->set->control];
    bool fits;
    change_of->wanted = true;
    change_of->value = run->set->value;
    /* If there is no message for "already set", it is set again. */
    change_of->anew = !gp_smi_setting_has(run->set->id, GP_SMI_SAME, &run->form);
    if (target->code) {
        leave_out(run, gp_smi_say_unreachable(run->sb, &run->form, target));
        return 0;
    }
    int status = check(run, target, &fits);
    if (status == 0 && fits && run->set->setting->only_reads)
        status = say(run, target, GP_SMI_DONE, 0);
    else if (status == 0 && fits && run->set->given[GP_SMI_SET_DRY_RUN])
        gp_settings_add_changes(run->sb, target, 1, false);
    else if (status == 0 && fits)
        status = change(run, target);
    change_of->wanted = false;
    change_of->code = 0; /* the message for a rejected value would appear for the next GPU, too */
    return status;
}

/* ---- all GPUs ---- */

static int finish(struct run *run, int status)
{
    if (status)
        gp_strbuf_adds(run->sb, "Terminating early due to previous errors.\n");
    else if (run->set->given[GP_SMI_SET_DRY_RUN] && !run->set->setting->only_reads)
        gp_strbuf_adds(run->sb, "nothing was changed (--dry-run)\n");
    else
        gp_strbuf_adds(run->sb, "All done.\n");
    if (!status && run->changed && run->set->setting->after)
        gp_strbuf_addf(run->sb, "%s\n", run->set->setting->after);
    if (!status && run->set->given[GP_SMI_SET_ERROR_ON_WARNING])
        status = run->warning;
    return status ? status : run->unreachable;
}

/* Nothing is attempted, which is not a success. */
static int refuse(struct run *run)
{
    for (size_t t = 0; t < run->count; t++)
        (void)say(run, &run->targets[t], GP_SMI_UNSUPPORTED, GP_SMI_EXIT_NOT_SUPPORTED);
    gp_strbuf_adds(run->sb, GP_SMI_NO_CALL);
    return finish(run, GP_SMI_EXIT_NOT_SUPPORTED);
}

static int set_all(struct run *run)
{
    int status = 0;
    if (run->set->control == GP_CONTROL__COUNT)
        return refuse(run);
    gp_changer_read(run->changer, 1u << run->set->control | 1u << GP_CONTROL_PERSISTENCE);
    int written = 0;
    for (size_t t = 0; status == 0 && t < run->count; t++) {
        status = set_one(run, &run->targets[t]);
        run->reached += !run->targets[t].code;
        if (run->targets[t].code && (run->reached || t + 1 < run->count))
            gp_strbuf_adds(run->sb, "Treating as warning and moving on.\n");
        if (written == 0)
            written = run->flush(run->sb);
    }
    status = finish(run, status || run->reached ? status : run->unreachable);
    if (written)
        gp_strbuf_reset(run->sb);
    return written ? written : status;
}

int gp_smi_set_apply(const struct gp_smi_set *set, struct gp_changer *changer,
                     int (*flush)(struct gp_strbuf *sb), struct gp_strbuf *sb)
{
    struct run run = {.set = set, .changer = changer, .sb = sb, .flush = flush};
    run.targets = gp_changer_targets(changer, &run.count);
    run.form = gp_smi_form_of_driver(&gp_changer_host(changer)[GP_DRIVER_VERSION], false);
    if (set->word && set->word->notice)
        gp_strbuf_addf(sb, "%s\n", set->word->notice);
    return set_all(&run);
}

/* ---- --gpu-reset ---- */

static void want_holders(const void *ctx, struct gp_want *want)
{
    (void)ctx;
    gp_metric_set_add(&want->metrics, GP_PCI_BUS_ID);
    gp_metric_set_add(&want->metrics, GP_PID);
    want->processes = true;
    want->mig = true;
}

static bool is_held(const struct gp_snapshot *snapshot, const struct gp_device *gpu)
{
    return gp_smi_next_process(snapshot, gpu, NULL) != NULL;
}

static const char *bus_of(const struct gp_snapshot *snapshot, const struct gp_device *gpu)
{
    const struct gp_value *v = gp_snapshot_value(snapshot, gpu, NULL, GP_PCI_BUS_ID);
    return gp_value_is_present(v) ? v->s : "N/A";
}

static void add_in_use(struct gp_strbuf *sb, size_t count)
{
    bool one = count == 1;
    gp_strbuf_addf(sb,
                   "\n%zu %s currently being used by one or more other processes (e.g., Fabric "
                   "Manager, CUDA application, graphics application such as an X server, or a "
                   "monitoring application such as another instance of nvidia-smi). Please first "
                   "kill all processes using %s and all compute applications running in the "
                   "system.\n",
                   count, one ? "device is" : "devices are", one ? "this device" : "these devices");
}

/* The exit status is stored in ctx, an int. */
static void print_refusal(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                          const struct gp_snapshot *snapshot)
{
    size_t held = 0;
    for (size_t d = 0; d < snapshot->device_count; d++)
        held += !snapshot->devices[d].is_mig && is_held(snapshot, &snapshot->devices[d]);
    if (held)
        gp_strbuf_adds(sb, "\nThe following GPUs could not be reset:\n");
    for (size_t d = 0; d < snapshot->device_count; d++) {
        const struct gp_device *gpu = &snapshot->devices[d];
        const struct gp_smi_saying saying = {.gpu = bus_of(snapshot, gpu)};
        int code = is_held(snapshot, gpu) ? GP_NVML_IN_USE : GP_SMI_EXIT_NOT_SUPPORTED;
        if (gpu->status == GP_STATUS_LOST || gpu->status == GP_STATUS_TIMEOUT)
            continue; /* printed below */
        if (!gpu->is_mig && held)
            gp_strbuf_addf(sb, "  GPU %s: %s\n", saying.gpu, gp_nvml_return_text(code));
        else if (!gpu->is_mig)
            (void)gp_smi_setting_say(sb, GP_SMI_SET_RESET, GP_SMI_UNSUPPORTED, form, &saying);
    }
    if (held)
        add_in_use(sb, held);
    gp_smi_add_failures(sb, form, snapshot);
    gp_strbuf_adds(sb, "gpulse cannot reset GPUs, because the driver has no public call for it; "
                       "use NVIDIA's own nvidia-smi --gpu-reset, or reboot.\n");
    *(int *)ctx = held ? GP_SMI_EXIT_OTHER : GP_SMI_EXIT_NOT_SUPPORTED;
}

const struct gp_smi_show gp_smi_reset_refusal = {.want = want_holders, .print = print_refusal};

/* ---- the command line ---- */

/* The setting that is given; GP_SMI_SETTING__COUNT if there is none, and *ret_many if there are
 * several. */
static enum gp_smi_setting_id find_setting(const char *const *given, bool *ret_many)
{
    enum gp_smi_setting_id id = GP_SMI_SETTING__COUNT;
    *ret_many = false;
    for (unsigned i = 0; i < GP_SMI_SETTING__COUNT; i++) {
        if (!given[i])
            continue;
        *ret_many = *ret_many || id != GP_SMI_SETTING__COUNT;
        id = (enum gp_smi_setting_id)i;
    }
    return id;
}

/* Whether the other given options can be combined with the setting. */
static bool is_odd(enum gp_smi_setting_id id, const char *const *given)
{
    return (given[GP_SMI_SET_SCOPE] && id != GP_SMI_SET_POWER_LIMIT) ||
           (given[GP_SMI_SET_MODE] && id != GP_SMI_SET_GPU_CLOCKS);
}

/* Applies --scope and --mode to the setting; returns 0, or an exit status. */
static int take_modifiers(struct gp_smi_set *set, struct gp_strbuf *sb)
{
    const char *given_scope = set->given[GP_SMI_SET_SCOPE];
    const char *given_mode = set->given[GP_SMI_SET_MODE];
    const struct gp_smi_word *scope = gp_smi_word_find(gp_smi_power_scopes, given_scope);
    const struct gp_smi_word *mode = gp_smi_word_find(gp_smi_clock_modes, given_mode);
    if (!scope || !mode) {
        return gp_smi_add_invalid(sb, scope ? "--mode" : "--scope",
                                  scope ? given_mode : given_scope);
    }
    if (scope == &gp_smi_power_scopes[GP_SMI_SCOPE_MODULE])
        set->control = GP_CONTROL_MODULE_POWER_LIMIT;
    if (!mode->text)
        gp_strbuf_addf(sb, "Locking GPU clocks with --mode=%s is not supported.\n" GP_SMI_NO_CALL,
                       given_mode);
    return mode->text ? 0 : GP_SMI_EXIT_NOT_SUPPORTED;
}

bool gp_smi_set_is_given(const char *const *given)
{
    for (size_t i = 0; i < GP_SMI_SETTING_OPTIONS__COUNT; i++)
        if (given[i])
            return true;
    return false;
}

int gp_smi_set_read(const char *const *given, bool others, struct gp_smi_set *ret,
                    struct gp_strbuf *sb)
{
    bool many;
    *ret = (struct gp_smi_set){.given = given, .id = find_setting(given, &many)};
    if (many || others || ret->id == GP_SMI_SETTING__COUNT || is_odd(ret->id, given)) {
        gp_strbuf_adds(sb, GP_SMI_COMBINATION);
        return GP_SMI_EXIT_USAGE;
    }
    ret->setting = &gp_smi_settings[ret->id];
    ret->control = ret->setting->control;
    int status = take_modifiers(ret, sb);
    return status ? status
                  : gp_smi_setting_parse(ret->id, ret->control, given[ret->id], &ret->value,
                                         &ret->word, sb);
}
