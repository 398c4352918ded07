/* The module's source that DKMS does not know, though its package is installed: a finding of
 * driver.module. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/version.h"

#include <string.h>

static const char sources[] = "/usr/src", registry[] = "/var/lib/dkms";

/* A tree of the driver's source, as `dkms add` takes it. */
struct tree {
    const char *path;           /* "/usr/src/nvidia-560.35.03" */
    const char *name, *version; /* "nvidia", "560.35.03" */
};

/* The value of NAME="value" in a dkms.conf; "": there is none, or it is made of variables. */
static const char *value_of(struct gp_exam *exam, const char *path, const char *name)
{
    size_t size = 0, n, start = strlen(name);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size), *line;
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        if (n <= start + 1 || strncmp(line, name, start) != 0 || line[start] != '=')
            continue;
        const char *value = line + start + 1;
        value += *value == '"' || *value == '\'';
        size_t length = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789.-_");
        return strchr("\"'\r\n", value[length]) ? gp_exam_text(exam, "%.*s", (int)length, value)
                                                : "";
    }
    return "";
}

/* The tree whose version is that of the driver's libraries; others are left over, or of other
 * modules, as nvidia-fs. */
static bool find_tree(struct gp_exam *exam, const char *version, struct tree *ret)
{
    enum { MOST = 256 };
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, sources, &names);
    for (long i = 0; i < n && i < MOST; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", sources, names[i]);
        const char *end = strncmp(names[i], "nvidia-", 7) == 0 ? strstr(names[i], version) : NULL;
        if (!end || strcmp(end, version) != 0 || end[-1] != '-')
            continue;
        const char *name = value_of(exam, gp_exam_text(exam, "%s/dkms.conf", path), "PACKAGE_NAME");
        if (strcmp(gp_exam_text(exam, "%s-%s", name, version), names[i]) != 0)
            continue; /* dkms would look for it elsewhere */
        *ret = (struct tree){path, name, version};
        return true;
    }
    return false;
}

/* Whether the tree is to be built here: of an installed package for DKMS, or of the .run installer.
 * Packages with built modules bring the source for other purposes, too. */
static bool is_for_dkms(const struct gp_install *in)
{
    for (size_t i = 0; i < in->package_count; i++)
        if (strstr(in->packages[i].name, "dkms") && strcmp(in->packages[i].state, "installed") == 0)
            return true;
    return in->package_count == 0;
}

/* Arch's hook adds the source and builds it, but only for kernels whose headers are there. */
static void report_without_headers(struct gp_exam *exam, const struct tree *tree,
                                   const char *headers)
{
    static const char log[] = "/var/log/pacman.log";
    size_t size = 0, n;
    const char *text = gp_files_tail(&exam->files, &exam->arena, log, 1 << 20, &size), *line;
    const char *kernel = exam->machine.kernel, *error = NULL;
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n))
        if (memmem(line, n, kernel, strlen(kernel)) && memmem(line, n, "kernel headers for", 18))
            error = gp_exam_text(exam, "%.*s", n < 200 ? (int)n : 200, line);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "kernel %s has no NVIDIA module: without the kernel's headers DKMS did not "
                   "build it",
                   kernel);
    gp_exam_evidence(exam, headers, "missing: the headers of this kernel are not installed");
    gp_exam_evidence(exam, tree->path, "the source of the module, version %s", tree->version);
    gp_exam_evidence(exam, registry, "nothing of the driver");
    if (error)
        gp_exam_evidence(exam, log, "%s", error);
    gp_exam_why(exam,
                "The package brings the source of the module. A hook of pacman builds it, but "
                "only for kernels whose headers are installed. It runs again when they are.");
    gp_driver_fix_headers(exam, kernel);
    if (!gp_driver_has_dkms(exam))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DKMS, NULL, NULL);
}

bool gp_driver_report_forgotten(struct gp_exam *exam, bool *ret_updates_kernel)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_driver_library *library = gp_install_library(in);
    const char *kernel = exam->machine.kernel;
    struct tree tree;
    char **names;
    if (in->source[0] || in->closed_build[0] || in->failed.log || !library || !is_for_dkms(in) ||
        exam->machine.container || !find_tree(exam, library->version, &tree) ||
        gp_files_list(&exam->files, &exam->arena, registry, &names) < 0)
        return false;
    const char *headers = gp_exam_text(exam, "%s/%s/build", in->modules, kernel);
    bool has_headers = gp_files_exist(&exam->files, headers);
    bool has_dkms = gp_driver_has_dkms(exam);
    *ret_updates_kernel = !has_headers && exam->machine.distro == GP_DISTRO_ARCH;
    if (*ret_updates_kernel) {
        report_without_headers(exam, &tree, headers);
        return true;
    }
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "kernel %s has no NVIDIA module: DKMS does not know its source, which is here",
                   kernel);
    gp_exam_evidence(exam, tree.path, "the source of the module, version %s", tree.version);
    gp_exam_evidence(exam, registry, "nothing of the driver");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s/modules.dep", in->modules, kernel),
                     "no nvidia.ko");
    if (!has_headers)
        gp_exam_evidence(exam, headers, "missing: the headers of this kernel are not installed");
    gp_exam_why(exam, "DKMS builds only what was added to it. The script of a package took this "
                      "source off its list, as some do at an update to another release of the same "
                      "version, or dkms remove did.");
    if (!has_headers)
        gp_driver_fix_headers(exam, kernel);
    if (!has_dkms)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DKMS, NULL, NULL);
    gp_exam_command(exam, "add the source to its list", "sudo dkms add -m %s -v %s", tree.name,
                    tree.version);
    gp_exam_command(exam, "build the driver's module for this kernel, and install it",
                    "sudo dkms install -m %s -v %s -k %s", tree.name, tree.version,
                    gp_exam_quoted(exam, kernel));
    return true;
}
