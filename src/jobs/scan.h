/* Looks for failures in what a program prints, as it comes or in an old log. A message may go on in
 * the lines behind it, and several about one thing stand together: they are one incident. */
#ifndef GP_JOBS_SCAN_H
#define GP_JOBS_SCAN_H

#include "jobs/incident.h"

/* `began` is called with the first line, `found` when all is read that belongs to it: on the thread
 * that feeds, and only for what is a failure or a remark of failure.def. */
struct gp_scan_calls {
    void (*began)(void *context, const struct gp_incident *incident); /* may be NULL */
    void (*found)(void *context, const struct gp_incident *incident);
    void (*line)(void *context, const char *line); /* each line; NULL: nobody wants them */
    void *context;
};

struct gp_scan;

/* NULL without memory. gp_failure_prepare() comes first. */
struct gp_scan *gp_scan_new(const struct gp_scan_calls *calls) GP_MUST_CHECK;

/* Takes bytes, cut anywhere. Lines end with \n or \r; of one longer than 64 KiB each piece is one.
 */
void gp_scan_feed(struct gp_scan *scan, const char *bytes, size_t size);

/* Whether there is an incident that more lines may belong to; gp_scan_finish() ends it. */
bool gp_scan_is_open(const struct gp_scan *scan);

/* All was fed for now. */
void gp_scan_finish(struct gp_scan *scan);

void gp_scan_free(struct gp_scan *scan);

#endif
