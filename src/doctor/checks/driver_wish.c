#include "doctor/checks/driver_wish.h"

#include "doctor/compat.h"
#include "doctor/readers/gpuset.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <string.h>

/* The branch that the module names for a GPU that it ignores: "supported through the NVIDIA 340.xx
 * Legacy drivers"; 0: none. */
static unsigned legacy_branch(struct gp_exam *exam)
{
    static const char mark[] = "through the NVIDIA ";
    const struct gp_log_line *line = gp_log_find(exam, GP_KMSG_LEGACY);
    const char *at = line ? strstr(line->kmsg.body, mark) : NULL;
    return at ? gp_version_major(at + sizeof(mark) - 1) : 0;
}

static void limit(struct gp_wish *wish, unsigned last_branch)
{
    if (last_branch > 0 && (wish->last == 0 || last_branch < wish->last))
        wish->last = last_branch;
}

struct gp_wish gp_driver_wish(struct gp_exam *exam)
{
    struct gp_wish wish = {0};
    for (size_t i = 0; i < exam->machine.gpu_count; i++) {
        const struct gp_chip *chip = exam->machine.gpus[i].chip;
        if (!chip)
            continue;
        gp_wish_add(&wish, chip->compute_capability);
        limit(&wish, chip->last_branch);
    }
    limit(&wish, legacy_branch(exam));
    return wish;
}

bool gp_driver_is_ours(const struct gp_pci_gpu *gpu)
{
    return gpu->vendor == GP_PCI_NVIDIA && strcmp(gpu->driver, "vfio-pci") != 0 &&
           strcmp(gpu->driver, "pci-stub") != 0;
}

const char *gp_driver_gpu_words(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    const char *name = gpu->chip ? strchr(gpu->chip->name, '[') : NULL;
    const struct gp_device *listed = gp_gpuset_device_at(exam, gpu->bus_id);
    if (listed)
        return gp_exam_text(exam, "GPU %u (%.*s)", listed->index,
                            name ? (int)strcspn(name + 1, "]") : (int)strlen(gpu->bus_id),
                            name ? name + 1 : gpu->bus_id);
    if (!name)
        return gp_exam_text(exam, "the %s GPU at %s",
                            gpu->vendor == GP_PCI_AMD     ? "AMD"
                            : gpu->vendor == GP_PCI_INTEL ? "Intel"
                                                          : "NVIDIA",
                            gpu->bus_id);
    return gp_exam_text(exam, "%.*s (%s)", (int)strcspn(name + 1, "]"), name + 1, gpu->bus_id);
}

const char *gp_driver_module_name(struct gp_exam *exam)
{
    const char *file = gp_install_of(exam)->module;
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    const char *end = strstr(name, ".ko");
    return end && end > name ? gp_exam_text(exam, "%.*s", (int)(end - name), name) : "nvidia";
}

const char *gp_driver_misfit(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                             const char *version, bool is_open, bool is_proprietary)
{
    const struct gp_chip *chip = gpu->chip;
    const struct gp_arch *arch = chip ? gp_arch_find(chip->compute_capability) : NULL;
    unsigned branch = gp_version_major(version);
    if (!arch || branch == 0)
        return NULL;
    if (chip->last_branch > 0 && branch > chip->last_branch)
        return gp_exam_text(exam, "%s no longer supports %s: %u is its last branch", version,
                            chip->architecture, chip->last_branch);
    if (branch < arch->first_branch)
        return gp_exam_text(exam, "%s does not support %s yet: support began with branch %u",
                            version, chip->architecture, arch->first_branch);
    if (is_proprietary && !(arch->modules & GP_MODULE_PROPRIETARY))
        return gp_exam_text(
            exam, "%s needs the open kernel modules, but the proprietary ones are installed",
            chip->architecture);
    if (is_open && !(arch->modules & GP_MODULE_OPEN))
        return gp_exam_text(
            exam, "%s needs the proprietary kernel modules, but the open ones are installed",
            chip->architecture);
    return NULL;
}
