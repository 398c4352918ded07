#include "tui/gpu_fault.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/gpu_text.h"

#include <string.h>

const char *const gp_fault_words[GP_FAULT__COUNT] = {
    [GP_FAULT_LOST] = "lost",
    [GP_FAULT_SILENT] = "no answer",
    [GP_FAULT_RECOVERY] = "needs recovery",
    [GP_FAULT_ERRORS] = "memory errors",
    [GP_FAULT_BROKEN] = "broken memory",
    [GP_FAULT_XID] = "Xid",
    [GP_FAULT_HOT] = "too hot",
    [GP_FAULT_HEAT] = "slowed by heat",
    [GP_FAULT_SUPPLY] = "slowed by power supply",
    [GP_FAULT_SLOWED] = "slowed by the hardware",
    [GP_FAULT_FULL_SOON] = "memory full soon",
    [GP_FAULT_FULL] = "memory nearly full",
    [GP_FAULT_REPAIR] = "repair waits",
    [GP_FAULT_LANES] = "narrow PCIe",
    [GP_FAULT_ORPHANS] = "orphaned memory",
    [GP_FAULT_IDLE] = "idle, memory held",
};

enum gp_ink gp_fault_ink(enum gp_fault fault)
{
    return fault <= GP_FAULT_HOT ? GP_INK_CRITICAL : GP_INK_HIGH;
}

bool gp_fault_slows(enum gp_fault fault)
{
    return fault >= GP_FAULT_HEAT && fault <= GP_FAULT_SLOWED;
}

static bool has_yes(const struct gp_device *device, enum gp_metric m)
{
    return strcmp(gp_device_text(device, m, ""), "Yes") == 0;
}

/* Why the clocks are low: nvmlClocksEventReasons in nvml.h. */
enum { HEAT = 0x20 | 0x40, SUPPLY = 0x80, SLOWDOWN = 0x08 };

static bool has_reason(const struct gp_device *device, uint64_t bits)
{
    double reasons;
    return gp_device_number_now(device, GP_REASONS_ACTIVE, &reasons) && (uint64_t)reasons & bits;
}

/* What the driver says of a GPU without values, without the name of its function. */
static bool add_trouble(struct gp_strbuf *sb, const struct gp_device *device, bool is_lost)
{
    const char *trouble = gp_gpu_is_ill(device) ? gp_gpu_trouble(device) : NULL;
    if (!trouble || (device->status == GP_STATUS_LOST) != is_lost)
        return false;
    gp_strbuf_add(sb, trouble, gp_gpu_trouble_words(trouble));
    return true;
}

static bool add_errors(struct gp_strbuf *sb, const struct gp_device *device)
{
    double n;
    if (!gp_device_number_now(device, GP_ECC_UNCORRECTED_VOLATILE, &n) || n <= 0)
        return false;
    gp_strbuf_adds(sb, " (");
    gp_add_whole(sb, n);
    gp_strbuf_adds(sb, " uncorrected)");
    return true;
}

static bool add_recovery(struct gp_strbuf *sb, const struct gp_device *device)
{
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "");
    if (!*action || strcmp(action, "None") == 0)
        return false;
    gp_strbuf_addf(sb, " (%.40s)", action);
    return true;
}

static bool add_orphans(struct gp_strbuf *sb, const struct gp_device *device)
{
    double bytes;
    if (!gp_gpu_has_orphans(device, &bytes))
        return false;
    gp_strbuf_adds(sb, " (");
    gp_gpu_add_gib(sb, bytes);
    gp_strbuf_addc(sb, ')');
    return true;
}

/* Appends what follows the words. */
static bool add_rest(struct gp_strbuf *sb, enum gp_fault fault, const struct gp_device *device)
{
    switch (fault) {
    case GP_FAULT_RECOVERY:
        return add_recovery(sb, device);
    case GP_FAULT_ERRORS:
        return add_errors(sb, device);
    case GP_FAULT_BROKEN:
        gp_strbuf_adds(sb, " (no spare rows)");
        return has_yes(device, GP_REMAPPED_FAILURE);
    case GP_FAULT_HEAT:
        return has_reason(device, HEAT);
    case GP_FAULT_SUPPLY:
        return has_reason(device, SUPPLY);
    case GP_FAULT_SLOWED: /* with heat and the power supply, too; alone, by a power spike */
        return has_reason(device, SLOWDOWN) && !has_reason(device, HEAT | SUPPLY);
    case GP_FAULT_REPAIR:
        gp_strbuf_adds(sb, " for a reset");
        return has_yes(device, GP_REMAPPED_PENDING) || has_yes(device, GP_RETIRED_PENDING);
    case GP_FAULT_ORPHANS:
        return add_orphans(sb, device);
    default:
        return false;
    }
}

bool gp_fault_add(struct gp_strbuf *sb, enum gp_fault fault, const struct gp_device *device)
{
    const size_t before = sb->len;
    if (fault == GP_FAULT_LOST || fault == GP_FAULT_SILENT)
        return add_trouble(sb, device, fault == GP_FAULT_LOST);
    gp_strbuf_adds(sb, gp_fault_words[fault]);
    if (add_rest(sb, fault, device))
        return true;
    gp_strbuf_truncate(sb, before);
    return false;
}

bool gp_fault_has(enum gp_fault fault, const struct gp_device *device)
{
    GP_GPU_TEXT(words);
    return gp_fault_add(&words, fault, device);
}
