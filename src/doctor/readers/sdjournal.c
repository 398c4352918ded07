#include "doctor/readers/sdjournal.h"

#include "base/library.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/accounts.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FILES = 8 }; /* a machine that logs much has many, one for some days each */

/* ---- libsystemd ---- */

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"sd_journal_open_files", offsetof(struct gp_sdjournal_api, open_files)},
    {"sd_journal_close", offsetof(struct gp_sdjournal_api, close)},
    {"sd_journal_add_match", offsetof(struct gp_sdjournal_api, add_match)},
    {"sd_journal_add_disjunction", offsetof(struct gp_sdjournal_api, add_disjunction)},
    {"sd_journal_flush_matches", offsetof(struct gp_sdjournal_api, flush_matches)},
    {"sd_journal_seek_head", offsetof(struct gp_sdjournal_api, seek_head)},
    {"sd_journal_seek_tail", offsetof(struct gp_sdjournal_api, seek_tail)},
    {"sd_journal_previous", offsetof(struct gp_sdjournal_api, previous)},
    {"sd_journal_previous_skip", offsetof(struct gp_sdjournal_api, previous_skip)},
    {"sd_journal_next", offsetof(struct gp_sdjournal_api, next)},
    {"sd_journal_get_data", offsetof(struct gp_sdjournal_api, get_data)},
    {"sd_journal_get_realtime_usec", offsetof(struct gp_sdjournal_api, get_realtime_usec)},
    {"sd_journal_get_monotonic_usec", offsetof(struct gp_sdjournal_api, get_monotonic_usec)},
    {"sd_journal_query_unique", offsetof(struct gp_sdjournal_api, query_unique)},
    {"sd_journal_enumerate_unique", offsetof(struct gp_sdjournal_api, enumerate_unique)},
};

static bool bind_library(struct gp_sdjournal_api *api)
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

/* ---- the files ---- */

/* An id as journals have it, of a file with or without dashes. */
static bool read_id(const struct gp_exam *exam, const char *path, char ret[GP_SDJOURNAL_ID])
{
    char line[64];
    size_t n = 0;
    if (!gp_files_line(&exam->files, path, line, sizeof(line)))
        return false;
    for (const char *p = line; *p && n < GP_SDJOURNAL_ID - 1; p++)
        if (*p != '-')
            ret[n++] = *p;
    ret[n] = '\0';
    return n == GP_SDJOURNAL_ID - 1 && strspn(ret, "0123456789abcdef") == n;
}

/* The user whose home this is, by the accounts of a machine; 0: nobody's that is known. */
static unsigned owner_of(struct gp_exam *exam, const char *home)
{
    struct gp_account_line account;
    for (char *text = gp_accounts_text(exam); gp_accounts_next(&text, &account);)
        if (strcmp(account.home, home) == 0)
            return (unsigned)account.user;
    return 0;
}

/* The user who asks: "sudo" says who called it, in a copy of a machine also the environment. 0:
 * root, or that is unknown. */
static unsigned user_of(struct gp_exam *exam)
{
    const char *caller = gp_machine_variable(&exam->machine, "SUDO_UID");
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    if (caller && (geteuid() == 0 || !exam->files.is_here))
        return (unsigned)strtoul(caller, NULL, 10);
    return exam->files.is_here ? geteuid() : home ? owner_of(exam, home) : 0;
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
static int find_files(const struct gp_sdjournal *journal, int ret_fds[MOST_FILES])
{
    static const char *const folders[] = {"/var/log/journal", "/run/log/journal"};
    struct gp_exam *exam = journal->exam;
    struct file files[MOST_FILES] = {{NULL, 0}};
    char id[GP_SDJOURNAL_ID];
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

/* Leaves out the damaged ones, for which the library would refuse all. */
static void drop_damaged(const struct gp_sdjournal_api *api, const char **paths)
{
    const char **kept = paths;
    for (; *paths; paths++) {
        const char *single[] = {*paths, NULL};
        struct sd_journal *j = NULL;
        if (api->open_files(&j, single, 0) < 0)
            continue;
        api->close(j);
        *kept++ = *paths;
    }
    *kept = NULL;
}

/* The library gets names of files that are open already: it would follow links out of the root, and
 * its versions differ in who closes descriptors. */
static int open_files(struct gp_sdjournal *journal)
{
    const struct gp_sdjournal_api *api = &journal->api;
    char names[MOST_FILES][32];
    const char *paths[MOST_FILES + 1] = {NULL};
    int fds[MOST_FILES], count = find_files(journal, fds), r = -ENOSYS;
    for (int i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "/proc/self/fd/%d", fds[i]);
        paths[i] = names[i];
    }
    if (count > 0 && bind_library(&journal->api)) {
        r = api->open_files(&journal->j, paths, 0);
        if (r < 0) {
            drop_damaged(api, paths);
            r = paths[0] ? api->open_files(&journal->j, paths, 0) : r;
        }
    }
    for (int i = 0; i < count; i++)
        (void)close(fds[i]);
    return count < 0 ? count : r;
}

/* ---- entries ---- */

const char *gp_sdjournal_field(const struct gp_sdjournal *journal, const char *name,
                               size_t *ret_length)
{
    const void *data;
    size_t size, n = strlen(name) + 1;
    if (journal->api.get_data(journal->j, name, &data, &size) < 0 || size < n)
        return NULL;
    *ret_length = size - n;
    return (const char *)data + n;
}

bool gp_sdjournal_number(const struct gp_sdjournal *journal, const char *name, unsigned long *ret)
{
    char digits[24];
    size_t n = 0;
    const char *value = gp_sdjournal_field(journal, name, &n);
    if (!value)
        return false;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)n, value);
    *ret = strtoul(digits, NULL, 10);
    return true;
}

int gp_sdjournal_match(const struct gp_sdjournal *journal, const char *text)
{
    return journal->api.add_match(journal->j, text, 0);
}

bool gp_sdjournal_select_boot(const struct gp_sdjournal *journal)
{
    journal->api.flush_matches(journal->j);
    return gp_sdjournal_match(journal, journal->boot) >= 0 &&
           journal->api.seek_tail(journal->j) >= 0;
}

/* Goes to the last entry. */
static bool find_end(struct gp_sdjournal *journal)
{
    const struct gp_sdjournal_api *api = &journal->api;
    return api->seek_tail(journal->j) >= 0 && api->previous(journal->j) > 0 &&
           api->get_realtime_usec(journal->j, &journal->last_us) >= 0;
}

/* The boot that the machine is in or, in a copy of its files alone, that of the last entry. */
static bool find_boot(struct gp_sdjournal *journal)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    char id[GP_SDJOURNAL_ID];
    size_t n = 0;
    if (!read_id(journal->exam, path, id)) {
        const char *last = gp_sdjournal_field(journal, "_BOOT_ID", &n);
        if (!last || n != GP_SDJOURNAL_ID - 1)
            return false;
        (void)snprintf(id, sizeof(id), "%.*s", (int)n, last);
    }
    (void)snprintf(journal->boot, sizeof(journal->boot), "_BOOT_ID=%s", id);
    return true;
}

int gp_sdjournal_open(struct gp_exam *exam, struct gp_sdjournal *journal)
{
    *journal = (struct gp_sdjournal){.exam = exam, .user = user_of(exam)};
    int r = open_files(journal);
    return r < 0 ? r : find_end(journal) && find_boot(journal) ? 0 : -ENOENT;
}

void gp_sdjournal_close(const struct gp_sdjournal *journal)
{
    if (journal->j)
        journal->api.close(journal->j);
}
