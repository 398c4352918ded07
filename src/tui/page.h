/* A page of lines that can be scrolled and searched: help, details, an environment, alerts. */
#ifndef GP_TUI_PAGE_H
#define GP_TUI_PAGE_H

#include "base/strbuf.h"
#include "tui/cells.h"

enum { GP_PAGE_WORD_SIZE = 64 };

struct gp_page_line {
    size_t label, value; /* offsets into the text */
    enum gp_ink ink;     /* of the value; of the whole line if there is no label */
};

struct gp_page {
    struct gp_strbuf text; /* label and value of each line, each NUL-terminated */
    struct gp_page_line *lines;
    size_t count, room;
    size_t label_width; /* columns of the widest label */
    /* The view; it stays when the lines are rewritten. */
    size_t first, height;
    int scroll;
    char word[GP_PAGE_WORD_SIZE]; /* search word; matches are highlighted */
    bool is_typing;               /* the word is being typed */
    bool is_missing;
};

void gp_page_init(struct gp_page *page);
void gp_page_fini(struct gp_page *page);

/* Resets the view for a new text. */
void gp_page_open(struct gp_page *page);
/* Removes all lines, to rewrite them. */
void gp_page_clear(struct gp_page *page);

/* Adds a line. Without memory it is dropped. */
void gp_page_add(struct gp_page *page, enum gp_ink ink, const char *label, const char *value);
void gp_page_addf(struct gp_page *page, enum gp_ink ink, const char *label, const char *fmt, ...)
    GP_PRINTF(4, 5);
/* Adds as many lines as the text needs, broken at blanks. */
void gp_page_add_wrapped(struct gp_page *page, enum gp_ink ink, const char *label,
                         const char *text);
/* Adds a heading, preceded by an empty line unless it is the first. */
void gp_page_head(struct gp_page *page, const char *title);

/* The value of an existing line. */
const char *gp_page_value(const struct gp_page *page, size_t line);

/* Returns false if the key leaves the page. */
bool gp_page_key(struct gp_page *page, int key, bool vi) GP_MUST_CHECK;

/* Draws the lines, on a wide screen in two columns if one is not enough, and at the bottom the
 * position or the search word. */
void gp_page_draw(struct gp_page *page, const struct gp_box *box);

#endif
