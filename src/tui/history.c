#include "tui/history.h"

#include "model/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

const char *const gp_series_titles[GP_SERIES__COUNT] = {
#define X(id, word, title, unit, label) title,
    GP_SERIES(X)
#undef X
};

const char *const gp_series_units[GP_SERIES__COUNT] = {
#define X(id, word, title, unit, label) unit,
    GP_SERIES(X)
#undef X
};

const char *const gp_series_labels[GP_SERIES__COUNT] = {
#define X(id, word, title, unit, label) label,
    GP_SERIES(X)
#undef X
};

const bool gp_series_is_rate[GP_SERIES__COUNT] = {
    [GP_SERIES_SM] = true,
    [GP_SERIES_PCIE] = true,
    [GP_SERIES_NVLINK] = true,
};

/* ---- values ---- */

/* The source of a series: one metric, or the sum of two. The maximum is another metric, a fixed
 * value, or unknown. Bytes become GiB, bytes per second GB/s. Stale values add no points. */
static const struct {
    enum gp_metric metric, more, full;
    double fixed, per;
} sources[GP_SERIES__COUNT] = {
    [GP_SERIES_GPU] = {GP_UTILIZATION_GPU, 0, 0, 100, 1},
    [GP_SERIES_MEMORY] = {GP_MEMORY_USED, 0, GP_MEMORY_TOTAL, 0, GIB},
    [GP_SERIES_POWER] = {GP_POWER_DRAW, 0, GP_POWER_LIMIT_ENFORCED, 0, 1},
    [GP_SERIES_TEMPERATURE] = {GP_TEMPERATURE_GPU, 0, 0, 100, 1},
    [GP_SERIES_SM] = {GP_GPM_SM, 0, 0, 100, 1},
    [GP_SERIES_BANDWIDTH] = {GP_UTILIZATION_MEMORY, 0, 0, 100, 1},
    [GP_SERIES_PCIE] = {GP_PCIE_TX, GP_PCIE_RX, 0, 0, 1e9},
    [GP_SERIES_NVLINK] = {GP_NVLINK_RATE_TX, GP_NVLINK_RATE_RX, 0, 0, 1e9},
};

/* In its unit. False if it is missing or stale. */
static bool series_value(const struct gp_device *device, enum gp_series series, double *ret)
{
    double value;
    double more = 0;
    if (!gp_device_number_now(device, sources[series].metric, &value) ||
        (sources[series].more && !gp_device_number_now(device, sources[series].more, &more)))
        return false;
    *ret = (value + more) / sources[series].per;
    return true;
}

double gp_series_max(const struct gp_device *device, enum gp_series series)
{
    double full;
    if (sources[series].full && gp_device_number_now(device, sources[series].full, &full))
        return full / sources[series].per;
    return sources[series].fixed;
}

double gp_track_max(const struct gp_track *track, const struct gp_device *device,
                    enum gp_series series)
{
    const double max = gp_series_max(device, series);
    return max > 0 || !track ? max : track->tops[series];
}

static bool is_unsupported(const struct gp_device *device, enum gp_metric m)
{
    return device->values[m - GP_DEVICE__FIRST].status == GP_STATUS_UNSUPPORTED;
}

bool gp_series_is_absent(const struct gp_device *device, enum gp_series series)
{
    return is_unsupported(device, sources[series].metric) ||
           (sources[series].more && is_unsupported(device, sources[series].more));
}

int gp_series_permille(const struct gp_device *device, enum gp_series series)
{
    double value;
    double max = gp_series_max(device, series);
    if (max <= 0 || !series_value(device, series, &value))
        return -1;
    double permille = 1000 * value / max;
    return permille > 1000 ? 1000 : permille < 0 ? 0 : (int)(permille + 0.5);
}

/* ---- tracks ---- */

/* The ring grows up to its full size, so that few samples need little memory. */
static bool make_room(struct gp_track *track)
{
    if (track->count < track->room || track->room == GP_TRACK_SAMPLES)
        return true;
    size_t room = track->room ? 2 * track->room : 64; /* a power of two: see place_of() */
    struct gp_track_time *times = realloc(track->times, room * sizeof(*times));
    if (!times)
        return false;
    track->times = times;
    float *values = malloc(room * GP_TRACK_CHANNELS * sizeof(*values));
    if (!values)
        return false;
    for (size_t c = 0; track->room && c < GP_TRACK_CHANNELS; c++)
        memcpy(&values[c * room], &track->values[c * track->room], track->room * sizeof(*values));
    free(track->values);
    track->values = values;
    track->room = room;
    return true;
}

/* How long a sample is valid: the next one may come slightly late. */
static uint64_t lasts_ns(uint64_t interval_ns)
{
    return interval_ns + interval_ns / 4;
}

void gp_track_add(struct gp_track *track, struct gp_track_sample sample, uint64_t interval_ns)
{
    enum { LASTS_MAX_MS = (1 << 24) - 1 };
    if (!make_room(track))
        return;
    uint64_t lasts_ms = lasts_ns(interval_ns) / GP_NS_PER_MS;
    size_t place = track->count++ & (track->room - 1);
    track->times[place] = (struct gp_track_time){
        .mono_ms = (sample.mono_ns / GP_NS_PER_MS) & ((UINT64_C(1) << 40) - 1),
        .lasts_ms = (lasts_ms < LASTS_MAX_MS ? lasts_ms : LASTS_MAX_MS) & LASTS_MAX_MS,
    };
    for (size_t c = 0; c < GP_TRACK_CHANNELS; c++)
        track->values[c * track->room + place] =
            sample.present >> c & 1 ? sample.values[c] : GP_TRACK_GAP;
}

void gp_track_fini(struct gp_track *track)
{
    free(track->times);
    free(track->values);
    *track = (struct gp_track){.id = 0};
}

static size_t kept_of(const struct gp_track *track)
{
    return !track ? 0 : track->count < track->room ? track->count : track->room;
}

/* Where the sample with this number is, counted from the oldest stored one. */
static size_t place_of(const struct gp_track *track, size_t kept, size_t i)
{
    return (track->count - kept + i) & (track->room - 1);
}

static uint64_t time_of(const struct gp_track *track, size_t place)
{
    return track->times[place].mono_ms * GP_NS_PER_MS;
}

/* The number of stored samples that are not after this moment. */
static size_t count_until(const struct gp_track *track, size_t kept, uint64_t end_ns)
{
    size_t low = 0;
    size_t high = kept;
    if (kept > 0 && time_of(track, place_of(track, kept, kept - 1)) <= end_ns)
        return kept;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (time_of(track, place_of(track, kept, middle)) <= end_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Drops the samples from this time on. Those that were overwritten by them become gaps. */
static void cut_track(struct gp_track *track, uint64_t from_ns)
{
    const size_t kept = kept_of(track);
    const size_t left = from_ns ? count_until(track, kept, from_ns - 1) : 0;
    const size_t first = track->count - kept; /* the number of the oldest sample */
    if (left == kept)
        return;
    const uint64_t oldest_ms = track->times[place_of(track, kept, 0)].mono_ms;
    track->count = left ? track->count - (kept - left) : 0;
    const size_t now_kept = kept_of(track);
    for (size_t i = 0; i < now_kept && track->count - now_kept + i < first; i++) {
        const size_t place = place_of(track, now_kept, i);
        track->times[place] =
            (struct gp_track_time){.mono_ms = oldest_ms & ((UINT64_C(1) << 40) - 1)};
        for (size_t c = 0; c < GP_TRACK_CHANNELS; c++)
            track->values[c * track->room + place] = GP_TRACK_GAP;
    }
}

/* Goes back from the newest sample; a step is over when a sample is older than it. */
void gp_track_read(const struct gp_track *track, int channel, uint64_t end_ns, uint64_t step_ns,
                   float *ret, size_t count)
{
    const size_t kept = kept_of(track);
    const float *values = kept ? &track->values[(size_t)channel * track->room] : NULL;
    uint64_t begin_age_ns = 0; /* of step i; the step ends where the next one begins */
    bool is_empty = true;
    size_t i = 0;
    for (size_t left = count_until(track, kept, end_ns); left > 0; left--) {
        const size_t place = place_of(track, kept, left - 1);
        const uint64_t age_ns = end_ns - time_of(track, place);
        const float value = values[place];
        for (; i < count && age_ns - begin_age_ns >= step_ns; begin_age_ns += step_ns) {
            if (is_empty) /* an older sample may still be valid */
                ret[i] = age_ns - begin_age_ns < track->times[place].lasts_ms * GP_NS_PER_MS
                             ? value
                             : GP_TRACK_GAP;
            is_empty = true;
            i++;
        }
        if (i == count)
            return;
        ret[i] = is_empty || value > ret[i] ? value : ret[i];
        is_empty = false;
    }
    for (i += !is_empty; i < count; i++)
        ret[i] = GP_TRACK_GAP;
}

bool gp_track_look(const struct gp_track *track, int channel, uint64_t end_ns, uint64_t wide_ns,
                   struct gp_track_facts *ret)
{
    size_t kept = kept_of(track);
    size_t count = 0;
    struct gp_track_facts facts = {0};
    for (size_t i = count_until(track, kept, end_ns); i > 0; i--) {
        size_t place = place_of(track, kept, i - 1);
        double value = (double)track->values[(size_t)channel * track->room + place];
        if (end_ns - time_of(track, place) >= wide_ns)
            break;
        if (value < 0)
            continue;
        facts.last = count == 0 ? value : facts.last;
        facts.highest = value > facts.highest ? value : facts.highest;
        facts.mean += value;
        count++;
    }
    if (count == 0)
        return false;
    facts.mean /= (double)count;
    *ret = facts;
    return true;
}

bool gp_track_is_idle(const struct gp_track *track, uint64_t end_ns, uint64_t wide_ns)
{
    return track && track->load_seen_ns && track->idle_since_ns + wide_ns <= end_ns;
}

/* ---- of all GPUs ---- */

static uint64_t id_of(const struct gp_device *device)
{
    return (uint64_t)device->index << 32 | (device->is_mig ? device->mig_index + 1 : 0);
}

/* Most often at the index of the GPU. */
static struct gp_track *find(const struct gp_history *history, const struct gp_device *device)
{
    const uint64_t id = id_of(device);
    if (device->index < history->count && history->tracks[device->index]->id == id)
        return history->tracks[device->index];
    for (size_t i = 0; i < history->count; i++)
        if (history->tracks[i]->id == id)
            return history->tracks[i];
    return NULL;
}

const struct gp_track *gp_history_find(const struct gp_history *history,
                                       const struct gp_device *device)
{
    return find(history, device);
}

static struct gp_track *add_track(struct gp_history *history, uint64_t id)
{
    struct gp_track **grown =
        realloc(history->tracks, (history->count + 1) * sizeof(struct gp_track *));
    if (!grown)
        return NULL;
    history->tracks = grown;
    struct gp_track *track = calloc(1, sizeof(*track));
    if (!track)
        return NULL;
    track->id = id;
    history->tracks[history->count++] = track;
    return track;
}

/* Thermal, power and sync boost, of nvmlClocksEventReasons. */
#define LIMITS UINT64_C(0xfc)

static void note_limit(struct gp_track *track, const struct gp_device *device, uint64_t now_ns)
{
    const struct gp_value *v = &device->values[GP_REASONS_ACTIVE - GP_DEVICE__FIRST];
    bool limited = v->status == GP_STATUS_OK && ((uint64_t)v->i & LIMITS);
    if (!limited)
        track->limited_since_ns = 0;
    else if (!track->limited_since_ns)
        track->limited_since_ns = now_ns;
}

static void note_lanes(struct gp_track *track, const struct gp_device *device)
{
    double lanes;
    if (gp_device_number_now(device, GP_PCIE_WIDTH, &lanes) && lanes > track->lanes_most)
        track->lanes_most = lanes;
}

static void note_memory(struct gp_track *track, const struct gp_track_sample *sample)
{
    const size_t kept = kept_of(track);
    const float before =
        kept ? track->values[GP_SERIES_MEMORY * track->room + place_of(track, kept, kept - 1)]
             : GP_TRACK_GAP;
    const bool is_known = sample->present >> GP_SERIES_MEMORY & 1;
    if (is_known && (before < 0 || sample->values[GP_SERIES_MEMORY] > before))
        track->memory_rose_ns = sample->mono_ns;
}

/* If the utilization is unknown for longer than this, and than until the next sample, the GPU may
 * have worked meanwhile. */
#define UNKNOWN_NS (10 * GP_NS_PER_S)

static void note_load(struct gp_track *track, const struct gp_track_sample *sample,
                      uint64_t interval_ns)
{
    const uint64_t soon_ns = lasts_ns(interval_ns);
    const uint64_t longest_ns = soon_ns > UNKNOWN_NS ? soon_ns : UNKNOWN_NS;
    if (!(sample->present >> GP_SERIES_GPU & 1))
        return;
    if (sample->values[GP_SERIES_GPU] > 0 || !track->load_seen_ns ||
        sample->mono_ns - track->load_seen_ns > longest_ns)
        track->idle_since_ns = sample->mono_ns;
    track->load_seen_ns = sample->mono_ns;
}

double gp_series_of_all(const struct gp_snapshot *snapshot, enum gp_series series)
{
    double sum = 0;
    double whole = 0;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        double max = gp_series_max(device, series);
        double value;
        if (device->is_mig || max <= 0 || !series_value(device, series, &value))
            continue;
        sum += value;
        whole += max;
    }
    return whole > 0 ? 100 * sum / whole : -1;
}

/* When the values were read. The snapshot may be later: if another GPU hangs, it has waited for
 * that one. */
static uint64_t read_ns(const struct gp_history *history, const struct gp_snapshot *snapshot,
                        const struct gp_device *device)
{
    for (int s = 0; s < GP_SERIES__COUNT; s++) {
        const struct gp_value *v = &device->values[sources[s].metric - GP_DEVICE__FIRST];
        const uint64_t ns = gp_value_time_ns(v);
        if (v->status == GP_STATUS_OK && ns > history->last_ns && ns < snapshot->mono_ns)
            return ns;
    }
    return snapshot->mono_ns;
}

static void add_all(struct gp_history *history, const struct gp_snapshot *snapshot,
                    uint64_t first_read_ns, uint64_t interval_ns)
{
    static const enum gp_series of_all[] = {GP_SERIES_GPU, GP_SERIES_MEMORY};
    struct gp_track_sample sample = {.mono_ns = first_read_ns};
    for (size_t i = 0; i < GP_ARRAY_LEN(of_all); i++) {
        double value = gp_series_of_all(snapshot, of_all[i]);
        if (value < 0)
            continue;
        sample.values[of_all[i]] = (float)value;
        sample.present |= UINT32_C(1) << of_all[i];
    }
    gp_track_add(&history->all, sample, interval_ns);
}

void gp_history_add(struct gp_history *history, const struct gp_snapshot *snapshot,
                    uint64_t interval_ns)
{
    uint64_t first_ns = snapshot->mono_ns;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        struct gp_track *track = find(history, device);
        struct gp_track_sample sample = {.mono_ns = read_ns(history, snapshot, device)};
        first_ns = sample.mono_ns < first_ns ? sample.mono_ns : first_ns;
        if (!track)
            track = add_track(history, id_of(device));
        if (!track)
            continue;
        note_limit(track, device, snapshot->mono_ns);
        note_lanes(track, device);
        for (int s = 0; s < GP_SERIES__COUNT; s++) {
            double value;
            track->tops[s] = gp_track_max(track, device, (enum gp_series)s);
            if (!series_value(device, (enum gp_series)s, &value))
                continue;
            sample.values[s] = (float)value;
            sample.present |= UINT32_C(1) << s;
        }
        note_memory(track, &sample);
        note_load(track, &sample, interval_ns);
        gp_track_add(track, sample, interval_ns);
    }
    if (snapshot->device_count > 1)
        add_all(history, snapshot, first_ns, interval_ns);
    history->last_ns = snapshot->mono_ns;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void gp_history_cut(struct gp_history *history, uint64_t from_ns)
{
    cut_track(&history->all, from_ns);
    for (size_t i = 0; i < history->count; i++) {
        cut_track(history->tracks[i], from_ns);
        history->tracks[i]->limited_since_ns = 0;
        history->tracks[i]->memory_rose_ns = from_ns; /* at the latest */
        history->tracks[i]->load_seen_ns = earlier(history->tracks[i]->load_seen_ns, from_ns);
        history->tracks[i]->idle_since_ns = earlier(history->tracks[i]->idle_since_ns, from_ns);
    }
}

void gp_history_fini(struct gp_history *history)
{
    for (size_t i = 0; i < history->count; i++) {
        gp_track_fini(history->tracks[i]);
        free(history->tracks[i]);
    }
    free(history->tracks);
    gp_track_fini(&history->all);
    *history = (struct gp_history){.tracks = NULL};
}
