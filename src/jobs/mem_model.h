/* gpulse mem --params: the memory that a model needs, and which GPUs of this machine it fits on. */
#ifndef GP_JOBS_MEM_MODEL_H
#define GP_JOBS_MEM_MODEL_H

#include "jobs/estimate.h"
#include "source/source.h"

struct gp_err;
struct gp_snapshot;
struct gp_strbuf;

/* The options; NULL or 0: not given. */
struct gp_mem_model {
    const char *params, *dtype, *optimizer;
    uint64_t batch, seq, layers, hidden, vocab, heads;
    bool inference;
};

/* *ret_asked: whether a model is described at all. GP_EUSAGE names what is wrong or missing. */
int gp_mem_model_read(const struct gp_mem_model *o, struct gp_model *ret, bool *ret_asked,
                      struct gp_err *err) GP_MUST_CHECK;

/* What is needed from the GPUs. */
struct gp_want gp_mem_model_want(void);

/* Appends the text output. why: why there are no GPUs, NULL if there are. */
void gp_mem_model_add(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_model *model, const char *why);

/* Appends a document of the schema gpulse.mem/1. */
void gp_mem_model_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_model *model, const char *why);

#endif
