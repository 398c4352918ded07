/* TensorFlow.js for Node.js: its native TensorFlow opens the libraries of an older CUDA, which
 * neither npm nor the package brings. A part of cuda.toolkits. */
#include "doctor/checks/cuda.h"

#include "doctor/builds.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <string.h>

static const char package[] = "node_modules/@tensorflow/tfjs-node-gpu";

struct installed {
    const char *path;    /* of the package */
    const char *version; /* of TensorFlow, "2.9.1" */
    bool is_here;        /* the project is that of the working directory */
};

/* "2.9.1" of "libtensorflow.so.2.9.1" in a folder with the package; false: it is not there. */
static bool find_in(struct gp_exam *exam, const char *folder, struct installed *ret)
{
    static const char start[] = "libtensorflow.so.";
    char **names;
    const char *path = gp_exam_text(exam, "%s/%s", folder, package);
    long n =
        gp_files_list(&exam->files, &exam->arena, gp_exam_text(exam, "%s/deps/lib", path), &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 &&
            strchr(names[i] + sizeof(start) - 1, '.')) {
            ret->path = path;
            ret->version = names[i] + sizeof(start) - 1;
            return true;
        }
    return false;
}

/* Node.js looks in the working directory and above it. */
static bool find_here(struct gp_exam *exam, struct installed *ret)
{
    const char *folder = gp_machine_variable(&exam->machine, "PWD");
    ret->is_here = true;
    while (folder && folder[0] == '/' && folder[1]) {
        if (find_in(exam, folder, ret))
            return true;
        folder = gp_exam_text(exam, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    }
    return false;
}

static bool find_elsewhere(struct gp_exam *exam, struct installed *ret)
{
    enum { FOLDERS_MAX = 100 };
    static const char *const places[] = {"/app", "/usr/local/lib", "/usr/lib"};
    const struct gp_homes *homes = gp_homes_of(exam);
    ret->is_here = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(places); i++)
        if (find_in(exam, places[i], ret))
            return true;
    for (size_t i = 0; i < homes->count; i++) {
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, homes->list[i], &names);
        for (long k = 0; k < n && k < FOLDERS_MAX; k++)
            if (names[k][0] != '.' &&
                find_in(exam, gp_exam_text(exam, "%s/%s", homes->list[i], names[k]), ret))
                return true;
    }
    return false;
}

/* The CUDA to install for a build: from 11.2 on the libraries of any newer 11.x will do, and the
 * last one is in the most repositories. */
static const char *toolkit_for(const char *cuda)
{
    return gp_version_major(cuda) == 11 && gp_version_minor(cuda) >= 2 ? "11.8" : cuda;
}

static void mend_cuda(struct gp_exam *exam, const char *name, const char *cuda)
{
    const char *folder = gp_library_folder(exam, name);
    if (!folder) {
        folder = gp_exam_text(exam, "/usr/local/cuda-%s/lib64", toolkit_for(cuda));
        gp_exam_advice(exam, "install CUDA %s next to what is there:", toolkit_for(cuda));
        gp_cuda_fix_toolkit(exam, toolkit_for(cuda));
    }
    gp_exam_command(exam, "also in the shell's startup file, or where the program is started",
                    "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                    gp_exam_quoted(exam, folder));
}

/* One of the same number may be for the other CUDA. */
static void mend_cudnn(struct gp_exam *exam, const char *cuda, const char *cudnn, bool is_there)
{
    unsigned major = gp_version_major(cudnn);
    const struct gp_package *system =
        gp_packages_installed(&exam->files, &exam->arena, gp_exam_text(exam, "libcudnn%u", major));
    bool is_other =
        system && strstr(system->version, "+cuda") &&
        gp_version_major(strstr(system->version, "+cuda") + 5) != gp_version_major(cuda);
    if (is_there && !is_other)
        return;
    if (is_other)
        gp_exam_evidence(exam, "package", "%s %s: not for CUDA %u", system->name, system->version,
                         gp_version_major(cuda));
    gp_exam_advice(
        exam,
        "cuDNN %u for CUDA %u, too: unpack NVIDIA's archive of it "
        "(developer.nvidia.com/cudnn-archive) into a directory of its own, and put its lib "
        "first in LD_LIBRARY_PATH",
        major, gp_version_major(cuda));
}

/* Whether the project may compute by the package without a GPU, which is beside it. */
static bool is_beside_cpu(struct gp_exam *exam, const struct installed *found)
{
    static const char gpu[] = "-gpu";
    int length = (int)(strlen(found->path) - (sizeof(gpu) - 1));
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%.*s", length, found->path));
}

void gp_check_cuda_tfjs(struct gp_exam *exam)
{
    const char *mask = gp_machine_variable(&exam->machine, "CUDA_VISIBLE_DEVICES");
    struct installed found;
    struct gp_build build;
    if ((mask && gp_cuda_mask_is_empty(exam, mask)) ||
        (!find_here(exam, &found) && !find_elsewhere(exam, &found)) ||
        !gp_build_known(GP_FRAMEWORK_TENSORFLOW, found.version, "", &build) || !build.cudnn[0] ||
        gp_version_major(build.cuda) > 11)
        return;
    /* Its own folder comes first. */
    const struct gp_pyenv own = {.prefix = gp_exam_text(exam, "%s/deps", found.path)};
    const char *runtime = gp_version_major(build.cuda) == 11
                              ? "libcudart.so.11.0" /* of all 11.x */
                              : gp_exam_text(exam, "libcudart.so.%s", build.cuda);
    const char *cudnn = gp_exam_text(exam, "libcudnn.so.%u", gp_version_major(build.cudnn));
    bool has_runtime = gp_library_is_loadable(exam, &own, runtime);
    bool has_cudnn = gp_library_is_loadable(exam, &own, cudnn);
    if (has_runtime && has_cudnn)
        return;
    const char *name = has_runtime ? cudnn : runtime, *folder = gp_library_folder(exam, name);
    const char *other =
        folder ? gp_exam_text(exam, "%s/%s", folder, name) : gp_library_other(exam, name);
    /* What is there, its start script or unit may add. */
    gp_exam_report(exam,
                   found.is_here && !folder && !is_beside_cpu(exam, &found) ? GP_VERDICT_WARN
                                                                            : GP_VERDICT_INFO,
                   "TensorFlow.js for Node.js does not find CUDA %u with cuDNN %u%s, and computes "
                   "on the CPU",
                   gp_version_major(build.cuda), gp_version_major(build.cudnn),
                   folder ? ", unless LD_LIBRARY_PATH is set where it is started" : "");
    gp_exam_evidence(exam, found.path, "TensorFlow %s: for CUDA %s and cuDNN %s", found.version,
                     build.cuda, build.cudnn);
    gp_exam_evidence(exam, name, "not where the loader looks%s%s", other ? "; there is " : "",
                     other ? other : "");
    gp_exam_why(exam,
                "\"Could not load dynamic library '%s'\". The package brings TensorFlow, but not "
                "CUDA; a link from that name to a newer library does not help, as its functions "
                "differ.",
                name);
    if (!has_runtime)
        mend_cuda(exam, runtime, build.cuda);
    mend_cudnn(exam, build.cuda, build.cudnn, has_cudnn);
    gp_exam_link(exam, "https://github.com/tensorflow/tfjs/issues/8362");
}
