/* Versions of CUDA and cuDNN as their files say them; lists of folders; lines that set a variable.
 */
#include "unit.h"

#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"

static void says(bool (*read)(const char *, char[GP_TOOLKIT_VERSION]), const char *text,
                 const char *expected)
{
    char version[GP_TOOLKIT_VERSION] = "";
    bool is_said = read(text, version);
    if (is_said != (expected != NULL) || (expected && strcmp(version, expected) != 0))
        fail_msg("'%s' says '%s'", text, is_said ? version : "(nothing)");
}

static void versions(void **state)
{
    (void)state;
    says(gp_toolkit_read_json, "{\"cuda\": {\"version\": \"11.8.0\"}}", "11.8.0");
    says(gp_toolkit_read_json, "{\"cuda\": {\"version\": \"12.6.20241114\"}}", "12.6");
    says(gp_toolkit_read_json, "{\"cuda\": {\"version\": \"12.4.1\"}, \"x\": 1}\n", "12.4.1");
    says(gp_toolkit_read_json, "{\"cuda\": {\"version\": \"12\"}}", NULL);
    says(gp_toolkit_read_json, "{\"cuda\": {\"version\": 12}}", NULL);
    says(gp_toolkit_read_json, "{\"cuda\": {\"vers", NULL);
    says(gp_toolkit_read_json, "[]", NULL);
    says(gp_toolkit_read_json, "", NULL);
    says(gp_toolkit_read_json, "{\"cuda\": {\"version\": \"1.000000000000000000000000000000000\"}}",
         NULL);
    says(gp_toolkit_read_text, "CUDA Version 10.2.89\n", "10.2.89");
    says(gp_toolkit_read_text, "CUDA Version\n", NULL);
    says(gp_toolkit_read_text, "", NULL);
    says(gp_toolkit_read_header, "#define CUDA_VERSION 12040\n", "12.4");
    says(gp_toolkit_read_header, "#ifdef CUDA_VERSION\n#define CUDA_VERSION  11050", "11.5");
    says(gp_toolkit_read_header, "#define CUDA_VERSION x", NULL);
    says(gp_toolkit_read_header, "#define CUDA_VERSION 99999999999999999999", NULL);
    says(gp_toolkit_read_name, "/usr/local/cuda-12.4", "12.4");
    says(gp_toolkit_read_name, "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4", "12.4");
    says(gp_toolkit_read_name, "/opt/cuda", NULL);
    says(gp_toolkit_read_name, "", NULL);
    says(gp_cudnn_read_header,
         "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n#define "
         "CUDNN_VERSION (CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100)\n",
         "9.10.2");
    says(gp_cudnn_read_header, "#define CUDNN_MAJOR 9\n", NULL);
    assert_string_equal(gp_library_version("libcudnn.so.9.10.2"), "9.10.2");
    assert_string_equal(gp_library_version("libcudnn.so"), "");
}

static void elements(void **state)
{
    (void)state;
    static const char *const expected[] = {"/a", "", "/b", "/c", ""};
    const char *list = "/a::/b;/c:";
    char element[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(expected); i++) {
        assert_true(gp_search_path_next(&list, ":;", element));
        assert_string_equal(element, expected[i]);
    }
    assert_false(gp_search_path_next(&list, ":;", element));
    char large[GP_PATH_SIZE + 10];
    memset(large, 'x', sizeof(large));
    (void)snprintf(large + GP_PATH_SIZE, 10, ":/d");
    list = large;
    assert_true(gp_search_path_next(&list, ":", element));
    assert_string_equal(element, "/d");
    assert_false(gp_search_path_next(&list, ":", element));
}

static void assignments(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *assignment; /* NULL: there is none */
    } cases[] = {
        {"export LD_LIBRARY_PATH=/x", "LD_LIBRARY_PATH=/x"},
        {"LD_LIBRARY_PATH=/x", "LD_LIBRARY_PATH=/x"},
        {"  LD_LIBRARY_PATH=/x make", "LD_LIBRARY_PATH=/x"},
        {"TOKEN=abc LD_LIBRARY_PATH=\"/x y\":/z KEY=def", "LD_LIBRARY_PATH=\"/x y\":/z"},
        {"LD_LIBRARY_PATH='/x y'&& KEY=def", "LD_LIBRARY_PATH='/x y'"},
        {"LD_LIBRARY_PATH=\"/x y", "LD_LIBRARY_PATH=\"/x y"},
        {"LD_LIBRARY_PATH=/x;KEY=def", "LD_LIBRARY_PATH=/x"},
        {"set -gx LD_LIBRARY_PATH /x /y ; set KEY def", "LD_LIBRARY_PATH /x /y"},
        {"A=1; LD_LIBRARY_PATH=/x", "LD_LIBRARY_PATH=/x"},
        {"# LD_LIBRARY_PATH=/x", NULL},
        {"MY_LD_LIBRARY_PATH=/x", NULL},
        {"LD_LIBRARY_PATHS=/x", NULL},
        {"echo $LD_LIBRARY_PATH", NULL},
        {"unset LD_LIBRARY_PATH", NULL},
        {"echo \"LD_LIBRARY_PATH=/x\"", "LD_LIBRARY_PATH=/x"},
        {"sh -c 'LD_LIBRARY_PATH=/x KEY=def make'", "LD_LIBRARY_PATH=/x"},
        {"A=x:$LD_LIBRARY_PATH LD_LIBRARY_PATH=/y", "LD_LIBRARY_PATH=/y"},
        {"LD_LIBRARY_PATH", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const char *text = cases[i].line, *line;
        unsigned number = 0;
        size_t length;
        char found[64] = "";
        if (gp_assignment_next(&text, "LD_LIBRARY_PATH", &number, &line, &length))
            (void)snprintf(found, sizeof(found), "%.*s", (int)length, line);
        assert_string_equal(found, cases[i].assignment ? cases[i].assignment : "");
    }
    size_t length;
    const char *text = "a\n\nX=1\nb\n  X=2", *line;
    unsigned number = 0;
    assert_true(gp_assignment_next(&text, "X", &number, &line, &length));
    assert_int_equal(number, 3);
    assert_true(gp_assignment_next(&text, "X", &number, &line, &length));
    assert_int_equal(number, 5);
    assert_string_equal(line, "X=2");
    assert_false(gp_assignment_next(&text, "X", &number, &line, &length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),
        cmocka_unit_test(elements),
        cmocka_unit_test(assignments),
    };
    return cmocka_run_group_tests_name("toolkit", tests, NULL, NULL);
}
