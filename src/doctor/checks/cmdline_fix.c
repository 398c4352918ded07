/* The arguments of the kernel: each boot loader, and some distributions, keep them elsewhere. */
#include "doctor/checks/cmdline_fix.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <string.h>

static const char grub[] = "/etc/default/grub", drop_ins[] = "/etc/default/grub.d",
                  uefi[] = "/etc/kernel/cmdline", proxmox[] = "/usr/sbin/proxmox-boot-tool";

enum loader { LOADER_UNKNOWN, LOADER_GRUB, LOADER_OTHER };

struct argument {
    const char *text, *note; /* the text: "intel_iommu=on" */
    const char *old; /* "intel_iommu=off": the kernel was started with it; NULL: without any */
    enum loader loader;
};

/* GRUB adds BOOT_IMAGE to what the kernel gets; systemd-boot and the firmware do not. Of the others
 * that add it, such as syslinux, nothing shows but that GRUB's settings are missing. */
static struct argument read_argument(struct gp_exam *exam, const char *text, const char *note)
{
    struct argument ret = {.text = text, .note = note};
    char line[4096];
    const char *word, *at = line;
    size_t n, start = strcspn(text, "=") + 1;
    if (!gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)))
        return ret;
    ret.loader = LOADER_OTHER;
    while (gp_lines_word(&at, line + strlen(line), &word, &n)) {
        if (strncmp(word, "BOOT_IMAGE=", 11) == 0)
            ret.loader = LOADER_GRUB;
        else if (strncmp(word, text, start) == 0)
            ret.old = gp_exam_text(exam, "%.*s", (int)n, word);
    }
    return ret;
}

/* A note of the last step: its own, and the caller's. */
static const char *join(struct gp_exam *exam, const struct argument *a, const char *own)
{
    return gp_exam_text(exam, "%s%s%s", own, own[0] && a->note[0] ? "; " : "", a->note);
}

static const char *replaced(const struct argument *a)
{
    return a->old ? ", in place of the value there," : "";
}

/* ---- boot loaders ---- */

/* What writes GRUB's menu; NULL: unknown. */
static const char *menu_command(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    if (gp_machine_has_apt(m))
        return gp_files_exist(&exam->files, proxmox)
                   ? "sudo update-grub; sudo proxmox-boot-tool refresh"
                   : "sudo update-grub";
    if (strcmp(m->distro_id, "transactional") == 0)
        return "sudo transactional-update grub.cfg";
    if (m->distro == GP_DISTRO_SUSE || gp_files_exist(&exam->files, "/boot/grub2/grub.cfg"))
        return "sudo grub2-mkconfig -o /boot/grub2/grub.cfg";
    if (m->distro == GP_DISTRO_ARCH || gp_files_exist(&exam->files, "/boot/grub/grub.cfg"))
        return "sudo grub-mkconfig -o /boot/grub/grub.cfg";
    return NULL;
}

/* Debian and Ubuntu read more settings from a folder. Any of these files may replace what the
 * others set, so the argument goes into one that is read last: the kernel takes the last of several
 * values. */
static bool fix_grub(struct gp_exam *exam, const struct argument *a)
{
    const bool has_apt = gp_machine_has_apt(&exam->machine);
    const char *menu = menu_command(exam), *own = "";
    if (!menu || a->loader == LOADER_OTHER ||
        (!gp_files_exist(&exam->files, grub) && !gp_files_exist(&exam->files, proxmox)))
        return false;
    if (has_apt && gp_files_exist(&exam->files, drop_ins))
        gp_exam_command(exam, "",
                        "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT %s\"' | "
                        "sudo tee %s/zz-%.*s.cfg",
                        a->text, drop_ins, (int)strcspn(a->text, "="), a->text);
    else
        own = gp_exam_text(
            exam, "once %s%s is in GRUB_CMDLINE_LINUX_DEFAULT of %s%s", a->text, replaced(a), grub,
            a->loader == LOADER_UNKNOWN ? ", or with systemd-boot in /etc/kernel/cmdline" : "");
    gp_exam_command(exam, join(exam, a, own), "%s", menu);
    return true;
}

/* Debian's hook, which writes systemd-boot's entry of a new kernel, and how to write those of all
 * kernels. kernel-install's own add-all is newer, and does not look into /boot. */
static const char
    hook[] = "/etc/kernel/postinst.d/zz-systemd-boot",
    install[] = "for k in /boot/vmlinuz-*; do sudo kernel-install add \"${k#*-}\" \"$k\"; done",
    /* The part of systemd by which a unified kernel image starts leaves this variable. */
    unified[] = "/sys/firmware/efi/efivars/StubInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/* Others than GRUB that have a command for it: what shows them, and where they take it from. */
static const struct {
    enum gp_distro family;
    const char *shown_by, *file, *variable, *command;
} loaders[] = {
    {GP_DISTRO_DEBIAN, proxmox, uefi, "", "sudo proxmox-boot-tool refresh"},
    {GP_DISTRO_DEBIAN, hook, uefi, "", install},
    {GP_DISTRO_UBUNTU, hook, uefi, "", install},
    {GP_DISTRO_ARCH, "/etc/sdboot-manage.conf", "/etc/sdboot-manage.conf", "LINUX_OPTIONS of ",
     "sudo sdboot-manage gen"},
    {GP_DISTRO_ARCH, "/usr/bin/limine-update", "/etc/default/limine", "KERNEL_CMDLINE of ",
     "sudo limine-update"},
    {GP_DISTRO_ARCH, "/usr/bin/reinstall-kernels", uefi, "", "sudo reinstall-kernels"},
    {GP_DISTRO_ARCH, unified, uefi, "", "sudo mkinitcpio -P"},
    {GP_DISTRO_SUSE, "/usr/bin/sdbootutil", uefi, "", "sudo sdbootutil update-all-entries"},
};

/* openSUSE's GRUB may take the same entries as systemd-boot; then it has no menu of its own. */
static bool is_own_grub(struct gp_exam *exam, const struct argument *a)
{
    return a->loader == LOADER_GRUB && (exam->machine.distro != GP_DISTRO_SUSE ||
                                        gp_files_exist(&exam->files, "/boot/grub2/grub.cfg"));
}

static bool fix_loader(struct gp_exam *exam, const struct argument *a)
{
    if (a->loader == LOADER_UNKNOWN || is_own_grub(exam, a))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(loaders); i++) {
        const char *file = loaders[i].file;
        if (loaders[i].family != exam->machine.distro ||
            !gp_files_exist(&exam->files, loaders[i].shown_by) ||
            !gp_files_exist(&exam->files, file))
            continue;
        const char *own = gp_exam_text(exam, "once %s%s is in %s%s", a->text, replaced(a),
                                       loaders[i].variable, file);
        gp_exam_command(exam, join(exam, a, own), "%s", loaders[i].command);
        return true;
    }
    return false;
}

/* Pop!_OS keeps them itself, unless it was started by GRUB, as without UEFI. */
static bool fix_kernelstub(struct gp_exam *exam, const struct argument *a)
{
    if (a->loader == LOADER_GRUB || exam->machine.distro != GP_DISTRO_UBUNTU ||
        !gp_files_exist(&exam->files, "/usr/bin/kernelstub"))
        return false;
    if (a->old)
        gp_exam_command(exam, "", "sudo kernelstub -d %s", gp_exam_quoted(exam, a->old));
    gp_exam_command(exam, a->note, "sudo kernelstub -a %s", a->text);
    return true;
}

/* ---- distributions ---- */

/* Those that have one way for all boot loaders. */
static bool fix_by_distribution(struct gp_exam *exam, const struct argument *a)
{
    const struct gp_machine *m = &exam->machine;
    if (strcmp(m->distro_id, "nixos") == 0) {
        const char *own =
            a->old ? gp_exam_text(exam,
                                  "after writing \"%s\" in place of the value there, in "
                                  "boot.kernelParams of configuration.nix",
                                  a->text)
                   : gp_exam_text(exam,
                                  "after adding, in configuration.nix: boot.kernelParams = [ "
                                  "\"%s\" ];",
                                  a->text);
        gp_exam_command(exam, join(exam, a, own), "sudo nixos-rebuild boot");
    } else if (gp_machine_is_ostree(m)) {
        /* --replace fails for values from elsewhere, such as bootc's; --append-if-missing of some
         * versions adds nothing beside another value. The kernel takes the last of several. */
        gp_exam_command(exam, a->note, "sudo rpm-ostree kargs --append=%s", a->text);
    } else if (m->distro == GP_DISTRO_FEDORA || m->distro == GP_DISTRO_RHEL) {
        gp_exam_command(exam, a->note, "sudo grubby --update-kernel=ALL --args=%s", a->text);
    } else {
        return false;
    }
    return true;
}

void gp_cmdline_fix(struct gp_exam *exam, const char *text, const char *note)
{
    const struct argument a = read_argument(exam, text, note);
    /* What an installation medium starts with is on the medium. */
    if (!gp_machine_is_live(&exam->files) &&
        (fix_by_distribution(exam, &a) || fix_kernelstub(exam, &a) || fix_loader(exam, &a) ||
         fix_grub(exam, &a)))
        return;
    const char *place =
        a.loader == LOADER_OTHER
            ? " (with systemd-boot: on the options line of its entry in loader/entries, or in "
              "/etc/kernel/cmdline, and then write the entries again)"
            : "";
    gp_exam_advice(exam, "%s %s %s%s%s%s", a.old ? "write" : "add", text,
                   a.old ? "on the kernel's command line, in place of the value there"
                         : "to the kernel's command line",
                   place, note[0] ? "; " : "", note);
}
