/* What Hyprland's configuration says: ~/.config/hypr and the folders in it, which are sourced, and
 * Omarchy's defaults, which that sources as well. */
#include "doctor/checks/graphics_hyprland.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <string.h>

enum { MOST_BYTES = 1 << 18, MOST_FILES = 256 };

/* Goes over the lines of the files. Which of them hyprland.conf sources, and in what order, is not
 * known here. */
struct config {
    const char *files[MOST_FILES], *path; /* the last: of the line */
    size_t count, next;
    struct gp_lines lines;
};

static void add_files(struct gp_exam *exam, const char *folder, struct config *ret)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && ret->count < MOST_FILES; i++) {
        const char *end = strrchr(names[i], '.');
        if (end && end > names[i] && (strcmp(end, ".conf") == 0 || strcmp(end, ".lua") == 0))
            ret->files[ret->count++] = gp_exam_text(exam, "%s/%s", folder, names[i]);
    }
}

static struct config config_of(struct gp_exam *exam)
{
    struct config config = {0};
    const struct gp_homes *homes = gp_homes_of(exam);
    for (size_t i = 0; i < homes->count; i++) {
        char **names;
        add_files(exam, gp_exam_text(exam, "%s/.local/share/omarchy/default/hypr", homes->list[i]),
                  &config);
        const char *folder = gp_exam_text(exam, "%s/.config/hypr", homes->list[i]);
        long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
        add_files(exam, folder, &config);
        for (long k = 0; k < n; k++)
            add_files(exam, gp_exam_text(exam, "%s/%s", folder, names[k]), &config);
    }
    return config;
}

static size_t blanks(const char *line, size_t n, const char *which)
{
    size_t i = 0;
    while (i < n && strchr(which, line[i]))
        i++;
    return i;
}

/* The next line, without the blanks before it. */
static bool next_line(struct gp_exam *exam, struct config *config, const char **ret, size_t *ret_n)
{
    while (!gp_lines_next(&config->lines, ret, ret_n)) {
        size_t size = 0;
        if (config->next == config->count)
            return false;
        config->path = config->files[config->next++];
        const char *text =
            gp_files_text(&exam->files, &exam->arena, config->path, MOST_BYTES, &size);
        config->lines = gp_lines_of(text, text ? size : 0);
    }
    size_t start = blanks(*ret, *ret_n, " \t");
    *ret += start;
    *ret_n -= start;
    return true;
}

static void keep(struct gp_exam *exam, const struct config *config, const char *line, size_t n,
                 struct gp_hyprland_line *ret)
{
    ret->path = config->path;
    ret->place = gp_exam_text(exam, "%s:%zu", config->path, config->lines.number);
    ret->text = gp_exam_text(exam, "%.*s", (int)n, line);
}

/* Goes past a word and the sign behind it, with blanks around the sign. */
static bool skip(const char **line, size_t *n, const char *word, char sign)
{
    size_t i = strlen(word);
    if (*n <= i || memcmp(*line, word, i) != 0)
        return false;
    i += blanks(*line + i, *n - i, " \t");
    if (i == *n || (*line)[i] != sign)
        return false;
    i++;
    i += blanks(*line + i, *n - i, " \t");
    *line += i;
    *n -= i;
    return true;
}

/* "preferred", "1920x1080@60" or "disable", but not "transform" and "addreserved", which leave the
 * monitor on or off. */
static enum gp_hyprland_wish wish_of(const char *value, size_t n)
{
    static const char off[] = "disable";
    static const char *const modes[] = {"preferred", "highres", "highrr", "maxwidth", "modeline"};
    if (n >= sizeof(off) - 1 && memcmp(value, off, sizeof(off) - 1) == 0)
        return GP_HYPRLAND_OFF;
    for (size_t i = 0; i < GP_ARRAY_LEN(modes); i++)
        if (n >= strlen(modes[i]) && memcmp(value, modes[i], strlen(modes[i])) == 0)
            return GP_HYPRLAND_ON;
    return n > 0 && value[0] >= '0' && value[0] <= '9' ? GP_HYPRLAND_ON : GP_HYPRLAND_UNKNOWN;
}

enum gp_hyprland_wish gp_hyprland_wish(struct gp_exam *exam, const char *connector,
                                       struct gp_hyprland_line *ret)
{
    enum gp_hyprland_wish wish = GP_HYPRLAND_UNKNOWN;
    struct config config = config_of(exam);
    const char *line;
    for (size_t n; wish != GP_HYPRLAND_OFF && next_line(exam, &config, &line, &n);) {
        const char *value = line;
        size_t left = n;
        enum gp_hyprland_wish one =
            skip(&value, &left, "monitor", '=') && skip(&value, &left, connector, ',')
                ? wish_of(value, left)
                : GP_HYPRLAND_UNKNOWN;
        if (one > wish) {
            wish = one;
            keep(exam, &config, line, n, ret);
        }
    }
    return wish;
}

bool gp_hyprland_left_out(struct gp_exam *exam, const char *variable, struct gp_hyprland_line *ret)
{
    struct config config = config_of(exam);
    const char *line;
    for (size_t n; next_line(exam, &config, &line, &n);) {
        size_t start = n > 0 && line[0] == '#' ? blanks(line, n, "# \t") : 0, left = n - start;
        const char *value = line + start;
        if (start > 0 && skip(&value, &left, "env", '=') && skip(&value, &left, variable, ',')) {
            keep(exam, &config, line, n, ret);
            return true;
        }
    }
    return false;
}

/* Of "nvidia" and of `"nvidia")`, as the language of its settings became Lua. */
static bool has_value(const char *text, size_t n, const char *value)
{
    size_t quote = n > 0 && text[0] == '"', length = strlen(value);
    return n >= quote + length && memcmp(text + quote, value, length) == 0 &&
           (n == quote + length || strchr("\" \t\r", text[quote + length]));
}

bool gp_hyprland_sets(struct gp_exam *exam, const char *variable, const char *value,
                      struct gp_hyprland_line *ret)
{
    struct config config = config_of(exam);
    const char *line, *quoted = gp_exam_text(exam, "\"%s\"", variable);
    for (size_t n; next_line(exam, &config, &line, &n);) {
        const char *at = line;
        size_t left = n;
        bool is_set = skip(&at, &left, "env", '=')
                          ? skip(&at, &left, variable, ',')
                          : skip(&at, &left, "hl.env", '(') && skip(&at, &left, quoted, ',');
        if (is_set && has_value(at, left, value)) {
            keep(exam, &config, line, n, ret);
            return true;
        }
    }
    return false;
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
