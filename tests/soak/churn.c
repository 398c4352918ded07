/* Processes that come and go on a simulated machine, and the truth about them.
 *
 * churn RATE MEAN_S SEED: until it or its parent ends, starts RATE processes a second, each a job
 * of its own size on one GPU of the machine in GPULSE_SIM, living MEAN_S seconds on average.
 * Standard output tells, in microseconds since 1970, when each surely was there:
 *   + PID GPU BYTES BEFORE AFTER     it appeared between BEFORE and AFTER
 *   - PID BEFORE AFTER               it disappeared between BEFORE and AFTER
 *   - PID BEFORE 0                   it ends without a word at BEFORE or later
 *   = PID AFTER                      whatever it said, it is gone since AFTER */
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "sim/state.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    GPUS = 8,
    /* once it has looked, the simulator believes for 100 ms that a process lives; it rounds */
    NOTICE_US = 102000,
};

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
    (void)sig;
    ended = 1;
}

static unsigned long long now_us(void)
{
    return gp_clock_wall_ns() / 1000;
}

static void tell(const char *line, int length)
{
    if (length <= 0 || gp_io_write_all(STDOUT_FILENO, line, (size_t)length) < 0)
        _exit(1);
}

/* One job: appears, lives, and goes; every third simply ends. The state is opened here: a lock that
 * was inherited would not keep one child from another. */
static void live(const char *spec, const struct sim_job *job, double seconds)
{
    char line[128];
    struct sim_state *state;
    struct gp_err err = {0};
    size_t slot;
    unsigned long long before = now_us();
    if (sim_state_open(spec, &state, &err) < 0 || sim_state_lock(state, &err) < 0 ||
        sim_state_add_job(state, job, &slot, &err) < 0)
        _exit(1);
    sim_state_unlock(state);
    tell(line, snprintf(line, sizeof(line), "+ %u %d %llu %llu %llu\n", job->pid, job->device,
                        (unsigned long long)job->bytes, before, now_us()));
    struct timespec rest = gp_clock_timespec((uint64_t)(seconds * 1e9));
    while (!ended && nanosleep(&rest, &rest) != 0)
        ;
    before = now_us();
    if (job->pid % 3 == 0) {
        tell(line, snprintf(line, sizeof(line), "- %u %llu 0\n", job->pid, before));
        _exit(0);
    }
    if (sim_state_lock(state, &err) < 0)
        _exit(1);
    sim_state_remove_job(state, slot);
    sim_state_unlock(state);
    tell(line, snprintf(line, sizeof(line), "- %u %llu %llu\n", job->pid, before, now_us()));
    _exit(0);
}

/* Until it is reaped a process that has ended is in /proc still. */
static void reap(void)
{
    char line[64];
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
        tell(line, snprintf(line, sizeof(line), "= %d %llu\n", (int)pid, now_us() + NOTICE_US));
}

static double random_part(unsigned *seed)
{
    return (rand_r(seed) + 1.0) / (RAND_MAX + 2.0);
}

int main(int argc, char **argv)
{
    const char *spec = getenv("GPULSE_SIM");
    if (argc != 4 || !spec) {
        (void)fprintf(stderr, "churn: RATE MEAN_S SEED, GPULSE_SIM\n");
        return 2;
    }
    double rate = strtod(argv[1], NULL);
    double mean_s = strtod(argv[2], NULL);
    unsigned seed = (unsigned)strtoul(argv[3], NULL, 10);
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    uint64_t start_ns = gp_clock_mono_ns();
    for (uint64_t n = 1; !ended; n++) {
        double seconds = -mean_s * log(random_part(&seed));
        struct sim_job job = {
            .bytes = (n % 65521 + 1) << 12, /* no two alive have one size */
            .device = (int32_t)(random_part(&seed) * GPUS),
            .mig = SIM_NO_INSTANCE,
            .name = "churn",
        };
        pid_t parent = getpid();
        pid_t pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            job.pid = (uint32_t)getpid();
            job.start_ticks = sim_process_start(job.pid);
            live(spec, &job, seconds);
        }
        const struct timespec next =
            gp_clock_timespec(start_ns + (uint64_t)((double)n * 1e9 / rate));
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        reap();
    }
    (void)kill(0, SIGTERM);
    while (wait(NULL) > 0)
        ;
    return 0;
}
