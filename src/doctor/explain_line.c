#include "doctor/explain_line.h"

#include "base/strbuf.h"
#include "doctor/explain_internal.h"
#include "doctor/kmsg.h"
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
    } else if (!gp_explain_message(gp_message_find(gp_kmsg_word(k->kind)), ret)) {
        return false;
    }
    describe(arena, k, ret);
    return true;
}

/* ---- other lines ---- */

static const struct gp_message *find_message(const char *line)
{
    const struct gp_message *best = NULL;
    size_t best_length = 0;
    for (size_t i = 0; i < gp_message_count; i++) {
        const struct gp_message *row = &gp_messages[i];
        size_t length = strlen(row->needle);
        regex_t regex;
        if (length <= best_length || !strstr(line, row->needle))
            continue;
        /* Compiled for the few lines that contain the needle. */
        if (row->expression[0]) {
            if (regcomp(&regex, row->expression, REG_EXTENDED | REG_NOSUB) != 0)
                continue;
            int r = regexec(&regex, line, 0, NULL, 0);
            regfree(&regex);
            if (r != 0)
                continue;
        }
        best = row;
        best_length = length;
    }
    return best;
}

/* A whole word of letters, digits and _. */
static bool names(const char *line, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = line; n > 0 && (p = strstr(p, name)); p += n)
        if ((p == line || (!isalnum((unsigned char)p[-1]) && p[-1] != '_')) &&
            !isalnum((unsigned char)p[n]) && p[n] != '_')
            return true;
    return false;
}

/* Short texts mean something only after the printing program's name and the word error. */
static bool says(const char *line, const char *who, const char *what)
{
    enum { TELLING = 30 };
    const char *at = what[0] ? strcasestr(line, what) : NULL;
    if (!at || strlen(what) >= TELLING || strcasestr(what, who))
        return at != NULL;
    const char *name = strcasestr(line, who);
    const char *error = name ? strcasestr(name, "rror") : NULL;
    const char *failure = name ? strcasestr(name, "fail") : NULL;
    return (error && error < at) || (failure && failure < at);
}

/* "CUDA error 700", "Cuda failure 700", "cuInit: UNKNOWN ERROR (303)"; 0: none. The numbers in
 * "cuda runtime error (59)" are from before CUDA 10.1; there only the text counts. */
static unsigned cuda_number(const char *line)
{
    static const char expression[] =
        "(CUDA|Cuda|cuda)( driver)? (error|failure|Error|Failure)( code)?:? ?=?\\(?([0-9]+)|"
        "cuInit: UNKNOWN ERROR \\(([0-9]+)\\)";
    regex_t regex;
    regmatch_t groups[7];
    unsigned number = 0;
    if (!strcasestr(line, "cu") || regcomp(&regex, expression, REG_EXTENDED) != 0)
        return 0;
    if (regexec(&regex, line, GP_ARRAY_LEN(groups), groups, 0) == 0) {
        const regmatch_t *at = groups[5].rm_so >= 0 ? &groups[5] : &groups[6];
        if (at->rm_eo - at->rm_so <= 4)
            number = (unsigned)strtoul(line + at->rm_so, NULL, 10);
    }
    regfree(&regex);
    return number;
}

static const struct gp_cuda_error *find_cuda(const char *line)
{
    const struct gp_cuda_error *best = NULL;
    size_t best_length = 0;
    for (size_t i = 0; i < gp_cuda_error_count; i++) {
        const struct gp_cuda_error *row = &gp_cuda_errors[i];
        size_t length = strlen(row->text);
        if (row->number == 0)
            continue;
        if (names(line, row->name) || names(line, row->driver_name))
            return row;
        if (length > best_length && says(line, "cuda", row->text)) {
            best = row;
            best_length = length;
        }
    }
    unsigned number = cuda_number(line);
    const struct gp_cuda_error *numbered = number ? gp_cuda_error_find(number) : NULL;
    return numbered ? numbered : best;
}

static const struct gp_nvml_error *find_nvml(const char *line)
{
    const struct gp_nvml_error *best = NULL;
    size_t best_length = 0;
    for (size_t i = 0; i < gp_nvml_error_count; i++) {
        const struct gp_nvml_error *row = &gp_nvml_errors[i];
        size_t length = strlen(row->text);
        if (row->number == 0)
            continue;
        if (names(line, row->name))
            return row;
        if (length > best_length && strcasestr(line, "nvml") && says(line, "nvml", row->text)) {
            best = row;
            best_length = length;
        }
    }
    return best;
}

/* Messages about memory, from jobs/failure.def. */
static bool explain_failure(struct gp_arena *arena, const char *line, struct gp_explanation *ret)
{
    struct gp_failure f;
    if (!gp_failure_find(line, &f))
        return false;
    gp_failure_read_details(&f, line);
    const struct gp_causes causes = gp_causes_of(&f);
    struct gp_strbuf why = GP_STRBUF_INIT(TEXT_SIZE), next = GP_STRBUF_INIT(TEXT_SIZE);
    for (size_t i = 0; i < causes.count; i++) {
        size_t before = next.len;
        gp_strbuf_adds(&why, i > 0 ? "; " : "");
        gp_cause_add_why(&why, causes.items[i], &f);
        gp_strbuf_adds(&next, next.len > 0 ? "; " : "");
        size_t length = next.len;
        gp_cause_add_next(&next, causes.items[i], &f);
        if (next.len == length)
            gp_strbuf_truncate(&next, before);
    }
    *ret = gp_explain_nothing;
    ret->id = gp_explain_text(arena, "failure.%s", f.id);
    ret->title = f.framework;
    ret->words = f.class == GP_FAILURE_SOFT ? "not a failure by itself: it continues with less"
                                            : gp_explain_text(arena, "%s", why.buf);
    ret->advice = gp_explain_text(arena, "%s", next.buf);
    ret->source = "src/jobs/failure.def";
    gp_strbuf_fini(&why);
    gp_strbuf_fini(&next);
    return true;
}

/* ---- most lines ---- */

/* Few lines of a log are known, and the tables are long: a line is looked up in them only if it
 * contains the first WINDOW characters of one of their texts, in any case, or all of a shorter
 * one. */
enum { WINDOW = 6, WINDOW_BITS = 1 << 20, SHORTS_MAX = 16 };

static uint64_t windows[WINDOW_BITS / 64];
static const char *shorts[SHORTS_MAX];
static size_t short_count;
static pthread_once_t windows_once = PTHREAD_ONCE_INIT;

/* `last`: the last characters, in lower case. */
static size_t window_bit(uint64_t last)
{
    const uint64_t all = (UINT64_C(1) << 8 * WINDOW) - 1;
    return (size_t)(((last & all) * UINT64_C(0x9e3779b97f4a7c15)) >> 44);
}

static uint64_t push(uint64_t last, char c)
{
    return last << 8 | (uint64_t)tolower((unsigned char)c);
}

static void add_short(const char *text)
{
    for (size_t i = 0; i < short_count; i++)
        if (strcmp(shorts[i], text) == 0)
            return;
    if (short_count == SHORTS_MAX)
        shorts[0] = ""; /* in every line */
    else
        shorts[short_count++] = text;
}

static void add_window(const char *text)
{
    uint64_t last = 0;
    size_t n = strlen(text);
    for (size_t i = 0; n >= WINDOW && i < WINDOW; i++)
        last = push(last, text[i]);
    size_t bit = window_bit(last);
    if (n >= WINDOW)
        windows[bit / 64] |= UINT64_C(1) << bit % 64;
    else if (n > 0)
        add_short(text);
}

static void fill_windows(void)
{
    static const char *const numbers[] = {"cuda error", "cuda failure", "cuda driver", "cuinit: "};
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        add_window(numbers[i]);
    for (size_t i = 0; i < gp_message_count; i++)
        add_window(gp_messages[i].needle);
    for (size_t i = 0; i < gp_cuda_error_count; i++) {
        add_window(gp_cuda_errors[i].name);
        add_window(gp_cuda_errors[i].driver_name);
        add_window(gp_cuda_errors[i].text);
    }
    for (size_t i = 0; i < gp_nvml_error_count; i++) {
        add_window(gp_nvml_errors[i].name);
        add_window(gp_nvml_errors[i].text);
    }
}

static bool may_be_known(const char *line)
{
    uint64_t last = 0;
    (void)pthread_once(&windows_once, fill_windows);
    for (const char *p = line; *p; p++) {
        last = push(last, *p);
        size_t bit = window_bit(last);
        if (windows[bit / 64] >> bit % 64 & 1)
            return true;
    }
    for (size_t i = 0; i < short_count; i++)
        if (strstr(line, shorts[i]))
            return true;
    return false;
}

bool gp_explain_line(struct gp_arena *arena, const char *line, struct gp_explanation *ret)
{
    char clean[LINE_SIZE];
    struct gp_kmsg k;
    (void)snprintf(clean, sizeof(clean), "%s", line);
    gp_failure_clean_line(clean);
    if (gp_kmsg_parse_copied(clean, &k) && gp_kmsg_is_notable(k.kind) &&
        gp_explain_kmsg(arena, &k, ret))
        return true;
    if (gp_explain_shell(arena, clean, ret))
        return true;
    bool may = may_be_known(clean);
    return (may && gp_explain_message(find_message(clean), ret)) ||
           explain_failure(arena, clean, ret) ||
           (may && (gp_explain_cuda(arena, find_cuda(clean), ret) ||
                    gp_explain_nvml(arena, find_nvml(clean), ret)));
}
