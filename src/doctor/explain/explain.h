/* What an error means, whose fault it is and what to do, by its number or name. Unknown errors stay
 * unknown; nothing is guessed. */
#ifndef GP_DOCTOR_EXPLAIN_EXPLAIN_H
#define GP_DOCTOR_EXPLAIN_EXPLAIN_H

#include "base/util.h"

struct gp_arena;
struct gp_err;

/* The texts belong to the arena or to tables; "" if there is nothing to say. */
struct gp_explanation {
    const char *id;      /* "xid.79", "cuda.802", "torch.fork" */
    const char *title;   /* "Xid 79": its label, without the meaning */
    const char *words;   /* its meaning */
    const char *maybe;   /* usual causes, of which none is proved */
    const char *name;    /* the name that the driver's makers use */
    const char *details; /* other facts in the line */
    const char *note;
    const char *check;  /* how to tell apart what it can be */
    const char *look;   /* comma list of checks of the doctor that can tell on a machine */
    const char *found;  /* those of them of which a note is what this is about; "" or NULL */
    const char *family; /* of its entry: the file in data/explain */
    const char *fault;  /* "application", "driver", "hardware", "unclear" */
    const char *advice; /* what to do */
    const char *action; /* NVIDIA's name for the action */
    const char *source;
};

/* "xid", "79"; "cuda", "cudaErrorNoDevice"; "throttle", "sw_power_cap". GP_EUSAGE: unknown topic,
 * with a list of topics; GP_EFAIL: the topic has no such entry. */
int gp_explain_topic(struct gp_arena *arena, const char *topic, const char *what,
                     struct gp_explanation *ret, struct gp_err *err) GP_MUST_CHECK;

bool gp_explain_is_topic(const char *word);

/* Whether a number alone is most likely an exit status: of a shell, from 124 on. */
bool gp_explain_is_exit(const char *number);
/* Whether it is the name of a signal: "SIGKILL", "kill". */
bool gp_explain_is_signal(const char *name);

#endif
