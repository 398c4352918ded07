/* Makes text from outside (process names, command lines, labels) safe to print, and measures its
 * width on a terminal. */
#ifndef GP_BASE_UTF8_H
#define GP_BASE_UTF8_H

#include "base/util.h"

struct gp_strbuf;

enum { GP_UTF8_MAX = 4 }; /* bytes of a code point */

/* Decodes one code point at s (n bytes left, n > 0). Returns its length in bytes and stores it in
 * *ret_cp; an invalid sequence gives length 1 and U+FFFD. */
size_t gp_utf8_decode(const char *s, size_t n, uint32_t *ret_cp);

/* Appends a code point, whatever it does to a terminal. */
void gp_utf8_add(struct gp_strbuf *sb, uint32_t cp);

/* Appends s[0..n) as valid UTF-8 that cannot control a terminal: control characters (C0, DEL, C1),
 * line separators and bidirectional overrides become a visible escape such as \x1b or \n or
 * \u{202e}; invalid bytes become U+FFFD. At most max_cols columns are appended; the last one is "…"
 * if the text was cut. */
void gp_utf8_add_safe(struct gp_strbuf *sb, const char *s, size_t n, size_t max_cols);

/* Appends a line of s[0..n), which is safe, cut to `columns` columns; 0: no limit. */
void gp_utf8_add_line(struct gp_strbuf *sb, const char *s, size_t n, size_t columns);

/* Appends words of safe text, wrapped at `columns` columns (0: as they are), and ends the last
 * line. The cursor is at column `indent`, where continuation lines start as well. A word that is
 * too long is broken after the last "|" that fits. */
void gp_utf8_add_wrapped(struct gp_strbuf *sb, const char *s, size_t n, size_t indent,
                         size_t columns);
/* The same, where the first line begins in another column. */
void gp_utf8_add_hanging(struct gp_strbuf *sb, const char *s, size_t n, size_t column,
                         size_t indent, size_t columns);

/* Appends a word quoted for a shell: bare, in single quotes, or as $'…' with escapes if it contains
 * characters that control a terminal. */
void gp_utf8_add_shell_word(struct gp_strbuf *sb, const char *word);

/* Copies s like gp_utf8_add_safe(), truncated to fit. */
void gp_utf8_copy_safe(char *to, size_t size, const char *s);

/* Columns that a code point occupies on a terminal: 0 for combining marks, 2 for East Asian wide
 * and emoji. */
int gp_utf8_columns(uint32_t cp);

/* Columns that s occupies on a terminal: 0 for combining marks, 2 for East Asian wide and emoji. */
size_t gp_utf8_width(const char *s);

/* Appends s padded on the right to `cols` columns. With `cut_left`, a longer text is cut at its
 * start ("…tail"), otherwise it is appended whole. */
void gp_utf8_add_padded(struct gp_strbuf *sb, const char *s, size_t cols, bool cut_left);

#endif
