/* What models need, against figures that can be checked by hand, and where that fits. */
#include "unit.h"

#include "jobs/estimate.h"

/* Bytes are whole numbers far below 2^53, so they are compared exactly. */
static void is(const char *what, double got, double expected)
{
    if (!(got >= expected && got <= expected))
        fail_msg("%s: %.1f, expected %.1f", what, got, expected);
}

static struct gp_model model_of(double params, const char *dtype, const char *optimizer)
{
    struct gp_model m = {.params = params, .dtype = gp_dtype(dtype)};
    m.optimizer = optimizer ? gp_optimizer(optimizer) : NULL;
    assert_non_null(m.dtype);
    assert_true(!optimizer || m.optimizer);
    return m;
}

static double bytes_of(const struct gp_estimate *e, enum gp_term_kind kind)
{
    const struct gp_estimate_term *term = gp_estimate_term(e, kind);
    return term ? term->bytes : 0;
}

static void states_of_a_parameter(void **state)
{
    (void)state;
    static const struct {
        const char *dtype, *optimizer; /* NULL: it answers only */
        double bytes;                  /* of each parameter */
    } cases[] = {
        {"bf16", "adamw", 18},    {"fp16", "adamw", 18},     {"fp32", "adamw", 16},
        {"tf32", "adamw", 16},    {"bf16", "adam", 18},      {"bf16", "adamw8bit", 12},
        {"bf16", "momentum", 14}, {"bf16", "sgd", 10},       {"bf16", "adafactor", 10},
        {"bf16", "none", 6},      {"fp32", "sgd", 8},        {"fp32", "momentum", 12},
        {"fp32", "none", 8},      {"fp32", "adamw8bit", 10}, {"fp32", NULL, 4},
        {"tf32", NULL, 4},        {"bf16", NULL, 2},         {"fp16", NULL, 2},
        {"int8", NULL, 1},        {"int4", NULL, 0.5},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const struct gp_model m = model_of(7e9, cases[i].dtype, cases[i].optimizer);
        const struct gp_estimate e = gp_estimate(&m);
        is(cases[i].dtype, e.states, 7e9 * cases[i].bytes);
        is("split", e.split, e.states);
        is("total", e.total, e.states + GP_CONTEXT_BYTES);
    }
}

static void terms_of_mixed_precision(void **state)
{
    (void)state;
    const struct gp_model m = model_of(7e9, "bf16", "adamw");
    const struct gp_estimate e = gp_estimate(&m);
    is("weights", bytes_of(&e, GP_TERM_WEIGHTS), 14e9);
    is("master", bytes_of(&e, GP_TERM_MASTER), 28e9);
    is("gradients", bytes_of(&e, GP_TERM_GRADIENTS), 28e9);
    is("optimizer", bytes_of(&e, GP_TERM_OPTIMIZER), 56e9);
    is("states", e.states, 126e9);
    assert_int_equal(e.count, 5);
    assert_null(gp_estimate_term(&e, GP_TERM_ACTIVATIONS));
    assert_null(gp_estimate_term(&e, GP_TERM_LOGITS));
    assert_string_equal(gp_estimate_term(&e, GP_TERM_OPTIMIZER)->formula,
                        "7000000000 parameters x 8 B");
}

static void no_terms_of_training_in_answers(void **state)
{
    (void)state;
    const struct gp_model m = model_of(7e9, "fp16", NULL);
    const struct gp_estimate e = gp_estimate(&m);
    is("states", e.states, 14e9);
    assert_null(gp_estimate_term(&e, GP_TERM_MASTER));
    assert_null(gp_estimate_term(&e, GP_TERM_GRADIENTS));
    assert_null(gp_estimate_term(&e, GP_TERM_OPTIMIZER));
}

/* GPT-3, one sequence: 34 bytes for each of 2048 x 12288 numbers in each of 96 layers. */
static void activations(void **state)
{
    (void)state;
    struct gp_model m = model_of(175e9, "bf16", "adamw");
    m.batch = 1;
    m.seq = 2048;
    m.hidden = 12288;
    m.layers = 96;
    m.vocab = 51200;
    struct gp_estimate e = gp_estimate(&m);
    is("activations", bytes_of(&e, GP_TERM_ACTIVATIONS), 2048.0 * 12288 * 96 * 34);
    is("logits", bytes_of(&e, GP_TERM_LOGITS), 2048.0 * 51200 * 4);
    assert_null(gp_estimate_term(&e, GP_TERM_ATTENTION));
    assert_null(gp_estimate_term(&e, GP_TERM_CACHE));
    double one = bytes_of(&e, GP_TERM_ACTIVATIONS);
    m.heads = 96;
    m.batch = 3;
    e = gp_estimate(&m);
    is("three of them", bytes_of(&e, GP_TERM_ACTIVATIONS), 3 * one);
    is("attention", bytes_of(&e, GP_TERM_ATTENTION), 3.0 * 96 * 2048 * 2048 * 96 * 5);
    double sum = 0;
    for (size_t i = 0; i < e.count; i++)
        sum += e.terms[i].bytes;
    is("total", e.total, sum);
    is("split", e.split, 175e9 * 18);
    m.dtype = gp_dtype("fp32");
    e = gp_estimate(&m);
    is("in fp32", bytes_of(&e, GP_TERM_ACTIVATIONS), 3.0 * 2048 * 12288 * 96 * 66);
    is("attention in fp32", bytes_of(&e, GP_TERM_ATTENTION), 3.0 * 96 * 2048 * 2048 * 96 * 9);
}

/* Llama 2 7B keeps half a MiB of keys and values for each token. */
static void answers_keep_keys_and_values(void **state)
{
    (void)state;
    struct gp_model m = model_of(6738415616, "fp16", NULL);
    m.batch = 1;
    m.seq = 4096;
    m.hidden = 4096;
    m.layers = 32;
    m.vocab = 32000;
    struct gp_estimate e = gp_estimate(&m);
    is("cache", bytes_of(&e, GP_TERM_CACHE), 4096 * 0x1p19);
    is("logits", bytes_of(&e, GP_TERM_LOGITS), 32000.0 * 4);
    is("split", e.split, 6738415616.0 * 2 + 4096 * 0x1p19);
    is("states", e.states, 6738415616.0 * 2);
    is("activations", bytes_of(&e, GP_TERM_ACTIVATIONS), 4096.0 * 4096 * 20);
    m.dtype = gp_dtype("int4"); /* computes in 16 bits */
    e = gp_estimate(&m);
    is("cache of int4", bytes_of(&e, GP_TERM_CACHE), 4096 * 0x1p19);
    is("weights of int4", bytes_of(&e, GP_TERM_WEIGHTS), 6738415616.0 / 2);
}

static void what_is_not_given_is_not_counted(void **state)
{
    (void)state;
    struct gp_model m = model_of(1e9, "bf16", "adamw");
    m.batch = 8;
    m.seq = 1024;
    m.hidden = 2048; /* no layers */
    m.heads = 16;
    struct gp_estimate e = gp_estimate(&m);
    assert_int_equal(e.count, 5);
    m.hidden = 0;
    m.vocab = 1000;
    e = gp_estimate(&m);
    assert_int_equal(e.count, 6);
    m.seq = 0;
    e = gp_estimate(&m);
    assert_int_equal(e.count, 5);
}

static void answers_of_a_model_without_a_width(void **state)
{
    (void)state;
    struct gp_model m = model_of(1e9, "bf16", NULL);
    m.batch = 8;
    m.seq = 1024;
    m.layers = 16;
    struct gp_estimate e = gp_estimate(&m);
    assert_int_equal(e.count, 2); /* the weights, the context */
    m.hidden = 2048;
    m.layers = 0;
    e = gp_estimate(&m);
    assert_int_equal(e.count, 2);
}

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        bool of_dtypes;
    } lists[] = {{GP_DTYPE_WORDS, true}, {GP_OPTIMIZER_WORDS, false}};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        char words[128];
        (void)snprintf(words, sizeof(words), "%s", lists[i].words);
        for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) {
            const char *name = NULL;
            if (lists[i].of_dtypes && gp_dtype(w))
                name = gp_dtype(w)->name;
            if (!lists[i].of_dtypes && gp_optimizer(w))
                name = gp_optimizer(w)->name;
            if (!name || strcmp(name, w) != 0)
                fail_msg("'%s' is %s", w, name ? name : "not known");
        }
    }
    assert_null(gp_dtype("fp64"));
    assert_null(gp_optimizer(""));
}

/* The longest numbers still fit into the formula. */
static void formulas_are_whole(void **state)
{
    (void)state;
    for (int answers = 0; answers < 2; answers++) {
        struct gp_model m = model_of(8.9e18, "bf16", answers ? NULL : "adamw");
        m.batch = m.seq = m.hidden = m.layers = m.vocab = m.heads = 1e9;
        const struct gp_estimate e = gp_estimate(&m);
        for (size_t i = 0; i < e.count; i++) {
            const char *formula = e.terms[i].formula;
            size_t n = strlen(formula);
            if (n < 2 || (formula[n - 1] != 'B'))
                fail_msg("%s: '%s' is cut", gp_term_word(e.terms[i].kind), formula);
        }
    }
}

static void places(void **state)
{
    (void)state;
    const struct gp_model m = model_of(1e9, "bf16", "adamw");
    const struct gp_estimate e = gp_estimate(&m);
    double rest = GP_CONTEXT_BYTES;
    double total = 18e9 + rest;
    const struct {
        const char *title;
        double room, free;
        enum gp_room fit;
        double short_by;
        unsigned gpus;
    } cases[] = {
        {"free as it is", 80e9, 60e9, GP_ROOM_NOW, 0, 1},
        {"exactly", total, total, GP_ROOM_NOW, 0, 1},
        {"a byte in use", total, total - 1, GP_ROOM_EMPTY, 1, 1},
        {"a byte too small", total - 1, total - 1, GP_ROOM_NOT, 1, 2},
        {"in use", 80e9, 10e9, GP_ROOM_EMPTY, total - 10e9, 1},
        {"half of it", 9e9 + rest, 9e9 + rest, GP_ROOM_NOT, 9e9, 2},
        {"a bit less than half of it", 9e9 + rest - 1, 0, GP_ROOM_NOT, 9e9 + 1, 3},
        {"a tenth", 1.8e9 + rest, 0, GP_ROOM_NOT, 16.2e9, 10},
        {"no room beside the context", rest, 0, GP_ROOM_NOT, 18e9, 0},
        {"less than the context", 1, 1, GP_ROOM_NOT, total - 1, 0},
        {"nothing known", -1, -1, GP_ROOM_UNKNOWN, 0, 0},
        {"only what is free", -1, 60e9, GP_ROOM_NOW, 0, 0},
        {"not what is free", 80e9, -1, GP_ROOM_UNKNOWN, 0, 1},
        {"too small, whatever is free", 9e9 + rest, -1, GP_ROOM_NOT, 9e9, 2},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const struct gp_placement p = gp_estimate_place(&e, cases[i].room, cases[i].free);
        if (p.fit != cases[i].fit || p.gpus != cases[i].gpus)
            fail_msg("%s: fit %d on %u GPUs, expected %d on %u", cases[i].title, (int)p.fit, p.gpus,
                     (int)cases[i].fit, cases[i].gpus);
        is(cases[i].title, p.short_by, cases[i].short_by);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_of_a_parameter),
        cmocka_unit_test(terms_of_mixed_precision),
        cmocka_unit_test(no_terms_of_training_in_answers),
        cmocka_unit_test(activations),
        cmocka_unit_test(answers_keep_keys_and_values),
        cmocka_unit_test(what_is_not_given_is_not_counted),
        cmocka_unit_test(answers_of_a_model_without_a_width),
        cmocka_unit_test(names),
        cmocka_unit_test(formulas_are_whole),
        cmocka_unit_test(places),
    };
    return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
