/* The arguments of the kernel: each boot loader, and some distributions, keep them elsewhere. */
#include "doctor/checks/cmdline_fix.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <string.h>

static const char grub[] = "/etc/default/grub", drop_ins[] = "/etc/default/grub.d",
                  uefi[] = "/etc/kernel/cmdline", proxmox[] = "/usr/sbin/proxmox-boot-tool";

struct argument {
    const char *name, *value, *note, *text; /* the text: "intel_iommu=on" */
    const char *old; /* "intel_iommu=off": the kernel was started with it; NULL: without any */
    bool is_twice;   /* there are several of it */
    bool is_known, is_grub; /* whether the boot loader is known, and is GRUB */
};

/* GRUB adds BOOT_IMAGE to what the kernel gets; systemd-boot and the firmware do not. */
static struct argument read_argument(struct gp_exam *exam, const char *name, const char *value,
                                     const char *note)
{
    struct argument ret = {.name = name,
                           .value = value,
                           .note = note,
                           .text = gp_exam_text(exam, "%s=%s", name, value)};
    char line[4096];
    const char *word, *at = line, *start = gp_exam_text(exam, "%s=", name);
    size_t n;
    if (!gp_files_line(&exam->files, "/proc/cmdline", line, sizeof(line)))
        return ret;
    ret.is_known = true;
    while (gp_lines_word(&at, line + strlen(line), &word, &n)) {
        ret.is_grub = ret.is_grub || strncmp(word, "BOOT_IMAGE=", 11) == 0;
        if (strncmp(word, start, strlen(start)) != 0)
            continue;
        ret.is_twice = ret.old;
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

/* ---- files that have the argument ---- */

static bool is_end(char c)
{
    return c == '\0' || strchr(" \t\r\n\"'", c);
}

/* How often a file has the argument; −1: also in a way that the command below would spoil, such as
 * a list of values, or the end of a longer name. */
static int count_in(const char *text, size_t length, const char *start)
{
    static const char plain[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    int count = 0;
    struct gp_lines lines = gp_lines_of(text, length);
    const char *line;
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        if (line[strspn(line, " \t")] == '#')
            continue;
        const char *p = line, *end = line + n;
        for (; (p = memmem(p, (size_t)(end - p), start, strlen(start))); count++) {
            bool is_word = p == line || is_end(p[-1]);
            p += strlen(start);
            size_t m = strspn(p, plain);
            if (!is_word || m == 0 || !is_end(p[m]))
                return -1;
        }
    }
    return count;
}

/* The command that writes the new value into a file which has another one; false: it has none. */
static bool replace_in(struct gp_exam *exam, const struct argument *a, const char *path)
{
    size_t size = 0, n = 0;
    char name[128];
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    int count = text ? count_in(text, size, gp_exam_text(exam, "%s=", a->name)) : 0;
    if (count <= 0)
        return false;
    for (const char *p = a->name; *p && n + 2 < sizeof(name); p++) {
        if (*p == '.')
            name[n++] = '\\';
        name[n++] = *p;
    }
    name[n] = '\0';
    gp_exam_command(exam, "the original file is kept next to it",
                    "sudo sed -Ei.before 's/(%s=)[0-9A-Za-z]+/\\1%s/%s' %s", name, a->value,
                    count > 1 ? "g" : "", gp_exam_quoted(exam, path));
    return true;
}

/* In GRUB's settings; Debian and Ubuntu have more of them in a folder, where images for clouds set
 * what counts. Nobody has more than a few there. */
static bool replace_in_grub(struct gp_exam *exam, const struct argument *a)
{
    enum { MOST = 64 };
    char **names;
    bool is_any = replace_in(exam, a, grub);
    long n = gp_machine_has_apt(&exam->machine)
                 ? gp_files_list(&exam->files, &exam->arena, drop_ins, &names)
                 : 0;
    for (long i = 0; i < n && i < MOST; i++)
        if (gp_lines_ends(names[i], ".cfg"))
            is_any |= replace_in(exam, a, gp_exam_text(exam, "%s/%s", drop_ins, names[i]));
    return is_any;
}

/* ---- boot loaders ---- */

/* What writes GRUB's menu; NULL: unknown, or GRUB is not in use. */
static const char *menu_command(struct gp_exam *exam)
{
    static const char second[] = "sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
                      first[] = "sudo grub-mkconfig -o /boot/grub/grub.cfg";
    const struct gp_machine *m = &exam->machine;
    const bool has_settings = gp_files_exist(&exam->files, grub);
    if (gp_machine_has_apt(m))
        return gp_files_exist(&exam->files, proxmox)
                   ? "sudo update-grub; sudo proxmox-boot-tool refresh"
                   : "sudo update-grub";
    if (strcmp(m->distro_id, "transactional") == 0)
        return "sudo transactional-update grub.cfg";
    if (m->distro == GP_DISTRO_SUSE ||
        (has_settings && gp_files_exist(&exam->files, "/boot/grub2/grub.cfg")))
        return second;
    if (m->distro == GP_DISTRO_ARCH ||
        (has_settings && gp_files_exist(&exam->files, "/boot/grub/grub.cfg")))
        return first;
    return NULL;
}

static bool fix_grub(struct gp_exam *exam, const struct argument *a)
{
    const bool has_apt = gp_machine_has_apt(&exam->machine);
    const char *menu = menu_command(exam), *own = "";
    if (!menu || (a->is_known && !a->is_grub) ||
        (!a->is_known && !gp_files_exist(&exam->files, grub) &&
         !gp_files_exist(&exam->files, proxmox)))
        return false;
    bool is_replaced = replace_in_grub(exam, a);
    if (!is_replaced && has_apt && gp_files_exist(&exam->files, drop_ins))
        gp_exam_command(exam, "",
                        "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT %s\"' | "
                        "sudo tee %s/zz-%s.cfg",
                        a->text, drop_ins, a->name);
    else if (!is_replaced)
        own = gp_exam_text(exam, "once %s%s is in GRUB_CMDLINE_LINUX_DEFAULT of %s%s", a->text,
                           replaced(a), grub,
                           a->is_known ? "" : ", or with systemd-boot in /etc/kernel/cmdline");
    gp_exam_command(exam, join(exam, a, own), "%s", menu);
    return true;
}

/* Others than GRUB that have a command for it: what shows them, and where they take it from. */
static const struct {
    enum gp_distro family;
    const char *shown_by, *file, *variable, *command;
} loaders[] = {
    {GP_DISTRO_DEBIAN, proxmox, uefi, "", "sudo proxmox-boot-tool refresh"},
    {GP_DISTRO_ARCH, "/etc/sdboot-manage.conf", "/etc/sdboot-manage.conf", "LINUX_OPTIONS of ",
     "sudo sdboot-manage gen"},
    {GP_DISTRO_ARCH, "/usr/bin/limine-update", "/etc/default/limine", "KERNEL_CMDLINE of ",
     "sudo limine-update"},
    {GP_DISTRO_ARCH, "/usr/bin/reinstall-kernels", uefi, "", "sudo reinstall-kernels"},
    {GP_DISTRO_SUSE, "/usr/bin/sdbootutil", uefi, "", "sudo sdbootutil update-all-entries"},
};

/* openSUSE's GRUB may take the same entries as systemd-boot; then it has no menu of its own. */
static bool is_own_grub(struct gp_exam *exam, const struct argument *a)
{
    return a->is_grub && (exam->machine.distro != GP_DISTRO_SUSE ||
                          gp_files_exist(&exam->files, "/boot/grub2/grub.cfg"));
}

static bool fix_loader(struct gp_exam *exam, const struct argument *a)
{
    if (!a->is_known || is_own_grub(exam, a))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(loaders); i++) {
        const char *file = loaders[i].file, *own = "";
        if (loaders[i].family != exam->machine.distro ||
            !gp_files_exist(&exam->files, loaders[i].shown_by) ||
            !gp_files_exist(&exam->files, file))
            continue;
        if (!replace_in(exam, a, file))
            own = gp_exam_text(exam, "once %s%s is in %s%s", a->text, replaced(a),
                               loaders[i].variable, file);
        gp_exam_command(exam, join(exam, a, own), "%s", loaders[i].command);
        return true;
    }
    return false;
}

/* Pop!_OS keeps them itself, unless it was started by GRUB, as without UEFI. */
static bool fix_kernelstub(struct gp_exam *exam, const struct argument *a)
{
    if (a->is_grub || exam->machine.distro != GP_DISTRO_UBUNTU ||
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
        /* It replaces only what is there once; of several, the kernel takes the last. */
        gp_exam_command(exam, a->note, "sudo rpm-ostree kargs --%s=%s",
                        a->old && !a->is_twice ? "replace" : "append", a->text);
    } else if (m->distro == GP_DISTRO_FEDORA || m->distro == GP_DISTRO_RHEL) {
        gp_exam_command(exam, a->note, "sudo grubby --update-kernel=ALL --args=%s", a->text);
    } else {
        return false;
    }
    return true;
}

void gp_cmdline_fix(struct gp_exam *exam, const char *name, const char *value, const char *note)
{
    const struct argument a = read_argument(exam, name, value, note);
    /* What an installation medium starts with is on the medium. */
    if (!gp_machine_is_live(&exam->files) &&
        (fix_by_distribution(exam, &a) || fix_kernelstub(exam, &a) || fix_loader(exam, &a) ||
         fix_grub(exam, &a)))
        return;
    const char *place =
        a.is_known && !a.is_grub
            ? " (with systemd-boot: in /etc/kernel/cmdline, or on the line options of its entry "
              "in loader/entries)"
            : "";
    gp_exam_advice(exam, "%s %s %s%s%s%s", a.old ? "write" : "add", a.text,
                   a.old ? "on the kernel's command line, in place of the value there"
                         : "to the kernel's command line",
                   place, note[0] ? "; " : "", note);
}
