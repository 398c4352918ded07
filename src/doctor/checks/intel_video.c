/* What Jellyfin needs of an Intel GPU besides VA-API: HuC for its low-power encoders, and OpenCL.
 */
#include "doctor/checks/intel.h"

#include "doctor/checks/log_show.h"
#include "doctor/checks/unbound.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/jellyfin.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

static const char parameter[] = "i915.enable_guc=", option[] = "enable_guc=";

/* Models of which i915 does not load HuC by itself (Linux, intel_uc.c: before generation 12, Tiger
 * Lake and Rocket Lake), and those that have no other encoders than the low-power ones. */
static const struct {
    unsigned first, last; /* PCI devices */
    bool has_low_power_alone;
} without_huc[] = {{0x1902, 0x193d, false}, {0x5a84, 0x5a85, false}, {0x3184, 0x3185, false},
                   {0x5902, 0x593b, false}, {0x3e90, 0x3ea9, false}, {0x87c0, 0x87ca, false},
                   {0x9b21, 0x9bf6, false}, {0x8a50, 0x8a71, false}, {0x4541, 0x4571, true},
                   {0x4e51, 0x4e71, true},  {0x9a40, 0x9af8, false}, {0x4c80, 0x4c9f, false}};

static bool is_true(struct gp_exam *exam, const char *name)
{
    const char *value = gp_jellyfin_setting(exam, name);
    return value && strcmp(value, "true") == 0;
}

/* Whether the last enable_guc= of the text asks for HuC; −1 stands for i915's default. */
static bool asks_for_huc(const char *text)
{
    enum { LOAD_HUC = 2 };
    const char *value = text;
    for (const char *at = text; (at = strstr(at, option));)
        value = at += sizeof(option) - 1;
    return value[0] != '-' && (strtoul(value, NULL, 0) & LOAD_HUC);
}

/* Whether a line of modprobe.d(5) sets the parameter; of a comment or another module it does not.
 */
static bool is_setting(const char *line, size_t length)
{
    const char *at = line, *end = line + length, *word;
    size_t n;
    if (!gp_lines_word(&at, end, &word, &n) || !gp_lines_is(word, n, "options") ||
        !gp_lines_word(&at, end, &word, &n) || !gp_lines_is(word, n, "i915"))
        return false;
    while (gp_lines_word(&at, end, &word, &n))
        if (n > sizeof(option) - 1 && memcmp(word, option, sizeof(option) - 1) == 0)
            return true;
    return false;
}

/* The last line of modprobe.d that sets the parameter, and its file; NULL: none does. Whether it is
 * in force depends on the initramfs. */
static const char *setting_of_files(struct gp_exam *exam, const char **ret_path)
{
    static const char folder[] = "/etc/modprobe.d";
    const char *ret = NULL, *line;
    char **names;
    size_t size = 0, n;
    long count = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < count; i++) {
        const char *end = strrchr(names[i], '.');
        if (!end || strcmp(end, ".conf") != 0)
            continue;
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
        for (struct gp_lines lines = gp_lines_of(text, text ? size : 0);
             gp_lines_next(&lines, &line, &n);)
            if (is_setting(line, n)) {
                ret = gp_exam_text(exam, "%.*s", (int)n, line);
                *ret_path = path;
            }
    }
    return ret;
}

/* UNSURE: a file turns it off, which the running module need not have read, or nothing is known. */
enum huc { HUC_UNSURE, HUC_IS_OFF, HUC_IS_ON };

/* Whether an option makes i915 load HuC, and the evidence, unless that is unsure. */
static enum huc loads_huc(struct gp_exam *exam, const char **ret_where, const char **ret_text)
{
    static const char path[] = "/sys/module/i915/parameters/enable_guc";
    char line[4096];
    *ret_where = path;
    if (gp_files_line(&exam->files, path, line, sizeof(line))) { /* root may read it */
        *ret_text = gp_exam_text(exam, "%s", line);
        return asks_for_huc(line) ? HUC_IS_ON : HUC_IS_OFF;
    }
    const char *set = setting_of_files(exam, ret_where);
    bool is_read = gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line));
    const char *found = is_read ? strstr(line, parameter) : NULL;
    const char *words = found ? gp_exam_text(exam, "%.*s", (int)strcspn(found, " "), found)
                              : gp_exam_text(exam, "no %s2", parameter);
    *ret_text = set ? set : words;
    if (set)
        return asks_for_huc(set) && (!found || asks_for_huc(words)) ? HUC_IS_ON : HUC_UNSURE;
    *ret_where = "/proc/cmdline";
    if (!is_read)
        return HUC_UNSURE;
    return found && asks_for_huc(words) ? HUC_IS_ON : HUC_IS_OFF;
}

static bool wants_low_power(struct gp_exam *exam)
{
    return is_true(exam, "EnableIntelLowPowerH264HwEncoder") ||
           is_true(exam, "EnableIntelLowPowerHevcHwEncoder");
}

static const char guide_link[] =
    "https://jellyfin.org/docs/general/post-install/transcoding/hardware-acceleration/intel/";
static const char first_mended[] = "5.16";

/* i915 of Linux 5.15 does not start GuC and HuC of generation 11: Ice, Elkhart and Jasper Lake. */
static bool has_lost_guc(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const struct {
        unsigned first, last; /* PCI devices */
    } spans[] = {{0x8a50, 0x8a71}, {0x4541, 0x4571}, {0x4e51, 0x4e71}};
    static const char *const modules[] = {"i915", NULL};
    const char *kernel = exam->machine.kernel;
    for (size_t i = 0; i < GP_ARRAY_LEN(spans); i++)
        if (gpu->device >= spans[i].first && gpu->device <= spans[i].last)
            return kernel[0] && strcmp(gpu->driver, "i915") == 0 && !exam->machine.container &&
                   gp_version_compare(kernel, "5.15") >= 0 &&
                   gp_version_compare(kernel, first_mended) < 0 &&
                   !gp_unbound_has_backport(exam, modules);
    return false;
}

/* How to do without GuC, which is off by default on these models. */
static void propose_without_guc(struct gp_exam *exam)
{
    const char *file = NULL;
    (void)setting_of_files(exam, &file);
    gp_exam_advice(exam,
                   "or, for decoding on the GPU only: take enable_guc out of %s, rebuild the "
                   "initramfs, turn low-power encoding off where a program has it, and reboot",
                   file ? file : "the kernel command line");
}

/* The log tells that the GPU could not be started; without such a line, what Ubuntu's kernel is
 * known for counts only where Jellyfin is to use it. A missing firmware is another fault. */
bool gp_intel_report_lost_guc(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *where, *text;
    if (!has_lost_guc(exam, gpu) || loads_huc(exam, &where, &text) != HUC_IS_ON ||
        gp_log_known_for(exam, "intel.microcontroller,intel.firmware", gpu->bus_id))
        return false;
    const struct gp_log_known *line = gp_log_known_for(exam, "intel.init", gpu->bus_id);
    bool is_wanted = exam->machine.distro == GP_DISTRO_UBUNTU && gp_jellyfin_uses_dri(exam) &&
                     wants_low_power(exam);
    if (!line && !is_wanted)
        return false;
    gp_exam_report(exam, line ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "kernel %s has a fault in i915 with which Intel GPU %s %s", exam->machine.kernel,
                   gpu->bus_id,
                   line ? "is not started while enable_guc is set" : "has no low-power encoding");
    gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", exam->machine.kernel);
    if (line)
        gp_log_show_known(exam, line);
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_why(exam,
                "With Linux 5.15, i915 cannot use GuC and HuC of Ice, Elkhart and Jasper Lake, "
                "which low-power encoding needs; %s and newer can. Programs fail to open VA-API: "
                "\"Input/output error\".",
                first_mended);
    gp_unbound_newer_kernel(exam, gpu, first_mended);
    propose_without_guc(exam);
    gp_exam_link(exam, guide_link);
    return true;
}

void gp_intel_report_no_huc(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    bool is_wanted = wants_low_power(exam);
    const char *where, *text;
    bool is_one = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(without_huc); i++)
        if (gpu->device >= without_huc[i].first && gpu->device <= without_huc[i].last)
            is_one = is_wanted || (without_huc[i].has_low_power_alone &&
                                   is_true(exam, "EnableHardwareEncoding"));
    if (!is_one || exam->machine.container || strcmp(gpu->driver, "i915") != 0 ||
        !gp_jellyfin_uses_dri(exam) || loads_huc(exam, &where, &text) != HUC_IS_OFF)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "i915 does not load HuC, which the low-power encoders of Intel GPU %s need",
                   gpu->bus_id);
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_evidence(exam, "encoding.xml",
                     is_wanted
                         ? "Jellyfin is to use these encoders"
                         : "Jellyfin is to encode on this GPU, which has only these encoders");
    gp_exam_why(exam,
                "Before Alder Lake i915 loads HuC only if enable_guc says so: without it they "
                "cannot control the bit rate, and transcoding fails.");
    if (has_lost_guc(exam, gpu)) {
        gp_exam_advice(exam, "first a newer kernel, as Linux 5.15 cannot load it:");
        gp_unbound_newer_kernel(exam, gpu, first_mended);
    }
    gp_exam_module_setting(exam, "load HuC", "i915-huc.conf", "options i915 enable_guc=2");
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
    if (is_wanted)
        gp_exam_advice(exam, "or turn the low-power encoders off in Jellyfin's playback settings");
    gp_exam_link(exam, guide_link);
}

const char *gp_intel_tone_mapper(struct gp_exam *exam)
{
    bool is_nixos = strcmp(exam->machine.distro_id, "nixos") == 0; /* has ICDs elsewhere */
    return !is_nixos && gp_jellyfin_uses_dri(exam) && is_true(exam, "EnableTonemapping")
               ? "Jellyfin's tone mapping"
               : NULL;
}
