#include "doctor/tables_load.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "doctor/tables.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TABLES = 64, MOST_BYTES = 4 << 20, SECONDS_PER_DAY = 86400 };

/* A table that is built in, or read and not in use yet. */
struct staged {
    const void *rows;
    size_t count;
};

static struct gp_tables_state state;
static struct gp_arena arena; /* of the tables in use; lives as long as the process */
static struct staged built_in[MOST_TABLES];

/* ---- files that nobody else can change ---- */

/* `is_last`: the folder of tables, or a file in it. Above it, a folder that all may write to will
 * do if they cannot rename what is in it, like /tmp. */
static const char *distrust(const struct stat *st, bool is_last)
{
    /* With a umask of 002 all is writable for the group, which is harmless if it is the user's. */
    bool is_own_group = st->st_uid == geteuid() && st->st_gid == getegid() &&
                        st->st_gid == st->st_uid && st->st_uid != 0;
    bool is_shared = st->st_mode & (is_own_group ? S_IWOTH : S_IWGRP | S_IWOTH);
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "belongs to another user";
    if (is_shared && (is_last || !(st->st_mode & S_ISVTX)))
        return "others can write to it; run chmod go-w on it";
    return NULL;
}

/* Opens a folder if it and all folders above it can be trusted; links in the path are resolved
 * first, so that their targets are judged. A descriptor, or GP_E*. */
static int open_folder(const char *path, struct gp_err *err)
{
    struct stat st;
    char *real = realpath(path, NULL);
    if (!real)
        return gp_err_system(err, errno, GP_EIO, "%s", path);
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    for (char *name = real, *end; r == 0 && *name; name = end) {
        name += strspn(name, "/");
        end = name + strcspn(name, "/");
        bool is_last = *end == '\0';
        if (!*name)
            break;
        *end = '\0';
        int next =
            openat(fd, name, (is_last ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const char *reason =
            next < 0 || fstat(next, &st) < 0 ? strerror(errno) : distrust(&st, is_last);
        if (fd >= 0)
            (void)close(fd);
        fd = next;
        if (!is_last)
            *end = '/';
        if (reason)
            r = gp_err_set(err, GP_EPERM, "%.*s: %s", (int)(end - real), real, reason);
    }
    free(real);
    if (r < 0 && fd >= 0)
        (void)close(fd);
    return r < 0 ? r : fd;
}

/* Why a file is not read; NULL: it may be. */
static const char *refusal(int fd, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "not a regular file";
    if (st->st_size > MOST_BYTES)
        return "larger than 4 MiB";
    if (st->st_size > 0 && lseek(fd, 0, SEEK_HOLE) < st->st_size)
        return "has holes";
    return distrust(st, true);
}

/* Reads a file of the folder, with a NUL after it. 1: there is none. */
static int read_file(int folder, const char *path, struct gp_arena *to, char **ret,
                     size_t *ret_size, struct gp_err *err)
{
    struct stat st;
    int fd = openat(folder, strrchr(path, '/') + 1,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 1;
    const char *reason = fd < 0 || fstat(fd, &st) < 0 ? strerror(errno) : refusal(fd, &st);
    char *text = reason ? NULL : gp_arena_alloc(to, (size_t)st.st_size + 1, 1);
    size_t size = 0;
    ssize_t n = 1;
    if (!reason && !text)
        reason = strerror(ENOMEM);
    while (!reason && n > 0 && size < (size_t)st.st_size) {
        n = pread(fd, text + size, (size_t)st.st_size - size, (off_t)size);
        if (n < 0)
            reason = strerror(errno);
        size += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        (void)close(fd);
    *ret = text;
    *ret_size = size;
    return reason ? gp_err_set(err, GP_EIO, "%s: %s", path, reason) : 0;
}

/* ---- dates ---- */

/* Days since 1970 of "2026-11-28"; −1: it is no date. */
static long days_of(const char *date)
{
    struct tm tm = {0};
    char after;
    if (sscanf(date, "%4d-%2d-%2d%c", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &after) != 3 ||
        strlen(date) != GP_TABLES_DATE - 1)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    struct tm wanted = tm;
    time_t seconds = timegm(&tm);
    bool is_date = tm.tm_mon == wanted.tm_mon && tm.tm_mday == wanted.tm_mday && seconds > 0;
    return is_date ? (long)(seconds / SECONDS_PER_DAY) : -1;
}

static long today(void)
{
    return (long)(gp_clock_wall_ns() / GP_NS_PER_S / SECONDS_PER_DAY);
}

static int read_date(int folder, const char *path, char ret[GP_TABLES_DATE], struct gp_err *err)
{
    struct gp_arena scratch = {0};
    char *text;
    size_t size;
    int r = read_file(folder, path, &scratch, &text, &size, err);
    if (r > 0)
        r = gp_err_set(err, GP_EFORMAT,
                       "%s: missing; it contains the date of the tables, such as %s", path,
                       gp_tables_built_in_date);
    if (r == 0) {
        text[strcspn(text, "\r\n")] = '\0';
        long days = days_of(text);
        if (days < 0)
            r = gp_err_set(err, GP_EFORMAT, "%s:1: '%.20s' is no date; write it as %s", path, text,
                           gp_tables_built_in_date);
        else if (days > today() + 1)
            r = gp_err_set(err, GP_EFORMAT, "%s:1: %s is in the future", path, text);
        else
            memcpy(ret, text, GP_TABLES_DATE);
    }
    gp_arena_fini(&scratch);
    return r;
}

/* ---- a folder ---- */

/* A table that is not known is a misspelled one. */
static int check_names(int folder, const char *path, struct gp_err *err)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        if (fd >= 0)
            (void)close(fd);
        return gp_err_system(err, errno, GP_EIO, "%s", path);
    }
    for (struct dirent *entry; r == 0 && (entry = readdir(list));) {
        char *dot = strrchr(entry->d_name, '.');
        size_t i = 0;
        if (!dot || strcmp(dot, ".csv") != 0)
            continue;
        *dot = '\0';
        while (i < gp_table_count && strcmp(gp_tables[i].name, entry->d_name) != 0)
            i++;
        if (i == gp_table_count)
            r = gp_err_set(err, GP_EFORMAT, "%s/%.100s.csv: no table has this name", path,
                           entry->d_name);
    }
    (void)closedir(list);
    return r;
}

static int read_tables(int folder, const char *path, struct gp_arena *to,
                       struct staged staged[MOST_TABLES], struct gp_err *err)
{
    char file[GP_PATH_SIZE + 64];
    size_t found = 0;
    int r = check_names(folder, path, err);
    for (size_t i = 0; r == 0 && i < gp_table_count; i++) {
        char *text;
        size_t size;
        void *rows;
        (void)snprintf(file, sizeof(file), "%s/%s.csv", path, gp_tables[i].name);
        staged[i] = built_in[i];
        r = read_file(folder, file, to, &text, &size, err);
        if (r > 0) {
            r = 0;
            continue;
        }
        if (r == 0)
            r = gp_table_parse(&gp_tables[i], file, text, size, to, &rows, &staged[i].count, err);
        if (r == 0)
            staged[i].rows = rows;
        found++;
    }
    if (r == 0 && found == 0)
        r = gp_err_set(err, GP_EFORMAT, "%s: has no table, such as drivers.csv", path);
    return r;
}

static void use(const struct staged staged[MOST_TABLES])
{
    for (size_t i = 0; i < gp_table_count; i++) {
        memcpy(gp_tables[i].rows, &staged[i].rows, sizeof(staged[i].rows));
        *gp_tables[i].count = staged[i].count;
    }
}

/* Uses the tables of a folder if they are newer than `than`; NULL: whatever their date. */
static int take_folder(const char *path, const char *than, struct gp_err *err)
{
    char file[GP_PATH_SIZE + 64], date[GP_TABLES_DATE];
    struct staged staged[MOST_TABLES];
    struct gp_arena read = {0};
    int folder = open_folder(path, err);
    if (folder < 0)
        return folder;
    (void)snprintf(file, sizeof(file), "%s/DATE", path);
    int r = read_date(folder, file, date, err);
    bool is_wanted = r == 0 && (!than || strcmp(date, than) > 0);
    if (is_wanted)
        r = read_tables(folder, path, &read, staged, err);
    (void)close(folder);
    if (r < 0 || !is_wanted) {
        gp_arena_fini(&read);
        return r;
    }
    use(staged);
    gp_arena_fini(&arena);
    arena = read;
    memcpy(state.date, date, sizeof(date));
    (void)snprintf(state.folder, sizeof(state.folder), "%s", path);
    return 0;
}

static void note_refusal(const struct gp_err *err)
{
    (void)snprintf(state.refused, sizeof(state.refused), "%s", err->text);
}

/* ---- the choice ---- */

static struct staged now_in_use(const struct gp_table *table)
{
    struct staged now = {.count = *table->count};
    memcpy(&now.rows, table->rows, sizeof(now.rows));
    return now;
}

static void begin(void)
{
    _Static_assert(sizeof(state.date) == sizeof("2026-11-28"), "a date fits");
    for (size_t i = 0; i < gp_table_count && !built_in[i].rows; i++)
        built_in[i] = now_in_use(&gp_tables[i]);
    use(built_in);
    state = (struct gp_tables_state){0};
    (void)snprintf(state.date, sizeof(state.date), "%s", gp_tables_built_in_date);
}

int gp_tables_choose(const char *folder, struct gp_err *err)
{
    char paths[3][GP_PATH_SIZE] = {"", "/usr/share/gpulse/tables", ""};
    struct gp_err reason = {0};
    begin();
    if (folder && access(folder, F_OK) != 0)
        return gp_err_system(err, errno, GP_EUSAGE, "--tables: %s", folder);
    if (folder) {
        if (take_folder(folder, NULL, &reason) < 0)
            note_refusal(&reason);
        return 0;
    }
    if (gp_io_find_companion("", "tables", paths[0], NULL) < 0)
        paths[0][0] = '\0';
    if (!gp_io_user_folder(paths[2], "XDG_DATA_HOME", ".local/share", "tables"))
        paths[2][0] = '\0';
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++)
        if (paths[i][0] && access(paths[i], F_OK) == 0 &&
            take_folder(paths[i], state.date, &reason) < 0)
            note_refusal(&reason);
    return 0;
}

const struct gp_tables_state *gp_tables_state(void)
{
    if (!state.date[0])
        begin();
    return &state;
}

long gp_tables_age_days(void)
{
    return today() - days_of(gp_tables_state()->date);
}
