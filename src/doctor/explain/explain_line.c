#include "doctor/explain/explain_line.h"

#include "base/strbuf.h"
#include "doctor/entries.h"
#include "doctor/explain/explain_internal.h"
#include "doctor/readers/kmsg.h"
#include "doctor/tables.h"
#include "jobs/failure.h"

#include <ctype.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 2048, LINE_SIZE = 4096 };

/* ---- lines of the kernel ---- */

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

static const struct gp_nvlink_error *find_nvlink(unsigned xid, const struct gp_kmsg_nvlink *n)
{
    for (size_t i = 0; i < gp_nvlink_error_count; i++) {
        const struct gp_nvlink_error *row = &gp_nvlink_errors[i];
        bool is_fatal = strcmp(row->fatal, "no") != 0;
        /* If the message contradicts the table, the driver is right. */
        if (row->xid == xid && row->reason == n->reason && row->status == n->status &&
            is_fatal == n->is_fatal && has_word(row->units, n->unit))
            return row;
    }
    return NULL;
}

static void decode_nvlink(struct gp_arena *arena, const struct gp_kmsg *k,
                          struct gp_explanation *ret)
{
    struct gp_kmsg_nvlink n;
    if (!gp_kmsg_nvlink(k->message, &n))
        return;
    const struct gp_nvlink_error *row = n.has_status ? find_nvlink(k->code, &n) : NULL;
    ret->words = gp_explain_text(arena, "%s NVLink error in unit %s of link %u",
                                 n.is_fatal ? "a fatal" : "an", n.unit, n.link);
    ret->note = n.is_fatal ? "" : "The driver reports it as non-fatal: by itself it stops nothing.";
    ret->advice = n.is_fatal ? "reset the GPU" : "no action is needed";
    if (!row)
        return;
    if (row->fault[0])
        ret->fault = row->fault;
    if (row->effect[0])
        ret->note = gp_explain_text(arena, "Consequences: %s.", row->effect);
    ret->advice =
        gp_explain_text(arena, "%s%s%s", row->action, row->look[0] ? "; " : "", row->look);
}

static void decode_recovery(struct gp_arena *arena, const struct gp_kmsg *k,
                            struct gp_explanation *ret)
{
    unsigned was, now;
    const struct gp_recovery_action *row =
        gp_kmsg_recovery(k->message, &was, &now) ? gp_recovery_action_find(now) : NULL;
    if (!row)
        return;
    ret->words = gp_explain_text(arena, "the driver now reports: %s", row->words);
    ret->advice = row->advice;
}

static const char *device_word(enum gp_kmsg_kind kind)
{
    switch (kind) {
    case GP_KMSG_SXID:
        return "NVSwitch";
    case GP_KMSG_AER_FATAL:
    case GP_KMSG_AER_NONFATAL:
    case GP_KMSG_AER_CORRECTED:
    case GP_KMSG_PCIE_LIMITED:
        return "device";
    default:
        return "GPU";
    }
}

static void describe(struct gp_arena *arena, const struct gp_kmsg *k, struct gp_explanation *ret)
{
    char instance[64] = "", who[128] = "";
    if (k->compute_instance != GP_KMSG_NO_INSTANCE)
        (void)snprintf(instance, sizeof(instance), ", MIG instance %d/%d", k->gpu_instance,
                       k->compute_instance);
    else if (k->gpu_instance != GP_KMSG_NO_INSTANCE)
        (void)snprintf(instance, sizeof(instance), ", MIG instance %d", k->gpu_instance);
    if (k->pid > 0)
        (void)snprintf(who, sizeof(who), ", process %lld%s%s%s", (long long)k->pid,
                       k->process[0] ? " (" : "", k->process, k->process[0] ? ")" : "");
    if (k->bus_id[0])
        ret->details =
            gp_explain_text(arena, "%s %s%s%s", device_word(k->kind), k->bus_id, instance, who);
    else if (who[0])
        ret->details = gp_explain_text(arena, "%s", who + 2);
}

/* An Xid or SXid that is not in the table: at least its kind is known. */
static void explain_new(struct gp_arena *arena, const struct gp_kmsg *k, struct gp_explanation *ret)
{
    bool is_switch = k->kind == GP_KMSG_SXID;
    *ret = gp_explain_nothing;
    ret->id = gp_explain_text(arena, "%s.%u", is_switch ? "sxid" : "xid", k->code);
    ret->title = gp_explain_text(arena, "%s %u", is_switch ? "SXid" : "Xid", k->code);
    ret->words = is_switch ? "an NVSwitch error with an unknown number"
                           : "a GPU error with an unknown number";
    ret->note = k->is_fatal ? "The driver reports it as fatal." : "";
    ret->fault = "unclear";
    ret->advice = "look it up in NVIDIA's list: docs.nvidia.com/deploy/xid-errors";
}

bool gp_explain_kmsg(struct gp_arena *arena, const struct gp_kmsg *k, struct gp_explanation *ret)
{
    enum { FIRST_NVLINK = 144, LAST_NVLINK = 150, RECOVERY = 154 };
    if (k->kind == GP_KMSG_XID || k->kind == GP_KMSG_SXID) {
        if (k->kind == GP_KMSG_XID ? !gp_explain_xid(arena, k->code, ret)
                                   : !gp_explain_sxid(arena, k->code, ret))
            explain_new(arena, k, ret);
        if (k->kind == GP_KMSG_XID && k->code >= FIRST_NVLINK && k->code <= LAST_NVLINK)
            decode_nvlink(arena, k, ret);
        else if (k->kind == GP_KMSG_XID && k->code == RECOVERY)
            decode_recovery(arena, k, ret);
        if (k->cause)
            ret->note = gp_explain_text(arena, "It was caused by Xid %u.", k->cause);
    } else if (!gp_explain_entry(gp_entry_find(gp_kmsg_word(k->kind)), ret)) {
        return false;
    }
    describe(arena, k, ret);
    return true;
}

/* ---- other lines ---- */

static regex_t cuda_numbers; /* compiled once, as a log has many lines that mention CUDA */
static bool has_cuda_numbers;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* In a child: another thread of the parent may have been in the middle of using the expression,
 * which has a lock of its own. What it has allocated is left alone. */
static void forget_cuda_numbers(void)
{
    static const pthread_once_t fresh = PTHREAD_ONCE_INIT;
    once = fresh;
}

static void compile_cuda_numbers(void)
{
    static bool is_watching;
    static const char expression[] =
        "(CUDA|Cuda|cuda)( driver| API)? (error|failure|Error|Failure|ERROR)( code)?:? ?"
        "[=#]?\\(?([0-9]+)|"
        "cuInit: UNKNOWN ERROR \\(([0-9]+)\\)|"
        "(cuda|cu)[A-Z][A-Za-z_0-9]*(\\(\\w*\\))? "
        "(returned|failed|failed:|failed with|error)( error)?( code)?:? ?#?([0-9]+)|"
        "CUDA_CHECK.*error=([0-9]+)|"
        "(CUDA initialization failure with error:? )([0-9]+)";
    has_cuda_numbers = regcomp(&cuda_numbers, expression, REG_EXTENDED) == 0;
    is_watching = is_watching || pthread_atfork(NULL, NULL, forget_cuda_numbers) == 0;
}

/* "CUDA error 700", "Cuda failure 700", "cuInit: UNKNOWN ERROR (303)", "Cuda driver error 804",
 * "cudaGetDeviceCount returned 100"; 0: none. The numbers in "cuda runtime error (59)" are from
 * before CUDA 10.1; there the text counts. */
static unsigned cuda_number(const char *line)
{
    regmatch_t groups[16];
    unsigned number = 0;
    if (!strcasestr(line, "cuda") && !strstr(line, "cuInit"))
        return 0;
    (void)pthread_once(&once, compile_cuda_numbers);
    if (has_cuda_numbers && regexec(&cuda_numbers, line, GP_ARRAY_LEN(groups), groups, 0) == 0) {
        static const int numbers[] = {5, 6, 12, 13, 15};
        const regmatch_t *at = &groups[5];
        for (size_t i = 0; i < GP_ARRAY_LEN(numbers) && at->rm_so < 0; i++)
            at = &groups[numbers[i]];
        if (at->rm_eo - at->rm_so <= 4)
            number = (unsigned)strtoul(line + at->rm_so, NULL, 10);
    }
    return number;
}

/* The runtime had numbers of its own before CUDA 10.1; these of them mean nothing else now. */
static unsigned number_now(unsigned number)
{
    static const struct {
        unsigned before, now;
    } numbers[] = {{30, 999}, {38, 100}, {48, 209}, {59, 710}, {73, 715}, {74, 716}, {77, 700}};
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        if (numbers[i].before == number)
            return numbers[i].now;
    return number;
}

static const struct gp_error_entry *numbered(struct gp_arena *arena, unsigned number)
{
    return number ? gp_entry_find(gp_explain_text(arena, "cuda.%u", number_now(number))) : NULL;
}

/* Messages about memory, from jobs/failure.def. */
static bool explain_failure(struct gp_arena *arena, struct gp_failure *f, const char *line,
                            struct gp_explanation *ret)
{
    gp_failure_read_details(f, line);
    const struct gp_causes causes = gp_causes_of(f);
    struct gp_strbuf why = GP_STRBUF_INIT(TEXT_SIZE), next = GP_STRBUF_INIT(TEXT_SIZE);
    for (size_t i = 0; i < causes.count; i++) {
        size_t before = next.len;
        gp_strbuf_adds(&why, i > 0 ? "; " : "");
        gp_cause_add_why(&why, causes.items[i], f);
        gp_strbuf_adds(&next, next.len > 0 ? "; " : "");
        size_t length = next.len;
        gp_cause_add_next(&next, causes.items[i], f);
        if (next.len == length)
            gp_strbuf_truncate(&next, before);
    }
    *ret = gp_explain_nothing;
    ret->id = gp_explain_text(arena, "failure.%s", f->id);
    ret->title = f->framework;
    ret->words = f->class == GP_FAILURE_SOFT ? "not a failure by itself: it continues with less"
                                             : gp_explain_text(arena, "%s", why.buf);
    ret->advice = gp_explain_text(arena, "%s", next.buf);
    ret->source = "src/jobs/failure.def";
    gp_strbuf_fini(&why);
    gp_strbuf_fini(&next);
    return true;
}

/* "it died with Xid 48": of the words that people write. MySQL's are "Xid = 48", and others' "xid".
 */
static bool explain_named_xid(struct gp_arena *arena, const char *line, struct gp_explanation *ret)
{
    static const char word[] = "Xid";
    for (const char *at = line; (at = strstr(at, word)); at += strlen(word)) {
        const char *digits = at + strlen(word);
        digits += strspn(digits, " :#");
        size_t n = strspn(digits, "0123456789");
        bool is_word = at == line || !isalnum((unsigned char)at[-1]);
        if (is_word && n > 0 && n < 4 &&
            gp_explain_xid(arena, (unsigned)strtoul(digits, NULL, 10), ret))
            return true;
    }
    return false;
}

/* ---- which ---- */

static bool is_code(const struct gp_error_entry *entry)
{
    return strcmp(entry->family, "codes") == 0;
}

/* Whether an entry says more about a line than the message about memory in it, whose numbers are
 * read: not a code, nor what is said of a line only if nothing else is known of it. */
static bool is_better(const struct gp_error_entry *entry, unsigned weight,
                      const struct gp_failure *f)
{
    return entry && !is_code(entry) && !gp_entry_is_generic(weight) &&
           (f->class == GP_FAILURE_MASKED || f->needle);
}

bool gp_explain_line(struct gp_arena *arena, const char *line, struct gp_explanation *ret)
{
    char clean[LINE_SIZE];
    struct gp_kmsg k;
    struct gp_failure f;
    unsigned weight;
    (void)snprintf(clean, sizeof(clean), "%s", line);
    gp_failure_clean_line(clean);
    if (gp_kmsg_parse_copied(clean, &k) && gp_kmsg_is_notable(k.kind) &&
        gp_explain_kmsg(arena, &k, ret))
        return true;
    if (gp_explain_shell(arena, clean, ret))
        return true;
    const struct gp_error_entry *entry = gp_entry_of_line(clean, &weight);
    if (gp_failure_find(clean, &f) && !is_better(entry, weight, &f))
        return explain_failure(arena, &f, clean, ret);
    if (!entry || is_code(entry) || gp_entry_is_generic(weight)) {
        const struct gp_error_entry *code = numbered(arena, cuda_number(clean));
        entry = code ? code : entry;
    }
    return gp_explain_entry(entry, ret) || explain_named_xid(arena, clean, ret);
}
