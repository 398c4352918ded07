#include "ptx.h"

#include "bench/precision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGISTERS = 96,
    OPERANDS = 16,
    NAME = 64,
    SYMBOLS = 16,
    THREADS = 1024,
    SHARED_BYTES = 48 << 10
};

enum place { IN_REGISTER, CONSTANT, SPECIAL, IN_MEMORY };
enum special { TID_X, NTID_X, CTAID_X, CTAID_Y, NCTAID_X };

struct operand {
    enum place place;
    unsigned at;      /* register; special; base register of memory */
    bool is_absolute; /* memory: `value` alone is the address */
    uint64_t value;   /* constant; offset */
};

struct thread {
    uint64_t registers[REGISTERS];
    size_t at;
    unsigned tid;
    bool is_done, is_waiting;
    const struct instruction *mma; /* which its whole warp must reach */
};

struct block {
    unsigned x, y, grid_x, threads;
    unsigned char shared[SHARED_BYTES];
    size_t shared_bytes; /* that the function declares */
    unsigned char parameters[256];
    ptx_may_access *may_access;
    bool has_failed;
};

struct instruction;
typedef void execute(struct block *b, struct thread *t, const struct instruction *i);

struct instruction {
    execute *run;
    bool is_conditional;
    unsigned condition; /* a register */
    size_t operands;
    struct operand operand[OPERANDS];
    size_t width, lanes; /* of an element in memory; elements */
    char label[NAME];    /* of a branch */
    size_t target;
};

struct symbol {
    char name[NAME];
    uint64_t value;
};

struct ptx_function {
    char name[NAME];
    struct instruction *code;
    size_t count;
    struct symbol parameters[SYMBOLS], shared[SYMBOLS], registers[REGISTERS], labels[SYMBOLS];
    size_t parameter_count, shared_count, register_count, label_count, parameter_bytes,
        shared_bytes;
    size_t parameter_size[SYMBOLS];
    struct ptx_function *next;
};

struct ptx_module {
    struct ptx_function *first;
};

/* ---- execution ---- */

static uint64_t value_of(const struct block *b, const struct thread *t, const struct operand *o)
{
    if (o->place == IN_REGISTER)
        return t->registers[o->at];
    if (o->place == CONSTANT)
        return o->value;
    switch ((enum special)o->at) {
    case TID_X:
        return t->tid;
    case NTID_X:
        return b->threads;
    case CTAID_X:
        return b->x;
    case CTAID_Y:
        return b->y;
    case NCTAID_X:
        break;
    }
    return b->grid_x;
}

#define VALUE(k) value_of(b, t, &i->operand[k])
#define RESULT t->registers[i->operand[0].at]

static double as_f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof(f));
    return (double)f;
}

static uint64_t from_f32(double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static double as_f64(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}

static uint64_t from_f64(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    return bits;
}

#define RUN(name, expression)                                                                      \
    static void name(struct block *b, struct thread *t, const struct instruction *i)               \
    {                                                                                              \
        (void)b;                                                                                   \
        (void)i;                                                                                   \
        expression;                                                                                \
    }
RUN(run_mov, RESULT = VALUE(1))
RUN(run_add32, RESULT = (uint32_t)(VALUE(1) + VALUE(2)))
RUN(run_add64, RESULT = VALUE(1) + VALUE(2))
RUN(run_and, RESULT = VALUE(1) & VALUE(2))
RUN(run_or, RESULT = VALUE(1) | VALUE(2))
RUN(run_xor, RESULT = VALUE(1) ^ VALUE(2))
RUN(run_ne32, RESULT = (uint32_t)VALUE(1) != (uint32_t)VALUE(2))
RUN(run_shl32, RESULT = (uint32_t)(VALUE(1) << VALUE(2)))
RUN(run_shl64, RESULT = VALUE(1) << VALUE(2))
RUN(run_shr, RESULT = (uint32_t)VALUE(1) >> VALUE(2))
RUN(run_mul_wide, RESULT = (uint64_t)(uint32_t)VALUE(1) * (uint32_t)VALUE(2))
RUN(run_mad_wide, RESULT = (uint64_t)(uint32_t)VALUE(1) * (uint32_t)VALUE(2) + VALUE(3))
RUN(run_mad32, RESULT = (uint32_t)(VALUE(1) * VALUE(2) + VALUE(3)))
RUN(run_mad64, RESULT = VALUE(1) * VALUE(2) + VALUE(3))
RUN(run_widen, RESULT = (uint32_t)VALUE(1))
RUN(run_to_f32, RESULT = from_f32((double)(uint32_t)VALUE(1)))
RUN(run_add_f32, RESULT = from_f32(as_f32(VALUE(1)) + as_f32(VALUE(2))))
RUN(run_fma_f32, RESULT = from_f32((double)fmaf((float)as_f32(VALUE(1)), (float)as_f32(VALUE(2)),
                                                (float)as_f32(VALUE(3)))))
RUN(run_fma_f64, RESULT = from_f64(fma(as_f64(VALUE(1)), as_f64(VALUE(2)), as_f64(VALUE(3)))))
RUN(run_ge64, RESULT = VALUE(1) >= VALUE(2))
RUN(run_lt32, RESULT = (uint32_t)VALUE(1) < (uint32_t)VALUE(2))
RUN(run_lt_and32, RESULT = (uint32_t)VALUE(1) < (uint32_t)VALUE(2) && VALUE(3))
RUN(run_eq_f32, RESULT = fabs(as_f32(VALUE(1)) - as_f32(VALUE(2))) <= 0)
RUN(run_branch, t->at = i->target)
RUN(run_barrier, t->is_waiting = true)
RUN(run_return, t->is_done = true)

/* The memory operand is the first one of a store, and the last one of a load. */
static unsigned char *memory(struct block *b, const struct thread *t, const struct instruction *i,
                             const struct operand *o, bool is_global)
{
    uint64_t at = (o->is_absolute ? 0 : t->registers[o->at]) + o->value;
    size_t bytes = i->width * i->lanes;
    bool is_allowed =
        at % bytes == 0 && (is_global ? b->may_access(at, bytes)
                                      : at <= b->shared_bytes && bytes <= b->shared_bytes - at);
    b->has_failed |= !is_allowed;
    return !is_allowed ? NULL : is_global ? (unsigned char *)(uintptr_t)at : b->shared + at;
}

/* mma.m16n8k16: lane 4·g + t has, of A, the pairs at rows g, g + 8, g, g + 8 and k 2t, 2t, 2t + 8,
 * 2t + 8; of B those at k 2t and 2t + 8 of column g; of C the elements at row g, then g + 8, and
 * columns 2t and 2t + 1. */
static void multiply_in_warp(struct thread *warp, enum gp_number number)
{
    double a[16][16];
    double b[16][8];
    for (unsigned lane = 0; lane < 32; lane++) {
        const struct instruction *i = warp[lane].mma;
        for (unsigned r = 0; r < 6; r++)
            for (unsigned half = 0; half < 2; half++) {
                uint16_t bits = (uint16_t)(warp[lane].registers[i->operand[4 + r].at] >> 16 * half);
                double value = gp_number_load(number, &bits);
                if (r < 4)
                    a[lane / 4 + 8 * (r % 2)][2 * (lane % 4) + half + 8 * (r / 2)] = value;
                else
                    b[2 * (lane % 4) + half + 8 * (r - 4)][lane / 4] = value;
            }
    }
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned r = 0; r < 4; r++) {
            const struct instruction *i = warp[lane].mma;
            double sum = as_f32(warp[lane].registers[i->operand[10 + r].at]);
            for (unsigned k = 0; k < 16; k++)
                sum += a[lane / 4 + 8 * (r / 2)][k] * b[k][2 * (lane % 4) + r % 2];
            warp[lane].registers[i->operand[r].at] = from_f32(sum);
        }
}

RUN(run_mma_f16, t->mma = i)
RUN(run_mma_bf16, t->mma = i)

static uint64_t rounded(enum gp_number number, uint64_t single)
{
    uint16_t bits;
    gp_number_store(number, as_f32(single), &bits);
    return bits;
}

RUN(run_to_f16, RESULT = rounded(GP_NUMBER_F16, VALUE(1)))
RUN(run_to_bf16, RESULT = rounded(GP_NUMBER_BF16, VALUE(1)))
RUN(run_narrow, RESULT = (uint16_t)VALUE(1))
RUN(run_pack, RESULT = (uint16_t)VALUE(1) | (uint32_t)(uint16_t)VALUE(2) << 16)

static void load(struct block *b, struct thread *t, const struct instruction *i,
                 const unsigned char *from)
{
    for (size_t lane = 0; from && lane < i->lanes; lane++) {
        t->registers[i->operand[lane].at] = 0;
        memcpy(&t->registers[i->operand[lane].at], from + lane * i->width, i->width);
    }
    (void)b;
}

static void store(struct block *b, const struct thread *t, const struct instruction *i,
                  unsigned char *to)
{
    for (size_t lane = 0; to && lane < i->lanes; lane++) {
        uint64_t value = VALUE(1 + lane);
        memcpy(to + lane * i->width, &value, i->width);
    }
}

static void reduce(const struct block *b, const struct thread *t, const struct instruction *i,
                   unsigned char *at, bool is_minimum)
{
    uint32_t old;
    uint32_t value = (uint32_t)VALUE(1);
    if (!at)
        return;
    memcpy(&old, at, sizeof(old));
    value = !is_minimum ? old + value : value < old ? value : old;
    memcpy(at, &value, sizeof(value));
}

RUN(run_red_add, reduce(b, t, i, memory(b, t, i, &i->operand[0], true), false))
RUN(run_red_min, reduce(b, t, i, memory(b, t, i, &i->operand[0], true), true))
RUN(run_ld_param, load(b, t, i, b->parameters + i->operand[i->operands - 1].value))
RUN(run_ld_global, load(b, t, i, memory(b, t, i, &i->operand[i->operands - 1], true)))
RUN(run_ld_shared, load(b, t, i, memory(b, t, i, &i->operand[i->operands - 1], false)))
RUN(run_st_global, store(b, t, i, memory(b, t, i, &i->operand[0], true)))
RUN(run_st_shared, store(b, t, i, memory(b, t, i, &i->operand[0], false)))

static const struct {
    const char *name;
    execute *run;
    size_t operands, width, lanes;
} operations[] = {
    {"mov.u32", run_mov, 2, 0, 0},
    {"mov.f32", run_mov, 2, 0, 0},
    {"mov.f64", run_mov, 2, 0, 0},
    {"add.u32", run_add32, 3, 0, 0},
    {"add.u64", run_add64, 3, 0, 0},
    {"add.f32", run_add_f32, 3, 0, 0},
    {"and.b32", run_and, 3, 0, 0},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", run_mma_f16, 14, 0, 0},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", run_mma_bf16, 14, 0, 0},
    {"cvt.rn.f16.f32", run_to_f16, 2, 0, 0},
    {"cvt.rn.bf16.f32", run_to_bf16, 2, 0, 0},
    {"cvt.u16.u32", run_narrow, 2, 0, 0},
    {"mov.b32", run_pack, 3, 0, 0},
    {"ld.shared.u32", run_ld_shared, 2, 4, 1},
    {"st.shared.u16", run_st_shared, 2, 2, 1},
    {"st.shared.v4.u32", run_st_shared, 5, 4, 4},
    {"st.global.u32", run_st_global, 2, 4, 1},
    {"or.b32", run_or, 3, 0, 0},
    {"xor.b32", run_xor, 3, 0, 0},
    {"setp.ne.u32", run_ne32, 3, 0, 0},
    {"shl.b32", run_shl32, 3, 0, 0},
    {"shl.b64", run_shl64, 3, 0, 0},
    {"shr.u32", run_shr, 3, 0, 0},
    {"mul.wide.u32", run_mul_wide, 3, 0, 0},
    {"mad.wide.u32", run_mad_wide, 4, 0, 0},
    {"mad.lo.u32", run_mad32, 4, 0, 0},
    {"mad.lo.u64", run_mad64, 4, 0, 0},
    {"cvt.u64.u32", run_widen, 2, 0, 0},
    {"cvt.u32.u64", run_widen, 2, 0, 0},
    {"cvt.rn.f32.u32", run_to_f32, 2, 0, 0},
    {"fma.rn.f32", run_fma_f32, 4, 0, 0},
    {"fma.rn.f64", run_fma_f64, 4, 0, 0},
    {"setp.ge.u64", run_ge64, 3, 0, 0},
    {"setp.lt.u32", run_lt32, 3, 0, 0},
    {"setp.lt.and.u32", run_lt_and32, 4, 0, 0},
    {"setp.eq.f32", run_eq_f32, 3, 0, 0},
    {"bra", run_branch, 0, 0, 0},
    {"bar.sync", run_barrier, 1, 0, 0},
    {"ret", run_return, 0, 0, 0},
    {"ld.param.u64", run_ld_param, 2, 8, 1},
    {"ld.param.u32", run_ld_param, 2, 4, 1},
    {"ld.global.f32", run_ld_global, 2, 4, 1},
    {"ld.global.f64", run_ld_global, 2, 8, 1},
    {"ld.global.v4.f32", run_ld_global, 5, 4, 4},
    {"ld.global.v4.u32", run_ld_global, 5, 4, 4},
    {"red.global.add.u32", run_red_add, 2, 4, 1},
    {"red.global.min.u32", run_red_min, 2, 4, 1},
    {"ld.shared.f32", run_ld_shared, 2, 4, 1},
    {"ld.shared.f64", run_ld_shared, 2, 8, 1},
    {"st.global.f32", run_st_global, 2, 4, 1},
    {"st.global.f64", run_st_global, 2, 8, 1},
    {"st.global.v4.f32", run_st_global, 5, 4, 4},
    {"st.shared.f32", run_st_shared, 2, 4, 1},
    {"st.shared.f64", run_st_shared, 2, 8, 1},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* Up to its end, the next barrier, or what the whole warp does together. */
static void run_thread(const struct ptx_function *f, struct block *b, struct thread *t)
{
    while (!t->is_done && !t->is_waiting && !t->mma && !b->has_failed && t->at < f->count) {
        const struct instruction *i = &f->code[t->at++];
        if (!i->is_conditional || t->registers[i->condition])
            i->run(b, t, i);
    }
    t->is_done |= t->at >= f->count;
}

/* Multiplies where all lanes of a warp have reached the same instruction. */
static void run_warps(const struct block *b, struct thread *threads)
{
    for (unsigned first = 0; first + 32 <= b->threads; first += 32) {
        struct thread *warp = &threads[first];
        unsigned lane = 0;
        while (lane < 32 && warp[lane].mma && warp[lane].mma == warp[0].mma)
            lane++;
        if (lane < 32)
            continue;
        multiply_in_warp(warp, warp[0].mma->run == run_mma_f16 ? GP_NUMBER_F16 : GP_NUMBER_BF16);
        for (lane = 0; lane < 32; lane++)
            warp[lane].mma = NULL;
    }
}

static bool run_block(const struct ptx_function *f, struct block *b, struct thread *threads)
{
    memset(threads, 0, b->threads * sizeof(*threads));
    for (;;) {
        unsigned waiting = 0;
        unsigned done = 0;
        for (unsigned t = 0; t < b->threads; t++) {
            threads[t].tid = t;
            run_thread(f, b, &threads[t]);
        }
        run_warps(b, threads);
        for (unsigned t = 0; t < b->threads; t++) {
            waiting += threads[t].is_waiting;
            done += threads[t].is_done;
            if (threads[t].mma) /* another lane is somewhere else */
                return false;
        }
        if (b->has_failed || done == b->threads)
            return !b->has_failed;
        if (waiting == b->threads)
            for (unsigned t = 0; t < b->threads; t++)
                threads[t].is_waiting = false;
        else if (waiting > 0)
            return false;
    }
}

bool ptx_run(const struct ptx_function *f, unsigned grid_x, unsigned grid_y, unsigned threads,
             void **parameters, ptx_may_access *may_access)
{
    struct block *b = calloc(1, sizeof(*b));
    struct thread *room = calloc(THREADS, sizeof(*room));
    bool is_good = b && room && threads <= THREADS;
    if (is_good)
        b->shared_bytes = f->shared_bytes;
    for (size_t p = 0; is_good && p < f->parameter_count; p++)
        memcpy(b->parameters + f->parameters[p].value, parameters[p], f->parameter_size[p]);
    for (unsigned y = 0; is_good && y < grid_y; y++)
        for (unsigned x = 0; is_good && x < grid_x; x++) {
            b->x = x;
            b->y = y;
            b->grid_x = grid_x;
            b->threads = threads;
            b->may_access = may_access;
            memset(b->shared, 0xFF,
                   sizeof(b->shared)); /* NaN: what was not stored must not be used */
            is_good = run_block(f, b, room);
        }
    free(room);
    free(b);
    return is_good;
}

/* ---- reading ---- */

struct reader {
    const char *p;
    struct ptx_function *f;
    char *log;
    size_t size;
    bool has_failed;
};

static void complain(struct reader *r, const char *what, const char *word)
{
    if (!r->has_failed)
        (void)snprintf(r->log, r->size, "%s: %.60s", what, word);
    r->has_failed = true;
}

/* A word: up to white space or one of , ; : { } ( ). A mark alone is a word, too. "": the end. */
static void next_word(struct reader *r, char word[NAME])
{
    static const char marks[] = ",;:{}()";
    r->p += strspn(r->p, " \t\n");
    size_t n = *r->p && strchr(marks, *r->p) ? 1 : strcspn(r->p, " \t\n,;:{}()");
    if (n >= NAME) {
        complain(r, "word too long", r->p);
        n = NAME - 1;
    }
    memcpy(word, r->p, n);
    word[n] = '\0';
    r->p += n;
}

static const struct symbol *find_symbol(const struct symbol *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static struct symbol *add_symbol(struct reader *r, struct symbol *list, size_t *count, size_t room,
                                 const char *name, uint64_t value)
{
    if (*count == room || find_symbol(list, *count, name)) {
        complain(r, "too many, or twice", name);
        return NULL;
    }
    struct symbol *s = &list[(*count)++];
    (void)snprintf(s->name, sizeof(s->name), "%.63s", name);
    s->value = value;
    return s;
}

static bool read_register(struct reader *r, const char *name, unsigned *ret)
{
    const struct symbol *s = find_symbol(r->f->registers, r->f->register_count, name);
    if (s)
        *ret = (unsigned)(s - r->f->registers);
    else
        complain(r, "register is not declared", name);
    return s;
}

static void read_memory(struct reader *r, const char *word, struct operand *o)
{
    char name[NAME];
    size_t n = strcspn(word + 1, "+]");
    (void)snprintf(name, sizeof(name), "%.*s", (int)n, word + 1);
    o->place = IN_MEMORY;
    o->value = word[1 + n] == '+' ? strtoull(word + 2 + n, NULL, 10) : 0;
    if (name[0] == '%') {
        (void)read_register(r, name, &o->at);
        return;
    }
    const struct symbol *s = find_symbol(r->f->parameters, r->f->parameter_count, name);
    if (!s)
        complain(r, "unknown address", name);
    else
        o->value += s->value;
    o->is_absolute = true;
}

static void read_operand(struct reader *r, const char *word, struct operand *o)
{
    static const char *const specials[] = {"%tid.x", "%ntid.x", "%ctaid.x", "%ctaid.y",
                                           "%nctaid.x"};
    const struct symbol *s;
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
        if (strcmp(word, specials[i]) == 0) {
            *o = (struct operand){.place = SPECIAL, .at = (unsigned)i};
            return;
        }
    if (word[0] == '[')
        read_memory(r, word, o);
    else if (word[0] == '%')
        (void)read_register(r, word, &o->at);
    else if (strncmp(word, "0f", 2) == 0 || strncmp(word, "0d", 2) == 0)
        *o = (struct operand){.place = CONSTANT, .value = strtoull(word + 2, NULL, 16)};
    else if (word[0] >= '0' && word[0] <= '9')
        *o = (struct operand){.place = CONSTANT, .value = strtoull(word, NULL, 10)};
    else if ((s = find_symbol(r->f->shared, r->f->shared_count, word)))
        *o = (struct operand){.place = CONSTANT, .value = s->value};
    else
        complain(r, "unknown operand", word);
}

static void read_instruction(struct reader *r, char word[NAME])
{
    struct instruction *code = realloc(r->f->code, (r->f->count + 1) * sizeof(*code));
    if (!code) {
        complain(r, "out of memory", "");
        return;
    }
    r->f->code = code;
    struct instruction *i = &code[r->f->count++];
    *i = (struct instruction){0};
    if (word[0] == '@') {
        i->is_conditional = true;
        (void)read_register(r, word + 1, &i->condition);
        next_word(r, word);
    }
    size_t op = 0;
    while (op < OPERATIONS && strcmp(operations[op].name, word) != 0)
        op++;
    if (op == OPERATIONS) {
        complain(r, "unknown instruction", word);
        return;
    }
    i->run = operations[op].run;
    i->width = operations[op].width;
    i->lanes = operations[op].lanes;
    for (next_word(r, word); strcmp(word, ";") != 0 && !r->has_failed; next_word(r, word)) {
        if (strchr(",{}", word[0]) && word[0])
            continue;
        if (!word[0])
            complain(r, "missing ;", "");
        else if (i->run == run_branch)
            memcpy(i->label, word, NAME);
        else if (i->operands == OPERANDS)
            complain(r, "too many operands", word);
        else
            read_operand(r, word, &i->operand[i->operands++]);
    }
    if (i->operands != operations[op].operands)
        complain(r, "wrong number of operands", operations[op].name);
}

/* ".reg .b32 %r<8>;" ".shared .align 16 .b8 name[64];" ".param .u64 name" */
static void read_registers(struct reader *r)
{
    char word[NAME];
    char stem[NAME];
    char name[NAME];
    next_word(r, word);
    next_word(r, word);
    size_t n = strcspn(word, "<");
    (void)snprintf(stem, sizeof(stem), "%.*s", (int)n, word);
    unsigned long count = word[n] ? strtoul(word + n + 1, NULL, 10) : 0;
    for (unsigned long k = 0; k < count && !r->has_failed; k++) {
        (void)snprintf(name, sizeof(name), "%.20s%lu", stem, k);
        (void)add_symbol(r, r->f->registers, &r->f->register_count, REGISTERS, name, 0);
    }
    next_word(r, word);
}

static void read_shared(struct reader *r)
{
    char word[NAME];
    for (next_word(r, word); word[0] == '.' || (word[0] >= '0' && word[0] <= '9');
         next_word(r, word))
        ;
    size_t n = strcspn(word, "[");
    size_t bytes = word[n] ? strtoul(word + n + 1, NULL, 10) : 0;
    word[n] = '\0';
    (void)add_symbol(r, r->f->shared, &r->f->shared_count, SYMBOLS, word, r->f->shared_bytes);
    r->f->shared_bytes += (bytes + 15) / 16 * 16;
    if (r->f->shared_bytes > SHARED_BYTES)
        complain(r, "too much shared memory", word);
    next_word(r, word);
}

static void read_parameters(struct reader *r)
{
    char word[NAME];
    for (next_word(r, word); strcmp(word, ")") != 0 && word[0] && !r->has_failed;
         next_word(r, word)) {
        if (word[0] != '.' || strcmp(word, ".param") == 0)
            continue;
        size_t bytes = strcmp(word, ".u64") == 0 ? 8 : 4;
        next_word(r, word);
        size_t at = (r->f->parameter_bytes + bytes - 1) / bytes * bytes;
        r->f->parameter_size[r->f->parameter_count % SYMBOLS] = bytes;
        (void)add_symbol(r, r->f->parameters, &r->f->parameter_count, SYMBOLS, word, at);
        r->f->parameter_bytes = at + bytes;
    }
}

static void read_body(struct reader *r)
{
    char word[NAME];
    for (next_word(r, word); strcmp(word, "}") != 0 && !r->has_failed; next_word(r, word)) {
        const char *before = r->p;
        char mark[NAME];
        next_word(r, mark);
        if (!word[0])
            complain(r, "missing }", "");
        else if (strcmp(mark, ":") == 0) {
            (void)add_symbol(r, r->f->labels, &r->f->label_count, SYMBOLS, word, r->f->count);
            continue;
        }
        r->p = before;
        if (strcmp(word, ".reg") == 0)
            read_registers(r);
        else if (strcmp(word, ".shared") == 0)
            read_shared(r);
        else
            read_instruction(r, word);
    }
    for (size_t i = 0; i < r->f->count && !r->has_failed; i++) {
        struct instruction *code = &r->f->code[i];
        const struct symbol *label = find_symbol(r->f->labels, r->f->label_count, code->label);
        if (code->run == run_branch && !label)
            complain(r, "unknown label", code->label);
        else if (label)
            code->target = label->value;
    }
}

static void read_entry(struct reader *r, struct ptx_module *module)
{
    char word[NAME];
    next_word(r, word); /* .entry */
    r->f = calloc(1, sizeof(*r->f));
    if (!r->f) {
        complain(r, "out of memory", "");
        return;
    }
    r->f->next = module->first;
    module->first = r->f;
    next_word(r, r->f->name);
    next_word(r, word); /* ( */
    read_parameters(r);
    next_word(r, word); /* { */
    read_body(r);
}

struct ptx_module *ptx_load(const char *text, char *log, size_t size)
{
    struct reader r = {.p = text, .log = log, .size = size};
    struct ptx_module *module = calloc(1, sizeof(*module));
    char word[NAME];
    if (!module)
        return NULL;
    for (next_word(&r, word); word[0] && !r.has_failed; next_word(&r, word)) {
        if (strcmp(word, ".visible") == 0)
            read_entry(&r, module);
        else if (strcmp(word, ".version") == 0 || strcmp(word, ".target") == 0 ||
                 strcmp(word, ".address_size") == 0)
            next_word(&r, word);
        else
            complain(&r, "unknown directive", word);
    }
    if (!r.has_failed)
        return module;
    ptx_free(module);
    return NULL;
}

void ptx_free(struct ptx_module *module)
{
    while (module && module->first) {
        struct ptx_function *f = module->first;
        module->first = f->next;
        free(f->code);
        free(f);
    }
    free(module);
}

struct ptx_function *ptx_find(struct ptx_module *module, const char *name)
{
    struct ptx_function *f = module->first;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}
