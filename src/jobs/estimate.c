#include "jobs/estimate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FP32_BYTES = 4 };

static const struct gp_dtype dtypes[] = {
    {"fp32", 4, 4, false, true, ""},
    {"tf32", 4, 4, false, true, "tf32 is a way to compute: numbers are stored as fp32"},
    {"bf16", 2, 2, true, true, ""},
    {"fp16", 2, 2, true, true, ""},
    {"int8", 1, 2, false, false, "plus their scales; computes in 16 bits"},
    {"int4", 0.5, 2, false, false, "plus their scales, about a tenth; computes in 16 bits"},
};

/* Without a master copy no optimizer can update 16-bit weights; "none" only computes gradients. */
static const struct gp_optimizer optimizers[] = {
    {"none", 0, ""},
    {"sgd", 0, ""},
    {"momentum", 4, "the momentum in fp32"},
    {"adam", 8, "two moments in fp32"},
    {"adamw", 8, "two moments in fp32"},
    {"adamw8bit", 2, "two moments in 8 bits, plus their scales"},
    {"adafactor", 0, "only a row and a column per matrix; 4 B with a momentum"},
};

static const struct {
    const char *word, *label;
    bool is_split;
} kinds[] = {
#define X(id, word, label, is_split) {word, label, is_split},
    GP_TERMS(X)
#undef X
};

const struct gp_dtype *gp_dtype(const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

const struct gp_optimizer *gp_optimizer(const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(optimizers); i++)
        if (strcmp(optimizers[i].name, name) == 0)
            return &optimizers[i];
    return NULL;
}

const char *gp_term_word(enum gp_term_kind kind)
{
    return kinds[kind].word;
}

const char *gp_term_label(enum gp_term_kind kind)
{
    return kinds[kind].label;
}

/* ---- the terms ---- */

static void add(struct gp_estimate *e, enum gp_term_kind kind, double bytes, const char *about,
                const char *format, ...) GP_PRINTF(5, 6);

static void add(struct gp_estimate *e, enum gp_term_kind kind, double bytes, const char *about,
                const char *format, ...)
{
    struct gp_estimate_term *term = &e->terms[e->count++];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(term->formula, sizeof(term->formula), format, args);
    va_end(args);
    term->kind = kind;
    term->bytes = bytes;
    term->about = about;
    e->total += bytes;
    if (kinds[kind].is_split)
        e->split += bytes;
}

static void add_states(struct gp_estimate *e, const struct gp_model *m)
{
    const struct {
        enum gp_term_kind kind;
        double bytes; /* bytes per parameter */
        bool is_there;
        const char *about;
    } states[] = {
        {GP_TERM_WEIGHTS, m->dtype->weight_bytes, true, m->dtype->about},
        {GP_TERM_MASTER, FP32_BYTES,
         m->optimizer && m->dtype->is_mixed && strcmp(m->optimizer->name, "none") != 0,
         "a copy in fp32: mixed precision"},
        {GP_TERM_GRADIENTS, FP32_BYTES, m->optimizer != NULL,
         m->dtype->is_mixed ? "in fp32; half of it if kept in 16 bits" : "in fp32"},
        {GP_TERM_OPTIMIZER, m->optimizer ? m->optimizer->bytes : 0, m->optimizer != NULL,
         m->optimizer ? m->optimizer->about : ""},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(states); i++)
        if (states[i].is_there)
            add(e, states[i].kind, m->params * states[i].bytes, states[i].about,
                "%.0f parameters x %g B", m->params, states[i].bytes);
    e->states = e->total;
}

/* What the backward pass needs of each layer, per number of its input, as counted by Korthikanti et
 * al., "Reducing Activation Recomputation in Large Transformer Models" (2022), section 4: 34 bytes
 * with 16-bit numbers, two of them for dropout masks; and 5 per attention matrix element, one of
 * them for a mask. */
static void add_kept(struct gp_estimate *e, const struct gp_model *m)
{
    double each = 16 * m->dtype->activation_bytes + 2;
    double square = 2 * m->dtype->activation_bytes + 1;
    add(e, GP_TERM_ACTIVATIONS, m->batch * m->seq * m->hidden * m->layers * each,
        "Korthikanti et al. 2022, a GPT layer; with checkpointing about a tenth",
        "batch %.0f x seq %.0f x hidden %.0f x layers %.0f x %g B", m->batch, m->seq, m->hidden,
        m->layers, each);
    if (m->heads > 0)
        add(e, GP_TERM_ATTENTION, m->batch * m->heads * m->seq * m->seq * m->layers * square,
            "likewise; none with flash attention",
            "batch %.0f x heads %.0f x seq %.0f^2 x layers %.0f x %g B", m->batch, m->heads, m->seq,
            m->layers, square);
}

/* Inference keeps keys and values of all layers. Everything else exists for one layer at a time: at
 * its widest the residual, the input and two times four times the width. */
static void add_passing(struct gp_estimate *e, const struct gp_model *m)
{
    double one = m->dtype->activation_bytes;
    add(e, GP_TERM_CACHE, 2 * m->batch * m->seq * m->hidden * m->layers * one,
        "keys and values; with grouped-query attention x KV heads / heads",
        "2 x batch %.0f x seq %.0f x hidden %.0f x layers %.0f x %g B", m->batch, m->seq, m->hidden,
        m->layers, one);
    add(e, GP_TERM_ACTIVATIONS, m->batch * m->seq * m->hidden * 10 * one,
        "of one layer, during prompt processing", "batch %.0f x seq %.0f x hidden %.0f x 10 x %g B",
        m->batch, m->seq, m->hidden, one);
    if (m->heads > 0)
        add(e, GP_TERM_ATTENTION, 2 * m->batch * m->heads * m->seq * m->seq * one,
            "of one layer; none with flash attention",
            "2 x batch %.0f x heads %.0f x seq %.0f^2 x %g B", m->batch, m->heads, m->seq, one);
}

static void add_logits(struct gp_estimate *e, const struct gp_model *m)
{
    if (m->optimizer)
        add(e, GP_TERM_LOGITS, m->batch * m->seq * m->vocab * FP32_BYTES,
            "in fp32; their gradient may need as much again",
            "batch %.0f x seq %.0f x vocab %.0f x 4 B", m->batch, m->seq, m->vocab);
    else
        add(e, GP_TERM_LOGITS, m->batch * m->vocab * FP32_BYTES,
            "in fp32, of the last position only; x seq if a program computes all",
            "batch %.0f x vocab %.0f x 4 B", m->batch, m->vocab);
}

struct gp_estimate gp_estimate(const struct gp_model *m)
{
    struct gp_estimate e = {.count = 0};
    bool has_tokens = m->batch > 0 && m->seq > 0;
    add_states(&e, m);
    if (has_tokens && m->hidden > 0 && m->layers > 0 && m->optimizer)
        add_kept(&e, m);
    else if (has_tokens && m->hidden > 0 && m->layers > 0)
        add_passing(&e, m);
    if (has_tokens && m->vocab > 0)
        add_logits(&e, m);
    add(&e, GP_TERM_CONTEXT, GP_CONTEXT_BYTES,
        "0.3 to 1 GiB, depending on GPU, driver and libraries", "1 process x 0.5 GiB");
    return e;
}

const struct gp_estimate_term *gp_estimate_term(const struct gp_estimate *e, enum gp_term_kind kind)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->terms[i].kind == kind)
            return &e->terms[i];
    return NULL;
}

/* ---- where it fits ---- */

/* N such that split / N plus the rest fits. */
static unsigned gpus_for(const struct gp_estimate *e, double room)
{
    double each = room - (e->total - e->split);
    if (each <= 0 || e->split / each > 1e9)
        return 0;
    unsigned n = (unsigned)(e->split / each);
    return n * each < e->split || n == 0 ? n + 1 : n;
}

struct gp_placement gp_estimate_place(const struct gp_estimate *e, double room, double free)
{
    struct gp_placement p = {.fit = GP_ROOM_UNKNOWN};
    if (room >= 0)
        p.gpus = gpus_for(e, room);
    if (room >= 0 && e->total > room) {
        p.fit = GP_ROOM_NOT;
        p.short_by = e->total - room;
    } else if (free >= 0 && e->total <= free) {
        p.fit = GP_ROOM_NOW;
    } else if (room >= 0 && free >= 0) {
        p.fit = GP_ROOM_EMPTY;
        p.short_by = e->total - free;
    }
    return p;
}
