/* Reads and applies controls, one driver call at a time. A setter is called once and never retried:
 * its result is reported to the user. */
#include "source/nvml/control.h"

#include "base/err.h"

#include <stdio.h>

static const struct nvml_control {
    enum nvml_function setter; /* without it, the driver does not have the control */
    enum nvml_function older;  /* a setter in drivers that lack the above; NVML_FN__NONE: none */
    nvmlReturn_t (*read)(struct nvml_device *device, struct gp_setting *ret);
    nvmlReturn_t (*apply)(struct nvml_device *device, const struct gp_control_value *value);
    int (*check)(struct nvml_device *device, const struct gp_control_value *value,
                 struct gp_err *err);
} controls[GP_CONTROL__COUNT] = {
#define CONTROL(id, setter_, older_, part)                                                         \
    [GP_CONTROL_##id] = {.setter = NVML_FN_##setter_,                                              \
                         .older = NVML_FN_##older_,                                                \
                         .read = nvml_get_##part,                                                  \
                         .apply = nvml_apply_##part},
#define CHECKED(id, setter_, part)                                                                 \
    [GP_CONTROL_##id] = {.setter = NVML_FN_##setter_,                                              \
                         .read = nvml_get_##part,                                                  \
                         .apply = nvml_apply_##part,                                               \
                         .check = nvml_check_##part},
#include "source/nvml/control.def"
#undef CONTROL
#undef CHECKED
};

static struct nvml_device *to_device(struct gp_source_device *device)
{
    return (struct nvml_device *)device;
}

static void control_read(struct gp_source_device *base, enum gp_control_id id,
                         struct gp_setting *ret)
{
    struct nvml_device *device = to_device(base);
    const struct nvml_control *control = &controls[id];
    *ret = (struct gp_setting){.status = GP_STATUS_UNSUPPORTED};
    if (device->is_mig && !gp_control_table[id].on_mig) {
        nvml_set_words(ret, "applies to the whole GPU, not to an instance");
        return;
    }
    if (!nvml_find(&device->source->api, control->setter) &&
        !(control->older && nvml_find(&device->source->api, control->older))) {
        ret->driver_code = NVML_ERROR_FUNCTION_NOT_FOUND;
        (void)snprintf(ret->words, sizeof(ret->words), "this driver does not support %s",
                       nvml_function_name(control->setter));
        return;
    }
    nvmlReturn_t rc = control->read(device, ret);
    ret->status = nvml_return_status(rc);
    if (rc == NVML_SUCCESS)
        return;
    ret->driver_code = (int)rc;
    ret->known = false;
    const char *instead = gp_control_table[id].instead;
    if (rc == NVML_ERROR_DEPRECATED)
        (void)snprintf(ret->words, sizeof(ret->words), "removed from this driver%s%s",
                       instead ? "; use " : "", instead ? instead : "");
    else if (ret->status != GP_STATUS_UNSUPPORTED)
        (void)snprintf(ret->words, sizeof(ret->words), "%s (%s)", nvml_return_text(rc),
                       atomic_load_explicit(device->call, memory_order_relaxed));
}

static int control_check(struct gp_source_device *base, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    const struct nvml_control *control = &controls[id];
    return control->check ? control->check(to_device(base), value, err) : 0;
}

/* The meaning of an error, with a remedy. */
static const struct refusal {
    nvmlReturn_t rc;
    int code;
    const char *words;
} refusals[] = {
    {NVML_ERROR_NO_PERMISSION, GP_EPERM, "no permission"},
    {NVML_ERROR_NOT_SUPPORTED, GP_EFAIL, "not supported by this GPU"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, GP_EFAIL, "not supported by this driver"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, GP_EFAIL,
     "this driver uses another version of the call"},
    {NVML_ERROR_DEPRECATED, GP_EFAIL, "removed from this driver"},
    {NVML_ERROR_INVALID_ARGUMENT, GP_EFAIL, "the driver rejects the value"},
    {NVML_ERROR_IN_USE, GP_EFAIL, "in use: terminate the programs that use it first"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, GP_EFAIL,
     "the GPU does not have enough free resources for it"},
    {NVML_ERROR_RESET_REQUIRED, GP_EFAIL, "the GPU must be reset first"},
};

static int refuse(const struct nvml_device *device, nvmlReturn_t rc, struct gp_err *err)
{
    struct refusal why = {rc, nvml_return_ends_session(rc) ? GP_EDRIVER : GP_EFAIL,
                          nvml_return_text(rc)};
    for (size_t i = 0; i < GP_ARRAY_LEN(refusals); i++)
        if (refusals[i].rc == rc)
            why = refusals[i];
    (void)gp_err_set(err, why.code, "%s (%s)", why.words,
                     atomic_load_explicit(device->call, memory_order_relaxed));
    err->driver_code = (int)rc;
    return why.code;
}

static int control_apply(struct gp_source_device *base, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    struct nvml_device *device = to_device(base);
    device->activation = NVML_SUCCESS;
    nvmlReturn_t rc = controls[id].apply(device, value);
    if (rc == NVML_SUCCESS && device->activation != NVML_SUCCESS)
        (void)snprintf(err->text, sizeof(err->text), "%s", nvml_return_text(device->activation));
    err->driver_code = (int)device->activation;
    return rc == NVML_SUCCESS ? 0 : refuse(device, rc, err);
}

static int control_part(struct gp_source_device *base, struct gp_part *part, struct gp_err *err)
{
    struct nvml_device *device = to_device(base);
    nvmlReturn_t rc = nvml_part(device, part);
    return rc == NVML_SUCCESS ? 0 : refuse(device, rc, err);
}

static struct gp_source_device *control_instance(struct gp_source_device *base, size_t n)
{
    struct nvml_device *device = to_device(base);
    return n < device->mig.count ? (struct gp_source_device *)device->mig.devices[n] : NULL;
}

const struct gp_control_ops nvml_control_ops = {
    .instance = control_instance,
    .read = control_read,
    .check = control_check,
    .apply = control_apply,
    .part = control_part,
};
