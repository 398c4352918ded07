/* CUDA's user space: toolkits, the driver they need, the forward-compatibility package, cuDNN. */
#include "doctor/checks/cuda.h"

#include "doctor/checks/driver_fix.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- toolkits ---- */

static const char *words_of(struct gp_exam *exam, const struct gp_toolkit_found *toolkit)
{
    return toolkit->version[0] ? gp_exam_text(exam, "CUDA %s (%s)", toolkit->version, toolkit->path)
                               : gp_exam_text(exam, "CUDA of unknown version (%s)", toolkit->path);
}

static void report_damage(struct gp_exam *exam, const struct gp_toolkits *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct gp_toolkit_found *toolkit = &all->list[i];
        if (!toolkit->damage[0])
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "the CUDA toolkit in %s is damaged: its version.json is invalid",
                       toolkit->path);
        gp_exam_evidence(exam, toolkit->damage, "not JSON with a version");
        if (toolkit->version[0])
            gp_exam_evidence(exam, toolkit->source, "CUDA %s", toolkit->version);
        gp_exam_why(exam,
                    "An interrupted installation leaves such a file; others may be truncated too.");
        gp_exam_advice(exam, "reinstall this toolkit");
    }
}

/* nvcc in PATH is not from /usr/local/cuda, where builds look for libraries; with CUDA_HOME they
 * look there. */
static void report_disagreement(struct gp_exam *exam, const struct gp_toolkits *all)
{
    const struct gp_toolkit_found *on_path = NULL, *standard = NULL;
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].is_on_path)
            on_path = &all->list[i];
        if (all->list[i].is_default)
            standard = &all->list[i];
    }
    const char *where, *root = gp_cuda_build_root(exam, &where);
    bool is_chosen = on_path && root && strcmp(root, on_path->path) == 0 && where[0] == 'C';
    if (!on_path || !standard || on_path == standard || is_chosen ||
        strcmp(on_path->version, standard->version) == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "nvcc in PATH is from CUDA %s, but /usr/local/cuda is CUDA %s", on_path->version,
                   standard->version);
    gp_exam_evidence(exam, all->nvcc, "of %s", words_of(exam, on_path));
    gp_exam_evidence(exam, "/usr/local/cuda", "%s", words_of(exam, standard));
    gp_exam_why(exam, "Builds use the compiler of one and the libraries of the other: they fail, "
                      "or the program finds no matching library.");
    gp_exam_command(exam, "build with /usr/local/cuda", "export PATH=/usr/local/cuda/bin:$PATH");
    gp_exam_command(exam, "or build with the other one", "export CUDA_HOME=%s",
                    gp_exam_quoted(exam, on_path->path));
}

/* A toolkit for the GPU: one that is installed, that of PyTorch, whose extensions need it, or the
 * one that is given. */
static void propose_toolkit(struct gp_exam *exam, const struct gp_arch *arch, const char *fitting)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    struct gp_torch torch;
    const char *wanted = gp_cuda_torch(exam, &torch) ? torch.cuda : "";
    bool is_wanted =
        wanted[0] && gp_version_compare(wanted, arch->first_cuda) >= 0 &&
        (!arch->last_cuda[0] || gp_version_major(wanted) <= gp_version_major(arch->last_cuda));
    for (size_t i = 0; i < all->count; i++) {
        const struct gp_toolkit_found *other = &all->list[i];
        if (!other->has_compiler || !other->version[0] ||
            gp_version_compare(other->version, arch->first_cuda) < 0 ||
            (arch->last_cuda[0] &&
             gp_version_major(other->version) > gp_version_major(arch->last_cuda)) ||
            (is_wanted && gp_version_major(other->version) != gp_version_major(wanted)))
            continue;
        gp_exam_command(
            exam, gp_exam_text(exam, "build with CUDA %s, which is installed", other->version),
            "export CUDA_HOME=%s PATH=%s/bin:$PATH", gp_exam_quoted(exam, other->path),
            gp_exam_quoted(exam, other->path));
        return;
    }
    if (is_wanted)
        gp_exam_advice(exam,
                       "PyTorch was built for CUDA %s: install that toolkit, and point CUDA_HOME "
                       "at it:",
                       wanted);
    else if (exam->machine.is_driver_loaded)
        gp_exam_advice(exam, "the newest for this GPU and driver is CUDA %s:", fitting);
    gp_cuda_fix_compiler(exam, is_wanted ? wanted : fitting);
}

/* The newest CUDA that the driver implements and whose compiler supports the GPU; the first such
 * one, if the driver is unknown or older. */
static const char *newest_for(const struct gp_arch *arch, const char *driver)
{
    const char *ceiling = gp_cuda_ceiling(driver);
    if (!ceiling[0] || gp_version_compare(ceiling, arch->first_cuda) < 0)
        return arch->first_cuda;
    return arch->last_cuda[0] && gp_version_compare(ceiling, arch->last_cuda) > 0 ? arch->last_cuda
                                                                                  : ceiling;
}

/* The compiler is too old or too new for the GPU. */
static void report_compiler(struct gp_exam *exam, const struct gp_toolkit_found *toolkit)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    for (size_t i = 0; toolkit->version[0] && i < nv.count; i++) {
        const struct gp_arch *arch = gp_arch_find(nv.gpus[i].capability);
        bool is_late = arch && arch->last_cuda[0] &&
                       gp_version_major(toolkit->version) > gp_version_major(arch->last_cuda);
        bool is_early = arch && arch->first_cuda[0] &&
                        gp_version_compare(toolkit->version, arch->first_cuda) < 0;
        if (!is_late && !is_early)
            continue;
        const char *fitting = is_late ? arch->last_cuda : arch->first_cuda;
        gp_exam_report(exam, GP_VERDICT_WARN, "the compiler of CUDA %s cannot build for %s",
                       toolkit->version, gp_nvidia_gpu_words(exam, &nv.gpus[i]));
        gp_exam_evidence(exam, toolkit->source, "CUDA %s", toolkit->version);
        gp_exam_why(exam,
                    "CUDA %s is the %s whose compiler supports this GPU. Wheels such as PyTorch's "
                    "include their own CUDA and are not affected.",
                    fitting, is_late ? "last" : "first");
        propose_toolkit(exam, arch, newest_for(arch, nv.driver));
    }
}

/* That passes, but is the cause if something was to be built. */
static void remark_without_toolkit(struct gp_exam *exam)
{
    struct gp_torch torch;
    const char *newest = gp_cuda_ceiling(exam->machine.driver);
    gp_exam_report(exam, GP_VERDICT_OK,
                   "no CUDA toolkit is installed; it is needed to build programs, not to run them");
    if (exam->machine.container)
        gp_exam_advice(exam, "use an image whose tag has devel in place of runtime or base, or "
                             "install the toolkit in this one:");
    if (gp_cuda_torch(exam, &torch))
        gp_cuda_fix_compiler(exam, torch.cuda);
    else if (newest[0])
        gp_cuda_fix_compiler(exam, newest);
}

static void run_toolkits(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const struct gp_toolkit_found *used = gp_toolkit_used(all);
    const struct gp_finding *before = exam->last;
    report_damage(exam, all);
    if (!gp_check_cuda_mixed(exam))
        report_disagreement(exam, all);
    gp_check_cuda_place(exam);
    gp_check_cuda_unsearched(exam);
    if (used && used->has_compiler)
        report_compiler(exam, used);
    gp_check_cuda_llamafile(exam);
    if (exam->last == before)
        gp_check_cuda_torch(exam);
    if (exam->last == before)
        gp_check_cuda_host(exam);
    gp_check_cuda_tfjs(exam);
    if (exam->last != before)
        return;
    if (all->count == 0) {
        remark_without_toolkit(exam);
        return;
    }
    if (!gp_cuda_torch_remark(exam))
        gp_exam_report(exam, GP_VERDICT_OK, "CUDA toolkits: %zu", all->count);
    for (size_t i = 0; i < all->count; i++)
        gp_exam_evidence(exam, all->list[i].source, "%s%s", words_of(exam, &all->list[i]),
                         all->list[i].is_on_path ? ", nvcc is in PATH" : "");
}

/* ---- the driver that they need ---- */

/* Another toolkit, whose programs this driver runs; NULL: there is none. */
static const struct gp_toolkit_found *other_compiler(struct gp_exam *exam,
                                                     const struct gp_nvidia *nv,
                                                     const struct gp_toolkit_found *toolkit)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    for (size_t i = 0; i < all->count; i++) {
        const char *floor = gp_cuda_floor(all->list[i].version);
        if (&all->list[i] != toolkit && all->list[i].has_compiler && floor[0] &&
            gp_driver_reaches(nv->driver, floor))
            return &all->list[i];
    }
    return NULL;
}

static void report_floor(struct gp_exam *exam, const struct gp_nvidia *nv,
                         const struct gp_toolkit_found *toolkit, bool is_used)
{
    const char *floor = gp_cuda_floor(toolkit->version);
    const char *ceiling = gp_cuda_ceiling(nv->driver);
    gp_exam_report(exam, is_used ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "programs built with CUDA %s need driver %s or newer; this machine has %s",
                   toolkit->version, floor, nv->driver);
    gp_exam_evidence(exam, toolkit->source, "CUDA %s", toolkit->version);
    gp_exam_why(exam, "They fail with \"CUDA driver version is insufficient for CUDA runtime "
                      "version\" (error 35).");
    const struct gp_toolkit_found *other = other_compiler(exam, nv, toolkit);
    if (other)
        gp_exam_command(exam,
                        gp_exam_text(exam, "build with the other toolkit, CUDA %s", other->version),
                        "export PATH=%s/bin:$PATH", gp_exam_quoted(exam, other->path));
    if (other)
        gp_exam_advice(exam, "or keep it, and:");
    gp_driver_fix_at_least(exam, floor);
    if (ceiling[0] && !other && exam->machine.container) {
        gp_exam_advice(exam, "or use an image for CUDA %s or older, which this driver implements",
                       ceiling);
    } else if (ceiling[0] && !other) {
        gp_exam_advice(exam,
                       "or install CUDA %s, the newest that this driver implements:", ceiling);
        gp_cuda_fix_compiler(exam, ceiling);
    }
}

static void report_same_branch(struct gp_exam *exam, const struct gp_nvidia *nv,
                               const struct gp_toolkit_found *toolkit, const char *floor)
{
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "CUDA %s is documented for driver %s or newer; this machine has %s, of the same "
                   "branch",
                   toolkit->version, floor, nv->driver);
    gp_exam_evidence(exam, toolkit->source, "CUDA %s", toolkit->version);
    gp_exam_why(exam, "The branch implements CUDA %s, so its programs start.",
                gp_cuda_ceiling(nv->driver));
}

static void report_ptx(struct gp_exam *exam, const struct gp_nvidia *nv,
                       const struct gp_toolkit_found *toolkit)
{
    unsigned capability = nv->count == 1 ? nv->gpus[0].capability : 0;
    bool is_used = toolkit->is_on_path && !exam->machine.container;
    gp_exam_report(exam, is_used ? gp_cuda_build_verdict(exam) : GP_VERDICT_INFO,
                   "CUDA %s is newer than the driver, which implements CUDA %s: programs run, but "
                   "not from PTX",
                   toolkit->version, gp_cuda_ceiling(nv->driver));
    gp_exam_evidence(exam, toolkit->source, "CUDA %s%s", toolkit->version,
                     toolkit->is_on_path ? ", nvcc is in PATH" : "");
    gp_exam_why(exam, "Code that was not compiled for exactly this GPU fails with \"the provided "
                      "PTX was compiled with an unsupported toolchain\" (error 222); nvcc does so "
                      "without -arch.");
    if (capability)
        gp_exam_command(exam, "compile code for this GPU", "nvcc -arch=sm_%u …", capability);
    else
        gp_exam_advice(exam, "compile with -arch=sm_XX of the GPU");
    gp_exam_advice(exam, "or update the driver to %s or newer",
                   gp_cuda_own_driver(toolkit->version));
}

/* NVIDIA's images say for which CUDA they are, and some have no toolkit. */
static void check_image(struct gp_exam *exam, const struct gp_nvidia *nv)
{
    const char *cuda = gp_machine_variable(&exam->machine, "CUDA_VERSION");
    const char *floor = cuda && exam->machine.container ? gp_cuda_floor(cuda) : "";
    if (!floor[0] || gp_driver_reaches(nv->driver, floor) ||
        gp_files_exist(&exam->files, "/usr/local/cuda/compat"))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "this image is for CUDA %s, which needs driver %s or newer; the host has %s",
                   cuda, floor, nv->driver);
    gp_exam_evidence(exam, "CUDA_VERSION", "%s", cuda);
    gp_exam_why(exam, "CUDA's programs in it fail with \"CUDA driver version is insufficient for "
                      "CUDA runtime version\" (error 35).");
    gp_driver_fix_at_least(exam, floor);
    gp_exam_advice(exam, "or use an image for CUDA %s or older", gp_cuda_ceiling(nv->driver));
}

static void run_driver_floor(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const struct gp_toolkit_found *used = gp_toolkit_used(all);
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    if (!nv.driver[0]) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "the driver version is unknown");
        return;
    }
    const struct gp_finding *before = exam->last;
    for (size_t i = 0; i < all->count; i++) {
        const struct gp_toolkit_found *toolkit = &all->list[i];
        const char *floor = toolkit->version[0] ? gp_cuda_floor(toolkit->version) : "";
        const char *own = toolkit->version[0] ? gp_cuda_own_driver(toolkit->version) : "";
        bool is_below = floor[0] && !gp_driver_reaches(nv.driver, floor);
        if (is_below && gp_driver_implements(nv.driver, toolkit->version))
            report_same_branch(exam, &nv, toolkit, floor);
        else if (is_below)
            report_floor(exam, &nv, toolkit, toolkit == used || all->count == 1);
        else if (toolkit == used && toolkit->has_compiler && own[0] &&
                 !gp_driver_reaches(nv.driver, own))
            report_ptx(exam, &nv, toolkit);
    }
    if (exam->last == before)
        check_image(exam, &nv);
    if (exam->last == before || exam->last->verdict < GP_VERDICT_WARN)
        gp_check_cuda_ptx(exam, exam->last != before);
}

/* ---- cuDNN ---- */

struct cudnn {
    const char *path;
    char version[GP_TOOLKIT_VERSION];
};

static bool find_header(struct gp_exam *exam, struct cudnn *ret)
{
    static const char *const files[] = {"/usr/include/cudnn_version.h",
                                        "/usr/include/x86_64-linux-gnu/cudnn_version_v9.h",
                                        "/usr/include/x86_64-linux-gnu/cudnn_version_v8.h",
                                        "/usr/include/aarch64-linux-gnu/cudnn_version_v9.h",
                                        "/usr/include/aarch64-linux-gnu/cudnn_version_v8.h",
                                        "/usr/local/cuda/include/cudnn_version.h",
                                        "/opt/cuda/include/cudnn_version.h"};
    char text[16384];
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++) {
        ret->path = files[i];
        if (gp_files_read(&exam->files, files[i], text, sizeof(text)) > 0 &&
            gp_cudnn_read_header(text, ret->version))
            return true;
    }
    return false;
}

enum { LIBRARIES_MAX = 8 };

/* Those that the loader knows. */
static size_t find_libraries(struct gp_exam *exam, const struct gp_ldcache *cache,
                             struct cudnn ret[LIBRARIES_MAX])
{
    char real[GP_PATH_SIZE];
    size_t count = 0;
    for (size_t i = 0; i < cache->count && count < LIBRARIES_MAX; i++) {
        struct gp_library library = gp_ldcache_at(cache, i);
        if (strncmp(library.name, "libcudnn.so.", 12) != 0 ||
            !gp_library_is_for(&library, exam->machine.arch) ||
            !gp_files_real(&exam->files, library.path, real))
            continue;
        ret[count].path = gp_exam_text(exam, "%s", library.path);
        (void)snprintf(ret[count++].version, sizeof(ret[0].version), "%s",
                       gp_library_version(real));
    }
    return count;
}

static void report_header(struct gp_exam *exam, const struct cudnn *header,
                          const struct cudnn *libraries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strchr(libraries[i].version, '.') ||
            gp_version_compare(libraries[i].version, header->version) == 0)
            return;
    if (count == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "the cuDNN headers have version %s, the library has version %s", header->version,
                   libraries[0].version);
    gp_exam_evidence(exam, header->path, "%s", header->version);
    for (size_t i = 0; i < count; i++)
        gp_exam_evidence(exam, libraries[i].path, "%s", libraries[i].version);
    gp_exam_why(exam, "Programs are compiled against a cuDNN that they will not find at run time.");
    gp_exam_advice(exam, "install the library and its headers from one source, in one version");
}

/* Reports that a cuDNN has no kernels for a GPU; false if it has. */
static bool report_no_kernels(struct gp_exam *exam, const char *where, const char *version,
                              unsigned cuda_major, const char *fix)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    for (size_t i = 0; i < nv.count; i++) {
        if (gp_cudnn_code_for(version, cuda_major, nv.gpus[i].capability) != GP_CODE_NONE)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "cuDNN %s has no kernels for %s", version,
                       gp_nvidia_gpu_words(exam, &nv.gpus[i]));
        gp_exam_evidence(exam, where, "cuDNN %s for CUDA %u", version, cuda_major);
        gp_exam_why(exam, "Convolutions and attention can fail with a cuDNN error.");
        gp_exam_advice(exam, "%s", fix);
        return true;
    }
    return false;
}

/* The cuDNN in wheels: "nvidia-cudnn-cu12". */
static void look_at_wheels(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pypackage *wheel = gp_pyenv_package_like(&envs->list[i], "nvidia-cudnn-cu");
        unsigned long major = wheel ? strtoul(wheel->name + 15, NULL, 10) : 0;
        if (major > 0)
            (void)report_no_kernels(exam, envs->list[i].prefix, wheel->version, (unsigned)major,
                                    "install a build of the framework for this GPU, with its own "
                                    "cuDNN: gpulse doctor advise torch");
    }
}

static void run_cudnn(struct gp_exam *exam)
{
    struct cudnn header, libraries[LIBRARIES_MAX];
    struct gp_ldcache cache = {.count = 0};
    const struct gp_toolkit_found *used = gp_toolkit_used(gp_toolkits_of(exam));
    int error = gp_ldcache_read(&cache, &exam->files, &exam->arena);
    size_t count = error == 0 ? find_libraries(exam, &cache, libraries) : 0;
    const struct gp_finding *before = exam->last;
    if (error == -EBADMSG) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "/etc/ld.so.cache is damaged");
        gp_exam_command(exam, "regenerate it", "sudo ldconfig");
    } else if (error < 0 && error != -ENOENT) {
        gp_exam_unreadable(exam, "/etc/ld.so.cache", error);
    }
    if (find_header(exam, &header))
        report_header(exam, &header, libraries, count);
    for (size_t i = 0; used && used->version[0] && i < count; i++)
        (void)report_no_kernels(
            exam, libraries[i].path, libraries[i].version, gp_version_major(used->version),
            "install an older cuDNN: 9.10 is the last for Maxwell, Pascal and Volta");
    look_at_wheels(exam);
    if (exam->last != before || count == 0 ||
        gp_check_cudnn_bundle(exam, libraries[0].path, libraries[0].version))
        return;
    gp_exam_report(exam, GP_VERDICT_OK, "cuDNN %s", libraries[0].version);
    for (size_t i = 0; i < count; i++)
        gp_exam_evidence(exam, libraries[i].path, "%s", libraries[i].version);
}

const struct gp_check gp_checks_cuda[] = {
    {.id = "cuda.toolkits",
     .title = "the CUDA toolkits are consistent and support the GPUs",
     .applies = gp_nvidia_is_there,
     .run = run_toolkits},
    {.id = "cuda.driver_floor",
     .title = "the driver is new enough for the CUDA toolkits",
     .needs = {"driver.loaded", "driver.mismatch"},
     .applies = gp_nvidia_is_there,
     .run = run_driver_floor},
    {.id = "cuda.compat",
     .title = "no forward-compatibility libcuda is in the way",
     .applies = gp_nvidia_is_there,
     .run = gp_check_cuda_compat},
    {.id = "cuda.env",
     .title = "no environment variable hides or slows down GPUs",
     .applies = gp_nvidia_is_there,
     .run = gp_check_cuda_env},
    {.id = "cuda.ldpath",
     .title = "LD_LIBRARY_PATH does not interfere with CUDA's libraries",
     .applies = gp_nvidia_is_there,
     .run = gp_check_cuda_ldpath},
    {.id = "cuda.cudnn",
     .title = "cuDNN is consistent and has kernels for the GPUs",
     .applies = gp_nvidia_is_there,
     .run = run_cudnn},
    {0},
};
