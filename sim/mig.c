/* The live instances of a GPU are two lists of words in shared memory. A MIG device is a compute
 * instance; each process creates one object per instance to represent it. */
#include "sim/mig.h"

#include "sim/migprofile.h"
#include "sim/setting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Protects the list of created devices, whose entries never change. */
static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_live(const struct sim_live *live, const struct sim_device *gpu)
{
    uint64_t ignored;
    return sim_setting_get(live, gpu, SIM_SET_INSTANCES, &ignored);
}

static atomic_ullong *compute_words(const struct sim_live *live, const struct sim_device *gpu)
{
    return sim_state_settings(live->state)->devices[gpu->index].compute_instances;
}

static struct sim_instance load(const atomic_ullong *word)
{
    unsigned long long bits = atomic_load(word);
    struct sim_instance instance;
    memcpy(&instance, &bits, sizeof(instance));
    return instance;
}

static void store(atomic_ullong *word, const struct sim_instance *instance)
{
    unsigned long long bits;
    memcpy(&bits, instance, sizeof(bits));
    atomic_store(word, bits);
}

/* ------------------------------------------------------------------------- made devices */

static void set_number(struct sim_device *mig, enum sim_slot slot, uint64_t number)
{
    mig->answers[slot] = (struct sim_value){.code = NVML_SUCCESS, .number = number};
}

/* The answers of a MIG device: its share of the GPU's memory and engines. */
static void fill_answers(const struct sim_mig_profile *profile, unsigned int ci_slices,
                         unsigned int multiprocessors, struct sim_device *mig)
{
    uint64_t memory = profile->memory_mib << 20;
    const struct {
        enum sim_slot slot;
        uint64_t number;
    } numbers[] = {
        {SIM_MEM_TOTAL, memory},
        {SIM_MEM_RESERVED, 0},
        {SIM_MEM_USED, 0},
        {SIM_MEM_FREE, memory},
        {SIM_COMPUTE_MODE, NVML_COMPUTEMODE_DEFAULT},
        {SIM_ATTR_SM, multiprocessors},
        {SIM_ATTR_COPY, profile->copy_engines},
        {SIM_ATTR_DEC, profile->decoders},
        {SIM_ATTR_ENC, profile->encoders},
        {SIM_ATTR_JPG, profile->jpeg_engines},
        {SIM_ATTR_OFA, profile->ofa_engines},
        {SIM_ATTR_GI_SLICES, profile->slices},
        {SIM_ATTR_CI_SLICES, ci_slices},
        {SIM_ATTR_MEMORY, memory >> 20},
        {SIM_LIST_COMPUTE, 0},
        {SIM_LIST_GRAPHICS, 0},
        {SIM_LIST_MPS, 0},
    };
    for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++)
        mig->answers[slot].code = NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        set_number(mig, numbers[i].slot, numbers[i].number);
}

/* The object and its texts in one allocation. */
struct made {
    struct sim_device device; /* first member, so that it can be freed */
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
};

static struct sim_device *make(const struct sim_live *live, const struct sim_device *gpu,
                               size_t index, const struct sim_instance *instance)
{
    struct made *made = calloc(1, sizeof(*made));
    struct sim_mig_profile profile;
    const struct sim_value *name = &gpu->answers[SIM_NAME];
    char part[16] = "";
    if (!made || !sim_mig_profile_of_instance(live, gpu, instance->gi, &profile)) {
        free(made);
        return NULL;
    }
    struct sim_device *mig = &made->device;
    fill_answers(&profile, instance->profile,
                 sim_mig_multiprocessors(gpu, &profile, instance->profile), mig);
    if (instance->profile != profile.slices)
        (void)snprintf(part, sizeof(part), "%uc.", instance->profile);
    (void)snprintf(made->name, sizeof(made->name), "%.40s MIG %s%s",
                   name->code == NVML_SUCCESS ? name->text : "GPU", part, profile.name);
    mig->answers[SIM_NAME] = (struct sim_value){.code = NVML_SUCCESS, .text = made->name};
    /* The serial distinguishes it from all earlier devices. */
    (void)snprintf(made->uuid, sizeof(made->uuid), "MIG-%08x-%s",
                   0x40000000u + gpu->index * 0x10000u + instance->serial,
                   strlen(gpu->uuid) > 13 ? gpu->uuid + 13 : gpu->uuid);
    mig->uuid = made->uuid;
    mig->index = (unsigned int)index;
    mig->gpu_instance = instance->gi;
    mig->compute_instance = instance->ci;
    mig->parent = &live->machine->devices[gpu->index];
    mig->serial = instance->serial;
    mig->fields = gpu->fields;
    return mig;
}

/* The device of a live instance: from the file, an existing one, or a new one. */
static struct sim_device *device_of(const struct sim_live *live, const struct sim_device *gpu,
                                    size_t index, const struct sim_instance *instance)
{
    if (instance->serial == 0)
        return NULL;
    if (instance->origin > 0)
        return instance->origin <= gpu->mig_count ? &gpu->migs[instance->origin - 1] : NULL;
    struct sim_device **list = sim_state_made_devices(live->state);
    (void)pthread_mutex_lock(&made_lock);
    struct sim_device *device = *list;
    while (device && (device->serial != instance->serial || device->parent->index != gpu->index))
        device = device->next_made;
    if (!device && (device = make(live, gpu, index, instance))) {
        device->next_made = *list;
        *list = device;
    }
    (void)pthread_mutex_unlock(&made_lock);
    return device;
}

/* ------------------------------------------------------------------------- looking */

size_t sim_mig_count(const struct sim_live *live, const struct sim_device *gpu)
{
    if (!is_live(live, gpu))
        return gpu->mig_count;
    size_t count = 0;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++)
        if (load(&compute_words(live, gpu)[i]).serial)
            count = i + 1;
    return count;
}

struct sim_device *sim_mig_at(const struct sim_live *live, const struct sim_device *gpu,
                              size_t index)
{
    if (!is_live(live, gpu))
        return index < gpu->mig_count ? &gpu->migs[index] : NULL;
    if (index >= SIM_MAX_INSTANCES)
        return NULL;
    struct sim_instance instance = load(&compute_words(live, gpu)[index]);
    return device_of(live, gpu, index, &instance);
}

unsigned int sim_mig_handle(const struct sim_device *mig)
{
    return mig->serial ? SIM_MAX_MIGS + (unsigned int)mig->serial : mig->index + 1;
}

/* The word of a MIG device among the live ones; NULL if it is gone. */
static atomic_ullong *word_of(const struct sim_live *live, const struct sim_device *gpu,
                              unsigned int handle, size_t *ret_index)
{
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        atomic_ullong *word = &compute_words(live, gpu)[i];
        struct sim_instance instance = load(word);
        unsigned int own =
            instance.origin ? instance.origin : SIM_MAX_MIGS + (unsigned int)instance.serial;
        if (instance.serial == 0 || own != handle)
            continue;
        *ret_index = i;
        return word;
    }
    return NULL;
}

struct sim_device *sim_mig_find(const struct sim_live *live, const struct sim_device *gpu,
                                unsigned int handle)
{
    size_t index;
    if (!is_live(live, gpu))
        return handle <= gpu->mig_count ? &gpu->migs[handle - 1] : NULL;
    return word_of(live, gpu, handle, &index) ? sim_mig_at(live, gpu, index) : NULL;
}

uint64_t sim_mig_mode(const struct sim_live *live, const struct sim_device *mig, uint64_t stored)
{
    size_t index;
    if (!is_live(live, mig->parent))
        return stored;
    const atomic_ullong *word = word_of(live, mig->parent, sim_mig_handle(mig), &index);
    return word ? load(word).mode : stored;
}

bool sim_mig_set_mode(const struct sim_live *live, const struct sim_device *mig, uint64_t mode)
{
    size_t index;
    atomic_ullong *word = word_of(live, mig->parent, sim_mig_handle(mig), &index);
    if (!word)
        return false;
    struct sim_instance instance = load(word);
    instance.mode = (uint8_t)mode;
    store(word, &instance);
    return true;
}

void sim_mig_clear(const struct sim_live *live, const struct sim_device *gpu)
{
    struct sim_settings *s = sim_state_settings(live->state);
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        atomic_store(&s->devices[gpu->index].compute_instances[i], 0);
        atomic_store(&s->devices[gpu->index].gpu_instances[i], 0);
    }
    sim_setting_set(live, gpu, SIM_SET_INSTANCES, 1);
}
