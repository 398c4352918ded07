#include "tui/looks.h"

#include "base/strbuf.h"

enum { FEW = 8, MANY = 256 };

/* The color that the terminal shows for this one. */
static int fitting(int color, int of_8, const struct gp_look_codes *codes)
{
    if (codes->colors < MANY)
        return color < codes->colors ? color : of_8;
    return codes->is_true_color ? color : gp_color_of_256(color);
}

static void add_color(struct gp_strbuf *sb, bool is_behind, int color,
                      const struct gp_look_codes *codes)
{
    if (color >= 0 && color & GP_COLOR_RGB)
        gp_strbuf_addf(sb, "\033[%d;2;%d;%d;%dm", is_behind ? 48 : 38, color >> 16 & 0xff,
                       color >> 8 & 0xff, color & 0xff);
    else if (color >= 0)
        codes->add_color(sb, is_behind, color);
}

static void set_look(struct gp_ink_look *ret, const struct gp_look *look,
                     const struct gp_look_codes *codes)
{
    static const enum gp_attr attrs[] = {GP_ATTR_BOLD, GP_ATTR_REVERSE, GP_ATTR_UNDERLINE};
    const bool has_colors = codes->colors >= FEW;
    const unsigned wanted = has_colors ? look->attrs : look->no_color;
    const int fg = has_colors ? fitting(look->fg, look->fg_of_8, codes) : -1;
    const int bg = has_colors ? fitting(look->bg, gp_color_of_8(look->bg), codes) : -1;
    ret->start[0] = '\0';
    struct gp_strbuf sb = GP_STRBUF_ON(ret->start, sizeof(ret->start) - 1);
    for (size_t i = 0; i < GP_ARRAY_LEN(attrs); i++)
        if (wanted & attrs[i])
            codes->add_attr(&sb, attrs[i]);
    add_color(&sb, false, fg, codes);
    add_color(&sb, true, bg, codes);
    ret->replaces = !wanted && fg >= 0 && bg < 0;
}

void gp_looks_set(struct gp_ink_look ret[GP_INK__COUNT], const struct gp_colors *colors,
                  bool on_light, const struct gp_look_codes *codes)
{
    for (int i = 0; i < GP_INK__COUNT; i++)
        set_look(&ret[i], gp_colors_look(colors, (enum gp_ink)i, on_light), codes);
}
