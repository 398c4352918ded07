/* RPM Fusion's open modules where rpm-ostree builds them. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"

#include "doctor/checks/driver_wish.h"
#include "doctor/readers/install.h"
#include "doctor/version.h"

#include <string.h>

static const char set[] = "_with_kmod_nvidia_open 1";

/* A definition begins with "%": what stands in front of it makes it a comment or another one. */
static bool is_set_in(struct gp_exam *exam, const char *path)
{
    char text[1024];
    if (gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
        return false;
    for (const char *at = text; (at = strstr(at, set)); at++)
        if (at > text && at[-1] == '%' && (at - 1 == text || strchr("\n \t", at[-2])))
            return true;
    return false;
}

/* Whether akmods has built the other kind of modules than the GPUs need, of a version that would
 * do. */
static bool is_only_kind(struct gp_exam *exam, const struct gp_install *in)
{
    struct gp_wish wish = gp_driver_wish(exam);
    return strcmp(exam->machine.distro_id, "ostree") == 0 && strstr(in->source, "akmods") &&
           in->module[0] && !in->is_open && wish.needs_open && !wish.needs_proprietary &&
           in->version[0] && gp_wish_fits(&wish, gp_version_major(in->version));
}

/* rpm-ostree runs the packages' scripts in the new system, where /etc has only what the image and
 * its packages bring: a macro in this machine's /etc is not seen there, but one below /usr is. */
bool gp_driver_fix_layered(struct gp_exam *exam)
{
    static const char in_etc[] = "/etc/rpm/macros.nvidia-kmod",
                      in_usr[] = "/usr/lib/rpm/macros.d/macros.nvidia-kmod",
                      beside[] = "/usr/lib/rpm/macros.d/macros.nvidia-kmod-open";
    /* Of two packages with the same file the second is refused. */
    bool is_taken = gp_files_exist(&exam->files, in_usr);
    const char *target = is_taken ? beside : in_usr;
    if (!is_only_kind(exam, gp_install_of(exam)) || is_set_in(exam, in_usr) ||
        is_set_in(exam, beside))
        return false;
    if (is_set_in(exam, in_etc))
        gp_exam_evidence(exam, in_etc,
                         "%s: but rpm-ostree builds layered modules without this machine's /etc",
                         set);
    gp_exam_evidence(exam, in_usr, "%s: akmods builds the proprietary modules",
                     is_taken ? gp_exam_text(exam, "does not set %%%s", set) : "missing");
    gp_exam_command(
        exam, "describe a package with the macro that has the open modules built",
        "printf '%%s\\n' 'Name: nvidia-kmod-open-macro' 'Version: 1' 'Release: 1' "
        "'Summary: Open modules' 'License: MIT' 'BuildArch: noarch' %%description "
        "'Has akmods build the open modules.' %%install "
        "'mkdir -p %%{buildroot}/usr/lib/rpm/macros.d' "
        "'echo \"%%%%%s\" > %%{buildroot}%s' %%files %s > ~/nvidia-kmod-open-macro.spec",
        set, target, target);
    gp_exam_command(exam, "", "rpmbuild -bb ~/nvidia-kmod-open-macro.spec");
    gp_exam_command(exam, "layer it: the modules are built again with it",
                    "sudo rpm-ostree install "
                    "~/rpmbuild/RPMS/noarch/nvidia-kmod-open-macro-1-1.noarch.rpm");
    gp_exam_advice(exam, "or change to an image with the open modules in it, of Universal Blue "
                         "with nvidia-open in its name, by rpm-ostree rebase");
    return true;
}
