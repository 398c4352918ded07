/* AMD GPUs whose power saving, gfxoff, is known to make work on them hang. */
#include "doctor/checks/amd.h"

#include "doctor/readers/log.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    unsigned device; /* PCI */
    const char *name, *link;
} chips[] = {
    {0x1586, "Strix Halo", "https://github.com/1bit-MONSTER/1bit-MONSTER/issues/2013"},
};

static const char path[] = "/sys/module/amdgpu/parameters/ppfeaturemask";

/* The chip at this address, an index; GP_ARRAY_LEN(chips): it is none of them. */
static size_t find_chip(const struct gp_exam *exam, const char *bus_id)
{
    size_t i = GP_ARRAY_LEN(chips);
    for (size_t k = 0; k < exam->machine.gpu_count; k++) {
        const struct gp_pci_gpu *gpu = &exam->machine.gpus[k];
        if (gpu->vendor != GP_PCI_AMD || strcmp(gpu->bus_id, bus_id) != 0)
            continue;
        for (i = 0; i < GP_ARRAY_LEN(chips) && chips[i].device != gpu->device;)
            i++;
    }
    return i;
}

/* How often the part for graphics has hung: "ring gfx_0.0.0 timeout". */
static unsigned long long count_hangs(struct gp_exam *exam, const char *bus_id)
{
    const struct gp_log *log = gp_log_of(exam);
    unsigned long long count = 0;
    for (size_t i = 0; i < log->count; i++) {
        const struct gp_log_line *line = &log->lines[i];
        if (line->kmsg.kind == GP_KMSG_AMD_TIMEOUT && strcmp(line->kmsg.bus_id, bus_id) == 0 &&
            strstr(line->text, "ring gfx"))
            count += line->repeats + 1;
    }
    return count;
}

/* A program's fault: it used memory that is not its own. */
static bool has_page_fault(struct gp_exam *exam)
{
    return gp_log_find_known(exam, "amd.page-fault");
}

/* Whether the mask is set where a file of modprobe.d(5) does not change it. */
static bool is_argument(struct gp_exam *exam)
{
    char line[4096];
    return gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)) &&
           strstr(line, "amdgpu.ppfeaturemask=");
}

void gp_amd_suspect_gfxoff(struct gp_exam *exam, const char *bus_id)
{
    enum { GFXOFF = 0x8000 }; /* PP_GFXOFF_MASK */
    char line[32];
    const size_t i = find_chip(exam, bus_id);
    unsigned long mask =
        gp_files_line(&exam->files, path, line, sizeof(line)) ? strtoul(line, NULL, 0) : 0;
    if (i == GP_ARRAY_LEN(chips) || exam->machine.container || count_hangs(exam, bus_id) < 2 ||
        !(mask & GFXOFF) || has_page_fault(exam))
        return;
    mask &= ~(unsigned long)GFXOFF;
    gp_exam_evidence(exam, path, "%s: gfxoff is on", line);
    gp_exam_why(exam,
                "With %s GPUs, users report such hangs because of gfxoff, which powers the GPU "
                "down while it is idle. Other programs and Mesa releases then hang in the same "
                "way.",
                chips[i].name);
    if (is_argument(exam)) {
        gp_exam_advice(exam,
                       "if updates do not help, turn gfxoff off, which others report to help: "
                       "amdgpu.ppfeaturemask=0x%lx on the kernel's command line, in place of the "
                       "value there",
                       mask);
        gp_exam_link(exam, chips[i].link);
        return;
    }
    gp_exam_module_setting(
        exam, "if updates do not help: turn gfxoff off, which others report to help",
        "zz-amdgpu-gfxoff.conf", gp_exam_text(exam, "options amdgpu ppfeaturemask=0x%lx", mask));
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_exam_command(exam, "", "sudo reboot");
    gp_exam_advice(exam, "it costs power, and may keep a laptop from its deepest sleep: if the "
                         "hangs continue, remove that file again");
    gp_exam_link(exam, chips[i].link);
}
