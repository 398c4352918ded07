#include "tui/closed.h"

#include "base/strbuf.h"
#include "out/groups.h"

#include <stdlib.h>
#include <string.h>

void gp_closed_fini(struct gp_closed *closed)
{
    free(closed->hidden);
    *closed = (struct gp_closed){.count = 0};
}

/* ---- the choices ---- */

uint64_t gp_closed_name(const struct gp_proc_row *row)
{
    char room[256] = "";
    struct gp_strbuf job = GP_STRBUF_ON(room, sizeof(room) - 1);
    const char *text = row->pid ? row->start : row->user;
    const bool is_job = !row->pid && row->container;
    if (is_job) {
        gp_proc_row_add_job(&job, row);
        text = job.buf;
    }
    return gp_hash(gp_hash(GP_HASH_INIT, is_job ? "job" : ""), text ? text : "");
}

/* Its place among the others; their number: it is not among them. */
static size_t place_of(const struct gp_closed *closed, const struct gp_proc_row *row)
{
    const uint64_t name = gp_closed_name(row);
    size_t i = 0;
    while (i < closed->count &&
           (closed->others[i].pid != row->pid || closed->others[i].name != name))
        i++;
    return i;
}

static void drop(struct gp_closed *closed, size_t at)
{
    closed->count--;
    memmove(&closed->others[at], &closed->others[at + 1],
            (closed->count - at) * sizeof(*closed->others));
}

void gp_closed_turn(struct gp_closed *closed, const struct gp_proc_row *row)
{
    const size_t at = place_of(closed, row);
    if (at < closed->count) {
        drop(closed, at);
        return;
    }
    if (closed->count == GP_CLOSED_MAX)
        drop(closed, 0);
    closed->others[closed->count++] = (struct gp_closed_other){row->pid, gp_closed_name(row)};
}

void gp_closed_turn_all(struct gp_closed *closed, bool all)
{
    closed->all = all;
    closed->count = 0;
}

void gp_closed_forget(struct gp_closed *closed, bool (*has)(const void *ctx, int64_t pid),
                      const void *ctx)
{
    for (size_t i = closed->count; i-- > 0;)
        if (closed->others[i].pid && !has(ctx, closed->others[i].pid))
            drop(closed, i);
}

/* ---- the rows ---- */

bool gp_row_is_open(const struct gp_procs *procs, size_t row)
{
    return row + 1 < procs->count && procs->rows[row + 1].depth > procs->rows[row].depth;
}

size_t gp_row_end(const struct gp_procs *procs, size_t row)
{
    size_t end = row + 1;
    while (end < procs->count && procs->rows[end].depth > procs->rows[row].depth)
        end++;
    return end;
}

struct gp_rows_below gp_rows_below(const struct gp_procs *procs, size_t row)
{
    const struct gp_proc_row *of = &procs->rows[row];
    return of->closed ? (struct gp_rows_below){&procs->rows[of->closed_at], of->closed}
                      : (struct gp_rows_below){of + 1, gp_row_end(procs, row) - row - 1};
}

static bool has_room(struct gp_closed *closed, size_t count)
{
    if (closed->room >= count)
        return true;
    free(closed->hidden);
    closed->hidden = calloc(count, sizeof(*closed->hidden));
    closed->room = closed->hidden ? count : 0;
    return closed->hidden != NULL;
}

static bool is_closed(const struct gp_closed *closed, const struct gp_proc_row *row)
{
    return closed->all != (place_of(closed, row) < closed->count);
}

void gp_closed_hide(struct gp_closed *closed, struct gp_procs *procs)
{
    struct gp_proc_row *rows = procs->rows;
    size_t kept = 0;
    size_t hidden = 0;
    if ((!closed->all && closed->count == 0) || !has_room(closed, procs->count))
        return;
    for (size_t i = 0; i < procs->count; kept++) {
        const bool closes = gp_row_is_open(procs, i) && is_closed(closed, &rows[i]);
        const size_t end = closes ? gp_row_end(procs, i) : i + 1;
        const size_t below = end - i - 1;
        memcpy(&closed->hidden[hidden], &rows[i + 1], below * sizeof(*rows));
        memmove(&rows[kept], &rows[i], sizeof(*rows));
        rows[kept].closed = (uint32_t)below;
        rows[kept].closed_at = (uint32_t)hidden; /* for now, from the first hidden one on */
        hidden += below;
        i = end;
    }
    for (size_t i = 0; i < kept; i++)
        rows[i].closed_at += (uint32_t)kept;
    memcpy(&rows[kept], closed->hidden, hidden * sizeof(*rows));
    procs->count = kept;
    procs->closed = hidden;
}

/* ---- sums ---- */

/* What a row has besides the sums of the rows below it. */
static struct gp_proc_row own_part(const struct gp_proc_row *row)
{
    static const struct gp_amount none;
    struct gp_proc_row own = *row;
    if (!row->below)
        return own;
    own.memory = own.suspended = own.sm = own.mem = own.enc = own.dec = own.idle_s = none;
    memset(own.gpu_bits, 0, sizeof(own.gpu_bits));
    memset(own.gpus, 0, sizeof(own.gpus));
    return own;
}

struct gp_proc_row gp_closed_sum(const struct gp_procs *procs, size_t at)
{
    const struct gp_rows_below below = gp_rows_below(procs, at);
    struct gp_proc_row sum = own_part(&procs->rows[at]);
    sum.members = *sum.gpus != '\0'; /* so that its own idle time counts */
    for (size_t i = 0; i < below.count; i++) {
        const struct gp_proc_row own = own_part(&below.first[i]);
        gp_groups_add_row(&sum, &own);
    }
    sum.below = sum.members;
    sum.members = 0;
    sum.share = (struct gp_amount){0};
    memset(sum.gpus, 0, sizeof(sum.gpus));
    gp_groups_name_gpus(&sum);
    return sum;
}
