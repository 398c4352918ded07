/* Runs gpulse-doctor, which has the tables of errors and GPU models, so that this folder does not
 * need them. */
#ifndef GP_JOBS_ASK_DOCTOR_H
#define GP_JOBS_ASK_DOCTOR_H

#include <jansson.h>

struct gp_tail;
struct gp_watch;

/* The document that it writes for these arguments, with a text as its standard input; NULL: it
 * cannot be run, or writes none. */
json_t *gp_ask_doctor_document(char *const argv[], const char *text, size_t size);

/* Explains the first known error at the end of a failed job's output, other than those about
 * memory, through the watch. Does nothing if there is none, or if
 * gpulse-doctor cannot be run. */
void gp_ask_doctor(const struct gp_watch *watch, const struct gp_tail *tail);

#endif
