#include "tui/history.h"

#include "model/snapshot.h"

#include <stdlib.h>

static const struct gp_value *value_of(const struct gp_device *device, enum gp_metric m)
{
    return &device->values[m - GP_DEVICE__FIRST];
}

/* As far as it is current: an old value is no new point of a graph. */
static bool number(const struct gp_device *device, enum gp_metric m, double *ret)
{
    const struct gp_value *v = value_of(device, m);
    if (v->status != GP_STATUS_OK)
        return false;
    *ret = gp_metric_number(m, v);
    return true;
}

static int share(double part, double whole)
{
    double permille = whole > 0 ? 1000 * part / whole : 0;
    return permille > 1000 ? 1000 : permille < 0 ? 0 : (int)(permille + 0.5);
}

int gp_series_permille(const struct gp_device *device, enum gp_series series)
{
    static const enum gp_metric parts[GP_SERIES__COUNT] = {
        [GP_SERIES_GPU] = GP_UTILIZATION_GPU,
        [GP_SERIES_MEMORY] = GP_MEMORY_USED,
        [GP_SERIES_POWER] = GP_POWER_DRAW,
    };
    static const enum gp_metric wholes[GP_SERIES__COUNT] = {
        [GP_SERIES_MEMORY] = GP_MEMORY_TOTAL,
        [GP_SERIES_POWER] = GP_POWER_LIMIT_ENFORCED,
    };
    double part;
    double whole = 100;
    if (!number(device, parts[series], &part) ||
        (wholes[series] && !number(device, wholes[series], &whole)))
        return GP_TRACK_GAP;
    return share(part, whole);
}

static struct gp_track *find(const struct gp_history *history, const struct gp_device *device)
{
    int mig = device->is_mig ? (int)device->mig_index : -1;
    for (size_t i = 0; i < history->count; i++)
        if (history->tracks[i]->index == device->index && history->tracks[i]->mig_index == mig)
            return history->tracks[i];
    return NULL;
}

const struct gp_track *gp_history_find(const struct gp_history *history,
                                       const struct gp_device *device)
{
    return find(history, device);
}

static struct gp_track *add_track(struct gp_history *history, const struct gp_device *device)
{
    struct gp_track **grown =
        realloc(history->tracks, (history->count + 1) * sizeof(struct gp_track *));
    if (!grown)
        return NULL;
    history->tracks = grown;
    struct gp_track *track = calloc(1, sizeof(*track));
    if (!track)
        return NULL;
    track->index = device->index;
    track->mig_index = device->is_mig ? (int)device->mig_index : -1;
    history->tracks[history->count++] = track;
    return track;
}

void gp_history_add(struct gp_history *history, const struct gp_snapshot *snapshot,
                    uint64_t interval_ns)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        struct gp_track *track = find(history, device);
        if (!track)
            track = add_track(history, device);
        if (!track)
            continue;
        struct gp_track_sample *sample = &track->samples[track->count++ % GP_TRACK_SAMPLES];
        sample->mono_ns = snapshot->mono_ns;
        sample->lasts_ns = interval_ns + interval_ns / 4; /* they come a little early or late */
        for (int s = 0; s < GP_SERIES__COUNT; s++)
            sample->permille[s] = (int16_t)gp_series_permille(device, (enum gp_series)s);
    }
}

void gp_history_fini(struct gp_history *history)
{
    for (size_t i = 0; i < history->count; i++)
        free(history->tracks[i]);
    free(history->tracks);
    *history = (struct gp_history){NULL, 0};
}

int gp_track_value(const struct gp_track *track, enum gp_series series, uint64_t at_ns,
                   uint64_t step_ns)
{
    uint64_t to_ns = at_ns + step_ns / 2;
    size_t kept = track->count < GP_TRACK_SAMPLES ? track->count : GP_TRACK_SAMPLES;
    size_t low = 0; /* samples that are not behind to_ns */
    size_t high = kept;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        size_t at = (track->count - kept + middle) % GP_TRACK_SAMPLES;
        if (track->samples[at].mono_ns <= to_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return GP_TRACK_GAP;
    const struct gp_track_sample *last =
        &track->samples[(track->count - kept + low - 1) % GP_TRACK_SAMPLES];
    uint64_t lasts_ns = last->lasts_ns > step_ns ? last->lasts_ns : step_ns;
    return to_ns - last->mono_ns < lasts_ns ? last->permille[series] : GP_TRACK_GAP;
}
