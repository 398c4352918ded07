/* What starts each ink on a terminal. Independent of the terminal library, so that tests can read
 * the bytes. */
#ifndef GP_TUI_LOOKS_H
#define GP_TUI_LOOKS_H

#include "tui/paint.h"
#include "tui/theme_file.h"

/* What a terminal can show, and the bytes for that. */
struct gp_look_codes {
    int colors; /* 0: none */
    bool is_true_color;
    void (*add_attr)(struct gp_strbuf *sb, enum gp_attr attr);
    void (*add_color)(struct gp_strbuf *sb, bool is_behind, int color); /* one of `colors` */
};

void gp_looks_set(struct gp_ink_look ret[GP_INK__COUNT], const struct gp_colors *colors,
                  bool on_light, const struct gp_look_codes *codes);

#endif
