/* GPUs that the kernel puts to sleep, as sysfs shows them. A driver call would wake them. */
#include "source/nvml/internal.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUND_GPUS "/sys/bus/pci/drivers/nvidia"

/* Reads a file from the sysfs directory of a GPU bound to the nvidia driver, named by PCI address.
 * */
static bool read_bound_file(const struct nvml_source *source, unsigned index, const char *file,
                            char *text, size_t size)
{
    char name[128];
    char path[GP_PATH_SIZE];
    (void)snprintf(name, sizeof(name), BOUND_GPUS "/%s/%s", source->bound[index], file);
    return gp_io_path(path, source->config.root, name) && gp_io_read(path, text, size) > 0;
}

static int compare_addresses(const void *a, const void *b)
{
    return strcmp(a, b);
}

void nvml_list_bound(struct nvml_source *source)
{
    char path[GP_PATH_SIZE];
    source->bound_count = 0;
    if ((source->config.simulated && !source->config.root) ||
        !gp_io_path(path, source->config.root, BOUND_GPUS))
        return;
    DIR *dir = opendir(path);
    if (!dir)
        return;
    const struct dirent *entry;
    while ((entry = readdir(dir)) && source->bound_count < NVML_BOUND_MAX)
        if (strlen(entry->d_name) == sizeof("0000:01:00.0") - 1 && entry->d_name[4] == ':')
            (void)snprintf(source->bound[source->bound_count++], sizeof(source->bound[0]), "%.12s",
                           entry->d_name);
    (void)closedir(dir);
    qsort(source->bound, source->bound_count, sizeof(source->bound[0]), compare_addresses);
}

static bool is_asleep(const struct nvml_source *source, unsigned index)
{
    char text[32];
    return read_bound_file(source, index, "power/runtime_status", text, sizeof(text)) &&
           strncmp(text, "suspended", 9) == 0;
}

bool nvml_all_asleep(const struct nvml_source *source)
{
    for (unsigned i = 0; i < source->bound_count; i++)
        if (!is_asleep(source, i))
            return false;
    return source->bound_count > 0;
}

/* Whether the kernel may put this GPU to sleep at all; most servers forbid it. */
static bool may_sleep(const struct nvml_source *source, unsigned index)
{
    char text[32];
    return read_bound_file(source, index, "power/control", text, sizeof(text)) &&
           strncmp(text, "auto", 4) == 0;
}

enum gp_power nvml_power_state(const struct nvml_source *source)
{
    for (unsigned i = 0; i < source->bound_count; i++)
        if (!may_sleep(source, i))
            return GP_POWER_FIXED;
    if (source->bound_count == 0)
        return GP_POWER_FIXED;
    return nvml_all_asleep(source) ? GP_POWER_ASLEEP : GP_POWER_AWAKE;
}

static void keep(struct gp_reading *reading, enum gp_metric m, const char *text, size_t n)
{
    struct gp_strbuf safe = GP_STRBUF_INIT(512);
    gp_utf8_add_safe(&safe, text, n, 96);
    gp_value_set_text(gp_device_value(reading->values, m),
                      gp_arena_strdup(&reading->arena, safe.buf), reading->time_ns);
    gp_strbuf_fini(&safe);
}

/* Stores the rest of the line after `label`. A UUID of question marks was never read by the
 * driver. */
static void keep_line(struct gp_reading *reading, enum gp_metric m, const char *text,
                      const char *label)
{
    const char *at = strstr(text, label);
    if (!at)
        return;
    at += strlen(label);
    at += strspn(at, " \t");
    size_t n = strcspn(at, "\n");
    if (n > 0 && !memchr(at, '?', n))
        keep(reading, m, at, n);
}

/* Reads the identity of a GPU from the kernel module, without waking the GPU. */
static void keep_identity(const struct nvml_source *source, unsigned index,
                          struct gp_reading *reading)
{
    char name[128];
    char path[GP_PATH_SIZE];
    char text[1024];
    /* NVML uses 8 digits for the PCI domain. */
    (void)snprintf(name, sizeof(name), "0000%s", source->bound[index]);
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    keep(reading, GP_PCI_BUS_ID, name, strlen(name));
    (void)snprintf(name, sizeof(name), "/proc/driver/nvidia/gpus/%s/information",
                   source->bound[index]);
    if (!gp_io_path(path, source->config.root, name) || gp_io_read(path, text, sizeof(text)) <= 0)
        return;
    keep_line(reading, GP_NAME, text, "Model:");
    keep_line(reading, GP_UUID, text, "GPU UUID:");
}

void nvml_describe_sleeper(const struct nvml_source *source, unsigned index,
                           struct gp_reading *reading)
{
    reading->status = GP_STATUS_ASLEEP;
    (void)snprintf(reading->status_text, sizeof(reading->status_text),
                   "asleep to save power; gpulse does not wake it up");
    keep_identity(source, index, reading);
}

/* The kernel's list has the driver's order if both have the same number of GPUs. */
static bool is_bound(const struct nvml_source *source, unsigned index)
{
    return source->bound_count > index &&
           (!source->initialised || source->bound_count == source->count);
}

bool nvml_is_asleep(const struct nvml_source *source, unsigned index)
{
    return is_bound(source, index) && is_asleep(source, index);
}

bool nvml_may_sleep(const struct nvml_source *source, unsigned index)
{
    return is_bound(source, index) && may_sleep(source, index);
}

void nvml_keep_identity(const struct nvml_source *source, unsigned index,
                        struct gp_reading *reading)
{
    if (is_bound(source, index))
        keep_identity(source, index, reading);
}
