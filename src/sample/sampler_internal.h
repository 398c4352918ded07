/* Private to the sampler. Its parts, from the lowest to the highest:
 *
 *   sampler_calls.c    what a thread does inside the driver: opening it, opening a GPU, reading it
 *   sampler_pool.c     the threads that do so, and how long the consumer waits for them
 *   sampler_session.c  when the driver is opened, closed and reopened
 *   recorded.c         a tick of a recording, instead of all that
 *   sampler_glance.c   a few values between two ticks
 *   sampler.c          a consumer's view: a tick, from asking to the snapshot
 *
 * Tasks are handed over under the sampler's lock. */
#ifndef GP_SAMPLE_SAMPLER_INTERNAL_H
#define GP_SAMPLE_SAMPLER_INTERNAL_H

#include "base/err.h"
#include "sample/assemble.h"
#include "sample/release.h"
#include "sample/sampler.h"

#include <pthread.h>
#include <stdatomic.h>

enum gp_task_state { TASK_IDLE, TASK_QUEUED, TASK_RUNNING };

/* The work for one GPU. Never run by two threads at once. */
struct gp_sampler_task {
    struct gp_sampler *sampler;
    /* Protected by the sampler's lock. */
    enum gp_task_state state;
    bool awaited;              /* the current tick waits for it */
    uint64_t since_ns;         /* when it was queued */
    uint64_t begun_tick;       /* the tick in which its last read started */
    uint64_t answer_tick;      /* the tick of its latest reading */
    bool no_memory;            /* for the last read */
    bool is_glance;            /* it is read for a glance */
    bool is_due;               /* and for a tick as soon as that is done */
    struct gp_reading *glance; /* the result of the last glance; NULL: none */
    struct gp_slot slot;
    /* Used by the thread that runs the task, or by the opener while all other threads rest. */
    struct gp_source_device *device;
    struct gp_reading *spare; /* an earlier reading, to be filled again; or NULL */
    gp_call_name call;
};

/* The fields are grouped by the part that changes them. */
struct gp_sampler {
    /* Of the opener and the consumer. */
    struct gp_sampler_config config;
    struct gp_want want; /* config.want, and what selection and assembly need */
    struct gp_want less; /* without want.more */
    atomic_bool wants_more;
    atomic_uint more_lists, added_lists;
    struct gp_want identity; /* its static part */
    bool wants_identity;
    struct gp_assembler assembler;
    struct gp_waiter *waiter; /* NULL: driver events are not requested */
    uint64_t tick;
    bool busy;     /* a GPU had work in the last sample */
    bool looked;   /* at the early results of the first tick; the next call continues that tick */
    bool is_quick; /* the last tick took less than a first look */
    bool is_over;  /* the recording */

    /* Of the pool. */
    pthread_mutex_t lock;
    pthread_cond_t wake;            /* there is work */
    pthread_cond_t done;            /* nothing is awaited any more */
    struct gp_sampler_task **tasks; /* one per GPU */
    unsigned task_count;
    struct gp_reading *handed_on; /* a spare one, from one GPU to the next: it is in the caches */
    pthread_t *threads;           /* at most one per GPU, plus one */
    unsigned thread_count;
    unsigned resting; /* threads that wait for work */
    unsigned awaited; /* unfinished tasks of this tick */
    unsigned queued;
    bool quit;
    bool ahead;             /* the reads of the next tick have started */
    bool is_soon;           /* in the last tick, one thread read all GPUs soon enough */
    unsigned consumer;      /* how often the consumer was relieved */
    uint64_t here_since_ns; /* when the consumer itself began to read a GPU; 0: it does not */

    /* Of the session. */
    enum gp_task_state session_state; /* the other kind of task: opening and closing the source */
    bool closing;                     /* permanently */
    bool held;                        /* the source is open, or opening it was attempted */
    bool let_go;                      /* closed on the user's request */
    struct gp_release release;        /* closed because the GPUs are idle */
    uint64_t reinit_at_ns;            /* next attempt to recover lost GPUs */
    uint64_t reinit_delay_ns;

    /* The result of opening the source. */
    unsigned gpu_count;
    uint64_t session_ns; /* when it was last opened */
    int open_result;
    struct gp_err open_err;
};

/* ---- recorded.c: of a recording, which needs no threads ---- */

int gp_recorded_tick(struct gp_sampler *s, struct gp_snapshot **ret,
                     struct gp_err *err) GP_MUST_CHECK;

/* ---- sampler_calls.c: without the lock, except where stated ---- */

/* Closes the session, if there is one, and opens a new one if there should be one. The waiter must
 * rest. */
void gp_calls_reopen(struct gp_sampler *s, bool open);
/* Reads the GPU of a task, after opening it if necessary. NULL: out of memory. */
struct gp_reading *gp_calls_read(struct gp_sampler_task *t);
/* Makes a reading (NULL: none) the latest one of its GPU, and owns it; requires the lock. */
void gp_calls_publish(struct gp_sampler_task *t, struct gp_reading *reading);

/* The same for a glance, of which only the result is kept. NULL: out of memory. */
void gp_calls_publish_glance(struct gp_sampler_task *t, struct gp_reading *reading);

/* ---- sampler_pool.c: with the lock ---- */

/* Makes sure that there are this many tasks. GP_ENOMEM. */
int gp_pool_add_tasks(struct gp_sampler *s, unsigned count);
/* Queues a read of every selected GPU. */
void gp_pool_queue_reads(struct gp_sampler *s);
/* Queues a glance at this GPU, which is idle; and takes back those that no thread has begun. */
void gp_pool_queue_glance(struct gp_sampler *s, struct gp_sampler_task *t);
void gp_pool_drop_glances(struct gp_sampler *s);
/* Puts up to `count` threads to work, resting ones first. Fails with GP_ENOMEM if there is not a
 * single thread. */
int gp_pool_employ(struct gp_sampler *s, unsigned count);
/* Whether a thread is inside the driver. */
bool gp_pool_is_busy(const struct gp_sampler *s);
/* The deadline of a wait that starts now. */
uint64_t gp_pool_deadline_ns(const struct gp_sampler *s);
/* Waits for the requested change of the session. Returns false after the deadline. */
bool gp_pool_await_session(struct gp_sampler *s);
/* Waits until the reads are done or the deadline has passed. */
void gp_pool_await_reads(struct gp_sampler *s, uint64_t end_ns);
/* Stops waiting for those that have not responded. */
void gp_pool_give_up_reads(struct gp_sampler *s);
/* Whether the consumer reads the GPUs itself, instead of waking a thread. */
bool gp_pool_reads_here(const struct gp_sampler *s);
/* Does so. Returns false if the consumer was relieved meanwhile. */
bool gp_pool_read_here(struct gp_sampler *s);

/* ---- sampler_session.c: with the lock ---- */

/* Whether the session should be closed now. */
static inline bool gp_session_is_released(const struct gp_sampler *s)
{
    return s->let_go || s->release.released;
}
/* Restarts the delay before a GPU that is lost from now on leads to a new session. */
void gp_session_reset_delay(struct gp_sampler *s);
/* Makes a pool thread change the session, and waits for it. Requires that nothing else is in
 * progress. A change that takes longer (GP_ETIMEOUT) continues in the background. None is started
 * while a wait for events hangs. GP_ENOMEM. */
int gp_session_request(struct gp_sampler *s);
/* Opens or closes the session if its state is not the desired one. */
void gp_session_update(struct gp_sampler *s);

#endif
