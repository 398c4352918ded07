#include "unit.h"

#include "doctor/lines.h"
#include "doctor/readers/modules.h"
#include "doctor/readers/packages.h"

static const char *found_in(const char *dep)
{
    static char path[256];
    path[0] = '\0';
    return gp_modules_find_nvidia(dep, strlen(dep), path, sizeof(path)) ? path : NULL;
}

static void finds_the_module(void **state)
{
    (void)state;
    assert_string_equal(found_in("kernel/a.ko: kernel/b.ko\nextra/nvidia/nvidia.ko.xz:\n"),
                        "extra/nvidia/nvidia.ko.xz");
    assert_string_equal(found_in("updates/dkms/nvidia.ko:"), "updates/dkms/nvidia.ko");
    assert_string_equal(found_in("nvidia.ko.zst: x\r\n"), "nvidia.ko.zst");
    assert_string_equal(found_in("updates/dkms/nvidia-current.ko:"),
                        "updates/dkms/nvidia-current.ko");
    assert_string_equal(found_in("updates/dkms/nvidia-tesla-470.ko:"),
                        "updates/dkms/nvidia-tesla-470.ko");
    assert_string_equal(found_in("updates/dkms/nvidia-legacy-390xx.ko:"),
                        "updates/dkms/nvidia-legacy-390xx.ko");
    assert_string_equal(found_in("updates/dkms/nvidia_361_uvm.ko: x\nupdates/dkms/nvidia_361.ko:"),
                        "updates/dkms/nvidia_361.ko");
    assert_string_equal(found_in("updates/dkms/nvidia_331_updates.ko:"),
                        "updates/dkms/nvidia_331_updates.ko");
}

static void takes_no_other_module(void **state)
{
    (void)state;
    static const char *const lists[] = {
        "",
        "\n\n",
        "nvidia.ko",
        "updates/nvidia-uvm.ko: updates/nvidia.ko",
        "kernel/drivers/video/fbdev/nvidia/nvidiafb.ko:",
        "updates/dkms/nvidia-tesla-470-uvm.ko:",
        "updates/dkms/nvidia-current-drm.ko:",
        "updates/dkms/nvidia_331_updates_uvm.ko:",
        "updates/dkms/_updates.ko:",
        "kernel/i2c-nvidia-gpu.ko:",
        "nvidia:",
        ":",
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        assert_null(found_in(lists[i]));
}

static void reads_the_branch(void **state)
{
    (void)state;
    static const struct {
        const char *path, *branch;
    } cases[] = {{"kernel/nvidia-580-open/nvidia.ko", "580"},
                 {"kernel/nvidia-535srv/nvidia.ko", "535"},
                 {"kernel/nvidia-580/nvidia.ko", "580"},
                 {"updates/dkms/nvidia-tesla-470.ko", ""},
                 {"updates/dkms/nvidia.ko", ""},
                 {"nvidia-580", ""},
                 {"", ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char branch[8];
        gp_modules_branch(cases[i].path, branch, sizeof(branch));
        assert_string_equal(branch, cases[i].branch);
    }
}

static void reads_modprobe(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum gp_block_kind kind;
    } cases[] = {
        {"blacklist nvidia", GP_BLOCK_BLACKLISTED},
        {"  blacklist\tnvidia  ", GP_BLOCK_BLACKLISTED},
        {"# blacklist nvidia", GP_BLOCK_NONE},
        {"#blacklist nvidia", GP_BLOCK_NONE},
        {"blacklist nvidia-drm", GP_BLOCK_NONE},
        {"blacklist nouveau", GP_BLOCK_NONE},
        {"blacklist", GP_BLOCK_NONE},
        {"install nvidia /bin/false", GP_BLOCK_REFUSED},
        {"install nvidia /usr/bin/true", GP_BLOCK_REFUSED},
        {"install nvidia modprobe -i nvidia-current $CMDLINE_OPTS", GP_BLOCK_NONE},
        {"alias nvidia off", GP_BLOCK_REFUSED},
        {"alias nvidia nvidia-current", GP_BLOCK_NONE},
        {"options nvidia NVreg_DeviceFileMode=0660", GP_BLOCK_NONE},
        {"", GP_BLOCK_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(gp_modules_config_line(cases[i].line, strlen(cases[i].line), "nvidia"),
                         cases[i].kind);
    assert_int_equal(gp_modules_config_line("blacklist nvidia_uvm", 20, "nvidia-uvm"),
                     GP_BLOCK_BLACKLISTED);
}

static void sees_other_names(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool is_renamed;
    } cases[] = {
        {"alias nvidia_uvm nvidia-331-updates-uvm", true},
        {"install nvidia-uvm modprobe -i nvidia-current-uvm $CMDLINE_OPTS", true},
        {"alias nvidia nvidia_361", false},
        {"# alias nvidia-uvm nvidia_361_uvm", false},
        {"options nvidia-uvm uvm_debug_prints=1", false},
        {"alias", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(gp_modules_is_renamed(cases[i].line, strlen(cases[i].line), "nvidia-uvm"),
                         cases[i].is_renamed);
}

static void reads_the_command_line(void **state)
{
    (void)state;
    char word[64] = "";
    assert_int_equal(gp_modules_command_line("ro module_blacklist=a,nvidia quiet\n", "nvidia", word,
                                             sizeof(word)),
                     GP_BLOCK_REFUSED);
    assert_string_equal(word, "module_blacklist=a,nvidia");
    assert_int_equal(
        gp_modules_command_line("modprobe.blacklist=nvidia", "nvidia", word, sizeof(word)),
        GP_BLOCK_BLACKLISTED);
    static const char *const others[] = {"",
                                         "modprobe.blacklist=",
                                         "modprobe.blacklist=nvidiafb",
                                         "modprobe.blacklist=,,nouveau,",
                                         "rd.driver.blacklist=nvidia",
                                         "nvidia.NVreg_EnableMSI=1"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(gp_modules_command_line(others[i], "nvidia", word, sizeof(word)),
                         GP_BLOCK_NONE);
    assert_true(gp_modules_initramfs_line("ro rd.driver.blacklist=a,nouveau quiet", "nouveau", word,
                                          sizeof(word)));
    assert_string_equal(word, "rd.driver.blacklist=a,nouveau");
    assert_true(gp_modules_initramfs_line("rdblacklist=nouveau", "nouveau", word, sizeof(word)));
    assert_false(
        gp_modules_initramfs_line("modprobe.blacklist=nouveau", "nouveau", word, sizeof(word)));
}

static void finds_the_first_error(void **state)
{
    (void)state;
    static const struct {
        const char *log;
        size_t line;
        const char *text;
    } cases[] = {
        {"", 0, ""},
        {"all is well\n", 0, ""},
        {"make: *** [a] Error 2\nnv.c:3:1: error: no\nnv.c:9:1: error: too\n", 2,
         "nv.c:3:1: error: no"},
        {"x\nmake[1]: *** [b] Error 1\nmake: *** [c] Error 2", 2, "make[1]: *** [b] Error 1"},
        {"/bin/sh: 1: gcc-13: not found\r\n", 1, "/bin/sh: 1: gcc-13: not found"},
        {"ERROR: modpost: \"x\" undefined!\n", 1, "ERROR: modpost: \"x\" undefined!"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *line = "";
        size_t n = 0;
        size_t number = gp_modules_first_error(cases[i].log, strlen(cases[i].log), &line, &n);
        assert_int_equal(number, cases[i].line);
        assert_int_equal(n, strlen(cases[i].text));
        assert_memory_equal(line, cases[i].text, n);
    }
}

static void reads_the_kernel_of_a_log(void **state)
{
    (void)state;
    static const struct {
        const char *log, *kernel;
    } cases[] = {
        {"DKMS make.log for nvidia-570.124.06 for kernel 6.8.0-60-generic (x86_64)\nmore",
         "6.8.0-60-generic"},
        {"DKMS (dkms-3.1.5) make.log for nvidia/580.95.05 for kernel 6.17.9-arch1-1 (x86_64)",
         "6.17.9-arch1-1"},
        {"log for kernel 6.1", "6.1"},
        {"log for kernel ", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char kernel[64];
        gp_modules_log_kernel(cases[i].log, strlen(cases[i].log), kernel, sizeof(kernel));
        assert_string_equal(kernel, cases[i].kernel);
    }
}

/* ---- packages ---- */

static void reads_stanzas(void **state)
{
    (void)state;
    static const char text[] = "Package: nvidia-driver-580-open\n"
                               "Status: install ok half-configured\n"
                               "Version: 580.95.05-0ubuntu1\n"
                               "Description: a driver\n Package: of words\n\n\n"
                               "Status: install ok installed\nVersion: 1\n\n"
                               "Package: bash\r\nStatus: install ok installed\r\n"
                               "Version: 5.1";
    struct gp_lines lines = gp_lines_of(text, sizeof(text) - 1);
    struct gp_package package;
    assert_true(gp_packages_next(&lines, &package));
    assert_string_equal(package.name, "nvidia-driver-580-open");
    assert_string_equal(package.state, "half-configured");
    assert_string_equal(package.version, "580.95.05-0ubuntu1");
    assert_true(gp_packages_next(&lines, &package));
    assert_string_equal(package.name, "bash");
    assert_string_equal(package.state, "installed");
    assert_string_equal(package.version, "5.1");
    assert_false(gp_packages_next(&lines, &package));
}

static void takes_long_and_odd_stanzas(void **state)
{
    (void)state;
    char text[4096];
    struct gp_package package;
    memset(text, 'x', sizeof(text));
    memcpy(text, "Package: ", 9);
    struct gp_lines lines = gp_lines_of(text, sizeof(text));
    assert_true(gp_packages_next(&lines, &package));
    assert_int_equal(strlen(package.name), sizeof(package.name) - 1);
    lines = gp_lines_of("Package:\n\nPackage: \n\n", 21);
    assert_false(gp_packages_next(&lines, &package));
    static const char hostile[] = "Package: a$(id)-utils\n\nPackage: libstdc++6\n\nPackage: a b";
    lines = gp_lines_of(hostile, sizeof(hostile) - 1);
    assert_true(gp_packages_next(&lines, &package));
    assert_string_equal(package.name, "libstdc++6");
    assert_false(gp_packages_next(&lines, &package));
}

static void reads_pacmans_folders(void **state)
{
    (void)state;
    struct gp_package package;
    assert_true(gp_packages_of_folder("nvidia-utils-590.48.01-2", &package));
    assert_string_equal(package.name, "nvidia-utils");
    assert_string_equal(package.version, "590.48.01-2");
    static const char *const others[] = {
        "", "-", "a", "a-1", "-1-2", "ALPM_DB_VERSION", "--", "nvidia$(id)-590.48.01-1"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(gp_packages_of_folder(others[i], &package));
}

static void reads_branches(void **state)
{
    (void)state;
    assert_int_equal(gp_packages_branch("libnvidia-compute-580-server"), 580);
    assert_int_equal(gp_packages_branch("nvidia-driver-470"), 470);
    assert_int_equal(gp_packages_branch("nvidia-driver-580-open"), 580);
    assert_int_equal(gp_packages_branch("nvidia-580xx-dkms"), 0);
    assert_int_equal(gp_packages_branch("libcuda1"), 0);
    assert_int_equal(gp_packages_branch("cuda-drivers-5800"), 0);
    assert_true(gp_packages_is_open("nvidia-dkms-580-server-open"));
    assert_true(gp_packages_is_open("nvidia-kernel-open-dkms"));
    assert_false(gp_packages_is_open("nvidia-opencl-icd-361"));
    struct gp_package package = {.name = "nvidia-utils-460",
                                 .version = "470.103.01-0ubuntu0.20.04.1"};
    assert_true(gp_packages_is_transitional(&package));
    package = (struct gp_package){.name = "linux-modules-nvidia-535-5.15.0-86-generic",
                                  .version = "5.15.0-86.96"};
    assert_false(gp_packages_is_transitional(&package));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_module),      cmocka_unit_test(takes_no_other_module),
        cmocka_unit_test(reads_the_branch),      cmocka_unit_test(reads_modprobe),
        cmocka_unit_test(sees_other_names),      cmocka_unit_test(reads_the_command_line),
        cmocka_unit_test(finds_the_first_error), cmocka_unit_test(reads_the_kernel_of_a_log),
        cmocka_unit_test(reads_stanzas),         cmocka_unit_test(takes_long_and_odd_stanzas),
        cmocka_unit_test(reads_pacmans_folders), cmocka_unit_test(reads_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
