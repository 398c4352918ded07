#include "jobs/record.h"

#include "base/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LATELY_S = 3600 };

int gp_record_is(const struct dirent *entry)
{
    static const char digits[] = "0123456789";
    const char *name = entry->d_name;
    return strspn(name, digits) == 8 && name[8] == '-' && strspn(name + 9, digits) == 6 &&
           name[15] == '-' && name[16] && name[16 + strspn(name + 16, digits)] == '\0';
}

/* Whether run.json says that the job has ended. */
static bool has_ended(int record)
{
    const char *state = NULL;
    int fd = openat(record, "run.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL; /* json_loadfd() reads byte by byte */
    json_t *run = file ? json_loadf(file, 0, NULL) : NULL;
    (void)json_unpack(run, "{s:s}", "state", &state);
    const bool ended = state && strcmp(state, "ended") == 0;
    json_decref(run);
    if (file)
        (void)fclose(file);
    else if (fd >= 0)
        (void)close(fd);
    return ended;
}

/* Whether a file in a directory, or in that of a step below it, has changed lately. */
static bool has_news(int dir, bool is_step)
{
    const struct dirent *entry;
    struct stat st;
    bool found = false;
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again >= 0 ? fdopendir(again) : NULL;
    if (!listing && again >= 0)
        (void)close(again);
    while (!found && listing && (entry = readdir(listing))) {
        if (strcmp(entry->d_name, "..") == 0 ||
            fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        found = llabs((long long)(time(NULL) - st.st_mtim.tv_sec)) < LATELY_S;
        if (found || is_step || !S_ISDIR(st.st_mode) || strcmp(entry->d_name, ".") == 0)
            continue;
        int step = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        found = step >= 0 && has_news(step, true);
        if (step >= 0)
            (void)close(step);
    }
    if (listing)
        (void)closedir(listing);
    return found;
}

/* Whether its job may still run: here, where the pid may have been recycled, or on another machine
 * with the same home. A job that runs writes samples every few seconds. */
static bool is_in_use(int runs, const char *name)
{
    if (kill((pid_t)strtol(name + 16, NULL, 10), 0) == 0 || errno == EPERM)
        return true;
    int fd = openat(runs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool is_used = fd >= 0 && !has_ended(fd) && has_news(fd, false);
    if (fd >= 0)
        (void)close(fd);
    return is_used;
}

static void remove_record(int runs, const char *name)
{
    const struct dirent *entry;
    int fd = openat(runs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(fd, entry->d_name, 0) != 0)
            remove_record(fd, entry->d_name); /* that of a step */
    (void)closedir(dir);
    (void)unlinkat(runs, name, AT_REMOVEDIR);
}

static void remove_old(const char *runs)
{
    struct dirent **entries;
    int count = scandir(runs, &entries, gp_record_is, alphasort);
    int fd = open(runs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < count; i++) {
        if (fd >= 0 && i < count - GP_RECORDS_KEPT && !is_in_use(fd, entries[i]->d_name))
            remove_record(fd, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    if (fd >= 0)
        (void)close(fd);
}

bool gp_record_find_runs(char ret[GP_PATH_SIZE])
{
    return gp_io_user_folder(ret, "XDG_STATE_HOME", ".local/state", "runs");
}

static bool find_own(struct gp_record *record, uint64_t wall_ns)
{
    char runs[GP_PATH_SIZE];
    char stamp[32];
    struct tm tm;
    time_t seconds = (time_t)(wall_ns / GP_NS_PER_S);
    if (!gp_record_find_runs(runs) || !localtime_r(&seconds, &tm))
        return false;
    remove_old(runs);
    (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    int n = snprintf(record->path, sizeof(record->path), "%s/%s-%d", runs, stamp, (int)getpid());
    return n > 0 && (size_t)n < sizeof(record->path);
}

int gp_record_open(struct gp_record *record, const char *dir, uint64_t wall_ns, struct gp_err *err)
{
    *record = (struct gp_record){.path = ""};
    if (!dir && !find_own(record, wall_ns)) {
        record->path[0] = '\0';
        return gp_err_set(err, GP_EFAIL,
                          "no record is kept: there is no home directory of your own (HOME); --dir "
                          "names another place");
    }
    if (dir)
        (void)snprintf(record->path, sizeof(record->path), "%s", dir);
    int r = gp_io_make_folders(record->path);
    if (r == 0)
        return 0;
    r = gp_err_set(err, gp_err_code(-r, GP_EIO), "%scannot create the directory %s: %s%s",
                   dir ? "" : "no record is kept: ", record->path, strerror(-r),
                   dir ? "" : "; --dir names another place");
    record->path[0] = '\0';
    return r;
}

static int join(char path[GP_PATH_SIZE], const struct gp_record *record, const char *name,
                struct gp_err *err)
{
    int n = snprintf(path, GP_PATH_SIZE, "%s/%s", record->path, name);
    return n > 0 && n < GP_PATH_SIZE ? 0 : gp_err_set(err, GP_EIO, "%s is too long", record->path);
}

int gp_record_write(struct gp_record *record, const char *name, const char *text, size_t size,
                    struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    if (!record->path[0])
        return 0;
    int r = join(path, record, name, err);
    return r < 0 ? r : gp_outfile_replace(path, 0600, text, size, false, err);
}

static int open_samples(struct gp_record *record, struct gp_err *err)
{
    const struct gp_outfile_config config = {.path = record->samples_path, .mode = 0600};
    int r = join(record->samples_path, record, "samples.csv", err);
    if (r == 0)
        r = gp_outfile_open(&record->samples, &config, err);
    record->has_samples = r == 0;
    return r;
}

int gp_record_add_samples(struct gp_record *record, const char *lines, size_t size,
                          struct gp_err *err)
{
    int r = 0;
    if (!record->path[0] || record->has_failed)
        return 0;
    if (!record->has_samples)
        r = open_samples(record, err);
    if (r == 0)
        r = gp_outfile_write(&record->samples, lines, size, err);
    if (r < 0) {
        gp_record_close(record);
        record->has_failed = true;
    }
    return r;
}

void gp_record_close(struct gp_record *record)
{
    if (record->has_samples)
        (void)!gp_outfile_close(&record->samples, NULL);
    record->has_samples = false;
}
