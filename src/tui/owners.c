#include "tui/owners.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "proc/proc.h"
#include "tui/gpu_text.h"

#include <string.h>

enum { OWNERS_MAX = 16 }; /* further users of one GPU are not told apart */

#define LEAST_OF_NOBODY (double)(1 << 30) /* bytes; the driver itself holds some */

struct owner {
    const char *name;
    size_t len;
    double bytes; /* −1: unknown */
};

struct owners {
    struct owner list[OWNERS_MAX];
    size_t count;
};

static struct owner *find_owner(struct owners *owners, const char *name, size_t len)
{
    for (size_t i = 0; i < owners->count; i++)
        if (owners->list[i].len == len && memcmp(owners->list[i].name, name, len) == 0)
            return &owners->list[i];
    if (owners->count == OWNERS_MAX)
        return &owners->list[OWNERS_MAX - 1];
    owners->list[owners->count] = (struct owner){name, len, -1};
    return &owners->list[owners->count++];
}

static int by_memory(const void *a, const void *b)
{
    const struct owner *x = a;
    const struct owner *y = b;
    const size_t n = x->len < y->len ? x->len : y->len;
    const int names = memcmp(x->name, y->name, n);
    return x->bytes > y->bytes   ? -1
           : x->bytes < y->bytes ? 1
           : names               ? names
                                 : (int)(x->len > n) - (int)(y->len > n);
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

static const char *text_of(const struct gp_process *p, enum gp_metric m)
{
    const struct gp_value *v = gp_process_value(p, m);
    return gp_value_is_present(v) && v->s ? v->s : "?";
}

/* Whether its first argument is the program. */
static bool is_interpreter(const char *name, size_t len)
{
    static const char *const names[] = {"bash", "sh", "perl", "ruby", "node", "julia", "Rscript"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (len == strlen(names[i]) && memcmp(name, names[i], len) == 0)
            return true;
    return len >= 6 && memcmp(name, "python", 6) == 0;
}

/* "train.py" of "/usr/bin/python3 -u src/train.py --batch 8", "vllm" of "vllm serve". Returns its
 * length. */
static size_t program_of(const char *command, const char **ret)
{
    size_t len = gp_proc_program_name(command, ret);
    const char *word = *ret + len;
    if (!is_interpreter(*ret, len))
        return len;
    while (*word == ' ') {
        const char *start;
        word += strspn(word, " ");
        const size_t n = gp_proc_program_name(word, &start);
        if (strncmp(word, "-c", 2) == 0)
            break; /* there is no name */
        if (*word != '-' && n > 0) {
            *ret = start;
            return n;
        }
        word += strcspn(word, " ");
    }
    return len;
}

const char *gp_owners_one(const struct gp_snapshot *snapshot)
{
    const char *one = NULL;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const char *user = text_of(&snapshot->processes[i], GP_PROCESS_USER);
        if (one && one != user && strcmp(one, user) != 0)
            return NULL;
        one = user;
    }
    return one;
}

static void collect(struct owners *owners, const struct gp_snapshot *snapshot,
                    const struct gp_device *device, bool by_program)
{
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const char *name = text_of(p, by_program ? GP_PROCESS_COMMAND : GP_PROCESS_USER);
        const size_t len = by_program ? program_of(name, &name) : strlen(name);
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        struct owner *owner = find_owner(owners, name, len);
        if (gp_value_is_present(memory))
            owner->bytes =
                (owner->bytes < 0 ? 0 : owner->bytes) + gp_metric_number(GP_PROCESS_MEMORY, memory);
    }
    double rest;
    if (gp_device_number(device, GP_MEMORY_UNATTRIBUTED, &rest) && rest >= LEAST_OF_NOBODY) {
        struct owner *owner = find_owner(owners, "?", 1);
        owner->bytes = (owner->bytes < 0 ? 0 : owner->bytes) + rest;
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

static void add_owner(struct gp_strbuf *sb, const struct owner *owner, bool has_bytes)
{
    gp_strbuf_add(sb, owner->name, owner->len);
    if (owner->bytes <= 0 || !has_bytes)
        return;
    gp_strbuf_addc(sb, ' ');
    gp_gpu_add_gib(sb, owner->bytes);
}

/* An owner that is wider than w columns: "torch.distri… 159G", or the whole name where too little
 * of it would be left. */
static void add_cut(struct gp_strbuf *sb, const struct owner *owner, bool has_bytes, int w)
{
    enum { NAME_LEAST = 10 };
    GP_GPU_TEXT(bytes);
    gp_gpu_add_gib(&bytes, owner->bytes);
    const int name_w = w - (int)bytes.len - 1;
    if (!has_bytes || owner->bytes <= 0 || name_w < NAME_LEAST) {
        add_owner(sb, owner, false);
        return;
    }
    gp_utf8_add_safe(sb, owner->name, owner->len, (size_t)name_w);
    gp_strbuf_addc(sb, ' ');
    gp_strbuf_adds(sb, bytes.buf);
}

/* Who has reserved it and does not use it; NULL: nobody. */
static const char *reserver(const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    const char *names = gp_device_text(device, GP_RESERVATION_USER, "");
    const struct gp_process *p = &snapshot->processes[device->first_process];
    for (size_t i = 0; *names && i < device->process_count; i++)
        if (lists(names, text_of(&p[i], GP_PROCESS_USER)))
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

static void add_owners(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_device *device, bool by_program, bool has_bytes, int w)
{
    struct owners owners = {.count = 0};
    collect(&owners, snapshot, device, by_program);
    int used = 0;
    for (size_t i = 0; i < owners.count; i++) {
        GP_GPU_TEXT(text);
        const int more = i + 1 < owners.count ? 3 : 0; /* columns of " +2" */
        gp_strbuf_adds(&text, i > 0 ? " · " : "");
        add_owner(&text, &owners.list[i], has_bytes);
        int width = (int)gp_utf8_width(text.buf);
        if (i > 0 && used + width + more > w) {
            gp_strbuf_adds(sb, " +");
            gp_strbuf_add_int(sb, (long)(owners.count - i));
            return;
        }
        if (width + more > w)
            add_cut(sb, &owners.list[i], has_bytes, w - more);
        else
            gp_strbuf_adds(sb, text.buf);
        used += width;
    }
    const char *names = reserver(snapshot, device);
    if (names)
        add_reserver(sb, names, w);
}

void gp_add_owners(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                   const struct gp_device *device, bool by_program, int w)
{
    add_owners(sb, snapshot, device, by_program, true, w);
}

void gp_add_owner_names(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                        const struct gp_device *device, bool by_program, int w)
{
    add_owners(sb, snapshot, device, by_program, false, w);
}
