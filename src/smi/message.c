#include "smi/message.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "source/nvml/nvml.h"

#include <string.h>

/* ---- errors ---- */

enum subject { NOTHING, CODE, LIBRARY, ERROR }; /* what replaces "%s" in a text */

#define FAILED "Failed to initialize NVML: "

static const struct cause {
    int driver_code; /* 0: no driver call was made */
    int code;        /* GP_E*, if that is 0; 0: any */
    int status;      /* 0: the driver's code */
    enum subject subject;
    const char *text;
} causes[] = {
    {GP_NVML_DRIVER_NOT_LOADED, 0, 0, NOTHING,
     "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
     "the latest NVIDIA driver is installed and running.\n\n"},
    {GP_NVML_LIBRARY_NOT_FOUND, 0, 0, NOTHING,
     "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the "
     "NVIDIA Display Driver is properly installed and present in your system.\n"
     "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n"},
    {GP_NVML_FUNCTION_NOT_FOUND, 0, 0, NOTHING,
     "Mismatch in versions between nvidia-smi and NVML. \n"
     "Are you sure you are using nvidia-smi provided with the driver?\n"},
    {GP_NVML_LIB_RM_VERSION_MISMATCH, 0, 0, LIBRARY,
     FAILED "Driver/library version mismatch\nNVML library version: %s\n"},
    {GP_NVML_GPU_NOT_FOUND, 0, GP_SMI_EXIT_OTHER, CODE,
     FAILED "%s\nUnable to determine the number of GPUs\n"},
    {0, GP_ENODEV, GP_SMI_EXIT_NOT_FOUND, NOTHING, "No devices were found\n"},
    {0, GP_ETIMEOUT, GP_SMI_EXIT_TIMEOUT, NOTHING, FAILED "Timeout\n"},
    {0, GP_EUSAGE, GP_SMI_EXIT_USAGE, ERROR, "%s\n"},
    {0, 0, GP_SMI_EXIT_OTHER, ERROR, "%s\n"},
};

static const struct cause *cause_of(const struct gp_err *err)
{
    static const struct cause other = {0, 0, 0, CODE, FAILED "%s\n"};
    for (size_t i = 0; i < GP_ARRAY_LEN(causes); i++)
        if (causes[i].driver_code == err->driver_code &&
            (!causes[i].code || causes[i].code == err->code))
            return &causes[i];
    return &other;
}

int gp_smi_exit_of(int driver_code)
{
    return driver_code > 0 && driver_code < GP_SMI_EXIT_OTHER ? driver_code : GP_SMI_EXIT_OTHER;
}

int gp_smi_add_error(struct gp_strbuf *sb, const struct gp_err *err)
{
    static const struct cause unloadable = {12, 0, 0, ERROR, "%s\n"};
    const struct cause *cause = gp_nvml_is_unloadable(err) ? &unloadable : cause_of(err);
    struct gp_strbuf library = GP_STRBUF_INIT(sizeof(err->driver_library));
    gp_smi_add_library(&library, err->driver_library, 2);
    const char *const subjects[] = {
        [NOTHING] = "",
        [CODE] = gp_nvml_return_text(err->driver_code),
        [LIBRARY] = library.buf,
        [ERROR] = err->text,
    };
    gp_strbuf_addf(sb, cause->text, subjects[cause->subject]);
    gp_strbuf_fini(&library);
    return cause->status ? cause->status : gp_smi_exit_of(err->driver_code);
}

/* ---- GPUs with problems ---- */

/* Formats of a GPU: "GPU 0000:34:00.0", "GPU0000:34:00.0", "GPU1: 0000:34:00.0". */
static const struct {
    struct gp_smi_range drivers;
    bool has_index;
    const char *gap;
} names[] = {
    {GP_SMI_UNTIL(524), false, " "},
    {GP_SMI_BETWEEN(525, 569), false, ""},
    {GP_SMI_FROM(570, 0), true, ": "},
};

/* Shortens an address to a domain of four digits, if possible. */
static const char *shorten(const char *bus)
{
    return strncmp(bus, "0000", 4) == 0 && strlen(bus) > 12 ? bus + 4 : bus;
}

static const char *bus_of(const struct gp_device *gpu)
{
    const struct gp_value *v = &gpu->values[GP_PCI_BUS_ID - GP_DEVICE__FIRST];
    return gp_value_is_present(v) ? v->s : NULL;
}

void gp_smi_add_unreachable(struct gp_strbuf *sb, const struct gp_smi_form *form, unsigned index,
                            const char *bus, int driver_code)
{
    size_t i = 0;
    while (!gp_smi_in(form, names[i].drivers))
        i++;
    gp_strbuf_adds(sb, "Unable to determine the device handle for GPU");
    if (names[i].has_index || !bus)
        gp_strbuf_addf(sb, "%u", index);
    if (bus)
        gp_strbuf_addf(sb, "%s%s", names[i].gap, shorten(bus));
    gp_strbuf_addf(sb, ": %s\n", gp_nvml_return_text(driver_code));
}

void gp_smi_add_refusal(struct gp_strbuf *sb, const struct gp_smi_form *form,
                        const struct gp_device *gpu)
{
    gp_smi_add_unreachable(sb, form, gpu->index, bus_of(gpu), gpu->driver_code);
}

static bool has_failed(const struct gp_device *d)
{
    return d->status != GP_STATUS_OK && d->status != GP_STATUS_ASLEEP &&
           d->status != GP_STATUS_RELEASED;
}

void gp_smi_add_failures(struct gp_strbuf *sb, const struct gp_smi_form *form,
                         const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *d = &snapshot->devices[i];
        if (has_failed(d) && !d->is_mig)
            gp_smi_add_unreachable(sb, form, d->index, bus_of(d),
                                   d->driver_code ? d->driver_code : GP_SMI_EXIT_TIMEOUT);
    }
}

bool gp_smi_add_refusals(struct gp_strbuf *sb, const struct gp_smi_form *form,
                         const struct gp_snapshot *snapshot)
{
    bool any = false;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *d = &snapshot->devices[i];
        if (d->refused)
            gp_smi_add_refusal(sb, form, d);
        any = any || !d->refused;
    }
    return any;
}

static bool is_damaged(const struct gp_device *gpu)
{
    const struct gp_value *v = &gpu->values[GP_INFOROM_CHECKSUM - GP_DEVICE__FIRST];
    return !gpu->is_mig && gp_value_is_present(v) && strcmp(v->s, "invalid") == 0;
}

void gp_smi_add_warnings(struct gp_strbuf *sb, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const char *bus = bus_of(&snapshot->devices[i]);
        if (is_damaged(&snapshot->devices[i]))
            gp_strbuf_addf(sb, "WARNING: infoROM is corrupted at gpu %s\n",
                           bus ? shorten(bus) : "");
    }
}

int gp_smi_exit_status(const struct gp_snapshot *snapshot)
{
    bool all_silent = true;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *d = &snapshot->devices[i];
        if (has_failed(d) && d->driver_code)
            return gp_smi_exit_of(d->driver_code);
        all_silent = all_silent && has_failed(d);
    }
    if (all_silent && snapshot->device_count > 0)
        return GP_SMI_EXIT_TIMEOUT;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (is_damaged(&snapshot->devices[i]))
            return GP_SMI_EXIT_INFOROM;
    return 0;
}
