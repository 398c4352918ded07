#include "doctor/readers/journal.h"

#include "base/library.h"
#include "doctor/exam.h"
#include "doctor/lines.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ID_SIZE = 33,      /* 32 hexadecimal digits */
    MOST_FILES = 8,    /* a machine that logs much has many, one for some days each */
    MOST_UNITS = 256,  /* on a usual machine there are about 40 */
    UNIT_LINES = 128,  /* of each of them */
    USER_LINES = 1024, /* of all programs of the user together */
    ENTRY_LINES = 64,  /* of an entry: a program can log a whole text at once */
    LINE_SIZE = 8192,  /* the maximum length of a /dev/kmsg record */
};

const char gp_journal_kernel_command[] = "journalctl -k";
const char gp_journal_earlier_command[] = "journalctl -k -b -1"; /* or further back */

/* ---- libsystemd ---- */

struct sd_journal;

/* What sd_journal(3) describes; each returns −errno if it fails. */
struct api {
    int (*open_files)(struct sd_journal **ret, const char **paths, int flags);
    void (*close)(struct sd_journal *j);
    int (*add_match)(struct sd_journal *j, const void *data, size_t size);
    void (*flush_matches)(struct sd_journal *j);
    int (*seek_tail)(struct sd_journal *j);
    int (*seek_realtime_usec)(struct sd_journal *j, uint64_t us);
    int (*previous)(struct sd_journal *j);
    int (*previous_skip)(struct sd_journal *j, uint64_t skip);
    int (*next)(struct sd_journal *j);
    int (*get_data)(struct sd_journal *j, const char *field, const void **ret, size_t *ret_size);
    int (*get_realtime_usec)(struct sd_journal *j, uint64_t *ret);
    int (*get_monotonic_usec)(struct sd_journal *j, uint64_t *ret, void *ret_boot_id);
    int (*query_unique)(struct sd_journal *j, const char *field);
    int (*enumerate_unique)(struct sd_journal *j, const void **ret, size_t *ret_size);
};

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"sd_journal_open_files", offsetof(struct api, open_files)},
    {"sd_journal_close", offsetof(struct api, close)},
    {"sd_journal_add_match", offsetof(struct api, add_match)},
    {"sd_journal_flush_matches", offsetof(struct api, flush_matches)},
    {"sd_journal_seek_tail", offsetof(struct api, seek_tail)},
    {"sd_journal_seek_realtime_usec", offsetof(struct api, seek_realtime_usec)},
    {"sd_journal_previous", offsetof(struct api, previous)},
    {"sd_journal_previous_skip", offsetof(struct api, previous_skip)},
    {"sd_journal_next", offsetof(struct api, next)},
    {"sd_journal_get_data", offsetof(struct api, get_data)},
    {"sd_journal_get_realtime_usec", offsetof(struct api, get_realtime_usec)},
    {"sd_journal_get_monotonic_usec", offsetof(struct api, get_monotonic_usec)},
    {"sd_journal_query_unique", offsetof(struct api, query_unique)},
    {"sd_journal_enumerate_unique", offsetof(struct api, enumerate_unique)},
};

static bool bind_library(struct api *api)
{
    static const char *const names[] = {"libsystemd.so.0"};
    char reason[GP_LIBRARY_REASON];
    void *library = gp_library_open(NULL, names, GP_ARRAY_LEN(names), reason);
    for (size_t i = 0; library && i < GP_ARRAY_LEN(functions); i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            return false;
        memcpy((char *)api + functions[i].offset, &function, sizeof(function));
    }
    return library != NULL;
}

struct journal {
    struct gp_exam *exam;
    struct api api;
    struct sd_journal *j;
    char boot[sizeof("_BOOT_ID=") - 1 + ID_SIZE];
    unsigned user; /* who asks; 0: root, or unknown */
};

/* ---- the files ---- */

/* An id as journals have it, of a file with or without dashes. */
static bool read_id(const struct gp_exam *exam, const char *path, char ret[ID_SIZE])
{
    char line[64];
    size_t n = 0;
    if (!gp_files_line(&exam->files, path, line, sizeof(line)))
        return false;
    for (const char *p = line; *p && n < ID_SIZE - 1; p++)
        if (*p != '-')
            ret[n++] = *p;
    ret[n] = '\0';
    return n == ID_SIZE - 1 && strspn(ret, "0123456789abcdef") == n;
}

/* The user who asks: "sudo" says who called it. 0: root, or that is unknown. */
static unsigned user_of(const struct gp_exam *exam)
{
    const char *caller = gp_machine_variable(&exam->machine, "SUDO_UID");
    if (caller && (geteuid() == 0 || !exam->files.is_here))
        return (unsigned)strtoul(caller, NULL, 10);
    return exam->files.is_here ? geteuid() : 0;
}

/* "system.journal", "system@ID-FROM-TO.journal" when it was full, "system@FROM-TO.journal~" after
 * a crash; likewise "user-1000.journal". */
static bool is_wanted(const char *name, const char *of_user)
{
    size_t n = strcspn(name, "@.");
    return (gp_lines_is(name, n, "system") || gp_lines_is(name, n, of_user)) &&
           strstr(name + n, ".journal");
}

struct file {
    const char *path;
    time_t changed;
};

/* Keeps the files that were changed last. */
static void keep_file(struct gp_exam *exam, const char *path, struct file files[MOST_FILES])
{
    struct stat st;
    if (gp_files_stat(&exam->files, path, &st) < 0)
        return;
    struct file file = {path, st.st_mtime};
    for (size_t i = 0; i < MOST_FILES; i++)
        if (!files[i].path || file.changed > files[i].changed) {
            struct file moved = files[i];
            files[i] = file;
            file = moved;
        }
}

/* A descriptor, or −errno. Only root, or who asks, can have written to the file: the library maps
 * it, and a file that shrinks meanwhile would end the process. */
static int open_file(const struct gp_exam *exam, const char *path)
{
    struct stat st;
    int fd = gp_files_open_file(&exam->files, path);
    if (fd < 0 || (fstat(fd, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid())))
        return fd;
    (void)close(fd);
    return -EACCES;
}

/* Finds and opens the files; returns their number, or −errno. */
static int find_files(const struct journal *journal, int ret_fds[MOST_FILES])
{
    static const char *const folders[] = {"/var/log/journal", "/run/log/journal"};
    struct gp_exam *exam = journal->exam;
    struct file files[MOST_FILES] = {{NULL, 0}};
    char id[ID_SIZE];
    int count = 0, error = -ENOENT;
    const char *of_user = gp_exam_text(exam, "user-%u", journal->user);
    for (size_t i = 0; i < GP_ARRAY_LEN(folders) && read_id(exam, "/etc/machine-id", id); i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", folders[i], id);
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        if (n == -EACCES)
            error = -EACCES;
        for (long k = 0; k < n; k++)
            if (is_wanted(names[k], of_user))
                keep_file(exam, gp_exam_text(exam, "%s/%s", folder, names[k]), files);
    }
    for (size_t i = 0; i < MOST_FILES && files[i].path; i++) {
        int fd = open_file(exam, files[i].path);
        if (fd >= 0)
            ret_fds[count++] = fd;
        else
            error = fd;
    }
    return count > 0 ? count : error;
}

/* The library gets names of files that are open already: it would follow links out of the root, and
 * its versions differ in who closes descriptors. */
static int open_files(struct journal *journal)
{
    char names[MOST_FILES][32];
    const char *paths[MOST_FILES + 1] = {NULL};
    int fds[MOST_FILES], count = find_files(journal, fds);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "/proc/self/fd/%d", fds[i]);
        paths[i] = names[i];
    }
    int r = bind_library(&journal->api) ? journal->api.open_files(&journal->j, paths, 0) : -ENOSYS;
    for (int i = 0; i < count; i++)
        (void)close(fds[i]);
    return r;
}

/* ---- entries ---- */

/* A field's value, not terminated; NULL: the entry does not have it. */
static const char *field(const struct journal *journal, const char *name, size_t *ret_length)
{
    const void *data;
    size_t size, n = strlen(name) + 1;
    if (journal->api.get_data(journal->j, name, &data, &size) < 0 || size < n)
        return NULL;
    *ret_length = size - n;
    return (const char *)data + n;
}

static int match(const struct journal *journal, const char *text)
{
    return journal->api.add_match(journal->j, text, 0);
}

/* The matches select what was logged since boot; more may follow. */
static bool select_boot(const struct journal *journal)
{
    journal->api.flush_matches(journal->j);
    return match(journal, journal->boot) >= 0 && journal->api.seek_tail(journal->j) >= 0;
}

/* The boot that the machine is in or, in a copy of its files alone, that of the last entry. */
static bool find_boot(struct journal *journal)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    char id[ID_SIZE];
    size_t n;
    if (!read_id(journal->exam, path, id)) {
        if (journal->api.seek_tail(journal->j) < 0 || journal->api.previous(journal->j) <= 0)
            return false;
        const char *last = field(journal, "_BOOT_ID", &n);
        if (!last || n != ID_SIZE - 1)
            return false;
        (void)snprintf(id, sizeof(id), "%.*s", (int)n, last);
    }
    (void)snprintf(journal->boot, sizeof(journal->boot), "_BOOT_ID=%s", id);
    return true;
}

/* 0 or −errno; close with close_journal() in any case. */
static int open_journal(struct gp_exam *exam, struct journal *journal)
{
    *journal = (struct journal){.exam = exam, .user = user_of(exam)};
    int r = open_files(journal);
    return r < 0 ? r : find_boot(journal) ? 0 : -ENOENT;
}

static void close_journal(const struct journal *journal)
{
    if (journal->j)
        journal->api.close(journal->j);
}

/* ---- the kernel ---- */

/* A message as a record of /dev/kmsg: "4,0,1234567,-;NVRM: Xid …". */
static void take_record(const struct journal *journal, const char *where, gp_journal_take *take,
                        void *argument)
{
    char record[LINE_SIZE];
    uint64_t us = 0;
    size_t n, time_length;
    const char *time = field(journal, "_SOURCE_MONOTONIC_TIMESTAMP", &time_length);
    if (time)
        us = strtoull(gp_exam_text(journal->exam, "%.*s", (int)time_length, time), NULL, 10);
    else
        (void)journal->api.get_monotonic_usec(journal->j, &us, NULL);
    const char *text = field(journal, "MESSAGE", &n);
    if (!text)
        return;
    (void)snprintf(record, sizeof(record), "4,0,%" PRIu64 ",-;%.*s", us,
                   (int)(n < LINE_SIZE ? n : LINE_SIZE), text);
    take(&(struct gp_journal_line){record, where}, argument);
}

/* Programs can write to /dev/kmsg, but not with the kernel's facility. */
static bool is_match_of_kernel(const struct journal *journal)
{
    return match(journal, "_TRANSPORT=kernel") >= 0 && match(journal, "SYSLOG_FACILITY=0") >= 0;
}

long gp_journal_kernel(struct gp_exam *exam, gp_journal_take *take, void *argument)
{
    struct journal journal;
    long count = 0;
    int r = open_journal(exam, &journal);
    if (r == 0 && select_boot(&journal) && is_match_of_kernel(&journal) &&
        journal.api.previous_skip(journal.j, GP_JOURNAL_KERNEL) > 0) {
        do {
            take_record(&journal, gp_journal_kernel_command, take, argument);
            count++;
        } while (count < GP_JOURNAL_KERNEL && journal.api.next(journal.j) > 0);
    }
    close_journal(&journal);
    return r < 0 ? r : count;
}

/* Goes to the first message of the kernel in the last day that the journal tells of. */
static bool go_to_last_day(const struct journal *journal)
{
    static const uint64_t day_us = 24 * 3600 * UINT64_C(1000000);
    uint64_t us;
    journal->api.flush_matches(journal->j);
    return journal->api.seek_tail(journal->j) >= 0 && journal->api.previous(journal->j) > 0 &&
           journal->api.get_realtime_usec(journal->j, &us) >= 0 && us > day_us &&
           is_match_of_kernel(journal) &&
           journal->api.seek_realtime_usec(journal->j, us - day_us) >= 0 &&
           journal->api.next(journal->j) > 0;
}

long gp_journal_earlier(struct gp_exam *exam, gp_journal_take *take, void *argument)
{
    struct journal journal;
    long count = 0;
    int r = open_journal(exam, &journal);
    if (r == 0 && go_to_last_day(&journal)) {
        do {
            size_t n = 0;
            const char *boot = field(&journal, "_BOOT_ID", &n);
            if (boot && gp_lines_is(boot, n, strchr(journal.boot, '=') + 1))
                break; /* the current one is the last */
            take_record(&journal, gp_journal_earlier_command, take, argument);
            count++;
        } while (count < GP_JOURNAL_KERNEL && journal.api.next(journal.j) > 0);
    }
    close_journal(&journal);
    return r < 0 ? r : count;
}

/* ---- programs ---- */

/* Whether the unit is one of the machine's services: those of users are below "user@1000.service",
 * and what a user starts in a terminal is in "session-2.scope". */
static bool is_service(const char *unit, size_t n)
{
    static const char users[] = "user@", end[] = ".service";
    const size_t end_size = sizeof(end) - 1, users_size = sizeof(users) - 1;
    return n > end_size && memcmp(unit + n - end_size, end, end_size) == 0 &&
           memcmp(unit, users, users_size) != 0;
}

static const char unit_field[] = "_SYSTEMD_UNIT=";

/* The matches for the services in the journal, also of those that logged before this boot. */
static size_t list_services(const struct journal *journal, const char *ret_matches[MOST_UNITS])
{
    const size_t n = sizeof(unit_field) - 1;
    const void *data;
    size_t size, count = 0;
    if (journal->api.query_unique(journal->j, "_SYSTEMD_UNIT") < 0)
        return 0;
    while (count < MOST_UNITS && journal->api.enumerate_unique(journal->j, &data, &size) > 0)
        if (size > n && is_service((const char *)data + n, size - n))
            ret_matches[count++] =
                gp_exam_text(journal->exam, "%.*s", (int)size, (const char *)data);
    return count;
}

/* The lines of an entry, each with the name that it was logged with. */
static void take_lines(const struct journal *journal, const char *where, gp_journal_take *take,
                       void *argument)
{
    char text[LINE_SIZE];
    const char *line;
    size_t name_length = 0, length, n;
    const char *name = field(journal, "SYSLOG_IDENTIFIER", &name_length);
    int head = snprintf(text, sizeof(text) / 2, "%.*s: ", (int)name_length, name ? name : "");
    const char *message = field(journal, "MESSAGE", &length);
    struct gp_lines lines = gp_lines_of(message, message ? length : 0);
    for (size_t i = 0; i < ENTRY_LINES && gp_lines_next(&lines, &line, &n); i++) {
        (void)snprintf(text + head, sizeof(text) - (size_t)head, "%.*s", (int)n, line);
        take(&(struct gp_journal_line){text, where}, argument);
    }
}

/* Goes back to the start of a service, or as far as is looked; false: there is no entry. */
static bool go_to_start(const struct journal *journal)
{
    char started[ID_SIZE] = "";
    size_t count = 0, n = 0;
    while (count < UNIT_LINES && journal->api.previous(journal->j) > 0) {
        const char *start = field(journal, "_SYSTEMD_INVOCATION_ID", &n);
        if (count > 0 && !gp_lines_is(start, start ? n : 0, started))
            return journal->api.next(journal->j) > 0;
        (void)snprintf(started, sizeof(started), "%.*s", start ? (int)n : 0, start ? start : "");
        count++;
    }
    return count > 0;
}

/* The entries from this one on. */
static long take_entries(const struct journal *journal, const char *where, gp_journal_take *take,
                         void *argument)
{
    long count = 0;
    do {
        take_lines(journal, where, take, argument);
        count++;
    } while (count < USER_LINES && journal->api.next(journal->j) > 0);
    return count;
}

/* Programs that are not services, as this user. */
static long take_users(const struct journal *journal, gp_journal_take *take, void *argument)
{
    const char *own = gp_exam_text(journal->exam, "_UID=%u", journal->user);
    const char *where = gp_exam_text(journal->exam, "journalctl %s", own);
    long count = 0;
    if (journal->user == 0 || !select_boot(journal) || match(journal, own) < 0 ||
        journal->api.previous_skip(journal->j, USER_LINES) <= 0)
        return 0;
    do {
        size_t n = 0;
        const char *unit = field(journal, "_SYSTEMD_UNIT", &n);
        if (!is_service(unit, n)) {
            take_lines(journal, where, take, argument);
            count++;
        }
    } while (count < USER_LINES && journal->api.next(journal->j) > 0);
    return count;
}

long gp_journal_programs(struct gp_exam *exam, gp_journal_take *take, void *argument)
{
    const char *units[MOST_UNITS];
    struct journal journal;
    int r = open_journal(exam, &journal);
    size_t unit_count = r == 0 ? list_services(&journal, units) : 0;
    long count = 0;
    for (size_t i = 0; i < unit_count; i++)
        if (select_boot(&journal) && match(&journal, units[i]) >= 0 && go_to_start(&journal))
            count += take_entries(
                &journal, gp_exam_text(exam, "journalctl -u %s", units[i] + sizeof(unit_field) - 1),
                take, argument);
    if (r == 0)
        count += take_users(&journal, take, argument);
    close_journal(&journal);
    return r < 0 ? r : count;
}
