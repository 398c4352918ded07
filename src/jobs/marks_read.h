/* Receives the marks, ranges and steps of a job's processes (base/marks.h). Marks and ranges go to
 * a trace; without one (NULL), they are ignored.
 *
 * The directory belongs to this user and is closed to others. What is in it comes from the job, so
 * nothing in it is trusted: a wrong file is ignored, and texts are escaped by the trace. */
#ifndef GP_JOBS_MARKS_READ_H
#define GP_JOBS_MARKS_READ_H

#include "jobs/pace.h"

struct gp_err;
struct gp_marks_reader;
struct gp_trace;

/* Creates the directory, in /dev/shm or, if there is little room, in /tmp, and removes those of
 * readers that were killed.
 * GP_EIO, GP_ENOMEM. */
int gp_marks_reader_new(struct gp_marks_reader **ret, struct gp_err *err) GP_MUST_CHECK;

/* For the job, as $GPULSE_TIMELINE. */
const char *gp_marks_reader_folder(const struct gp_marks_reader *reader);

/* Reads what is new. Returns whether a process writes at all: then it must be called often enough
 * that GP_MARKS_SLOTS events do not pass. */
bool gp_marks_reader_read(struct gp_marks_reader *reader, struct gp_trace *trace);

/* The job has exited: reads the rest, with the ranges that were open. */
void gp_marks_reader_finish(struct gp_marks_reader *reader, struct gp_trace *trace);

/* The steps of the process that reported the most, since the last call. Processes of a job step
 * together, so their steps are not added. */
struct gp_pace gp_marks_reader_take_pace(struct gp_marks_reader *reader);

/* The same up to now, also of processes that still run; takes nothing. */
struct gp_pace gp_marks_reader_pace(const struct gp_marks_reader *reader);

/* How many processes could not report since the last call, because the directory was full. */
size_t gp_marks_reader_take_failed(struct gp_marks_reader *reader);

/* Removes the directory. */
void gp_marks_reader_free(struct gp_marks_reader *reader);

#endif
