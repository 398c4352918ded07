#include "tui/gpu_flags.h"

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "tui/alerts.h"
#include "tui/gpu_fault.h"
#include "tui/gpu_text.h"

#include <inttypes.h>

/* ---- what limits the clocks ---- */

/* What a busy GPU runs into, which is no fault: nvmlClocksEventReasons in nvml.h. */
static const struct limit {
    uint64_t bit;
    char letter;
    const char *word, *whole; /* next to the GPU, and after the letter */
} limits[] = {
    {0x04, 'P', "limited: power", "power limits the clocks"},
    {0x10, 'S', "limited: sync boost", "sync boost limits the clocks"},
};

static bool is_slowed(const struct gp_device *device)
{
    for (enum gp_fault fault = 0; fault < GP_FAULT__COUNT; fault++)
        if (gp_fault_slows(fault) && gp_fault_has(fault, device))
            return true;
    return false;
}

static const struct limit *limit_of(const struct gp_device *device)
{
    const struct gp_value *v = &device->values[GP_REASONS_ACTIVE - GP_DEVICE__FIRST];
    if (v->status != GP_STATUS_OK || is_slowed(device))
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(limits); i++)
        if ((uint64_t)v->i & limits[i].bit)
            return &limits[i];
    return NULL;
}

const char *gp_gpu_limit(const struct gp_device *device)
{
    const struct limit *limit = limit_of(device);
    return limit ? limit->word : NULL;
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

/* By enum gp_fault; 0: the fault has none. */
static const char letters[GP_FAULT__COUNT] = {
    [GP_FAULT_LOST] = '!',   [GP_FAULT_SILENT] = '!',  [GP_FAULT_RECOVERY] = 'R',
    [GP_FAULT_ERRORS] = 'E', [GP_FAULT_BROKEN] = 'R',  [GP_FAULT_XID] = 'X',
    [GP_FAULT_HEAT] = 'T',   [GP_FAULT_SUPPLY] = 'P',  [GP_FAULT_SLOWED] = 'H',
    [GP_FAULT_REPAIR] = 'R', [GP_FAULT_ORPHANS] = 'O',
};

/* The faults, and after the last one what limits the clocks. */
enum { LIMIT = GP_FAULT__COUNT, FLAGS };

/* Appends the words of a flag; returns false if there is no such problem. */
static bool add_words(struct gp_strbuf *sb, int flag, const struct gp_flags_of *of)
{
    switch (flag) {
    case LIMIT:
        return add_limit(sb, of);
    case GP_FAULT_XID:
        return add_xid(sb, of);
    default:
        return gp_fault_add(sb, (enum gp_fault)flag, of->device);
    }
}

static char letter_of(int flag, const struct gp_device *device)
{
    const struct limit *limit = flag == LIMIT ? limit_of(device) : NULL;
    return limit ? limit->letter : flag == LIMIT ? '\0' : letters[flag];
}

/* An error that a program caused is less severe. */
static enum gp_ink ink_of(int flag, const struct gp_flags_of *of)
{
    return flag == LIMIT          ? GP_INK_DIM
           : flag == GP_FAULT_XID ? gp_xid_ink(xid_of(of))
                                  : gp_fault_ink((enum gp_fault)flag);
}

void gp_gpu_draw_flags(const struct gp_box *box, int x, int y, int w, const struct gp_flags_of *of)
{
    char last = '\0';
    for (int flag = 0; flag < FLAGS && w > 0; flag++) {
        GP_GPU_TEXT(text);
        const char letter = letter_of(flag, of->device);
        if (!letter || letter == last || !add_words(&text, flag, of))
            continue;
        gp_draw_fill(box, x++, y, 1, ink_of(flag, of), (uint32_t)letter);
        last = letter;
        w--;
    }
}

/* That of a GPU without values needs no letter: it has none next to it. */
void gp_gpu_add_flag_words(struct gp_strbuf *sb, const struct gp_flags_of *of)
{
    for (int flag = 0; flag < FLAGS; flag++) {
        GP_GPU_TEXT(text);
        if (!add_words(&text, flag, of))
            continue;
        gp_strbuf_adds(sb, sb->len ? "; " : "");
        if (flag > GP_FAULT_SILENT)
            gp_strbuf_addf(sb, "%c: ", letter_of(flag, of->device));
        gp_strbuf_adds(sb, text.buf);
    }
}
