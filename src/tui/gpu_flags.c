#include "tui/gpu_flags.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "tui/alerts.h"
#include "tui/gpu_fault.h"
#include "tui/gpu_text.h"

#include <inttypes.h>

/* ---- what limits the clocks ---- */

/* Reasons that do: nvmlClocksEventReasons in nvml.h. The worst first. */
static const struct limit {
    uint64_t bits;
    char letter;
    enum gp_ink ink;
    const char *word, *whole; /* next to the GPU, and after the letter */
} limits[] = {
    {0x20 | 0x40, 'T', GP_INK_HIGH, "slowed by heat", "slowed by heat"},
    {0x80, 'P', GP_INK_HIGH, "slowed by power supply", "slowed by power supply"},
    {0x08, 'T', GP_INK_HIGH, "slowed by heat", "slowed by heat"},
    {0x04, 'P', GP_INK_DIM, "limited: power", "power limits the clocks"},
    {0x10, 'S', GP_INK_DIM, "limited: sync boost", "sync boost limits the clocks"},
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

/* ---- the problems ---- */

static const struct gp_xid *xid_of(const struct gp_flags_of *of)
{
    return of->xids ? gp_xid_worst(of->xids, of->device->index, of->wall_ns) : NULL;
}

/* "Xid 94 (2 min ago)" */
static bool add_xid(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    const struct gp_xid *xid = xid_of(of);
    char age[GP_XID_AGE_SIZE];
    if (xid)
        gp_strbuf_addf(sb, "Xid %" PRIu64 " (%s)", xid->number, gp_xid_age(xid, of->wall_ns, age));
    return xid;
}

static bool add_limit(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    const struct limit *limit = limit_of(of->device);
    gp_strbuf_adds(sb, limit ? limit->whole : "");
    return limit;
}

/* The worst first. Those without a function are told by gp_fault_add(). */
static const struct flag {
    enum gp_fault fault;
    char letter; /* 0: that of the limit, as is its ink */
    enum gp_ink ink;
    bool (*add)(struct gp_strbuf *sb, const struct gp_flags_of *of);
} flags[] = {
    {GP_FAULT_LOST, '!', GP_INK_CRITICAL, NULL},     {GP_FAULT_SILENT, '!', GP_INK_CRITICAL, NULL},
    {GP_FAULT_RECOVERY, 'R', GP_INK_CRITICAL, NULL}, {GP_FAULT_ERRORS, 'E', GP_INK_CRITICAL, NULL},
    {GP_FAULT_BROKEN, 'R', GP_INK_CRITICAL, NULL},   {GP_FAULT_XID, 'X', GP_INK_CRITICAL, add_xid},
    {GP_FAULT_REPAIR, 'R', GP_INK_HIGH, NULL},       {GP_FAULT_ORPHANS, 'O', GP_INK_HIGH, NULL},
    {GP_FAULT_HEAT, '\0', GP_INK_DIM, add_limit},
};

/* Appends the words; returns false if there is no such problem. */
static bool add_words(struct gp_strbuf *sb, const struct flag *flag, const struct gp_flags_of *of)
{
    return flag->add ? flag->add(sb, of) : gp_fault_add(sb, flag->fault, of->device);
}

static char letter_of(const struct flag *flag, const struct gp_device *device)
{
    const struct limit *limit = flag->letter ? NULL : limit_of(device);
    return limit ? limit->letter : flag->letter;
}

/* An error that a program caused is less severe. */
static enum gp_ink ink_of(const struct flag *flag, const struct gp_flags_of *of)
{
    return flag->fault == GP_FAULT_XID ? gp_xid_ink(xid_of(of))
           : flag->letter              ? flag->ink
                                       : gp_gpu_limit_ink(of->device);
}

void gp_gpu_draw_flags(const struct gp_box *box, int x, int y, int w, const struct gp_flags_of *of)
{
    char last = '\0';
    for (size_t i = 0; i < GP_ARRAY_LEN(flags) && w > 0; i++) {
        GP_GPU_TEXT(text);
        const char letter = letter_of(&flags[i], of->device);
        if (letter == last || !add_words(&text, &flags[i], of))
            continue;
        gp_draw_fill(box, x++, y, 1, ink_of(&flags[i], of), (uint32_t)letter);
        last = letter;
        w--;
    }
}

/* That of a GPU without values needs no letter: it has none next to it. */
void gp_gpu_add_flag_words(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(flags); i++) {
        const bool has_letter = flags[i].letter != '!';
        GP_GPU_TEXT(text);
        if (!add_words(&text, &flags[i], of))
            continue;
        gp_strbuf_adds(sb, sb->len ? "; " : "");
        if (has_letter)
            gp_strbuf_addf(sb, "%c: ", letter_of(&flags[i], of->device));
        gp_strbuf_adds(sb, text.buf);
    }
}
