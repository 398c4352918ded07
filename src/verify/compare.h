/* Compares what nvidia-smi printed with what gpulse printed in its place. Both are asked in turn,
 * several times: a value that moved meanwhile need not be the same. */
#ifndef GP_VERIFY_COMPARE_H
#define GP_VERIFY_COMPARE_H

#include "verify/printed.h"

enum { GP_VERIFY_SAMPLES = 12 };

enum gp_agreement {
    GP_AGREE_EQUAL,
    GP_AGREE_MOVING, /* equal within the span in which it moved, or both moved */
    GP_AGREE_KNOWN,  /* gpulse cannot know it: docs/smi.md says why */
    GP_AGREE_NOT,
};

/* The outputs of one form. */
struct gp_compared {
    enum gp_printed_form form;
    struct gp_printed theirs[GP_VERIFY_SAMPLES], ours[GP_VERIFY_SAMPLES];
    int their_status[GP_VERIFY_SAMPLES], our_status[GP_VERIFY_SAMPLES]; /* exit statuses */
    size_t samples;
};

/* A value that occurs in one of the outputs. The texts are those of the last sample that has it;
 * NULL: none has. */
struct gp_compared_value {
    const char *name, *theirs, *ours;
    const char *why; /* of GP_AGREE_KNOWN */
    enum gp_agreement agreement;
};

/* Calls `found` for each value of the form, in the order of nvidia-smi's output; then for the exit
 * status and the order of the lines, if these differ. Returns GP_ENOMEM, or 0. */
int gp_compare(const struct gp_compared *compared,
               void (*found)(void *ctx, const struct gp_compared *compared,
                             const struct gp_compared_value *finding),
               void *ctx) GP_MUST_CHECK;

void gp_compared_fini(struct gp_compared *compared);

#endif
