/* The text writers; use gp_writer_find() to get them. */
#ifndef GP_OUT_TEXT_H
#define GP_OUT_TEXT_H

#include "out/writer.h"

extern const struct gp_writer gp_writer_table;
extern const struct gp_writer gp_writer_csv;
extern const struct gp_writer gp_writer_tsv;

/* Appends a cell of csv (separator ',') or tsv (a tab), quoted if csv requires it. */
void gp_text_add_cell(struct gp_strbuf *sb, const char *text, char separator);

#endif
