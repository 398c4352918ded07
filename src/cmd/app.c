#include "cmd/app.h"
#include "cmd/habits.h"
#include "cmd/tape_option.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/procs.h"
#include "source/nvml/nvml.h"

#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    GPUS_MAX = 256,     /* device indices for simultaneous queries */
    PRIME_GAP_MS = 110, /* GPM needs 100 ms between its samples */
    SAMPLE_TIMEOUT_S = 3,
};

#define OPT(field) offsetof(struct gp_common, field)

const struct gp_opt gp_common_options[] = {
    {'i', "id", "gpu", GP_OPT_STRING, "GPUS", .once = true, .offset = OPT(id),
     .help = "only these GPUs: indices, ranges (0-3), UUIDs, PCI bus ids, serial numbers or parts "
             "of the name, separated by commas; each must exist"},
    {0, "timeout", NULL, GP_OPT_DURATION, "TIME", .offset = OPT(timeout_ns),
     .help = "wait up to TIME for a GPU that does not respond (default 3s; 30s for changes)"},
    {0, "sim", NULL, GP_OPT_STRING, "MACHINE", .complete = GP_COMPLETE_MACHINE, .offset = OPT(sim),
     .help = "use a simulated machine: a name from gpulse sim list, optionally with a count and a "
             "driver (h100x8,driver=470), or a machine file"},
    {0, "sim-still", NULL, GP_OPT_FLAG, .offset = OPT(sim_still),
     .help = "freeze the simulated values"},
    {0, "root", NULL, GP_OPT_STRING, "DIR", .complete = GP_COMPLETE_FILE, .offset = OPT(root),
     .help = "read /proc, /sys and /etc below DIR"},
    {0, "tape", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE, .offset = OPT(tape),
     .for_tapes = true,
     .help = "show what gpulse record has recorded in FILE instead of this machine"},
    {0, "at", NULL, GP_OPT_STRING, "TIME", .offset = OPT(at), .needs = "tape", .for_tapes = true,
     .help = "begin at this time of the recording, for example 03:10, \"yesterday 03:10\", "
             "2026-11-26T03:10, \"2h ago\", or start (default: its end)"},
    {0, "release-when-idle", NULL, GP_OPT_FLAG, .offset = OPT(release_when_idle), .for_loops = true,
     .help = "when repeating: close the driver when the GPUs have been idle for 10 s, so that a "
             "laptop GPU can power down"},
    {0, "color", NULL, GP_OPT_CHOICE, "WHEN", .choices = "auto always never", .offset = OPT(color),
     .help = "when to use colors (default auto)"},
    {'h', "help", NULL, GP_OPT_FLAG, .offset = OPT(help), .help = "show this help"},
    {'V', "version", NULL, GP_OPT_FLAG, .offset = OPT(version), .help = "show the version"},
    GP_OPT_END,
};

struct gp_common *gp_common(void)
{
    static struct gp_common common = {.color = "auto"};
    return &common;
}

int gp_app_write(int fd, const struct gp_strbuf *sb, struct gp_err *err)
{
    if (sb->error)
        return gp_err_set(err, sb->error, "cannot build the output: %s", gp_err_text(sb->error));
    int r = gp_io_write_all(fd, sb->buf, sb->len);
    return r < 0 ? gp_err_system(err, -r, GP_EIO, "cannot write the output") : 0;
}

static const struct gp_program *program;

void gp_app_init(const struct gp_program *of_main)
{
    program = of_main;
    gp_io_secure_standard_fds();
}

void gp_app_init_helper(const struct gp_cmd *command)
{
    static const struct gp_cmd *commands[2];
    static const struct gp_program helper = {.name = "gpulse",
                                             .version = GPULSE_VERSION,
                                             .commands = commands,
                                             .common = gp_common_options};
    commands[0] = command;
    gp_app_init(&helper);
}

int gp_app_parse(const struct gp_cmd *cmd, int argc, char **argv, void *values, int *ret_positional,
                 bool *ret_done, struct gp_err *err)
{
    const struct gp_opt_target targets[] = {{cmd->options, values},
                                            {gp_common_options, gp_common()}};
    struct gp_cli_unknown unknown;
    char meant[GP_HABIT_SIZE];
    int r = gp_cli_parse(argc, argv, targets, GP_ARRAY_LEN(targets), cmd->raw_rest, ret_positional,
                         &unknown, err);
    if (gp_habit_find_option(cmd->name, argc, argv, &unknown, meant))
        r = gp_err_set(err, r, "unknown option '%.60s'; try %s", argv[unknown.at], meant);
    if (gp_common()->id && strcmp(gp_common()->id, "all") == 0)
        gp_common()->id = NULL; /* the same as without -i */
    *ret_done = r == 0 && (gp_common()->help || gp_common()->version);
    if (r == 0 && !*ret_done && gp_common()->release_when_idle && cmd->no_loop)
        return gp_err_set(err, GP_EUSAGE,
                          "gpulse %s does not repeat; --release-when-idle does not apply",
                          cmd->name);
    if (r == 0 && !*ret_done && gp_common()->tape)
        r = gp_tape_check_option(cmd,
                                 gp_common()->sim    ? "sim"
                                 : gp_common()->root ? "root"
                                                     : NULL,
                                 err);
    if (!*ret_done)
        return r;
    if (!gp_common()->help)
        return gp_app_print_version(err);
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_cli_help_command(&sb, program, cmd);
    r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

bool gp_app_wants_columns(const char *columns)
{
    return columns && strcmp(columns, "help") == 0;
}

int gp_app_print_columns(void (*add)(struct gp_strbuf *sb), struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    add(&sb);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

int gp_app_refuse_words(const struct gp_cmd *cmd, int count, char **argv, struct gp_err *err)
{
    if (count == 0)
        return 0;
    int r = gp_habit_check_words(cmd->name, count, argv + 1, err);
    if (r < 0)
        return r;
    const bool may_be_gpu = strpbrk(argv[1], "0123456789");
    return gp_err_set(err, GP_EUSAGE, "%s takes no arguments, got '%.80s'%s", cmd->name, argv[1],
                      may_be_gpu ? "; GPUs are selected with -i, as in -i 3" : "");
}

void gp_app_add_version(struct gp_strbuf *sb)
{
    gp_strbuf_adds(sb, "gpulse " GPULSE_VERSION "\n");
}

/* The loaded kernel module's version: "580.105.08". */
static void add_kernel_module(struct gp_strbuf *sb)
{
    char path[GP_PATH_SIZE];
    char text[64];
    if (gp_io_path(path, gp_observed_root(gp_common()->root), "/sys/module/nvidia/version") &&
        gp_io_read(path, text, sizeof(text)) > 0) {
        gp_strbuf_adds(sb, "NVIDIA ");
        gp_utf8_add_safe(sb, text, strcspn(text, "\n"), sizeof(text));
    } else {
        gp_strbuf_adds(sb, "no NVIDIA kernel module is loaded");
    }
}

int gp_app_print_version(struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    const char *sim = gp_observed_sim(gp_common()->sim);
    gp_app_add_version(&sb);
    gp_strbuf_addf(&sb, "build: %s\nlibraries: jansson %s, ncurses %s\ndriver: ", GPULSE_BUILD,
                   jansson_version_str(), GPULSE_NCURSES);
    if (sim) {
        gp_strbuf_adds(&sb, "simulated: ");
        gp_utf8_add_safe(&sb, sim, strlen(sim), 1024);
    } else {
        add_kernel_module(&sb);
    }
    gp_strbuf_addc(&sb, '\n');
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

void gp_app_print_error(const struct gp_err *err)
{
    gp_io_print_error("gpulse", err);
    if (!gp_nvml_is_missing(err) || gp_app_observed()->library)
        return;
    gp_io_print_note("gpulse", "to find out what is missing: gpulse doctor");
    gp_io_print_note("gpulse", "to try gpulse without a GPU: gpulse demo");
}

int gp_app_confirm(const char *question, const char *nothing, struct gp_err *err)
{
    char answer[16] = "";
    if (!isatty(STDIN_FILENO))
        return gp_err_set(err, GP_EUSAGE, "%s: cannot ask without a terminal; add --yes", nothing);
    (void)fprintf(stderr, "%s? [y/N] ", question);
    if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
        return gp_err_set(err, GP_EFAIL, "%s", nothing);
    return 0;
}

bool gp_app_wants_color(void)
{
    const char *when = gp_common()->color;
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

void gp_app_export(void)
{
    const struct gp_common *common = gp_common();
    if (common->sim)
        (void)setenv("GPULSE_SIM", common->sim, 1);
    if (common->root)
        (void)setenv("GPULSE_ROOT", common->root, 1);
    if (common->sim_still)
        (void)setenv("GPULSE_SIM_STILL", "1", 1);
}

/* It is never freed, because a stuck thread may be using it. */
static struct gp_observed observed;

static void choose_observed(void)
{
    const struct gp_common *common = gp_common();
    observed = (struct gp_observed){
        .sim = common->sim, .sim_still = common->sim_still, .root = common->root};
    gp_observed_prepare(&observed);
    if (observed.problem[0]) {
        char note[400];
        (void)snprintf(note, sizeof(note), "this simulated machine has no users and host: %s",
                       observed.problem);
        gp_io_print_note("gpulse", note);
    }
}

const struct gp_observed *gp_app_observed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, choose_observed);
    return &observed;
}

/* A simulated driver slows down with the machine, so a missing --timeout means no limit. 0: not
 * given. */
static uint64_t sim_timeout_ns(void)
{
    uint64_t ns;
    const char *told = gp_app_observed()->sim ? getenv("GPULSE_SIM_TIMEOUT") : NULL;
    return told && gp_parse_duration(told, &ns) ? ns : 0;
}

uint64_t gp_app_timeout_ns(uint64_t fallback_ns)
{
    uint64_t sim_ns = sim_timeout_ns();
    if (gp_common()->timeout_ns)
        return gp_common()->timeout_ns;
    return sim_ns > 0 ? sim_ns : fallback_ns;
}

/* A GPU that starts to hang delays the others only once: for the interval, but at least a second,
 * so that a slow driver in a fast loop still produces output. */
static uint64_t later_timeout(const struct gp_loop *loop)
{
    uint64_t ns = loop->interval_ns > GP_NS_PER_S ? loop->interval_ns : GP_NS_PER_S;
    uint64_t first_ns = gp_app_timeout_ns(SAMPLE_TIMEOUT_S * GP_NS_PER_S);
    if (!gp_common()->timeout_ns && sim_timeout_ns() > 0)
        return first_ns;
    return ns < first_ns ? ns : first_ns;
}

/* A thread of the sampler is stuck in the driver. */
static atomic_bool stuck;

/* Rates are differences between two samples: takes the first of them. */
static int prime(struct gp_sampler *sampler, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(sampler, &snapshot, err);
    if (r < 0)
        return r;
    gp_snapshot_free(snapshot);
    struct timespec gap = {.tv_nsec = PRIME_GAP_MS * (long)GP_NS_PER_MS};
    (void)nanosleep(&gap, NULL);
    return 0;
}

static int open_source(struct gp_source **ret, struct gp_err *err)
{
    return gp_common()->tape ? gp_tape_open_option(gp_common()->tape, gp_common()->at, ret, err)
                             : gp_observed_source(gp_app_observed(), ret, err);
}

int gp_app_source(struct gp_source **ret, struct gp_selection **ret_selection, struct gp_err *err)
{
    static struct gp_selection selection; /* never freed, like the observed machine */
    int r = gp_common()->id ? gp_selection_parse(gp_common()->id, &selection, err) : 0;
    if (r == 0)
        r = open_source(ret, err);
    if (r == 0)
        *ret_selection = &selection;
    return r;
}

int gp_app_source_of(unsigned index, enum gp_app_purpose purpose, struct gp_source **ret,
                     struct gp_selection **ret_selection, struct gp_err *err)
{
    static struct gp_selection *selections[2][GPUS_MAX]; /* never freed, as above */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char term[16];
    if (index >= GPUS_MAX)
        return gp_err_set(err, GP_ENODEV, "GPU %u cannot be queried; at most %d GPUs are supported",
                          index, GPUS_MAX);
    (void)snprintf(term, sizeof(term), "%u", index);
    (void)pthread_mutex_lock(&lock);
    struct gp_selection **selection = &selections[purpose][index];
    bool is_new = !*selection;
    if (is_new)
        *selection = calloc(1, sizeof(**selection));
    int r = !*selection ? GP_ENOMEM : is_new ? gp_selection_parse(term, *selection, err) : 0;
    *ret_selection = *selection;
    (void)pthread_mutex_unlock(&lock);
    return r == 0 ? open_source(ret, err) : r;
}

int gp_app_open_source(struct gp_source *source, struct gp_selection *selection,
                       const struct gp_want *want, const struct gp_loop *loop,
                       struct gp_sampler **ret, struct gp_err *err)
{
    struct gp_sampler_config config = {
        .source = source,
        .selection = selection,
        .root = gp_app_observed()->prefix,
        .timeout_ns = gp_app_timeout_ns(SAMPLE_TIMEOUT_S * GP_NS_PER_S),
        .later_timeout_ns = later_timeout(loop),
        .first_look_ns = loop->first_look_ns,
        .event_wait_ms = loop->event_wait_ms,
        .is_relieved = loop->is_relieved,
        .brief = loop->brief,
        .step_ns = loop->interval_ns,
        .release_when_idle = gp_common()->release_when_idle && loop->interval_ns != 0,
        .once = !loop->interval_ns && !gp_metric_set_has_tier(&want->metrics, GP_TIER_RATE),
        .want = *want,
    };
    config.want.mig = want->mig || gp_selection_names_mig(selection);
    int r = gp_sampler_new(&config, ret, err);
    if (r < 0 && *ret)
        gp_app_note_stuck();
    if (r < 0 || loop->first_look_ns || gp_sampler_is_recorded(*ret) ||
        !gp_metric_set_has_tier(&want->metrics, GP_TIER_RATE))
        return r;
    r = prime(*ret, err);
    if (r < 0) {
        gp_app_close(*ret);
        *ret = NULL;
    }
    return r;
}

int gp_app_open(const struct gp_want *want, const struct gp_loop *loop, struct gp_sampler **ret,
                struct gp_err *err)
{
    struct gp_source *source;
    struct gp_selection *selection;
    int r = gp_app_source(&source, &selection, err);
    return r < 0 ? r : gp_app_open_source(source, selection, want, loop, ret, err);
}

void gp_app_close(struct gp_sampler *sampler)
{
    if (!gp_sampler_free(sampler))
        stuck = true;
}

void gp_app_note_stuck(void)
{
    stuck = true;
}

bool gp_app_is_stuck(void)
{
    return stuck;
}

/* ---- the loop ---- */

static volatile sig_atomic_t stop_signal;

/* The first signal stops the loop after the current sample; the second one terminates the
 * process. */
static void on_signal(int sig)
{
    if (stop_signal)
        _exit(gp_err_exit_status(GP_EINTR));
    stop_signal = sig;
}

static volatile sig_atomic_t is_released;
static volatile sig_atomic_t release_toggled;

static void on_release_signal(int sig)
{
    (void)sig;
    is_released = !is_released;
    release_toggled = true;
}

static const int loop_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

void gp_app_catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const struct sigaction release = {.sa_handler = on_release_signal};
    struct sigaction before;
    for (size_t i = 0; i < GP_ARRAY_LEN(loop_signals); i++)
        /* nohup and background shells ignore some signals: leave those ignored */
        if (sigaction(loop_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(loop_signals[i], loop_signals[i] == SIGUSR1 ? &release : &action, NULL);
}

bool gp_app_is_stopped(void)
{
    return stop_signal != 0;
}

_Noreturn void gp_app_end_by_signal(void)
{
    int sig = stop_signal;
    (void)signal(sig, SIG_DFL);
    (void)raise(sig);
    _exit(gp_err_exit_status(GP_EINTR));
}

/* Sleeps until the time is reached, a signal must be handled, or a descriptor is readable. Only
 * ppoll() unblocks the signals: otherwise one that arrives between the check of stop_signal and the
 * sleep would not be handled until the sleep is over. */
static void sleep_until(uint64_t mono_ns, struct pollfd fds[2])
{
    sigset_t ours;
    sigset_t before;
    (void)sigemptyset(&ours);
    for (size_t i = 0; i < GP_ARRAY_LEN(loop_signals); i++)
        (void)sigaddset(&ours, loop_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &ours, &before);
    uint64_t now_ns;
    int ready = 0;
    while (!stop_signal && !release_toggled && ready <= 0 &&
           (now_ns = gp_clock_mono_ns()) < mono_ns) {
        struct timespec rest = gp_clock_timespec(mono_ns - now_ns);
        ready = ppoll(fds, 2, &rest, &before);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

int gp_app_sleep(struct gp_sampler *sampler, uint64_t mono_ns, int fd, int out_fd)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = out_fd}};
    sleep_until(mono_ns, fds);
    /* SIGUSR1 is handled immediately, because its sender waits for the effect. */
    while (release_toggled) {
        release_toggled = false;
        if (sampler)
            gp_sampler_release(sampler, is_released);
        sleep_until(mono_ns, fds);
    }
    if (fds[1].revents & POLLERR)
        (void)raise(SIGPIPE);
    return stop_signal ? GP_EINTR : 0;
}

int gp_app_loop(struct gp_sampler *sampler, const struct gp_loop *loop,
                int (*on_sample)(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err),
                void *ctx, struct gp_err *err)
{
    gp_io_raise_file_limit(); /* files of processes stay open between samples */
    uint64_t start_ns = gp_clock_mono_ns();
    uint64_t next_ns = start_ns;
    uint64_t played_ns = 0; /* of a recording */
    bool partial = false;
    /* Signals terminate a single sample by default action. */
    if (loop->interval_ns)
        gp_app_catch_signals();
    for (uint64_t i = 0;; i++) {
        struct gp_snapshot *snapshot;
        int r = gp_sampler_tick(sampler, &snapshot, err);
        if (r == 0) {
            r = on_sample(snapshot, ctx, err);
            partial = snapshot->partial;
            gp_snapshot_free(snapshot);
        }
        if (r < 0)
            return r;
        if (!loop->interval_ns || (loop->count && i + 1 >= loop->count) ||
            gp_sampler_is_over(sampler))
            break;
        if (gp_sampler_is_recorded(sampler) && !gp_app_is_stopped()) {
            played_ns += loop->interval_ns;
            if (loop->duration_ns && played_ns >= loop->duration_ns)
                break;
            continue;
        }
        uint64_t now_ns = gp_clock_mono_ns();
        next_ns += loop->interval_ns;
        if (next_ns <= now_ns)
            next_ns +=
                (now_ns - next_ns) / loop->interval_ns * loop->interval_ns + loop->interval_ns;
        if (loop->duration_ns && next_ns - start_ns >= loop->duration_ns)
            break;
        if (gp_app_sleep(sampler, next_ns, -1, -1) < 0)
            return GP_EINTR;
    }
    return partial ? GP_EPARTIAL : 0;
}
