#include "doctor/readers/homes.h"

#include "doctor/exam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below FIRST_USER and from NOBODY on are accounts of services. */
enum { FIRST_USER = 1000, NOBODY = 65534, FIELDS = 7, HOME = 5 };

static void add(struct gp_exam *exam, struct gp_homes *homes, const char *path)
{
    struct stat st;
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    for (size_t i = 0; i < homes->count; i++)
        if (strlen(homes->list[i]) == length && strncmp(homes->list[i], path, length) == 0)
            return;
    if (homes->is_of_copy &&
        (length == 0 || gp_files_stat(&exam->files, path, &st) < 0 || !S_ISDIR(st.st_mode)))
        return;
    if (homes->count == GP_HOMES)
        homes->is_cut = true;
    else
        homes->list[homes->count++] = gp_exam_text(exam, "%.*s", (int)length, path);
}

/* Splits "ada:x:1000:1000:Ada:/home/ada:/bin/bash"; false: it has another form. */
static bool split(char *line, char *ret[FIELDS])
{
    for (size_t i = 0; i < FIELDS; i++) {
        ret[i] = line;
        line = strchr(line, ':');
        if (!line)
            return i == FIELDS - 1;
        *line++ = '\0';
    }
    return true;
}

/* The homes of people and of root, or only that of the user of this name. */
static void add_users(struct gp_exam *exam, struct gp_homes *homes, const char *name)
{
    char *fields[FIELDS];
    char *text = gp_files_text(&exam->files, &exam->arena, "/etc/passwd", 1 << 20, NULL);
    for (char *line = text, *next; line && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (!split(line, fields) || fields[HOME][0] != '/')
            continue;
        unsigned long id = strtoul(fields[2], NULL, 10);
        bool is_meant =
            name ? strcmp(fields[0], name) == 0 : id == 0 || (id >= FIRST_USER && id < NOBODY);
        if (is_meant)
            add(exam, homes, fields[HOME]);
    }
}

/* Directories with homes: the users of a network are not in /etc/passwd. */
static void add_folder(struct gp_exam *exam, struct gp_homes *homes, const char *folder)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && !homes->is_cut; i++)
        add(exam, homes, gp_exam_text(exam, "%s/%s", folder, names[i]));
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
    homes->is_of_copy = true;
    add_users(exam, homes, NULL);
    add_folder(exam, homes, "/home");
    add(exam, homes, "/root");
}

const struct gp_homes *gp_homes_of(struct gp_exam *exam)
{
    static const struct gp_homes none;
    if (!exam->homes) {
        struct gp_homes *homes = gp_arena_alloc(&exam->arena, 1, sizeof(*homes));
        if (homes) {
            *homes = (struct gp_homes){.count = 0};
            read_homes(exam, homes);
        }
        exam->homes = homes ? homes : &none;
    }
    return exam->homes;
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
