#include "tui/owners.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/gpu_text.h"

#include <string.h>

enum { OWNERS_MAX = 16 }; /* further users of one GPU are not told apart */

struct owner {
    const char *name;
    double bytes; /* −1: unknown */
};

struct owners {
    struct owner list[OWNERS_MAX];
    size_t count;
};

static struct owner *find_owner(struct owners *owners, const char *name)
{
    for (size_t i = 0; i < owners->count; i++)
        if (strcmp(owners->list[i].name, name) == 0)
            return &owners->list[i];
    if (owners->count == OWNERS_MAX)
        return &owners->list[OWNERS_MAX - 1];
    owners->list[owners->count] = (struct owner){name, -1};
    return &owners->list[owners->count++];
}

static int by_memory(const void *a, const void *b)
{
    const struct owner *x = a;
    const struct owner *y = b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes ? 1 : strcmp(x->name, y->name);
}

/* Insertion: qsort() of the C library may allocate, and there are few. */
static void sort(struct owners *owners)
{
    for (size_t i = 1; i < owners->count; i++)
        for (size_t j = i; j > 0 && by_memory(&owners->list[j], &owners->list[j - 1]) < 0; j--) {
            struct owner swapped = owners->list[j];
            owners->list[j] = owners->list[j - 1];
            owners->list[j - 1] = swapped;
        }
}

static void collect(struct owners *owners, const struct gp_snapshot *snapshot,
                    const struct gp_device *device)
{
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const struct gp_value *user = gp_process_value(p, GP_PROCESS_USER);
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        struct owner *owner = find_owner(owners, gp_value_is_present(user) ? user->s : "?");
        if (gp_value_is_present(memory))
            owner->bytes =
                (owner->bytes < 0 ? 0 : owner->bytes) + gp_metric_number(GP_PROCESS_MEMORY, memory);
    }
    sort(owners);
}

/* Whether this name is in a list with commas. */
static bool lists(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += n)
        if ((at == names || at[-1] == ',' || at[-1] == ' ') && (!at[n] || at[n] == ','))
            return true;
    return false;
}

static void add_owner(struct gp_strbuf *sb, const struct owner *owner)
{
    gp_strbuf_adds(sb, owner->name);
    if (owner->bytes <= 0)
        return;
    gp_strbuf_addc(sb, ' ');
    gp_gpu_add_gib(sb, owner->bytes);
}

/* Who has reserved it and is not among the owners; NULL: nobody. */
static const char *reserver(const struct gp_device *device, const struct owners *owners)
{
    const char *names = gp_device_text(device, GP_RESERVATION_USER, "");
    for (size_t i = 0; i < owners->count; i++)
        if (lists(names, owners->list[i].name))
            return NULL;
    return *names ? names : NULL;
}

static void add_reserver(struct gp_strbuf *sb, const char *names, int w)
{
    static const char words[] = "reserved by ";
    int width = (int)gp_utf8_width(names);
    if (sb->len == 0 && width + (int)sizeof(words) - 1 <= w) {
        gp_strbuf_adds(sb, words);
        gp_strbuf_adds(sb, names);
    } else if (sb->len == 0 || (int)gp_utf8_width(sb->buf) + width + 3 <= w) {
        gp_strbuf_adds(sb, sb->len ? " (" : "(");
        gp_strbuf_adds(sb, names);
        gp_strbuf_addc(sb, ')');
    }
}

void gp_add_owners(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                   const struct gp_device *device, int w)
{
    struct owners owners = {.count = 0};
    collect(&owners, snapshot, device);
    int used = 0;
    for (size_t i = 0; i < owners.count; i++) {
        GP_GPU_TEXT(text);
        const int more = i + 1 < owners.count ? 3 : 0; /* columns of " +2" */
        gp_strbuf_adds(&text, i > 0 ? " · " : "");
        add_owner(&text, &owners.list[i]);
        int width = (int)gp_utf8_width(text.buf);
        if (i > 0 && used + width + more > w) {
            gp_strbuf_adds(sb, " +");
            gp_strbuf_add_int(sb, (long)(owners.count - i));
            return;
        }
        gp_strbuf_adds(sb, width + more > w ? owners.list[i].name : text.buf);
        used += width;
    }
    const char *names = reserver(device, &owners);
    if (names)
        add_reserver(sb, names, w);
}
