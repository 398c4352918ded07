#include "tui/words.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

void gp_words_init(struct gp_words *words)
{
    words->room[0] = '\0';
    words->text = (struct gp_strbuf)GP_STRBUF_ON(words->room, sizeof(words->room) - 1);
    words->count = 0;
}

void gp_words_end(struct gp_words *words, enum gp_ink ink)
{
    const size_t i = words->count < GP_WORDS_PARTS ? words->count++ : GP_WORDS_PARTS - 1;
    words->parts[i].end = words->text.len;
    words->parts[i].ink = ink;
}

void gp_words_add(struct gp_words *words, enum gp_ink ink, const char *fmt, ...)
{
    char part[GP_WORDS_SIZE];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(part, sizeof(part), fmt, args);
    va_end(args);
    if (words->text.len > 0) {
        gp_strbuf_adds(&words->text, " · ");
        gp_words_end(words, GP_INK_DIM);
    }
    gp_strbuf_adds(&words->text, part);
    gp_words_end(words, ink);
}

void gp_words_fit(struct gp_words *words, int w)
{
    while (words->text.len > 0 && (int)gp_utf8_width(words->text.buf) > w) {
        words->count = words->count > 2 ? words->count - 2 : 0; /* and the dot before it */
        gp_strbuf_truncate(&words->text, words->count ? words->parts[words->count - 1].end : 0);
    }
}

int gp_words_draw(const struct gp_box *box, int x, int y, const struct gp_words *words)
{
    const size_t len = words->text.len;
    for (size_t i = 0, from = 0; from < len; i++) {
        const bool is_part = i < words->count;
        const size_t end = is_part && words->parts[i].end < len ? words->parts[i].end : len;
        x = gp_drawf(box, x, y, is_part ? words->parts[i].ink : GP_INK_PLAIN, "%.*s",
                     (int)(end - from), words->text.buf + from);
        from = end;
    }
    return x;
}
