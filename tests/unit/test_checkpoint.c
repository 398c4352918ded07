/* Suspending by the driver's calls, on the simulated driver: with a process that is real. */
#include "unit.h"

#include "base/err.h"
#include "jobs/checkpoint.h"
#include "jobs/suspend.h"
#include "sim/state.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 60, SOON_MS = 200, LONG_S = 600, GIB = 1 << 30 };

static const uint64_t soon_ns = (uint64_t)SOON_MS * GP_NS_PER_MS;
static struct sim_state *state;
static pid_t children[MANY];
static struct gp_suspended list[MANY];
static int child_count;
static char folder[256];

/* What a look at the GPUs would tell. */
static struct {
    uint64_t bytes;
    bool has_room;
    int measured;
} eyes;

/* Processes that have memory of the GPU. */
static int start_some(int count)
{
    struct gp_err err = {0};
    child_count = count;
    eyes.bytes = GIB;
    eyes.has_room = true;
    for (int i = 0; i < count; i++) {
        size_t slot;
        children[i] = fork();
        if (children[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                (void)pause();
        }
        const struct sim_job job = {.pid = (uint32_t)children[i],
                                    .start_ticks = sim_process_start((unsigned)children[i]),
                                    .bytes = 1 << 30,
                                    .mig = -1};
        list[i] = (struct gp_suspended){.pid = job.pid,
                                        .start_ticks = job.start_ticks,
                                        .gpus = {{"GPU-x", 1 << 20}},
                                        .gpu_count = 1};
        if (sim_state_lock(state, &err) < 0 || sim_state_add_job(state, &job, &slot, &err) < 0)
            return -1;
        sim_state_unlock(state);
    }
    return 0;
}

static int start(void **ctx)
{
    (void)ctx;
    return start_some(2);
}

static int start_many(void **ctx)
{
    (void)ctx;
    return start_some(MANY);
}

static int stop(void **ctx)
{
    (void)ctx;
    for (int i = 0; i < child_count; i++) {
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
        (void)gp_suspended_forget(NULL, &list[i], -1, NULL);
    }
    return 0;
}

/* Changes the job of a process. */
static void change(const struct gp_suspended *s, void (*edit)(struct sim_job *job))
{
    struct gp_err err = {0};
    assert_int_equal(sim_state_lock(state, &err), 0);
    for (size_t i = 0; i < SIM_MAX_JOBS; i++) {
        struct sim_job job;
        if (!sim_state_job(state, i, &job) || job.pid != s->pid)
            continue;
        edit(&job);
        sim_state_update_job(state, i, &job);
    }
    sim_state_unlock(state);
}

static enum gp_cuda_state state_of(const struct gp_suspended *s)
{
    struct gp_err err = {0};
    enum gp_cuda_state ret = GP_CUDA_FAILED;
    if (gp_checkpoint_get_state(s->pid, LONG_S * GP_NS_PER_S, &ret, &err) < 0)
        fail_msg("%s", err.text);
    return ret;
}

static uint64_t noted_bytes(const struct gp_suspended *s)
{
    struct gp_suspended_list found;
    assert_int_equal(gp_suspended_read(NULL, &found, NULL), 0);
    const struct gp_suspended *note = gp_suspended_find(&found, s->pid);
    uint64_t bytes = note ? gp_suspended_bytes(note) : 0;
    gp_suspended_fini(&found);
    return bytes;
}

static size_t notes(void)
{
    struct gp_suspended_list found;
    assert_int_equal(gp_suspended_read(NULL, &found, NULL), 0);
    size_t count = found.count;
    gp_suspended_fini(&found);
    return count;
}

static int measure(void *ctx, struct gp_suspended *all, size_t count, struct gp_err *err)
{
    (void)ctx;
    eyes.measured++;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(state_of(&all[i]), GP_CUDA_LOCKED); /* they stand still */
        all[i].gpus[0].bytes = eyes.bytes;
    }
    return eyes.bytes ? 0 : gp_err_set(err, GP_EFAIL, "no room in main memory");
}

static bool has_room(void *ctx, const struct gp_suspended *s)
{
    (void)ctx;
    (void)s;
    return eyes.has_room;
}

static const struct gp_suspend_plan plan = {
    .lock_timeout_ns = GP_NS_PER_S,
    .eyes = {NULL, measure, has_room},
};

static void there_and_back(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    if (gp_suspend_all(&plan, list, 2, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++)
        assert_int_equal(state_of(&list[i]), GP_CUDA_CHECKPOINTED);
    assert_int_equal(notes(), 2);
    assert_int_equal(noted_bytes(&list[1]), GIB); /* what it had then, not before */
    if (gp_resume_all(&plan, list, 2, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++)
        assert_int_equal(state_of(&list[i]), GP_CUDA_RUNNING);
    assert_int_equal(notes(), 0);
}

static void make_managed(struct sim_job *job)
{
    job->managed = 1;
}

static void make_busy(struct sim_job *job)
{
    job->busy = 1;
}

static void one_that_cannot_leaves_all_running(void **ctx)
{
    (void)ctx;
    void (*const edits[])(struct sim_job * job) = {make_managed, make_busy};
    for (size_t e = 0; e < GP_ARRAY_LEN(edits); e++) {
        struct gp_err err = {0};
        char pid[16];
        change(&list[1], edits[e]);
        assert_int_equal(gp_suspend_all(&plan, list, 2, &err), GP_EDRIVER);
        (void)snprintf(pid, sizeof(pid), "process %u:", list[1].pid);
        assert_non_null(strstr(err.text, pid));
        assert_non_null(strstr(err.text, "nothing was suspended"));
        for (int i = 0; i < 2; i++)
            assert_int_equal(state_of(&list[i]), GP_CUDA_RUNNING);
        assert_int_equal(notes(), 0);
    }
}

static void take_all(struct sim_job *job)
{
    job->bytes = (uint64_t)1 << 40;
}

static void one_that_is_lost_does_not_hold_the_others(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    char pid[24];
    assert_int_equal(gp_suspend_all(&plan, list, 2, &err), 0);
    change(&list[0], take_all); /* more than there is room for */
    assert_int_equal(gp_resume_all(&plan, list, 2, &err), GP_EDRIVER);
    (void)snprintf(pid, sizeof(pid), "process %u:", list[0].pid);
    assert_non_null(strstr(err.text, pid));
    assert_int_equal(state_of(&list[0]), GP_CUDA_CHECKPOINTED);
    assert_int_equal(state_of(&list[1]), GP_CUDA_RUNNING);
    assert_int_equal(notes(), 1); /* it is still known who is suspended */
}

static void who_has_been_moved_does_not_go_back_without_room(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    char left[40];
    eyes.has_room = false;
    change(&list[1], make_managed); /* it fails when the first has been moved */
    assert_int_equal(gp_suspend_all(&plan, list, 2, &err), GP_EDRIVER);
    assert_int_equal(state_of(&list[0]), GP_CUDA_CHECKPOINTED);
    assert_int_equal(state_of(&list[1]), GP_CUDA_RUNNING);
    (void)snprintf(left, sizeof(left), "not running: gpulse resume %u", list[0].pid);
    assert_non_null(strstr(err.text, left));
    assert_int_equal(notes(), 1);
    /* whether there is room is asked once more before it would be lost */
    assert_int_equal(gp_resume_all(&plan, list, 1, &err), GP_EFAIL);
    assert_non_null(
        strstr(err.text, "its GPU no longer has enough free memory for it; it stays suspended"));
    assert_int_equal(state_of(&list[0]), GP_CUDA_CHECKPOINTED);
    eyes.has_room = true;
    assert_int_equal(gp_resume_all(&plan, list, 1, &err), 0);
    assert_int_equal(state_of(&list[0]), GP_CUDA_RUNNING);
}

/* Nobody resumes a process whose pid is the beginning of that of another one. */
static void a_hint_names_whole_pids(void **ctx)
{
    (void)ctx;
    static const char hint[] = "; not running: gpulse resume ";
    struct gp_err err = {0};
    int named = 0;
    eyes.has_room = false;
    change(&list[MANY - 1], make_managed); /* when all others have been moved */
    assert_int_equal(gp_suspend_all(&plan, list, MANY, &err), GP_EDRIVER);
    char *word = strstr(err.text, hint);
    assert_non_null(word);
    word += strlen(hint);
    for (char *next; (next = strsep(&word, " ")) && strcmp(next, "…") != 0; named++)
        assert_int_equal(strtol(next, NULL, 10), children[named]);
    assert_true(named > 10 && named < MANY - 1);
    assert_null(word); /* nothing after "…" */
}

static void without_main_memory_nobody_is_moved(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    eyes.bytes = 0;
    assert_int_equal(gp_suspend_all(&plan, list, 2, &err), GP_EFAIL);
    assert_string_equal(err.text, "no room in main memory; nothing was suspended");
    for (int i = 0; i < 2; i++)
        assert_int_equal(state_of(&list[i]), GP_CUDA_RUNNING);
    assert_int_equal(notes(), 0);
}

/* The second one neither does it again nor takes the way back away. */
static void suspending_twice(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    assert_int_equal(gp_suspend_all(&plan, list, 1, &err), 0);
    assert_int_equal(gp_suspend_all(&plan, list, 1, &err), GP_EFAIL);
    assert_non_null(strstr(err.text, "already suspended"));
    assert_int_equal(notes(), 1);
    assert_int_equal(gp_resume_all(&plan, list, 1, &err), 0);
    assert_int_equal(state_of(&list[0]), GP_CUDA_RUNNING);
}

static void two_at_the_same_time(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    int note;
    assert_int_equal(gp_suspended_take(NULL, &list[0], &note, &err), 0);
    assert_int_equal(gp_suspend_all(&plan, list, 1, &err), GP_EFAIL);
    assert_non_null(strstr(err.text, "another gpulse"));
    assert_int_equal(gp_resume_all(&plan, list, 1, &err), GP_EFAIL);
    assert_int_equal(state_of(&list[0]), GP_CUDA_RUNNING);
    (void)close(note);
}

/* As if gpulse had been killed between two calls. */
static void one_that_was_stopped_half_way_goes_on(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    int note;
    assert_int_equal(gp_suspended_take(NULL, &list[0], &note, &err), 0);
    assert_int_equal(gp_suspended_write(note, &list[0], &err), 0);
    (void)close(note);
    assert_int_equal(gp_checkpoint_do(GP_CUDA_LOCK, list[0].pid, LONG_S * GP_NS_PER_S, &err), 0);
    assert_int_equal(notes(), 1);
    assert_int_equal(gp_resume_all(&plan, list, 1, &err), 0);
    assert_int_equal(state_of(&list[0]), GP_CUDA_RUNNING);
    assert_int_equal(notes(), 0);
}

static void a_step_out_of_turn_is_refused(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    assert_int_equal(gp_checkpoint_do(GP_CUDA_SAVE, list[0].pid, LONG_S * GP_NS_PER_S, &err),
                     GP_EDRIVER);
    assert_non_null(strstr(err.text, "401"));
    assert_int_equal(gp_checkpoint_do(GP_CUDA_UNLOCK, list[0].pid, LONG_S * GP_NS_PER_S, &err),
                     GP_EDRIVER);
    assert_int_equal(gp_checkpoint_do(GP_CUDA_LOCK, getpid(), LONG_S * GP_NS_PER_S, &err),
                     GP_EDRIVER);
    assert_non_null(strstr(err.text, "no process that uses CUDA"));
}

/* The last test: behind it a thread is in the driver for as long as the process stands still. */
static void a_call_that_hangs_is_not_waited_for(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    enum gp_cuda_state now;
    assert_false(gp_checkpoint_is_stuck());
    /* it stops between the look at its state and the call */
    assert_int_equal(gp_checkpoint_do(GP_CUDA_LOCK, list[0].pid, LONG_S * GP_NS_PER_S, &err), 0);
    (void)kill(children[0], SIGSTOP);
    assert_int_equal(waitpid(children[0], NULL, WUNTRACED), children[0]); /* it does now */
    assert_int_equal(gp_checkpoint_do(GP_CUDA_SAVE, list[0].pid, soon_ns, &err), GP_ETIMEOUT);
    assert_true(gp_checkpoint_is_stuck());
    assert_int_equal(gp_suspend_all(&plan, list, 1, &err), GP_ETIMEOUT);
    assert_non_null(strstr(err.text, "earlier call"));
    /* of another one it can still be asked */
    assert_int_equal(gp_checkpoint_get_state(list[1].pid, LONG_S * GP_NS_PER_S, &now, &err), 0);
    assert_int_equal(now, GP_CUDA_RUNNING);
}

static void a_call_without_memory(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    enum gp_cuda_state now;
    alloc_fail_from(0);
    int r = gp_checkpoint_get_state(list[0].pid, LONG_S * GP_NS_PER_S, &now, &err);
    alloc_fail_from(-1);
    assert_int_equal(r, GP_ENOMEM);
    assert_string_equal(err.text, "out of memory");
    assert_false(gp_checkpoint_is_stuck());
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(there_and_back),
        PLAIN(one_that_cannot_leaves_all_running),
        PLAIN(one_that_is_lost_does_not_hold_the_others),
        PLAIN(who_has_been_moved_does_not_go_back_without_room),
        cmocka_unit_test_setup_teardown(a_hint_names_whole_pids, start_many, stop),
        PLAIN(without_main_memory_nobody_is_moved),
        PLAIN(suspending_twice),
        PLAIN(two_at_the_same_time),
        PLAIN(one_that_was_stopped_half_way_goes_on),
        PLAIN(a_step_out_of_turn_is_refused),
        PLAIN(a_call_without_memory),
        PLAIN(a_call_that_hangs_is_not_waited_for),
    };
    struct gp_err err = {0};
    const char *library = getenv("GPULSE_CUDA_LIBRARY");
    temporary_name(folder, sizeof(folder), "checkpoint");
    if (!library || !mkdtemp(folder))
        return 1;
    (void)setenv("GPULSE_SIM_STATE", folder, 1);
    (void)setenv("GPULSE_STATE_DIR", folder, 1);
    (void)setenv("GPULSE_SIM", "t4", 1);
    if (sim_state_open("t4", &state, &err) < 0 ||
        gp_checkpoint_open(library, GP_NS_PER_S, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
