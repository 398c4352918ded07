#include "tui/presets.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/choices.h"

#include <string.h>

#define REGIONS "gpus graphs processes host"

enum region { GPUS, GRAPHS, PROCESSES, HOST };

/* "gpus:line:load" has values after its name: ":line:load". */
static bool take_value(const char **values, const char *end, const char *words, int *ret)
{
    if (*values >= end)
        return true;
    const char *value = *values + 1;
    size_t n = strcspn(value, ": ,");
    *ret = gp_choices_find(words, value, n);
    *values = value + n;
    return *ret >= 0;
}

/* Reads a region of n bytes; returns what would be right, or NULL. */
static const char *read_region(const char *text, size_t n, struct gp_preset *preset)
{
    const char *end = text + n;
    const char *values = text + strcspn(text, ": ,");
    switch (gp_choices_find(REGIONS, text, (size_t)(values - text))) {
    case GPUS:
        preset->gpus = true;
        if (!take_value(&values, end, GP_DENSITY_WORDS, &preset->view))
            return "one of " GP_DENSITY_WORDS " after 'gpus:'";
        if (!take_value(&values, end, GP_GPU_ORDER_WORDS, &preset->gpu_order))
            return "one of " GP_GPU_ORDER_WORDS " after the view";
        break;
    case GRAPHS:
        preset->graphs = true;
        break;
    case PROCESSES:
        preset->processes = true;
        preset->first = !preset->gpus;
        break;
    case HOST:
        preset->host = GP_HOST_YES;
        if (!take_value(&values, end, GP_HOST_WORDS, &preset->host))
            return "one of " GP_HOST_WORDS " after 'host:'";
        break;
    default:
        return "a list of " REGIONS ", separated by commas";
    }
    return values == end ? NULL : "no further ':'";
}

/* Reads the preset at this index. Returns what would be right, or NULL; *ret_n is 0 after the last
 * one. */
static const char *read_preset(const char *text, int at, struct gp_preset *ret, size_t *ret_n)
{
    const char *wrong = NULL;
    const char *word = gp_choice_at(text, at, ret_n);
    const char *end = word + *ret_n;
    *ret =
        (struct gp_preset){.view = GP_DENSITY_AUTO, .gpu_order = GP_ORDER_AUTO, .host = GP_HOST_NO};
    for (const char *p = word; !wrong && p < end;) {
        const size_t n = strcspn(p, ", ");
        wrong = read_region(p, n, ret);
        p += n + (p[n] == ',');
    }
    if (ret->first && !ret->gpus)
        ret->first = false;
    if (!wrong && !ret->gpus && !ret->processes && *ret_n > 0)
        wrong = "gpus, processes or both in it";
    return wrong;
}

int gp_presets_check(const char *text, struct gp_err *err)
{
    struct gp_preset preset;
    size_t n;
    for (int i = 0;; i++) {
        const char *wrong = read_preset(text, i, &preset, &n);
        const char *word = gp_choice_at(text, i, &n);
        if (n == 0)
            return 0;
        if (!wrong && i >= GP_PRESETS_MAX)
            wrong = "at most 9 presets";
        if (wrong)
            return gp_err_set(err, GP_EUSAGE, "bad preset %d, '%.*s': expected %s", i + 1,
                              n < 40 ? (int)n : 40, word, wrong);
    }
}

bool gp_preset_get(const char *text, int at, struct gp_preset *ret)
{
    size_t n;
    return !read_preset(text, at, ret, &n) && n > 0;
}

static void add_part(struct gp_strbuf *sb, size_t start, const char *words)
{
    gp_strbuf_adds(sb, sb->len > start ? ", " : "");
    gp_strbuf_adds(sb, words);
}

static void add_gpus(struct gp_strbuf *sb, size_t start, const struct gp_preset *preset)
{
    static const char *const views[] = {
        [GP_DENSITY_CARD] = " as cards", [GP_DENSITY_BAR] = " as bars",
        [GP_DENSITY_LINE] = " as lines", [GP_DENSITY_GRID] = " as a grid",
        [GP_DENSITY_AUTO] = "",
    };
    add_part(sb, start, "GPUs");
    gp_strbuf_adds(sb, views[preset->view]);
    if (preset->gpu_order != GP_ORDER_AUTO)
        gp_strbuf_addf(sb, " by %s", gp_gpu_order_words[preset->gpu_order]);
}

void gp_preset_add_words(struct gp_strbuf *sb, const struct gp_preset *preset)
{
    const size_t start = sb->len;
    if (preset->first)
        add_part(sb, start, "processes");
    if (preset->gpus)
        add_gpus(sb, start, preset);
    if (preset->graphs)
        add_part(sb, start, "graphs");
    if (preset->processes && !preset->first)
        add_part(sb, start, "processes");
    if (preset->host == GP_HOST_YES)
        add_part(sb, start, "machine");
}

static bool is_same(const struct gp_preset *a, const struct gp_preset *b)
{
    return a->gpus == b->gpus && a->graphs == b->graphs && a->processes == b->processes &&
           a->host == b->host && a->first == b->first && a->view == b->view &&
           a->gpu_order == b->gpu_order;
}

int gp_preset_find(const char *text, const struct gp_preset *preset)
{
    struct gp_preset other;
    for (int i = 0; gp_preset_get(text, i, &other); i++)
        if (is_same(&other, preset))
            return i;
    return -1;
}
