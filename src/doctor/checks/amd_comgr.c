/* AMD's OpenCL: the files of clang that its compiler, comgr, needs when a program runs. */
#include "doctor/checks/amd.h"

#include "doctor/readers/log.h"

#include <ctype.h>
#include <string.h>

/* The path in "could not find file 'PATH' referenced by …", as comgr looks for it; NULL. */
static const char *path_in(struct gp_exam *exam, const char *text)
{
    static const char before[] = "could not find file '/", after[] = "' referenced by ";
    const char *start = strstr(text, before);
    const char *end = start ? strstr(start, after) : NULL;
    if (!end)
        return NULL;
    start += sizeof(before) - 2;
    return end - start < GP_PATH_SIZE ? gp_exam_text(exam, "%.*s", (int)(end - start), start)
                                      : NULL;
}

/* Where that is without links: "/usr/lib/clang" of "/usr/bin/../lib/clang". */
static const char *without_dots(struct gp_exam *exam, const char *path)
{
    char ret[GP_PATH_SIZE] = "";
    size_t used = 0;
    for (size_t n; *path; path += n) {
        path += strspn(path, "/");
        n = strcspn(path, "/");
        if (n == 2 && memcmp(path, "..", 2) == 0) {
            char *slash = strrchr(ret, '/');
            used = slash ? (size_t)(slash - ret) : 0;
        } else if (n > 0 && !(n == 1 && *path == '.') && used + n + 2 < sizeof(ret)) {
            ret[used] = '/';
            memcpy(ret + used + 1, path, n);
            used += n + 1;
        }
        ret[used] = '\0';
    }
    return gp_exam_text(exam, "%s", ret);
}

/* The directory that the path goes through, "/usr/lib64/llvm17/bin": without it, the file is not
 * found even where it is. */
static const char *way_of(struct gp_exam *exam, const char *path)
{
    const char *end = strstr(path, "/../");
    return end ? gp_exam_text(exam, "%.*s", (int)(end - path), path) : NULL;
}

/* The number after this in a path, "17" of "/usr/lib64/llvm17/bin"; "". */
static const char *number_after(struct gp_exam *exam, const char *path, const char *word)
{
    const char *at = strstr(path, word);
    at = at ? at + strlen(word) : "";
    int n = 0;
    while (isdigit((unsigned char)at[n]))
        n++;
    return at[n] == '/' ? gp_exam_text(exam, "%.*s", n, at) : "";
}

/* The packages with the file, and with the directory on the way to it; "": unknown. */
static const char *packages_of(struct gp_exam *exam, const char *path, const char *file)
{
    const char *older = number_after(exam, path, "/llvm");
    const char *debian = number_after(exam, file, "/llvm-");
    switch (exam->machine.distro) {
    case GP_DISTRO_FEDORA:
        /* Never the path itself: dnf would install a package that lies there. */
        return older[0] && strncmp(file, "/usr/lib/clang/", 15) == 0
                   ? gp_exam_text(exam, "clang%s clang%s-libs", older, older)
                   : "";
    case GP_DISTRO_DEBIAN:
    case GP_DISTRO_UBUNTU:
        return debian[0] ? gp_exam_text(exam, "libclang-common-%s-dev", debian) : "";
    case GP_DISTRO_ARCH:
        return strncmp(file, "/opt/rocm/", 10) == 0        ? "rocm-llvm"
               : strncmp(file, "/usr/lib/clang/", 15) == 0 ? "clang"
                                                           : "";
    default:
        return "";
    }
}

static void mend(struct gp_exam *exam, const char *path, const char *file)
{
    const struct gp_machine *m = &exam->machine;
    const char *packages = packages_of(exam, path, file);
    if (!packages[0])
        gp_exam_advice(exam, "install clang of this version, with the package that has %s", file);
    else if (m->distro == GP_DISTRO_ARCH)
        gp_exam_command(exam, "", "sudo pacman -S %s", packages);
    else if (gp_machine_is_ostree(m))
        gp_exam_command(exam, "then reboot", "sudo rpm-ostree install %s", packages);
    else
        gp_exam_command(exam, "", "sudo %s install %s",
                        m->distro == GP_DISTRO_FEDORA ? "dnf" : "apt", packages);
    gp_exam_advice(exam, "then start the program again; a newer rocm-comgr or ROCm may no longer "
                         "need the file");
}

/* Some builds of comgr do not have OpenCL's header in themselves, and no package requires the one
 * with it. Only the error tells that; what is there now, whether it still holds. */
void gp_amd_check_comgr(struct gp_exam *exam)
{
    const struct gp_log_known *said = gp_log_known_of(exam, "amd.comgr-file");
    const char *path = said ? path_in(exam, said->text) : NULL;
    if (!path || gp_files_exist(&exam->files, path))
        return;
    const char *file = without_dots(exam, path), *way = way_of(exam, path);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "OpenCL programs cannot be built for the AMD GPU: its compiler lacks a file of "
                   "clang");
    gp_exam_evidence(exam, said->where, "%s", said->text);
    if (!gp_files_exist(&exam->files, file))
        gp_exam_evidence(exam, file, "missing");
    if (way && !gp_files_exist(&exam->files, way))
        gp_exam_evidence(exam, way, "missing: the way to the file is by this directory");
    gp_exam_why(exam, "OpenCL's programs are compiled when they run, by comgr of ROCm, which looks "
                      "for the files of the LLVM that it was built with. The GPU is found, but "
                      "each program fails with CL_BUILD_PROGRAM_FAILURE (-11).");
    mend(exam, path, file);
}
