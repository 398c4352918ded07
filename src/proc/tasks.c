#include "proc/tasks.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "proc/cgroup.h"
#include "proc/files.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 256, PLACES_LEAST = 10, FIELD_MAJORS = 12, FIELD_CPU = 39 };
static const double busy_worker = 0.8, active_worker = 0.05;

/* What grows, of a process. */
struct counters {
    uint64_t ticks;      /* CPU time of all threads */
    uint64_t main_ticks; /* and of the main one */
    uint64_t majors;
    uint64_t read_bytes;
    uint64_t queue_ns; /* time in which the main thread could run, but had no CPU */
};

/* A process of a job. */
struct member {
    uint32_t pid;
    uint64_t start_ticks; /* with the pid, identifies it */
    uint32_t owner;       /* the job's own process from which it comes, or itself */
    uint64_t first_ns, last_ns;
    struct counters first, last;
    bool knows_threads, knows_queue, knows_reads;
    unsigned looks;
    unsigned disk;    /* looks in which one of its threads waited for a disk */
    unsigned stopped; /* looks in which it was stopped */
    unsigned threads;
    uint64_t swapped_bytes;
    struct gp_cpus allowed;
    double quota;   /* of its control groups, in its first look; 0: none */
    uint32_t *seen; /* by CPU: how often a running thread was there */
    size_t cpu_room;
};

struct gp_tasks {
    const char *root;
    int proc; /* /proc below the root; −1: not there */
    unsigned looks;
    uint64_t first_ns, last_ns;
    struct member *members;
    size_t count, room;
    double pressure_io, pressure_cpu;
};

/* ---- CPUs ---- */

bool gp_cpus_parse(struct gp_cpus *cpus, const char *list)
{
    struct gp_cpus all = {{0}};
    const char *at = list;
    *cpus = all;
    for (; isdigit((unsigned char)*at); at += *at == ',') {
        char *end;
        unsigned long first = strtoul(at, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        if (last >= GP_CPUS || last < first)
            return false;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            all.bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
        at = end;
    }
    if (*at != '\0' && *at != '\n')
        return false;
    *cpus = all;
    return true;
}

static bool has_cpu(const struct gp_cpus *cpus, unsigned cpu)
{
    return cpu < GP_CPUS && cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

unsigned gp_cpus_count(const struct gp_cpus *cpus)
{
    unsigned count = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(cpus->bits); i++)
        count += (unsigned)__builtin_popcountll(cpus->bits[i]);
    return count;
}

/* ---- reading ---- */

/* A process or thread, from its line `stat`. */
struct line {
    uint32_t pid;
    struct gp_proc_stat stat;
    uint64_t ticks, majors;
    unsigned cpu; /* on which it ran last */
};

/* A field of a line `stat` behind the name, which may contain anything. */
static uint64_t field_of(const char *text, int number)
{
    const char *at = strrchr(text, ')');
    for (int i = 2; at && i < number; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static bool read_line(int dir, const char *path, uint32_t pid, struct line *ret)
{
    char text[1024];
    struct gp_proc_stat stat;
    if (gp_io_read_at(dir, path, text, sizeof(text)) <= 0 || !gp_proc_parse_stat(text, &stat))
        return false;
    *ret = (struct line){
        .pid = pid,
        .stat = stat,
        .ticks = stat.user_ticks + stat.system_ticks,
        .majors = field_of(text, FIELD_MAJORS),
        .cpu = (unsigned)field_of(text, FIELD_CPU),
    };
    return true;
}

/* Calls on_line() for each numeric name in a directory of processes or threads; false: it cannot be
 * read, or on_line() refused to go on. */
static bool each_line(int dir, bool (*on_line)(const struct line *, void *), void *ctx)
{
    bool goes_on = true;
    int fd = dir >= 0 ? openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        (void)close(fd);
    for (struct dirent *entry; goes_on && list && (entry = readdir(list));) {
        char path[300];
        uint64_t pid;
        struct line line;
        (void)snprintf(path, sizeof(path), "%s/stat", entry->d_name);
        if (gp_parse_u64(entry->d_name, &pid) && pid <= UINT32_MAX &&
            read_line(fd, path, (uint32_t)pid, &line))
            goes_on = on_line(&line, ctx);
    }
    if (list)
        (void)closedir(list);
    return list && goes_on;
}

struct lines {
    struct line *items; /* sorted by pid after the scan */
    size_t count, room;
};

static bool keep_line(const struct line *line, void *ctx)
{
    struct lines *all = ctx;
    if (all->count == all->room) {
        struct line *grown = gp_grown(all->items, &all->room, 512, sizeof(*grown));
        if (!grown)
            return false;
        all->items = grown;
    }
    all->items[all->count++] = *line;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* All processes, sorted. False: not all of them, for want of memory, or none. */
static bool list_all(int proc, struct lines *all)
{
    bool is_whole = each_line(proc, keep_line, all);
    if (all->count > 0)
        qsort(all->items, all->count, sizeof(*all->items), by_pid);
    return is_whole;
}

static bool is_among(uint32_t pid, const uint32_t *pids, size_t count)
{
    return bsearch(&pid, pids, count, sizeof(pid), gp_compare_u32) != NULL;
}

/* The nearest of these pids that is the process itself or an ancestor; 0: none. */
static uint32_t owner_of(const struct lines *all, const struct line *line, const uint32_t *pids,
                         size_t count)
{
    for (int depth = 0; line && depth < DEPTH_MAX; depth++) {
        const struct line parent = {.pid = line->stat.ppid};
        if (is_among(line->pid, pids, count))
            return line->pid;
        line = bsearch(&parent, all->items, all->count, sizeof(parent), by_pid);
    }
    return 0;
}

/* ---- a process ---- */

static struct member *member_of(struct gp_tasks *tasks, const struct line *line, uint32_t owner)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->members[i].pid == line->pid &&
            tasks->members[i].start_ticks == line->stat.start_ticks)
            return &tasks->members[i];
    if (tasks->count == tasks->room) {
        struct member *grown = gp_grown(tasks->members, &tasks->room, 32, sizeof(*grown));
        if (!grown)
            return NULL;
        tasks->members = grown;
    }
    tasks->members[tasks->count] =
        (struct member){.pid = line->pid, .start_ticks = line->stat.start_ticks, .owner = owner};
    return &tasks->members[tasks->count++];
}

/* Notes that a running thread is on this CPU. */
static void note_cpu(struct member *member, unsigned cpu)
{
    if (cpu >= GP_CPUS)
        return;
    if (cpu >= member->cpu_room) {
        size_t room = (cpu / 64 + 1) * 64;
        uint32_t *grown = realloc(member->seen, room * sizeof(*grown));
        if (!grown)
            return; /* it is missing in the share, no more */
        memset(grown + member->cpu_room, 0, (room - member->cpu_room) * sizeof(*grown));
        member->seen = grown;
        member->cpu_room = room;
    }
    member->seen[cpu]++;
}

struct thread_look {
    struct member *member;
    struct counters *counters;
    bool waits_for_disk;
    unsigned threads, stopped;
};

static bool look_at_thread(const struct line *line, void *ctx)
{
    struct thread_look *look = ctx;
    look->threads++;
    look->waits_for_disk = look->waits_for_disk || line->stat.state == 'D';
    look->stopped += line->stat.state == 'T' || line->stat.state == 't';
    if (line->pid == look->member->pid)
        look->counters->main_ticks = line->ticks;
    if (line->stat.state == 'R')
        note_cpu(look->member, line->cpu);
    return true;
}

static void look_at_status(int dir, struct member *member)
{
    static const char label[] = "\nCpus_allowed_list:\t";
    char text[8192];
    uint64_t kib;
    if (gp_io_read_at(dir, "status", text, sizeof(text)) <= 0)
        return;
    member->swapped_bytes = gp_proc_find_number(text, "\nVmSwap:", &kib) ? kib * 1024 : 0;
    char *list = strstr(text, label);
    if (list) {
        list += strlen(label);
        list[strcspn(list, "\n")] = '\0';
        (void)gp_cpus_parse(&member->allowed, list);
    }
}

static void look_at(struct gp_tasks *tasks, struct member *member, const struct line *line,
                    uint64_t mono_ns)
{
    char path[32];
    char text[512];
    struct counters now = {.ticks = line->ticks, .majors = line->majors};
    struct thread_look look = {.member = member, .counters = &now};
    (void)snprintf(path, sizeof(path), "%u", line->pid);
    int dir = openat(tasks->proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int task = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    member->knows_threads = each_line(task, look_at_thread, &look) && look.threads > 0;
    member->threads = member->knows_threads ? look.threads : (unsigned)line->stat.threads;
    member->knows_queue =
        gp_io_read_at(dir, "schedstat", text, sizeof(text)) > 0 && strchr(text, ' ') != NULL;
    if (member->knows_queue)
        now.queue_ns = strtoull(strchr(text, ' '), NULL, 10);
    member->knows_reads = gp_io_read_at(dir, "io", text, sizeof(text)) > 0 &&
                          gp_proc_find_number(text, "\nread_bytes:", &now.read_bytes);
    look_at_status(dir, member);
    if (task >= 0)
        (void)close(task);
    if (dir >= 0)
        (void)close(dir);

    bool is_stopped = member->knows_threads ? look.stopped == look.threads
                                            : line->stat.state == 'T' || line->stat.state == 't';
    member->disk += member->knows_threads ? look.waits_for_disk : line->stat.state == 'D';
    member->stopped += is_stopped;
    member->last = now;
    member->last_ns = mono_ns;
    if (member->looks++ == 0) {
        member->first = now;
        member->quota = member->owner == member->pid ? gp_cgroup_cpus(tasks->root, line->pid) : 0;
        member->first_ns = mono_ns;
    }
}

/* ---- a look ---- */

/* "some avg10=0.12 avg60=…": as a share; below 0: unknown. */
static double pressure(const struct gp_tasks *tasks, const char *path)
{
    static const char label[] = "some avg10=";
    char text[256];
    const char *at =
        gp_io_read_at(tasks->proc, path, text, sizeof(text)) > 0 ? strstr(text, label) : NULL;
    if (!at)
        return -1;
    /* Not strtod(), whose decimal point depends on the locale. */
    char *end;
    unsigned long whole = strtoul(at + strlen(label), &end, 10);
    unsigned long hundredths = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return ((double)whole + (double)hundredths / 100) / 100;
}

struct gp_tasks *gp_tasks_new(const char *root)
{
    char path[GP_PATH_SIZE];
    struct gp_tasks *tasks = calloc(1, sizeof(*tasks));
    if (!tasks)
        return NULL;
    tasks->root = root;
    tasks->proc =
        gp_io_path(path, root, "/proc") ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return tasks;
}

void gp_tasks_free(struct gp_tasks *tasks)
{
    if (!tasks)
        return;
    for (size_t i = 0; i < tasks->count; i++)
        free(tasks->members[i].seen);
    free(tasks->members);
    if (tasks->proc >= 0)
        (void)close(tasks->proc);
    free(tasks);
}

int gp_tasks_look(struct gp_tasks *tasks, const uint32_t *pids, size_t count, uint64_t mono_ns)
{
    struct lines all = {.items = NULL};
    int r = list_all(tasks->proc, &all) || tasks->proc < 0 ? 0 : GP_ENOMEM;
    for (size_t i = 0; r == 0 && i < all.count; i++) {
        uint32_t owner = owner_of(&all, &all.items[i], pids, count);
        struct member *member = owner ? member_of(tasks, &all.items[i], owner) : NULL;
        if (owner && !member)
            r = GP_ENOMEM;
        else if (member)
            look_at(tasks, member, &all.items[i], mono_ns);
    }
    free(all.items);
    tasks->pressure_io = pressure(tasks, "pressure/io");
    tasks->pressure_cpu = pressure(tasks, "pressure/cpu");
    tasks->last_ns = mono_ns;
    if (tasks->looks++ == 0)
        tasks->first_ns = mono_ns;
    return r;
}

/* ---- over the whole time ---- */

static double seconds_of(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / (double)GP_NS_PER_S : 0;
}

static double per_s(uint64_t first, uint64_t last, double seconds)
{
    return seconds > 0 && last > first ? (double)(last - first) / seconds : 0;
}

/* CPUs that were busy, from CPU times in clock ticks. */
static double cpus_of(uint64_t first, uint64_t last, double seconds)
{
    long per_second = sysconf(_SC_CLK_TCK);
    return per_s(first, last, seconds) / (double)per_second;
}

static void add_places(const struct member *member, const struct gp_cpus *nearest, double *total,
                       double *remote)
{
    for (size_t cpu = 0; cpu < member->cpu_room; cpu++) {
        *total += member->seen[cpu];
        *remote += has_cpu(nearest, (unsigned)cpu) ? 0 : member->seen[cpu];
    }
}

/* CPUs for which its main thread waited: 0 to 1. */
static double queue_of(const struct member *m, double seconds)
{
    double queue = per_s(m->first.queue_ns, m->last.queue_ns, seconds) / (double)GP_NS_PER_S;
    return m->knows_queue ? queue : 0;
}

/* One of the job's own processes. */
static void add_own(struct gp_tasks_use *use, const struct member *m, double cpus, bool *has_quota)
{
    double seconds = seconds_of(m->first_ns, m->last_ns);
    double main = cpus_of(m->first.main_ticks, m->last.main_ticks, seconds);
    double stopped = (double)m->stopped / m->looks;
    use->knows_threads = use->knows_threads && m->knows_threads;
    use->stopped = stopped < use->stopped ? stopped : use->stopped;
    use->others += cpus > main ? cpus - main : 0;
    /* Those of one group share its quota: processes in several groups may use more than this. */
    use->quota = m->quota > use->quota ? m->quota : use->quota;
    *has_quota = *has_quota && m->quota > 0;
    if (main >= use->main) {
        use->main = main;
        use->queue = m->knows_queue ? queue_of(m, seconds) : -1;
    }
}

struct gp_tasks_use gp_tasks_use(const struct gp_tasks *tasks, const uint32_t *pids, size_t count,
                                 const struct gp_cpus *nearest)
{
    struct gp_tasks_use use = {
        .seconds = seconds_of(tasks->first_ns, tasks->last_ns),
        .looks = tasks->looks,
        .knows_threads = true,
        .stopped = 1,
        .queue = -1,
        .remote = -1,
        .pressure_io = tasks->pressure_io,
        .pressure_cpu = tasks->pressure_cpu,
    };
    struct gp_cpus allowed = {{0}};
    double places = 0;
    double remote = 0;
    double workers = 0; /* those that come and go count for the time that they were there */
    double active = 0;
    double busy = 0;
    bool knows_reads = true;
    bool has_quota = true;
    for (size_t i = 0; i < tasks->count; i++) {
        const struct member *m = &tasks->members[i];
        double seconds = seconds_of(m->first_ns, m->last_ns);
        double cpus = cpus_of(m->first.ticks, m->last.ticks, seconds);
        if (!is_among(m->owner, pids, count) || seconds <= 0)
            continue;
        bool is_own = m->owner == m->pid;
        use.processes += is_own;
        workers += is_own ? 0 : (double)m->looks / tasks->looks;
        use.threads += m->last_ns == tasks->last_ns ? m->threads : 0;
        use.cpus += cpus * seconds / use.seconds;
        use.wanted += queue_of(m, seconds) * seconds / use.seconds;
        use.majors_per_s += per_s(m->first.majors, m->last.majors, seconds);
        use.read_bytes_per_s += per_s(m->first.read_bytes, m->last.read_bytes, seconds);
        knows_reads = knows_reads && m->knows_reads;
        use.swapped_bytes += m->last_ns == tasks->last_ns ? m->swapped_bytes : 0;
        double disk = (double)m->disk / tasks->looks;
        use.disk = disk > use.disk ? disk : use.disk;
        for (size_t b = 0; b < GP_ARRAY_LEN(allowed.bits); b++)
            allowed.bits[b] |= m->allowed.bits[b];
        if (nearest)
            add_places(m, nearest, &places, &remote);
        if (is_own) {
            add_own(&use, m, cpus, &has_quota);
        } else {
            use.workers_cpus += cpus * seconds / use.seconds;
            active += cpus >= active_worker ? (double)m->looks / tasks->looks : 0;
            busy += cpus >= busy_worker ? (double)m->looks / tasks->looks : 0;
        }
    }
    use.workers = (unsigned)(workers + 0.5);
    use.workers_active = (unsigned)(active + 0.5);
    use.workers_busy = (unsigned)(busy + 0.5);
    use.is_known = use.processes > 0 && use.seconds > 0;
    use.knows_threads = use.is_known && use.knows_threads;
    use.stopped = use.is_known ? use.stopped : 0;
    use.allowed = gp_cpus_count(&allowed);
    use.quota = has_quota ? use.quota : 0;
    if (!knows_reads)
        use.read_bytes_per_s = -1;
    if (places >= PLACES_LEAST)
        use.remote = remote / places;
    return use;
}

/* ---- descendants ---- */

/* The lines of all processes of this machine. The caller frees them. */
static struct lines list_machine(void)
{
    struct lines all = {.items = NULL};
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)list_all(proc, &all);
    if (proc >= 0)
        (void)close(proc);
    return all;
}

void gp_proc_each_descendant(uint32_t pid,
                             void (*on_process)(void *context, uint32_t pid,
                                                const struct gp_proc_stat *stat),
                             void *context)
{
    struct lines all = list_machine();
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i].pid != pid && owner_of(&all, &all.items[i], &pid, 1))
            on_process(context, all.items[i].pid, &all.items[i].stat);
    free(all.items);
}

uint64_t gp_proc_descendants_cpu_ns(uint32_t pid)
{
    struct lines all = list_machine();
    uint64_t ticks = 0;
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i].pid != pid && owner_of(&all, &all.items[i], &pid, 1))
            ticks += all.items[i].ticks;
    free(all.items);
    return gp_proc_ticks_to_ns(ticks);
}
