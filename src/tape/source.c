#include "tape/source.h"

#include "base/err.h"
#include "source/source.h"
#include "tape/control.h"

#include <stdlib.h>

struct tape_source {
    struct gp_source source;
    struct gp_tape_control *control;
};

static struct gp_tape_control *control_of(struct gp_source *source)
{
    return ((struct tape_source *)source)->control;
}

static int sample(struct gp_source *source, const struct gp_want *want, uint64_t step_ns,
                  struct gp_snapshot **ret, struct gp_err *err)
{
    return gp_tape_control_sample(control_of(source), want, step_ns, ret, err);
}

static void free_source(struct gp_source *source)
{
    gp_tape_control_close(control_of(source));
    free(source);
}

static const struct gp_source_ops ops = {.sample = sample, .free = free_source};

int gpulse_tape_source(const char *path, int64_t at_us, struct gp_source **ret, struct gp_err *err)
{
    struct tape_source *s = calloc(1, sizeof(*s));
    if (!s)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = gp_tape_control_open(path, at_us, &s->control, err);
    if (r < 0) {
        free(s);
        return r;
    }
    s->source.ops = &ops;
    s->source.player = gp_tape_control_player(s->control);
    *ret = &s->source;
    return 0;
}
