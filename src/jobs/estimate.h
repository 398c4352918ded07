/* What a model needs of a GPU's memory, by rule of thumb: a term for each thing that is kept there,
 * with its formula. Pure arithmetic: nothing is measured here, and a real job has workspaces,
 * communication buffers and an allocator's slack on top. */
#ifndef GP_JOBS_ESTIMATE_H
#define GP_JOBS_ESTIMATE_H

#include "base/util.h"

#define GP_DTYPE_WORDS "fp32 tf32 bf16 fp16 int8 int4"
#define GP_OPTIMIZER_WORDS "none sgd momentum adam adamw adamw8bit adafactor"

/* A type of numbers. */
struct gp_dtype {
    const char *name;
    double weight_bytes;     /* of a parameter */
    double activation_bytes; /* of a number that is computed */
    bool is_mixed;           /* trained with weights in fp32 beside these */
    bool can_train;
    const char *about; /* what the weights are, "" if that is plain */
};

struct gp_optimizer {
    const char *name;
    double bytes; /* of its state, for each parameter */
    const char *about;
};

/* NULL: there is none of this name. */
const struct gp_dtype *gp_dtype(const char *name);
const struct gp_optimizer *gp_optimizer(const char *name);

/* Sizes of a transformer; 0: not given. Terms whose sizes are missing are left out. */
struct gp_model {
    double params;
    const struct gp_dtype *dtype;
    const struct gp_optimizer *optimizer; /* NULL: it is not trained, it only answers */
    double batch, seq, layers, hidden, vocab;
    double heads; /* given: attention keeps its whole matrix, as without flash attention */
};

/* X(id, word, label, is_split): is_split: of each of N GPUs an Nth, where the model is split. */
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

struct gp_term {
    enum gp_term_kind kind;
    double bytes;
    char formula[112];
    const char *about; /* where the factor is from, or what is left out */
};

struct gp_estimate {
    struct gp_term terms[GP_TERM__COUNT];
    size_t count;
    double states; /* weights, their copies, gradients, optimizer: what each parameter costs */
    double split;  /* what can be split evenly */
    double total;
};

enum { GP_CONTEXT_BYTES = 512 << 20 }; /* of a process on a GPU; from 0.3 to 1 GiB */

struct gp_estimate gp_estimate(const struct gp_model *model);
/* The term of that kind, or NULL. */
const struct gp_term *gp_estimate_term(const struct gp_estimate *e, enum gp_term_kind kind);

enum gp_room {
    GP_ROOM_UNKNOWN, /* the GPU does not tell */
    GP_ROOM_NOW,
    GP_ROOM_EMPTY, /* if nobody else were on it */
    GP_ROOM_NOT,
};

struct gp_placement {
    enum gp_room fit;
    double short_by; /* bytes: of what is free, or, if it does not fit at all, of all it has */
    unsigned gpus;   /* how many such GPUs, empty, would do; 0: no number does, or not known */
};

/* On a GPU that has `room` bytes for programs, `free` of them now; below 0: not known. */
struct gp_placement gp_estimate_place(const struct gp_estimate *e, double room, double free);

#endif
