/* What the processes and threads of jobs do on the CPUs of this machine, over some time: which are
 * busy, wait for a disk, are stopped, and where they run. Reads /proc/PID/task repeatedly, and
 * compares.
 *
 * All files are read under a root prefix, so that a test is a directory. Reading takes a few
 * microseconds per thread of the jobs and per process of the machine. Not for several threads at
 * once. */
#ifndef GP_PROC_TASKS_H
#define GP_PROC_TASKS_H

#include "base/util.h"

struct gp_proc_stat;

/* A set of CPUs by number. */
enum { GP_CPUS = 4096 };
struct gp_cpus {
    uint64_t bits[GP_CPUS / 64];
};

/* Reads "0-31,64-95", the kernel's format of a list; false, with an empty set, if it is malformed
 * or a number is too large. */
bool gp_cpus_parse(struct gp_cpus *cpus, const char *list);
unsigned gp_cpus_count(const struct gp_cpus *cpus);

/* What the processes of a job did between the first and the last look. The job's own processes are
 * those that the caller names; their descendants are its workers, such as the data loader's. */
struct gp_tasks_use {
    bool is_known;      /* two looks at least found one of its processes */
    bool knows_threads; /* from here on, what is marked with * */
    double seconds;
    unsigned looks;
    unsigned processes, workers;
    unsigned threads; /* in the last look */
    double cpus;      /* mean number of CPUs that the whole job kept busy */
    double main;      /* * the same for the main thread of its busiest own process: 0 to 1 */
    double others;    /* * and for the other threads of its own processes together */
    double wanted; /* CPUs for which the main threads of all its processes waited; 0 if unknown */
    double workers_cpus;     /* and for its workers together */
    unsigned workers_active; /* workers that kept 0.05 CPUs busy at least, and … */
    unsigned workers_busy;   /* … 0.8 CPUs */
    double disk;             /* * share of looks in which a thread waited for a disk: 0 to 1 */
    double stopped;          /* share of looks in which all its own processes were stopped */
    double queue;            /* * share of the time in which its main thread could run, but had no
                                CPU; below 0: unknown */
    double majors_per_s;     /* page faults that needed a disk */
    double read_bytes_per_s; /* from disks; below 0: unknown, as for another user's processes */
    uint64_t swapped_bytes;  /* in the last look */
    unsigned allowed;        /* CPUs on which it may run; 0: unknown */
    double quota;  /* CPUs that the quotas of its control groups let it keep busy; 0: no quota */
    double remote; /* * share of the running threads that were on other CPUs than the nearest; below
                      0: unknown */
    double pressure_io, pressure_cpu; /* share of the last 10 seconds in which a process of the
                                         machine waited for a disk, for a CPU; below 0: unknown */
};

struct gp_tasks;

/* root: prefix, NULL for none; must outlive the result. NULL without memory. */
struct gp_tasks *gp_tasks_new(const char *root) GP_MUST_CHECK;
void gp_tasks_free(struct gp_tasks *tasks);

/* Looks at these processes (sorted pids) and their descendants. GP_ENOMEM. */
int gp_tasks_look(struct gp_tasks *tasks, const uint32_t *pids, size_t count,
                  uint64_t mono_ns) GP_MUST_CHECK;

/* What the job did that consists of these (sorted pids, which must have been looked at) and their
 * descendants. `nearest`: the CPUs nearest to its GPU; NULL: unknown. */
struct gp_tasks_use gp_tasks_use(const struct gp_tasks *tasks, const uint32_t *pids, size_t count,
                                 const struct gp_cpus *nearest);

/* Calls on_process() for each living descendant of a process of this machine, without itself. */
void gp_proc_each_descendant(uint32_t pid,
                             void (*on_process)(void *context, uint32_t pid,
                                                const struct gp_proc_stat *stat),
                             void *context);

/* CPU time of all living descendants of a process of this machine, without its own; 0 if /proc
 * cannot be read. */
uint64_t gp_proc_descendants_cpu_ns(uint32_t pid);

#endif
