/* The computer around the simulated GPUs: the optional member "host" of the machine file.
 *
 *   "host": {
 *     "name": "gpu07", "cpus": 128, "uptime_s": 1814400,
 *     "memory_bytes": 1081101176832, "swap_bytes": 0,
 *     "cpu": 310,                          percent of one CPU, without "processes"
 *     "memory_used_bytes": 9663676416,     likewise
 *     "users": {"mia": 61001, "jon": 61002},              without root
 *     "processes": [{
 *       "pid": 4190001, "ppid": 4189002, "user": "mia",
 *       "command": ["python", "train.py"],
 *       "cwd": "/home/mia/llm", "environment": {"RANK": "0"}, "cgroup": "/user.slice",
 *       "age_s": 25000, "cpu": 180, "rss_bytes": 21474836480, "threads": 96, "state": "S",
 *       "group": 4190001,                  leader of its process group and session
 *       "ns_pid": 17                       pid in its container
 *     }],
 *     "files": {"/etc/os-release": ["NAME=Ubuntu", …]},      whole texts or lists of lines
 *     "leases": [{"user": "mia", "pid": 4190001, "gpus": [0, 1], "age_s": 25000,
 *                 "command": "python train.py", "name": "", "waits_for": 0, "bytes": 0,
 *                 "limit_s": 0}]                             how long it may run; 0: no limit
 *   }
 *
 * A process with the pid of a workload runs while the workload does, and has the device files of
 * its GPUs open. The other processes are parents and services. A lease lasts while its pid, or a
 * child of that, has a workload on its GPUs; one with "waits_for" is in the waiting line for that
 * number of them; one with "bytes" shares them. hosttree.h writes all this to files. */
#ifndef GPULSE_SIM_HOST_H
#define GPULSE_SIM_HOST_H

#include "base/arena.h"

#include <jansson.h>

struct gp_err;

enum { SIM_HOST_GPUS = 64 }; /* of a lease */

/* Strings that follow each other, each with its NUL. */
struct sim_words {
    const char *text;
    size_t size;
};

struct sim_host_process {
    uint64_t pid, ppid, group, ns_pid;
    uint64_t uid;
    const char *name; /* of the program, without its directory */
    struct sim_words command, environment;
    const char *cwd, *cgroup, *state;
    uint64_t age_s, cpu_pct, rss_bytes, threads;
};

struct sim_host_user {
    const char *name;
    uint64_t uid;
};

struct sim_host_file {
    const char *path, *text;
};

struct sim_host_lease {
    uint64_t uid, pid, age_s, limit_s, bytes, waits_for;
    uint64_t gpus; /* a bit for each GPU */
    const char *command, *name;
};

struct sim_host {
    const char *name; /* NULL: the machine file has no host */
    uint64_t cpus, cpu_pct, memory_bytes, memory_used_bytes, swap_bytes, uptime_s;
    struct sim_host_user *users; /* root comes first */
    size_t user_count;
    struct sim_host_process *processes;
    size_t process_count;
    struct sim_host_file *files;
    size_t file_count;
    struct sim_host_lease *leases;
    size_t lease_count;
};

/* Loads the member; NULL leaves the host empty. Errors begin with the key. */
int sim_host_load(json_t *json, struct gp_arena *arena, struct sim_host *ret, struct gp_err *err);

/* NULL: there is no such process. */
const struct sim_host_process *sim_host_find(const struct sim_host *host, unsigned int pid);

#endif
