#include "doctor/readers/kmsg.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    bool is_notable;
} kinds[GP_KMSG__COUNT] = {
    [GP_KMSG_NONE] = {"", false},
#define KIND(id, word, is_notable) [GP_KMSG_##id] = {word, is_notable},
#define LINE(...)
#include "doctor/readers/kmsg.def"
#undef KIND
#undef LINE
};

static const struct {
    enum gp_kmsg_kind kind;
    const char *prefix, *needle, *needle2;
} lines[] = {
#define KIND(...)
#define LINE(id, prefix, needle, needle2) {GP_KMSG_##id, prefix, needle, needle2},
#include "doctor/readers/kmsg.def"
#undef KIND
#undef LINE
};

bool gp_kmsg_is_notable(enum gp_kmsg_kind kind)
{
    return kinds[kind].is_notable;
}

const char *gp_kmsg_word(enum gp_kmsg_kind kind)
{
    return kinds[kind].word;
}

/* ---- pieces ---- */

/* The text after `word` if `p` begins with it, else NULL. */
static const char *behind(const char *p, const char *text)
{
    size_t n = strlen(text);
    return strncmp(p, text, n) == 0 ? p + n : NULL;
}

/* A decimal number of at most `most` digits; NULL: there is none. */
static const char *number(const char *p, unsigned most, uint64_t *ret)
{
    uint64_t value = 0;
    unsigned digits = 0;
    while (isdigit((unsigned char)*p) && digits < most) {
        value = value * 10 + (uint64_t)(*p++ - '0');
        digits++;
    }
    *ret = value;
    return digits > 0 && !isdigit((unsigned char)*p) ? p : NULL;
}

static const char *hexadecimal(const char *p, uint32_t *ret)
{
    char *end;
    if (p[0] != '0' || p[1] != 'x' || !isxdigit((unsigned char)p[2]))
        return NULL;
    unsigned long value = strtoul(p, &end, 16);
    *ret = (uint32_t)value;
    return value <= UINT32_MAX ? end : NULL;
}

static const char *blanks(const char *p)
{
    while (*p == ' ')
        p++;
    return p;
}

enum { LEVELS = 8 }; /* lower priorities have facility 0, the kernel */

/* ---- time and origin ---- */

/* The days since 1970-01-01 in the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "16:24:18", optionally with a fraction. */
static const char *time_of_day(const char *p, uint64_t *ret_ns)
{
    uint64_t parts[3], fraction = 0, scale = GP_NS_PER_S;
    for (size_t i = 0; i < 3; i++) {
        if (i > 0 && *p++ != ':')
            return NULL;
        p = number(p, 2, &parts[i]);
        if (!p || parts[i] > 60)
            return NULL;
    }
    if ((*p == '.' || *p == ',') && isdigit((unsigned char)p[1]))
        for (p++; isdigit((unsigned char)*p); p++) {
            scale /= 10;
            fraction += scale * (uint64_t)(*p - '0');
        }
    *ret_ns = (parts[0] * 3600 + parts[1] * 60 + parts[2]) * GP_NS_PER_S + fraction;
    return p;
}

static void set_wall(struct gp_kmsg *k, uint64_t year, uint64_t month, uint64_t day, uint64_t ns)
{
    k->clock = GP_KMSG_WALL;
    k->time_ns =
        (uint64_t)days_of((int64_t)year, (int64_t)month, (int64_t)day) * 86400 * GP_NS_PER_S + ns;
}

/* "Feb 23 16:24:18"; without a year, 1972 is assumed, which has every day. */
static const char *month_and_time(struct gp_kmsg *k, const char *p)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint64_t month = 0, day = 0, year = 1972, ns = 0;
    for (size_t i = 0; i < 12 && month == 0; i++)
        if (strncmp(p, months + 3 * i, 3) == 0)
            month = i + 1;
    if (month == 0 || p[3] != ' ')
        return NULL;
    p = number(blanks(p + 3), 2, &day);
    p = p && *p == ' ' && day >= 1 && day <= 31 ? time_of_day(p + 1, &ns) : NULL;
    if (!p)
        return NULL;
    const char *end = *p == ' ' ? number(p + 1, 4, &year) : NULL;
    bool has_year = end && year >= 1970 && (*end == ']' || *end == ' ');
    set_wall(k, has_year ? year : 1972, month, day, ns);
    return has_year ? end : p;
}

/* "2025-02-23T16:24:18.123456+01:00" */
static const char *iso_time(struct gp_kmsg *k, const char *p)
{
    uint64_t year, month, day, ns;
    p = number(p, 4, &year);
    p = p && *p == '-' && year >= 1970 ? number(p + 1, 2, &month) : NULL;
    p = p && *p == '-' && month >= 1 && month <= 12 ? number(p + 1, 2, &day) : NULL;
    p = p && (*p == 'T' || *p == ' ') && day >= 1 && day <= 31 ? time_of_day(p + 1, &ns) : NULL;
    if (!p)
        return NULL;
    set_wall(k, year, month, day, ns);
    return p + strcspn(p, " "); /* the time zone */
}

static const char *bracketed_time(struct gp_kmsg *k, const char *p)
{
    static const char days[] = "MonTueWedThuFriSatSun";
    uint64_t seconds = 0, fraction = 0, scale = GP_NS_PER_S;
    p = blanks(p + 1);
    for (size_t i = 0; i < 7; i++)
        if (strncmp(p, days + 3 * i, 3) == 0 && p[3] == ' ')
            return month_and_time(k, p + 4);
    p = number(p, 12, &seconds);
    if (!p || *p != '.')
        return NULL;
    for (p++; isdigit((unsigned char)*p); p++) {
        scale /= 10;
        fraction += scale * (uint64_t)(*p - '0');
    }
    k->clock = GP_KMSG_SINCE_BOOT;
    k->time_ns = seconds * GP_NS_PER_S + fraction;
    return p;
}

/* The text after "[…] " if it is a time, else p. */
static const char *skip_bracket(struct gp_kmsg *k, const char *p)
{
    struct gp_kmsg tried = *k;
    if (*p != '[')
        return p;
    const char *end = bracketed_time(&tried, p);
    if (!end || *end != ']')
        return p;
    *k = tried;
    k->stamp = blanks(p + 1);
    k->stamp_length = (size_t)(end - k->stamp);
    return blanks(end + 1);
}

/* "4,1234,5678901234,-;" of /dev/kmsg; *ret is false if a program wrote the line. */
static const char *skip_record(struct gp_kmsg *k, const char *p, bool *ret)
{
    uint64_t priority, sequence, us;
    const char *q = number(p, 6, &priority);
    q = q && *q == ',' ? number(q + 1, 20, &sequence) : NULL;
    q = q && *q == ',' ? number(q + 1, 15, &us) : NULL;
    if (!q || *q != ',')
        return p;
    const char *text = strchr(q, ';');
    if (!text)
        return p;
    k->clock = GP_KMSG_SINCE_BOOT;
    k->time_ns = us * GP_NS_PER_US;
    *ret = priority < LEVELS;
    return text + 1;
}

/* "<4>" of dmesg --raw, "kern  :err   : " of dmesg --decode. */
static const char *skip_level(const char *p, bool *ret)
{
    uint64_t priority;
    const char *q = *p == '<' ? number(p + 1, 4, &priority) : NULL;
    if (q && *q == '>') {
        *ret = priority < LEVELS;
        return q + 1;
    }
    q = behind(p, "kern ");
    q = q ? strchr(q, ':') : NULL;
    q = q ? strchr(q + 1, ':') : NULL;
    return q && q - p < 24 ? blanks(q + 1) : p;
}

/* "host kernel: "; *ret is false if it names another program. */
static const char *skip_host(const char *p, bool *ret)
{
    const char *host_end = strchr(p, ' ');
    const char *colon = host_end ? strstr(host_end, ": ") : NULL;
    const char *kernel = behind(p, "kernel: ");
    if (kernel)
        return kernel;
    if (!colon || memchr(host_end + 1, ' ', (size_t)(colon - host_end - 1))) {
        *ret = false;
        return p;
    }
    *ret = colon - host_end - 1 == 6 && memcmp(host_end + 1, "kernel", 6) == 0;
    return colon + 2;
}

/* Finds where the kernel's own text begins; false: another program wrote it. */
static bool read_head(const char *line, struct gp_kmsg *k)
{
    bool is_kernel = true;
    /* dmesg and journalctl indent the further lines of a message. */
    if (*line == ' ' && strncmp(blanks(line), "NVRM: ", 6) == 0)
        line = blanks(line);
    const char *p = skip_record(k, line, &is_kernel);
    p = skip_level(p, &is_kernel);
    const char *end = month_and_time(k, p);
    end = end ? end : iso_time(k, p);
    if (end) {
        k->stamp = p;
        k->stamp_length = (size_t)(end - p);
        p = blanks(end);
        /* dmesg --time-format=iso has no host name */
        bool has_host = strncmp(p, "NVRM: ", 6) != 0 && strncmp(p, "nvidia", 6) != 0;
        p = has_host ? skip_host(p, &is_kernel) : p;
        p = skip_bracket(k, p);
    } else {
        p = skip_bracket(k, p);
        const char *kernel = strstr(p, " kernel: "); /* journalctl -o short-monotonic */
        if (k->clock != GP_KMSG_NO_CLOCK && kernel && !memchr(p, ' ', (size_t)(kernel - p)))
            p = kernel + strlen(" kernel: ");
    }
    k->body = p;
    return is_kernel;
}

/* ---- the subject ---- */

static size_t hex_run(const char *p)
{
    size_t n = 0;
    while (isxdigit((unsigned char)p[n]))
        n++;
    return n;
}

/* "0000:65:00", optionally with ".0"; returns its length, 0: there is none. */
static size_t bus_id_at(const char *p, char ret[GP_KMSG_BUS_ID])
{
    size_t domain = hex_run(p), n = domain;
    if ((domain != 4 && domain != 8) || p[n] != ':' || hex_run(p + n + 1) != 2 || p[n + 3] != ':' ||
        hex_run(p + n + 4) != 2)
        return 0;
    n += 6;
    char function = '0';
    if (p[n] == '.' && p[n + 1] >= '0' && p[n + 1] <= '7' && hex_run(p + n + 1) == 1) {
        function = p[n + 1];
        n += 2;
    }
    /* An eight-digit domain begins with four zeros on all known machines. */
    (void)snprintf(ret, GP_KMSG_BUS_ID, "%.10s.%c", p + domain - 4, function);
    for (char *c = ret; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return n;
}

/* The first address in the line; for PCIe errors the last: before it comes the port that detected
 * them. */
static void find_bus_id(struct gp_kmsg *k)
{
    bool is_last = k->kind == GP_KMSG_AER_FATAL || k->kind == GP_KMSG_AER_NONFATAL ||
                   k->kind == GP_KMSG_AER_CORRECTED;
    if (k->kind == GP_KMSG_DEVICE_AWAKE) /* any device: the next lines are not about it */
        return;
    for (const char *p = k->body; *p && (is_last || !k->bus_id[0]); p++)
        if (p == k->body || !isxdigit((unsigned char)p[-1]))
            (void)bus_id_at(p, k->bus_id);
}

static void copy_name(struct gp_kmsg *k, const char *name, size_t n)
{
    (void)snprintf(k->process, sizeof(k->process), "%.*s", (int)(n < 1000 ? n : 1000), name);
    if (strcmp(k->process, "<unknown>") == 0 || strcmp(k->process, "'<unknown>'") == 0)
        k->process[0] = '\0';
}

/* "pid=123, name=python3, " or a part of it. The name ends at the first ", ": the rest of a program
 * name with ", " in it is taken as the message. */
static const char *read_process(struct gp_kmsg *k, const char *p)
{
    uint64_t pid = 0;
    const char *q = behind(p, "pid=");
    if (!q)
        return p;
    const char *end = strstr(q, ", ");
    if (!end)
        return p;
    if (number(q, 10, &pid))
        k->pid = (int64_t)pid;
    p = end + 2;
    q = behind(p, "name=");
    end = q ? strstr(q, ", ") : NULL;
    if (!end)
        return p;
    copy_name(k, q, (size_t)(end - q));
    return end + 2;
}

static bool has_fatal_word(const char *message)
{
    const char *at = strstr(message, "Fatal");
    return at && (at == message || at[-1] == ' ') && (at[5] == ' ' || at[5] == ',');
}

/* " GPU-I:05 GPU-CI:02" */
static const char *read_instances(struct gp_kmsg *k, const char *p)
{
    uint64_t value;
    const char *q = behind(p, " GPU-I:");
    q = q ? number(q, 4, &value) : NULL;
    if (!q)
        return p;
    k->gpu_instance = (int)value;
    p = q;
    q = behind(p, " GPU-CI:");
    q = q ? number(q, 4, &value) : NULL;
    if (!q)
        return p;
    k->compute_instance = (int)value;
    return q;
}

/* The rest after "Xid (PCI:0000:05:00 GPU-I:05): 79, ". */
static bool read_xid(struct gp_kmsg *k, const char *p)
{
    uint64_t code;
    const char *pci = behind(p, "PCI:");
    p = pci ? pci : p;
    size_t n = bus_id_at(p, k->bus_id);
    if (n == 0)
        return false;
    p = behind(read_instances(k, p + n), "): ");
    p = p ? number(p, 5, &code) : NULL;
    if (!p)
        return false;
    k->kind = GP_KMSG_XID;
    k->code = (unsigned)code;
    p = *p == ',' ? blanks(p + 1) : p;
    k->message = read_process(k, p);
    k->is_fatal = has_fatal_word(k->message);
    const char *cause = strstr(k->message, "caused by previous Xid ");
    if (cause && number(cause + strlen("caused by previous Xid "), 5, &code))
        k->cause = (unsigned)code;
    return true;
}

/* The rest after "SXid (", in "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 …".
 */
static bool read_sxid(struct gp_kmsg *k, const char *p)
{
    uint64_t code;
    const char *pci = behind(p, "PCI:");
    p = pci ? pci : p;
    size_t n = bus_id_at(p, k->bus_id);
    p = n > 0 ? behind(p + n, "): ") : NULL;
    p = p ? number(p, 6, &code) : NULL;
    p = p ? behind(p, ", ") : NULL;
    if (!p)
        return false;
    bool is_detail = behind(p, "Data ") || behind(p, "Severity ");
    k->kind = is_detail ? GP_KMSG_SXID_DETAIL : GP_KMSG_SXID;
    k->code = (unsigned)code;
    k->message = p;
    k->is_fatal = behind(p, "Fatal") != NULL;
    return true;
}

/* The process that was killed or crashed. */
static void read_victim(struct gp_kmsg *k)
{
    uint64_t pid;
    const char *p = strstr(k->body, "Killed process "), *end = NULL;
    if (k->kind == GP_KMSG_OOM && p && (p = number(p + strlen("Killed process "), 10, &pid))) {
        k->pid = (int64_t)pid;
        end = p[0] == ' ' && p[1] == '(' ? strchr(p, ')') : NULL;
        if (end)
            copy_name(k, p + 2, (size_t)(end - p - 2));
    } else if (k->kind == GP_KMSG_NCCL_CRASH && (p = strchr(k->body, '[')) &&
               (end = number(p + 1, 10, &pid)) && *end == ']') {
        k->pid = (int64_t)pid;
        copy_name(k, k->body, (size_t)(p - k->body));
    } else if (k->kind == GP_KMSG_MISMATCH && (p = strchr(k->body, '\'')) &&
               (end = strchr(p + 1, '\''))) {
        copy_name(k, p + 1, (size_t)(end - p - 1));
    }
}

static enum gp_kmsg_kind kind_of(const char *body)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(lines); i++)
        if (behind(body, lines[i].prefix) && strstr(body, lines[i].needle) &&
            strstr(body, lines[i].needle2))
            return lines[i].kind;
    return GP_KMSG_NONE;
}

static bool read_body(struct gp_kmsg *k)
{
    k->message = k->body;
    const char *xid = behind(k->body, "NVRM: Xid (");
    if (xid && read_xid(k, xid))
        return true;
    const char *nvswitch = behind(k->body, "nvidia-nvswitch");
    nvswitch = nvswitch ? strstr(nvswitch, ": SXid (") : NULL;
    if (nvswitch && nvswitch - k->body < 24 && read_sxid(k, nvswitch + strlen(": SXid (")))
        return true;
    k->kind = kind_of(k->body);
    if (k->kind == GP_KMSG_NONE)
        return false;
    find_bus_id(k);
    read_victim(k);
    return true;
}

static void clear(struct gp_kmsg *k)
{
    *k = (struct gp_kmsg){.stamp = "",
                          .body = "",
                          .message = "",
                          .gpu_instance = GP_KMSG_NO_INSTANCE,
                          .compute_instance = GP_KMSG_NO_INSTANCE};
}

bool gp_kmsg_parse(const char *line, struct gp_kmsg *ret)
{
    clear(ret);
    return read_head(line, ret) && read_body(ret);
}

bool gp_kmsg_parse_copied(const char *line, struct gp_kmsg *ret)
{
    static const char *const starts[] = {"NVRM: ", "nvidia-nvswitch", "nvidia-uvm: "};
    if (gp_kmsg_parse(line, ret))
        return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(starts); i++) {
        const char *at = strstr(line, starts[i]);
        clear(ret);
        ret->body = at;
        if (at && read_body(ret) && gp_kmsg_is_notable(ret->kind))
            return true;
    }
    clear(ret);
    return false;
}

/* ---- the message ---- */

bool gp_kmsg_nvlink(const char *message, struct gp_kmsg_nvlink *ret)
{
    size_t n = strcspn(message, " ");
    uint64_t link;
    uint32_t info;
    if (n == 0 || n >= sizeof(ret->unit) || !message[n])
        return false;
    *ret = (struct gp_kmsg_nvlink){.is_fatal = has_fatal_word(message)};
    (void)snprintf(ret->unit, sizeof(ret->unit), "%.*s", (int)n, message);
    const char *p = strstr(message, " Link ");
    p = p ? number(p + strlen(" Link "), 4, &link) : NULL;
    p = p ? behind(p, " (") : NULL;
    p = p ? hexadecimal(p, &info) : NULL;
    if (!p)
        return false;
    ret->link = (unsigned)link;
    ret->reason = (info >> 20) & 0x3f;
    ret->has_status = *p == ' ' && hexadecimal(p + 1, &ret->status);
    return true;
}

bool gp_kmsg_recovery(const char *message, unsigned *ret_was, unsigned *ret_now)
{
    static const char from[] = "recovery action changed from ";
    uint32_t was, now;
    const char *p = strstr(message, from);
    p = p ? hexadecimal(p + strlen(from), &was) : NULL;
    p = p ? strstr(p, " to 0x") : NULL;
    if (!p || !hexadecimal(p + strlen(" to "), &now))
        return false;
    *ret_was = was;
    *ret_now = now;
    return true;
}
