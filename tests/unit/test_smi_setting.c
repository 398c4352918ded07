/* The settings of nvidia-smi: every row of the tables says something that can be said. */
#include "base/cli.h"
#include "base/strbuf.h"
#include "smi/setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {
#define X(id, kind, names, value, help) names,
    GP_SMI_SETTING_OPTIONS(X)
#undef X
};
static const enum gp_smi_arg kinds[] = {
#define X(id, kind, names, value, help) kind,
    GP_SMI_SETTING_OPTIONS(X)
#undef X
};

static const unsigned drivers[] = {GP_SMI_DRIVER(418, 0), GP_SMI_DRIVER(535, 0),
                                   GP_SMI_DRIVER(570, 999), GP_SMI_DRIVER(595, 0),
                                   GP_SMI_DRIVER(610, 62)};

/* No two options have a name in common. */
static void names_are_of_one_option(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        for (const char *p = names[i]; *p; p += strspn(p, " ")) {
            size_t n = strcspn(p, " ");
            assert_int_equal(p[0], '-');
            for (size_t j = 0; j < GP_ARRAY_LEN(names); j++)
                if (j != i && gp_cli_list_has(names[j], p, n))
                    fail_msg("%.*s is two options", (int)n, p);
            p += n;
        }
}

/* A flag brings its value along; a word is one that the control reads. */
static void every_value_is_one_of_its_control(void **state)
{
    (void)state;
    for (unsigned id = 0; id < GP_SMI_SETTING__COUNT; id++) {
        const struct gp_smi_setting *s = &gp_smi_settings[id];
        struct gp_control_value value;
        if (s->control == GP_CONTROL__COUNT)
            continue;
        assert_int_equal(kinds[id] == GP_SMI_FLAG, s->value || s->only_reads);
        if (s->value)
            assert_int_equal(gp_control_parse(s->control, s->value, &value, NULL), 0);
        for (const struct gp_smi_word *w = s->words; w && w->names; w++)
            if (gp_control_parse(s->control, w->text, &value, NULL) < 0)
                fail_msg("%s: %s", names[id], w->text);
    }
}

static void say_all(enum gp_smi_setting_id id, const struct gp_smi_form *form,
                    const struct gp_smi_saying *saying)
{
    for (int result = GP_SMI_DONE; result <= GP_SMI_FAILED; result++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(4096);
        bool moves_on = gp_smi_setting_say(&sb, id, (enum gp_smi_result)result, form, saying);
        if (strpbrk(sb.buf, "{}"))
            fail_msg("%s: %s", names[id], sb.buf);
        if (sb.len > 0)
            assert_int_equal(sb.buf[sb.len - 1], '\n');
        bool has = gp_smi_setting_has(id, (enum gp_smi_result)result, form);
        bool is_bad = result == GP_SMI_UNSUPPORTED || result == GP_SMI_FAILED;
        if ((has || is_bad) && sb.len == 0 && saying->control != GP_CONTROL__COUNT)
            fail_msg("%s says nothing of %d", names[id], result);
        if (moves_on)
            assert_true(result >= GP_SMI_PENDING);
        gp_strbuf_fini(&sb);
    }
}

static void every_line_can_be_said(void **state)
{
    (void)state;
    const struct gp_setting setting = {.value = {.n = {1}}, .min = 1, .max = 2};
    for (unsigned id = 0; id < GP_SMI_SETTING__COUNT; id++) {
        const struct gp_smi_setting *s = &gp_smi_settings[id];
        const struct gp_control_value value = {.n = {1, 2}};
        struct gp_smi_saying saying = {.gpu = "00000000:01:00.0",
                                       .control = s->control,
                                       .value = &value,
                                       .setting = &setting,
                                       .error = "Unknown Error"};
        for (size_t d = 0; d < GP_ARRAY_LEN(drivers); d++) {
            const struct gp_smi_form form = {.driver = drivers[d]};
            saying.word = s->words;
            do
                say_all((enum gp_smi_setting_id)id, &form, &saying);
            while (saying.word && (++saying.word)->names);
        }
    }
}

static void a_number_of_nvml_is_a_result(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum gp_smi_result result;
    } cases[] = {{3, GP_SMI_UNSUPPORTED}, {4, GP_SMI_DENIED},  {13, GP_SMI_UNSUPPORTED},
                 {26, GP_SMI_DEPRECATED}, {19, GP_SMI_FAILED}, {999, GP_SMI_FAILED},
                 {0, GP_SMI_FAILED}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        assert_int_equal(gp_smi_result_of(cases[i].code), cases[i].result);
}

static void values_are_words_in_any_case_or_what_the_control_reads(void **state)
{
    (void)state;
    static const struct {
        enum gp_smi_setting_id id;
        const char *given;
        int64_t first; /* -1: refused */
    } cases[] = {
        {GP_SMI_SET_PERSISTENCE, "1", 1},
        {GP_SMI_SET_PERSISTENCE, "enabled", 1},
        {GP_SMI_SET_PERSISTENCE, "DisAbled", 0},
        {GP_SMI_SET_PERSISTENCE, "ENABLE", -1},
        {GP_SMI_SET_PERSISTENCE, "0 DISABLED", -1},
        {GP_SMI_SET_PERSISTENCE, "on", -1},
        {GP_SMI_SET_COMPUTE_MODE, "exclusive_process", 3},
        {GP_SMI_SET_COMPUTE_MODE, "1", 3},
        {GP_SMI_SET_POWER_LIMIT, "300.5", 300500},
        {GP_SMI_SET_POWER_LIMIT, "x", -1},
        {GP_SMI_SET_GPU_CLOCKS, "300", 300},
        {GP_SMI_SET_APP_CLOCKS, "300", -1},
        {GP_SMI_SET_ECC_ERRORS, "Aggregate", 1},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf message = GP_STRBUF_INIT(4096);
        struct gp_control_value value = {.n = {4711}};
        const struct gp_smi_word *word = NULL;
        int status = gp_smi_setting_parse(cases[i].id, gp_smi_settings[cases[i].id].control,
                                          cases[i].given, &value, &word, &message);
        if ((status != 0) != (cases[i].first < 0) || (status != 0) != (message.len > 0))
            fail_msg("%s: %d %s", cases[i].given, status, message.buf);
        if (!status)
            assert_int_equal(value.n[0], cases[i].first);
        gp_strbuf_fini(&message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_of_one_option),
        cmocka_unit_test(every_value_is_one_of_its_control),
        cmocka_unit_test(every_line_can_be_said),
        cmocka_unit_test(a_number_of_nvml_is_a_result),
        cmocka_unit_test(values_are_words_in_any_case_or_what_the_control_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
