/* The running processes of a machine, by their names. */
#ifndef GP_DOCTOR_READERS_PROCESSES_H
#define GP_DOCTOR_READERS_PROCESSES_H

#include <stdbool.h>

struct gp_exam;

struct gp_processes {
    char **names; /* of what is in /proc */
    long count, next;
};

struct gp_processes gp_processes_of(struct gp_exam *exam);

/* The folder of the next process whose name begins with `start` ("": of any), "/proc/900"; NULL:
 * there is no more. The kernel keeps 15 bytes of a name. */
const char *gp_processes_next(struct gp_exam *exam, struct gp_processes *processes,
                              const char *start);

/* The value of a variable with which a process, "/proc/900", was started; NULL: it has none, or
 * that may not be read. */
const char *gp_process_variable(struct gp_exam *exam, const char *process, const char *name);

/* Whether such a process runs as root, or as another user. */
bool gp_processes_run_as(struct gp_exam *exam, const char *start, bool is_root);

/* Whether a file that a process has open is NVIDIA's of a GPU: "/dev/nvidia0". */
bool gp_process_file_is_gpu(const char *path);

#endif
