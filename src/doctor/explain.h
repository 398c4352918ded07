/* What an error means, whose fault it is and what to do: by its number or name, or from a line that
 * a program or the kernel printed. What is not known is not guessed at. */
#ifndef GP_DOCTOR_EXPLAIN_H
#define GP_DOCTOR_EXPLAIN_H

#include "base/util.h"

struct gp_arena;
struct gp_err;
struct gp_kmsg;

/* Texts in memory of the arena, or of tables; "" where there is nothing to say. */
struct gp_explanation {
    const char *id;      /* "xid.79", "cuda.802", "torch.fork" */
    const char *title;   /* "Xid 79": what it is, without the words */
    const char *words;   /* what it means */
    const char *name;    /* as the driver's makers call it */
    const char *details; /* what the line says beside it */
    const char *note;
    const char *fault;  /* "application", "driver", "hardware", "unclear" */
    const char *advice; /* what to do */
    const char *action; /* NVIDIA's word for what to do */
    const char *source;
};

/* "xid", "79"; "cuda", "cudaErrorNoDevice"; "throttle", "sw_power_cap". GP_EUSAGE: there is no such
 * topic, with what there is; GP_EFAIL: it has no such thing. */
int gp_explain_topic(struct gp_arena *arena, const char *topic, const char *what,
                     struct gp_explanation *ret, struct gp_err *err) GP_MUST_CHECK;

bool gp_explain_is_topic(const char *word);

/* A line without its end; false: it is nothing that is known. */
bool gp_explain_line(struct gp_arena *arena, const char *line, struct gp_explanation *ret);

/* A line of the kernel's log that is notable; false: nothing is known of it. */
bool gp_explain_kmsg(struct gp_arena *arena, const struct gp_kmsg *k, struct gp_explanation *ret);

#endif
