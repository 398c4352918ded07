/* gpulse-top: the live monitor. */
#include "cmd/app.h"
#include "cmd/top.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "tui/feed.h"
#include "tui/plain.h"
#include "tui/term.h"
#include "tui/ui.h"

#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 100, /* with a driver that does not let go, at the end */
    PLAIN_S = 10,      /* between two samples that are read out */
    WATCHED_MAX = 512, /* rows of processes on a screen */
    FIRST_LOOK_MS = 100,
};

static const struct gp_cmd command = {.name = "top", .usage = "[options]", .options = gp_top_table};
static const struct gp_cmd *const commands[] = {&command, NULL};

const struct gp_program gp_program = {
    .name = "gpulse",
    .version = GPULSE_VERSION,
    .commands = commands,
    .common = gp_common_options,
};

/* ---- what is sampled ---- */

static const enum gp_metric wanted[] = {
    GP_HOST_NAME,
    GP_DRIVER_VERSION,
    GP_CUDA_VERSION,
    GP_NAME,
    GP_UUID,
    GP_STATUS,
    GP_STATUS_TEXT,
    GP_UTILIZATION_GPU,
    GP_UTILIZATION_MEMORY,
    GP_UTILIZATION_ENCODER,
    GP_UTILIZATION_DECODER,
    GP_MEMORY_USED,
    GP_MEMORY_TOTAL,
    GP_MEMORY_UNATTRIBUTED,
    GP_TEMPERATURE_GPU,
    GP_TEMPERATURE_MEMORY,
    GP_THRESHOLD_SLOWDOWN,
    GP_FAN_SPEED,
    GP_POWER_DRAW,
    GP_POWER_LIMIT_ENFORCED,
    GP_PSTATE,
    GP_CLOCK_SM,
    GP_CLOCK_MEMORY,
    GP_REASONS_ACTIVE,
    GP_PCIE_GEN,
    GP_PCIE_GEN_MAX,
    GP_PCIE_WIDTH,
    GP_PCIE_WIDTH_MAX,
    GP_RECOVERY_ACTION,
    GP_MIG_PROFILE,
    GP_PID,
    GP_PROCESS_TYPE,
    GP_PROCESS_NAME,
    GP_PROCESS_MEMORY,
    GP_PROCESS_SM,
    GP_PROCESS_MEM,
    GP_PROCESS_ENC,
    GP_PROCESS_DEC,
    GP_PROCESS_USER,
    GP_PROCESS_COMMAND,
    GP_PROCESS_CPU,
    GP_PROCESS_RSS,
    GP_PROCESS_START,
};

static int open_sampler(void *ctx, struct gp_sampler **ret, struct gp_err *err)
{
    const struct gp_top_options *o = ctx;
    struct gp_want want = {.mig = true, .processes = true, .process_names = true};
    const struct gp_loop loop = {.interval_ns = o->interval_ns,
                                 .first_look_ns = o->plain ? 0 : FIRST_LOOK_MS * GP_NS_PER_MS};
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(&want.metrics, wanted[i]);
    return gp_app_open(&want, &loop, ret, err);
}

/* ---- the loop ---- */

static volatile sig_atomic_t stop_signal; /* the one that ends it */
static volatile sig_atomic_t is_to_stop;  /* Ctrl-Z */
static volatile sig_atomic_t goes_on;     /* it was stopped, and the shell had the terminal */

static void on_signal(int sig)
{
    if (sig == SIGTSTP)
        is_to_stop = true;
    else if (sig == SIGCONT)
        goes_on = true;
    else
        stop_signal = sig;
}

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT};

struct signals {
    sigset_t mask; /* before they were caught, as the next */
    struct sigaction actions[GP_ARRAY_LEN(caught)];
};

/* They, and the one that tells of another size, come in while it waits for keys and at no other
 * time: none is overlooked between the look at what it has changed and the wait. */
static void catch_signals(struct signals *before)
{
    const struct sigaction action = {.sa_handler = on_signal};
    sigset_t ours;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGWINCH);
    for (size_t i = 0; i < GP_ARRAY_LEN(caught); i++) {
        (void)sigaddset(&ours, caught[i]);
        (void)sigaction(caught[i], &action, &before->actions[i]);
        /* a shell without job control has it ignored: so it stays */
        if (caught[i] == SIGTSTP && before->actions[i].sa_handler == SIG_IGN)
            (void)sigaction(SIGTSTP, &before->actions[i], NULL);
    }
    (void)sigprocmask(SIG_BLOCK, &ours, &before->mask);
}

static void let_signals_go(const struct signals *before)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(caught); i++)
        (void)sigaction(caught[i], &before->actions[i], NULL);
    (void)sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

struct run {
    struct gp_ui ui;
    struct gp_cells cells;
    struct gp_term *term;
    struct gp_feed *feed;
    struct signals signals;
    bool watches; /* some processes only, these: */
    uint32_t watched[WATCHED_MAX];
    size_t watched_count;
};

/* Tells the feed what is on the screen, if that is something else now. */
static void watch(struct run *run)
{
    uint32_t pids[WATCHED_MAX];
    size_t count = 0;
    bool some = run->ui.snapshot && gp_ui_watched(&run->ui, pids, WATCHED_MAX, &count);
    if (some == run->watches && count == run->watched_count &&
        memcmp(pids, run->watched, count * sizeof(*pids)) == 0)
        return;
    run->watches = some;
    run->watched_count = count;
    memcpy(run->watched, pids, count * sizeof(*pids));
    gp_feed_watch(run->feed, some ? pids : NULL, count);
}

static int draw(struct run *run)
{
    char clock[16];
    time_t now = (time_t)(gp_clock_wall_ns() / GP_NS_PER_S);
    struct tm tm;
    int w;
    int h;
    gp_term_size(run->term, &w, &h);
    if ((run->cells.w != w || run->cells.h != h) && gp_cells_resize(&run->cells, w, h) < 0)
        return GP_ENOMEM;
    (void)localtime_r(&now, &tm);
    (void)strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    gp_ui_draw(&run->ui, &run->cells, clock);
    gp_term_flush(run->term, &run->cells);
    watch(run);
    return 0;
}

/* All keys that are waiting; true to go on. */
static bool take_keys(struct run *run)
{
    int key;
    while ((key = gp_term_key(run->term)) != 0) {
        if (key == GP_TERM_CLOSED)
            return false;
        enum gp_ui_wish wish = key == GP_TERM_RESIZED ? GP_UI_REDRAW : gp_ui_key(&run->ui, key);
        if (wish == GP_UI_QUIT)
            return false;
        if (wish == GP_UI_SUSPEND)
            gp_term_suspend(run->term);
        if (wish == GP_UI_REDRAW)
            gp_term_forget(run->term);
        if (wish == GP_UI_INTERVAL)
            gp_feed_set_interval(run->feed, run->ui.interval_ns);
    }
    return true;
}

/* What the shell wants: that it stops, or goes on with a terminal that others have used. */
static void obey_shell(struct run *run)
{
    if (is_to_stop)
        gp_term_suspend(run->term);
    else if (goes_on)
        gp_term_resume(run->term);
    is_to_stop = goes_on = false;
}

static int loop(struct run *run, struct gp_err *err)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = gp_feed_fd(run->feed), .events = POLLIN}};
    int r = draw(run);
    while (r == 0 && !stop_signal) {
        int ready = ppoll(fds, GP_ARRAY_LEN(fds), NULL, &run->signals.mask);
        if (ready < 0 && errno != EINTR)
            return gp_err_set(err, GP_EIO, "cannot wait for keys: %s", strerror(errno));
        obey_shell(run);
        if (!take_keys(run))
            return 0;
        struct gp_snapshot *snapshot = NULL;
        if (ready > 0 && fds[1].revents)
            r = gp_feed_take(run->feed, &snapshot, err);
        if (snapshot)
            gp_ui_take(&run->ui, snapshot);
        if (r == 0)
            r = draw(run);
    }
    return r;
}

/* ---- the program ---- */

/* The place of a word among the choices of an option, which has them in the order of its enum. */
static int find_choice(const char *option, const char *word)
{
    int at = 0;
    for (const char *p = gp_cli_option(gp_top_table, option, strlen(option), 0)->choices; *p;
         at++) {
        size_t n = strcspn(p, " ");
        if (strlen(word) == n && strncmp(p, word, n) == 0)
            break;
        p += n + (p[n] == ' ');
    }
    return at;
}

static void set_up(struct gp_ui *ui, const struct gp_top_options *o)
{
    gp_ui_init(ui);
    ui->interval_ns = o->interval_ns;
    ui->blocks = o->blocks;
    ui->read_only = o->read_only;
    ui->no_gpus = o->no_gpus;
    ui->no_processes = o->no_processes;
    ui->notice = "starting…";
    if (o->sort)
        ui->order = find_choice("sort", o->sort);
    if (o->view)
        ui->density = find_choice("view", o->view);
    if (o->filter)
        (void)snprintf(ui->filter, sizeof(ui->filter), "%s", o->filter);
}

/* ---- in lines ---- */

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    const struct gp_ui *ui = ctx;
    const struct gp_procs_options options = {ui->order, ui->reversed, ui->filter, ui->gpu};
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    int r = gp_plain_add(&sb, snapshot, &options);
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int run_plain(struct gp_top_options *o, struct gp_err *err)
{
    struct gp_ui ui;
    struct gp_sampler *sampler;
    set_up(&ui, o);
    const struct gp_loop loop = {.interval_ns = o->interval_ns, .count = o->count};
    int r = open_sampler(o, &sampler, err);
    if (r < 0)
        return r;
    r = gp_app_loop(sampler, &loop, on_sample, &ui, err);
    gp_app_close(sampler);
    return r;
}

/* ---- on the screen ---- */

static int run_top(struct gp_top_options *o, bool *ret_stuck, struct gp_err *err)
{
    struct run run = {.term = NULL};
    const struct gp_term_options look = {gp_app_wants_color(), o->ascii};
    const struct gp_feed_config feed = {open_sampler, o, o->interval_ns};
    set_up(&run.ui, o);
    catch_signals(&run.signals); /* before curses would catch some */
    int r = gp_term_open(&look, &run.term, err);
    if (r == GP_EFAIL) {
        let_signals_go(&run.signals);
        o->plain = true;
        return run_plain(o, err);
    }
    if (r == 0)
        r = gp_feed_start(&feed, &run.feed, err);
    if (r == 0)
        r = loop(&run, err);
    if (run.term)
        gp_term_close(run.term);
    if (run.feed && !gp_feed_stop(run.feed, PATIENCE_MS * GP_NS_PER_MS))
        *ret_stuck = true;
    gp_ui_fini(&run.ui);
    gp_cells_fini(&run.cells);
    return r;
}

int main(int argc, char **argv)
{
    struct gp_top_options o = {.interval_ns = 0};
    struct gp_err err = {0};
    int positional;
    bool done;
    bool stuck = false;
    gp_io_secure_standard_fds();
    (void)setlocale(LC_ALL, "");
    (void)setlocale(LC_NUMERIC, "C");
    /* A snapshot of many processes is some large pieces, which come and go at every sample: they
     * shall leave no holes among the small ones, but be given back. */
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, &err);
    o.plain = o.plain || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
    if (!o.interval_ns)
        o.interval_ns = o.plain ? PLAIN_S * GP_NS_PER_S : GP_NS_PER_S;
    if (r == 0 && !done)
        r = o.plain ? run_plain(&o, &err) : run_top(&o, &stuck, &err);
    if (r < 0 && err.code)
        gp_io_print_error("gpulse", &err);
    int status =
        stop_signal == SIGINT || stop_signal == 0 ? gp_err_exit_status(r) : 128 + stop_signal;
    if (stuck || gp_app_is_stuck())
        _exit(status);
    return status;
}
