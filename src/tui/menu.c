#include "tui/menu.h"

#include "tui/keys.h"

enum { MARGIN = 2 }; /* columns at the right of a list that scrolls, for arrows */

void gp_menu_open(struct gp_menu *menu, size_t count)
{
    *menu = (struct gp_menu){.count = count};
}

bool gp_menu_key(struct gp_menu *menu, int key, bool vi)
{
    size_t page = menu->height > 1 ? menu->height - 1 : 1;
    size_t last = menu->count ? menu->count - 1 : 0;
    size_t at = menu->chosen;
    switch (gp_key_action(key, vi)) {
    case GP_ACTION_UP:
        at -= at > 0;
        break;
    case GP_ACTION_DOWN:
        at++;
        break;
    case GP_ACTION_PAGE_UP:
        at -= at < page ? at : page;
        break;
    case GP_ACTION_PAGE_DOWN:
        at += page;
        break;
    case GP_ACTION_FIRST:
        at = 0;
        break;
    case GP_ACTION_LAST:
        at = last;
        break;
    default:
        return false;
    }
    menu->chosen = at > last ? last : at;
    return true;
}

void gp_menu_draw(struct gp_menu *menu, const struct gp_box *box, struct gp_hits *hits,
                  void (*draw)(const struct gp_box *line, size_t i, const void *ctx),
                  const void *ctx)
{
    menu->height = box->h > 0 ? (size_t)box->h : 1;
    if (menu->chosen >= menu->count)
        menu->chosen = menu->count ? menu->count - 1 : 0;
    if (menu->chosen < menu->first)
        menu->first = menu->chosen;
    if (menu->chosen >= menu->first + menu->height)
        menu->first = menu->chosen - menu->height + 1;
    const int margin = menu->count > menu->height ? MARGIN : 0;
    for (int y = 0; y < box->h && menu->first + (size_t)y < menu->count; y++) {
        size_t i = menu->first + (size_t)y;
        struct gp_box line = gp_box_part(box, 0, y, box->w - margin, 1);
        draw(&line, i, ctx);
        if (i == menu->chosen)
            gp_draw_ink(&line, 0, GP_INK_SELECTED);
        gp_hits_add(hits, &line, GP_HIT_ITEM, i);
    }
    if (menu->first > 0)
        (void)gp_draw(box, box->w - 1, 0, GP_INK_KEY, "↑");
    if (menu->first + menu->height < menu->count)
        (void)gp_draw(box, box->w - 1, box->h - 1, GP_INK_KEY, "↓");
}

struct gp_box gp_draw_window(const struct gp_box *box, int w, int h, const char *title)
{
    w = w > box->w ? box->w : w;
    h = h > box->h ? box->h : h;
    struct gp_box window = gp_box_part(box, (box->w - w) / 2, (box->h - h) / 2, w, h);
    for (int y = 0; y < h; y++) {
        bool edge = y == 0 || y == h - 1;
        gp_draw_fill(&window, 0, y, w, GP_INK_TITLE, edge ? 0x2500 : ' ');
        gp_draw_fill(&window, 0, y, 1, GP_INK_TITLE, y == 0 ? 0x250c : edge ? 0x2514 : 0x2502);
        gp_draw_fill(&window, w - 1, y, 1, GP_INK_TITLE, y == 0 ? 0x2510 : edge ? 0x2518 : 0x2502);
    }
    struct gp_box head = gp_box_part(&window, 1, 0, w - 2, 1);
    (void)gp_drawf(&head, 1, 0, GP_INK_TITLE, " %s ", title);
    return gp_box_part(&window, 2, 1, w - 4, h - 2);
}
