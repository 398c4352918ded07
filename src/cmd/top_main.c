/* gpulse-top: the live monitor. */
#include "cmd/app.h"
#include "cmd/top.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "sample/changer.h"
#include "source/player.h"
#include "tui/feed.h"
#include "tui/keys.h"
#include "tui/plain.h"
#include "tui/term.h"
#include "tui/ui.h"
#include "tui/want.h"
#include "why/gather.h"

#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 100, /* how long to wait at exit for a driver that does not return */
    CHANGE_TIMEOUT_S = 30,
    PLAIN_S = 10,      /* between two samples that a screen reader reads out */
    WATCHED_MAX = 512, /* process rows on a screen */
    FIRST_LOOK_MS = 100,
    EVENT_WAIT_MS = 5000, /* the program does not wait for it when it ends */
};

static const struct gp_cmd command = {
    .name = "top", .usage = "[options]", .options = gp_top_table, .takes_tape = true};

/* ---- sampling ---- */

/* What the feed opens. */
struct opening {
    uint64_t interval_ns;
    struct gp_source *recording; /* owned until then; NULL: what the common options name */
    struct gp_selection *selection;
};

/* For the screen: the first frame does not wait for a GPU that hangs. */
static int open_feed(void *ctx, struct gp_sampler **ret, struct gp_err *err)
{
    struct opening *opening = ctx;
    struct gp_source *recording = opening->recording;
    const struct gp_loop loop = {.interval_ns = opening->interval_ns,
                                 .first_look_ns = FIRST_LOOK_MS * GP_NS_PER_MS,
                                 .event_wait_ms = EVENT_WAIT_MS,
                                 .is_relieved = true};
    const struct gp_want want = gp_top_want();
    opening->recording = NULL;
    return recording ? gp_app_open_source(recording, opening->selection, &want, &loop, ret, err)
                     : gp_app_open(&want, &loop, ret, err);
}

/* ---- the loop ---- */

static volatile sig_atomic_t stop_signal; /* the signal that stops it */
static volatile sig_atomic_t is_to_stop;  /* Ctrl-Z */
static volatile sig_atomic_t goes_on;     /* it was stopped, and the shell used the terminal */

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
    sigset_t mask; /* mask before they were caught; the next one likewise */
    struct sigaction actions[GP_ARRAY_LEN(caught)];
};

/* These, and SIGWINCH, are delivered only while it waits for keys: so none is lost between checking
 * for their effect and waiting. */
static void catch_signals(struct signals *before)
{
    const struct sigaction action = {.sa_handler = on_signal};
    sigset_t ours;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGWINCH);
    for (size_t i = 0; i < GP_ARRAY_LEN(caught); i++) {
        (void)sigaddset(&ours, caught[i]);
        (void)sigaction(caught[i], &action, &before->actions[i]);
        /* a shell without job control ignores it: leave it ignored */
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

/* The thread that samples draws what it has sampled; the main one waits for keys, and holds the
 * lock otherwise. */
struct run {
    pthread_mutex_t lock;
    bool is_over; /* nobody draws any more */
    struct gp_ui ui;
    struct gp_prefs seen; /* as last passed to the terminal and the feed */
    unsigned seen_theme;  /* likewise: ui.theme.changes */
    struct gp_cells cells;
    struct gp_term *term;
    struct gp_feed *feed;
    struct signals signals;
    uint64_t tick_ns;         /* likewise: the time between samples */
    struct gp_feed_view told; /* passed to the feed, for the list of pids with this generation: */
    uint32_t told_pids[WATCHED_MAX];
};

/* Tells the feed what is on the screen, if that has changed. */
static void watch(struct run *run)
{
    uint32_t pids[WATCHED_MAX];
    struct gp_feed_view *told = &run->told;
    if (!run->ui.snapshot)
        return; /* nothing is known yet: read everything */
    const struct gp_feed_view view = {
        .pids = pids,
        .pid_count = gp_ui_watched(&run->ui, pids, WATCHED_MAX),
        .others_matter = gp_ui_others_matter(&run->ui),
        .ancestors = run->ui.prefs.tree == GP_TREE_YES,
        .more = run->ui.shows_rates,
    };
    if (told->pids && view.pid_count == told->pid_count &&
        memcmp(pids, run->told_pids, view.pid_count * sizeof(*pids)) == 0 &&
        view.others_matter == told->others_matter && view.ancestors == told->ancestors &&
        view.more == told->more)
        return;
    memcpy(run->told_pids, pids, view.pid_count * sizeof(*pids));
    *told = view;
    told->pids = run->told_pids;
    gp_feed_watch(run->feed, told);
}

/* The clock in the corner is that of the recording, if one is shown. */
static uint64_t clock_of(const struct gp_ui *ui)
{
    return ui->outside.player && ui->snapshot ? ui->snapshot->wall_ns : gp_clock_wall_ns();
}

static int draw(struct run *run, struct gp_err *err)
{
    char now[GP_RFC3339_SIZE];
    int w;
    int h;
    gp_term_size(run->term, &w, &h);
    if ((run->cells.w != w || run->cells.h != h) && gp_cells_resize(&run->cells, w, h) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    gp_clock_rfc3339(clock_of(&run->ui), now);
    now[strlen("2026-11-20T15:04")] = '\0'; /* seconds would change the screen in each tick */
    gp_ui_draw(&run->ui, &run->cells, now + strlen("2026-11-20T"));
    gp_term_flush(run->term, &run->cells);
    watch(run);
    return 0;
}

/* Passes a changed time between samples to the feed, and what a recording was asked for. */
static void follow_player(struct run *run)
{
    struct gp_player *player = run->ui.outside.player;
    const uint64_t tick_ns = gp_ui_tick_ns(&run->ui);
    struct gp_player_state state;
    if (tick_ns != run->tick_ns) {
        run->tick_ns = tick_ns;
        gp_feed_set_interval(run->feed, tick_ns);
        if (player) {
            player->ops->look(player, &state);
            player->ops->set_speed(player, state.speed, tick_ns);
        }
    }
    if (run->ui.playback.hurries)
        gp_feed_hurry(run->feed);
    run->ui.playback.hurries = false;
}

/* Applies changed preferences to the terminal and the feed. */
static void follow_prefs(struct run *run)
{
    const struct gp_prefs *now = &run->ui.prefs;
    follow_player(run);
    if (run->ui.theme.changes != run->seen_theme || now->mouse != run->seen.mouse ||
        now->ascii != run->seen.ascii || now->sync != run->seen.sync)
        gp_term_set(run->term, now, &run->ui.theme.colors);
    run->seen = *now;
    run->seen_theme = run->ui.theme.changes;
}

static enum gp_ui_wish take_key(struct run *run, int key)
{
    if (key == GP_TERM_RESIZED)
        return GP_UI_REDRAW;
    if (key != GP_KEY_MOUSE)
        return gp_ui_key(&run->ui, key);
    const struct gp_term_click click = gp_term_click(run->term);
    return gp_ui_click(&run->ui, click.x, click.y, click.again);
}

/* Handles all pending keys; true to continue. */
static bool take_keys(struct run *run)
{
    int key;
    while ((key = gp_term_key(run->term)) != 0) {
        if (key == GP_TERM_CLOSED)
            return false;
        enum gp_ui_wish wish = take_key(run, key);
        follow_prefs(run);
        if (wish == GP_UI_QUIT)
            return false;
        if (wish == GP_UI_SUSPEND)
            gp_term_suspend(run->term);
        if (wish == GP_UI_REDRAW)
            gp_term_forget(run->term);
    }
    return true;
}

/* Handles the shell's requests: stop, or continue with a terminal that others have used. */
static void obey_shell(struct run *run)
{
    if (is_to_stop)
        gp_term_suspend(run->term);
    else if (goes_on)
        gp_term_resume(run->term);
    is_to_stop = goes_on = false;
}

enum { FD_KEYS, FD_FEED, FD_LATE, FD_UI, FD__COUNT = FD_UI + GP_UI_FDS };

static int wait_for_something(struct run *run, struct pollfd fds[FD__COUNT], struct gp_err *err)
{
    int own[GP_UI_FDS];
    fds[FD_KEYS].fd = STDIN_FILENO;
    fds[FD_FEED].fd = gp_feed_fd(run->feed);
    fds[FD_LATE].fd = gp_feed_late_fd(run->feed);
    gp_ui_fds(&run->ui, own);
    for (int i = 0; i < FD__COUNT; i++) {
        fds[i].fd = i >= FD_UI ? own[i - FD_UI] : fds[i].fd;
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }
    (void)pthread_mutex_unlock(&run->lock);
    int r = ppoll(fds, FD__COUNT, NULL, &run->signals.mask);
    int error = errno;
    (void)pthread_mutex_lock(&run->lock);
    if (r >= 0)
        return 0;
    if (error != EINTR)
        return gp_err_system(err, error, GP_EIO, "cannot wait for keys");
    fds[FD_KEYS].revents = POLLIN; /* a new size of the terminal is a key, too */
    return 0;
}

/* Whether the main thread has to wait for something besides keys and the feed. */
static bool has_more_to_poll(const struct gp_ui *ui)
{
    int own[GP_UI_FDS];
    bool any = false;
    gp_ui_fds(ui, own);
    for (int i = 0; i < GP_UI_FDS; i++)
        any = any || own[i] >= 0;
    return any;
}

static void show_snapshot(struct run *run, struct gp_snapshot *snapshot, uint64_t took_ns)
{
    struct gp_err err;
    struct gp_xid xids[GP_XIDS_MAX];
    size_t count = gp_feed_take_xids(run->feed, xids, GP_XIDS_MAX);
    for (size_t i = 0; i < count; i++)
        gp_xids_add(&run->ui.xids, xids[i]);
    gp_ui_take(&run->ui, snapshot, took_ns);
    follow_player(run);
    /* without memory for a frame of another size, the main thread fails, which has changed it */
    if (draw(run, &err) == 0 && has_more_to_poll(&run->ui))
        gp_feed_wake(run->feed);
}

/* On the thread that samples. */
static void take_snapshot(void *ctx, struct gp_snapshot *snapshot, uint64_t took_ns)
{
    struct run *run = ctx;
    (void)pthread_mutex_lock(&run->lock);
    if (run->is_over)
        gp_snapshot_free(snapshot);
    else
        show_snapshot(run, snapshot, took_ns);
    (void)pthread_mutex_unlock(&run->lock);
}

/* The end of the feed. */
static int take_end(struct run *run, struct gp_err *err)
{
    struct gp_snapshot *none;
    return gp_feed_take(run->feed, &none, NULL, err);
}

static int loop(struct run *run, struct gp_err *err)
{
    struct pollfd fds[FD__COUNT];
    int r = draw(run, err);
    while (r == 0 && !stop_signal) {
        r = wait_for_something(run, fds, err);
        if (r < 0)
            return r;
        obey_shell(run);
        if (fds[FD_KEYS].revents && !take_keys(run))
            return 0;
        if (fds[FD_FEED].revents)
            r = take_end(run, err);
        if (fds[FD_LATE].revents)
            gp_feed_look_after(run->feed);
        for (int i = FD_UI; i < FD__COUNT; i++)
            if (fds[i].revents)
                gp_ui_collect(&run->ui);
        if (r == 0)
            r = draw(run, err);
    }
    return r;
}

/* ---- the program ---- */

/* The preferences file first, then the options. Errors in the file are shown on the screen: a
 * monitor that does not start helps nobody. */
static int set_up(struct gp_ui *ui, const struct gp_top_options *o, struct gp_err *err)
{
    static char path[GP_PATH_SIZE];
    static char themes[GP_PATH_SIZE];
    struct gp_err in_file = {0};
    gp_ui_init(ui);
    ui->notice = "starting…";
    const char *root = gp_app_observed()->files;
    ui->outside.root = root && *root ? root : NULL;
    ui->outside.sees_processes = gp_observed_is_reachable(gp_app_observed());
    ui->outside.root_is_simulated =
        root && root == gp_app_observed()->prefix && gp_observed_is_reachable(gp_app_observed());
    ui->outside.machine = gp_common()->tape ? NULL : gp_app_observed()->sim;
    if (gp_app_observed()->problem[0]) /* its note is behind the screen */
        (void)snprintf(ui->message, sizeof(ui->message), "no users: %.110s",
                       gp_app_observed()->problem);
    if (o->config && strcmp(o->config, "none") != 0)
        ui->outside.config_path = o->config;
    else if (!o->config && gp_prefs_path(path))
        ui->outside.config_path = path;
    if (gp_themes_path(themes))
        ui->outside.themes = themes;
    if (ui->outside.config_path && gp_prefs_load(&ui->prefs, ui->outside.config_path, &in_file) < 0)
        (void)snprintf(ui->message, sizeof(ui->message), "%.120s", in_file.text);
    for (int pref = 0; pref < GP_PREF__COUNT; pref++) {
        int r =
            o->prefs[pref] ? gp_pref_set(&ui->prefs, (enum gp_pref)pref, o->prefs[pref], err) : 0;
        if (r < 0)
            return r;
    }
    int r = gp_proc_choice_add(&o->choice, ui->prefs.filter, sizeof(ui->prefs.filter), err);
    if (r < 0)
        return r;
    gp_ui_apply(ui);
    struct gp_colors colors;
    const bool is_theme =
        !o->prefs[GP_PREF_THEME] ||
        gp_theme_load(ui->outside.themes, ui->prefs.theme, &colors, err) != GP_EUSAGE;
    return is_theme ? 0 : GP_EUSAGE; /* a file with errors is reported on the screen */
}

/* ---- plain output ---- */

struct lines {
    struct gp_procs_options options;
    bool on_change;
    struct gp_strbuf before; /* the last sample */
};

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct lines *lines = ctx;
    struct gp_strbuf now = GP_STRBUF_INIT(64 << 20);
    struct gp_strbuf changes = GP_STRBUF_INIT(64 << 20);
    int r = gp_plain_add(&now, snapshot, &lines->options);
    if (r == 0 && lines->on_change)
        r = gp_plain_add_changes(&changes, &now, &lines->before);
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, lines->on_change ? &changes : &now, err);
    gp_strbuf_fini(&changes);
    gp_strbuf_fini(&lines->before);
    lines->before = now;
    return r;
}

static int run_plain(const struct gp_top_options *o, struct gp_err *err)
{
    struct gp_ui ui;
    struct gp_sampler *sampler;
    int r = set_up(&ui, o, err);
    if (r == 0 && ui.message[0])
        (void)fprintf(stderr, "gpulse top: %s\n", ui.message);
    uint64_t interval_ns =
        o->prefs[GP_PREF_INTERVAL] ? ui.prefs.interval_ns : PLAIN_S * GP_NS_PER_S;
    const struct gp_loop loop = {.interval_ns = interval_ns, .count = o->count};
    struct lines lines = {
        {ui.order, ui.prefs.filter, -1, false, ui.prefs.per_gpu}, o->on_change, {0}};
    gp_strbuf_init(&lines.before, 64 << 20);
    const struct gp_want want = gp_top_want();
    if (r == 0)
        r = gp_app_open(&want, &loop, &sampler, err);
    if (r == 0) {
        gp_sampler_set_more(sampler, true);
        r = gp_app_loop(sampler, &loop, on_sample, &lines, err);
        gp_app_close(sampler);
    }
    gp_strbuf_fini(&lines.before);
    (void)gp_ui_fini(&ui);
    return r;
}

/* ---- on the screen ---- */

/* ctx is the index of the GPU. Slow metrics are read each time, too: the user is looking at
 * them. */
static int open_details(void *ctx, struct gp_sampler **ret, struct gp_err *err)
{
    struct gp_source *source;
    struct gp_selection *selection;
    struct gp_want want = {.fresh = true, .mig = true};
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S,
                                 .first_look_ns = FIRST_LOOK_MS * GP_NS_PER_MS};
    for (int m = GP_DEVICE__FIRST; m < GP_DEVICE__FIRST + GP_DEVICE__COUNT; m++)
        gp_metric_set_add(&want.metrics, (enum gp_metric)m);
    int r = gp_app_source_of((unsigned)(uintptr_t)ctx, GP_APP_LOOK, &source, &selection, err);
    return r < 0 ? r : gp_app_open_source(source, selection, &want, &loop, ret, err);
}

/* Of all GPUs, whatever -i says: those of a job may wait for each other. */
static int open_verdict(void *ctx, struct gp_sampler **ret, struct gp_err *err)
{
    static struct gp_selection all; /* never freed: a stuck thread may look at it */
    struct gp_source *source;
    const struct gp_want want = gp_why_want();
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S,
                                 .first_look_ns = FIRST_LOOK_MS * GP_NS_PER_MS};
    (void)ctx;
    int r = gp_observed_source(gp_app_observed(), &source, err);
    return r < 0 ? r : gp_app_open_source(source, &all, &want, &loop, ret, err);
}

static int open_changer(unsigned index, struct gp_changer **ret, struct gp_err *err)
{
    struct gp_changer_config config = {.timeout_ns =
                                           gp_app_timeout_ns(CHANGE_TIMEOUT_S * GP_NS_PER_S)};
    int r = gp_app_source_of(index, GP_APP_CHANGE, &config.source, &config.selection, err);
    return r < 0 ? r : gp_changer_new(&config, ret, err);
}

/* A recording is opened before the screen: it has errors that people must read. */
static int open_recording(struct run *run, const struct gp_top_options *o, struct opening *opening,
                          struct gp_err *err)
{
    double speed = 1;
    if (o->speed && !gp_top_parse_speed(o->speed, &speed))
        return gp_err_set(err, GP_EUSAGE, "--speed: '%.40s' is not a number from 0.25 to 64",
                          o->speed);
    int r = gp_app_source(&opening->recording, &opening->selection, err);
    if (r < 0)
        return r;
    struct gp_player *player = opening->recording->player;
    player->ops->ref(player);
    player->ops->set_speed(player, speed, run->ui.prefs.interval_ns);
    run->ui.outside.player = player;
    return 0;
}

/* What acts on this machine is not offered for a recording. */
static void connect(struct gp_ui *ui)
{
    if (ui->outside.player)
        return;
    ui->outside.open_details = open_details;
    ui->outside.open_verdict = open_verdict;
    ui->outside.open_changer = open_changer;
}

static void close_recording(struct run *run, struct opening *opening)
{
    if (opening->recording)
        opening->recording->ops->free(opening->recording);
    if (run->ui.outside.player)
        run->ui.outside.player->ops->unref(run->ui.outside.player);
}

static int run_screen(struct run *run, const struct gp_top_options *o, struct opening *opening,
                      bool *ret_stuck, struct gp_err *err)
{
    const struct gp_feed_config feed = {open_feed, opening, opening->interval_ns, take_snapshot,
                                        run};
    (void)gp_app_observed();
    catch_signals(&run->signals); /* before curses installs handlers */
    int r =
        gp_term_open(&run->ui.prefs, &run->ui.theme.colors, gp_app_wants_color(), &run->term, err);
    if (r == GP_EFAIL && !o->guide) {
        let_signals_go(&run->signals);
        return run_plain(o, err);
    }
    (void)pthread_mutex_lock(&run->lock);
    if (r == 0)
        r = gp_feed_start(&feed, &run->feed, err);
    if (r == 0)
        r = loop(run, err);
    run->is_over = true;
    (void)pthread_mutex_unlock(&run->lock);
    if (run->term)
        gp_term_close(run->term);
    if (run->feed && !gp_feed_stop(run->feed, PATIENCE_MS * GP_NS_PER_MS))
        *ret_stuck = true;
    return r;
}

static int run_top(const struct gp_top_options *o, bool *ret_stuck, struct gp_err *err)
{
    static struct run run = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* a stuck thread may look at it */
    static struct opening opening;                               /* likewise */
    int r = set_up(&run.ui, o, err);
    if (r == 0 && gp_common()->tape)
        r = open_recording(&run, o, &opening, err);
    if (r == 0) {
        run.ui.guide.is_on = o->guide;
        connect(&run.ui);
        run.seen = run.ui.prefs;
        run.seen_theme = run.ui.theme.changes;
        opening.interval_ns = run.tick_ns = run.ui.prefs.interval_ns;
        r = run_screen(&run, o, &opening, ret_stuck, err);
    }
    if (!gp_ui_fini(&run.ui))
        *ret_stuck = true;
    if (!*ret_stuck)
        close_recording(&run, &opening);
    gp_cells_fini(&run.cells);
    return r;
}

int main(int argc, char **argv)
{
    struct gp_top_options o = {.count = 0};
    struct gp_err err = {0};
    int positional;
    bool done;
    bool stuck = false;
    gp_app_init_helper(&command);
    (void)setlocale(LC_CTYPE, "");
    /* A snapshot of many processes consists of a few large allocations that come and go with every
     * sample: use mmap for them, so that they do not fragment the heap and are returned to the
     * kernel. */
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, &err);
    bool plain = o.plain || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
    if (r == 0 && !done && gp_app_wants_columns(o.prefs[GP_PREF_COLUMNS]))
        r = gp_app_print_columns(gp_top_columns_add_help, &err);
    else if (r == 0 && !done)
        r = plain ? run_plain(&o, &err) : run_top(&o, &stuck, &err);
    if (r < 0 && err.code)
        gp_app_print_error(&err);
    int status =
        stop_signal == SIGINT || stop_signal == 0 ? gp_err_exit_status(r) : 128 + stop_signal;
    if (stuck || gp_app_is_stuck())
        _exit(status);
    return status;
}
