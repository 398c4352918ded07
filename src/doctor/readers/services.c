#include "doctor/readers/services.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char folder[] = "/etc/systemd/system";

enum { UNIT_MAX = 64 << 10, UNITS_MAX = 512 };

bool gp_service_is_installed(struct gp_exam *exam, const char *unit)
{
    static const char *const folders[] = {folder, "/usr/lib/systemd/system", "/lib/systemd/system",
                                          "/run/systemd/system"};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folders[i], unit)))
            return true;
    return false;
}

bool gp_service_is_wanted(struct gp_exam *exam, const char *unit, const char *by)
{
    static const char *const folders[] = {folder, "/usr/lib/systemd/system", "/lib/systemd/system"};
    static const char *const kinds[] = {"wants", "requires"};
    struct stat st;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(kinds); k++)
            if (gp_files_stat_link(
                    &exam->files, gp_exam_text(exam, "%s/%s.%s/%s", folders[i], by, kinds[k], unit),
                    &st) == 0)
                return true;
    return false;
}

bool gp_service_is_enabled(struct gp_exam *exam, const char *unit)
{
    return gp_service_is_wanted(exam, unit, "multi-user.target");
}

bool gp_service_is_masked(struct gp_exam *exam, const char *unit)
{
    struct stat st;
    char target[GP_PATH_SIZE];
    const char *path = gp_exam_text(exam, "/etc/systemd/system/%s", unit);
    if (gp_files_stat_link(&exam->files, path, &st) < 0 || !S_ISLNK(st.st_mode))
        return false;
    /* A copy of a machine often lacks /dev/null. */
    return !gp_files_link(&exam->files, path, target) || strcmp(target, "/dev/null") == 0;
}

struct search {
    struct gp_exam *exam;
    const char *variable; /* NULL: the command */
    struct gp_service_setting *found;
    size_t count, most;
};

/* The value of the variable in "Environment="A=1" B=2"; NULL: it is not set there. */
static const char *value_in(struct search *s, const char *line, size_t length)
{
    size_t n = strlen(s->variable);
    const char *end = line + length;
    for (const char *p = line; (p = memmem(p, (size_t)(end - p), s->variable, n)); p += n)
        if (strchr("= \t\"'", p[-1]) && p + n < end && p[n] == '=') {
            const char *value = p + n + 1;
            return gp_exam_text(s->exam, "%.*s", (int)strcspn(value, " \t\"'\r\n"), value);
        }
    return NULL;
}

/* Where the value of a setting begins, "User=ollama" or "User = jellyfin"; NULL: another line. */
static const char *value_of(const char *line, const char *setting)
{
    size_t n = strlen(setting);
    if (strncmp(line, setting, n) != 0)
        return NULL;
    line += n + strspn(line + n, " \t");
    return *line == '=' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

/* What is looked for in "Environment=…" or "ExecStart=…"; NULL: another line. */
static const char *wanted_in(struct search *s, const char *line, size_t length)
{
    if (s->variable)
        return value_of(line, "Environment") ? value_in(s, line, length) : NULL;
    return value_of(line, "ExecStart") ? gp_exam_text(s->exam, "%.*s", (int)length, line) : NULL;
}

static void look_into(struct search *s, const char *path, const char *service)
{
    const char *text = gp_files_text(&s->exam->files, &s->exam->arena, path, UNIT_MAX, NULL);
    unsigned number = 1;
    for (const char *line = text; line && *line; number++) {
        size_t n = strcspn(line, "\n");
        const char *value = wanted_in(s, line, n);
        if (value && s->count < s->most)
            s->found[s->count++] = (struct gp_service_setting){
                service, gp_exam_text(s->exam, "%s:%u", path, number), value};
        line += n + (line[n] == '\n');
    }
}

static size_t look_into_all(struct search *s)
{
    struct gp_exam *exam = s->exam;
    char **names, **parts;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < UNITS_MAX; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (gp_lines_ends(names[i], ".service"))
            look_into(s, path, names[i]);
        if (!gp_lines_ends(names[i], ".service.d"))
            continue;
        long k = gp_files_list(&exam->files, &exam->arena, path, &parts);
        for (long j = 0; j < k && j < UNITS_MAX; j++)
            if (gp_lines_ends(parts[j], ".conf"))
                look_into(s, gp_exam_text(exam, "%s/%s", path, parts[j]),
                          gp_exam_text(exam, "%.*s", (int)strlen(names[i]) - 2, names[i]));
    }
    return s->count;
}

size_t gp_service_settings(struct gp_exam *exam, const char *variable,
                           struct gp_service_setting *ret, size_t most)
{
    return look_into_all(
        &(struct search){.exam = exam, .variable = variable, .found = ret, .most = most});
}

size_t gp_service_commands(struct gp_exam *exam, struct gp_service_setting *ret, size_t most)
{
    return look_into_all(&(struct search){.exam = exam, .found = ret, .most = most});
}

/* ---- a unit and its drop-ins ---- */

/* Where systemd searches, the first one wins: see systemd.unit(5). */
static const char *const all_folders[] = {
    "/etc/systemd/system.control", "/run/systemd/system.control",
    "/run/systemd/transient",      folder,
    "/run/systemd/system",         "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",     "/lib/systemd/system",
};

enum { UNIT_NAMES = 8, UNIT_FILES = 64 };

/* The names whose drop-ins a unit has: its own, for "user@1000.service" that of the template, and
 * for "user-1000.slice" also "user-.slice". */
static size_t names_of(struct gp_exam *exam, const char *unit, const char *ret[UNIT_NAMES])
{
    const char *dot = strrchr(unit, '.'), *at = strchr(unit, '@');
    size_t n = 0;
    ret[n++] = unit;
    if (!dot)
        return n;
    if (at && at + 1 < dot)
        ret[n++] = gp_exam_text(exam, "%.*s%s", (int)(at + 1 - unit), unit, dot);
    for (const char *p = at ? at : dot - 1; p > unit && n < UNIT_NAMES; p--)
        if (p[-1] == '-' && p < dot)
            ret[n++] = gp_exam_text(exam, "%.*s%s", (int)(p - unit), unit, dot);
    return n;
}

struct unit_files {
    const char *paths[UNIT_FILES]; /* in the order in which systemd reads them */
    size_t count;
};

/* Adds a drop-in, sorted by its name; of two with the same one only the first counts. */
static void add_drop_in(struct unit_files *files, size_t first, const char *path)
{
    const char *name = strrchr(path, '/');
    size_t at = files->count;
    for (size_t i = first; i < files->count; i++) {
        int order = strcmp(strrchr(files->paths[i], '/'), name);
        if (order == 0)
            return;
        if (order > 0 && at == files->count)
            at = i;
    }
    if (files->count == UNIT_FILES)
        return;
    memmove(&files->paths[at + 1], &files->paths[at],
            (files->count - at) * sizeof(files->paths[0]));
    files->paths[at] = path;
    files->count++;
}

static void add_drop_ins(struct gp_exam *exam, struct unit_files *files, size_t first,
                         const char *place)
{
    char **parts;
    long n = gp_files_list(&exam->files, &exam->arena, place, &parts);
    for (long j = 0; j < n && j < UNITS_MAX; j++)
        if (gp_lines_ends(parts[j], ".conf"))
            add_drop_in(files, first, gp_exam_text(exam, "%s/%s", place, parts[j]));
}

/* Of two drop-ins with the same name systemd takes that of the first folder, whichever of the
 * unit's names it is for; those for a whole type, "slice.d", come last. */
static struct unit_files files_of(struct gp_exam *exam, const char *unit)
{
    struct unit_files files = {.count = 0};
    const char *names[UNIT_NAMES], *dot = strrchr(unit, '.');
    size_t count = names_of(exam, unit, names);
    for (size_t k = 0; k < count && files.count == 0; k++)
        for (size_t i = 0; i < GP_ARRAY_LEN(all_folders) && files.count == 0; i++) {
            const char *path = gp_exam_text(exam, "%s/%s", all_folders[i], names[k]);
            if (gp_files_exist(&exam->files, path))
                files.paths[files.count++] = path;
        }
    size_t first = files.count;
    for (size_t i = 0; i < GP_ARRAY_LEN(all_folders); i++)
        for (size_t k = 0; k < count; k++)
            add_drop_ins(exam, &files, first,
                         gp_exam_text(exam, "%s/%s.d", all_folders[i], names[k]));
    for (size_t i = 0; dot && i < GP_ARRAY_LEN(all_folders); i++)
        add_drop_ins(exam, &files, first, gp_exam_text(exam, "%s/%s.d", all_folders[i], dot + 1));
    return files;
}

static const char *last_value(struct gp_exam *exam, const char *path, const char *setting)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, UNIT_MAX, NULL);
    const char *found = NULL;
    for (const char *line = text; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        const char *value = value_of(line, setting);
        if (value)
            found = gp_exam_text(exam, "%.*s", (int)strcspn(value, "\r\n"), value);
    }
    return found;
}

const char *gp_service_where(struct gp_exam *exam, const char *unit, const char *setting)
{
    struct unit_files files = files_of(exam, unit);
    for (size_t i = files.count; i > 0; i--)
        if (last_value(exam, files.paths[i - 1], setting))
            return files.paths[i - 1];
    return NULL;
}

const char *gp_service_value(struct gp_exam *exam, const char *unit, const char *setting)
{
    const char *where = gp_service_where(exam, unit, setting);
    return where ? last_value(exam, where, setting) : NULL;
}

/* Adds the values of a setting in a file to the list; an empty value begins it again. */
static const char *add_values(struct gp_exam *exam, const char *path, const char *setting,
                              const char *list)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, UNIT_MAX, NULL);
    for (const char *line = text; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        const char *value = value_of(line, setting);
        size_t n = value ? strcspn(value, "\r\n") : 0;
        if (value)
            list = n > 0 ? gp_exam_text(exam, "%s%.*s\n", list, (int)n, value) : "";
    }
    return list;
}

const char *gp_service_list(struct gp_exam *exam, const char *unit, const char *setting)
{
    struct unit_files files = files_of(exam, unit);
    const char *list = "";
    for (size_t i = 0; i < files.count; i++)
        list = add_values(exam, files.paths[i], setting, list);
    return list;
}

size_t gp_service_units(struct gp_exam *exam, bool (*is_one)(const char *unit), const char **ret,
                        size_t most)
{
    char **names;
    size_t count = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(all_folders); i++) {
        long n = gp_files_list(&exam->files, &exam->arena, all_folders[i], &names);
        for (long k = 0; k < n && count < most; k++) {
            size_t length = strlen(names[k]);
            const char *unit = gp_exam_text(
                exam, "%.*s", (int)(length - (gp_lines_ends(names[k], ".d") ? 2 : 0)), names[k]);
            bool is_new = is_one(unit);
            for (size_t j = 0; j < count && is_new; j++)
                is_new = strcmp(ret[j], unit) != 0;
            if (is_new)
                ret[count++] = unit;
        }
    }
    return count;
}

bool gp_service_is_yes(struct gp_exam *exam, const char *unit, const char *setting)
{
    const char *value = gp_service_value(exam, unit, setting);
    return value && value[0] && strchr("yYtT1", value[0]);
}

/* The last value that "Environment=" gives to a variable, without quotes; NULL: none. */
static const char *variable_of(struct gp_exam *exam, const char *set, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);
    for (const char *p = set; (p = strstr(p, name)); p += n)
        if ((p == set || strchr("\n \"'", p[-1])) && p[n] == '=')
            found = p + n + 1;
    if (!found)
        return NULL;
    found += strspn(found, "\"'");
    return gp_exam_text(exam, "%.*s", (int)strcspn(found, "\"' \n"), found);
}

bool gp_service_is_for_cpu(struct gp_exam *exam, const char *unit)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES"},
                             *const options[] = {"-ngl 0", "--n-gpu-layers 0", "--gpu-layers 0"};
    const char *set = gp_service_list(exam, unit, "Environment");
    const char *command = gp_service_value(exam, unit, "ExecStart");
    const char *library = variable_of(exam, set, "OLLAMA_LLM_LIBRARY");
    bool is_nvidia = exam->machine.nvidia_count > 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *value = i == 0 || !is_nvidia ? variable_of(exam, set, names[i]) : NULL;
        if (value && (value[0] == '\0' || value[0] == '-'))
            return true;
    }
    for (size_t i = 0; command && i < GP_ARRAY_LEN(options); i++) {
        const char *at = strstr(command, options[i]);
        if (at && strchr(" \t\"'\r\n", at[strlen(options[i])])) /* or the end */
            return true;
    }
    return library && strncmp(library, "cpu", 3) == 0;
}
