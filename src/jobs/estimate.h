/* Rule-of-thumb estimate of the GPU memory that a model needs: a term for each kind of data, with
 * its formula. Pure arithmetic: nothing is measured, and a real job also needs workspaces,
 * communication buffers and allocator slack. */
#ifndef GP_JOBS_ESTIMATE_H
#define GP_JOBS_ESTIMATE_H

#include "base/util.h"

#define GP_DTYPE_WORDS "fp32 tf32 bf16 fp16 int8 int4"
#define GP_OPTIMIZER_WORDS "none sgd momentum adam adamw adamw8bit adafactor"

/* A number format. */
struct gp_dtype {
    const char *name;
    double weight_bytes;     /* bytes per parameter */
    double activation_bytes; /* bytes per number in computations */
    bool is_mixed;           /* trained with a master copy of the weights in fp32 */
    bool can_train;
    const char *about; /* what the weights are; "" if that needs no note */
};

struct gp_optimizer {
    const char *name;
    double bytes; /* bytes of state per parameter */
    const char *about;
};

/* NULL: no such name. */
const struct gp_dtype *gp_dtype(const char *name);
const struct gp_optimizer *gp_optimizer(const char *name);

/* Dimensions of a transformer; 0: not given. Terms with missing dimensions are left out. */
struct gp_model {
    double params;
    const struct gp_dtype *dtype;
    const struct gp_optimizer *optimizer; /* NULL: inference only */
    double batch, seq, layers, hidden, vocab;
    double heads; /* given: attention stores its whole matrix, as without flash attention */
};

/* X(id, word, label, is_split): is_split: if the model is split over N GPUs, each has an Nth of
 * it. */
#define GP_TERMS(X)                                                                                \
    X(WEIGHTS, "weights", "weights", true)                                                         \
    X(MASTER, "master_weights", "master weights", true)                                            \
    X(GRADIENTS, "gradients", "gradients", true)                                                   \
    X(OPTIMIZER, "optimizer", "optimizer state", true)                                             \
    X(CACHE, "kv_cache", "KV cache", true)                                                         \
    X(ACTIVATIONS, "activations", "activations", false)                                            \
    X(ATTENTION, "attention", "attention", false)                                                  \
    X(LOGITS, "logits", "logits", false)                                                           \
    X(CONTEXT, "context", "context", false)

enum gp_term_kind {
#define X(id, word, label, is_split) GP_TERM_##id,
    GP_TERMS(X)
#undef X
        GP_TERM__COUNT,
};

const char *gp_term_word(enum gp_term_kind kind);
const char *gp_term_label(enum gp_term_kind kind);

struct gp_estimate_term {
    enum gp_term_kind kind;
    double bytes;
    char formula[112];
    const char *about; /* where the factor comes from, or what is left out */
};

struct gp_estimate {
    struct gp_estimate_term terms[GP_TERM__COUNT];
    size_t count;
    double states; /* weights, their copies, gradients, optimizer: the cost per parameter */
    double split;  /* the part that can be split evenly */
    double total;
};

enum { GP_CONTEXT_BYTES = 512 << 20 }; /* per process and GPU; 0.3 to 1 GiB */

struct gp_estimate gp_estimate(const struct gp_model *model);
/* The term of that kind, or NULL. */
const struct gp_estimate_term *gp_estimate_term(const struct gp_estimate *e,
                                                enum gp_term_kind kind);

enum gp_room {
    GP_ROOM_UNKNOWN, /* the GPU does not report it */
    GP_ROOM_NOW,
    GP_ROOM_EMPTY, /* only if the GPU were empty */
    GP_ROOM_NOT,
};

struct gp_placement {
    enum gp_room fit;
    double short_by; /* bytes: remaining of the free memory or, if it does not fit even there, of
                        the total */
    unsigned gpus;   /* how many such GPUs, empty, are enough; 0: no number is, or unknown */
};

/* On a GPU with `room` bytes for programs, of which `free` are free now; below 0: unknown. */
struct gp_placement gp_estimate_place(const struct gp_estimate *e, double room, double free);

#endif
