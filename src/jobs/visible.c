#include "jobs/visible.h"

#include "model/snapshot.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { KIND_INDEX, KIND_GPU, KIND_MIG };

static enum kind kind_of(const char *entry)
{
    return strncasecmp(entry, "GPU-", 4) == 0   ? KIND_GPU
           : strncasecmp(entry, "MIG-", 4) == 0 ? KIND_MIG
                                                : KIND_INDEX;
}

static bool begins(const char *uuid, const char *entry, size_t n)
{
    return strncasecmp(uuid, entry, n) == 0;
}

/* Like strtoul(): text after the digits is ignored. */
static bool find_index(const char *entry, size_t count, struct gp_visible_device *ret)
{
    char *end;
    unsigned long index = strtoul(entry, &end, 10);
    while (isspace((unsigned char)*entry))
        entry++;
    if (end == entry || *entry == '-' || index >= count)
        return false;
    *ret = (struct gp_visible_device){index, -1};
    return true;
}

/* A UUID may be abbreviated as long as it is unique. */
static bool find_uuid(const char *entry, size_t n, enum kind kind,
                      const struct gp_visible_gpu *gpus, size_t count,
                      struct gp_visible_device *ret)
{
    size_t found = 0;
    for (size_t g = 0; g < count; g++) {
        if (kind == KIND_GPU && begins(gpus[g].uuid, entry, n)) {
            *ret = (struct gp_visible_device){g, -1};
            found++;
        }
        for (size_t m = 0; kind == KIND_MIG && m < gpus[g].mig_count; m++)
            if (begins(gpus[g].migs[m], entry, n)) {
                *ret = (struct gp_visible_device){g, (int)m};
                found++;
            }
    }
    return found == 1;
}

static bool has(const struct gp_visible *list, struct gp_visible_device device)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->devices[i].gpu == device.gpu && list->devices[i].mig == device.mig)
            return true;
    return false;
}

/* The list up to its first entry that names nothing, or something of another kind than the first. A
 * list that names a device twice is empty. */
static void read_mask(const char *mask, const struct gp_visible_gpu *gpus, size_t count,
                      struct gp_visible *ret)
{
    enum kind kind = kind_of(mask + strspn(mask, " "));
    for (const char *p = mask; ret->count < GP_VISIBLE_MAX; p++) {
        struct gp_visible_device device;
        p += strspn(p, " ");
        size_t n = strcspn(p, ", ");
        if (n == 0 || kind_of(p) != kind ||
            !(kind == KIND_INDEX ? find_index(p, count, &device)
                                 : find_uuid(p, n, kind, gpus, count, &device)))
            return;
        if (has(ret, device)) {
            ret->count = 0;
            return;
        }
        ret->devices[ret->count++] = device;
        p += strcspn(p, ",");
        if (!*p)
            return;
    }
}

/* A program gets only one device of GPUs in MIG mode and instances: the first instance. */
static void keep_one_instance(const struct gp_visible_gpu *gpus, struct gp_visible *list)
{
    bool partitioned = false;
    for (size_t i = 0; i < list->count; i++) {
        struct gp_visible_device device = list->devices[i];
        const struct gp_visible_gpu *gpu = &gpus[device.gpu];
        partitioned = partitioned || gpu->is_partitioned || device.mig >= 0;
        if (device.mig < 0 && !(gpu->is_partitioned && gpu->mig_count > 0))
            continue;
        list->devices[0] = (struct gp_visible_device){device.gpu, device.mig < 0 ? 0 : device.mig};
        list->count = 1;
        return;
    }
    if (!partitioned)
        return;
    size_t kept = 0; /* a GPU in MIG mode without instances is not a device */
    for (size_t i = 0; i < list->count; i++)
        if (!gpus[list->devices[i].gpu].is_partitioned)
            list->devices[kept++] = list->devices[i];
    list->count = kept;
}

void gp_visible_resolve(const char *mask, const struct gp_visible_gpu *gpus, size_t count,
                        struct gp_visible *ret)
{
    ret->count = 0;
    if (mask)
        read_mask(mask, gpus, count, ret);
    else
        for (size_t g = 0; g < count && g < GP_VISIBLE_MAX; g++)
            ret->devices[ret->count++] = (struct gp_visible_device){g, -1};
    keep_one_instance(gpus, ret);
}

/* ---- from a snapshot ---- */

/* The devices that CUDA numbers, in its order. */
struct machine {
    const struct gp_device *gpus[GP_VISIBLE_MAX];
    struct gp_visible_gpu seen[GP_VISIBLE_MAX];
    const char *migs[GP_VISIBLE_MAX];
    const struct gp_device *mig_rows[GP_VISIBLE_MAX];
    size_t count, mig_count;
};

static int compare_places(const void *a, const void *b)
{
    const struct gp_device *const *x = a;
    const struct gp_device *const *y = b;
    return strcasecmp(gp_device_text(*x, GP_PCI_BUS_ID, ""), gp_device_text(*y, GP_PCI_BUS_ID, ""));
}

static void list_gpus(const struct gp_snapshot *snapshot, struct machine *m)
{
    for (size_t i = 0; i < snapshot->device_count && m->count < GP_VISIBLE_MAX; i++)
        if (!snapshot->devices[i].is_mig && snapshot->devices[i].status == GP_STATUS_OK)
            m->gpus[m->count++] = &snapshot->devices[i];
    if (m->count > 0)
        qsort(m->gpus, m->count, sizeof(m->gpus[0]), compare_places);
}

static void list_instances(const struct gp_snapshot *snapshot, struct machine *m)
{
    const struct gp_device *end = &snapshot->devices[snapshot->device_count];
    for (size_t g = 0; g < m->count; g++) {
        struct gp_visible_gpu *gpu = &m->seen[g];
        gpu->uuid = gp_device_text(m->gpus[g], GP_UUID, "");
        gpu->is_partitioned = strcmp(gp_device_text(m->gpus[g], GP_MIG_MODE, ""), "Enabled") == 0;
        gpu->migs = &m->migs[m->mig_count];
        for (const struct gp_device *d = m->gpus[g] + 1;
             d < end && d->is_mig && m->mig_count < GP_VISIBLE_MAX; d++) {
            m->mig_rows[m->mig_count] = d;
            m->migs[m->mig_count++] = gp_device_text(d, GP_UUID, "");
            gpu->mig_count++;
        }
    }
}

size_t gp_visible_rows(const struct gp_snapshot *snapshot, const char *mask,
                       const struct gp_device *rows[GP_VISIBLE_MAX])
{
    struct machine *m = calloc(1, sizeof(*m));
    struct gp_visible *visible = calloc(1, sizeof(*visible));
    size_t count = 0;
    if (m && visible) {
        list_gpus(snapshot, m);
        list_instances(snapshot, m);
        gp_visible_resolve(mask, m->seen, m->count, visible);
        for (; count < visible->count; count++) {
            const struct gp_visible_device *device = &visible->devices[count];
            size_t first = (size_t)(m->seen[device->gpu].migs - m->migs);
            rows[count] =
                device->mig < 0 ? m->gpus[device->gpu] : m->mig_rows[first + (size_t)device->mig];
        }
    }
    free(m);
    free(visible);
    return count;
}

int gp_visible_index(const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    int index = 0;
    if (device->is_mig || device->status != GP_STATUS_OK)
        return -1;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].status == GP_STATUS_TIMEOUT)
            return -1; /* whether CUDA counts it is unknown */
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *other = &snapshot->devices[i];
        if (!other->is_mig && other->status == GP_STATUS_OK && compare_places(&other, &device) < 0)
            index++;
    }
    return index;
}
