/* A name before each line, where several commands print to one place.
 *
 * Whole lines leave in writes of at most PIPE_BUF bytes, which the kernel does not mix with those
 * of others. The rest of a line waits for its end, until gp_label_flush() sends it. */
#ifndef GP_JOBS_LABEL_H
#define GP_JOBS_LABEL_H

#include "base/util.h"

#include <limits.h>

struct gp_label {
    const char *text;                                            /* "train", for "train| " */
    int (*write)(void *context, const char *bytes, size_t size); /* 0 or −errno */
    void *context;
    char last; /* byte that was added; '\0': none */
    char held[PIPE_BUF];
    size_t size, whole; /* what is held, and how much of it is whole lines */
};

/* 0, or the −errno of the write. Lines end with \n or \r. */
int gp_label_add(struct gp_label *label, const char *bytes, size_t size) GP_MUST_CHECK;

/* Writes also a line that has no end so far. */
int gp_label_flush(struct gp_label *label) GP_MUST_CHECK;

/* The same, and ends that line. */
int gp_label_finish(struct gp_label *label) GP_MUST_CHECK;

#endif
