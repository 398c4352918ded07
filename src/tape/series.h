/* Reads a recording from one time to another in one pass, piece by piece: each sample where samples
 * are kept, and the shortest summaries of what is older. */
#ifndef GP_TAPE_SERIES_H
#define GP_TAPE_SERIES_H

#include "tape/scene.h"

struct gp_err;
struct gp_tape;

struct gp_series_piece {
    const struct gp_scene *scene; /* with ranges: of a sample, they are the values themselves */
    int64_t t;                    /* where it begins, on the axis */
    int64_t us;                   /* how long it lasts */
    bool is_summary;
};

struct gp_series_reader {
    /* Called before the first piece and, if the recording was reorganized meanwhile, before it is
     * read once more: what was read so far does not count. */
    void (*begin)(void *ctx);
    /* Called with each piece, in the order of time. Between them may be gaps of which nothing is
     * known. A negative result ends the reading, and is returned. */
    int (*piece)(void *ctx, const struct gp_series_piece *piece, struct gp_err *err);
    /* Called after a piece with each sample of an incident during it (moments.h), which has only
     * the values that were read then. NULL: they are not wanted. */
    int (*moment)(void *ctx, const struct gp_series_piece *moment, struct gp_err *err);
    void *ctx;
};

/* Reads what was recorded at from <= t < to. GP_EFORMAT: it is damaged; GP_ENOMEM; GP_EIO. */
int gp_series_read(struct gp_tape *tape, int64_t from, int64_t to,
                   const struct gp_series_reader *reader, struct gp_err *err) GP_MUST_CHECK;

/* A number during a piece, in its unit. */
struct gp_series_number {
    double mean, min, max;
};

/* False: there was none at its end, or it is a text. */
bool gp_series_number(const struct gp_series_piece *piece, const struct gp_tape_row *row,
                      int column, struct gp_series_number *ret) GP_MUST_CHECK;

/* A text at the end of a piece, as it was recorded: it is not safe. NULL: none. */
const char *gp_series_text(const struct gp_series_piece *piece, const struct gp_tape_row *row,
                           int column);

#endif
