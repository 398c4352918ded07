#include "sim/inject.h"
#include "sim/tool.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *machine;
    const char *gpu;
};

static const struct gp_opt options[] = {
    SIM_MACHINE_OPTION(options, machine),
    {'g', "gpu", NULL, GP_OPT_STRING, "INDEX", .offset = offsetof(struct options, gpu),
     .help = "affect only this GPU (default: the whole machine)"},
    GP_OPT_END,
};

static int parse_gpu(const struct options *o, const struct sim_machine *machine, int *ret,
                     struct gp_err *err)
{
    unsigned int gpu;
    int end = 0;
    *ret = SIM_ALL_GPUS;
    if (!o->gpu)
        return GP_OK;
    if (sscanf(o->gpu, "%3u%n", &gpu, &end) != 1 || o->gpu[end] || gpu >= machine->device_count)
        return gp_err_set(err, GP_EUSAGE, "--gpu %s: the machine has GPUs 0 to %zu", o->gpu,
                          machine->device_count - 1);
    *ret = (int)gpu;
    return GP_OK;
}

static int list_faults(struct sim_state *state, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    for (size_t i = 0; i < SIM_MAX_FAULTS; i++) {
        struct sim_fault fault;
        if (!sim_state_fault(state, i, &fault))
            continue;
        if (fault.gpu == SIM_ALL_GPUS)
            gp_strbuf_adds(&sb, "all\t");
        else
            gp_strbuf_addf(&sb, "%d\t", fault.gpu);
        sim_fault_add_text(&sb, &fault);
        gp_strbuf_addc(&sb, '\n');
    }
    return sim_tool_print(&sb, err);
}

/* Rejects an event that none of the selected GPUs reports, because it would have no effect. */
static int check_reported(const struct sim_machine *machine, int gpu, const char *word,
                          const struct sim_injection *injection, struct gp_err *err)
{
    uint64_t reported = 0;
    for (size_t i = 0; i < machine->device_count; i++) {
        const struct sim_value *types = &machine->devices[i].answers[SIM_EVENT_TYPES];
        if ((gpu == SIM_ALL_GPUS || gpu == (int)i) && types->code == NVML_SUCCESS)
            reported |= types->number;
    }
    if (injection->kind != SIM_INJECT_EVENT || injection->with_fault ||
        reported & injection->event.type)
        return GP_OK;
    return gp_err_set(err, GP_EUSAGE,
                      "'%.40s': this machine's driver does not report such events; add %#x to "
                      "SupportedEventTypes in a custom machine file",
                      word, injection->event.type);
}

/* Checks all arguments before the first one takes effect. */
static int inject(struct sim_state *state, const struct sim_machine *machine, int gpu, int count,
                  char **words, struct gp_err *err)
{
    struct sim_injection injection;
    int result = GP_OK;
    for (int i = 0; i < count && result == GP_OK; i++) {
        result = sim_inject_parse(words[i], gpu, &injection, err);
        if (result == GP_OK)
            result = check_reported(machine, gpu, words[i], &injection, err);
    }
    if (result == GP_OK)
        result = sim_state_lock(state, err);
    if (result < 0)
        return result;
    for (int i = 0; i < count && result == GP_OK; i++) {
        result = sim_inject_parse(words[i], gpu, &injection, err);
        if (result == GP_OK)
            result = sim_inject(state, gpu, machine->device_count, &injection, err);
    }
    sim_state_unlock(state);
    return result;
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct options o = {0};
    const struct gp_opt_target target = {options, &o};
    struct sim_machine *machine = NULL;
    struct sim_state *state = NULL;
    const char *spec;
    int positional, gpu;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, err);
    if (result == GP_OK)
        result = sim_tool_open(o.machine, &spec, &machine, &state, err);
    if (result == GP_OK)
        result = parse_gpu(&o, machine, &gpu, err);
    if (result == GP_OK)
        result = positional == 0 ? list_faults(state, err)
                                 : inject(state, machine, gpu, positional, argv + 1, err);
    sim_state_close(state);
    sim_machine_free(machine);
    return result;
}

const struct gp_cmd sim_cmd_fault = {
    .name = "fault",
    .summary = "inject faults into a simulated machine while it is being monitored",
    .usage = "[options] [FAULT[:FUNCTION] …]",
    .description =
        "Without arguments, lists the active faults. Faults stay active until they are cleared, "
        "for "
        "all of your processes that use the machine.\n\n"
        "lost: the GPU has fallen off the bus. hang[=45s]: calls block for this time, or until the "
        "fault is cleared. slow=20ms: calls take this much longer. deny: calls return "
        "NO_PERMISSION. error=CODE: calls return this code. absurd: calls return sentinels and "
        "impossible numbers. grow: process lists grow while they are "
        "read. unloaded, mismatch, nogpu: the driver is not loaded, has another version, or has no "
        "device. clear: removes the faults of --gpu, or all faults.\n\n"
        "gone: the GPU disappears, and the indices of later GPUs shift. excluded: the same, "
        "because of the kernel module's option NVreg_ExcludedGpus. overcount: the driver counts "
        "one GPU too many. "
        "reorder: from the next nvmlInit on, the GPUs are in reverse order. repartition: MIG "
        "devices get new UUIDs, but reuse the ids of their instances. parent: no permission for "
        "memory and processes of a GPU with MIG devices. profiling: no permission for GPM and "
        "NVLink counters. types: field values have wrong types. untouched: of several fields in a "
        "call, every "
        "other one gets no answer. pids: processes have impossible "
        "pids. hidden: memory is in use, but no process is listed. stuck: utilization stays at 100 "
        "%. energy: the energy counter restarts at 0. ignore: settings are accepted, but not "
        "kept.\n\n"
        "set=ANSWER=VALUE: changes an answer; the driver reports it if it has an event for that: "
        "set=PerformanceState=P8, set=TotalEccErrors.corrected.volatile=3, set=230=1 (a field by "
        "its id).\n\n"
        "xid=N[*TIMES][:GI/CI] and event=NAME[*TIMES] happen once: the driver reports an Xid, or "
        "an event named corrected, uncorrected, storm, retirement, "
        "retirement-failed, poison, fatal-poison, unavailable, recovery, pstate, clock, power, "
        "mig. After xid=79 the GPU is lost.\n\n"
        "FUNCTION is the name of a driver function or a prefix of one: "
        "slow=20ms:nvmlDeviceGetFanSpeed.",
    .examples = "gpulse sim fault -m h100x8 --gpu 3 lost\tmake GPU 3 fall off the bus\n"
                "gpulse sim fault -m h100x8 --gpu 0 xid=94\tmake the driver report an error\n"
                "gpulse sim fault -m h100x8\tlist the faults\n"
                "gpulse sim fault -m h100x8 clear\tremove all faults\n",
    .options = options,
    .run = run,
};
