/* Puts a name before each line, for several commands that print to one place.
 *
 * Complete lines are written in writes of at most PIPE_BUF bytes, which the kernel does not
 * interleave with those of others. An incomplete line is held back until its end or
 * gp_label_flush(). */
#ifndef GP_JOBS_LABEL_H
#define GP_JOBS_LABEL_H

#include "base/util.h"

#include <limits.h>

struct gp_label {
    const char *text;                                            /* "train", for "train| " */
    int (*write)(void *context, const char *bytes, size_t size); /* 0 or −errno */
    void *context;
    char last; /* the byte added last; '\0': none */
    char held[PIPE_BUF];
    size_t size, whole; /* what is held, and how much of it is complete lines */
};

/* 0, or the −errno of the write. Lines end with \n or \r. */
int gp_label_add(struct gp_label *label, const char *bytes, size_t size) GP_MUST_CHECK;

/* Also writes an incomplete line. */
int gp_label_flush(struct gp_label *label) GP_MUST_CHECK;

/* The same, and terminates that line. */
int gp_label_finish(struct gp_label *label) GP_MUST_CHECK;

#endif
