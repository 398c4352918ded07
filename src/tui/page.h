/* A page of lines that is scrolled and searched: help, details, an environment, alerts. */
#ifndef GP_TUI_PAGE_H
#define GP_TUI_PAGE_H

#include "base/strbuf.h"
#include "tui/cells.h"

enum { GP_PAGE_WORD_SIZE = 64 };

struct gp_page_line {
    size_t label, value; /* where they begin in the text */
    enum gp_ink ink;     /* of the value; of the whole line, where there is no label */
};

struct gp_page {
    struct gp_strbuf text; /* label and value of each line, a NUL behind each */
    struct gp_page_line *lines;
    size_t count, room;
    size_t label_width; /* columns, of the widest */
    /* how it is looked at; stays when the lines are written anew */
    size_t first, height;
    int scroll;
    char word[GP_PAGE_WORD_SIZE]; /* that is searched; what is found is marked */
    bool is_typing;               /* it is being typed */
    bool is_missing;
};

void gp_page_init(struct gp_page *page);
void gp_page_fini(struct gp_page *page);

/* To the beginning of another text. */
void gp_page_open(struct gp_page *page);
/* No lines, to write them anew. */
void gp_page_clear(struct gp_page *page);

/* Adds a line. What has no memory is left out. */
void gp_page_add(struct gp_page *page, enum gp_ink ink, const char *label, const char *value);
void gp_page_addf(struct gp_page *page, enum gp_ink ink, const char *label, const char *fmt, ...)
    GP_PRINTF(4, 5);
/* A heading, with an empty line before it unless it is the first. */
void gp_page_head(struct gp_page *page, const char *title);

/* The value of a line that there is. */
const char *gp_page_value(const struct gp_page *page, size_t line);

/* False if the key leaves the page. */
bool gp_page_key(struct gp_page *page, int key, bool vi) GP_MUST_CHECK;

/* The lines, and at the bottom where one is, or the word that is typed. */
void gp_page_draw(struct gp_page *page, const struct gp_box *box);

#endif
