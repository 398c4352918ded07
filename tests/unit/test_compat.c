/* What runs where: known cases, written down by hand, and what must hold for all of the tables. */
#include "rows.h"

#include "doctor/builds.h"
#include "doctor/version.h"

/* The variants of the kernel module in which this driver supports this GPU, a set of GP_MODULE_…;
 * 0: none. Unknown properties of the GPU or the driver do not restrict the result. */
static unsigned variants_of(const char *driver, unsigned capability)
{
    const struct gp_driver *row = gp_driver_find(driver);
    const struct gp_arch *arch = gp_arch_find(capability);
    unsigned all = GP_MODULE_PROPRIETARY | GP_MODULE_OPEN;
    return (row ? row->modules : all) & (arch ? arch->modules : all);
}

static const char *fit_word(enum gp_code_fit fit)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_FITS(X)
#undef X
    };
    return words[fit];
}

static void drivers_and_cuda(void **state)
{
    (void)state;
    assert_string_equal(gp_cuda_ceiling("550.54.14"), "12.4");
    assert_string_equal(gp_cuda_ceiling("470.256.02"), "11.4");
    assert_string_equal(gp_cuda_ceiling("546.29"), "12.3"); /* no branch of its own */
    assert_string_equal(gp_cuda_ceiling("580"), "13.0");
    assert_string_equal(gp_cuda_ceiling("620.10"), ""); /* not published */
    assert_string_equal(gp_cuda_ceiling("173.14"), "");
    assert_string_equal(gp_cuda_ceiling(""), "");
    assert_string_equal(gp_cuda_floor("12.8"), "525.60.13");
    assert_string_equal(gp_cuda_floor("12"), "525.60.13");
    assert_string_equal(gp_cuda_floor("13.2.1"), "580.65.06");
    assert_string_equal(gp_cuda_floor("11.8.0"), "450.80.02");
    assert_string_equal(gp_cuda_floor("10.2"), "440.33"); /* before CUDA 11 each has its own */
    assert_string_equal(gp_cuda_floor("99.1"), "");
    assert_string_equal(gp_cuda_own_driver("12.8"), "570.26");
    assert_string_equal(gp_cuda_own_driver("12.8.1"), "570.26");
    assert_string_equal(gp_cuda_own_driver("12"), "525.60.13");
    assert_string_equal(gp_cuda_own_driver("1"), "");
    assert_true(gp_driver_reaches("525.60.13", "525.60.13"));
    assert_false(gp_driver_reaches("525.53", "525.60.13"));
    assert_true(gp_driver_reaches("525", "525.60.13")); /* the newest of the branch */
    assert_false(gp_driver_reaches("520", "525.60.13"));
}

static void module_variants(void **state)
{
    (void)state;
    assert_int_equal(variants_of("570.26", 120), GP_MODULE_OPEN);
    assert_int_equal(variants_of("570.26", 61), GP_MODULE_PROPRIETARY);
    assert_int_equal(variants_of("570.26", 80), GP_MODULE_OPEN | GP_MODULE_PROPRIETARY);
    assert_int_equal(variants_of("470.57", 80), GP_MODULE_PROPRIETARY);
    assert_int_equal(variants_of("620.1", 80), GP_MODULE_OPEN);
    assert_int_equal(variants_of("620.1", 70), 0);
    assert_int_equal(variants_of("", 0), GP_MODULE_OPEN | GP_MODULE_PROPRIETARY);
}

static void code_in_lists(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        unsigned capability;
        enum gp_code code;
    } cases[] = {
        {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120", 89, GP_CODE_NATIVE}, /* by sm_86 */
        {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120", 121, GP_CODE_NATIVE},
        {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120", 103, GP_CODE_NATIVE},
        {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120", 60, GP_CODE_NONE},
        {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120", 110, GP_CODE_NONE},
        {"sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", 120, GP_CODE_NONE},
        {"sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", 61, GP_CODE_NATIVE},
        {"sm_80 sm_86", 87, GP_CODE_NONE}, /* Jetson takes nothing but its own */
        {"sm_80 sm_87", 87, GP_CODE_NATIVE},
        {"sm_80 compute_80", 87, GP_CODE_PTX},
        {"sm_86", 80, GP_CODE_NONE}, /* newer than the GPU */
        {"compute_90", 120, GP_CODE_PTX},
        {"compute_90", 89, GP_CODE_NONE},
        {"sm_90a", 90, GP_CODE_NATIVE},
        {"sm_100a", 103, GP_CODE_NONE},
        {"sm_100f", 103, GP_CODE_NATIVE},
        {"compute_90a", 100, GP_CODE_NONE},
        {"compute_100f", 120, GP_CODE_NONE},
        {"compute_100f", 103, GP_CODE_PTX},
        {"7.5;8.0;8.6;9.0;10.0;12.0+PTX", 86, GP_CODE_NATIVE},
        {"7.5;8.0;8.6;9.0;10.0;12.0+PTX", 70, GP_CODE_NONE},
        {"3.7+PTX;5.0;6.0", 75, GP_CODE_PTX},
        {"9.0a;10.0f", 90, GP_CODE_NATIVE},
        {"['sm_60', 'sm_70', 'compute_90']", 120, GP_CODE_PTX},
        {"", 90, GP_CODE_UNKNOWN},
        {NULL, 90, GP_CODE_UNKNOWN},
        {"no number at all, sm_ compute_", 90, GP_CODE_UNKNOWN},
        {"sm_90", 0, GP_CODE_UNKNOWN},
        {"sm_99999999999999999999", 90, GP_CODE_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum gp_code code = gp_code_for(cases[i].list, cases[i].capability);
        if (code != cases[i].code)
            fail_msg("'%s' for %u: %d", cases[i].list, cases[i].capability, (int)code);
    }
}

static bool find_build(enum gp_framework framework, const char *version, const char *variant,
                       struct gp_build *ret)
{
    for (size_t i = 0; gp_build_at(framework, i, ret); i++)
        if (strcmp(ret->version, version) == 0 && strcmp(ret->variant, variant) == 0)
            return true;
    return false;
}

/* One line each: what was tried, and what must be said of it. */
static const struct {
    enum gp_framework framework;
    const char *version, *variant, *driver;
    unsigned capability;
    enum gp_code_fit fit;
    const char *words;
} known[] = {
    /* is_available() is True on a P100 with this wheel, and then there is no kernel image */
    {GP_FRAMEWORK_TORCH, "2.8.0", "cu128", "570.26", 60, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 6.0"},
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu126", "570.26", 60, GP_FIT_WORKS, "works"},
    /* minor-version compatibility: CUDA 12.8 on a driver that shows 12.0 */
    {GP_FRAMEWORK_TORCH, "2.8.0", "cu128", "525.60.13", 80, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_TORCH, "2.8.0", "cu128", "525.53", 80, GP_FIT_NEEDS_DRIVER,
     "needs driver 525.60.13 or newer"},
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu130", "550.54.15", 90, GP_FIT_NEEDS_DRIVER,
     "needs driver 580.65.06 or newer"},
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu132", "580.65.06", 90, GP_FIT_WORKS, "works"},
    /* driver 470: CUDA 11 and nothing newer */
    {GP_FRAMEWORK_TORCH, "2.7.1", "cu118", "470.256.02", 80, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_TORCH, "2.7.1", "cu126", "470.256.02", 80, GP_FIT_NEEDS_DRIVER,
     "needs driver 525.60.13 or newer"},
    {GP_FRAMEWORK_TORCH, "2.7.1", "cu118", "470.256.02", 37, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_TORCH, "2.7.1", "cu126", "470.256.02", 37, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 3.7"},
    {GP_FRAMEWORK_TORCH, "2.7.1", "cu118", "525.60.13", 37, GP_FIT_DRIVER_TOO_NEW,
     "needs another driver: branch 470 is the last for GPUs of compute capability 3.7"},
    /* GTX 10xx and V100: CUDA 12.6 is the last build with their code */
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu126", "580.65.06", 61, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu130", "580.65.06", 61, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 6.1"},
    {GP_FRAMEWORK_TORCH, "2.10.0", "cu128", "580.65.06", 70, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_TORCH, "2.11.0", "cu128", "580.65.06", 70, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 7.0"},
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu126", "595.71.05", 70, GP_FIT_DRIVER_TOO_NEW,
     "needs another driver: branch 580 is the last for GPUs of compute capability 7.0"},
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu126", "590.48.01", 52, GP_FIT_DRIVER_TOO_NEW,
     "needs another driver: branch 580 is the last for GPUs of compute capability 5.2"},
    /* RTX 5090 */
    {GP_FRAMEWORK_TORCH, "2.6.0", "cu124", "570.26", 120, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 12.0"},
    {GP_FRAMEWORK_TORCH, "2.7.0", "cu128", "570.26", 120, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_TORCH, "2.7.0", "cu128", "565.57.01", 120, GP_FIT_DRIVER_TOO_OLD,
     "needs another driver: this one is too old for a GPU of compute capability 12.0, which "
     "requires branch "
     "570"},
    /* H100 before it had code of its own */
    {GP_FRAMEWORK_TORCH, "1.13.1", "cu117", "525.60.13", 90, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 9.0"},
    {GP_FRAMEWORK_TORCH, "2.0.0", "cu118", "525.60.13", 90, GP_FIT_WORKS, "works"},
    /* PTX wants the driver of its own CUDA */
    {GP_FRAMEWORK_TENSORFLOW, "2.21.0", "tensorflow[and-cuda]", "570.26", 120, GP_FIT_WORKS,
     "works"},
    {GP_FRAMEWORK_TENSORFLOW, "2.14.0", "tensorflow[and-cuda]", "520.56.06", 90,
     GP_FIT_NEEDS_DRIVER, "needs driver 520.61.05 or newer"},
    {GP_FRAMEWORK_TENSORFLOW, "2.21.0", "tensorflow[and-cuda]", "550.54.15", 90, GP_FIT_WORKS,
     "works"},
    {GP_FRAMEWORK_TENSORFLOW, "2.21.0", "tensorflow[and-cuda]", "550.54.15", 89, GP_FIT_WORKS,
     "works"},
    {GP_FRAMEWORK_TENSORFLOW, "2.21.0", "tensorflow[and-cuda]", "550.54.15", 52, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 5.2"},
    {GP_FRAMEWORK_JAX, "0.11.0", "cuda13", "575.57.08", 90, GP_FIT_NEEDS_DRIVER,
     "needs driver 580.65.06 or newer"},
    {GP_FRAMEWORK_JAX, "0.11.0", "cuda12", "570.26", 120, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_JAX, "0.11.0", "cuda13", "580.65.06", 70, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 7.0"},
    {GP_FRAMEWORK_JAX, "0.11.0", "cuda12", "580.65.06", 70, GP_FIT_WORKS, "works"},
    {GP_FRAMEWORK_JAX, "0.4.25", "cuda11_pip", "470.256.02", 80, GP_FIT_WORKS, "works"},
    /* Jetson Orin: no code for 8.7, and that for 8.6 does not do */
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu126", "540.4.0", 87, GP_FIT_NO_CODE,
     "has no code for GPUs of compute capability 8.7"},
    /* without a driver any can be chosen */
    {GP_FRAMEWORK_TORCH, "2.14.0", "cu130", "", 90, GP_FIT_WORKS, "works"},
};

static void known_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct gp_build build;
        char words[256];
        if (!find_build(known[i].framework, known[i].version, known[i].variant, &build))
            fail_msg("no build %s %s", known[i].version, known[i].variant);
        struct gp_judgement j =
            gp_judge(known[i].driver, build.cuda, build.archs, known[i].capability);
        gp_judgement_words(&j, known[i].capability, words, sizeof(words));
        if (j.fit != known[i].fit || strcmp(words, known[i].words) != 0)
            fail_msg("%s %s, driver %s, %u: %s (%s)", known[i].version, known[i].variant,
                     known[i].driver, known[i].capability, fit_word(j.fit), words);
    }
}

static void judges_what_is_in_no_table(void **state)
{
    (void)state;
    char words[256];
    struct gp_judgement j = gp_judge("580.65.06", "13.0", "sm_70", 70); /* nvcc would not */
    assert_int_equal(j.fit, GP_FIT_WORKS);
    j = gp_judge("", "13.1", "compute_70", 70);
    assert_int_equal(j.fit, GP_FIT_NO_DRIVER);
    gp_judgement_words(&j, 70, words, sizeof(words));
    assert_string_equal(words, "needs driver 590.44.01, but branch 580 is the last for GPUs "
                               "of compute capability 7.0");
    j = gp_judge("580.65.06", "99.0", "", 90);
    assert_int_equal(j.fit, GP_FIT_UNKNOWN);
    gp_judgement_words(&j, 90, words, sizeof(words));
    assert_string_equal(words, "is for an unknown CUDA version");
    j = gp_judge("550.54.15", "12.8", NULL, 0); /* only the driver can be judged */
    assert_int_equal(j.fit, GP_FIT_WORKS);
    assert_int_equal(j.code, GP_CODE_UNKNOWN);
}

/* ---- what must hold for all */

static void check_one(const struct gp_driver *driver, const struct gp_build *build,
                      const struct gp_arch *arch)
{
    char version[32];
    (void)snprintf(version, sizeof(version), "%u", driver->branch);
    struct gp_judgement j = gp_judge(version, build->cuda, build->archs, arch->compute_capability);
    bool is_late = arch->last_branch > 0 && driver->branch > arch->last_branch;
    bool is_early = driver->branch < arch->first_branch;
    bool has_floor = gp_driver_reaches(version, gp_cuda_floor(build->cuda));
    bool has_own = gp_driver_reaches(version, gp_cuda_own_driver(build->cuda));
    bool is_well = false;
    switch (j.fit) {
    case GP_FIT_WORKS:
        is_well = !is_late && !is_early && has_floor && j.code != GP_CODE_NONE &&
                  (j.code != GP_CODE_PTX || has_own);
        break;
    case GP_FIT_DRIVER_TOO_OLD:
        is_well = is_early && j.branch == arch->first_branch;
        break;
    case GP_FIT_DRIVER_TOO_NEW:
        is_well = is_late && j.branch == arch->last_branch;
        break;
    case GP_FIT_NO_CODE:
        is_well = !is_late && !is_early && j.code == GP_CODE_NONE;
        break;
    case GP_FIT_NEEDS_DRIVER: { /* and with that driver it works */
        struct gp_judgement then =
            gp_judge(j.driver, build->cuda, build->archs, arch->compute_capability);
        is_well = !is_late && !is_early && (!has_floor || !has_own) && then.fit == GP_FIT_WORKS;
        break;
    }
    case GP_FIT_NO_DRIVER: /* only where the table does not say what it has code for */
        is_well = j.code == GP_CODE_UNKNOWN && arch->last_branch > 0 &&
                  gp_version_major(j.driver) > arch->last_branch;
        break;
    case GP_FIT_UNKNOWN: /* the tables have none */
        break;
    }
    if (!is_well)
        fail_msg("%s %s %s, driver %u, %u: %s", gp_framework_word(build->framework), build->version,
                 build->variant, driver->branch, arch->compute_capability, fit_word(j.fit));
}

static void all_combinations(void **state)
{
    (void)state;
    size_t count = 0;
    struct gp_build build;
    for (unsigned f = 0; f < GP_FRAMEWORK__COUNT; f++)
        for (size_t i = 0; gp_build_at((enum gp_framework)f, i, &build); i++)
            for (size_t a = 0; a < gp_arch_count; a++)
                for (size_t d = 0; d < gp_driver_count; d++, count++)
                    check_one(&gp_drivers[d], &build, &gp_archs[a]);
    assert_int_equal(count,
                     (gp_torch_build_count + gp_tensorflow_build_count + gp_jax_build_count) *
                         gp_arch_count * gp_driver_count);
}

/* A newer driver never takes away what an older one ran, until it leaves the GPU behind. */
static void newer_drivers_run_as_much(void **state)
{
    (void)state;
    struct gp_build build;
    for (unsigned f = 0; f < GP_FRAMEWORK__COUNT; f++)
        for (size_t i = 0; gp_build_at((enum gp_framework)f, i, &build); i++)
            for (size_t a = 0; a < gp_arch_count; a++) {
                bool ran = false;
                for (size_t d = 0; d < gp_driver_count; d++) {
                    char version[32];
                    (void)snprintf(version, sizeof(version), "%u", gp_drivers[d].branch);
                    enum gp_code_fit fit =
                        gp_judge(version, build.cuda, build.archs, gp_archs[a].compute_capability)
                            .fit;
                    assert_true(!ran || fit == GP_FIT_WORKS || fit == GP_FIT_DRIVER_TOO_NEW);
                    ran = ran || fit == GP_FIT_WORKS;
                }
            }
}

/* ---- what to choose */

static void chooses(void **state)
{
    (void)state;
    static const struct {
        enum gp_framework framework;
        const char *driver;
        unsigned capabilities[2];
        const char *version, *variant; /* NULL: there is none */
    } cases[] = {
        {GP_FRAMEWORK_TORCH, "595.71.05", {90}, "2.14.0", "cu130"}, /* not cu132: PyPI's */
        {GP_FRAMEWORK_TORCH, "550.54.15", {89}, "2.14.0", "cu126"},
        {GP_FRAMEWORK_TORCH, "570.124.06", {120}, "2.11.0", "cu128"},
        {GP_FRAMEWORK_TORCH, "580.65.06", {120}, "2.14.0", "cu130"},
        {GP_FRAMEWORK_TORCH, "580.65.06", {61}, "2.14.0", "cu126"},
        {GP_FRAMEWORK_TORCH, "580.65.06", {70, 120}, "2.10.0", "cu128"},
        {GP_FRAMEWORK_TORCH, "580.65.06", {61, 120}, NULL, NULL},
        {GP_FRAMEWORK_TORCH, "470.256.02", {86}, "2.7.1", "cu118"},
        {GP_FRAMEWORK_TORCH, "470.256.02", {37}, "2.7.1", "cu118"},
        {GP_FRAMEWORK_TORCH, "595.71.05", {70}, NULL, NULL}, /* the driver ignores it */
        {GP_FRAMEWORK_TORCH, "", {30}, NULL, NULL},
        {GP_FRAMEWORK_TENSORFLOW, "470.256.02", {80}, "2.14.0", "tensorflow[and-cuda]"},
        {GP_FRAMEWORK_TENSORFLOW, "580.65.06", {120}, "2.21.0", "tensorflow[and-cuda]"},
        {GP_FRAMEWORK_JAX, "580.65.06", {90}, "0.11.0", "cuda13"},
        {GP_FRAMEWORK_JAX, "580.65.06", {70}, "0.11.0", "cuda12"},
        {GP_FRAMEWORK_JAX, "470.256.02", {80}, "0.4.25", "cuda11_pip"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gp_build_target target = {cases[i].driver, cases[i].capabilities,
                                         cases[i].capabilities[1] ? 2 : 1};
        struct gp_build build = {0};
        bool is_found = gp_build_best(cases[i].framework, &target, &build);
        if (is_found != (cases[i].version != NULL) ||
            (is_found && (strcmp(build.version, cases[i].version) != 0 ||
                          strcmp(build.variant, cases[i].variant) != 0)))
            fail_msg("case %zu: %s %s", i, is_found ? build.version : "none",
                     is_found ? build.variant : "");
    }
}

static void cudnn(void **state)
{
    (void)state;
    assert_int_equal(gp_cudnn_code_for("9.10.2.21", 12, 70), GP_CODE_NATIVE);
    assert_int_equal(gp_cudnn_code_for("9.17.0", 12, 70), GP_CODE_NONE);
    assert_int_equal(gp_cudnn_code_for("9.17.0", 12, 121), GP_CODE_NATIVE);
    assert_int_equal(gp_cudnn_code_for("9.1.0.70", 12, 120), GP_CODE_NONE);
    assert_int_equal(gp_cudnn_code_for("8.9.7", 11, 35), GP_CODE_NATIVE);
    assert_int_equal(gp_cudnn_code_for("8.9.7", 12, 35), GP_CODE_NONE);
    assert_int_equal(gp_cudnn_code_for("9.20", 13, 70), GP_CODE_NONE);
    assert_int_equal(gp_cudnn_code_for("5.1", 8, 60), GP_CODE_UNKNOWN);
    assert_int_equal(gp_cudnn_code_for("9.20", 13, 0), GP_CODE_UNKNOWN);
}

/* ---- the limits, of compat_limits.tsv ---- */

enum { COLUMNS = 5, ROWS = 264 };

static void check_limit(void **state)
{
    char **column = *state, driver[64], words[256] = "";
    unsigned capability = (unsigned)strtoul(column[3], NULL, 10);
    const char *said = words;
    if (strcmp(column[0], "judge") == 0) {
        (void)snprintf(driver, sizeof(driver), "%s", column[1]);
        char *cuda = strchr(driver, ';');
        assert_non_null(cuda);
        *cuda++ = '\0';
        struct gp_judgement j = gp_judge(driver, cuda, column[2], capability);
        gp_judgement_words(&j, capability, words, sizeof(words));
    } else if (strcmp(column[0], "ceiling") == 0) {
        said = gp_cuda_ceiling(column[1]);
    } else {
        static const char *const codes[] = {
#define X(id, word) word,
            GP_CODES(X)
#undef X
        };
        said =
            codes[gp_cudnn_code_for(column[1], (unsigned)strtoul(column[2], NULL, 10), capability)];
    }
    if (strcmp(said, column[4]) != 0)
        fail_msg("%s %s %s %s: %s", column[0], column[1], column[2], column[3], said);
}

static size_t row_count;

static void limits_are_there(void **state)
{
    (void)state;
    assert_int_equal(row_count, ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_and_cuda),
        cmocka_unit_test(module_variants),
        cmocka_unit_test(code_in_lists),
        cmocka_unit_test(known_cases),
        cmocka_unit_test(judges_what_is_in_no_table),
        cmocka_unit_test(all_combinations),
        cmocka_unit_test(newer_drivers_run_as_much),
        cmocka_unit_test(chooses),
        cmocka_unit_test(cudnn),
        cmocka_unit_test(limits_are_there),
    };
    struct rows rows = {0};
    row_count = rows_add_file(&rows, "compat_limits.tsv", COLUMNS, check_limit);
    return rows_run(&rows, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
