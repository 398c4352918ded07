#include "jobs/account.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/json.h"
#include "proc/files.h"
#include "proc/holders.h"
#include "proc/proc.h"
#include "sample/errand.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gp_accounts_want(struct gp_metric_set *metrics)
{
    static const enum gp_metric wanted[] = {
        GP_NAME,         GP_MINOR_NUMBER,     GP_PCI_BUS_ID,
        GP_MEMORY_TOTAL, GP_MEMORY_USED,      GP_MEMORY_RESERVED,
        GP_MEMORY_FREE,  GP_MEMORY_PROCESSES, GP_MEMORY_UNATTRIBUTED,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(metrics, wanted[i]);
}

/* ---- the processes that have it open ---- */

static enum gp_suspect_kind kind_of(const struct gp_holder *holder)
{
    static const char *const services[] = {
        "nvidia-persistenced",
        "nvidia-powerd",
        "nv-fabricmanager",
        "nvidia-cuda-mps-control",
        "nv-hostengine",
        "dcgm-exporter",
        "nvidia_gpu_exporter",
        "nvidia-smi",
        "nvtop",
        "nvitop",
        "gpustat",
        "btop",
        "gpulse",
        "gpulse-top",
    };
    const struct gp_proc_texts *texts = holder->info->texts;
    if (texts->name && gp_proc_is_display_server(texts->name))
        return GP_SUSPECT_DISPLAY;
    if (texts->name && strcmp(texts->name, "nvidia-cuda-mps-server") == 0)
        return GP_SUSPECT_MPS;
    for (size_t i = 0; texts->name && i < GP_ARRAY_LEN(services); i++)
        if (strcmp(services[i], texts->name) == 0)
            return GP_SUSPECT_SERVICE;
    bool is_unit = texts->container && strncmp(texts->container, "unit:", 5) == 0;
    return holder->is_orphan && !is_unit ? GP_SUSPECT_LEFTOVER : GP_SUSPECT_OTHER;
}

static int compare_suspects(const void *a, const void *b)
{
    const struct gp_suspect *x = a;
    const struct gp_suspect *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->holder->pid > y->holder->pid) - (x->holder->pid < y->holder->pid);
}

/* Always false for a MIG instance. If the driver does not report the number of the device file, it
 * is nearly always that of the GPU. */
static bool has_open(const struct gp_device *device, const struct gp_holder *holder)
{
    double minor;
    if (!gp_device_number(device, GP_MINOR_NUMBER, &minor))
        minor = device->index;
    return !device->is_mig && gp_holder_has(holder, (unsigned)minor);
}

int gp_account_add_holders(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                           const struct gp_holders *holders)
{
    struct gp_proc_row *rows =
        realloc(procs->rows, (procs->count + holders->count + 1) * sizeof(*rows));
    if (!rows)
        return GP_ENOMEM;
    procs->rows = rows;
    procs->room = procs->count + holders->count + 1;
    for (size_t i = 0; i < holders->count; i++) {
        const struct gp_holder *holder = &holders->list[i];
        struct gp_proc_row row = gp_proc_row_of(holder->info, snapshot->wall_ns);
        for (size_t d = 0; d < snapshot->device_count; d++)
            if (has_open(&snapshot->devices[d], holder))
                gp_proc_row_add_gpu(&row, &snapshot->devices[d]);
        if (row.gpus[0] && !gp_snapshot_lists(snapshot, holder->info->pid))
            procs->rows[procs->count++] = row;
    }
    return 0;
}

static int add_suspects(struct gp_account *a, const struct gp_snapshot *snapshot,
                        const struct gp_holders *holders)
{
    a->suspects = calloc(holders->count + 1, sizeof(*a->suspects));
    if (!a->suspects)
        return GP_ENOMEM;
    for (size_t i = 0; i < holders->count; i++) {
        const struct gp_holder *holder = &holders->list[i];
        if (has_open(a->device, holder) && !gp_snapshot_lists(snapshot, holder->pid))
            a->suspects[a->suspect_count++] = (struct gp_suspect){holder, kind_of(holder)};
    }
    qsort(a->suspects, a->suspect_count, sizeof(*a->suspects), compare_suspects);
    return 0;
}

/* ---- the verdict ---- */

static bool has_suspect(const struct gp_account *a, enum gp_suspect_kind kind)
{
    for (size_t i = 0; i < a->suspect_count; i++)
        if (a->suspects[i].kind == kind)
            return true;
    return false;
}

static enum gp_account_verdict judge(const struct gp_account *a, bool is_inside)
{
    if (a->device->status != GP_STATUS_OK)
        return GP_ACCOUNT_NO_ANSWER;
    if (!a->rest.known)
        return GP_ACCOUNT_UNKNOWN;
    if (a->rest.n < GP_ACCOUNT_SLACK)
        return GP_ACCOUNT_ACCOUNTED;
    if (has_suspect(a, GP_SUSPECT_LEFTOVER))
        return GP_ACCOUNT_LEFTOVERS;
    if (has_suspect(a, GP_SUSPECT_OTHER))
        return GP_ACCOUNT_HOLDERS;
    if (has_suspect(a, GP_SUSPECT_MPS))
        return GP_ACCOUNT_MPS;
    if (is_inside)
        return GP_ACCOUNT_NAMESPACE;
    if (a->hidden > 0)
        return GP_ACCOUNT_HIDDEN;
    if (a->processes > 0)
        return GP_ACCOUNT_UNCOUNTED;
    return has_suspect(a, GP_SUSPECT_DISPLAY) ? GP_ACCOUNT_DISPLAY : GP_ACCOUNT_DRIVER;
}

static struct gp_amount amount(const struct gp_device *device, enum gp_metric m)
{
    struct gp_amount a = {.known = false};
    a.known = gp_device_number_now(device, m, &a.n);
    return a;
}

/* The driver lists a suspended process no longer: it holds nothing here. */
static void set_aside_suspended(struct gp_account *a, const struct gp_snapshot *snapshot,
                                const struct gp_device *device)
{
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_value *v =
            gp_process_value(&snapshot->processes[device->first_process + i], GP_PROCESS_SUSPENDED);
        if (!gp_value_is_present(v))
            continue;
        a->suspended_bytes += (double)v->i;
        a->suspended_count++;
        a->processes--;
    }
}

static int make_account(struct gp_account *ret, const struct gp_snapshot *snapshot,
                        const struct gp_device *device, const struct gp_holders *holders)
{
    *ret = (struct gp_account){
        .device = device,
        .total = amount(device, GP_MEMORY_TOTAL),
        .used = amount(device, GP_MEMORY_USED),
        .reserved = amount(device, GP_MEMORY_RESERVED),
        .free = amount(device, GP_MEMORY_FREE),
        .listed = amount(device, GP_MEMORY_PROCESSES),
        .rest = amount(device, GP_MEMORY_UNATTRIBUTED),
        .processes = device->process_count,
        .regions = &holders->regions,
        .hidden = holders->hidden,
    };
    /* the MIG instances follow their GPU */
    for (const struct gp_device *d = device + 1;
         d < snapshot->devices + snapshot->device_count && d->is_mig; d++)
        ret->processes += d->process_count;
    set_aside_suspended(ret, snapshot, device);
    if (add_suspects(ret, snapshot, holders) < 0)
        return GP_ENOMEM;
    ret->verdict = judge(ret, holders->is_inside);
    return 0;
}

int gp_accounts_make(const struct gp_snapshot *snapshot, const struct gp_holders *holders,
                     struct gp_account **ret, size_t *ret_count)
{
    struct gp_account *accounts = calloc(snapshot->device_count + 1, sizeof(*accounts));
    size_t count = 0;
    int r = accounts ? 0 : GP_ENOMEM;
    for (size_t i = 0; r == 0 && i < snapshot->device_count; i++)
        if (!snapshot->devices[i].is_mig)
            r = make_account(&accounts[count++], snapshot, &snapshot->devices[i], holders);
    if (r < 0) {
        gp_accounts_free(accounts, count);
        return r;
    }
    *ret = accounts;
    *ret_count = count;
    return 0;
}

void gp_accounts_free(struct gp_account *accounts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(accounts[i].suspects);
    free(accounts);
}

/* ---- the search ---- */

struct search {
    const char *root;
    struct gp_holders holders;
    int result;
};

static void search(void *ctx, size_t i)
{
    (void)i;
    struct search *s = ctx;
    s->result = gp_holders_read(s->root, &s->holders);
}

int gp_account_find_holders(const char *root, uint64_t timeout_ns, struct gp_holders *ret,
                            struct gp_err *err)
{
    bool done = false;
    static struct search s; /* a thread that is abandoned on timeout uses it */
    s = (struct search){.root = root};
    const struct gp_errands errands = {search, &s, 1, .timeout_ns = timeout_ns};
    if (!gp_errands_run(&errands, &done))
        return gp_err_set(
            err, GP_ETIMEOUT,
            "the search for processes that have the GPUs open is blocked by a hung process");
    int r = done ? s.result : GP_ENOMEM;
    if (r == 0)
        *ret = s.holders;
    else
        (void)gp_err_set(err, r, r == GP_EIO ? "/proc cannot be read" : "out of memory");
    return r;
}

/* ---- text ---- */

static const struct {
    const char *word;
    const char *text;    /* %u: index of the GPU */
    const char *reclaim; /* likewise, where gpulse reclaim helps; NULL: it does not */
} verdicts[GP_ACCOUNT__COUNT] = {
    [GP_ACCOUNT_NO_ANSWER] = {"no-answer", "The GPU does not respond, so nothing is known."},
    [GP_ACCOUNT_UNKNOWN] = {"unknown",
                            "The driver does not report the memory of its processes (for example "
                            "under WSL, in a virtual machine, or for MIG instances without "
                            "permission), so the missing part is unknown."},
    [GP_ACCOUNT_ACCOUNTED] = {"accounted", "All memory is accounted for."},
    [GP_ACCOUNT_LEFTOVERS] = {"leftovers", "Left over from a job that has exited.",
                              " To free it: gpulse reclaim -i %u"},
    [GP_ACCOUNT_HOLDERS] = {"holders", "Probably held by the process that has the GPU open and is "
                                       "not listed. It is freed when that process exits."},
    [GP_ACCOUNT_MPS] = {"mps", "Held by the MPS server for its clients. It is freed when they "
                               "exit, or when MPS is stopped: echo quit | nvidia-cuda-mps-control"},
    [GP_ACCOUNT_NAMESPACE] = {"namespace",
                              "gpulse runs in a container and cannot see processes outside it. Run "
                              "this on the host: gpulse ps --explain -i %u"},
    [GP_ACCOUNT_HIDDEN] =
        {"hidden", "Possibly held by a process that this user has no permission to inspect. "
                   "Root sees more: sudo gpulse ps --explain -i %u"},
    [GP_ACCOUNT_UNCOUNTED] =
        {"uncounted", "No unlisted process has the GPU open: the memory belongs to the listed "
                      "processes. The driver does not count their managed memory and contexts."},
    [GP_ACCOUNT_DISPLAY] = {"display", "Used by the display."},
    [GP_ACCOUNT_DRIVER] =
        {"driver", "No process has the GPU open, but the driver has not freed the memory. Only a "
                   "GPU reset frees it, once the GPU is idle: nvidia-smi --gpu-reset -i %u"},
};

static const struct {
    const char *word, *text;
} kinds[] = {
    [GP_SUSPECT_LEFTOVER] = {"leftover", "; its parent has exited"},
    [GP_SUSPECT_OTHER] = {"other", ""},
    [GP_SUSPECT_MPS] = {"mps", "; the MPS server"},
    [GP_SUSPECT_DISPLAY] = {"display", ", uses the display"},
    [GP_SUSPECT_SERVICE] = {"service", "; only monitors the GPU or keeps the driver loaded"},
};

const char *gp_account_verdict_word(enum gp_account_verdict verdict)
{
    return verdicts[verdict].word;
}

const char *gp_suspect_word(enum gp_suspect_kind kind)
{
    return kinds[kind].word;
}

static void add_verdict(struct gp_strbuf *sb, const struct gp_account *account, bool reclaims)
{
    static const char of_root[] = "Possibly held by a process that cannot be inspected, not even "
                                  "by root here: root lacks the capability CAP_SYS_PTRACE.";
    static const char of_little[] = "So little needs no explanation: the driver uses it itself.";
    const bool is_little = account->verdict == GP_ACCOUNT_ACCOUNTED && account->rest.n >= 0x1p20;
    if (account->verdict == GP_ACCOUNT_HIDDEN && geteuid() == 0)
        gp_strbuf_adds(sb, of_root);
    else if (is_little)
        gp_strbuf_adds(sb, of_little);
    else
        gp_strbuf_addf(sb, verdicts[account->verdict].text, account->device->index);
    if (!reclaims && verdicts[account->verdict].reclaim)
        gp_strbuf_addf(sb, verdicts[account->verdict].reclaim, account->device->index);
}

void gp_account_add_verdict(struct gp_strbuf *sb, const struct gp_account *account)
{
    add_verdict(sb, account, false);
}

/* What remains of a sum, if it is what was measured but for rounding. */
static void round_rest(struct gp_amount *rest, double sum_bytes)
{
    const double slack_bytes = 3 * 0x1p20;
    rest->n = floor(rest->n / 0x1p20) * 0x1p20;
    if (sum_bytes >= 0 && fabs(sum_bytes - rest->n) < slack_bytes)
        rest->n = sum_bytes;
}

struct gp_account gp_account_in_mib(const struct gp_account *account)
{
    struct gp_account a = *account;
    struct gp_amount *up[] = {&a.total, &a.used, &a.reserved, &a.listed};
    for (size_t i = 0; i < GP_ARRAY_LEN(up); i++)
        up[i]->n = ceil(up[i]->n / 0x1p20) * 0x1p20;
    if (a.total.known && a.used.known)
        round_rest(&a.free, a.total.n - a.used.n - (a.reserved.known ? a.reserved.n : 0));
    if (a.used.known && a.listed.known)
        round_rest(&a.rest, a.used.n - a.listed.n);
    return a;
}

static void add_mib(struct gp_strbuf *sb, struct gp_amount a, const char *what)
{
    if (a.known)
        gp_strbuf_addf(sb, "%.0f MiB %s", a.n / 0x1p20, what);
    else
        gp_strbuf_addf(sb, "an unknown amount %s", what);
}

static void add_suspect(struct gp_strbuf *sb, const struct gp_suspect *s)
{
    const struct gp_proc_info *info = s->holder->info;
    gp_strbuf_addf(sb, "    %u %s %s: has the GPU %s%s%s\n", info->pid,
                   info->texts->user ? info->texts->user : "?",
                   info->texts->command ? info->texts->command : "?",
                   s->holder->is_mapped ? "mapped" : "open", kinds[s->kind].text,
                   info->state == 'Z' ? "; zombie: it has exited, but its parent has not reaped it"
                                      : "");
}

/* Whether this memory region belongs to the GPU: "nvidia/0000:53:00.0/vidmem" belongs to
 * 00000000:53:00.0. */
static bool is_region_of(const struct gp_cgroup_region *region, const struct gp_device *device)
{
    const char *bus = gp_device_text(device, GP_PCI_BUS_ID, "");
    return strlen(bus) > 4 && strcasestr(region->region, bus + 4) != NULL;
}

static void add_region(struct gp_strbuf *sb, const struct gp_cgroup_region *region)
{
    gp_strbuf_adds(sb, "    group ");
    gp_utf8_add_safe(sb, region->group, strlen(region->group), sizeof(region->group));
    gp_strbuf_addf(sb, ": %.0f MiB", (double)region->current / 0x1p20);
    if (region->max != UINT64_MAX)
        gp_strbuf_addf(sb, " of at most %.0f MiB", (double)region->max / 0x1p20);
    gp_strbuf_addc(sb, '\n');
}

static void add_sums(struct gp_strbuf *sb, const struct gp_account *account)
{
    const struct gp_account a = gp_account_in_mib(account);
    gp_strbuf_adds(sb, "  ");
    add_mib(sb, a.total, "= ");
    add_mib(sb, a.used, "used + ");
    add_mib(sb, a.reserved, "reserved by the driver + ");
    add_mib(sb, a.free, "free\n  ");
    add_mib(sb, a.listed, "held by ");
    gp_strbuf_addf(sb, "%zu listed process%s, ", a.processes, a.processes == 1 ? "" : "es");
    add_mib(sb, a.rest, "unattributed\n");
    if (a.suspended_count > 0)
        gp_strbuf_addf(sb, "  %.0f MiB of %zu suspended process%s in host memory\n",
                       a.suspended_bytes / 0x1p20, a.suspended_count,
                       a.suspended_count == 1 ? "" : "es");
}

void gp_account_add(struct gp_strbuf *sb, const struct gp_account *account, bool reclaims)
{
    gp_strbuf_addf(sb, "GPU %u: %s\n", account->device->index,
                   gp_device_text(account->device, GP_NAME, "?"));
    if (account->verdict != GP_ACCOUNT_NO_ANSWER)
        add_sums(sb, account);
    for (size_t i = 0; i < account->regions->count; i++)
        if (is_region_of(&account->regions->items[i], account->device))
            add_region(sb, &account->regions->items[i]);
    for (size_t i = 0; i < account->suspect_count; i++)
        add_suspect(sb, &account->suspects[i]);
    if (account->hidden > 0 && account->verdict != GP_ACCOUNT_ACCOUNTED)
        gp_strbuf_addf(sb, "    %zu process%s cannot be inspected\n", account->hidden,
                       account->hidden == 1 ? "" : "es");
    gp_strbuf_adds(sb, "  ");
    add_verdict(sb, account, reclaims);
    gp_strbuf_addc(sb, '\n');
}

/* ---- machine-readable output ---- */

json_t *gp_account_number(struct gp_amount a)
{
    return a.known ? json_integer((json_int_t)a.n) : json_null();
}

static json_t *suspect_object(const struct gp_suspect *s)
{
    const struct gp_proc_info *info = s->holder->info;
    return json_pack("{s:I, s:s?, s:s?, s:s, s:b}", "pid", (json_int_t)info->pid, "user",
                     info->texts->user, "command", info->texts->command, "kind",
                     gp_suspect_word(s->kind), "mapped", (int)s->holder->is_mapped);
}

/* The kernel's memory counts per cgroup; names that are not UTF-8 are left out. */
static json_t *groups_array(const struct gp_account *a)
{
    json_t *groups = json_array();
    for (size_t i = 0; i < a->regions->count; i++) {
        const struct gp_cgroup_region *region = &a->regions->items[i];
        if (is_region_of(region, a->device))
            (void)json_array_append_new(groups,
                                        json_pack("{s:s, s:I, s:o}", "group", region->group,
                                                  "memory", (json_int_t)region->current, "limit",
                                                  region->max == UINT64_MAX
                                                      ? json_null()
                                                      : json_integer((json_int_t)region->max)));
    }
    return groups;
}

static json_t *account_object(const struct gp_account *a)
{
    struct gp_strbuf words = GP_STRBUF_INIT(4096);
    json_t *suspects = json_array();
    for (size_t i = 0; i < a->suspect_count; i++)
        (void)json_array_append_new(suspects, suspect_object(&a->suspects[i]));
    gp_account_add_verdict(&words, a);
    json_t *object = json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:s, s:s, s:o, s:I}", "gpu",
        (int)a->device->index, "total", gp_account_number(a->total), "used",
        gp_account_number(a->used), "reserved", gp_account_number(a->reserved), "free",
        gp_account_number(a->free), "processes", gp_account_number(a->listed), "unattributed",
        gp_account_number(a->rest), "suspended", (json_int_t)a->suspended_bytes, "groups",
        groups_array(a), "verdict", gp_account_verdict_word(a->verdict), "text", words.buf,
        "suspects", suspects, "hidden", (json_int_t)a->hidden);
    gp_strbuf_fini(&words);
    return object;
}

void gp_accounts_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_account *accounts, size_t count)
{
    json_t *document = gp_json_document(snapshot, "gpulse.memory/1");
    json_t *gpus = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(gpus, account_object(&accounts[i]));
    (void)json_object_set_new(document, "gpus", gpus);
    gp_json_set_incomplete(document, snapshot);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

int gp_accounts_explain(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                        const struct gp_holders *holders, bool json)
{
    struct gp_account *accounts;
    size_t count;
    int r = gp_accounts_make(snapshot, holders, &accounts, &count);
    if (r < 0)
        return r;
    if (json)
        gp_accounts_json(sb, snapshot, accounts, count);
    for (size_t i = 0; !json && i < count; i++)
        gp_account_add(sb, &accounts[i], false);
    gp_accounts_free(accounts, count);
    return 0;
}
