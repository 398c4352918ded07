#include "why/gather.h"

#include "base/clock.h"
#include "base/err.h"
#include "out/procs.h"
#include "why/family.h"
#include "why/health.h"
#include "why/health_rules.h"

#include <stdlib.h>
#include <string.h>

/* Parts of the GPU's memory: a step up or down that counts, and how much slower a GPU's clock must
 * be to be called slow. */
static const double memory_step = 0.03, slow_below = 0.95;

/* A process on a GPU, over all samples. */
struct user {
    uint32_t pid;
    uint64_t job; /* identifies its job: the pid of its first process, or a hash */
    bool is_compute, is_suspended;
    bool is_asked;     /* the caller asked for it, or for a process from which it comes */
    bool is_reserver;  /* it belongs to the job for which the GPU is reserved */
    bool is_contained; /* in a container, a pod, or a job of a scheduler */
    double memory;     /* bytes, in its last sample */
    double sm_sum;
    unsigned sm_count;
    unsigned samples, last;      /* how many it is in, and the number of the last one, from 1 */
    uint64_t start_wall_ns;      /* with the pid, identifies it; 0: unknown */
    char command[256], name[64]; /* name: its user's */
};

struct gpu {
    struct gp_why_case c;
    unsigned index;
    struct user *users;
    size_t user_count, user_room;
    double memory_high, memory_low; /* since the last step; low < 0: no step down */
    uint32_t reserved_by;           /* in the last sample */
    bool knows_nearest;
    struct gp_cpus nearest;
};

struct gp_why_gather {
    struct gp_tasks *tasks; /* NULL: its processes are not on this machine */
    struct gp_why_asked asked;
    uint64_t first_ns, last_ns;
    uint64_t wall_ns;
    unsigned samples;
    struct gpu *gpus;
    size_t count;
    struct gp_why_case *cases;
};

static const enum gp_metric metrics[GP_WHY_SERIES__COUNT] = {
#define X(id, metric, name) GP_##metric,
    GP_WHY_SERIES(X)
#undef X
};

static const uint64_t limit_bits[GP_WHY_LIMIT__COUNT] = {
#define X(id, bits, name) (bits),
    GP_WHY_LIMITS(X)
#undef X
};

struct gp_want gp_why_want(void)
{
    static const enum gp_metric more[] = {
        GP_NAME,
        GP_UUID,
        GP_REASONS_ACTIVE,
        GP_PERSISTENCE_MODE,
        GP_AFFINITY_CPU,
        GP_PID,
        GP_PROCESS_TYPE,
        GP_PROCESS_MEMORY,
        GP_PROCESS_SM,
        GP_PROCESS_USER,
        GP_PROCESS_NAME,
        GP_PROCESS_COMMAND,
        GP_PROCESS_START,
        GP_PROCESS_PPID,
        GP_PROCESS_CONTAINER,
        GP_PROCESS_SUSPENDED,
        GP_RESERVATION_USER,
    };
    struct gp_want want = {.processes = true,
                           .process_names = true,
                           .ancestors = true,
                           .jobs = true,
                           .mig = true,
                           .fresh = true};
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&want.metrics, metrics[i]);
    for (size_t i = 0; i < GP_ARRAY_LEN(more); i++)
        gp_metric_set_add(&want.metrics, more[i]);
    gp_health_want_rules(&want.metrics, true);
    return want;
}

struct gp_why_gather *gp_why_gather_new(const char *root, bool sees_processes,
                                        struct gp_why_asked asked)
{
    struct gp_why_gather *gather = calloc(1, sizeof(*gather));
    if (!gather)
        return NULL;
    gather->asked = asked;
    if (sees_processes && !(gather->tasks = gp_tasks_new(root))) {
        free(gather);
        return NULL;
    }
    return gather;
}

void gp_why_gather_free(struct gp_why_gather *gather)
{
    if (!gather)
        return;
    for (size_t i = 0; i < gather->count; i++)
        free(gather->gpus[i].users);
    free(gather->gpus);
    free(gather->cases);
    gp_tasks_free(gather->tasks);
    free(gather);
}

/* A copy that is cut between characters. */
static void copy_text(char *to, size_t size, const char *from)
{
    size_t n = strnlen(from, size);
    if (n == size)
        for (n = size - 1; n > 0 && ((unsigned char)from[n] & 0xc0) == 0x80;)
            n--;
    memcpy(to, from, n);
    to[n] = '\0';
}

/* ---- a sample ---- */

static struct gpu *gpu_of(struct gp_why_gather *gather, const struct gp_snapshot *s, size_t i)
{
    const struct gp_device *device = &s->devices[i];
    const char *uuid = gp_device_text(device, GP_UUID, "");
    for (size_t g = 0; g < gather->count; g++)
        if (strcmp(gather->gpus[g].c.uuid, uuid) == 0 && gather->gpus[g].index == device->index &&
            gather->gpus[g].c.is_mig == device->is_mig)
            return &gather->gpus[g];
    struct gpu *grown = realloc(gather->gpus, (gather->count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    gather->gpus = grown;
    struct gpu *gpu = &grown[gather->count++];
    *gpu = (struct gpu){.index = device->index, .memory_low = -1};
    gpu->c = (struct gp_why_case){.is_mig = device->is_mig, .age_s = -1, .others_sm = -1};
    gp_device_label(device, gpu->c.gpu);
    copy_text(gpu->c.name, sizeof(gpu->c.name), gp_device_text(device, GP_NAME, "GPU"));
    copy_text(gpu->c.uuid, sizeof(gpu->c.uuid), uuid);
    return gpu;
}

static void add_value(struct gp_why_values *values, double value)
{
    if (values->count++ == 0)
        *values = (struct gp_why_values){.count = 1, .most = value, .first = value};
    values->sum += value;
    values->last = value;
    values->most = value > values->most ? value : values->most;
}

static void add_values(struct gpu *gpu, const struct gp_snapshot *s, const struct gp_device *device)
{
    for (size_t i = 0; i < GP_WHY_SERIES__COUNT; i++) {
        const struct gp_value *v = gp_snapshot_value(s, device, NULL, metrics[i]);
        if (v->status == GP_STATUS_OK)
            add_value(&gpu->c.values[i], gp_metric_number(metrics[i], v));
    }
    double mask;
    if (gp_device_number_now(device, GP_REASONS_ACTIVE, &mask)) {
        gpu->c.limit_samples++;
        for (size_t i = 0; i < GP_WHY_LIMIT__COUNT; i++)
            gpu->c.limited[i] += ((uint64_t)mask & limit_bits[i]) != 0;
    }
    const char *mode = gp_device_text(device, GP_PERSISTENCE_MODE, "");
    gpu->c.persistence_off = strcmp(mode, "Disabled") == 0;
}

/* A drop counts when memory is taken again. */
static void follow_memory(struct gpu *gpu)
{
    const struct gp_why_values *used = &gpu->c.values[GP_WHY_MEMORY];
    double step = memory_step * gpu->c.values[GP_WHY_MEMORY_TOTAL].last;
    if (used->count == 0 || step <= 0)
        return;
    if (gpu->memory_low < 0) {
        gpu->memory_high = used->last > gpu->memory_high ? used->last : gpu->memory_high;
        if (used->last < gpu->memory_high - step)
            gpu->memory_low = used->last;
    } else if (used->last > gpu->memory_low + step) {
        gpu->c.memory_drops++;
        gpu->memory_high = used->last;
        gpu->memory_low = -1;
    } else if (used->last < gpu->memory_low) {
        gpu->memory_low = used->last;
    }
}

static struct user *user_of(struct gpu *gpu, uint32_t pid, uint64_t start_wall_ns)
{
    for (size_t i = 0; i < gpu->user_count; i++)
        if (gpu->users[i].pid == pid && gpu->users[i].start_wall_ns == start_wall_ns)
            return &gpu->users[i];
    if (gpu->user_count == gpu->user_room) {
        struct user *grown = gp_grown(gpu->users, &gpu->user_room, 8, sizeof(*grown));
        if (!grown)
            return NULL;
        gpu->users = grown;
    }
    gpu->users[gpu->user_count] = (struct user){.pid = pid, .start_wall_ns = start_wall_ns};
    return &gpu->users[gpu->user_count++];
}

/* The server of MPS, which runs the kernels of its clients: they are listed, too. Its name may be
 * cut to 15 bytes. */
static bool serves_others(const struct gp_process *process)
{
    static const char server[] = "nvidia-cuda-mps";
    return strncmp(gp_why_text_of(process, GP_PROCESS_NAME), server, strlen(server)) == 0;
}

static bool asks_for_all(const struct gp_why_asked *asked)
{
    return asked->pid == 0 && !asked->filter;
}

static bool is_asked(const struct gp_why_asked *asked, const struct gp_snapshot *s,
                     const struct gp_process *process)
{
    struct gp_proc_row row;
    if (asked->pid > 0 && gp_why_comes_from(s, process, asked->pid))
        return true;
    if (!asked->filter)
        return false;
    gp_proc_row_init(&row, process, s->wall_ns);
    return gp_procs_matches(&row, asked->filter);
}

static bool add_user(struct gpu *gpu, const struct gp_snapshot *s, const struct gp_process *process,
                     const struct gp_why_asked *asked)
{
    uint64_t start_wall_ns;
    if (!gp_clock_parse_rfc3339(gp_why_text_of(process, GP_PROCESS_START), &start_wall_ns))
        start_wall_ns = 0;
    struct user *user = user_of(gpu, gp_why_pid_of(process, GP_PID), start_wall_ns);
    if (!user)
        return false;
    user->last = gpu->c.samples;
    const char *type = gp_why_text_of(process, GP_PROCESS_TYPE);
    if (user->samples++ == 0) {
        copy_text(user->command, sizeof(user->command),
                  gp_why_text_of(process, GP_PROCESS_COMMAND));
        copy_text(user->name, sizeof(user->name), gp_why_text_of(process, GP_PROCESS_USER));
    }
    user->job = gp_why_job_of(process);
    user->is_asked = is_asked(asked, s, process);
    user->is_reserver = gpu->reserved_by > 0 && gp_why_comes_from(s, process, gpu->reserved_by);
    user->is_contained = gp_why_text_of(process, GP_PROCESS_CONTAINER)[0] != '\0';
    user->is_suspended = strchr(type, 'S') != NULL;
    user->is_compute =
        (user->is_suspended || strchr(type, 'C') || strchr(type, 'M')) && !serves_others(process);
    const struct gp_value *memory = gp_process_value(process, GP_PROCESS_MEMORY);
    if (gp_value_is_present(memory))
        user->memory = (double)memory->i;
    const struct gp_value *sm = gp_process_value(process, GP_PROCESS_SM);
    if (sm->status == GP_STATUS_OK) {
        user->sm_sum += (double)sm->i;
        user->sm_count++;
    }
    return true;
}

static bool add_processes(const struct gp_why_gather *gather, struct gpu *gpu,
                          const struct gp_snapshot *s, const struct gp_device *device)
{
    size_t before = gpu->user_count;
    for (size_t i = 0; i < device->process_count; i++)
        if (!add_user(gpu, s, &s->processes[device->first_process + i], &gather->asked))
            return false;
    if (device->processes_status != GP_STATUS_OK)
        return true;
    gpu->c.empty += device->process_count == 0;
    if (gpu->c.samples > 1)
        gpu->c.starts += (unsigned)(gpu->user_count - before);
    return true;
}

/* Whether a process counts for the caller: it belongs to the job that was asked for, if one was. */
static bool is_followed(const struct gp_why_gather *gather, const struct user *user)
{
    const bool is_all = asks_for_all(&gather->asked);
    for (size_t g = 0; !is_all && g < gather->count; g++)
        for (size_t i = 0; i < gather->gpus[g].user_count; i++)
            if (gather->gpus[g].users[i].is_asked && gather->gpus[g].users[i].job == user->job)
                return true;
    return is_all;
}

/* Looks at the compute processes of all GPUs. */
static int look_at_tasks(struct gp_why_gather *gather, uint64_t mono_ns)
{
    size_t room = 0;
    size_t count = 0;
    for (size_t g = 0; g < gather->count; g++)
        room += gather->gpus[g].user_count;
    uint32_t *pids = calloc(room + 1, sizeof(*pids));
    if (!pids)
        return GP_ENOMEM;
    for (size_t g = 0; g < gather->count; g++) {
        const struct gpu *gpu = &gather->gpus[g];
        for (size_t i = 0; i < gpu->user_count; i++)
            if (gpu->users[i].is_compute && gpu->users[i].last == gpu->c.samples &&
                is_followed(gather, &gpu->users[i]))
                pids[count++] = gpu->users[i].pid;
    }
    qsort(pids, count, sizeof(*pids), gp_compare_u32);
    int r = gp_tasks_look(gather->tasks, pids, count, mono_ns);
    free(pids);
    return r;
}

int gp_why_gather_add(struct gp_why_gather *gather, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        struct gpu *gpu = gpu_of(gather, snapshot, i);
        if (!gpu)
            return GP_ENOMEM;
        gp_why_health_look(&gpu->c, snapshot, device);
        if (device->status != GP_STATUS_OK)
            continue;
        gpu->c.samples++;
        if (gather->tasks) /* otherwise it is not known what a process comes from */
            gpu->reserved_by = device->reserved_by;
        add_values(gpu, snapshot, device);
        follow_memory(gpu);
        if (!add_processes(gather, gpu, snapshot, device))
            return GP_ENOMEM;
        if (!gpu->knows_nearest)
            gpu->knows_nearest =
                gp_cpus_parse(&gpu->nearest, gp_device_text(device, GP_AFFINITY_CPU, "")) &&
                gp_cpus_count(&gpu->nearest) > 0;
    }
    gather->last_ns = snapshot->mono_ns;
    gather->wall_ns = snapshot->wall_ns;
    if (gather->samples++ == 0)
        gather->first_ns = snapshot->mono_ns;
    return gather->tasks ? look_at_tasks(gather, snapshot->mono_ns) : 0;
}

/* ---- the cases ---- */

/* The compute process that stands for the GPU: of the job that was asked for, with the most
 * memory, one that still exists before others; NULL: none. */
static const struct user *main_user(const struct gp_why_gather *gather, const struct gpu *gpu)
{
    const struct user *found = NULL;
    for (size_t i = 0; i < gpu->user_count; i++) {
        const struct user *u = &gpu->users[i];
        if (!u->is_compute || (!asks_for_all(&gather->asked) && !u->is_asked))
            continue;
        bool is_alive = u->last == gpu->c.samples;
        bool was_alive = found && found->last == gpu->c.samples;
        if (!found || (is_alive && !was_alive) ||
            (is_alive == was_alive && u->memory > found->memory))
            found = u;
    }
    return found;
}

/* Over all samples of the GPU, also those in which it did not exist; below 0: unknown. */
static double sm_of(const struct gpu *gpu, const struct user *user)
{
    return user->sm_count > 0 ? user->sm_sum / gpu->c.samples : -1;
}

static void count_others(struct gp_why_case *c, const struct gpu *gpu, uint64_t job)
{
    double most = 0;
    c->others = 0;
    c->others_sm = 0;
    c->other_pid = 0;
    bool is_known = true;
    for (size_t i = 0; i < gpu->user_count; i++) {
        const struct user *u = &gpu->users[i];
        double sm = sm_of(gpu, u);
        const bool has_gone = u->last < gpu->c.samples && sm < 1;
        if (!u->is_compute || u->is_suspended || u->job == job || has_gone)
            continue;
        c->others++;
        is_known = is_known && sm >= 0;
        c->others_sm += sm > 0 ? sm : 0;
        if (sm > most || c->other_pid == 0) {
            most = sm;
            c->other_pid = u->pid;
        }
    }
    if (!is_known)
        c->others_sm = -1;
}

static bool has_job(const struct gpu *gpu, uint64_t job)
{
    for (size_t i = 0; i < gpu->user_count; i++)
        if (gpu->users[i].is_compute && gpu->users[i].job == job)
            return true;
    return false;
}

/* The job's GPUs: how many it has and uses, and whether one of those is slower. */
static void compare_gpus(const struct gp_why_gather *gather, struct gp_why_case *c, uint64_t job)
{
    double sum = 0;
    double least = 0;
    unsigned count = 0;
    const struct gpu *slow = NULL;
    for (size_t i = 0; i < gather->count; i++) {
        const struct gpu *gpu = &gather->gpus[i];
        if (!has_job(gpu, job))
            continue;
        const bool is_used = gp_why_most(&gpu->c, GP_WHY_UTILIZATION) > GP_WHY_HARDLY;
        double clock = gp_why_mean(&gpu->c, GP_WHY_CLOCK);
        c->job_gpus++;
        c->job_gpus_busy += is_used;
        if (!is_used || gpu->c.values[GP_WHY_CLOCK].count == 0)
            continue; /* each rank may have a context on the first GPU, say */
        sum += clock;
        count++;
        if (!slow || clock < least) {
            slow = gpu;
            least = clock;
        }
    }
    double others = count > 1 ? (sum - least) / (count - 1) : 0;
    if (others > 0 && least < slow_below * others) {
        copy_text(c->slow_gpu, sizeof(c->slow_gpu), slow->c.gpu);
        c->slow_clock = least / others;
    }
}

/* What the job's processes did: those on this GPU, or on all GPUs (NULL). */
static struct gp_tasks_use use_of(const struct gp_why_gather *gather, const struct gpu *gpu,
                                  uint64_t job)
{
    const struct gp_tasks_use unknown = {.is_known = false};
    size_t room = 0;
    size_t count = 0;
    for (size_t g = 0; g < gather->count; g++)
        room += gather->gpus[g].user_count;
    uint32_t *pids = calloc(room + 1, sizeof(*pids));
    for (size_t g = 0; pids && g < gather->count; g++) {
        const struct gpu *other = &gather->gpus[g];
        for (size_t i = 0; (!gpu || gpu == other) && i < other->user_count; i++)
            if (other->users[i].job == job)
                pids[count++] = other->users[i].pid;
    }
    if (!pids)
        return unknown;
    qsort(pids, count, sizeof(*pids), gp_compare_u32);
    struct gp_tasks_use use =
        gp_tasks_use(gather->tasks, pids, count, gpu && gpu->knows_nearest ? &gpu->nearest : NULL);
    free(pids);
    return use;
}

static void finish(const struct gp_why_gather *gather, struct gp_why_case *c, const struct gpu *gpu,
                   const struct user *user)
{
    *c = gpu->c;
    if (c->is_mig && c->values[GP_WHY_UTILIZATION].count == 0)
        c->values[GP_WHY_UTILIZATION] = c->values[GP_WHY_SM]; /* an instance has no other one */
    c->seconds = (double)(gather->last_ns - gather->first_ns) / (double)GP_NS_PER_S;
    c->pid = user->pid;
    copy_text(c->command, sizeof(c->command), user->command);
    copy_text(c->user, sizeof(c->user), user->name);
    if (user->start_wall_ns > 0 && gather->wall_ns > user->start_wall_ns)
        c->age_s = (double)(gather->wall_ns - user->start_wall_ns) / (double)GP_NS_PER_S;
    c->is_suspended = user->is_suspended;
    c->is_contained = user->is_contained;
    c->reserved_by = user->is_reserver ? 0 : gpu->reserved_by;
    count_others(c, gpu, user->job);
    compare_gpus(gather, c, user->job);
    if (gather->tasks) {
        c->host = use_of(gather, gpu, user->job);
        c->job = use_of(gather, NULL, user->job);
    }
}

/* Appends the cases of the GPUs that have failed, or of the others. */
static void add_cases(struct gp_why_gather *gather, bool failed, size_t *count)
{
    for (size_t i = 0; i < gather->count; i++) {
        const struct gpu *gpu = &gather->gpus[i];
        if (gpu->c.is_failed != failed)
            continue;
        const struct user *user = main_user(gather, gpu);
        if (user)
            finish(gather, &gather->cases[(*count)++], gpu, user);
        else if (failed && asks_for_all(&gather->asked))
            gather->cases[(*count)++] = gpu->c; /* its processes may be unknown */
    }
}

const struct gp_why_case *gp_why_gather_cases(struct gp_why_gather *gather, size_t *ret_count)
{
    size_t count = 0;
    free(gather->cases);
    gather->cases = calloc(gather->count + 1, sizeof(*gather->cases));
    if (gather->cases) {
        add_cases(gather, true, &count);
        add_cases(gather, false, &count);
    }
    *ret_count = count;
    return gather->cases;
}
