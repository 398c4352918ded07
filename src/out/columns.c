#include "out/columns.h"

#include "base/strbuf.h"
#include "base/utf8.h"

enum { GAP = 2 };

static bool is_in(uint32_t columns, size_t i)
{
    return columns & (UINT32_C(1) << i);
}

size_t gp_text_columns_width(const struct gp_text_column *columns, size_t count, uint32_t shown)
{
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        if (is_in(shown, i))
            width += columns[i].width + (width > 0 ? GAP : 0);
    return width;
}

uint32_t gp_text_columns_fit(const struct gp_text_column *columns, size_t count, uint32_t wanted,
                             size_t rest, size_t room)
{
    for (unsigned drop = 1; room > 0 && drop <= count; drop++) {
        if (gp_text_columns_width(columns, count, wanted) + rest <= room)
            break;
        for (size_t i = 0; i < count; i++)
            if (columns[i].drop == drop)
                wanted &= ~(UINT32_C(1) << i);
    }
    return wanted;
}

void gp_text_columns_add(struct gp_strbuf *sb, const struct gp_text_column *columns, size_t count,
                         uint32_t shown, const char *const *cells)
{
    size_t blanks = 0; /* before the next cell */
    for (size_t i = 0; i < count; i++) {
        if (!is_in(shown, i))
            continue;
        const char *text = cells ? cells[i] : columns[i].title;
        const size_t width = gp_utf8_width(text);
        const size_t pad = width < columns[i].width ? columns[i].width - width : 0;
        gp_strbuf_fill(sb, ' ', blanks + (columns[i].is_left ? 0 : pad));
        gp_strbuf_adds(sb, text);
        blanks = GAP + (columns[i].is_left ? pad : 0);
    }
}
