#include "jobs/scan.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_SIZE = 65536, TEXT_MAX = 16384 };

struct gp_scan {
    struct gp_scan_calls calls;
    char line[LINE_SIZE]; /* the last one, without its end */
    size_t length;
    uint64_t number; /* of the next line, counted from 1 */
    struct gp_incident incident;
    struct gp_strbuf text; /* the incident's lines */
    unsigned lines_left;   /* that may still belong to it; 0: no incident is open */
};

struct gp_scan *gp_scan_new(const struct gp_scan_calls *calls)
{
    struct gp_scan *scan = calloc(1, sizeof(*scan));
    if (!scan)
        return NULL;
    scan->calls = *calls;
    scan->number = 1;
    gp_strbuf_init(&scan->text, TEXT_MAX);
    return scan;
}

void gp_scan_free(struct gp_scan *scan)
{
    if (!scan)
        return;
    gp_strbuf_fini(&scan->text);
    free(scan);
}

bool gp_scan_is_open(const struct gp_scan *scan)
{
    return scan->lines_left > 0;
}

static void close_incident(struct gp_scan *scan)
{
    if (scan->lines_left == 0)
        return;
    scan->lines_left = 0;
    gp_failure_read_details(&scan->incident.failure, scan->text.buf);
    scan->calls.found(scan->calls.context, &scan->incident);
}

/* If it is too long, it ends in "…". */
static void keep_line(char to[GP_INCIDENT_LINE], const char *line)
{
    static const char more[] = "…";
    const size_t room = GP_INCIDENT_LINE - strlen(more);
    gp_utf8_copy_safe(to, room, line);
    if (strlen(line) >= room)
        memcpy(to + strlen(to), more, sizeof(more));
}

static void open_incident(struct gp_scan *scan, const struct gp_failure *failure, const char *line)
{
    scan->incident = (struct gp_incident){.failure = *failure, .line_number = scan->number};
    keep_line(scan->incident.line, line);
    gp_strbuf_reset(&scan->text);
    gp_strbuf_adds(&scan->text, line);
    scan->lines_left = GP_FAILURE_LINES + 1;
    if (scan->calls.began)
        scan->calls.began(scan->calls.context, &scan->incident);
}

/* Adds what a second message about the same failure says. */
static void merge(struct gp_failure *into, const struct gp_failure *from)
{
    for (int i = 0; i < GP_FAILURE_FIELD__COUNT; i++) {
        enum gp_failure_field field = (enum gp_failure_field)i;
        if (gp_failure_knows(from, field) && !gp_failure_knows(into, field))
            gp_failure_set(into, field, from->values[field]);
    }
}

/* Whether two messages are about one failure: not two requests of one framework, which two
 * processes made. */
static bool is_same(const struct gp_failure *a, const struct gp_failure *b)
{
    return a->class == b->class && a->class != GP_FAILURE_SOFT &&
           strcmp(a->framework, b->framework) == 0 && strcmp(a->id, b->id) != 0;
}

static void take_line(struct gp_scan *scan, char *line)
{
    struct gp_failure failure;
    gp_failure_clean_line(line);
    if (scan->calls.line)
        scan->calls.line(scan->calls.context, line);
    bool is_failure = gp_failure_find(line, &failure);
    if (is_failure && scan->lines_left > 0 && is_same(&scan->incident.failure, &failure)) {
        merge(&scan->incident.failure, &failure);
    } else if (is_failure) {
        close_incident(scan);
        open_incident(scan, &failure, line);
    } else if (scan->lines_left > 0) {
        gp_strbuf_addc(&scan->text, ' '); /* a message may be wrapped anywhere */
        gp_strbuf_adds(&scan->text, line);
    }
    if (scan->lines_left == 1)
        close_incident(scan);
    else if (scan->lines_left > 1)
        scan->lines_left--;
}

static void end_line(struct gp_scan *scan)
{
    scan->line[scan->length] = '\0';
    scan->length = 0;
    take_line(scan, scan->line);
}

static size_t line_length(const char *bytes, size_t size)
{
    size_t n = 0;
    while (n < size && bytes[n] != '\n' && bytes[n] != '\r')
        n++;
    return n;
}

/* Up to the end of the line if that is there; returns the number of bytes consumed. */
static size_t add_to_line(struct gp_scan *scan, const char *bytes, size_t size)
{
    size_t n = line_length(bytes, size);
    size_t room = sizeof(scan->line) - 1 - scan->length;
    size_t taken = n < room ? n : room;
    memcpy(scan->line + scan->length, bytes, taken);
    scan->length += taken;
    if (taken < size && (taken == n || taken == room)) {
        end_line(scan);
        scan->number += taken == n && bytes[n] == '\n';
        taken += taken == n;
    }
    return taken;
}

/* The number of bytes in whole lines that contain nothing to be found. */
static size_t dull_length(struct gp_scan *scan, const char *bytes, size_t size)
{
    const char *suspect = gp_failure_suspect(bytes, size);
    size_t n = suspect ? (size_t)(suspect - bytes) : size;
    while (n > 0 && bytes[n - 1] != '\n' && bytes[n - 1] != '\r')
        n--;
    for (const char *p = bytes; (p = memchr(p, '\n', n - (size_t)(p - bytes))); p++)
        scan->number++;
    return n;
}

void gp_scan_feed(struct gp_scan *scan, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t n = 0;
        if (scan->length == 0 && scan->lines_left == 0 && !scan->calls.line)
            n = dull_length(scan, bytes, size);
        bytes += n;
        size -= n;
        n = size > 0 ? add_to_line(scan, bytes, size) : 0;
        bytes += n;
        size -= n;
    }
}

void gp_scan_finish(struct gp_scan *scan)
{
    if (scan->length > 0)
        end_line(scan);
    close_incident(scan);
}
