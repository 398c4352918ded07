#include "doctor/readers/lutris.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"

#include <string.h>

enum { GAMES_MAX = 256, FILES_MAX = 1024, SETTINGS_SIZE = 64 << 10 };

/* The value of a key at any depth of a game's settings, which Lutris writes without braces:
 * "  prefix: /home/ada/Games/some-game"; "": it has none. */
static const char *value_of(struct gp_exam *exam, const char *settings, const char *key)
{
    const size_t m = strlen(key);
    const char *line;
    size_t n;
    struct gp_lines lines = gp_lines_of(settings, strlen(settings));
    while (gp_lines_next(&lines, &line, &n)) {
        for (; n > 0 && *line == ' '; n--)
            line++;
        if (n < m + 2 || strncmp(line, key, m) != 0 || strncmp(line + m, ": ", 2) != 0)
            continue;
        const char *value = line + m + 2, *end = line + n;
        bool is_quoted = end - value > 1 && (*value == '\'' || *value == '"') && end[-1] == *value;
        return gp_exam_text(exam, "%.*s", (int)(end - value) - 2 * is_quoted, value + is_quoted);
    }
    return "";
}

/* DXVK begins its log anew with each run. */
static bool is_of_dxvk(const char *name)
{
    static const char *const ends[] = {"_d3d8.log", "_d3d9.log", "_d3d10.log", "_d3d11.log",
                                       "_dxgi.log"};
    size_t n = strlen(name);
    for (size_t i = 0; i < GP_ARRAY_LEN(ends); i++)
        if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* Whether the log ends with a search for GPUs in vain. One that was found, but has too old a
 * Vulkan, is another fault. */
static bool tells(struct gp_exam *exam, const char *path, const char **ret_where,
                  const char **ret_text)
{
    static const char found_none[] = "DXVK: No adapters found", too_old[] = "Skipping Vulkan";
    enum { LOG_SIZE = 256 << 10 };
    const char *text = gp_files_text(&exam->files, &exam->arena, path, LOG_SIZE, NULL);
    const char *at = text ? strstr(text, found_none) : NULL;
    if (!at || strstr(text, too_old))
        return false;
    unsigned number = 1;
    for (const char *p = text; p < at; p++)
        number += *p == '\n';
    *ret_where = gp_exam_text(exam, "%s:%u", path, number);
    *ret_text = gp_exam_text(exam, "%.*s", (int)strcspn(at, "\r\n"), at);
    return true;
}

static bool look_into_folder(struct gp_exam *exam, const char *folder, const char **ret_where,
                             const char **ret_text)
{
    char **names;
    long n = folder[0] == '/' ? gp_files_list(&exam->files, &exam->arena, folder, &names) : 0;
    for (long i = 0; i < n && i < FILES_MAX; i++)
        if (is_of_dxvk(names[i]) &&
            tells(exam, gp_exam_text(exam, "%s/%s", folder, names[i]), ret_where, ret_text))
            return true;
    return false;
}

/* A program's log is in the folder that it was started in: mostly its own. */
static bool look_at_game(struct gp_exam *exam, const char *path, const char *const *words,
                         const char **ret_where, const char **ret_text)
{
    const char *settings = gp_files_text(&exam->files, &exam->arena, path, SETTINGS_SIZE, NULL);
    for (size_t i = 0; settings && words[i]; i++)
        if (strstr(settings, words[i]))
            return false;
    if (!settings)
        return false;
    const char *program = value_of(exam, settings, "exe"), *end = strrchr(program, '/');
    const char *const folders[] = {
        value_of(exam, settings, "working_dir"), value_of(exam, settings, "prefix"),
        end ? gp_exam_text(exam, "%.*s", (int)(end - program), program) : ""};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (look_into_folder(exam, folders[i], ret_where, ret_text))
            return true;
    return false;
}

bool gp_lutris_without_gpu(struct gp_exam *exam, const char *const *words, const char **ret_where,
                           const char **ret_text)
{
    /* Its Flatpak has Vulkan drivers of its own. */
    static const char *const folders[] = {".config/lutris/games", ".local/share/lutris/games"};
    const struct gp_homes *homes = gp_homes_of_all(exam);
    char **names;
    for (size_t i = 0; i < homes->count; i++)
        for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
            const char *folder = gp_exam_text(exam, "%s/%s", homes->list[i], folders[f]);
            long count = gp_files_list(&exam->files, &exam->arena, folder, &names);
            for (long k = 0; k < count && k < GAMES_MAX; k++)
                if (look_at_game(exam, gp_exam_text(exam, "%s/%s", folder, names[k]), words,
                                 ret_where, ret_text))
                    return true;
        }
    return false;
}

/* Whether Wine's libraries for this processor are in one of its directories, which builds name
 * after different distributions. */
static bool has_libraries(struct gp_exam *exam, const char *top, const char *processor)
{
    static const char *const names[] = {"lib", "lib64", "lib32"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (gp_files_exist(&exam->files,
                           gp_exam_text(exam, "%s/%s/wine/%s-unix", top, names[i], processor)))
            return true;
    return false;
}

/* Builds for the new WoW64 run programs of 32 bits with libraries of 64 bits. Beside the builds are
 * archives and remains of them. */
static bool is_narrow_wine(struct gp_exam *exam, const char *folder, const char *name)
{
    const char *top = gp_exam_text(exam, "%s/%s", folder, name);
    return !strcasestr(name, "wow64") &&
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/bin/wine", top)) &&
           (has_libraries(exam, top, "i386") || !has_libraries(exam, top, "x86_64"));
}

const char *gp_lutris_narrow_wine(struct gp_exam *exam)
{
    const struct gp_homes *homes = gp_homes_of_all(exam);
    char **names;
    for (size_t i = 0; i < homes->count; i++) {
        const char *folder =
            gp_exam_text(exam, "%s/.local/share/lutris/runners/wine", homes->list[i]);
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long k = 0; k < n && k < FILES_MAX; k++)
            if (is_narrow_wine(exam, folder, names[k]))
                return gp_exam_text(exam, "%s/%s", folder, names[k]);
    }
    return NULL;
}

/* At each start it logs what it has not found: "i386 libvulkan.so.1 missing (needed by vulkan)". */
static bool find_lacking(struct gp_exam *exam, const char *path, const char **ret_where,
                         const char **ret_text)
{
    static const char *const words[] = {"i386 libvulkan.so.1 missing", "i386 libGL.so.1 missing"};
    enum { LOG_END = 1 << 20, LINE = 200 };
    size_t size = 0, n;
    const char *line, *text = gp_files_tail(&exam->files, &exam->arena, path, LOG_END, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    *ret_where = NULL;
    while (gp_lines_next(&lines, &line, &n)) {
        if (memmem(line, n, "Starting Lutris", strlen("Starting Lutris")))
            *ret_where = NULL;
        for (size_t i = 0; i < GP_ARRAY_LEN(words) && !*ret_where; i++)
            if (memmem(line, n, words[i], strlen(words[i]))) {
                *ret_where = path;
                *ret_text = gp_exam_text(exam, "%.*s", n < LINE ? (int)n : LINE, line);
            }
    }
    return *ret_where;
}

bool gp_lutris_lacks_narrow(struct gp_exam *exam, const char **ret_where, const char **ret_text)
{
    static const char *const logs[] = {".cache/lutris/lutris.log",
                                       ".local/share/lutris/lutris.log"};
    const struct gp_homes *homes = gp_homes_of_all(exam);
    for (size_t i = 0; i < homes->count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(logs); k++)
            if (find_lacking(exam, gp_exam_text(exam, "%s/%s", homes->list[i], logs[k]), ret_where,
                             ret_text))
                return true;
    return false;
}
