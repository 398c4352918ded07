#include "doctor/readers/homes.h"

#include "doctor/exam.h"
#include "doctor/readers/accounts.h"

#include <string.h>

static void add(struct gp_exam *exam, struct gp_homes *homes, const char *path)
{
    struct stat st;
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    for (size_t i = 0; i < homes->count; i++)
        if (strlen(homes->list[i]) == length && strncmp(homes->list[i], path, length) == 0)
            return;
    if (homes->is_of_all &&
        (length == 0 || gp_files_stat(&exam->files, path, &st) < 0 || !S_ISDIR(st.st_mode)))
        return;
    if (homes->count == GP_HOMES)
        homes->is_cut = true;
    else
        homes->list[homes->count++] = gp_exam_text(exam, "%.*s", (int)length, path);
}

/* The homes of people and of root, or only that of the user of this name. */
static void add_users(struct gp_exam *exam, struct gp_homes *homes, const char *name)
{
    struct gp_account_line account;
    for (char *text = gp_accounts_text(exam); gp_accounts_next(&text, &account);)
        if (account.home[0] == '/' &&
            (name ? strcmp(account.name, name) == 0
                  : account.user == 0 || gp_account_is_person(account.user)))
            add(exam, homes, account.home);
}

/* Directories with homes: the users of a network are not in /etc/passwd. */
static void add_folder(struct gp_exam *exam, struct gp_homes *homes, const char *folder)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && !homes->is_cut; i++)
        add(exam, homes, gp_exam_text(exam, "%s/%s", folder, names[i]));
}

static void add_all(struct gp_exam *exam, struct gp_homes *homes)
{
    add_users(exam, homes, NULL);
    add_folder(exam, homes, "/home");
    add(exam, homes, "/root");
}

static void read_homes(struct gp_exam *exam, struct gp_homes *homes)
{
    const char *own = gp_machine_variable(&exam->machine, "HOME");
    const char *caller = gp_machine_variable(&exam->machine, "SUDO_USER");
    if (own && (!*own || *own == '/'))
        add(exam, homes, own);
    if (caller) /* sudo has set HOME to root's */
        add_users(exam, homes, caller);
    if (own || exam->files.is_here)
        return;
    homes->is_of_all = true;
    add_all(exam, homes);
}

static const struct gp_homes *new_homes(struct gp_exam *exam, bool is_of_all)
{
    static const struct gp_homes none;
    struct gp_homes *homes = gp_arena_alloc(&exam->arena, 1, sizeof(*homes));
    if (!homes)
        return &none;
    *homes = (struct gp_homes){.is_of_all = is_of_all};
    if (is_of_all)
        add_all(exam, homes);
    else
        read_homes(exam, homes);
    return homes;
}

const struct gp_homes *gp_homes_of(struct gp_exam *exam)
{
    if (!exam->homes)
        exam->homes = new_homes(exam, false);
    return exam->homes;
}

const struct gp_homes *gp_homes_of_all(struct gp_exam *exam)
{
    if (!exam->all_homes)
        exam->all_homes = new_homes(exam, true);
    return exam->all_homes;
}

/* NULL: it is in none. */
static const char *home_of(struct gp_exam *exam, const char *path)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    for (size_t i = 0; i < homes->count; i++) {
        size_t length = strlen(homes->list[i]);
        if (length > 0 && strncmp(path, homes->list[i], length) == 0 && path[length] == '/')
            return homes->list[i];
    }
    return NULL;
}

bool gp_homes_separate(struct gp_exam *exam, const char *path, const char *other)
{
    const char *first = home_of(exam, path), *second = home_of(exam, other);
    return first && second && first != second;
}
