#include "tui/gpu_flags.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/alerts.h"
#include "tui/gpu_text.h"

#include <inttypes.h>
#include <string.h>

/* ---- what limits the clocks ---- */

/* Reasons that do: nvmlClocksEventReasons in nvml.h. The worst first. */
static const struct limit {
    uint64_t bits;
    char letter;
    enum gp_ink ink;
    const char *word;
} limits[] = {
    {0x20 | 0x40, 'T', GP_INK_HIGH, "temperature"}, {0x80, 'P', GP_INK_HIGH, "power supply"},
    {0x08, 'T', GP_INK_HIGH, "temperature"},        {0x04, 'P', GP_INK_DIM, "power"},
    {0x10, 'S', GP_INK_DIM, "sync boost"},
};

static const struct limit *limit_of(const struct gp_device *device)
{
    const struct gp_value *v = &device->values[GP_REASONS_ACTIVE - GP_DEVICE__FIRST];
    for (size_t i = 0; v->status == GP_STATUS_OK && i < GP_ARRAY_LEN(limits); i++)
        if ((uint64_t)v->i & limits[i].bits)
            return &limits[i];
    return NULL;
}

const char *gp_gpu_limit(const struct gp_device *device)
{
    const struct limit *limit = limit_of(device);
    return limit ? limit->word : NULL;
}

enum gp_ink gp_gpu_limit_ink(const struct gp_device *device)
{
    const struct limit *limit = limit_of(device);
    return limit ? limit->ink : GP_INK_DIM;
}

/* ---- the problems: each appends its words, and returns whether there is one ---- */

static bool add_trouble(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    const char *trouble = gp_gpu_trouble(of->device);
    if (trouble)
        gp_strbuf_add(sb, trouble, gp_gpu_trouble_words(trouble));
    return trouble;
}

static bool add_recovery(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    const char *action = gp_device_text(of->device, GP_RECOVERY_ACTION, "None");
    gp_strbuf_adds(sb, "needs recovery: ");
    gp_strbuf_adds(sb, action);
    return strcmp(action, "None") != 0;
}

static bool add_errors(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    double n;
    if (!gp_device_number(of->device, GP_ECC_UNCORRECTED_VOLATILE, &n) || n <= 0)
        return false;
    gp_add_whole(sb, n);
    gp_strbuf_adds(sb, n > 1 ? " uncorrected memory errors" : " uncorrected memory error");
    return true;
}

static bool add_failure(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    gp_strbuf_adds(sb, "broken memory cannot be replaced");
    return strcmp(gp_device_text(of->device, GP_REMAPPED_FAILURE, ""), "Yes") == 0;
}

bool gp_gpu_waits_for_repair(const struct gp_device *device)
{
    return strcmp(gp_device_text(device, GP_REMAPPED_PENDING, ""), "Yes") == 0 ||
           strcmp(gp_device_text(device, GP_RETIRED_PENDING, ""), "Yes") == 0;
}

static bool add_repair(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    gp_strbuf_adds(sb, "memory repair waits for a reset");
    return gp_gpu_waits_for_repair(of->device);
}

static const struct gp_xid *xid_of(const struct gp_flags_of *of)
{
    return of->xids ? gp_xid_worst(of->xids, of->device->index, of->wall_ns) : NULL;
}

/* "Xid 94 2 min ago" */
static bool add_xid(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    const struct gp_xid *xid = xid_of(of);
    char age[GP_XID_AGE_SIZE];
    if (xid)
        gp_strbuf_addf(sb, "Xid %" PRIu64 " %s", xid->number, gp_xid_age(xid, of->wall_ns, age));
    return xid;
}

static bool add_orphans(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    double bytes;
    if (!gp_gpu_has_orphans(of->device, &bytes))
        return false;
    gp_gpu_add_gib(sb, bytes);
    gp_strbuf_adds(sb, " held by no listed process");
    return true;
}

static bool add_limit(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    const char *word = gp_gpu_limit(of->device);
    gp_strbuf_adds(sb, word ? word : "");
    gp_strbuf_adds(sb, " limits the clocks");
    return word;
}

/* The worst first. */
static const struct flag {
    bool (*add)(struct gp_strbuf *sb, const struct gp_flags_of *of);
    char letter; /* 0: that of the limit, as is its ink */
    enum gp_ink ink;
} flags[] = {
    {add_trouble, '!', GP_INK_CRITICAL}, {add_recovery, 'R', GP_INK_CRITICAL},
    {add_errors, 'E', GP_INK_CRITICAL},  {add_failure, 'R', GP_INK_CRITICAL},
    {add_xid, 'X', GP_INK_CRITICAL},     {add_repair, 'R', GP_INK_HIGH},
    {add_orphans, 'O', GP_INK_HIGH},     {add_limit, '\0', GP_INK_DIM},
};

static char letter_of(const struct flag *flag, const struct gp_device *device)
{
    const struct limit *limit = flag->letter ? NULL : limit_of(device);
    return limit ? limit->letter : flag->letter;
}

/* An error that a program caused is less severe. */
static enum gp_ink ink_of(const struct flag *flag, const struct gp_flags_of *of)
{
    return flag->add == add_xid ? gp_xid_ink(xid_of(of))
           : flag->letter       ? flag->ink
                                : gp_gpu_limit_ink(of->device);
}

void gp_gpu_draw_flags(const struct gp_box *box, int x, int y, int w, const struct gp_flags_of *of)
{
    char last = '\0';
    for (size_t i = 0; i < GP_ARRAY_LEN(flags) && w > 0; i++) {
        GP_GPU_TEXT(text);
        const char letter = letter_of(&flags[i], of->device);
        if (letter == last || !flags[i].add(&text, of))
            continue;
        gp_draw_fill(box, x++, y, 1, ink_of(&flags[i], of), (uint32_t)letter);
        last = letter;
        w--;
    }
}

void gp_gpu_add_flag_words(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(flags); i++) {
        GP_GPU_TEXT(text);
        if (flags[i].add(&text, of))
            gp_strbuf_addf(sb, "%s%c: %s", sb->len ? "; " : "", letter_of(&flags[i], of->device),
                           text.buf);
    }
}
