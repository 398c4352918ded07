#include "tui/columns.h"

static int width_of(const struct gp_column *columns, const struct gp_column_place *places,
                    size_t count, int gap)
{
    int total = -gap;
    for (size_t i = 0; i < count; i++)
        total += places[i].w ? columns[i].width + gap : 0;
    return total;
}

/* The column to drop next. */
static size_t dearest(const struct gp_column *columns, const struct gp_column_place *places,
                      size_t count)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++)
        if (places[i].w && (found == count || columns[i].rank >= columns[found].rank))
            found = i;
    return found;
}

int gp_columns_place_apart(const struct gp_column *columns, size_t count, int w, int gap,
                           struct gp_column_place *ret)
{
    int shares = 0;
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct gp_column_place){0, columns[i].width};
    for (size_t i;
         width_of(columns, ret, count, gap) > w && (i = dearest(columns, ret, count)) < count;)
        ret[i].w = 0;
    const int spare = w - width_of(columns, ret, count, gap);
    int left = spare;
    for (size_t i = 0; i < count; i++)
        shares += ret[i].w ? columns[i].grows : 0;
    int x = 0;
    for (size_t i = 0; i < count; i++) {
        if (!ret[i].w)
            continue;
        if (columns[i].grows) {
            int more = left * columns[i].grows / shares;
            left -= more;
            shares -= columns[i].grows;
            ret[i].w += more;
        }
        ret[i].x = x;
        x += ret[i].w + gap;
    }
    return spare;
}

void gp_columns_place(const struct gp_column *columns, size_t count, int w,
                      struct gp_column_place *ret)
{
    (void)gp_columns_place_apart(columns, count, w, 1, ret);
}
