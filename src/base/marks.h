/* Marks, ranges and steps that a program leaves for the `gpulse run` that started it: written by
 * our NVTX injection library and by libgpulse, read by jobs/marks_read.
 *
 * Each process of the job has a file of its own in a directory that only this user can enter
 * ($GPULSE_TIMELINE), and maps it. A writer never waits: if the ring is full because nobody reads,
 * the event is dropped and counted. Ranges that are still open are in the file as well, so that
 * they are known when the process is killed.
 *
 * The ring has many writers and one reader. A slot whose `turn` is N is free for event N; it holds
 * event N once its turn is N + 1; the reader then makes it N + GP_MARKS_SLOTS. */
#ifndef GP_BASE_MARKS_H
#define GP_BASE_MARKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GP_MARKS_VARIABLE "GPULSE_TIMELINE"
#define GP_MARKS_MAGIC UINT64_C(0x32736b72616d7067) /* "gpmarks2"; another layout has another one */

enum {
    GP_MARKS_SLOTS = 8192,
    GP_MARKS_THREADS = 64,
    GP_MARKS_DEPTH = 32,  /* open ranges of a thread; deeper ones are dropped */
    GP_MARKS_RANGES = 64, /* open ranges that may end on another thread */
    GP_MARKS_TEXT = 104,
    GP_MARKS_DOMAIN = 24,
};

/* Not terminated if it fills the array. */
struct gp_marks_name {
    char domain[GP_MARKS_DOMAIN]; /* "": the default one */
    char text[GP_MARKS_TEXT];
};

enum gp_marks_kind {
    GP_MARKS_MARK = 1,
    GP_MARKS_SLICE,   /* a range of a thread, nested in the others of it */
    GP_MARKS_RANGE,   /* a range that overlaps others */
    GP_MARKS_THREAD,  /* the name of a thread */
    GP_MARKS_PROCESS, /* the command line */
};

struct gp_marks_slot {
    _Atomic uint64_t turn;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    uint32_t tid, kind;
    struct gp_marks_name name;
};

struct gp_marks_open {
    uint64_t start_ns;
    uint64_t domain; /* identifies it in the process */
    struct gp_marks_name name;
};

struct gp_marks_thread {
    _Atomic uint32_t tid;   /* 0: free */
    _Atomic uint32_t depth; /* how many of these are open */
    struct gp_marks_open open[GP_MARKS_DEPTH];
};

enum { GP_MARKS_FREE, GP_MARKS_TAKEN, GP_MARKS_OPEN };

struct gp_marks_range {
    _Atomic uint32_t state;
    uint32_t tid;
    uint64_t id;
    struct gp_marks_open open;
};

struct gp_marks {
    _Atomic uint64_t magic; /* set last */
    uint32_t pid;
    uint64_t namespace;             /* of that pid; 0: unknown */
    _Atomic uint64_t head, dropped; /* of marks and ranges */
    _Atomic uint64_t steps, first_step_ns, last_step_ns;
    struct gp_marks_thread threads[GP_MARKS_THREADS];
    struct gp_marks_range ranges[GP_MARKS_RANGES];
    struct gp_marks_slot slots[GP_MARKS_SLOTS];
};

/* ---- the writer: any thread, never blocks, does nothing without a timeline ---- */

/* Whether there is a timeline to write to: $GPULSE_TIMELINE at the first call in this process. */
bool gp_marks_is_on(void);

/* Texts are UTF-8, cut if too long; domain "" is the default one. Ranges of a thread nest.
 * `domain_id` tells domains apart: pop ends the innermost range of that domain. push and pop return
 * the level of the range, from 0; -1: none is open, or it is not recorded. */
void gp_marks_mark(const char *domain, const char *text);
int gp_marks_push(uint64_t domain_id, const char *domain, const char *text);
int gp_marks_pop(uint64_t domain_id);

/* Counts a step of the job. */
void gp_marks_step(void);

/* A range that may end on another thread. Returns its id, 0 if it is not recorded. */
uint64_t gp_marks_start(const char *domain, const char *text);
void gp_marks_end(uint64_t id);

/* tid 0: the calling thread. */
void gp_marks_name_thread(uint32_t tid, const char *name);

#endif
