#include "jobs/output.h"

#include "base/clock.h"
#include "base/err.h"
#include "jobs/label.h"
#include "jobs/scan.h"
#include "jobs/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum {
    CHUNK = 65536,
    PIPE_SIZE = 1 << 18,
    TICK_MS = 50,    /* how often the settings of a terminal are checked */
    RECORD_MS = 300, /* lines up to this length may belong to a failure */
    FINISH_MS = 100,
    STREAMS = 2,
    REST_MAX = 2 * STREAMS * PIPE_SIZE, /* how much may be in transit when the job has exited */
};

struct stream {
    int from, to;         /* −1: unused, or at its end */
    int give;             /* the job's end, until it runs */
    int targets[STREAMS]; /* its number in the job; −1: none */
    bool is_terminal;
    struct termios settings; /* of the job's terminal, as last seen */
    struct gp_scan *scan;
    struct gp_label label;
    uint64_t fed_ns; /* when it last received something */
    bool is_busy;
};

struct gp_output {
    const struct gp_output_plan *plan;
    struct stream streams[STREAMS];
    struct termios before; /* of the terminal; restored at the end */
    bool was_changed;
    int stop[2]; /* closed for writing: the job has exited */
    pthread_t thread, owner;
    bool is_running;
    int lost;             /* the errno of a failed write, after which nothing is written; 0: none */
    pthread_mutex_t lock; /* protects the members below */
    bool is_abandoned;    /* nobody waits for the thread: what its callback uses may be gone */
    struct gp_output_news news;
    struct gp_pace pace;
    char chunk[CHUNK]; /* of the thread */
};

/* ---- findings ---- */

static void wake(struct gp_output *output)
{
    (void)pthread_mutex_unlock(&output->lock);
    (void)pthread_kill(output->owner, SIGCHLD);
}

static void began(void *context, const struct gp_incident *incident)
{
    struct gp_output *output = context;
    if (incident->failure.class == GP_FAILURE_SOFT)
        return;
    (void)pthread_mutex_lock(&output->lock);
    output->news.began = true;
    wake(output);
}

static void found(void *context, const struct gp_incident *incident)
{
    struct gp_output *output = context;
    struct gp_output_news *news = &output->news;
    size_t i = 0;
    if (incident->failure.class == GP_FAILURE_SOFT)
        return;
    (void)pthread_mutex_lock(&output->lock);
    while (i < news->count && news->found[i].failure.class != incident->failure.class)
        i++;
    news->found[i] = *incident;
    news->count += i == news->count;
    wake(output);
}

static void line(void *context, const char *text)
{
    struct gp_output *output = context;
    const struct gp_output_plan *plan = output->plan;
    (void)pthread_mutex_lock(&output->lock);
    if (plan->on_line && !output->is_abandoned)
        plan->on_line(plan->on_line_context, text);
    if (plan->pace.step)
        gp_pace_add(&output->pace, plan->pace.step, text, gp_clock_mono_ns());
    if (!plan->until || regexec(plan->until, text, 0, NULL, 0) != 0) {
        (void)pthread_mutex_unlock(&output->lock);
        return;
    }
    output->news.until = true;
    wake(output);
}

bool gp_output_take(struct gp_output *output, struct gp_output_news *ret)
{
    (void)pthread_mutex_lock(&output->lock);
    const struct gp_output_news *news = &output->news;
    bool any = news->began || news->until || news->resized || news->count > 0;
    if (any)
        *ret = output->news;
    output->news.began = output->news.until = output->news.resized = false;
    output->news.count = 0;
    (void)pthread_mutex_unlock(&output->lock);
    return any;
}

struct gp_pace gp_output_pace(struct gp_output *output)
{
    (void)pthread_mutex_lock(&output->lock);
    const struct gp_pace pace = output->pace;
    (void)pthread_mutex_unlock(&output->lock);
    return pace;
}

/* ---- the log ---- */

void gp_output_log_open(struct gp_output_log *log, const char *folder)
{
    const struct gp_outfile_config config = {.path = log->path, .mode = 0600};
    int n = snprintf(log->path, sizeof(log->path), "%s/output.log", folder);
    if (n < 0 || (size_t)n >= sizeof(log->path))
        (void)gp_err_set(&log->err, GP_EIO, "the name of its directory is too long");
    else
        log->is_open = gp_outfile_open(&log->file, &config, &log->err) == 0;
}

void gp_output_log_close(struct gp_output_log *log)
{
    if (log->is_open)
        (void)!gp_outfile_close(&log->file, &log->err);
    log->is_open = false;
}

static void keep(struct gp_output_log *log, const char *bytes, size_t size)
{
    if (!log || !log->is_open || gp_outfile_write(&log->file, bytes, size, &log->err) == 0)
        return;
    (void)!gp_outfile_close(&log->file, NULL);
    log->is_open = false;
}

/* ---- channels ---- */

/* 0 or −errno. The reader may have made the descriptor non-blocking. */
static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        struct pollfd room = {fd, POLLOUT, 0};
        ssize_t n = write(fd, bytes, size);
        if (n >= 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (errno == EAGAIN) {
            (void)poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

/* A terminal like `like`, but without output processing: that happens in the other one. */
static int open_terminal(struct gp_output *output, struct stream *stream, int like)
{
    char name[64];
    struct winsize size;
    stream->from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (stream->from < 0 || grantpt(stream->from) != 0 || unlockpt(stream->from) != 0 ||
        ptsname_r(stream->from, name, sizeof(name)) != 0)
        return -1;
    stream->give = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (stream->give < 0 || tcgetattr(like, &stream->settings) != 0)
        return -1;
    output->before = stream->settings;
    stream->settings.c_oflag = OPOST; /* changes nothing by itself; shows who turns it off */
    stream->is_terminal = true;
    if (ioctl(like, TIOCGWINSZ, &size) == 0)
        (void)ioctl(stream->from, TIOCSWINSZ, &size);
    return tcsetattr(stream->give, TCSANOW, &stream->settings);
}

static int open_pipe(struct stream *stream)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    stream->from = fds[0];
    stream->give = fds[1];
    return 0;
}

static bool is_same_file(int a, int b)
{
    struct stat x;
    struct stat y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int write_labelled(void *context, const char *bytes, size_t size)
{
    const struct stream *stream = context;
    return write_all(stream->to, bytes, size);
}

static int open_stream(struct gp_output *output, struct stream *stream, int fd)
{
    const struct gp_output_plan *plan = output->plan;
    const bool needs_lines = plan->until || plan->on_line || plan->pace.step;
    const struct gp_scan_calls calls = {began, found, needs_lines ? line : NULL, output};
    stream->to = fd;
    stream->targets[0] = fd;
    stream->scan = gp_scan_new(&calls);
    if (!stream->scan)
        return -1;
    stream->label =
        (struct gp_label){.text = plan->label, .write = write_labelled, .context = stream};
    return isatty(fd) && !plan->label ? open_terminal(output, stream, fd) : open_pipe(stream);
}

void gp_output_give(const struct gp_output *output, int fds[3])
{
    for (size_t i = 0; i < STREAMS; i++)
        for (size_t k = 0; k < STREAMS; k++)
            if (output->streams[i].targets[k] >= 0)
                fds[output->streams[i].targets[k]] = output->streams[i].give;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void close_streams(struct gp_output *output)
{
    for (size_t i = 0; i < STREAMS; i++) {
        close_fd(&output->streams[i].from);
        close_fd(&output->streams[i].give);
    }
}

/* ---- the thread ---- */

/* A program that changes its terminal, such as an editor, means the one the user sees. */
static void follow_settings(struct gp_output *output, struct stream *stream)
{
    struct termios now;
    if (!stream->is_terminal || stream->from < 0 || tcgetattr(stream->from, &now) != 0 ||
        (now.c_lflag == stream->settings.c_lflag && now.c_iflag == stream->settings.c_iflag &&
         now.c_oflag == stream->settings.c_oflag &&
         memcmp(now.c_cc, stream->settings.c_cc, sizeof(now.c_cc)) == 0))
        return;
    stream->settings = now;
    now.c_oflag = now.c_oflag & OPOST ? output->before.c_oflag : 0;
    output->was_changed = tcsetattr(stream->to, TCSANOW, &now) == 0 || output->was_changed;
}

/* The terminal was resized: the job may have received its own signal before its terminal had the
 * new size. */
static void follow_size(struct gp_output *output, const struct stream *stream)
{
    struct winsize here;
    struct winsize there;
    if (!stream->is_terminal || stream->from < 0 || ioctl(stream->to, TIOCGWINSZ, &here) != 0 ||
        ioctl(stream->from, TIOCGWINSZ, &there) != 0 ||
        (here.ws_row == there.ws_row && here.ws_col == there.ws_col) ||
        ioctl(stream->from, TIOCSWINSZ, &here) != 0)
        return;
    (void)pthread_mutex_lock(&output->lock);
    output->news.resized = true;
    wake(output);
}

static int send(struct gp_output *output, struct stream *stream, size_t size)
{
    return output->plan->label ? gp_label_add(&stream->label, output->chunk, size)
                               : write_all(stream->to, output->chunk, size);
}

static void end_label(struct gp_output *output, struct gp_label *label,
                      int (*act)(struct gp_label *))
{
    int r = label->text ? act(label) : 0;
    if (r < 0 && r != -EPIPE)
        output->lost = -r;
}

/* An incomplete line, such as a prompt, is examined as well. */
static void flush_old(struct gp_output *output)
{
    for (size_t i = 0; i < STREAMS; i++) {
        struct stream *stream = &output->streams[i];
        if (stream->label.size > 0 && gp_clock_mono_ns() - stream->fed_ns >= TICK_MS * GP_NS_PER_MS)
            end_label(output, &stream->label, gp_label_flush);
    }
}

/* Anything but a pipe is left unchanged. */
static void enlarge(int fd)
{
    int size = fcntl(fd, F_GETPIPE_SZ);
    if (size > 0 && size < PIPE_SIZE)
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
}

/* A job that fills a pipe gets a larger one, which needs fewer context switches. Others keep
 * theirs: the kernel limits the total size of a user's pipes. */
static void note_busy(struct stream *stream)
{
    if (stream->is_busy)
        return;
    stream->is_busy = true;
    enlarge(stream->from);
    enlarge(stream->to);
}

/* False at end of file. */
static bool hand_on(struct gp_output *output, struct stream *stream, size_t *ret_size)
{
    char *chunk = output->chunk;
    ssize_t n = read(stream->from, chunk, CHUNK);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0) /* a terminal that is no longer open anywhere fails with EIO */
        return false;
    if (n == CHUNK)
        note_busy(stream);
    gp_scan_feed(stream->scan, chunk, (size_t)n);
    keep(output->plan->log, chunk, (size_t)n);
    if (output->plan->tail)
        gp_tail_add(output->plan->tail, chunk, (size_t)n);
    stream->fed_ns = output->plan->label ? gp_clock_mono_ns() : 0;
    int r = send(output, stream, (size_t)n);
    if (r < 0 && r != -EPIPE)
        output->lost = -r;
    *ret_size += (size_t)n;
    return r == 0; /* there is no reader: let the command know */
}

static bool has_open_incident(const struct gp_output *output)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (output->streams[i].scan && gp_scan_is_open(output->streams[i].scan))
            return true;
    return false;
}

static bool has_terminal(const struct gp_output *output)
{
    return output->streams[0].is_terminal || output->streams[1].is_terminal;
}

/* How long the thread may wait for more before it has other work to do. */
static int patience_ms(const struct gp_output *output)
{
    bool has_rest = output->streams[0].label.size > 0 || output->streams[1].label.size > 0;
    return has_rest || has_open_incident(output) || has_terminal(output) ? TICK_MS : -1;
}

static void finish_scans(struct gp_output *output)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (output->streams[i].scan)
            gp_scan_finish(output->streams[i].scan);
}

/* Until both are at end of file, or the job has exited and nothing more arrives. */
static void *relay(void *context)
{
    struct gp_output *output = context;
    struct pollfd fds[STREAMS + 1];
    bool has_ended = false;
    size_t rest = 0;
    unsigned quiet_ms = 0;
    while (rest < REST_MAX) {
        for (size_t i = 0; i < STREAMS; i++)
            fds[i] = (struct pollfd){output->streams[i].from, POLLIN, 0};
        fds[STREAMS] = (struct pollfd){has_ended ? -1 : output->stop[0], POLLIN, 0};
        if (fds[0].fd < 0 && fds[1].fd < 0)
            break;
        int n = poll(fds, STREAMS + 1, has_ended ? 0 : patience_ms(output));
        for (size_t i = 0; i < STREAMS; i++) {
            follow_settings(output, &output->streams[i]);
            follow_size(output, &output->streams[i]);
        }
        if (n == 0 && has_ended)
            break;
        flush_old(output);
        quiet_ms = n == 0 ? quiet_ms + TICK_MS : 0;
        if (quiet_ms >= RECORD_MS)
            finish_scans(output);
        has_ended = has_ended || fds[STREAMS].revents;
        for (size_t i = 0; i < STREAMS; i++) {
            size_t size = 0;
            if (fds[i].fd >= 0 && fds[i].revents && !hand_on(output, &output->streams[i], &size))
                close_fd(&output->streams[i].from);
            rest += has_ended ? size : 0;
        }
    }
    for (size_t i = 0; i < STREAMS; i++)
        end_label(output, &output->streams[i].label, gp_label_finish);
    finish_scans(output);
    return NULL;
}

/* 0 or an errno. */
static int start_thread(struct gp_output *output)
{
    sigset_t all;
    sigset_t before;
    output->owner = pthread_self();
    (void)sigfillset(&all); /* including the one that a terminal sends to background processes */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&output->thread, NULL, relay, output);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    output->is_running = e == 0;
    return e;
}

/* 0, or −1 with errno. */
static int open_streams(struct gp_output *output)
{
    int to = output->plan->to;
    struct stream *streams = output->streams;
    if (pipe2(output->stop, O_CLOEXEC) != 0)
        return -1;
    int r = open_stream(output, &streams[0], to < 0 ? STDOUT_FILENO : to);
    streams[0].targets[0] = STDOUT_FILENO;
    if (r == 0 && (to >= 0 || is_same_file(STDOUT_FILENO, STDERR_FILENO)))
        streams[0].targets[1] = STDERR_FILENO;
    else if (r == 0)
        r = open_stream(output, &streams[1], STDERR_FILENO);
    return r;
}

int gp_output_open(struct gp_output **ret, const struct gp_output_plan *plan, struct gp_err *err)
{
    struct gp_output *output = calloc(1, sizeof(*output));
    *ret = output;
    if (!output)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    output->plan = plan;
    (void)pthread_mutex_init(&output->lock, NULL);
    output->stop[0] = output->stop[1] = -1;
    for (size_t i = 0; i < STREAMS; i++)
        output->streams[i] = (struct stream){.from = -1, .to = -1, .give = -1, .targets = {-1, -1}};
    gp_failure_prepare();
    int e = open_streams(output) == 0 ? start_thread(output) : errno;
    if (e == 0)
        return 0;
    gp_output_free(output);
    *ret = NULL;
    return gp_err_system(err, e, GP_EIO, "cannot capture the command's output");
}

void gp_output_release(struct gp_output *output)
{
    for (size_t i = 0; i < STREAMS; i++)
        close_fd(&output->streams[i].give);
}

int gp_output_finish(struct gp_output *output, bool (*is_enough)(void))
{
    close_fd(&output->stop[1]);
    while (output->is_running) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until = gp_clock_timespec((uint64_t)until.tv_sec * GP_NS_PER_S + (uint64_t)until.tv_nsec +
                                  FINISH_MS * GP_NS_PER_MS);
        if (pthread_timedjoin_np(output->thread, NULL, &until) == 0)
            output->is_running = false;
        else if (is_enough())
            break;
    }
    (void)pthread_mutex_lock(&output->lock);
    output->is_abandoned = output->is_running;
    (void)pthread_mutex_unlock(&output->lock);
    for (size_t i = 0; i < STREAMS; i++)
        if (output->was_changed && output->streams[i].is_terminal)
            (void)tcsetattr(output->streams[i].to, TCSANOW, &output->before);
    return output->is_running ? 0 : output->lost;
}

void gp_output_free(struct gp_output *output)
{
    if (!output ||
        output->is_running) /* it is still blocked on the reader, until this process exits */
        return;
    close_streams(output);
    close_fd(&output->stop[0]);
    close_fd(&output->stop[1]);
    for (size_t i = 0; i < STREAMS; i++)
        gp_scan_free(output->streams[i].scan);
    (void)pthread_mutex_destroy(&output->lock);
    free(output);
}
