#include "model/select.h"

#include "base/err.h"
#include "base/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool parse_index_range(const char *text, struct gp_select_term *term)
{
    char first[32];
    uint64_t a;
    uint64_t b;
    size_t n = strcspn(text, "-");
    if (n >= sizeof(first))
        return false;
    (void)snprintf(first, sizeof(first), "%.*s", (int)n, text);
    if (!gp_parse_u64(first, &a) || (text[n] && !gp_parse_u64(text + n + 1, &b)))
        return false;
    if (!text[n])
        b = a;
    /* Larger numbers are product names: 4090. */
    if (b < a || b > 999)
        return false;
    term->first = (unsigned)a;
    term->last = (unsigned)b;
    return true;
}

/* "01:00.0", "0000:01:00.0", "00000000:01:00.0" */
static bool looks_like_bus_id(const char *text)
{
    return strchr(text, ':') && strspn(text, "0123456789abcdefABCDEF:.") == strlen(text);
}

/* Longer than any index or model number. */
static bool looks_like_serial(const char *text)
{
    return strlen(text) >= 6 && strspn(text, "0123456789") == strlen(text);
}

static int parse_term(const char *text, size_t n, struct gp_select_term *term, struct gp_err *err)
{
    *term = (struct gp_select_term){0};
    if (n == 0 || n >= sizeof(term->text))
        return gp_err_set(err, GP_EUSAGE,
                          "bad GPU '%.*s': expected an index (0), a range (0-3), a MIG instance "
                          "(0:1), a UUID, a PCI bus id, a serial number or part of a name",
                          (int)(n > 80 ? 80 : n), text);
    memcpy(term->text, text, n);
    unsigned first;
    unsigned last;
    int used = 0;
    if (sscanf(term->text, "%u-%u%n", &first, &last, &used) == 2 && (size_t)used == n &&
        first > last)
        return gp_err_set(err, GP_EUSAGE, "bad range '%s': the start is greater than the end",
                          term->text);
    if (sscanf(term->text, "%3u:%3u%n", &first, &last, &used) == 2 && (size_t)used == n) {
        *term = (struct gp_select_term){.kind = GP_SELECT_MIG, .first = first, .last = last};
        memcpy(term->text, text, n);
    } else if (isdigit((unsigned char)term->text[0]) && parse_index_range(term->text, term))
        term->kind = GP_SELECT_INDEX;
    else if (strncasecmp(term->text, "GPU-", 4) == 0 || strncasecmp(term->text, "MIG-", 4) == 0)
        term->kind = GP_SELECT_UUID;
    else if (looks_like_bus_id(term->text))
        term->kind = GP_SELECT_BUS;
    else if (looks_like_serial(term->text))
        term->kind = GP_SELECT_SERIAL;
    else
        term->kind = GP_SELECT_NAME;
    return 0;
}

int gp_selection_parse(const char *list, struct gp_selection *ret, struct gp_err *err)
{
    ret->count = 0;
    for (const char *p = list;; p++) {
        p += strspn(p, " ");
        size_t n = strcspn(p, ",");
        size_t len = n;
        while (len > 0 && p[len - 1] == ' ')
            len--;
        if (ret->count == GP_SELECT_TERMS_MAX)
            return gp_err_set(err, GP_EUSAGE, "too many GPUs: at most %d", GP_SELECT_TERMS_MAX);
        int r = parse_term(p, len, &ret->terms[ret->count], err);
        if (r < 0)
            return r;
        ret->count++;
        p += n;
        if (!*p)
            return 0;
    }
}

int gp_selection_parse_any(const char *list, struct gp_selection *room, struct gp_selection **ret,
                           struct gp_err *err)
{
    *ret = list ? room : NULL;
    return list ? gp_selection_parse(list, room, err) : 0;
}

bool gp_selection_is_by_index(const struct gp_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        if (selection->terms[i].kind != GP_SELECT_INDEX)
            return false;
    return true;
}

/* Compares PCI addresses from the right, as numbers; domains may differ in length. */
static bool same_bus_id(const char *a, const char *b)
{
    unsigned x[4] = {0};
    unsigned y[4] = {0};
    bool ok_a = sscanf(a, "%x:%x:%x.%x", &x[0], &x[1], &x[2], &x[3]) == 4 ||
                (x[0] = 0, sscanf(a, "%x:%x.%x", &x[1], &x[2], &x[3]) == 3);
    bool ok_b = sscanf(b, "%x:%x:%x.%x", &y[0], &y[1], &y[2], &y[3]) == 4;
    return ok_a && ok_b && memcmp(x, y, sizeof(x)) == 0;
}

static bool term_matches(const struct gp_select_term *term, unsigned index,
                         const struct gp_identity *is)
{
    switch (term->kind) {
    case GP_SELECT_INDEX:
        return index >= term->first && index <= term->last;
    case GP_SELECT_MIG:
        return is->is_mig && is->gpu == term->first && is->mig_index == term->last;
    case GP_SELECT_UUID:
        return is->uuid && strncasecmp(is->uuid, term->text, strlen(term->text)) == 0;
    case GP_SELECT_BUS:
        return is->bus_id && same_bus_id(term->text, is->bus_id);
    case GP_SELECT_SERIAL:
        return is->serial && strcmp(is->serial, term->text) == 0;
    case GP_SELECT_NAME:
        return is->name && strcasestr(is->name, term->text);
    }
    return false;
}

static bool has_kind(const struct gp_selection *selection, enum gp_select_kind kind)
{
    for (size_t i = 0; i < selection->count; i++)
        if (selection->terms[i].kind == kind)
            return true;
    return false;
}

bool gp_selection_names_models(const struct gp_selection *selection)
{
    return has_kind(selection, GP_SELECT_NAME);
}

bool gp_selection_names_serials(const struct gp_selection *selection)
{
    return has_kind(selection, GP_SELECT_SERIAL);
}

bool gp_selection_names_mig(const struct gp_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        if (strncasecmp(selection->terms[i].text, "MIG-", 4) == 0 ||
            selection->terms[i].kind == GP_SELECT_MIG)
            return true;
    return false;
}

bool gp_selection_matches(struct gp_selection *selection, unsigned index,
                          const struct gp_identity *identity)
{
    static const struct gp_identity unknown;
    bool any = selection->count == 0;
    for (size_t i = 0; i < selection->count; i++) {
        if (!term_matches(&selection->terms[i], index, identity ? identity : &unknown))
            continue;
        selection->terms[i].matched = true;
        if (index > selection->terms[i].reached)
            selection->terms[i].reached = index;
        any = true;
    }
    return any;
}

/* Whether the term cannot match any more GPUs. The prefix of a UUID may match several. */
static bool is_settled(const struct gp_select_term *term)
{
    enum { UUID_LENGTH = 40 }; /* "GPU-" and 36 characters */
    bool names_one = term->kind == GP_SELECT_BUS || term->kind == GP_SELECT_SERIAL ||
                     (term->kind == GP_SELECT_UUID && strlen(term->text) == UUID_LENGTH);
    return term->kind == GP_SELECT_INDEX || (names_one && term->matched);
}

bool gp_selection_is_settled(const struct gp_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        if (!is_settled(&selection->terms[i]))
            return false;
    return selection->count > 0;
}

static int refuse(const struct gp_select_term *term, bool some, unsigned gpu_count,
                  struct gp_err *err)
{
    unsigned first, last;
    if (term->kind == GP_SELECT_MIG && sscanf(term->text, "%u:%u", &first, &last) == 2 &&
        last < gpu_count)
        return gp_err_set(err, GP_ENODEV,
                          "no GPU matches '%s', which is a MIG instance; a range is %u-%u",
                          term->text, first, last);
    return gp_err_set(err, GP_ENODEV,
                      gpu_count > 1 ? "no GPU matches %s'%s'; this machine has %u (0 to %u)"
                                    : "no GPU matches %s'%s'; this machine has %u",
                      some ? "all of " : "", term->text, gpu_count, gpu_count - 1);
}

int gp_selection_check_indices(const struct gp_selection *selection, unsigned gpu_count,
                               struct gp_err *err)
{
    for (size_t i = 0; i < selection->count; i++) {
        const struct gp_select_term *term = &selection->terms[i];
        if (term->kind == GP_SELECT_INDEX && term->last >= gpu_count)
            return refuse(term, term->first < gpu_count, gpu_count, err);
    }
    return 0;
}

int gp_selection_check(const struct gp_selection *selection, unsigned gpu_count, struct gp_err *err)
{
    for (size_t i = 0; i < selection->count; i++) {
        const struct gp_select_term *term = &selection->terms[i];
        bool whole = term->kind != GP_SELECT_INDEX || term->reached == term->last;
        if (!term->matched || !whole)
            return refuse(term, term->matched, gpu_count, err);
    }
    return 0;
}
