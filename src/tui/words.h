/* A short text whose parts have inks of their own, so that only what is wrong is red. */
#ifndef GP_TUI_WORDS_H
#define GP_TUI_WORDS_H

#include "base/strbuf.h"
#include "tui/cells.h"

enum { GP_WORDS_SIZE = 256, GP_WORDS_PARTS = 20 };

struct gp_words {
    char room[GP_WORDS_SIZE];
    struct gp_strbuf text; /* in `room` */
    struct {
        size_t end; /* in the text */
        enum gp_ink ink;
    } parts[GP_WORDS_PARTS];
    size_t count;
};

void gp_words_init(struct gp_words *words);

/* Makes a part of what was appended to the text since the last one. What follows the last part is
 * plain. */
void gp_words_end(struct gp_words *words, enum gp_ink ink);

/* Appends a part, after " · " unless it is the first one. */
void gp_words_add(struct gp_words *words, enum gp_ink ink, const char *fmt, ...) GP_PRINTF(3, 4);

/* Leaves out parts of gp_words_add() from the end until the text fits into w columns. */
void gp_words_fit(struct gp_words *words, int w);

/* Returns the column after it. */
int gp_words_draw(const struct gp_box *box, int x, int y, const struct gp_words *words);

#endif
