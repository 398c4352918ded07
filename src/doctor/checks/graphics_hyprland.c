/* What Hyprland's configuration says: ~/.config/hypr and the folders in it, which are sourced. */
#include "doctor/checks/graphics_hyprland.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <string.h>

enum { MOST_BYTES = 1 << 18 };

/* Whether a line, behind its blanks, is what is looked for, "env" or "monitor", about this word. */
typedef bool is_meant(const char *line, size_t n, const char *word);

static size_t blanks(const char *line, size_t n, const char *which)
{
    size_t i = 0;
    while (i < n && strchr(which, line[i]))
        i++;
    return i;
}

/* Whether the line sets a keyword, "monitor = …"; *ret_value: behind the equals sign. */
static bool is_keyword(const char *line, size_t n, const char *keyword, size_t *ret_value)
{
    size_t length = strlen(keyword), i = length;
    if (n <= length || memcmp(line, keyword, length) != 0)
        return false;
    i += blanks(line + i, n - i, " \t");
    if (i == n || line[i] != '=')
        return false;
    i++;
    *ret_value = i + blanks(line + i, n - i, " \t");
    return true;
}

static bool has_word(const char *value, size_t n, const char *word)
{
    size_t length = strlen(word);
    return n > length && memcmp(value, word, length) == 0 && (value[length] == ',');
}

/* "monitor=HDMI-A-1,preferred,auto,1" or "monitor=HDMI-A-1,disable" */
static bool is_monitor(const char *line, size_t n, const char *word)
{
    size_t at;
    return is_keyword(line, n, "monitor", &at) && has_word(line + at, n - at, word);
}

/* "#env = GBM_BACKEND,nvidia-drm" */
static bool is_commented(const char *line, size_t n, const char *word)
{
    size_t at, start = n > 0 && line[0] == '#' ? blanks(line, n, "# \t") : 0;
    return start > 0 && is_keyword(line + start, n - start, "env", &at) &&
           has_word(line + start + at, n - start - at, word);
}

static const char *find_in_file(struct gp_exam *exam, const char *path, is_meant *is,
                                const char *word, struct gp_hyprland_line *ret)
{
    size_t size = 0, n;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST_BYTES, &size), *line;
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        size_t start = blanks(line, n, " \t");
        if (!is(line + start, n - start, word))
            continue;
        ret->path = path;
        ret->place = gp_exam_text(exam, "%s:%zu", path, lines.number);
        ret->text = gp_exam_text(exam, "%.*s", (int)(n - start), line + start);
        return path;
    }
    return NULL;
}

static bool find_in(struct gp_exam *exam, const char *folder, bool has_folders, is_meant *is,
                    const char *word, struct gp_hyprland_line *ret)
{
    static const char end[] = ".conf";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        size_t length = strlen(names[i]);
        bool is_file = length >= sizeof(end) && strcmp(names[i] + length - 5, end) == 0;
        if (is_file ? find_in_file(exam, path, is, word, ret) != NULL
                    : has_folders && find_in(exam, path, false, is, word, ret))
            return true;
    }
    return false;
}

static bool find(struct gp_exam *exam, is_meant *is, const char *word, struct gp_hyprland_line *ret)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    for (size_t i = 0; i < homes->count; i++)
        if (find_in(exam, gp_exam_text(exam, "%s/.config/hypr", homes->list[i]), true, is, word,
                    ret))
            return true;
    return false;
}

enum gp_hyprland_wish gp_hyprland_wish(struct gp_exam *exam, const char *connector,
                                       struct gp_hyprland_line *ret)
{
    if (!find(exam, is_monitor, connector, ret))
        return GP_HYPRLAND_UNKNOWN;
    return strstr(ret->text, "disable") ? GP_HYPRLAND_OFF : GP_HYPRLAND_ON;
}

bool gp_hyprland_left_out(struct gp_exam *exam, const char *variable, struct gp_hyprland_line *ret)
{
    return find(exam, is_commented, variable, ret);
}

bool gp_hyprland_is_of_wlroots(struct gp_exam *exam)
{
    static const char *const names[] = {"hyprland", NULL};
    static const char first_own[] = "0.42"; /* with aquamarine */
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, names, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0)
            return gp_version_compare(packages[i].version, first_own) < 0;
    return false;
}
