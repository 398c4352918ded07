#include "tui/page.h"

#include "base/utf8.h"
#include "tui/keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 4 << 20,
    LABEL_MAX = 34,
    SCROLL_STEP = 8,
    TWO_COLUMNS_FROM = 154, /* columns for what does not fit into one column of lines */
    WRAP_AT = 64,           /* what has room at 120 columns, and in one of two columns at 160 */
};

void gp_page_init(struct gp_page *page)
{
    *page = (struct gp_page){.count = 0};
    gp_strbuf_init(&page->text, TEXT_MAX);
}

void gp_page_fini(struct gp_page *page)
{
    gp_strbuf_fini(&page->text);
    free(page->lines);
    gp_page_init(page);
}

void gp_page_open(struct gp_page *page)
{
    gp_page_clear(page);
    page->first = 0;
    page->scroll = 0;
    page->word[0] = '\0';
    page->is_typing = false;
    page->is_missing = false;
}

void gp_page_clear(struct gp_page *page)
{
    gp_strbuf_reset(&page->text);
    page->count = 0;
    page->label_width = 0;
}

/* ---- lines ---- */

void gp_page_add(struct gp_page *page, enum gp_ink ink, const char *label, const char *value)
{
    if (page->count == page->room) {
        struct gp_page_line *grown = gp_grown(page->lines, &page->room, 64, sizeof(*grown));
        if (!grown)
            return;
        page->lines = grown;
    }
    size_t start = page->text.len;
    size_t behind = start + strlen(label) + 1;
    gp_strbuf_add(&page->text, label, strlen(label) + 1);
    gp_strbuf_add(&page->text, value, strlen(value) + 1);
    if (page->text.error) {
        gp_strbuf_truncate(&page->text, start);
        return;
    }
    page->lines[page->count++] = (struct gp_page_line){start, behind, ink};
    size_t width = gp_utf8_width(label);
    width = width > LABEL_MAX ? LABEL_MAX : width;
    page->label_width = width > page->label_width ? width : page->label_width;
}

void gp_page_addf(struct gp_page *page, enum gp_ink ink, const char *label, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    gp_page_add(page, ink, label, text);
}

void gp_page_add_wrapped(struct gp_page *page, enum gp_ink ink, const char *label, const char *text)
{
    char line[4 * WRAP_AT + 1];
    do {
        size_t end = 0;
        size_t fit = 0; /* up to the last blank that still fits */
        for (size_t columns = 0; text[end] && columns <= WRAP_AT && end < sizeof(line) - 8;) {
            uint32_t cp;
            fit = text[end] == ' ' ? end : fit;
            end += gp_utf8_decode(text + end, strlen(text + end), &cp);
            columns += (size_t)gp_utf8_columns(cp);
        }
        end = text[end] && fit > 0 ? fit : end;
        (void)snprintf(line, sizeof(line), "%.*s", (int)end, text);
        gp_page_add(page, ink, label, line);
        label = *label ? " " : label; /* in the same column */
        text += end;
        text += *text == ' ';
    } while (*text);
}

void gp_page_head(struct gp_page *page, const char *title)
{
    if (page->count > 0)
        gp_page_add(page, GP_INK_PLAIN, "", "");
    gp_page_add(page, GP_INK_TITLE, "", title);
}

static const char *label_of(const struct gp_page *page, size_t line)
{
    return page->text.buf + page->lines[line].label;
}

const char *gp_page_value(const struct gp_page *page, size_t line)
{
    return page->text.buf + page->lines[line].value;
}

/* ---- searching ---- */

static bool matches(const struct gp_page *page, size_t line)
{
    return *page->word && (strcasestr(label_of(page, line), page->word) ||
                           strcasestr(gp_page_value(page, line), page->word));
}

/* Scrolls to the next line with the word; `from` is relative to the first visible line. */
static void find(struct gp_page *page, size_t from, bool forward)
{
    page->is_missing = *page->word != '\0';
    for (size_t i = 0; *page->word && i < page->count; i++) {
        size_t step = (from + i) % page->count;
        size_t line = (page->first + (forward ? step : page->count - step)) % page->count;
        if (matches(page, line)) {
            page->first = line;
            page->is_missing = false;
            return;
        }
    }
}

static void type(struct gp_page *page, int key)
{
    size_t n = strlen(page->word);
    if (key == GP_KEY_ESCAPE)
        page->word[0] = '\0';
    if (key == GP_KEY_ESCAPE || key == GP_KEY_ENTER)
        page->is_typing = false;
    else if (key == GP_KEY_BACKSPACE && n > 0)
        page->word[n - 1] = '\0';
    else if (key >= ' ' && key < GP_KEY_BACKSPACE) /* excess characters are dropped */
        (void)snprintf(page->word + n, sizeof(page->word) - n, "%c", key);
    find(page, 0, true);
}

/* ---- keys ---- */

static void move(struct gp_page *page, enum gp_action action)
{
    size_t most = page->count > page->height ? page->count - page->height : 0;
    size_t step = page->height > 1 ? page->height - 1 : 1;
    bool up = action == GP_ACTION_UP || action == GP_ACTION_PAGE_UP;
    if (action == GP_ACTION_UP || action == GP_ACTION_DOWN)
        step = 1;
    if (action == GP_ACTION_FIRST)
        page->first = 0;
    else if (action == GP_ACTION_LAST)
        page->first = most;
    else if (up)
        page->first -= step < page->first ? step : page->first;
    else
        page->first += step;
    page->first = page->first > most ? most : page->first;
}

bool gp_page_key(struct gp_page *page, int key, bool vi)
{
    enum gp_action action = gp_key_action(key, vi);
    if (page->is_typing) {
        type(page, key);
        return true;
    }
    switch (action) {
    case GP_ACTION_UP:
    case GP_ACTION_DOWN:
    case GP_ACTION_PAGE_UP:
    case GP_ACTION_PAGE_DOWN:
    case GP_ACTION_FIRST:
    case GP_ACTION_LAST:
        move(page, action);
        return true;
    case GP_ACTION_LEFT:
        page->scroll = 0;
        return true;
    case GP_ACTION_RIGHT:
        page->scroll += SCROLL_STEP;
        return true;
    case GP_ACTION_SEARCH:
        page->is_typing = true;
        page->word[0] = '\0';
        return true;
    case GP_ACTION_NEXT:
    case GP_ACTION_PREVIOUS:
        find(page, 1, action == GP_ACTION_NEXT);
        return true;
    case GP_ACTION_QUIT:
    case GP_ACTION_CLEAR:
    case GP_ACTION_DETAILS:
    case GP_ACTION_HELP:
        return false;
    default:
        return true;
    }
}

/* ---- drawing ---- */

static void draw_line(const struct gp_page *page, const struct gp_box *box, int y, size_t line)
{
    const struct gp_page_line *l = &page->lines[line];
    const char *value = gp_page_value(page, line);
    int label = (int)page->label_width;
    label = label > box->w / 2 ? box->w / 2 : label;
    int x = *label_of(page, line) ? label + 1 : 0;
    if (x > 0)
        gp_draw_left(box, 0, y, label, GP_INK_KEY, label_of(page, line));
    for (int i = 0; i < page->scroll && *value; i++) {
        do
            value++;
        while ((*value & 0xc0) == 0x80);
    }
    gp_draw_left(box, x, y, box->w - x, l->ink, value);
    if (*page->word && matches(page, line))
        gp_draw_ink(box, y, GP_INK_TAGGED);
}

void gp_page_draw(struct gp_page *page, const struct gp_box *box)
{
    const int h = box->h > 1 ? box->h - 1 : box->h;
    const int columns = box->w >= TWO_COLUMNS_FROM && page->count > (size_t)h ? 2 : 1;
    page->height = h > 0 ? (size_t)(h * columns) : 1;
    size_t most = page->count > page->height ? page->count - page->height : 0;
    page->first = page->first > most ? most : page->first;
    for (int i = 0; i < h * columns && page->first + (size_t)i < page->count; i++) {
        const int x = i / h * ((box->w + 2) / 2);
        const int w = columns > 1 ? (box->w - 2) / 2 : box->w;
        const struct gp_box part = gp_box_part(box, x, 0, w, box->h);
        draw_line(page, &part, i % h, page->first + (size_t)i);
    }
    if (box->h < 2)
        return;
    size_t last = page->first + page->height;
    if (page->is_typing || page->is_missing)
        (void)gp_drawf(box, 0, h, page->is_missing ? GP_INK_HIGH : GP_INK_KEY, "search: %s%s",
                       page->word, page->is_missing ? " not found" : "_");
    else
        (void)gp_drawf(box, 0, h, GP_INK_DIM, "%zu–%zu of %zu · / search, q back",
                       page->count ? page->first + 1 : 0, last < page->count ? last : page->count,
                       page->count);
}
