/* The libcuda of a forward-compatibility package in the place of the driver's: cuda.compat. */
#include "doctor/checks/cuda.h"

#include "doctor/checks/variable_fix.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/install.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

struct compat {
    const char *path;    /* of libcuda.so.1 */
    const char *version; /* the file it links to; "" */
    const char *cuda;    /* the image's CUDA whose package it is, "12.1"; "": unknown */
    bool is_in_cache;    /* found in ld.so.cache, otherwise in LD_LIBRARY_PATH */
};

/* The CUDA of an image, "12.1", whose package has this version of libcuda: the container's start
 * put it among the driver's libraries, since it is newer. "": unknown; NULL: it is of no package.
 */
static const char *cuda_of_image(struct gp_exam *exam, const char *version)
{
    static const char top[] = "/usr/local";
    const char *found = NULL;
    char **names;
    long n = exam->machine.container ? gp_files_list(&exam->files, &exam->arena, top, &names) : 0;
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "cuda", 4) == 0 && strcmp(version, exam->machine.driver) != 0 &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s/compat/libcuda.so.%s", top,
                                                      names[i], version)) &&
            (!found || !found[0]))
            /* "cuda" and "cuda-12" are links to "cuda-12.1". */
            found = names[i][4] == '-' && strchr(names[i], '.')
                        ? gp_exam_text(exam, "%s", names[i] + 5)
                        : "";
    return found;
}

static bool take_compat(struct gp_exam *exam, const char *path, bool is_in_cache,
                        struct compat *ret)
{
    char real[GP_PATH_SIZE];
    if (!gp_files_real(&exam->files, path, real))
        return false;
    const char *version = gp_library_version(real);
    const char *cuda = cuda_of_image(exam, version);
    if (!strstr(path, "/compat") && !cuda)
        return false;
    *ret = (struct compat){gp_exam_text(exam, "%s", path),
                           gp_exam_text(exam, "%s", strchr(version, '.') ? version : ""),
                           cuda ? cuda : "", is_in_cache};
    return true;
}

/* The libcuda.so.1 that the loader picks, if it is from a forward-compatibility package. */
static bool find_compat(struct gp_exam *exam, struct compat *ret)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE], path[GP_PATH_SIZE];
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0;
    while (gp_search_path_next(&list, ":;", folder))
        if (snprintf(path, sizeof(path), "%s/libcuda.so.1", folder) < GP_PATH_SIZE &&
            folder[0] == '/' && gp_files_exist(&exam->files, path))
            return take_compat(exam, path, false, ret);
    if (gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0 &&
        gp_ldcache_find(&cache, "libcuda.so.1", exam->machine.arch, &from, &library) &&
        gp_files_exist(&exam->files, library.path))
        return take_compat(exam, library.path, true, ret);
    /* A cache from before the container's start, or none, as with musl. */
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->library_count; i++)
        if (strcmp(in->libraries[i].name, "libcuda.so.1") == 0)
            return take_compat(exam, in->libraries[i].path, true, ret);
    return false;
}

bool gp_cuda_is_compat_mounted(struct gp_exam *exam)
{
    struct compat compat;
    return find_compat(exam, &compat) && !strstr(compat.path, "/compat");
}

/* The configuration lines that make the loader search there. */
static void show_loader_lines(struct gp_exam *exam)
{
    static const char folder[] = "/etc/ld.so.conf.d";
    char **names;
    char path[GP_PATH_SIZE], text[4096];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        unsigned number = 1;
        if (snprintf(path, sizeof(path), "%s/%s", folder, names[i]) >= GP_PATH_SIZE ||
            gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
            continue;
        for (const char *line = text; *line; number++) {
            size_t length = strcspn(line, "\n");
            if (*line != '#' && memmem(line, length, "/compat", 7))
                gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", path, number), "%.*s",
                                 (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
}

static void show_compat(struct gp_exam *exam, const struct compat *compat)
{
    gp_exam_evidence(exam, compat->path, "the loader finds it before the driver's own%s%s",
                     compat->version[0] ? ", version " : "", compat->version);
    if (compat->is_in_cache && !strstr(compat->path, "/compat")) {
        gp_exam_evidence(exam,
                         gp_exam_text(exam, "/usr/local/cuda%s%s/compat",
                                      compat->cuda[0] ? "-" : "", compat->cuda),
                         "it is of the image; the driver of the host is %s", exam->machine.driver);
        return;
    }
    if (compat->is_in_cache) {
        show_loader_lines(exam);
        return;
    }
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s",
                     gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"));
    gp_exam_assignments(exam, "LD_LIBRARY_PATH");
}

/* The image's package is what the container's start takes the newer libcuda from. Without it, the
 * driver of the host runs programs of its own major version of CUDA. */
static void fix_image(struct gp_exam *exam, const struct compat *compat)
{
    const char *driver = exam->machine.driver;
    const char *floor = compat->cuda[0] ? gp_cuda_floor(compat->cuda) : "";
    gp_exam_advice(exam, "update the driver on the host to %s or newer, and reboot it",
                   compat->version);
    if (floor[0] && gp_driver_reaches(driver, floor)) {
        gp_exam_advice(exam,
                       "or remove the image's package, also in its Dockerfile, and restart the "
                       "container: the host's driver runs programs of CUDA %u",
                       gp_version_major(compat->cuda));
        bool is_rhel = exam->machine.distro == GP_DISTRO_RHEL;
        if (is_rhel || gp_machine_has_apt(&exam->machine))
            gp_exam_command(exam, "in the container, as root", "%s cuda-compat-%u-%u",
                            is_rhel ? "dnf remove" : "apt-get remove",
                            gp_version_major(compat->cuda), gp_version_minor(compat->cuda));
    }
    gp_exam_advice(exam, "or use an image for CUDA %s or older, which the host's driver has",
                   gp_cuda_ceiling(driver));
}

static bool is_newer(const struct compat *compat, const char *driver)
{
    return compat->version[0] && driver[0] && gp_version_compare(compat->version, driver) > 0;
}

static void fix_compat(struct gp_exam *exam, const struct compat *compat)
{
    if (!strstr(compat->path, "/compat")) {
        fix_image(exam, compat);
    } else if (compat->is_in_cache) {
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_CUDA_COMPAT, NULL, NULL);
        gp_exam_command(exam, "update the loader's cache", "sudo ldconfig");
    } else {
        gp_exam_command(exam, "and remove the directory where it is set", "unset LD_LIBRARY_PATH");
    }
    if (exam->machine.container && strstr(compat->path, "/compat") &&
        is_newer(compat, exam->machine.driver))
        gp_exam_advice(exam, "or update the driver on the host to %s or newer, and reboot it",
                       compat->version);
}

static const struct gp_nvidia_gpu *consumer_gpu(const struct gp_nvidia *nv)
{
    for (size_t i = 0; i < nv->count; i++)
        if (strstr(nv->gpus[i].name, "GeForce") || strstr(nv->gpus[i].name, "TITAN"))
            return &nv->gpus[i];
    return NULL;
}

void gp_cuda_use_compat(struct gp_exam *exam, struct gp_nvidia *nv)
{
    struct compat compat;
    if (nv->count > 0 && !consumer_gpu(nv) && find_compat(exam, &compat) &&
        is_newer(&compat, nv->driver))
        (void)snprintf(nv->driver, sizeof(nv->driver), "%s", compat.version);
}

void gp_check_cuda_compat(struct gp_exam *exam)
{
    struct compat compat;
    struct gp_nvidia nv;
    if (!find_compat(exam, &compat))
        return;
    gp_nvidia_read(&nv, exam);
    const struct gp_nvidia_gpu *consumer = consumer_gpu(&nv);
    bool is_ahead = is_newer(&compat, nv.driver);
    if (consumer && (is_ahead || !compat.version[0])) {
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "the forward-compatibility libcuda is in use, which %s does not support",
                       consumer->name);
        show_compat(exam, &compat);
        gp_exam_why(exam,
                    "It supports only data center GPUs; on others every program fails with error "
                    "804, \"forward compatibility was attempted on non supported HW\".");
        fix_compat(exam, &compat);
    } else if (compat.version[0] && nv.driver[0] && !is_ahead) {
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "the forward-compatibility libcuda %s is not newer than the driver, %s",
                       compat.version, nv.driver);
        show_compat(exam, &compat);
        gp_exam_why(exam, "It replaces the driver's own libcuda, which can do more: programs may "
                          "fail with error 803.");
        fix_compat(exam, &compat);
    } else {
        gp_exam_report(exam, GP_VERDICT_OK, "a forward-compatibility libcuda is in use");
        show_compat(exam, &compat);
    }
}
