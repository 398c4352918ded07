#include "doctor/readers/searchpath.h"

#include "doctor/exam.h"
#include "doctor/readers/install.h"
#include "doctor/readers/shared.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 256 << 10, LINES_MAX = 64 /* of a file that set one variable */ };

bool gp_search_path_next(const char **list, const char *marks, char ret[GP_PATH_SIZE])
{
    while (*list) {
        const char *element = *list;
        size_t n = strcspn(element, marks);
        *list = element[n] ? element + n + 1 : NULL;
        if (n >= GP_PATH_SIZE)
            continue;
        memcpy(ret, element, n);
        ret[n] = '\0';
        return true;
    }
    return false;
}

const char *gp_search_path_program(struct gp_exam *exam, const char *name)
{
    const char *list = gp_machine_variable(&exam->machine, "PATH");
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", folder)) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, name);
        if (folder[0] == '/' && gp_files_exist(&exam->files, path))
            return path;
    }
    return NULL;
}

const char *gp_system_folder(struct gp_exam *exam, size_t i)
{
    static const char *const others[] = {"/usr/lib64", "/usr/lib", "/usr/local/lib",
                                         "/usr/local/lib64"};
    if (i == 0)
        return gp_exam_text(exam, "/usr/lib/%s-linux-gnu", exam->machine.arch);
    return i <= GP_ARRAY_LEN(others) ? others[i - 1] : NULL;
}

const char *gp_system_library(struct gp_exam *exam, const char *root, const char *name)
{
    const char *folder;
    for (size_t i = 0; (folder = gp_system_folder(exam, i)); i++) {
        const char *path = gp_exam_text(exam, "%s%s/%s", root, folder, name);
        if (gp_files_exist(&exam->files, path))
            return path;
    }
    return NULL;
}

bool gp_system_has_driver_library(struct gp_exam *exam, const char *name)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->library_count; i++) {
        const char *real = in->libraries[i].real;
        if (gp_files_exist(
                &exam->files,
                gp_exam_text(exam, "%.*s/%s", (int)(strrchr(real, '/') - real), real, name)))
            return true;
    }
    return gp_system_library(exam, "", name);
}

/* "NAME=…" in a line, alone or after words such as "export"; or fish's "set -gx NAME …". */
static const char *sets(const char *line, size_t length, const char *name)
{
    size_t n = strlen(name);
    const char *end = line + length;
    while (line < end && isspace((unsigned char)*line))
        line++;
    if (line == end || *line == '#')
        return NULL;
    bool is_fish = end - line > 4 && strncmp(line, "set ", 4) == 0;
    for (const char *p = line; (p = memmem(p, (size_t)(end - p), name, n)); p++) {
        bool begins = p == line || strchr(" \t;\"'", p[-1]);
        char behind = p + n < end ? p[n] : '\0';
        if (begins && (behind == '=' || (is_fish && behind == ' ')))
            return p;
    }
    return NULL;
}

/* The assignment, from the name to the end of the value, as a shell parses it. `before` is the
 * character before it: in echo "NAME=value" a quote, which ends the value, too. A word after it in
 * the same quotes may be another variable, and secret. */
static size_t length_of_assignment(const char *text, const char *name, char before)
{
    size_t n = strlen(name);
    if (text[n] != '=') /* in fish, all words are its value */
        return strcspn(text, ";#\r\n");
    if (before == '"' || before == '\'')
        return strcspn(text, (const char[]){before, ' ', '\t', ';', '&', '|', '\r', '\n', '\0'});
    for (n++; text[n] && !strchr(" \t;&|\r\n", text[n]); n++)
        if (text[n] == '"' || text[n] == '\'') {
            const char end[] = {text[n], '\n', '\0'};
            n += 1 + strcspn(text + n + 1, end);
            if (text[n] != end[0])
                break;
        }
    return n;
}

bool gp_assignment_next(const char **text, const char *name, unsigned *line, const char **ret,
                        size_t *ret_length)
{
    while (**text) {
        const char *start = *text;
        size_t n = strcspn(start, "\n");
        const char *at = sets(start, n, name);
        *text = start + n + (start[n] == '\n');
        ++*line;
        if (at) {
            *ret = at;
            *ret_length = length_of_assignment(at, name, at > start ? at[-1] : '\0');
            while (*ret_length > 0 && strchr(" \t", at[*ret_length - 1]))
                --*ret_length;
            return true;
        }
    }
    return false;
}

/* ---- files in which variables are set ---- */

struct visit {
    struct gp_exam *exam;
    struct gp_arena scratch;
    const char *name;
    unsigned lines_max;
    gp_assignment_found *found;
    void *argument;
};

static void look_into(struct visit *v, const char *path)
{
    const char *text = gp_files_text(&v->exam->files, &v->scratch, path, FILE_MAX, NULL);
    unsigned line = 0, found = 0;
    const char *at, *start = text;
    size_t length;
    while (text && found < v->lines_max &&
           gp_assignment_next(&text, v->name, &line, &at, &length)) {
        const char *begin = at;
        while (begin > start && begin[-1] != '\n')
            begin--;
        const struct gp_assignment assignment = {
            .path = path,
            .place = gp_exam_text(v->exam, "%s:%u", path, line),
            .text = gp_exam_text(v->exam, "%.*s", (int)length, at),
            .is_at_start =
                begin == at || strncmp(begin, "export ", 7) == 0 || strncmp(begin, "set ", 4) == 0,
        };
        v->found(v->exam, &assignment, v->argument);
        found++;
    }
}

static void look_into_folder(struct visit *v, const char *folder)
{
    enum { FILES_MAX = 256 };
    char **names;
    long n = gp_files_list(&v->exam->files, &v->scratch, folder, &names);
    for (long i = 0; i < n && i < FILES_MAX; i++) {
        char path[GP_PATH_SIZE];
        if (snprintf(path, sizeof(path), "%s/%s", folder, names[i]) < GP_PATH_SIZE)
            look_into(v, path);
    }
}

/* What systemd gives to the programs of a session. */
static void look_into_sessions(struct visit *v, const char *home)
{
    static const char *const folders[] = {"/etc/environment.d", "/usr/lib/environment.d",
                                          "/etc/systemd/user-environment-generators",
                                          "/usr/lib/systemd/user-environment-generators"};
    char path[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        look_into_folder(v, folders[i]);
    if (home && snprintf(path, sizeof(path), "%s/.config/environment.d", home) < GP_PATH_SIZE)
        look_into_folder(v, path);
}

static void look_into_all(struct visit *v)
{
    static const char *const of_user[] = {
        ".bashrc",   ".bash_profile",           ".profile", ".zshrc", ".zshenv",
        ".zprofile", ".config/fish/config.fish"};
    static const char *const of_system[] = {"/etc/environment", "/etc/profile", "/etc/bash.bashrc",
                                            "/etc/bashrc"};
    static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const struct gp_machine *m = &v->exam->machine;
    char path[GP_PATH_SIZE];
    const char *home = gp_machine_variable(m, "HOME");
    for (size_t i = 0; home && i < GP_ARRAY_LEN(of_user); i++)
        if (snprintf(path, sizeof(path), "%s/%s", home, of_user[i]) < GP_PATH_SIZE)
            look_into(v, path);
    for (size_t i = 0; i < GP_ARRAY_LEN(of_system); i++)
        look_into(v, of_system[i]);
    look_into_folder(v, "/etc/profile.d");
    look_into_sessions(v, home);
    for (size_t i = 0; i < GP_ARRAY_LEN(environments); i++) {
        const char *prefix = gp_machine_variable(m, environments[i]);
        if (prefix && snprintf(path, sizeof(path), "%s/bin/activate", prefix) < GP_PATH_SIZE)
            look_into(v, path);
        if (prefix &&
            snprintf(path, sizeof(path), "%s/etc/conda/activate.d", prefix) < GP_PATH_SIZE)
            look_into_folder(v, path);
    }
    gp_arena_fini(&v->scratch);
}

void gp_assignments_each(struct gp_exam *exam, const char *name, unsigned lines_max,
                         gp_assignment_found *found, void *argument)
{
    look_into_all(&(struct visit){
        .exam = exam, .name = name, .lines_max = lines_max, .found = found, .argument = argument});
}

/* ---- the values that they give it ---- */

/* The value, without its quotes. */
static const char *value_of(struct gp_exam *exam, const struct gp_assignment *found,
                            const char *name)
{
    const char *text = found->text + strlen(name);
    size_t length = strlen(text);
    if (length == 0)
        return NULL;
    text++;
    length--;
    if (length >= 2 && (*text == '"' || *text == '\'') && text[length - 1] == *text) {
        text++;
        length -= 2;
    }
    return gp_exam_text(exam, "%.*s", (int)length, text);
}

struct last {
    const char *name, *place, *value; /* NULL: none yet */
};

static void keep_last(struct gp_exam *exam, const struct gp_assignment *found, void *argument)
{
    struct last *last = argument;
    const char *value = found->is_at_start ? value_of(exam, found, last->name) : NULL;
    if (value)
        *last = (struct last){last->name, found->place, value};
}

const char *gp_assignment_last(struct gp_exam *exam, const char *name, const char **ret_place)
{
    struct last last = {.name = name};
    gp_assignments_each(exam, name, LINES_MAX, keep_last, &last);
    *ret_place = last.place;
    return last.value;
}

/* ---- directories that they add ---- */

struct joined {
    const char *name, *list;
};

/* All values, one after the other; of indented lines, too: their conditions are unknown. */
static void join(struct gp_exam *exam, const struct gp_assignment *found, void *argument)
{
    struct joined *all = argument;
    const char *value = value_of(exam, found, all->name);
    if (value)
        all->list = gp_exam_text(exam, "%s:%s", all->list, value);
}

/* The variable that an element begins with, "$CUDA_HOME/lib64", and what follows it. */
static const char *variable_of(struct gp_exam *exam, const char *element, const char **ret_rest)
{
    if (element[0] != '$')
        return "";
    const char *name = element + 1 + (element[1] == '{');
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    *ret_rest = name + n + (element[1] == '{' && name[n] == '}');
    return gp_exam_text(exam, "%.*s", (int)n, name);
}

/* An element with the value of the variable or of the "~" that it begins with. */
static const char *expanded(struct gp_exam *exam, const char *element)
{
    const char *rest, *place, *name = variable_of(exam, element, &rest);
    if (element[0] == '~' && element[1] == '/') {
        name = "HOME";
        rest = element + 1;
    }
    if (!name[0])
        return element;
    const char *value = gp_machine_variable(&exam->machine, name);
    value = value ? value : gp_assignment_last(exam, name, &place);
    return value ? gp_exam_text(exam, "%s%s", value, rest) : element;
}

bool gp_assignments_reach(struct gp_exam *exam, const char *name, const char *file,
                          bool is_elsewhere)
{
    struct joined all = {.name = name, .list = ""};
    char element[GP_PATH_SIZE];
    gp_assignments_each(exam, name, LINES_MAX, join, &all);
    const char *list = all.list, *rest;
    while (gp_search_path_next(&list, ":; ", element)) {
        if (strcmp(variable_of(exam, element, &rest), name) == 0)
            continue; /* what the variable has already */
        const char *folder = expanded(exam, element);
        bool is_unknown = strpbrk(folder, "$`");
        if (is_unknown
                ? is_elsewhere
                : folder[0] == '/' &&
                      gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, file)))
            return true;
    }
    return false;
}

bool gp_run_path_has(struct gp_exam *exam, const struct gp_elf *elf, const char *folder,
                     const char *name)
{
    static const char *const marks[] = {"$ORIGIN", "${ORIGIN}"};
    const char *list = gp_elf_run_path(elf);
    char part[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", part)) {
        const char *path = part;
        for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++)
            if (strncmp(part, marks[i], strlen(marks[i])) == 0)
                path = gp_exam_text(exam, "%s%s", folder, part + strlen(marks[i]));
        if (path[0] == '/' && gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", path, name)))
            return true;
    }
    return false;
}
