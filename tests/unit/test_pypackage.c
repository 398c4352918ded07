/* What files of Python packages say. */
#include "unit.h"

#include "doctor/readers/pypackage.h"

#include <stdio.h>

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *entry, *name, *version; /* NULL: it is no package */
    } cases[] = {
        {"torch-2.7.1+cu128.dist-info", "torch", "2.7.1+cu128"},
        {"nvidia_cudnn_cu12-9.7.1.26.dist-info", "nvidia-cudnn-cu12", "9.7.1.26"},
        {"PyYAML-6.0.egg-info", "pyyaml", "6.0"},
        {"torch-1.12.1-py3.8-linux-x86_64.egg-info", "torch", "1.12.1"},
        {"zope.interface-6.0.dist-info", "zope-interface", "6.0"},
        {"flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE.dist-info", "flash-attn",
         "2.7.4.post1+cu12torch2.6cxx11abiFALSE"},
        {"jax_cuda12_plugin-0.4.35.dist-info", "jax-cuda12-plugin", "0.4.35"},
        {"a--_.b-1.dist-info", "a-b", "1"},
        {"torch", NULL, NULL},
        {"torch.dist-info", NULL, NULL},
        {"-1.0.dist-info", NULL, NULL},
        {"-rx-1.0.dist-info", NULL, NULL},
        {"_rx-1.0.dist-info", NULL, NULL},
        {"rx_-1.0.dist-info", NULL, NULL},
        {"torch-.dist-info", NULL, NULL},
        {".dist-info", NULL, NULL},
        {"torch-2.7.1.dist-info.bak", NULL, NULL},
    };
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION], entry[512];
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        bool is_one = gp_pypackage_split(cases[i].entry, name, version);
        if (is_one != (cases[i].name != NULL))
            fail_msg("%s", cases[i].entry);
        if (!is_one)
            continue;
        assert_string_equal(name, cases[i].name);
        assert_string_equal(version, cases[i].version);
    }
    memset(entry, 'a', sizeof(entry));
    (void)snprintf(entry + 300, sizeof(entry) - 300, "-1.0.dist-info");
    assert_false(gp_pypackage_split(entry, name, version));
    (void)snprintf(entry, sizeof(entry), "a-1%0300d.dist-info", 0);
    assert_false(gp_pypackage_split(entry, name, version));
}

static void conda_names(void **state)
{
    (void)state;
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION], build[GP_PYPACKAGE_VERSION];
    assert_true(gp_pypackage_split_conda("pytorch-2.1.0-py3.10_cuda11.8_cudnn8.7.0_0.json", name,
                                         version, build));
    assert_string_equal(name, "pytorch");
    assert_string_equal(version, "2.1.0");
    assert_string_equal(build, "py3.10_cuda11.8_cudnn8.7.0_0");
    assert_true(gp_pypackage_split_conda("cuda-nvcc-12.4.131-0.json", name, version, build));
    assert_string_equal(name, "cuda-nvcc");
    assert_string_equal(version, "12.4.131");
    static const char *const others[] = {"history",  ".json",    "-.json",   "--.json",
                                         "a-b.json", "a--.json", "-1-0.json"};
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        assert_false(gp_pypackage_split_conda(others[i], name, version, build));
}

static const char version_py[] = "from typing import Optional\n\n"
                                 "__all__ = ['__version__', 'debug', 'cuda', 'hip']\n"
                                 "__version__ = '2.7.1+cu128'\n"
                                 "debug = False\n"
                                 "cuda: Optional[str] = '12.8'\n"
                                 "hip: Optional[str] = None\n";

static const char build_info[] =
    "build_info = collections.OrderedDict([('cpu_compiler', '/usr/bin/clang'), "
    "('cuda_compute_capabilities', ['sm_60', 'compute_90']), ('cuda_version', '12.3'), "
    "('is_cuda_build', True)])\n";

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *value;
    } cases[] = {
        {version_py, "__version__", "2.7.1+cu128"},
        {version_py, "cuda", "12.8"},
        {version_py, "hip", ""},
        {version_py, "debug", ""},
        {version_py, "xpu", NULL},
        {version_py, "version", NULL},
        {"cuda = '11.7'\n", "cuda", "11.7"},
        {"cuda = \"11.7\"", "cuda", "11.7"},
        {"cuda_version = '1'\ncuda = '2'\n", "cuda", "2"},
        {"{'version': {'cuda': '12.8', 'torch': '2.7'}}", "torch", "2.7"},
        {build_info, "cuda_version", "12.3"},
        {build_info, "cuda_compute_capabilities", "'sm_60', 'compute_90'"},
        {build_info, "is_cuda_build", ""},
        {"cuda = '12.8", "cuda", "12.8"}, /* cut off */
        {"cuda = ", "cuda", ""},
        {"cuda", "cuda", NULL},
        {"cuda:", "cuda", NULL},
        {"'cuda'", "cuda", NULL},
        {"", "cuda", NULL},
    };
    char value[64];
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        bool is_there = gp_python_value(cases[i].text, cases[i].name, value, sizeof(value));
        if (is_there != (cases[i].value != NULL) ||
            (is_there && strcmp(value, cases[i].value) != 0))
            fail_msg("%s in %s: '%s'", cases[i].name, cases[i].text, is_there ? value : "(none)");
    }
    assert_true(gp_python_value(version_py, "__version__", value, 4));
    assert_string_equal(value, "2.7");
}

static void requirements(void **state)
{
    (void)state;
    static const char metadata[] =
        "Metadata-Version: 2.1\n"
        "Name: torch\n"
        "Requires-Dist: filelock\n"
        "Requires-Dist: nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == \"Linux\" and "
        "platform_machine == \"x86_64\"\n"
        "Requires-Dist: nvidia_nccl_cu12==2.26.2; platform_machine=='aarch64'\r\n"
        "Requires-Dist: jinja2 >=2.0,<4\n"
        "Requires-Dist: sympy==1.13.*\n"
        "Requires-Dist: opt-einsum[x] (==3.3) ; extra == 'opt'\n"
        "Requires-Dist:\n"
        "Requires-Dist: ;\n"
        "\n"
        "Requires-Dist: not-one==1\n";
    static const struct gp_requirement wanted[] = {
        {.name = "filelock"},
        {.name = "nvidia-cudnn-cu12", .version = "9.1.0.70", .machine = "x86_64"},
        {.name = "nvidia-nccl-cu12", .version = "2.26.2", .machine = "aarch64"},
        {.name = "jinja2", .least = "2.0"},
        {.name = "sympy"},
        {.name = "opt-einsum", .version = "3.3", .is_extra = true},
    };
    struct gp_requirement one;
    const char *text = metadata;
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++) {
        text = gp_requirement_next(text, &one);
        assert_non_null(text);
        assert_string_equal(one.name, wanted[i].name);
        assert_string_equal(one.version, wanted[i].version);
        assert_string_equal(one.machine, wanted[i].machine);
        assert_string_equal(one.least, wanted[i].least);
        assert_int_equal(one.is_extra, wanted[i].is_extra);
    }
    assert_null(gp_requirement_next(text, &one));
    assert_null(gp_requirement_next("", &one));
}

static void allowed(void **state)
{
    (void)state;
    static const struct {
        const char *specifier, *version;
        bool is_allowed;
    } cases[] = {
        {"", "2.6.0", true},
        {" (==2.6.0)", "2.6.0+cu124", true},
        {"==2.6.0", "2.7.0", false},
        {"<2.7,>=2.4.0", "2.6.0", true},
        {"<2.7,>=2.4.0", "2.7.0", false},
        {"<=2.6.0,>=2.0.0", "2.6.0+cu124", true},
        {"~=2.6.0", "2.6.1", true},
        {"~=2.6.0", "2.7.0", false},
        {"~=2.6", "2.11.0", true},
        {"~=2.6", "3.0", false},
        {"==2.6.*", "2.6.1", true},
        {"==2.6.*", "2.7.0", false},
        {"!=2.5.*,>=2.1", "2.5.1", false},
        {"!=2.5.*,>=2.1", "2.6.0", true},
        {">2.6.0", "2.6.0", false},
        {"[extra] @ https://example.org", "2.6.0", true},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char line[128];
        struct gp_requirement one;
        (void)snprintf(line, sizeof(line), "Requires-Dist: torch%s\n", cases[i].specifier);
        assert_non_null(gp_requirement_next(line, &one));
        assert_int_equal(gp_requirement_allows(&one, cases[i].version), cases[i].is_allowed);
    }
}

static void elsewhere(void **state)
{
    (void)state;
    struct gp_requirement one;
    assert_non_null(
        gp_requirement_next("Requires-Dist: torch<2.3; sys_platform == \"darwin\"\n", &one));
    assert_true(one.is_elsewhere);
    assert_non_null(
        gp_requirement_next("Requires-Dist: torch<2.3; sys_platform != 'darwin'\n", &one));
    assert_false(one.is_elsewhere);
}

/* Which versions of Python a requirement is for. */
static void of_python(void **state)
{
    (void)state;
    static const struct {
        const char *marker, *python;
        bool is_for;
    } cases[] = {
        {"", "", true},
        {"; sys_platform == 'linux'", "", true},
        {"; python_version < \"3.9\"", "3.10", false},
        {"; python_version < \"3.9\"", "3.8", true},
        {"; python_version < \"3.9\"", "", false},
        {";python_version>='3.9' and python_version<'3.13'", "3.12", true},
        {";python_version>='3.9' and python_version<'3.13'", "3.13", false},
        {"; (python_full_version >= '3.9.0') and extra == 'x'", "3.12", true},
        {"; platform_python_implementation == 'CPython'", "3.12", true},
        {"; python_version < '3.9' or sys_platform == 'linux'", "3.8", false},
        {"; python_version in '3.8 3.9'", "3.9", false},
        {"; '3.9' > python_version", "3.8", false},
        {"; python_version < \"3.9", "3.10", false},
        {"; python_version <", "3.10", false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char line[128];
        struct gp_requirement one;
        (void)snprintf(line, sizeof(line), "Requires-Dist: torch<2.7%s\n", cases[i].marker);
        assert_non_null(gp_requirement_next(line, &one));
        if (gp_requirement_is_for(&one, cases[i].python) != cases[i].is_for)
            fail_msg("%s", cases[i].marker);
    }
}

/* Of a specifier that is too long, the comparisons that fit are read. */
static void long_specifier(void **state)
{
    (void)state;
    char line[1024] = "Requires-Dist: torch>=2.4.0", *end = line + strlen(line);
    struct gp_requirement one;
    for (int i = 0; i < 20; i++)
        end += snprintf(end, 32, ",!=2.4.%d", i);
    assert_non_null(gp_requirement_next(line, &one));
    assert_false(one.is_cut);
    assert_false(gp_requirement_allows(&one, "2.4.19"));
    for (int i = 20; i < 60; i++)
        end += snprintf(end, 32, ",!=2.4.%d", i);
    assert_non_null(gp_requirement_next(line, &one));
    assert_true(one.is_cut);
    assert_false(gp_requirement_allows(&one, "2.4.19"));
    assert_true(gp_requirement_allows(&one, "2.4.59"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),     cmocka_unit_test(conda_names),
        cmocka_unit_test(values),    cmocka_unit_test(requirements),
        cmocka_unit_test(of_python), cmocka_unit_test(long_specifier),
        cmocka_unit_test(allowed),   cmocka_unit_test(elsewhere),
    };
    return cmocka_run_group_tests_name("pypackage", tests, NULL, NULL);
}
