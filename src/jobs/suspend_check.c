#include "jobs/suspend_check.h"

#include "base/clock.h"
#include "base/err.h"
#include "jobs/checkpoint.h"
#include "jobs/suspend.h"
#include "model/snapshot.h"
#include "out/procs.h"
#include "proc/files.h"
#include "proc/signal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_S = 5 }; /* for the driver to report the state of a process */

/* ---- before suspending ---- */

/* Reads what distinguishes the process from a later one with its pid, and whether its driver calls
 * would be answered. */
static int identify(struct gp_suspended *s, uint64_t seen_wall_ns, struct gp_err *err)
{
    char path[64];
    struct stat folder;
    struct gp_proc_stat stat_now;
    int fd;
    int r = gp_proc_hold(s->pid, seen_wall_ns, &fd, err);
    (void)snprintf(path, sizeof(path), "/proc/%u", s->pid);
    bool there = r == 0 && gp_proc_stat_of(s->pid, &stat_now) && stat(path, &folder) == 0;
    if (r == 0)
        (void)close(fd);
    if (r < 0)
        return r;
    if (!there)
        return gp_err_set(err, GP_EFAIL, "it has exited");
    if (geteuid() != 0 && folder.st_uid != geteuid())
        return gp_err_set(err, GP_EPERM, "it belongs to another user; only root can suspend it");
    if (strchr("Tt", stat_now.state))
        return gp_err_set(
            err, GP_EFAIL,
            "it is stopped, so the driver would wait forever; first continue it: kill -CONT %u",
            s->pid);
    if (s->start_ticks && s->start_ticks != stat_now.start_ticks)
        return gp_err_set(err, GP_EFAIL, "the pid was recycled");
    s->start_ticks = stat_now.start_ticks;
    return 0;
}

/* The memory of the process on each of its GPUs. */
static int note_memory(const struct gp_snapshot *snapshot, struct gp_suspended *s,
                       struct gp_err *err)
{
    s->gpu_count = 0;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        const struct gp_device *device = &snapshot->devices[p->device];
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        if (gp_process_value(p, GP_PID)->i != s->pid)
            continue;
        if (device->is_mig)
            return gp_err_set(err, GP_EFAIL,
                              "it runs on a MIG instance, where no driver supports this");
        if (!gp_value_is_present(memory))
            return gp_err_set(err, GP_EFAIL, "the driver does not report its memory");
        if (s->gpu_count == GP_SUSPENDED_GPUS)
            return gp_err_set(err, GP_EFAIL, "it uses more than %d GPUs", (int)GP_SUSPENDED_GPUS);
        struct gp_suspended_gpu *gpu = &s->gpus[s->gpu_count++];
        (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", gp_device_text(device, GP_UUID, ""));
        gpu->bytes = (uint64_t)memory->i;
        if (!gpu->uuid[0])
            return gp_err_set(err, GP_EFAIL, "its GPU does not report a UUID");
    }
    return 0;
}

static int check_kind(const struct gp_proc_row *row, const struct gp_suspended *s, bool force,
                      struct gp_err *err)
{
    const char *type = row->type ? row->type : "";
    if (strchr(type, 'S'))
        return gp_err_set(err, GP_EFAIL, "it is already suspended");
    if (strchr(type, 'M'))
        return gp_err_set(err, GP_EFAIL, "it shares its GPU context with others through MPS");
    if (strcmp(type, "C") != 0)
        return gp_err_set(err, GP_EFAIL, "it uses graphics, which cannot be moved");
    if (!force && s->gpu_count > 1)
        return gp_err_set(err, GP_EFAIL,
                          "it uses several GPUs, which often fails (--force tries it)");
    /* "rank 0/8" */
    const char *world =
        row->origin && strncmp(row->origin, "rank ", 5) == 0 ? strchr(row->origin, '/') : NULL;
    if (!force && world)
        return gp_err_set(
            err, GP_EFAIL,
            "it is one of %.*s distributed ranks, which often fails (--force tries it)",
            (int)strspn(world + 1, "0123456789"), world + 1);
    return 0;
}

static int check_driver(const struct gp_suspended *s, uint64_t timeout_ns, struct gp_err *err)
{
    enum gp_cuda_state state;
    int r = gp_checkpoint_get_state(s->pid, timeout_ns, &state, err);
    if (r == 0 && state == GP_CUDA_FAILED)
        return gp_err_set(err, GP_EFAIL, "its GPU memory is lost; it can only be terminated");
    if (r == 0 && state != GP_CUDA_RUNNING)
        return gp_err_set(err, GP_EFAIL, "another program has blocked its CUDA calls");
    return r;
}

static int check(const struct gp_suspend_rules *rules, const struct gp_proc_row *row,
                 const struct gp_snapshot *snapshot, struct gp_suspended *ret, struct gp_err *err)
{
    *ret = (struct gp_suspended){.pid = (uint32_t)row->pid};
    int r = identify(ret, snapshot->wall_ns, err);
    if (r == 0)
        r = note_memory(snapshot, ret, err);
    if (r == 0)
        r = check_kind(row, ret, rules->force, err);
    return r < 0 ? r : check_driver(ret, rules->timeout_ns, err);
}

int gp_suspend_check_all(const struct gp_suspend_rules *rules, const struct gp_procs *procs,
                         const struct gp_snapshot *snapshot, struct gp_suspended_list *ret,
                         struct gp_err *err)
{
    ret->items = calloc(procs->count + 1, sizeof(*ret->items));
    if (!ret->items)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; i < procs->count; i++) {
        struct gp_err why = {0};
        struct gp_suspended *s = &ret->items[ret->count];
        if (!procs->rows[i].pid)
            continue;
        int r = check(rules, &procs->rows[i], snapshot, s, &why);
        if (r < 0)
            return gp_err_set(err, r, "process %u cannot be suspended: %s", s->pid, why.text);
        ret->count++;
    }
    return ret->count > 0 ? gp_suspend_check_room(rules->root, ret->items, ret->count, err)
                          : gp_err_set(err, GP_EFAIL, "no matching process on the GPUs");
}

int gp_suspend_check_again(struct gp_suspended_list *list, uint64_t seen_wall_ns,
                           struct gp_err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        struct gp_err why = {0};
        int r = identify(&list->items[i], seen_wall_ns, &why);
        if (r < 0)
            return gp_err_set(err, r, "process %u: %s", list->items[i].pid, why.text);
    }
    return 0;
}

int gp_suspend_measure(const struct gp_snapshot *snapshot, struct gp_suspended *list, size_t count,
                       struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = note_memory(snapshot, &list[i], err);
        if (r == 0 && list[i].gpu_count == 0)
            r = gp_err_set(err, GP_EFAIL, "the driver no longer lists process %u", list[i].pid);
    }
    return r;
}

/* ---- before resuming ---- */

static bool is_suspended(const struct gp_snapshot *snapshot, uint32_t pid, bool *ret_listed)
{
    bool suspended = false;
    *ret_listed = false;
    for (size_t i = 0; i < snapshot->process_count; i++)
        if (gp_process_value(&snapshot->processes[i], GP_PID)->i == pid) {
            const struct gp_value *v =
                gp_process_value(&snapshot->processes[i], GP_PROCESS_SUSPENDED);
            suspended = suspended || gp_value_is_present(v);
            *ret_listed = true;
        }
    return suspended;
}

static uint64_t needed(const struct gp_suspended_list *list, const struct gp_snapshot *snapshot,
                       const char *uuid)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->count; i++)
        for (size_t g = 0; g < list->items[i].gpu_count; g++) {
            bool listed;
            if (strcmp(list->items[i].gpus[g].uuid, uuid) == 0 &&
                is_suspended(snapshot, list->items[i].pid, &listed))
                bytes += list->items[i].gpus[g].bytes;
        }
    return bytes;
}

int gp_resume_check_gpus(const struct gp_suspended_list *list, const struct gp_snapshot *snapshot,
                         struct gp_err *err)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t g = 0; g < list->items[i].gpu_count; g++) {
            const char *uuid = list->items[i].gpus[g].uuid;
            const struct gp_device *device = NULL;
            double free_bytes;
            for (size_t d = 0; d < snapshot->device_count; d++)
                if (strcmp(gp_device_text(&snapshot->devices[d], GP_UUID, ""), uuid) == 0)
                    device = &snapshot->devices[d];
            if (!device || !gp_device_number_now(device, GP_MEMORY_FREE, &free_bytes))
                return gp_err_set(
                    err, GP_EFAIL,
                    "process %u was on %s, which does not respond or was not selected",
                    list->items[i].pid, uuid);
            uint64_t bytes = needed(list, snapshot, uuid);
            if (free_bytes < (double)bytes)
                return gp_err_set(
                    err, GP_EFAIL,
                    "GPU %u has %.0f MiB free of the %.0f MiB needed, and a process restored "
                    "without enough memory is lost; gpulse ps -i %u shows who uses it",
                    device->index, free_bytes / 0x1p20, (double)bytes / 0x1p20, device->index);
        }
    return 0;
}

bool gp_suspend_is_seen(const struct gp_snapshot *snapshot, const struct gp_suspended_list *list,
                        bool suspended)
{
    for (size_t i = 0; i < list->count; i++) {
        bool listed;
        if (is_suspended(snapshot, list->items[i].pid, &listed) != suspended || !listed)
            return false;
    }
    return true;
}

/* More than the GPU's total memory cannot be right. */
static int check_claim(const struct gp_suspended *s, const struct gp_snapshot *snapshot,
                       struct gp_err *err)
{
    for (size_t g = 0; g < s->gpu_count; g++)
        for (size_t d = 0; d < snapshot->device_count; d++) {
            const struct gp_device *device = &snapshot->devices[d];
            double total;
            if (strcmp(gp_device_text(device, GP_UUID, ""), s->gpus[g].uuid) == 0 &&
                gp_device_number_now(device, GP_MEMORY_TOTAL, &total) &&
                total < (double)s->gpus[g].bytes)
                return gp_err_set(err, GP_EFAIL, "its note claims more memory than GPU %u has",
                                  device->index);
        }
    return 0;
}

int gp_resume_check_note(const struct gp_suspended *s, const struct gp_snapshot *snapshot,
                         struct gp_err *err)
{
    struct gp_suspended copy = *s;
    enum gp_cuda_state state;
    int r = identify(&copy, snapshot->wall_ns, err);
    if (r == 0)
        r = gp_checkpoint_get_state(s->pid, (uint64_t)STATE_S * GP_NS_PER_S, &state, err);
    if (r == 0 && state == GP_CUDA_RUNNING)
        r = gp_err_set(err, GP_EFAIL, "its note says suspended, but it is running");
    return r < 0 ? r : check_claim(s, snapshot, err);
}

int gp_resume_check_unnoted(int64_t pid, bool force, uint64_t timeout_ns, enum gp_cuda_state *ret,
                            struct gp_err *err)
{
    struct gp_suspended s = {.pid = (uint32_t)pid};
    int r = identify(&s, gp_clock_wall_ns(), err);
    if (r == 0)
        r = gp_checkpoint_get_state(pid, timeout_ns, ret, err);
    if (r == 0 && *ret != GP_CUDA_LOCKED && *ret != GP_CUDA_CHECKPOINTED)
        r = gp_err_set(err, GP_EFAIL, "it is not suspended");
    if (r == 0 && *ret == GP_CUDA_CHECKPOINTED && !force)
        r = gp_err_set(err, GP_EFAIL,
                       "the note about its memory is lost, and without enough free GPU memory the "
                       "process would be lost, too; --force tries it");
    return r;
}
