#include "tui/theme_file.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".theme"

const char *const gp_ink_words[GP_INK__COUNT] = {
    [GP_INK_PLAIN] = "plain",       [GP_INK_STRONG] = "strong",     [GP_INK_DIM] = "dim",
    [GP_INK_TITLE] = "title",       [GP_INK_LOW] = "load",          [GP_INK_MEDIUM] = "held",
    [GP_INK_HIGH] = "trouble",      [GP_INK_CRITICAL] = "critical", [GP_INK_STALE] = "stale",
    [GP_INK_SELECTED] = "selected", [GP_INK_TAGGED] = "tagged",     [GP_INK_KEY] = "key",
    [GP_INK_MEMORY] = "memory",     [GP_INK_PAUSED] = "paused",
};

const struct gp_look *gp_colors_look(const struct gp_colors *colors, enum gp_ink ink, bool on_light)
{
    return colors->replaced >> ink & 1 ? &colors->looks[ink]
                                       : &gp_theme_looks(colors->theme, on_light)[ink];
}

/* ---- colors ---- */

static bool read_rgb(const char *word, int *ret)
{
    if (*word != '#' || strlen(word) != 7 ||
        strspn(word + 1, "0123456789abcdefABCDEF") != strlen(word + 1))
        return false;
    *ret = (int)strtol(word + 1, NULL, 16) | GP_COLOR_RGB;
    return true;
}

static bool read_color(const char *word, int *ret)
{
    static const char *const names[] = {"black", "red",     "green", "yellow",
                                        "blue",  "magenta", "cyan",  "white"};
    uint64_t number;
    if (strcmp(word, "default") == 0) {
        *ret = -1;
        return true;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(word, names[i]) == 0) {
            *ret = (int)i;
            return true;
        }
    if (read_rgb(word, ret))
        return true;
    if (!gp_parse_u64(word, &number) || number > 255)
        return false;
    *ret = (int)number;
    return true;
}

static unsigned attr_of(const char *word)
{
    static const struct {
        const char *word;
        enum gp_attr attr;
    } attrs[] = {
        {"bold", GP_ATTR_BOLD}, {"reverse", GP_ATTR_REVERSE}, {"underline", GP_ATTR_UNDERLINE}};
    for (size_t i = 0; i < GP_ARRAY_LEN(attrs); i++)
        if (strcmp(word, attrs[i].word) == 0)
            return attrs[i].attr;
    return 0;
}

/* With 8 colors, a grey is the terminal's own color, which stands out from any background. */
static short few(int color)
{
    const short found = gp_color_of_8(color);
    return color >= 8 && (found == 0 || found == 7) ? -1 : found;
}

/* Reads "bold #ff5f5f on black"; returns the word that is wrong, or NULL. */
static const char *read_look(char *value, struct gp_look *look)
{
    bool has_color = false;
    bool is_behind = false;
    char *next;
    look->fg = look->bg = -1;
    look->attrs = 0;
    for (char *word = value; *word; word = next) {
        const size_t n = strcspn(word, " \t");
        next = word + n + strspn(word + n, " \t");
        word[n] = '\0';
        const unsigned attr = attr_of(word);
        if (attr)
            look->attrs |= attr;
        else if (strcmp(word, "on") == 0 && !is_behind)
            is_behind = true;
        else if (is_behind && look->bg < 0 && read_color(word, &look->bg))
            continue;
        else if (!is_behind && !has_color && read_color(word, &look->fg))
            has_color = true;
        else
            return word;
    }
    look->fg_of_8 = few(look->fg);
    return NULL;
}

/* ---- lines ---- */

/* A text of the file in a message: what is not printable becomes a question mark. */
enum { QUOTED = 24 };

static const char *quote(const char *text, char ret[QUOTED])
{
    (void)snprintf(ret, QUOTED, "%s", text);
    for (char *p = ret; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return ret;
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]))
        text[--n] = '\0';
    return text;
}

static int unknown_look(const char *path, int line, const char *name, struct gp_err *err)
{
    char quoted[QUOTED];
    char room[160] = "";
    struct gp_strbuf words = GP_STRBUF_ON(room, sizeof(room) - 1);
    for (int i = 0; i < GP_INK__COUNT; i++)
        gp_strbuf_addf(&words, " %s", gp_ink_words[i]);
    return gp_err_set(err, GP_EFORMAT, "%s:%d: unknown name '%s'; use one of:%s", path, line,
                      quote(name, quoted), words.buf);
}

/* "load = #5fd7af", a comment, or nothing. */
static int read_line(char *line, int number, const char *path, struct gp_colors *colors,
                     struct gp_err *err)
{
    char quoted[QUOTED];
    int ink = 0;
    char *name = trim(line);
    if (*name == '\0' || *name == '#' || *name == ';')
        return 0;
    char *value = strchr(name, '=');
    if (!value)
        return gp_err_set(err, GP_EFORMAT,
                          "%s:%d: '%s' has no '='; write NAME = COLOR, for example load = #5fd7af",
                          path, number, quote(name, quoted));
    *value++ = '\0';
    name = trim(name);
    value = trim(value);
    while (ink < GP_INK__COUNT && strcmp(gp_ink_words[ink], name) != 0)
        ink++;
    if (ink == GP_INK__COUNT)
        return unknown_look(path, number, name, err);
    struct gp_look look = gp_theme_looks(GP_THEME_DEFAULT, false)[ink];
    const char *wrong = *value ? read_look(value, &look) : value;
    if (wrong)
        return gp_err_set(err, GP_EFORMAT,
                          "%s:%d: bad color '%s' for %s; write for example #5fd7af, 79, green, "
                          "bold red on black, or default",
                          path, number, quote(wrong, quoted), name);
    colors->looks[ink] = look;
    colors->replaced |= UINT32_C(1) << ink;
    return 0;
}

int gp_theme_parse(const char *text, const char *path, struct gp_colors *ret, struct gp_err *err)
{
    enum { LINE_MAX_SIZE = 256 };
    struct gp_colors colors = {.theme = GP_THEME_DEFAULT};
    int r = 0;
    for (int number = 1; r == 0 && *text; number++) {
        char line[LINE_MAX_SIZE];
        const size_t n = strcspn(text, "\n");
        if (n >= sizeof(line))
            return gp_err_set(err, GP_EFORMAT, "%s:%d: longer than %zu bytes; shorten the line",
                              path, number, sizeof(line) - 1);
        memcpy(line, text, n);
        line[n] = '\0';
        r = read_line(line, number, path, &colors, err);
        text += n + (text[n] == '\n');
    }
    if (r == 0)
        *ret = colors;
    return r;
}

/* ---- files ---- */

bool gp_themes_path(char ret[GP_PATH_SIZE])
{
    return gp_io_user_folder(ret, "XDG_CONFIG_HOME", ".config", "themes");
}

bool gp_theme_is_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t n = strlen(name);
    return n > 0 && n < GP_THEME_NAME_SIZE && *name != '.' && *name != '-' &&
           strspn(name, allowed) == n;
}

/* Why a file or folder is not trusted; NULL: it is. */
static const char *distrust(const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "belongs to another user; copy it, so that it is yours";
    if (st->st_mode & S_IWOTH)
        return "others can write to it; run chmod o-w on it";
    return NULL;
}

static int refuse(const char *path, const char *reason, struct gp_err *err)
{
    return gp_err_set(err, GP_EPERM, "%s: %s", path, reason);
}

/* Opens without waiting for the other end of a pipe. */
static int read_file(int folder, const char *path, char *ret, struct gp_err *err)
{
    struct stat st;
    size_t size = 0;
    ssize_t n = 1;
    int fd = openat(folder, strrchr(path, '/') + 1, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        const int e = errno;
        if (fd >= 0)
            (void)close(fd);
        return gp_err_system(err, e, GP_EIO, "cannot read '%s'", path);
    }
    const char *reason = !S_ISREG(st.st_mode)             ? "is not a regular file; remove it"
                         : st.st_size > GP_THEME_FILE_MAX ? "is larger than 16 KiB; shorten it"
                                                          : distrust(&st);
    while (!reason && n > 0 && size < GP_THEME_FILE_MAX) {
        n = read(fd, ret + size, GP_THEME_FILE_MAX - size);
        size += n > 0 ? (size_t)n : 0;
    }
    const int e = errno;
    (void)close(fd);
    ret[size] = '\0';
    if (n < 0)
        return gp_err_system(err, e, GP_EIO, "cannot read '%s'", path);
    if (!reason && strlen(ret) < size)
        reason = "is not a text; write NAME = COLOR lines";
    return reason ? refuse(path, reason, err) : 0;
}

static int load_file(const char *folder, const char *name, struct gp_colors *ret,
                     struct gp_err *err)
{
    char path[GP_PATH_SIZE + 64];
    char text[GP_THEME_FILE_MAX + 1];
    struct stat st;
    struct stat link;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof(path), "%s/%s" SUFFIX, folder, name);
    if (fd < 0 || fstatat(fd, strrchr(path, '/') + 1, &link, AT_SYMLINK_NOFOLLOW) != 0) {
        if (fd >= 0)
            (void)close(fd);
        return gp_err_set(err, GP_EUSAGE,
                          "no theme '%s'; use one of: " GP_THEME_WORDS ", or write %s", name, path);
    }
    const char *reason = fstat(fd, &st) != 0 ? strerror(errno) : distrust(&st);
    int r = reason ? refuse(folder, reason, err) : 0;
    if (r == 0 && link.st_uid != 0 && link.st_uid != geteuid())
        r = refuse(path, distrust(&link), err);
    if (r == 0)
        r = read_file(fd, path, text, err);
    (void)close(fd);
    return r < 0 ? r : gp_theme_parse(text, path, ret, err);
}

int gp_theme_load(const char *folder, const char *name, struct gp_colors *ret, struct gp_err *err)
{
    *ret = (struct gp_colors){.theme = GP_THEME_DEFAULT};
    if (gp_theme_find(name, &ret->theme))
        return 0;
    if (!folder || !gp_theme_is_name(name))
        return gp_err_set(err, GP_EUSAGE, "no theme '%.40s'; use one of: " GP_THEME_WORDS, name);
    return load_file(folder, name, ret, err);
}

void gp_themes_add_names(struct gp_strbuf *sb, const char *folder)
{
    struct gp_strbuf names = GP_STRBUF_INIT(1 << 16);
    enum gp_theme built_in;
    gp_io_list_names(folder, SUFFIX, &names);
    for (char *name = names.buf; *name;) {
        char *end = name + strcspn(name, "\n");
        const bool is_last = *end == '\0';
        *end = '\0';
        if (gp_theme_is_name(name) && !gp_theme_find(name, &built_in))
            gp_strbuf_addf(sb, " %s", name);
        name = is_last ? end : end + 1;
    }
    gp_strbuf_fini(&names);
}
