/* What the measurements share: processes and a machine to look at, programs that run, the verdict.
 */
#ifndef GP_BENCH_STAGE_H
#define GP_BENCH_STAGE_H

#include <sys/time.h>
#include <sys/types.h>

/* Of the build: */
extern char gpulse_path[256];
extern char floor_path[256];
extern char library_path[256];
/* Of the stage: */
extern char machine_path[256];

extern int failures; /* bars that were not kept */

_Noreturn void die(const char *what);

double now_ms(void);
double time_ms(struct timeval tv);

/* Processes that only wait. */
void start_children(int count);
void end_children(void);

/* Writes the machine: GPUs that are all alike, on which so many of the children stand in turn;
 * `more` is further members of it. */
void write_machine(int gpus, int processes, const char *more);

/* Starts a program whose output nobody reads. */
pid_t spawn(char *const *argv);

/* Waits for its end; CPU milliseconds. */
double cpu_of(pid_t pid);

struct footprint {
    long rss_kib;
    int files;
    double cpu_ms; /* since its start */
};

/* Of a process that runs. */
struct footprint look_at(pid_t pid);

/* Prints a figure, its bar, and whether it is kept: the figure may be at most the bar. */
void judge(const char *what, double value, double bar, const char *unit);

/* The live monitor (top.c): what it costs, and how quick it is. */
void top(int seconds);
void top_speed(int seconds);

#endif
