#include "sim/migprofile.h"

#include "sim/setting.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- common profiles */

/* Seven compute slices and eight memory slices. */
static const struct common {
    unsigned int index, id, slices, eighths, most, starts;
    const char *suffix;
    struct engines {
        unsigned int multiprocessors, copy, decoders, jpeg, ofa;
    } ampere, hopper;
} common_profiles[] = {
    {0, 19, 1, 1, 7, 0x7f, "", {14, 1, 0, 0, 0}, {16, 1, 1, 1, 0}},
    {7, 20, 1, 1, 1, 0x7f, "+me", {14, 1, 1, 1, 1}, {16, 1, 1, 1, 1}},
    {9, 15, 1, 2, 4, 0x55, "", {14, 1, 1, 0, 0}, {26, 1, 1, 1, 0}},
    {1, 14, 2, 2, 3, 0x15, "", {28, 2, 1, 0, 0}, {32, 2, 2, 2, 0}},
    {2, 9, 3, 4, 2, 0x11, "", {42, 3, 2, 0, 0}, {60, 3, 3, 3, 0}},
    {3, 5, 4, 4, 1, 0x01, "", {56, 4, 2, 0, 0}, {64, 4, 4, 4, 0}},
    {4, 0, 7, 8, 1, 0x01, "", {98, 7, 5, 1, 1}, {132, 8, 7, 7, 1}},
};

static uint64_t total_mib(const struct sim_device *gpu)
{
    return gpu->answers[SIM_MEM_TOTAL].number >> 20;
}

static struct sim_mig_profile common_profile(const struct sim_device *gpu, size_t row)
{
    const struct common *c = &common_profiles[row];
    bool ampere = gpu->answers[SIM_ARCH].number == NVML_DEVICE_ARCH_AMPERE;
    struct engines engines = ampere ? c->ampere : c->hopper;
    struct sim_mig_profile profile = {
        .row = (unsigned int)row,
        .index = c->index,
        .id = c->id,
        .slices = c->slices,
        .most = c->most,
        .size = c->eighths,
        .starts = c->starts,
        .memory_mib = total_mib(gpu) * c->eighths / 8,
        .multiprocessors = engines.multiprocessors,
        .copy_engines = engines.copy,
        .decoders = engines.decoders,
        .jpeg_engines = engines.jpeg,
        .ofa_engines = engines.ofa,
    };
    /* Whole GB of the GPU, in eighths and rounded, as in the product names. */
    uint64_t total_gb = (total_mib(gpu) + 1023) / 1024;
    (void)snprintf(profile.name, sizeof(profile.name), "%ug.%llugb%s", c->slices,
                   (unsigned long long)(total_gb * c->eighths + 4) / 8, c->suffix);
    return profile;
}

/* ------------------------------------------------------------------------- those of a file */

static const struct sim_rows *listed(const struct sim_device *gpu)
{
    return &gpu->lists.rows[SIM_LIST_PROFILES];
}

/* "0 3 6 9" */
static unsigned int bits_of(const char *text)
{
    unsigned int bits = 0;
    for (char *end; *text; text = end) {
        unsigned long bit = strtoul(text, &end, 10);
        if (end == text)
            break;
        bits |= bit < 32 ? 1u << bit : 0;
    }
    return bits;
}

static struct sim_mig_profile listed_profile(const struct sim_device *gpu, size_t row)
{
    const struct sim_rows *rows = listed(gpu);
    struct sim_mig_profile profile = {.row = (unsigned int)row};
    const struct {
        unsigned int *where;
        enum sim_cell cell;
    } numbers[] = {
        {&profile.index, SIM_PROFILES_INDEX},       {&profile.id, SIM_PROFILES_ID},
        {&profile.slices, SIM_PROFILES_SLICES},     {&profile.most, SIM_PROFILES_INSTANCES},
        {&profile.size, SIM_PROFILES_SIZE},         {&profile.multiprocessors, SIM_PROFILES_SM},
        {&profile.copy_engines, SIM_PROFILES_COPY}, {&profile.decoders, SIM_PROFILES_DECODERS},
        {&profile.encoders, SIM_PROFILES_ENCODERS}, {&profile.jpeg_engines, SIM_PROFILES_JPEG},
        {&profile.ofa_engines, SIM_PROFILES_OFA},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        *numbers[i].where = (unsigned int)sim_cell_number(rows, row, numbers[i].cell, 0);
    profile.memory_mib = sim_cell_number(rows, row, SIM_PROFILES_MEMORY, 0);
    profile.p2p = sim_cell_number(rows, row, SIM_PROFILES_P2P, 0) != 0;
    profile.starts = bits_of(sim_cell_text(rows, row, SIM_PROFILES_STARTS));
    /* A recording made without root, or not in MIG mode, has no placements. */
    for (size_t i = 0; !profile.starts && i < GP_ARRAY_LEN(common_profiles); i++)
        if (common_profiles[i].index == profile.index) {
            profile.size = common_profiles[i].eighths;
            profile.starts = common_profiles[i].starts;
        }
    (void)snprintf(profile.name, sizeof(profile.name), "%.31s",
                   sim_cell_text(rows, row, SIM_PROFILES_NAME));
    return profile;
}

/* ------------------------------------------------------------------------- finding one */

size_t sim_mig_profile_count(const struct sim_device *gpu)
{
    return listed(gpu)->count ? listed(gpu)->count : GP_ARRAY_LEN(common_profiles);
}

struct sim_mig_profile sim_mig_profile(const struct sim_device *gpu, size_t row)
{
    return listed(gpu)->count ? listed_profile(gpu, row) : common_profile(gpu, row);
}

bool sim_mig_profile_at(const struct sim_device *gpu, unsigned int index,
                        struct sim_mig_profile *ret)
{
    for (size_t row = 0; row < sim_mig_profile_count(gpu); row++) {
        *ret = sim_mig_profile(gpu, row);
        if (ret->index == index)
            return true;
    }
    return false;
}

bool sim_mig_profile_by_id(const struct sim_device *gpu, unsigned int id,
                           struct sim_mig_profile *ret)
{
    for (size_t row = 0; row < sim_mig_profile_count(gpu); row++) {
        *ret = sim_mig_profile(gpu, row);
        if (ret->id == id)
            return true;
    }
    return false;
}

bool sim_mig_profile_of_instance(const struct sim_live *live, const struct sim_device *gpu,
                                 unsigned int gi, struct sim_mig_profile *ret)
{
    struct sim_settings *s = sim_state_settings(live->state);
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        unsigned long long bits = atomic_load(&s->devices[gpu->index].gpu_instances[i]);
        struct sim_instance instance;
        memcpy(&instance, &bits, sizeof(instance));
        if (instance.serial && instance.gi == gi) {
            *ret = sim_mig_profile(gpu, instance.profile);
            return true;
        }
    }
    return false;
}

/* The file has its memory and number of slices. If several profiles match, the first one has no
 * media engines. */
struct sim_mig_profile sim_mig_profile_of_device(const struct sim_device *mig)
{
    const struct sim_device *gpu = mig->parent;
    uint64_t slices = mig->answers[SIM_ATTR_GI_SLICES].number;
    uint64_t mib = mig->answers[SIM_MEM_TOTAL].number >> 20;
    uint64_t ofa = mig->answers[SIM_ATTR_OFA].number;
    struct sim_mig_profile best = sim_mig_profile(gpu, 0);
    uint64_t best_miss = UINT64_MAX;
    for (size_t row = 0; row < sim_mig_profile_count(gpu); row++) {
        struct sim_mig_profile profile = sim_mig_profile(gpu, row);
        uint64_t miss =
            profile.memory_mib > mib ? profile.memory_mib - mib : mib - profile.memory_mib;
        miss = 2 * miss + (profile.ofa_engines != ofa);
        if (profile.slices != slices || miss >= best_miss)
            continue;
        best = profile;
        best_miss = miss;
    }
    return best;
}

unsigned int sim_mig_slices(const struct sim_device *gpu)
{
    unsigned int most = 0;
    for (size_t row = 0; row < sim_mig_profile_count(gpu); row++) {
        unsigned int slices = sim_mig_profile(gpu, row).slices;
        most = slices > most ? slices : most;
    }
    return most;
}

unsigned int sim_mig_places(const struct sim_device *gpu)
{
    unsigned int most = 0;
    for (size_t row = 0; row < sim_mig_profile_count(gpu); row++) {
        unsigned int size = sim_mig_profile(gpu, row).size;
        most = size > most ? size : most;
    }
    return most;
}

unsigned int sim_mig_multiprocessors(const struct sim_device *gpu,
                                     const struct sim_mig_profile *profile, unsigned int slices)
{
    bool whole = slices == profile->slices;
    return whole ? profile->multiprocessors : slices * sim_mig_profile(gpu, 0).multiprocessors;
}

/* ------------------------------------------------------------------------- placing */

static unsigned int mask_of(unsigned int size, unsigned int start)
{
    return (unsigned int)(((UINT64_C(1) << size) - 1) << start);
}

/* How many places of all parts would become unusable with these taken. */
static unsigned int loss(const struct sim_part *parts, size_t count, unsigned int taken,
                         unsigned int more)
{
    unsigned int lost = 0;
    for (size_t i = 0; i < count; i++)
        for (unsigned int start = 0; start < 32; start++) {
            unsigned int mask = mask_of(parts[i].size, start);
            lost += parts[i].starts >> start & 1 && !(mask & taken) && mask & more;
        }
    return lost;
}

int sim_part_place(const struct sim_part *parts, size_t count, size_t which, unsigned int taken)
{
    int best = -1;
    unsigned int least = UINT_MAX;
    for (unsigned int start = 0; start < 32; start++) {
        unsigned int mask = mask_of(parts[which].size, start);
        if (!(parts[which].starts >> start & 1) || mask & taken)
            continue;
        unsigned int lost = loss(parts, count, taken, mask);
        if (lost >= least)
            continue;
        least = lost;
        best = (int)start;
    }
    return best;
}
