#include "tui/columns.h"

static int width_of(const struct gp_column *columns, const struct gp_column_place *places,
                    size_t count)
{
    int total = -1;
    for (size_t i = 0; i < count; i++)
        total += places[i].w ? columns[i].width + 1 : 0;
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

void gp_columns_place(const struct gp_column *columns, size_t count, int w,
                      struct gp_column_place *ret)
{
    int shares = 0;
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct gp_column_place){0, columns[i].width};
    for (size_t i; width_of(columns, ret, count) > w && (i = dearest(columns, ret, count)) < count;)
        ret[i].w = 0;
    int left = w - width_of(columns, ret, count);
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
        x += ret[i].w + 1;
    }
}
