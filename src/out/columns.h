/* Columns of text tables: which ones a terminal has room for. Two blanks are between columns. */
#ifndef GP_OUT_COLUMNS_H
#define GP_OUT_COLUMNS_H

#include "base/util.h"

struct gp_strbuf;

struct gp_text_column {
    const char *title;
    size_t width;  /* the least, for a last column of any width */
    unsigned drop; /* the order in which columns are left out; 0: never */
    bool is_left;  /* cells begin at the left; otherwise, they end at the right */
};

/* A set of columns has a bit for each one; there are at most 32. */
enum { GP_TEXT_COLUMNS_MOST = 32 };

/* The width of these columns together. */
size_t gp_text_columns_width(const struct gp_text_column *columns, size_t count, uint32_t shown);

/* Those of `wanted` that fit into `room` (0: all), if the line needs `rest` columns of the screen
 * besides. */
uint32_t gp_text_columns_fit(const struct gp_text_column *columns, size_t count, uint32_t wanted,
                             size_t rest, size_t room);

/* Appends a line of safe text, without a newline; `cells`: NULL for the titles. A cell that is too
 * long is not cut, and a last one that begins at the left is not padded. */
void gp_text_columns_add(struct gp_strbuf *sb, const struct gp_text_column *columns, size_t count,
                         uint32_t shown, const char *const *cells);

#endif
