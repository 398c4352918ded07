/* Checks of health on snapshots made by hand: what no simulated driver is brought to say. */
#include "rows.h"

#include "doctor/checks/all.h"
#include "doctor/exam.h"
#include "doctor/readers/gpuset.h"
#include "doctor/readers/nvidia.h"
#include "model/metric.h"

#include <string.h>
#include <unistd.h>

enum { GPUS = 8 };

static struct gp_exam exam;
static struct gp_snapshot snapshot;
static struct gp_device devices[GPUS];
static struct gp_value rows[4][GP_CI__FIRST - GP_CLOCK__FIRST];
static struct gp_entry entries[4];
static char root[256];

static struct gp_value *value(int gpu, enum gp_metric m)
{
    return &devices[gpu].values[m - GP_DEVICE__FIRST];
}

static void set_text(int gpu, enum gp_metric m, const char *text)
{
    gp_value_set_text(value(gpu, m), text, 1);
}

static void set_int(int gpu, enum gp_metric m, int64_t number)
{
    gp_value_set_int(value(gpu, m), number, 1);
}

static int reset(void **state)
{
    (void)state;
    struct gp_err *none = NULL;
    memset(&snapshot, 0, sizeof(snapshot));
    memset(devices, 0, sizeof(devices));
    for (int i = 0; i < GPUS; i++) {
        devices[i] =
            (struct gp_device){.index = (unsigned)i, .status = GP_STATUS_OK, .status_text = ""};
        for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
            gp_value_set_absent(value(i, (enum gp_metric)m), GP_STATUS_UNSUPPORTED, NULL, 1);
        set_text(i, GP_NAME, "NVIDIA Test");
    }
    snapshot.devices = devices;
    snapshot.device_count = GPUS;
    temporary_name(root, sizeof(root), "health");
    assert_non_null(mkdtemp(root));
    assert_int_equal(gp_exam_open(&exam, &gp_checks_all, root, none), 0);
    exam.snapshot = &snapshot;
    return 0;
}

static int finish(void **state)
{
    (void)state;
    gp_exam_close(&exam);
    (void)rmdir(root);
    return 0;
}

/* Runs one check: its gravest finding, NULL if nothing was found. */
static const struct gp_finding *run(const char *id)
{
    gp_exam_run(&exam, id, NULL);
    const struct gp_finding *found = NULL;
    for (const struct gp_finding *f = exam.findings; f; f = f->next)
        if (!found || f->verdict > found->verdict)
            found = f;
    return found;
}

static void finds(const char *id, enum gp_verdict verdict, const char *summary)
{
    const struct gp_finding *found = run(id);
    assert_non_null(found);
    assert_string_equal(found->summary, summary);
    assert_int_equal(found->verdict, verdict);
}

/* ---- whole findings, of health_findings.tsv ---- */

enum { COLUMNS = 3, ROWS = 113, REPORT = 4096 };

/* "remapped_rows.pending=Yes", of GPU 2; "5:remapped_rows.pending=Yes" is of GPU 5, "=" without a
 * value refuses it. */
static void assign(char *word)
{
    char *mark = strchr(word, '=');
    int gpu = 2;
    assert_non_null(mark);
    *mark = '\0';
    if (word[1] == ':') {
        gpu = word[0] - '0';
        word += 2;
    }
    enum gp_metric m;
    if (gp_metric_find(word, &m, NULL) != 0)
        fail_msg("no metric is called %s", word);
    if (!mark[1])
        gp_value_set_absent(value(gpu, m), GP_STATUS_ERROR, NULL, 1);
    else if (gp_metric_table[m].type == GP_TYPE_TEXT)
        set_text(gpu, m, mark + 1);
    else if (gp_metric_table[m].type == GP_TYPE_REAL)
        gp_value_set_real(value(gpu, m), strtod(mark + 1, NULL), 1);
    else
        set_int(gpu, m, strtoll(mark + 1, NULL, 10));
}

/* All that is said, in one line: "warn GPU 2: … | seen … | why … | type … | do …". */
static void write_report(char text[REPORT])
{
    FILE *out = fmemopen(text, REPORT, "w");
    assert_non_null(out);
    for (const struct gp_finding *f = exam.findings; f; f = f->next) {
        (void)fprintf(out, "%s%s %s", f == exam.findings ? "" : " || ", gp_verdict_word(f->verdict),
                      f->summary);
        for (const struct gp_evidence *e = f->evidence; e; e = e->next)
            (void)fprintf(out, " | seen %s: %s", e->where, e->text);
        if (f->why[0])
            (void)fprintf(out, " | why %s", f->why);
        for (const struct gp_fix *fix = f->fixes; fix; fix = fix->next)
            if (fix->command)
                (void)fprintf(out, " | type %s # %s", fix->command, fix->note);
            else
                (void)fprintf(out, " | do %s", fix->note);
    }
    assert_int_equal(fclose(out), 0);
}

static void check_finding(void **state)
{
    char **column = *state, text[REPORT] = "";
    char words[512], *rest = words, *word;
    (void)reset(NULL);
    (void)snprintf(words, sizeof(words), "%s", column[1]);
    while ((word = strsep(&rest, ";")))
        assign(word);
    gp_exam_run(&exam, column[0], NULL);
    write_report(text);
    (void)finish(NULL);
    if (strcmp(text, column[2]) != 0)
        fail_msg("%s;%s says: %s", column[0], column[1], text);
}

static size_t row_count;

static void test_rows_are_there(void **state)
{
    (void)state;
    assert_int_equal(row_count, ROWS);
}

/* ---- */

/* The capability of GPUs as the driver tells it, and which of them count. */
static void test_capabilities(void **state)
{
    static const struct {
        const char *text;
        unsigned capability;
    } cases[] = {{"8.6", 86}, {"12.0", 120}, {"9.0", 90}, {"99.9", 999},
                 {"9", 0},    {"100.1", 0},  {"x", 0},    {"8,6", 0}};
    struct gp_nvidia nv;
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        set_text((int)i, GP_COMPUTE_CAP, cases[i].text);
    gp_nvidia_read(&nv, &exam);
    assert_int_equal(nv.gpu_count, GPUS);
    assert_int_equal(nv.count, 5); /* a model stands there once, and four are of 0 */
    for (size_t i = 0; i < nv.count; i++) {
        assert_int_equal(nv.gpus[i].capability, cases[i].capability);
        assert_string_equal(nv.gpus[i].name, "NVIDIA Test");
    }
    set_text(1, GP_NAME, "NVIDIA Other");
    set_text(1, GP_COMPUTE_CAP, "8.6");
    devices[2].is_mig = true;
    devices[3].status = GP_STATUS_LOST;
    gp_nvidia_read(&nv, &exam);
    assert_int_equal(nv.gpu_count, GPUS - 2);
    assert_int_equal(nv.count, 3);
    assert_string_equal(nv.gpus[1].name, "NVIDIA Other");
    assert_int_equal(nv.gpus[1].capability, 86);
    assert_int_equal(nv.gpus[2].capability, 0);
}

static void says(const char *id, const char *expected)
{
    char text[REPORT] = "";
    gp_exam_run(&exam, id, NULL);
    write_report(text);
    assert_string_equal(text, expected);
}

static void test_names(void **state)
{
    (void)state;
    struct gp_gpuset set = {.count = 0};
    gp_gpuset_add(&set, &devices[3]);
    assert_string_equal(gp_gpuset_names(&exam, &set), "GPU 3");
    gp_gpuset_add(&set, &devices[4]);
    assert_string_equal(gp_gpuset_names(&exam, &set), "GPUs 3 and 4");
    gp_gpuset_add(&set, &devices[5]);
    assert_string_equal(gp_gpuset_names(&exam, &set), "GPUs 3-5");
    gp_gpuset_add(&set, &devices[7]);
    assert_string_equal(gp_gpuset_names(&exam, &set), "GPUs 3-5 and 7");
    assert_string_equal(gp_gpuset_list(&exam, &set), "3,4,5,7");
    assert_string_equal(gp_gpuset_label(&exam, &devices[3]), "GPU 3 (NVIDIA Test)");
}

static void test_margin(void **state)
{
    (void)state;
    set_int(2, GP_TEMPERATURE_TLIMIT, 0);
    set_int(2, GP_TLIMIT_SLOWDOWN, -2);
    finds("health.temperature", GP_VERDICT_WARN,
          "GPU 2: above the temperature for continuous operation");
}

static void test_margin_is_gone(void **state)
{
    (void)state;
    set_int(2, GP_TEMPERATURE_TLIMIT, -2);
    set_int(2, GP_TLIMIT_SLOWDOWN, -2);
    finds("health.temperature", GP_VERDICT_FAIL,
          "GPU 2: at the temperature where the hardware slows down");
}

static void test_threshold_of_zero(void **state)
{
    (void)state;
    set_int(2, GP_TEMPERATURE_GPU, 40);
    set_int(2, GP_THRESHOLD_SLOWDOWN, 0);
    finds("health.temperature", GP_VERDICT_OK, "no GPU is too hot");
}

static void test_spare_rows(void **state)
{
    (void)state;
    set_int(0, GP_HISTOGRAM_NONE, 1);
    set_int(1, GP_HISTOGRAM_NONE, 0);
    finds("health.remap", GP_VERDICT_WARN, "GPU 0: a memory bank has no spare rows left");
}

static void test_words_of_driver_560(void **state)
{
    (void)state;
    set_text(4, GP_RESET_REQUIRED, "Yes");
    finds("health.recovery", GP_VERDICT_FAIL, "GPU 4: the driver requests a reset of the GPU");
}

static void test_ecc_turned_off(void **state)
{
    (void)state;
    set_text(4, GP_ECC_MODE, "Disabled");
    set_text(4, GP_ECC_MODE_PENDING, "Disabled");
    set_text(4, GP_ECC_MODE_DEFAULT, "Enabled");
    finds("health.ecc", GP_VERDICT_INFO, "GPU 4: ECC was turned off: memory errors go unnoticed");
}

static void test_unknown_is_not_well(void **state)
{
    (void)state;
    gp_value_set_absent(value(4, GP_REMAPPED_FAILURE), GP_STATUS_ERROR, NULL, 1);
    finds("health.remap", GP_VERDICT_SKIP,
          "GPU 4: the driver does not report the values this check needs");
}

static void test_unsupported_means_nothing(void **state)
{
    (void)state;
    assert_null(run("health.remap"));
}

/* Two GPUs with NVLinks between them, of which one cannot read the other. */
static void test_peers(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        entries[i] = (struct gp_entry){.device = (size_t)i, .values = rows[i]};
        memset(rows[i], 0, sizeof(rows[i]));
        gp_value_set_int(&rows[i][GP_PEER_NUMBER - GP_PEER__FIRST], 1 - i, 1);
        gp_value_set_int(&rows[i][GP_PEER_LINKS - GP_PEER__FIRST], 4, 1);
        gp_value_set_text(&rows[i][GP_PEER_READ - GP_PEER__FIRST], "DR", 1);
    }
    snapshot.lists[gp_list_index(GP_SCOPE_PEER)] = (struct gp_entries){entries, 2};
    says("nccl.p2p",
         "warn 1 of 1 pairs of GPUs cannot read each other's memory, although NVLinks connect them "
         "| seen GPU 0 (NVIDIA Test): peers.p2p.read to GPU 1 is DR: disabled by a driver setting "
         "| why NCCL and others copy through host memory instead, which is slower. Most GeForce "
         "boards have no other way. | do look for settings that disable it (NCCL_P2P_DISABLE, "
         "NVreg_ options), and for NVLink errors in the kernel log");
}

static void set_peer(int gpu, int peer, const char *code, int links)
{
    struct gp_value *v = rows[gpu];
    entries[gpu] = (struct gp_entry){.device = (size_t)gpu, .values = v};
    memset(v, 0, sizeof(rows[gpu]));
    gp_value_set_int(&v[GP_PEER_NUMBER - GP_PEER__FIRST], peer, 1);
    gp_value_set_int(&v[GP_PEER_LINKS - GP_PEER__FIRST], links, 1);
    gp_value_set_text(&v[GP_PEER_READ - GP_PEER__FIRST], code, 1);
    snapshot.lists[gp_list_index(GP_SCOPE_PEER)] = (struct gp_entries){entries, (size_t)gpu + 1};
}

/* The pair that is told of is the first with links; those in MIG mode are no pair. */
static void test_peers_of_several(void **state)
{
    (void)state;
    set_peer(0, 1, "CNS", 0);
    set_peer(1, 2, "TNS", 2);
    set_peer(2, 3, "NS", 1);
    set_peer(3, 4, "OK", 1);
    says("nccl.p2p",
         "warn 2 of 4 pairs of GPUs cannot read each other's memory, although NVLinks connect them "
         "| seen GPU 1 (NVIDIA Test): peers.p2p.read to GPU 2 is TNS: the topology does not "
         "support it | why NCCL and others copy through host memory instead, which is slower. Most "
         "GeForce boards have no other way. | do look for settings that disable it "
         "(NCCL_P2P_DISABLE, NVreg_ options), and for NVLink errors in the kernel log");
}

static void test_peers_in_mig_mode(void **state)
{
    (void)state;
    set_peer(0, 1, "GNS", 0);
    set_peer(1, 2, "TNS", 2);
    set_peer(2, 3, "NS", 1);
    set_peer(3, 9, "OK", 0); /* it was not requested */
    set_text(2, GP_MIG_MODE, "Enabled");
    says("nccl.p2p", "info 1 of 2 pairs of GPUs cannot read each other's memory directly | seen "
                     "GPU 0 (NVIDIA Test): peers.p2p.read to GPU 1 is GNS: the GPU does not "
                     "support it | why NCCL and others copy through host memory instead, which is "
                     "slower. Most GeForce boards have no other way.");
}

static void test_link_that_stays_away(void **state)
{
    (void)state;
    set_int(3, GP_NVLINK_COUNT, 18);
    set_int(3, GP_NVLINK_ACTIVE, 18);
    entries[0] = (struct gp_entry){.device = 3, .values = rows[0]};
    memset(rows[0], 0, sizeof(rows[0]));
    gp_value_set_int(&rows[0][GP_LINK_UNRECOVERED - GP_LINK__FIRST], 2, 1);
    snapshot.lists[gp_list_index(GP_SCOPE_LINK)] = (struct gp_entries){entries, 1};
    says("health.nvlink",
         "warn GPU 3: an NVLink could not be recovered after an error | seen NVML: "
         "links.recovery.failed is above 0; gpulse query --rows links -i 3 shows which link | type "
         "sudo nvidia-smi --gpu-reset -i 3 # once nothing uses the GPU; if the reset is "
         "refused, reboot");
}

/* A bridge leaves links free: only who has fewer than its like is short of some. */
static void test_links_of_bridges(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_int(i, GP_NVLINK_COUNT, 12);
        set_int(i, GP_NVLINK_ACTIVE, 4);
    }
    finds("health.nvlink", GP_VERDICT_OK, "the NVLinks are up");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_names),
        TEST(test_margin),
        TEST(test_margin_is_gone),
        TEST(test_threshold_of_zero),
        TEST(test_spare_rows),
        TEST(test_words_of_driver_560),
        TEST(test_ecc_turned_off),
        TEST(test_unknown_is_not_well),
        TEST(test_unsupported_means_nothing),
        TEST(test_peers),
        TEST(test_peers_of_several),
        TEST(test_peers_in_mig_mode),
        TEST(test_capabilities),
        TEST(test_link_that_stays_away),
        TEST(test_links_of_bridges),
        cmocka_unit_test(test_rows_are_there),
    };
    struct rows more = {0};
    row_count = rows_add_file(&more, "health_findings.tsv", COLUMNS, check_finding);
    return rows_run(&more, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
