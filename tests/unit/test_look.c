/* What of a doctor's findings belongs to an error line. */
#include "unit.h"

#include "base/strbuf.h"
#include "doctor/exam.h"
#include "doctor/explain/log_errors.h"
#include "doctor/explain/look.h"

static const char line[] = "NVRM: RmInitAdapter failed! (0x62:0x40:2393)";

static const struct gp_check checks[] = {{.id = "driver.installed"},
                                         {.id = "driver.loaded"},
                                         {.id = "python.torch"},
                                         {.id = "log.known"},
                                         {.id = "driver.power"}};
enum { INSTALLED, LOADED, TORCH, KNOWN, POWER };

static struct gp_fix fix = {.command = "sudo mend", .note = ""};
static struct gp_evidence evidence;
static struct gp_finding findings[2];
static struct gp_exam exam;
static struct gp_known_errors errors; /* large */

static struct gp_finding finding(int check, enum gp_verdict verdict, const char *summary)
{
    return (struct gp_finding){
        .check = &checks[check], .verdict = verdict, .summary = summary, .fixes = &fix};
}

/* Two findings, and an error that looks at these checks. */
static void set_up(struct gp_finding first, struct gp_finding second, const char *look)
{
    findings[0] = first;
    findings[1] = second;
    findings[0].next = &findings[1];
    exam.findings = findings;
    exam.files.is_here = true;
    exam.machine.gpu_count = 1;
    errors.count = 1;
    errors.all[0] = (struct gp_known_error){
        .line = line,
        .explanation = {.title = "kernel", .words = "it did not start", .look = look}};
}

static const char *said(void)
{
    static char text[4096];
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(text));
    gp_look_add_text(&sb, &exam, &errors.all[0]);
    gp_look_add_end(&sb, &exam, &errors);
    (void)snprintf(text, sizeof(text), "%s", sb.buf ? sb.buf : "");
    gp_strbuf_fini(&sb);
    return text;
}

static void cites(const char *text)
{
    evidence = (struct gp_evidence){.where = "/dev/kmsg", .text = text};
    findings[1].evidence = &evidence;
}

static void what_the_checks_of_the_line_find_is_here(void **state)
{
    (void)state;
    set_up(finding(LOADED, GP_VERDICT_OK, "loaded"), finding(TORCH, GP_VERDICT_WARN, "a build"),
           "python");
    assert_string_equal(said(), "      here   python.torch: a build\n             sudo mend\n");
}

static void a_consequence_that_the_same_remedy_repairs_is_left_out(void **state)
{
    (void)state;
    set_up(finding(INSTALLED, GP_VERDICT_FAIL, "none"), finding(LOADED, GP_VERDICT_FAIL, "not"),
           "driver.loaded");
    findings[1].because = &checks[INSTALLED];
    assert_string_equal(said(), "      here   driver.installed: none\n             sudo mend\n");
}

static void another_consequence_comes_then(void **state)
{
    (void)state;
    set_up(finding(INSTALLED, GP_VERDICT_FAIL, "none"), finding(TORCH, GP_VERDICT_WARN, "a build"),
           "python.torch");
    findings[1].because = &checks[INSTALLED];
    assert_string_equal(said(), "      here   driver.installed: none\n             sudo mend\n"
                                "      then   python.torch: a build\n             sudo mend\n");
}

static void a_problem_that_shows_the_very_line_is_here(void **state)
{
    static const char here[] = "      here   python.torch: a build\n             sudo mend\n";
    (void)state;
    set_up(finding(LOADED, GP_VERDICT_OK, "loaded"), finding(TORCH, GP_VERDICT_WARN, "a build"),
           "driver.loaded");
    cites("2025-01-01 kernel: NVRM: RmInitAdapter failed! (0x62:0x40:2393)");
    assert_string_equal(said(), here);
    cites("RmInitAdapter failed! (0x62:0x40:2393)"); /* only the end of it */
    assert_string_equal(said(), here);
    errors.all[0].explanation.look = "";
    assert_string_equal(said(), here);
}

static void a_problem_with_other_evidence_is_not_here(void **state)
{
    (void)state;
    set_up(finding(LOADED, GP_VERDICT_OK, "loaded"), finding(TORCH, GP_VERDICT_WARN, "a build"),
           "driver.loaded");
    cites("RmInitAdapter"); /* too short to tell */
    assert_null(strstr(said(), "here   python.torch"));
    assert_non_null(
        strstr(said(), "here   none of the usual reasons was found on this machine: 1 check"));
    assert_non_null(strstr(said(), "doctor python.torch: a build\n"));
    assert_null(strstr(said(), "sudo mend")); /* of a mere warning */
    assert_non_null(strstr(said(), "if that may be the reason: gpulse doctor --only python.torch"));
    findings[1].verdict = GP_VERDICT_FAIL;
    assert_non_null(strstr(said(), "sudo mend"));
    findings[1].can_wait = true;
    assert_null(strstr(said(), "doctor python.torch"));
    assert_non_null(strstr(said(), "here   no reason found on this machine: 1 check passed"));
}

static void a_problem_of_another_package_is_not_here(void **state)
{
    static const char flash[] = "flash-attn in /venv is for another PyTorch";
    (void)state;
    set_up(finding(TORCH, GP_VERDICT_FAIL, flash),
           finding(TORCH, GP_VERDICT_FAIL, "torchvision 0.21 is for another PyTorch"),
           "python.torch");
    assert_non_null(strstr(said(), "flash-attn in")); /* the line names neither */
    assert_non_null(strstr(said(), "torchvision 0.21"));
    errors.all[0].line = "ImportError: /venv/flash_attn_2_cuda.so: undefined symbol: _ZN3c10";
    assert_non_null(strstr(said(), "flash-attn in"));
    assert_null(strstr(said(), "torchvision 0.21"));
    errors.all[0].line = "RuntimeError: operator torchvision::nms does not exist";
    assert_null(strstr(said(), "flash-attn in"));
    assert_non_null(strstr(said(), "torchvision 0.21"));
    errors.all[0].line = "ImportError: mytorchvision, flash_attention"; /* other names */
    assert_non_null(strstr(said(), "flash-attn in"));
    assert_non_null(strstr(said(), "torchvision 0.21"));
}

static void a_problem_that_names_no_package_may_be_of_any(void **state)
{
    (void)state;
    set_up(finding(TORCH, GP_VERDICT_FAIL, "flash-attn in /venv is for another PyTorch"),
           finding(TORCH, GP_VERDICT_FAIL, "/venv has two of onnxruntime"), "python.torch");
    errors.all[0].line = "ImportError: /venv/flash_attn_2_cuda.so: undefined symbol: _ZN3c10";
    assert_non_null(strstr(said(), "flash-attn in"));
    assert_non_null(strstr(said(), "/venv has two"));
}

static void a_group_stands_for_its_checks_but_not_for_settings(void **state)
{
    (void)state;
    set_up(finding(LOADED, GP_VERDICT_FAIL, "not loaded"),
           finding(POWER, GP_VERDICT_WARN, "a suspend loses memory"), "driver");
    assert_non_null(strstr(said(), "here   driver.loaded"));
    assert_null(strstr(said(), "driver.power"));
    errors.all[0].explanation.look = "driver.power";
    assert_non_null(strstr(said(), "here   driver.power"));
}

static void the_log_that_has_the_line_is_no_reason_for_it(void **state)
{
    (void)state;
    set_up(finding(LOADED, GP_VERDICT_OK, "loaded"),
           finding(KNOWN, GP_VERDICT_FAIL, "it did not start (logged 2 times)"), "driver.loaded");
    cites(line);
    assert_non_null(strstr(
        said(),
        "here   none of the usual reasons was found on this machine, which has logged this error"));
    assert_null(strstr(said(), "log.known"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_checks_of_the_line_find_is_here),
        cmocka_unit_test(a_consequence_that_the_same_remedy_repairs_is_left_out),
        cmocka_unit_test(another_consequence_comes_then),
        cmocka_unit_test(a_problem_that_shows_the_very_line_is_here),
        cmocka_unit_test(a_problem_with_other_evidence_is_not_here),
        cmocka_unit_test(a_problem_of_another_package_is_not_here),
        cmocka_unit_test(a_problem_that_names_no_package_may_be_of_any),
        cmocka_unit_test(a_group_stands_for_its_checks_but_not_for_settings),
        cmocka_unit_test(the_log_that_has_the_line_is_no_reason_for_it),
    };
    return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
