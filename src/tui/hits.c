#include "tui/hits.h"

void gp_hits_add(struct gp_hits *hits, const struct gp_box *part, enum gp_hit_kind kind,
                 size_t value)
{
    if (hits->count < GP_ARRAY_LEN(hits->hits) && part->w > 0 && part->h > 0)
        hits->hits[hits->count++] =
            (struct gp_hit){kind, part->x, part->y, part->w, part->h, value};
}

struct gp_hit gp_hits_find(const struct gp_hits *hits, int x, int y)
{
    for (size_t i = hits->count; i > 0; i--) {
        const struct gp_hit *hit = &hits->hits[i - 1];
        if (x >= hit->x && x < hit->x + hit->w && y >= hit->y && y < hit->y + hit->h)
            return *hit;
    }
    return (struct gp_hit){.kind = GP_HIT_NONE};
}
