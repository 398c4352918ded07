/* Searches a program's output for failures, as it arrives or in an old log. A message may continue
 * on the following lines, and several messages about one failure may follow each other: they form
 * one incident. */
#ifndef GP_JOBS_SCAN_H
#define GP_JOBS_SCAN_H

#include "jobs/incident.h"

/* `began` is called on the first line, `found` when all lines of it were read: on the thread that
 * feeds, and only for the failures and remarks of failure.def. */
struct gp_scan_calls {
    void (*began)(void *context, const struct gp_incident *incident); /* may be NULL */
    void (*found)(void *context, const struct gp_incident *incident);
    void (*line)(void *context, const char *line); /* called for each line; NULL: not needed */
    void *context;
};

struct gp_scan;

/* NULL if out of memory. Call gp_failure_prepare() first. */
struct gp_scan *gp_scan_new(const struct gp_scan_calls *calls) GP_MUST_CHECK;

/* Adds bytes, split anywhere. Lines end with \n or \r; a line longer than 64 KiB counts as
 * several. */
void gp_scan_feed(struct gp_scan *scan, const char *bytes, size_t size);

/* Whether there is an incident that more lines may belong to; gp_scan_finish() ends it. */
bool gp_scan_is_open(const struct gp_scan *scan);

/* Nothing more to feed for now. */
void gp_scan_finish(struct gp_scan *scan);

void gp_scan_free(struct gp_scan *scan);

#endif
