#include "tui/prefs.h"

#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "tui/choices.h"
#include "tui/presets.h"
#include "tui/top_columns.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 64 << 10 };

#define SECTION "top"

static const uint64_t steps_ms[] = {100, 250, 500, 1000, 2000, 5000, 10000, 30000, 60000};

const struct gp_pref_info gp_pref_table[GP_PREF__COUNT] = {
#define PREF(id, field, type, letter, name, argument, choices, help)                               \
    [GP_PREF_##id] = {name, choices, help, GP_PREF_##type, offsetof(struct gp_prefs, field)},
#include "tui/prefs.def"
#undef PREF
};

void gp_prefs_init(struct gp_prefs *prefs)
{
    *prefs = (struct gp_prefs){
        .interval_ns = GP_NS_PER_S,
        .view = GP_DENSITY_AUTO,
        .sort = "memory",
        .theme = "default",
        .gpus = true,
        .graphs = true,
        .presets = GP_PRESETS_USUAL,
        .processes = true,
        .alerts = true,
        .mouse = true,
        .sync = true,
    };
}

/* ---- values ---- */

/* Checks texts that have a syntax. */
static int check_text(enum gp_pref pref, const char *text, struct gp_err *err)
{
    struct gp_proc_order order;
    enum gp_proc_column columns[GP_TOP_COLUMNS];
    size_t count;
    if (pref == GP_PREF_SORT)
        return gp_proc_order_parse(text, &order, err);
    if (pref == GP_PREF_PRESETS)
        return gp_presets_check(text, err);
    return pref == GP_PREF_COLUMNS ? gp_top_columns_parse(text, columns, &count, err) : 0;
}

static void *field_of(struct gp_prefs *prefs, enum gp_pref pref)
{
    return (char *)prefs + gp_pref_table[pref].offset;
}

static int bad_value(enum gp_pref pref, const char *text, struct gp_err *err)
{
    const struct gp_pref_info *info = &gp_pref_table[pref];
    return gp_err_set(err, GP_EUSAGE, "bad value '%.80s' for %s: expected %s", text, info->name,
                      info->choices                    ? info->choices
                      : info->type == GP_PREF_DURATION ? "a time of at least 0.1 seconds"
                                                       : "a shorter text of one line");
}

int gp_pref_set(struct gp_prefs *prefs, enum gp_pref pref, const char *text, struct gp_err *err)
{
    const struct gp_pref_info *info = &gp_pref_table[pref];
    void *field = field_of(prefs, pref);
    int place = info->choices ? gp_choices_find(info->choices, text, strlen(text)) : 0;
    uint64_t ns;
    if (place < 0 && !(info->type == GP_PREF_NAME && gp_theme_is_name(text)))
        return bad_value(pref, text, err);
    switch (info->type) {
    case GP_PREF_SWITCH:
        *(bool *)field = place != 0;
        return 0;
    case GP_PREF_CHOICE:
    case GP_PREF_MODE:
        *(int *)field = place;
        return 0;
    case GP_PREF_DURATION:
        if (!gp_parse_duration(text, &ns) || ns < steps_ms[0] * GP_NS_PER_MS)
            return bad_value(pref, text, err);
        *(uint64_t *)field = ns;
        return 0;
    case GP_PREF_NAME:
    case GP_PREF_TEXT:
        if (strlen(text) >= GP_PREF_TEXT_SIZE || strpbrk(text, "\r\n"))
            return bad_value(pref, text, err);
        if (check_text(pref, text, err) < 0)
            return GP_EUSAGE;
        (void)snprintf(field, GP_PREF_TEXT_SIZE, "%s", text);
        return 0;
    }
    return 0;
}

void gp_pref_format(struct gp_strbuf *sb, const struct gp_prefs *prefs, enum gp_pref pref)
{
    const struct gp_pref_info *info = &gp_pref_table[pref];
    const void *field = (const char *)prefs + info->offset;
    if (info->type == GP_PREF_TEXT || info->type == GP_PREF_NAME) {
        gp_strbuf_adds(sb, field);
    } else if (info->type == GP_PREF_DURATION) {
        gp_strbuf_addf(sb, "%gs", (double)*(const uint64_t *)field / (double)GP_NS_PER_S);
    } else {
        int place = info->type == GP_PREF_SWITCH ? *(const bool *)field : *(const int *)field;
        size_t n;
        const char *word = gp_choice_at(info->choices, place, &n);
        gp_strbuf_add(sb, word, n);
    }
}

static uint64_t step_interval(uint64_t ns, bool forward)
{
    size_t at = 0;
    size_t last = GP_ARRAY_LEN(steps_ms) - 1;
    while (at < last && steps_ms[at] * GP_NS_PER_MS < ns)
        at++;
    if (!forward && at > 0)
        at--;
    else if (forward && at < last && steps_ms[at] * GP_NS_PER_MS <= ns)
        at++;
    return steps_ms[at] * GP_NS_PER_MS;
}

void gp_pref_step(struct gp_prefs *prefs, enum gp_pref pref, bool forward)
{
    const struct gp_pref_info *info = &gp_pref_table[pref];
    void *field = field_of(prefs, pref);
    const int count = info->choices ? gp_choices_count(info->choices) : 0;
    if (info->type == GP_PREF_SWITCH)
        *(bool *)field = !*(bool *)field;
    else if ((info->type == GP_PREF_CHOICE || info->type == GP_PREF_MODE) && count > 0)
        *(int *)field = (*(int *)field + (forward ? 1 : count - 1)) % count;
    else if (info->type == GP_PREF_DURATION)
        *(uint64_t *)field = step_interval(*(uint64_t *)field, forward);
}

void gp_pref_step_name(struct gp_prefs *prefs, enum gp_pref pref, const char *words, bool forward)
{
    char *field = field_of(prefs, pref);
    int place = gp_choices_find(words, field, strlen(field));
    const int count = gp_choices_count(words);
    size_t n;
    if (count == 0)
        return;
    place = place < 0 ? 0 : (place + (forward ? 1 : count - 1)) % count;
    const char *word = gp_choice_at(words, place, &n);
    (void)snprintf(field, GP_PREF_TEXT_SIZE, "%.*s", (int)n, word);
}

/* ---- the file ---- */

bool gp_prefs_path(char ret[GP_PATH_SIZE])
{
    return gp_io_user_folder(ret, "XDG_CONFIG_HOME", ".config", "config.ini");
}

struct load {
    struct gp_prefs *prefs;
    const char *path;
    struct gp_err *err;
    int r;
};

static int on_line(void *user, const char *section, const char *name, const char *value)
{
    struct load *load = user;
    struct gp_err err = {0};
    int r = 0;
    int pref = 0;
    if (strcmp(section, SECTION) != 0)
        return 1;
    while (pref < GP_PREF__COUNT && strcmp(gp_pref_table[pref].name, name) != 0)
        pref++;
    if (pref == GP_PREF__COUNT)
        r = gp_err_set(&err, GP_EUSAGE, "unknown name '%.80s'", name);
    else
        r = gp_pref_set(load->prefs, (enum gp_pref)pref, value, &err);
    if (r < 0 && load->r == 0)
        load->r = gp_err_set(load->err, r, "%s: %s", load->path, err.text);
    return 1;
}

int gp_prefs_load(struct gp_prefs *prefs, const char *path, struct gp_err *err)
{
    struct load load = {prefs, path, err, 0};
    FILE *file = fopen(path, "re");
    if (!file && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!file)
        return gp_err_system(err, errno, GP_EIO, "cannot read '%s'", path);
    int line = ini_parse_file(file, on_line, &load);
    (void)fclose(file);
    if (load.r == 0 && line > 0)
        return gp_err_set(err, GP_EUSAGE, "%s:%d: expected [section] or name = value", path, line);
    return load.r;
}

/* Appends the text without our section. All other lines stay unchanged. */
static void add_others(struct gp_strbuf *sb, const char *text)
{
    bool ours = false;
    while (*text) {
        size_t n = strcspn(text, "\n");
        n += text[n] == '\n';
        if (*text == '[')
            ours = strncmp(text, "[" SECTION "]", strlen(SECTION) + 2) == 0;
        if (!ours)
            gp_strbuf_add(sb, text, n);
        text += n;
    }
    if (sb->len > 0 && sb->buf[sb->len - 1] != '\n')
        gp_strbuf_addc(sb, '\n');
}

/* Creates the parent directories of a file. Errors show when the file is written. */
static void make_folders(const char *path)
{
    char folder[GP_PATH_SIZE];
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(p - path), path);
        (void)mkdir(folder, 0700);
    }
}

int gp_prefs_save(const struct gp_prefs *prefs, const char *path, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(2 * FILE_MAX);
    char *old = calloc(1, FILE_MAX);
    int r = old ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
    long n = old ? gp_io_read(path, old, FILE_MAX) : 0;
    if (n < 0 && n != -ENOENT && n != -ENOTDIR)
        r = gp_err_system(err, (int)-n, GP_EIO, "cannot read '%s'", path);
    if (n == FILE_MAX - 1)
        r = gp_err_set(err, GP_EIO, "'%s' is too long to be changed", path);
    if (r == 0) {
        add_others(&sb, n > 0 ? old : "");
        gp_strbuf_adds(&sb, "[" SECTION "]\n");
        for (int pref = 0; pref < GP_PREF__COUNT; pref++) {
            gp_strbuf_addf(&sb, "%s = ", gp_pref_table[pref].name);
            gp_pref_format(&sb, prefs, (enum gp_pref)pref);
            gp_strbuf_addc(&sb, '\n');
        }
        make_folders(path);
        r = sb.error ? gp_err_set(err, sb.error, "out of memory")
                     : gp_outfile_replace(path, 0666, sb.buf, sb.len, true, err);
    }
    free(old);
    gp_strbuf_fini(&sb);
    return r;
}
