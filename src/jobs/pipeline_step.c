/* A step runs as a separate gpulse run or gpulse fit-batch. */
#include "jobs/pipeline_run.h"

#include "base/clock.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_BESIDES = 20, PLAN_MAX = 65536 };

/* ---- signals ---- */

static volatile sig_atomic_t pids[GP_STEPS_MAX], told; /* told: the termination signal received */

static void hand_on(int number)
{
    if (number != SIGUSR1 && number != SIGUSR2)
        told = number;
    for (size_t i = 0; i < GP_STEPS_MAX; i++)
        if (pids[i] > 0 && number != SIGINT) /* steps receive keyboard signals themselves */
            (void)kill(pids[i], number);
}

/* A signal that is ignored, as nohup has it, stays so. */
static void change_handlers(void (*from)(int), void (*to)(int))
{
    static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    const struct sigaction action = {.sa_handler = to, .sa_flags = SA_RESTART};
    struct sigaction now;
    for (size_t i = 0; i < GP_ARRAY_LEN(handed_on); i++)
        if (sigaction(handed_on[i], NULL, &now) == 0 && now.sa_handler == from)
            (void)sigaction(handed_on[i], &action, NULL);
}

void gp_pipeline_catch_signals(void)
{
    change_handlers(SIG_DFL, hand_on);
}

int gp_pipeline_signal(void)
{
    return told;
}

/* ---- its command line ---- */

struct arguments {
    const char *items[GP_STEP_OPTIONS + ARGUMENTS_BESIDES];
    size_t count;
    char folder[GP_PATH_SIZE + 8], ids[8192], avoid[8192], label[GP_STEP_NAME_SIZE + 8];
    char name[GP_STEP_NAME_SIZE + 48];
    struct gp_strbuf command;
};

static void add(struct arguments *a, const char *text)
{
    a->items[a->count++] = text;
}

void gp_pipeline_step_path(const struct gp_pipeline_run *run, size_t at, const char *name,
                           char path[GP_PATH_SIZE])
{
    path[0] = '\0';
    if (run->record.path[0])
        (void)snprintf(path, GP_PATH_SIZE, "%.3900s/%zu-%s/%.40s", run->record.path, at + 1,
                       run->pipeline->steps[at].name, name);
}

static bool is_pool(const char *option)
{
    return strncmp(option, "--id=", 5) == 0;
}

/* The GPUs of the command line replace the pool that the step names. */
static void add_options(struct arguments *a, const struct gp_pipeline_run *run, size_t at,
                        uint32_t left_out)
{
    const struct gp_step *step = &run->pipeline->steps[at];
    add(a, "--wait"); /* unless the step sets a time */
    for (size_t i = 0; i < step->option_count; i++)
        if (!((left_out >> i) & 1) && !(*run->gpu_ids && is_pool(step->options[i])))
            add(a, step->options[i]);
    (void)snprintf(a->ids, sizeof(a->ids), "--id=%s", run->gpu_ids);
    if (*run->gpu_ids)
        add(a, a->ids);
}

struct lookup {
    const struct gp_pipeline_run *run;
    size_t at;
};

static uint64_t batch_of(void *context, const char *name)
{
    const struct lookup *lookup = context;
    size_t fit = gp_pipeline_fit_of(lookup->run->pipeline, lookup->at, name);
    return fit < GP_STEPS_MAX ? lookup->run->batches[fit] : 0;
}

static void add_command(struct arguments *a, const struct gp_pipeline_run *run, size_t at)
{
    struct lookup lookup = {run, at};
    gp_strbuf_init(&a->command, 1 << 20);
    gp_placeholder_fill(&a->command, run->pipeline->steps[at].command, batch_of, &lookup);
    add(a, "--");
    add(a, "sh");
    add(a, "-c");
    add(a, a->command.buf);
    add(a, NULL);
}

/* Whether another step may run in parallel: then neither gets the terminal. */
static bool has_company(const struct gp_pipeline_run *run, size_t at)
{
    const struct gp_steps *graph = &run->pipeline->graph;
    return gp_steps_parallel(graph, at) &
           (gp_steps_in(graph, GP_STEP_WAITING) | gp_steps_in(graph, GP_STEP_RUNNING));
}

static void fill_arguments(struct arguments *a, const struct gp_pipeline_run *run, size_t at)
{
    const struct gp_step *step = &run->pipeline->steps[at];
    char folder[GP_PATH_SIZE];
    gp_pipeline_step_path(run, at, "", folder);
    (void)snprintf(a->folder, sizeof(a->folder), "--dir=%s", folder);
    (void)snprintf(a->label, sizeof(a->label), "--label=%s", step->name);
    add(a, "gpulse");
    add(a, step->is_fit ? "fit-batch" : "run");
    if (run->quiet)
        add(a, "--quiet");
    if (step->is_fit)
        add(a, "--format=json");
    if (run->record.path[0])
        add(a, a->folder);
    if (run->record.path[0] && !step->is_fit)
        add(a, "--keep-output");
    if (!run->record.path[0] && !step->is_fit)
        add(a, "--no-record");
    if (!step->is_fit && has_company(run, at))
        add(a, a->label);
    (void)snprintf(a->name, sizeof(a->name), "--name=%.30s: %s", run->pipeline->name, step->name);
    if (!step->is_fit)
        add(a, a->name);
    add_options(a, run, at, 0);
    add_command(a, run, at);
}

/* The GPU request of the step, through gpulse run: fit-batch requests GPUs in the same way. */
static void fill_check(struct arguments *a, const struct gp_pipeline_run *run, size_t at,
                       const char *taken)
{
    const struct gp_step *step = &run->pipeline->steps[at];
    const char *avoid = gp_step_option(step, "--avoid");
    add(a, "gpulse");
    add(a, "run");
    add(a, "--dry-run");
    add_options(a, run, at, step->own_options);
    (void)snprintf(a->avoid, sizeof(a->avoid), "--avoid=%s%s%s", avoid ? avoid : "",
                   avoid ? "," : "", taken);
    if (*taken)
        add(a, a->avoid);
    add_command(a, run, at);
}

/* ---- its process ---- */

static void replace_fd(int fd, const char *path, int flags)
{
    int other = open(path, flags | O_CLOEXEC);
    if (other >= 0)
        (void)dup2(other, fd);
}

static _Noreturn void execute(const struct gp_pipeline_run *run, size_t at,
                              const struct arguments *a, bool goes_there)
{
    const struct gp_step *step = &run->pipeline->steps[at];
    char text[GP_PATH_SIZE + 200];
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (size_t i = 0; i < step->variable_count; i++)
        (void)putenv(step->variables[i]);
    if (chdir(run->pipeline->folder) == 0 &&
        (!goes_there || !step->folder[0] || chdir(step->folder) == 0))
        (void)execv(run->gpulse, (char *const *)(uintptr_t)a->items);
    (void)snprintf(text, sizeof(text), "cannot run step %s in %s: %s", step->name,
                   step->folder[0] ? step->folder : run->pipeline->folder, strerror(errno));
    gp_io_print_note("gpulse", text);
    _exit(127);
}

/* Forks with signals blocked, so that none is lost or forwarded in the child. */
static pid_t make_child(volatile sig_atomic_t *ret)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        change_handlers(hand_on, SIG_DFL);
    if (pid > 0 && ret)
        *ret = pid;
    if (pid > 0 && told)
        (void)kill(pid, told);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

bool gp_pipeline_start(struct gp_pipeline_run *run, size_t at)
{
    static struct arguments a; /* large */
    const bool is_alone = !has_company(run, at);
    const bool is_fit = run->pipeline->steps[at].is_fit;
    char path[GP_PATH_SIZE];
    run->results[at] = is_fit ? memfd_create("gpulse-fit", MFD_CLOEXEC) : -1;
    if (is_fit && run->results[at] < 0)
        return false;
    gp_pipeline_step_path(run, at, "run.json", path);
    (void)unlink(path); /* left over from an earlier run in the same directory */
    a.count = 0;
    fill_arguments(&a, run, at);
    run->began_ns[at] = gp_clock_mono_ns();
    run->pids[at] = make_child(&pids[at]);
    if (run->pids[at] == 0) {
        if (!is_alone)
            replace_fd(STDIN_FILENO, "/dev/null", O_RDONLY);
        if (run->results[at] >= 0)
            (void)dup2(run->results[at], STDOUT_FILENO);
        execute(run, at, &a, true);
    }
    gp_strbuf_fini(&a.command);
    if (run->pids[at] < 0 && is_fit)
        (void)close(run->results[at]);
    return run->pids[at] > 0;
}

static int shell_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

size_t gp_pipeline_wait(struct gp_pipeline_run *run, int *ret_status)
{
    int status;
    for (;;) {
        pid_t pid = waitpid(-1, &status, WUNTRACED);
        if (pid > 0 && WIFSTOPPED(status)) /* from the keyboard: the shell continues all of them */
            (void)raise(SIGSTOP);
        for (size_t i = 0; pid > 0 && !WIFSTOPPED(status) && i < run->pipeline->graph.count; i++) {
            if (run->pids[i] != pid)
                continue;
            run->pids[i] = pids[i] = 0;
            *ret_status = shell_status(status);
            return i;
        }
    }
}

/* ---- checks before running ---- */

/* The output of a dry run: only the mask, or the reason to wait. */
static void add_plan(struct gp_strbuf *sb, int fd)
{
    static const char mask[] = "CUDA_VISIBLE_DEVICES=";
    char text[PLAN_MAX];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, mask);
    if (at)
        gp_strbuf_add(sb, at + strlen(mask), strcspn(at + strlen(mask), " \n"));
    else
        gp_strbuf_add(sb, text, strcspn(text, "\n"));
}

int gp_pipeline_check(struct gp_pipeline_run *run, size_t at, const char *taken, bool is_said,
                      struct gp_strbuf *sb)
{
    static struct arguments a; /* large */
    int status = 0;
    int fd = memfd_create("gpulse-plan", MFD_CLOEXEC);
    a.count = 0;
    fill_check(&a, run, at, taken);
    pid_t pid = make_child(NULL);
    if (pid == 0) {
        if (fd >= 0)
            (void)dup2(fd, STDOUT_FILENO);
        if (!is_said)
            replace_fd(STDERR_FILENO, "/dev/null", O_WRONLY);
        execute(run, at, &a, false); /* an earlier step may create its directory */
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (fd >= 0) {
        add_plan(sb, fd);
        (void)close(fd);
    }
    gp_strbuf_fini(&a.command);
    return pid > 0 ? shell_status(status) : 1;
}
