/* A guest whose AMD GPU has no VBIOS: its host must give it one, as no firmware of the machine
 * does. */
#include "doctor/checks/unbound.h"

#include "doctor/exam.h"
#include "doctor/readers/gfxchip.h"

#include <string.h>

/* The audio function of AMD's that came with the GPU; NULL: none, or it is unknown which. */
static const char *audio_of(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char folder[] = "/sys/bus/pci/devices";
    const char *found = NULL;
    char **names, line[32];
    size_t device = strcspn(gpu->bus_id, "."), count = 0;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (!gp_files_line(&exam->files, gp_exam_text(exam, "%s/class", path), line,
                           sizeof(line)) ||
            strncmp(line, "0x0403", 6) != 0 ||
            !gp_files_line(&exam->files, gp_exam_text(exam, "%s/vendor", path), line,
                           sizeof(line)) ||
            strcmp(line, "0x1002") != 0)
            continue;
        if (strncmp(names[i], gpu->bus_id, device + 1) == 0)
            return names[i];
        found = names[i];
        count++;
    }
    return count == 1 ? found : NULL;
}

static bool is_of_proxmox(struct gp_exam *exam)
{
    char line[128];
    return gp_files_line(&exam->files, "/sys/class/dmi/id/bios_vendor", line, sizeof(line)) &&
           strstr(line, "Proxmox");
}

/* Where the host's settings name a file of this kind. */
static const char *setting(struct gp_exam *exam, const char *file)
{
    if (is_of_proxmox(exam))
        return gp_exam_text(exam,
                            "put it into /usr/share/kvm, and add romfile=%s to the hostpci line of "
                            "this function in /etc/pve/qemu-server/ID.conf",
                            file);
    return gp_exam_text(exam,
                        "name it for this function: libvirt <rom file=\"/PATH/%s\"/> in its "
                        "<hostdev>, QEMU romfile=/PATH/%s",
                        file, file);
}

bool gp_unbound_fix_rom(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char gop[] = "AMDGopDriver.rom";
    bool is_integrated = gp_gfx_is_integrated(gp_gfx_of_chip(gpu->device));
    bool is_uefi = gp_files_exist(&exam->files, "/sys/firmware/efi");
    if (!gp_machine_is_virtual(&exam->files))
        return false;
    gp_exam_advice(exam,
                   "on the host, for the GPU (here %s): a file with the VBIOS of this GPU, %s; %s",
                   gpu->bus_id,
                   is_integrated ? "which an integrated one has only in the firmware of its board "
                                   "(the host's /sys/firmware/acpi/tables/VFCT)"
                                 : "as read from its rom file in the host's sysfs",
                   setting(exam, "vbios.bin"));
    if (is_integrated && is_uefi) {
        const char *audio = audio_of(exam, gpu);
        gp_exam_advice(exam,
                       "and for its audio function (%s): %s, the UEFI driver for its screens, made "
                       "of the same firmware; %s",
                       audio ? gp_exam_text(exam, "here %s", audio) : "pass that to the guest, too",
                       gop, setting(exam, gop));
    }
    gp_exam_advice(exam,
                   "leave the ROM bar on for %s, then stop the guest and start it again: a "
                   "reboot in it does not read the settings",
                   is_integrated && is_uefi ? "both" : "it");
    if (is_integrated)
        gp_exam_link(exam, "https://github.com/isc30/ryzen-gpu-passthrough-proxmox");
    return true;
}
