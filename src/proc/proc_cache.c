/* What is known of processes from the previous tick, and how long it is used. */
#include "base/clock.h"
#include "proc/proc_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEPT_MS = 8000, /* command lines are read again after this time, or after twice this; */
    UNSEEN = 4,     /* after this many times as long if nobody sees them, or they sleep; */
    UNCHANGED = 4,  /* likewise for what belongs to an unchanged command line; */
    CROWD = 2048,   /* longer per this many processes, which limits the work per tick */
    KEPT_GROUPS = 64,
    QUIET_MS = 10000, /* a process at rest: it has used no CPU time for this long. It is … */
    RESTED_MS = 2900, /* … read again after this: every third second; */
    STILL_MS = 60000, /* after this long without any … */
    STAYED_MS = 4900, /* … every fifth second */
};

struct gp_proc_info *gp_proc_find(const struct gp_proc_infos *infos, uint32_t pid)
{
    size_t low = 0;
    size_t high = infos->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (infos->infos[mid].pid < pid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < infos->count && infos->infos[low].pid == pid ? &infos->infos[low] : NULL;
}

const struct gp_proc_info *gp_proc_same_past(const struct gp_proc_reader *reader,
                                             const struct gp_proc_info *info)
{
    const struct gp_proc_info *past =
        info->start_ticks ? gp_proc_find(&reader->past, info->pid) : NULL;
    return past && past->start_ticks == info->start_ticks ? past : NULL;
}

void gp_proc_watch(struct gp_proc_reader *reader, const uint32_t *pids, size_t count,
                   bool others_matter)
{
    reader->watched = pids;
    reader->watched_count = count;
    reader->others_matter = others_matter;
}

void gp_proc_begin_tick(struct gp_proc_reader *reader, size_t count)
{
    reader->kept_ns = (1 + count / CROWD) * KEPT_MS * GP_NS_PER_MS;
    reader->turns = reader->others_matter ? 1 + count / CROWD : 0;
    reader->tick++;
}

bool gp_proc_is_due(const struct gp_proc_reader *reader, uint32_t pid)
{
    return !reader->watched ||
           (reader->turns && pid % reader->turns == reader->tick % reader->turns) ||
           bsearch(&pid, reader->watched, reader->watched_count, sizeof(pid), gp_compare_u32);
}

/* Most processes on a GPU that are on the screen sleep. To read them in every tick was a fifth of
 * the cost of one with 8 GPUs and 10 processes. */
static bool is_quiet(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                     uint64_t now_ns)
{
    return reader->watched && reader->keeps_files && past->state == 'S' &&
           now_ns >= past->busy_ns + QUIET_MS * GP_NS_PER_MS;
}

static bool is_resting(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                       uint64_t now_ns)
{
    const bool is_still = now_ns >= past->busy_ns + STILL_MS * GP_NS_PER_MS;
    const uint64_t rest_ns = (is_still ? STAYED_MS : RESTED_MS) * GP_NS_PER_MS;
    return is_quiet(reader, past, now_ns) && now_ns < past->as_of_ns + rest_ns;
}

/* How long texts are kept. Those of different processes should not expire in the same tick. */
static uint64_t life_ns(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                        uint64_t now_ns)
{
    uint64_t ns = reader->kept_ns + past->pid % KEPT_GROUPS * (reader->kept_ns / KEPT_GROUPS);
    bool is_brief = gp_proc_is_due(reader, past->pid) && !is_quiet(reader, past, now_ns);
    return (is_brief ? 1 : UNSEEN) * ns;
}

bool gp_proc_is_kept(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                     unsigned want, uint64_t now_ns)
{
    if (!past || !past->start_ticks || (want & ~past->texts->want))
        return false;
    return now_ns < past->texts->checked_ns + life_ns(reader, past, now_ns);
}

bool gp_proc_is_unchanged(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                          unsigned want, const char *command, uint64_t now_ns)
{
    return past && command && past->texts->command && !(want & ~past->texts->want) &&
           now_ns < past->texts->read_ns + UNCHANGED * life_ns(reader, past, now_ns) &&
           strcmp(command, past->texts->command) == 0;
}

bool gp_proc_recall(const struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                    uint64_t now_ns)
{
    struct gp_proc_info *past = gp_proc_find(&reader->past, info->pid);
    const bool is_due = gp_proc_is_due(reader, info->pid);
    if (!gp_proc_is_kept(reader, past, want, now_ns))
        return false;
    if (is_due && !is_resting(reader, past, now_ns))
        return false;
    bool is_ancestor = info->is_ancestor;
    *info = *past;
    past->stat_fd = -1;
    info->is_ancestor = is_ancestor;
    info->is_old = !is_due;
    (void)gp_proc_hold_texts(info->texts);
    return true;
}

void gp_proc_drop(const struct gp_proc_info *info)
{
    gp_shared_drop(&info->texts->shared);
    if (info->stat_fd >= 0)
        (void)close(info->stat_fd);
}

void gp_proc_forget(struct gp_proc_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        gp_proc_drop(&infos->infos[i]);
    infos->count = 0;
}

struct gp_proc_infos gp_proc_take_room(struct gp_proc_reader *reader, size_t count)
{
    struct gp_proc_infos infos = reader->spare;
    reader->spare = (struct gp_proc_infos){NULL, 0, 0};
    if (infos.room >= count)
        return infos;
    free(infos.infos);
    infos.infos = malloc(count * sizeof(*infos.infos));
    infos.room = infos.infos ? count : 0;
    return infos;
}
