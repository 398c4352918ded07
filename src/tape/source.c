#include "tape/source.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "source/source.h"
#include "tape/tape.h"

#include <stdlib.h>

struct tape_source {
    struct gp_source source;
    struct gp_tape *tape;
    int64_t at; /* the place of the last sample; of the first one, before it */
    bool has_begun;
};

static struct tape_source *of(struct gp_source *source)
{
    return (struct tape_source *)source;
}

static int sample(struct gp_source *source, const struct gp_want *want, uint64_t step_ns,
                  struct gp_snapshot **ret, struct gp_err *err)
{
    struct tape_source *s = of(source);
    struct gp_tape_bounds bounds;
    struct gp_tape_found found;
    int r = gp_tape_bounds(s->tape, &bounds, err);
    if (r < 0)
        return r;
    const int64_t step_us = (int64_t)(step_ns / GP_NS_PER_US);
    int64_t at = s->has_begun ? s->at + step_us : s->at;
    if (at > bounds.last)
        at = bounds.last;
    const bool is_over = at + step_us > bounds.last;
    r = gp_tape_seek(s->tape, at, &found, err);
    if (r == 0)
        r = gp_tape_show(s->tape, &found, at, want, ret, err);
    if (r < 0)
        return r;
    s->at = at;
    s->has_begun = true;
    return is_over;
}

static void free_source(struct gp_source *source)
{
    gp_tape_close(of(source)->tape);
    free(source);
}

static const struct gp_source_ops ops = {.sample = sample, .free = free_source};

/* The clock's time, for a message. */
static const char *time_text(const struct gp_tape *tape, int64_t t, char room[GP_RFC3339_SIZE])
{
    gp_clock_plain((uint64_t)gp_tape_wall(tape, t) * GP_NS_PER_US, room);
    room[19] = '\0'; /* without milliseconds */
    return room;
}

/* The place of the first sample. */
static int begin(struct tape_source *s, int64_t at_us, struct gp_err *err)
{
    struct gp_tape_bounds bounds;
    struct gp_tape_found found;
    char from[GP_RFC3339_SIZE];
    char to[GP_RFC3339_SIZE];
    int r = gp_tape_bounds(s->tape, &bounds, err);
    if (r < 0)
        return r;
    s->at = at_us ? gp_tape_place(s->tape, at_us) : bounds.last;
    /* where nothing was recorded, the place is the next one */
    const int64_t off_us = at_us ? gp_tape_wall(s->tape, s->at) - at_us : 0;
    if (s->at < bounds.first || s->at > bounds.last + bounds.interval_us ||
        off_us > bounds.interval_us)
        return gp_err_set(err, GP_EUSAGE,
                          "nothing was recorded at that time: the recording is "
                          "from %s to %s",
                          time_text(s->tape, bounds.first, from),
                          time_text(s->tape, bounds.last, to));
    r = gp_tape_seek(s->tape, s->at, &found, err);
    if (r == 0 && found.is_hole)
        r = gp_err_set(err, GP_EUSAGE,
                       "nothing was recorded at that time; the last sample before "
                       "it is of %s",
                       time_text(s->tape, found.t, from));
    return r;
}

int gpulse_tape_source(const char *path, int64_t at_us, struct gp_source **ret, struct gp_err *err)
{
    struct tape_source *s = calloc(1, sizeof(*s));
    if (!s)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    s->source.ops = &ops;
    int r = gp_tape_open(path, &s->tape, err);
    if (r == 0)
        r = begin(s, at_us, err);
    if (r < 0)
        free_source(&s->source);
    else
        *ret = &s->source;
    return r;
}
