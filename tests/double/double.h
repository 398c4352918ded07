/* What the test doubles share: a stream, and the time that work on it takes. */
#ifndef GP_TESTS_DOUBLE_H
#define GP_TESTS_DOUBLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUstream_st {
    int device;
    double *ms; /* of work on that device, so far: see DOUBLE_CLOCK */
};

/* A kernel or a copy: $DOUBLE_CLOCK milliseconds. */
static inline void double_work(const struct CUstream_st *stream)
{
    const char *slow = getenv("DOUBLE_SLOW");
    double noise = 0.02 * (double)((unsigned)(*stream->ms * 7) % 5);
    const char *clock = getenv("DOUBLE_CLOCK");
    *stream->ms +=
        ((clock ? atof(clock) : 0) + noise) * (slow && atoi(slow) == stream->device ? 1.25 : 1);
}

/* Writes the name of a call to the file $DOUBLE_LOG. */
static inline void double_note(const char *name)
{
    const char *path = getenv("DOUBLE_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    (void)fprintf(file, "%s\n", name);
    (void)fclose(file);
}

static inline int double_has_fault(const char *name)
{
    const char *fault = getenv("DOUBLE_FAULT");
    return fault && strcmp(fault, name) == 0;
}

#endif
