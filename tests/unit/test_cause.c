/* Why a program found no memory: the rules at their bounds, and the sentences. */
#include "unit.h"

#include "base/strbuf.h"
#include "jobs/failure.h"

enum { OTHERS = 7 };

/* GiB; below 0: not known. */
struct numbers {
    double tried, total, free, allocated, cached, allowed, graphs, self;
    double others[2];
    bool of_job, is_misplaced;
};

#define NO (-1)

static void set(struct gp_failure *f, enum gp_failure_field field, double gib)
{
    if (gib >= 0)
        gp_failure_set(f, field, (uint64_t)(gib * 0x1p30));
}

static struct gp_failure failure_of(const struct numbers *n)
{
    struct gp_failure f = {.id = "x",
                           .framework = "PyTorch",
                           .cause = GP_CAUSE_BY_NUMBERS,
                           .is_misplaced = n->is_misplaced};
    set(&f, GP_FAILURE_TRIED, n->tried);
    set(&f, GP_FAILURE_TOTAL, n->total);
    set(&f, GP_FAILURE_FREE, n->free);
    set(&f, GP_FAILURE_ALLOCATED, n->allocated);
    set(&f, GP_FAILURE_CACHED, n->cached);
    set(&f, GP_FAILURE_ALLOWED, n->allowed);
    set(&f, GP_FAILURE_GRAPHS, n->graphs);
    set(&f, GP_FAILURE_SELF, n->self);
    for (size_t i = 0; i < 2; i++)
        if (n->others[i] > 0)
            f.others[f.other_count++] =
                (struct gp_failure_other){.pid = (int64_t)(100 + i),
                                          .bytes = (uint64_t)(n->others[i] * 0x1p30),
                                          .is_of_job = n->of_job};
    return f;
}

static void words_of(struct gp_failure *f, char *text, size_t size)
{
    const struct gp_causes causes = gp_causes_of(f);
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < causes.count && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i > 0 ? " " : "",
                              gp_cause_word(causes.items[i]));
}

struct judgement {
    struct numbers numbers;
    const char *expected;
};

static void are_judged(const struct judgement *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char words[256];
        struct gp_failure f = failure_of(&cases[i].numbers);
        words_of(&f, words, sizeof(words));
        if (strcmp(words, cases[i].expected) != 0)
            fail_msg("row %zu is judged '%s', not '%s'", i, words, cases[i].expected);
    }
}

/* In columns: tried, total, free, allocated, cached, allowed, graphs, self, others. */
static void what_the_gpu_and_the_program_have(void **state)
{
    (void)state;
    static const struct judgement cases[] = {
        {{2, 100, 1, 98, NO, NO, NO, NO}, "too-big"},
        {{2, NO, NO, 98, NO, NO, NO, NO}, "unknown"},
        {{NO, NO, NO, NO, NO, NO, NO, NO}, "unknown"},
        /* more than the whole GPU */
        {{100, 100, 1, 98, NO, NO, NO, NO}, "too-big"},
        {{101, 100, 1, 98, NO, NO, NO, NO}, "impossible"},
        {{2, 100, 0, 102, NO, NO, NO, NO}, "too-big"},
        {{2, 100, 0, 102.5, NO, NO, NO, NO}, "oversubscribed"},
        /* a limit */
        {{2, 100, 1, 97, 1, 100, NO, NO}, "too-big"},
        {{2, 100, 1, 97, 1, 99, NO, NO}, "limit"},
        {{NO, 100, 1, 97, 1, 98, NO, NO}, "too-big"},
        {{NO, 100, 1, 97, 1, 97, NO, NO}, "limit"},
        /* it was not full */
        {{20, 100, 21, 75, NO, NO, NO, NO}, "too-big"},
        {{20, 100, 21.5, 75, NO, NO, NO, NO}, "not-full"},
        {{1, 100, 1.9, 97, NO, NO, NO, NO}, "too-big"}, /* nearly */
        {{1, 100, 2.1, 97, NO, NO, NO, NO}, "not-full"},
        /* the size is not known, and much or little was free */
        {{NO, 100, 10.5, 88, NO, NO, NO, NO}, "unsized"},
        {{NO, 100, 10, 88, NO, NO, NO, NO}, "too-big"},
        /* graphs */
        {{2, 92, 1, 90, NO, NO, 9, NO}, "too-big"},
        {{2, 92, 1, 90, NO, NO, 9.5, NO}, "too-big graphs"},
    };
    are_judged(cases, GP_ARRAY_LEN(cases));
}

/* Only where what is free does not do and what is free and cached would. */
static void memory_in_pieces(void **state)
{
    (void)state;
    static const struct judgement cases[] = {
        {{20, 100, 19.5, 66, 10, NO, NO, NO}, "fragmentation"},
        {{20, 100, 20, 66, 10, NO, NO, NO}, "too-big"}, /* enough is free in one piece */
        {{20, 100, 20.5, 66, 10, NO, NO, NO}, "too-big"},
        {{20, 100, 5, 76, 15, NO, NO, NO}, "fragmentation"},
        {{20.5, 100, 5, 76, 15, NO, NO, NO}, "too-big"},
        {{20, 100, 15, 71, 10, NO, NO, NO}, "fragmentation"},
        {{20, 100, 15, 71, 9.5, NO, NO, NO}, "too-big"}, /* less than half of it */
        {{2, 100, 1, 94, 2, NO, NO, NO}, "fragmentation"},
        {{2, 100, 1, 94, 1.5, NO, NO, NO}, "too-big"}, /* too little for a GPU of this size */
    };
    are_judged(cases, GP_ARRAY_LEN(cases));
}

static void others_on_the_gpu(void **state)
{
    (void)state;
    static const struct judgement cases[] = {
        {{2, 100, 1, 92, NO, NO, NO, 92, {5}}, "too-big"}, /* too little to matter */
        {{2, 100, 1, 92, NO, NO, NO, 92, {5.5}}, "others"},
        {{2, 100, 1, 92, NO, NO, NO, 92, {3, 2.5}}, "others"},
        {{30, 100, 10, 69, NO, NO, NO, 69, {20}}, "others"},
        {{31, 100, 10, 69, NO, NO, NO, 69, {20}}, "too-big"}, /* without them it would not fit */
        {{30, 100, 10, 69, NO, NO, NO, 69, {20}, .of_job = true}, "others ranks"},
        {{31, 100, 10, 69, NO, NO, NO, 69, {20}, .of_job = true}, "too-big"},
        /* nobody who is listed */
        {{10, 100, 5, 90, NO, NO, NO, 90}, "too-big"},
        {{2, 100, 1, 90, NO, NO, NO, 93.5}, "invisible"},
        {{2, 10, 1, 7.5, NO, NO, NO, 7.5}, "too-big"},
        {{2, 10, 1, 7.25, NO, NO, NO, 7.25}, "invisible"},
        {{2, 10, 1, 4.5, NO, NO, NO, 4.5, {3}}, "others"},
        /* nobody is listed, not even the program itself */
        {{2, 100, 1, 94, NO, NO, NO, NO}, "too-big"},
        {{2, 100, 1, 93.5, NO, NO, NO, NO}, "unaccounted"},
        {{2, 10, 1, 7, NO, NO, NO, NO}, "too-big"},
        {{2, 10, 1, 6.5, NO, NO, NO, NO}, "unaccounted"},
        {{2, 100, 1, 90, NO, NO, NO, NO, {3}}, "too-big"},
        /* more than the framework knows of */
        {{2, 100, 1, 88, 1, NO, NO, 99}, "too-big"},
        {{2, 100, 1, 87.5, 1, NO, NO, 99}, "non-framework"},
    };
    are_judged(cases, GP_ARRAY_LEN(cases));
}

/* One of the others that has what the program allocated, and a little more, is the program. */
static void which_of_the_others_is_the_program_itself(void **state)
{
    (void)state;
    static const struct judgement cases[] = {
        {{2, 54, 1, 50, NO, NO, NO, NO, {48.5}}, "others"},
        {{2, 54, 1, 50, NO, NO, NO, NO, {49}}, "invisible self"},
        {{2, 54, 1, 50, NO, NO, NO, NO, {53}}, "too-big self"},
        {{2, 54, 1, 50, NO, NO, NO, NO, {53.5}}, "others"},
        {{2, 104, 1, 50, NO, NO, NO, NO, {50, 53}}, "others self"}, /* one only */
        {{2, 54, 1, 50, NO, NO, NO, 50, {52}}, "others"},           /* it is known */
        {{2, 54, 1, 0, NO, NO, NO, NO, {2}}, "too-big"},
    };
    are_judged(cases, GP_ARRAY_LEN(cases));
    struct gp_failure f = failure_of(&cases[4].numbers);
    (void)gp_causes_of(&f);
    assert_int_equal(f.self_pid, 100);
    assert_int_equal(f.values[GP_FAILURE_SELF], UINT64_C(50) << 30);
    assert_int_equal(f.other_count, 1);
    assert_int_equal(f.others[0].pid, 101);
}

static void a_gpu_that_it_was_not_given(void **state)
{
    (void)state;
    static const struct judgement cases[] = {
        {{2, 100, 1, 98, NO, NO, NO, NO, .is_misplaced = true}, "wrong-gpu too-big"},
        {{2, NO, 1, 98, NO, NO, NO, NO, .is_misplaced = true}, "wrong-gpu unknown"},
        {{101, 100, 1, 98, NO, NO, NO, NO, .is_misplaced = true}, "wrong-gpu impossible"},
    };
    are_judged(cases, GP_ARRAY_LEN(cases));
}

/* What is known without numbers is not judged by them. */
static void causes_that_are_known(void **state)
{
    (void)state;
    const struct numbers numbers = {101, 100, 1, 98, NO, NO, NO, NO};
    struct gp_failure f = failure_of(&numbers);
    f.cause = GP_CAUSE_NCCL;
    struct gp_causes causes = gp_causes_of(&f);
    assert_int_equal(causes.count, 1);
    assert_int_equal(causes.items[0], GP_CAUSE_NCCL);
    f.cause = GP_CAUSE_NONE;
    assert_int_equal(gp_causes_of(&f).count, 0);
}

/* ---- the sentences ---- */

static void why_is(enum gp_cause cause, const struct gp_failure *f, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_cause_add_why(&sb, cause, f);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void next_is(enum gp_cause cause, const struct gp_failure *f, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_cause_add_next(&sb, cause, f);
    assert_string_equal(sb.buf ? sb.buf : "", expected);
    gp_strbuf_fini(&sb);
}

static void sizes(void **state)
{
    (void)state;
    struct gp_failure f = failure_of(&(struct numbers){NO, NO, NO, NO, NO, NO, NO, NO});
    why_is(GP_CAUSE_QUOTA, &f, "a quota of ? is used up; the GPU is not full");
    gp_failure_set(&f, GP_FAILURE_ALLOWED, 0);
    why_is(GP_CAUSE_QUOTA, &f, "a quota of 0.0 MiB is used up; the GPU is not full");
    gp_failure_set(&f, GP_FAILURE_ALLOWED, (UINT64_C(1) << 30) - (1 << 20));
    why_is(GP_CAUSE_QUOTA, &f, "a quota of 1023.0 MiB is used up; the GPU is not full");
    gp_failure_set(&f, GP_FAILURE_ALLOWED, UINT64_C(1) << 30);
    why_is(GP_CAUSE_QUOTA, &f, "a quota of 1.00 GiB is used up; the GPU is not full");
    why_is(GP_CAUSE_LIBRARY, &f, "a CUDA library could not be initialized");
    /* what would be below 0 is not known */
    f = failure_of(&(struct numbers){2, 10, 1, 8, 1, NO, NO, 3});
    why_is(GP_CAUSE_NON_FRAMEWORK, &f,
           "? of this process are not PyTorch's: NCCL, cuDNN, or another framework");
}

static void who_they_are(void **state)
{
    (void)state;
    struct gp_failure f = failure_of(&(struct numbers){2, 10, NO, 3, NO, NO, NO, NO, {1, 2}});
    why_is(GP_CAUSE_OTHERS, &f,
           "other processes use 3.00 GiB of 10.00 GiB: pid 100 (1.00 GiB), pid 101 (2.00 "
           "GiB); one of them may be the program itself");
    f.other_count = 1;
    f.others[0].is_of_job = true;
    why_is(GP_CAUSE_OTHERS, &f,
           "other processes use 1.00 GiB of 10.00 GiB: pid 100, in this job (1.00 GiB); this may "
           "be the program itself");
    why_is(GP_CAUSE_RANKS, &f, "1 more processes of this job use the same GPU");
    (void)snprintf(f.others[0].who, sizeof(f.others[0].who), "ann: x");
    why_is(GP_CAUSE_OTHERS, &f,
           "other processes use 1.00 GiB of 10.00 GiB: pid 100 of ann: x, in this job (1.00 "
           "GiB)");
    gp_failure_set(&f, GP_FAILURE_SELF, 1);
    for (size_t i = 0; i < OTHERS; i++)
        f.others[i] = (struct gp_failure_other){.pid = (int64_t)i + 1, .bytes = 1 << 20};
    f.other_count = 5;
    why_is(GP_CAUSE_OTHERS, &f,
           "other processes use 5.0 MiB of 10.00 GiB: pid 1 (1.0 MiB), pid 2 (1.0 MiB), "
           "pid 3 (1.0 MiB), pid 4 (1.0 MiB), pid 5 (1.0 MiB)");
    f.other_count = OTHERS;
    why_is(GP_CAUSE_OTHERS, &f,
           "other processes use 7.0 MiB of 10.00 GiB: pid 1 (1.0 MiB), pid 2 (1.0 MiB), "
           "pid 3 (1.0 MiB), pid 4 (1.0 MiB), pid 5 (1.0 MiB) and 2 more");
}

static void the_fraction_that_would_do(void **state)
{
    (void)state;
    static const struct {
        double free;
        const char *expected;
    } cases[] = {
        {10.5, "0.10"}, {100.2, "0.99"}, {99.5, "0.99"}, {1.5, "0.01"}, {1.25, "?"}, {0, "?"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char expected[128];
        struct gp_failure f =
            failure_of(&(struct numbers){2, 100, cases[i].free, NO, NO, NO, NO, NO});
        (void)snprintf(
            expected, sizeof(expected),
            "--gpu-memory-utilization %s would fit; or free memory on the GPU: gpulse ps",
            cases[i].expected);
        next_is(GP_CAUSE_VLLM_FRACTION, &f, expected);
    }
}

static void what_makes_a_program_smaller(void **state)
{
    (void)state;
    static const struct {
        const char *framework, *beginning;
    } cases[] = {
        {"PyTorch", "a smaller batch (gpulse fit-batch"},
        {"llama.cpp", "fewer layers on the GPU (-ngl)"},
        {"JAX", "a smaller batch; XLA_PYTHON_CLIENT_PREALLOCATE=false"},
        {"TensorFlow", "a smaller batch; TF_FORCE_GPU_ALLOW_GROWTH=true"},
        {"RAPIDS", "smaller parts of the data"},
        {"", "a smaller batch or model, or a larger GPU"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_failure f = failure_of(&(struct numbers){2, 100, 1, 98, NO, NO, NO, NO});
        struct gp_strbuf sb = GP_STRBUF_INIT(4096);
        f.framework = cases[i].framework;
        gp_cause_add_next(&sb, GP_CAUSE_TOO_BIG, &f);
        assert_ptr_equal(strstr(sb.buf, cases[i].beginning), sb.buf);
        gp_strbuf_fini(&sb);
    }
}

/* A part in brackets goes with what is not known in it, and with nothing else. */
static void parts_that_are_left_out(void **state)
{
    (void)state;
    struct gp_failure f = failure_of(&(struct numbers){NO, 10, NO, 8, NO, NO, NO, NO});
    why_is(GP_CAUSE_TOO_BIG, &f,
           "the program itself needs more than there is: it uses 8.00 GiB; the GPU has 10.00 GiB");
    next_is(GP_CAUSE_VLLM_LENGTH, &f,
            "raise --gpu-memory-utilization, or use more GPUs (--tensor-parallel-size)");
    gp_failure_set(&f, GP_FAILURE_MOST, 4096);
    next_is(GP_CAUSE_VLLM_LENGTH, &f,
            "--max-model-len 4096; raise --gpu-memory-utilization, or use more GPUs "
            "(--tensor-parallel-size)");
    gp_failure_set(&f, GP_FAILURE_REQUIRED, 0);
    why_is(GP_CAUSE_VLLM_LENGTH, &f,
           "too little memory is left for the KV cache: 0 tokens are needed");
    f.place = 3;
    f.self_pid = 4711;
    why_is(GP_CAUSE_WRONG_GPU, &f, "the program used GPU 3, which it was not given");
    why_is(GP_CAUSE_SELF, &f,
           "process 4711 is the program itself, which does not know its host PID inside a "
           "container");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_gpu_and_the_program_have),
        cmocka_unit_test(memory_in_pieces),
        cmocka_unit_test(others_on_the_gpu),
        cmocka_unit_test(which_of_the_others_is_the_program_itself),
        cmocka_unit_test(a_gpu_that_it_was_not_given),
        cmocka_unit_test(causes_that_are_known),
        cmocka_unit_test(sizes),
        cmocka_unit_test(who_they_are),
        cmocka_unit_test(the_fraction_that_would_do),
        cmocka_unit_test(what_makes_a_program_smaller),
        cmocka_unit_test(parts_that_are_left_out),
    };
    return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}
