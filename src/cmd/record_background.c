#include "cmd/record_background.h"

#include "cmd/app.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "tape/before.h"
#include "tape/bytes.h"
#include "tape/moments.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOP_S = 30, START_S = 30, LOOK_MS = 20, RECENT_US = 1000000 };

int gp_record_own_file(char ret[GP_PATH_SIZE], struct gp_err *err)
{
    char folder[GP_PATH_SIZE];
    if (!gp_io_user_folder(folder, "XDG_STATE_HOME", ".local/state", "record"))
        return gp_err_set(err, GP_EIO, "you have no home directory for the recording; give a file");
    int n = snprintf(ret, GP_PATH_SIZE, "%s/gpulse.tape", folder);
    return n > 0 && n < GP_PATH_SIZE
               ? 0
               : gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
}

int gp_record_make_own_folder(char ret[GP_PATH_SIZE], struct gp_err *err)
{
    char folder[GP_PATH_SIZE];
    const int r = gp_record_own_file(ret, err);
    if (r < 0)
        return r;
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(ret, '/') - ret), ret);
    const int made = gp_io_make_folders(folder);
    return made < 0 ? gp_err_system(err, -made, GP_EIO, "cannot create '%.200s'", folder) : 0;
}

bool gp_record_find_file(char ret[GP_PATH_SIZE])
{
    char folder[GP_PATH_SIZE];
    if (gp_io_user_folder(folder, "XDG_STATE_HOME", ".local/state", "record") &&
        snprintf(ret, GP_PATH_SIZE, "%s/gpulse.tape", folder) < GP_PATH_SIZE &&
        access(ret, F_OK) == 0)
        return true;
    (void)snprintf(ret, GP_PATH_SIZE, "%s", GP_RECORD_SHARED_FILE);
    return access(ret, F_OK) == 0;
}

static void look_again_soon(void)
{
    const struct timespec moment = {.tv_nsec = LOOK_MS * (long)GP_NS_PER_MS};
    (void)nanosleep(&moment, NULL);
}

static int say(const char *text, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_adds(&sb, text);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* ---- start ---- */

/* The child's part: it becomes independent of the terminal and runs gpulse-record again. What it
 * prints goes to the pipe until it records. */
static _Noreturn void run_in_background(const struct gp_record_options *o, int errors)
{
    char program[GP_PATH_SIZE];
    char file[GP_PATH_SIZE + 16];
    char options[5][64];
    char before[64];
    static const char *const names[] = {"interval", "keep", "size", "age", "duration"};
    const uint64_t values[] = {o->interval_ns, o->keep_ns, o->size, o->age_ns, o->duration_ns};
    char quiet[] = "--quiet";
    struct gp_err err;
    char shared[] = "--shared";
    char *argv[11];
    int argc = 0;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(errors, 2) < 0 ||
        chdir("/") < 0 || gp_io_find_companion("", "gpulse-record", program, &err) < 0)
        _exit(1);
    (void)snprintf(file, sizeof(file), "--output=%s", o->file);
    argv[argc++] = program;
    argv[argc++] = quiet;
    argv[argc++] = file;
    if (o->shared)
        argv[argc++] = shared;
    if (o->before) {
        (void)snprintf(before, sizeof(before), "--before=%.40s", o->before);
        argv[argc++] = before;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        if (!values[i])
            continue;
        (void)snprintf(options[i], sizeof(options[i]), "--%s=%llu%s", names[i],
                       (unsigned long long)values[i], i == 2 ? "" : "ns");
        argv[argc++] = options[i];
    }
    argv[argc] = NULL;
    gp_app_export();
    (void)execv(program, argv);
    _exit(1);
}

/* Passes on what it said when it failed. */
static int pass_on_failure(int from, struct gp_err *err)
{
    static const char prefix[] = "gpulse: ";
    char text[400];
    ssize_t n = read(from, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    const char *words = strncmp(text, prefix, strlen(prefix)) == 0 ? text + strlen(prefix) : text;
    return gp_err_set(err, GP_EFAIL, "%s", *words ? words : "the recorder stopped at once");
}

static int await_start(const char *file, pid_t child, int from, struct gp_err *err)
{
    const uint64_t end_ns = gp_clock_mono_ns() + START_S * GP_NS_PER_S;
    int status;
    while (gp_clock_mono_ns() < end_ns) {
        if (waitpid(child, &status, WNOHANG) == child)
            return pass_on_failure(from, err);
        if (gp_store_writer(file) == child)
            return 0;
        look_again_soon();
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
    return gp_err_set(err, GP_ETIMEOUT, "the recorder does not start");
}

int gp_record_start(const struct gp_record_options *o, struct gp_err *err)
{
    int pipe_fds[2];
    char full[GP_PATH_SIZE];
    struct gp_record_options resolved = *o;
    char words[GP_PATH_SIZE + 64];
    if (gp_store_writer(o->file) > 0)
        return gp_err_set(err, GP_EBUSY,
                          "already recording to '%.200s'; gpulse record stop stops that", o->file);
    /* it runs in / */
    if (o->file[0] != '/') {
        if (!getcwd(full, sizeof(full)) || strlen(full) + strlen(o->file) + 2 > sizeof(full))
            return gp_err_set(err, GP_EUSAGE, "the path of the recording is too long");
        (void)snprintf(full + strlen(full), sizeof(full) - strlen(full), "/%s", o->file);
        resolved.file = full;
    }
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return gp_err_set(err, GP_EFAIL, "cannot start the recorder: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0)
        run_in_background(&resolved, pipe_fds[1]);
    (void)close(pipe_fds[1]);
    int r = child < 0 ? gp_err_set(err, GP_EFAIL, "cannot start the recorder: %s", strerror(errno))
                      : await_start(resolved.file, child, pipe_fds[0], err);
    (void)close(pipe_fds[0]);
    if (r < 0)
        return r;
    (void)snprintf(words, sizeof(words), "recording to %s (pid %d)\n", resolved.file, (int)child);
    return say(words, err);
}

/* ---- stop and status ---- */

int gp_record_stop(const char *file, struct gp_err *err)
{
    const pid_t writer = gp_store_writer(file);
    const uint64_t end_ns = gp_clock_mono_ns() + STOP_S * GP_NS_PER_S;
    if (writer <= 0)
        return gp_err_set(err, GP_EFAIL, "no recorder is writing '%.200s'", file);
    if (kill(writer, SIGTERM) < 0)
        return gp_err_set(err, GP_EPERM, "cannot stop process %d: %s", (int)writer,
                          strerror(errno));
    while (gp_store_writer(file) == writer) {
        if (gp_clock_mono_ns() > end_ns)
            return gp_err_set(err, GP_ETIMEOUT, "process %d does not stop", (int)writer);
        look_again_soon();
    }
    return say("stopped\n", err);
}

static void add_time(struct gp_strbuf *sb, const struct gp_tape *tape, const char *name, int64_t t)
{
    char text[GP_RFC3339_SIZE];
    gp_clock_plain((uint64_t)gp_tape_wall(tape, t) * GP_NS_PER_US, text);
    gp_strbuf_addf(sb, "%-19s %.19s\n", name, text);
}

/* Who records is only known to the user who does; but the last sample was taken just now. */
static bool seems_recorded(const char *file, const struct gp_tape *tape,
                           const struct gp_tape_bounds *bounds)
{
    struct stat st;
    const int64_t now_us = (int64_t)(gp_clock_wall_ns() / GP_NS_PER_US);
    const int64_t age_us = gp_minus(now_us, gp_tape_wall(tape, bounds->last));
    return stat(file, &st) == 0 && st.st_uid != geteuid() && age_us >= 0 &&
           age_us / 3 <= RECENT_US + bounds->interval_us;
}

int gp_record_status(const char *file, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_tape_bounds bounds;
    struct gp_tape *tape = NULL;
    struct gp_tape_contents contents;
    const pid_t writer = gp_store_writer(file);
    if (writer <= 0 && access(file, F_OK) < 0 && errno == ENOENT)
        return gp_err_set(err, GP_EIO,
                          "nothing is recorded in '%.200s'; gpulse record start begins", file);
    int r = gp_tape_open(file, &tape, err);
    if (r == 0)
        r = gp_tape_bounds(tape, &bounds, err);
    if (r == 0)
        r = gp_tape_contents(tape, &contents, err);
    gp_strbuf_addf(&sb, "%-19s %s\n", "file", file);
    if (writer > 0)
        gp_strbuf_addf(&sb, "%-19s yes, by process %d\n", "recording", (int)writer);
    else
        gp_strbuf_addf(&sb, "%-19s %s\n", "recording",
                       r == 0 && seems_recorded(file, tape, &bounds) ? "yes, by another user"
                                                                     : "no");
    if (r == 0) {
        add_time(&sb, tape, "from", bounds.first);
        add_time(&sb, tape, "to", bounds.last);
        gp_strbuf_addf(&sb, "%-19s %g s\n", "interval", (double)bounds.interval_us / 1e6);
        if (bounds.samples >= 0)
            add_time(&sb, tape, "every sample since", bounds.samples);
        gp_strbuf_addf(&sb, "%-19s %.1f MiB\n", "size", (double)contents.size / (1 << 20));
        gp_strbuf_addf(&sb, "%-19s %lld GPU%s, %lld process%s, %lld event%s\n", "contains",
                       (long long)contents.gpus, contents.gpus == 1 ? "" : "s",
                       (long long)contents.processes, contents.processes == 1 ? "" : "es",
                       (long long)contents.events, contents.events == 1 ? "" : "s");
    }
    if (r == 0 && contents.moments.incidents > 0)
        gp_strbuf_addf(&sb, "%-19s %lld, with %lld samples at %d Hz around %s\n", "incidents",
                       (long long)contents.moments.incidents, (long long)contents.moments.samples,
                       1000000 / GP_BEFORE_EVERY_US,
                       contents.moments.incidents == 1 ? "it" : "them");
    if (r < 0 && writer > 0) {
        gp_strbuf_adds(&sb, "no sample is stored yet\n");
        r = 0;
    }
    if (r == 0)
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_tape_close(tape);
    gp_strbuf_fini(&sb);
    return r;
}
