/* The libraries of CUDA and cuDNN that TensorFlow opens, and where it finds them. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

const struct gp_pypackage *gp_tensorflow_package(const struct gp_pyenv *env)
{
    return gp_framework_package(env, GP_FRAMEWORK_TENSORFLOW, true);
}

/* "nvidia-cudnn-cu12", the package that provides the wheel's cuDNN; NULL: none. */
static const struct gp_pypackage *cudnn_wheel(const struct gp_pyenv *env)
{
    return gp_pyenv_package_like(env, "nvidia-cudnn-cu");
}

/* Whether the loader knows a cuDNN with this major version ("8"; "": any), and the version of its
 * file, "8.4.1"; "": unknown. */
static bool has_system_cudnn(struct gp_exam *exam, const char *cudnn, const char **ret_version)
{
    char real[GP_PATH_SIZE];
    struct gp_arena scratch = {0};
    struct gp_ldcache cache = {.count = 0};
    bool is_found = false;
    if (gp_ldcache_read(&cache, &exam->files, &scratch) != 0)
        cache.count = 0;
    for (size_t i = 0; i < cache.count && !is_found; i++) {
        struct gp_library library = gp_ldcache_at(&cache, i);
        is_found = strncmp(library.name, "libcudnn.so.", 12) == 0 &&
                   (!cudnn[0] || gp_version_major(library.name + 12) == gp_version_major(cudnn));
        if (is_found && gp_files_real(&exam->files, library.path, real) &&
            strchr(gp_library_version(real), '.'))
            *ret_version = gp_exam_text(exam, "%s", gp_library_version(real));
    }
    gp_arena_fini(&scratch);
    return is_found;
}

/* The severity of what only a program that computes with TensorFlow meets. */
enum gp_verdict gp_tensorflow_verdict(struct gp_exam *exam, const struct gp_case *c)
{
    return gp_framework_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW) ? GP_VERDICT_INFO
                                                                     : GP_VERDICT_WARN;
}

/* It refuses a cuDNN with an older minor version than it was built with. */
static void check_minor(struct gp_exam *exam, const struct gp_case *c, const char *version)
{
    struct gp_build build;
    if (!version[0] || !gp_build_known(GP_FRAMEWORK_TENSORFLOW, c->version, "", &build) ||
        !strchr(build.cudnn, '.') || gp_version_major(build.cudnn) != gp_version_major(version) ||
        gp_version_compare(version, build.cudnn) >= 0)
        return;
    gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                   "TensorFlow %s in %s was built with cuDNN %s, but the system has %s", c->version,
                   c->env->prefix, build.cudnn, version);
    gp_exam_evidence(exam, "libcudnn.so", "%s", version);
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    gp_exam_why(exam, "\"Loaded runtime CuDNN library … but source was compiled with\": operations "
                      "on the GPU fail.");
    gp_exam_advice(exam, "install cuDNN %s or a newer %u", build.cudnn,
                   gp_version_major(build.cudnn));
}

/* The file name of a CUDA's runtime. */
static const char *runtime_of(struct gp_exam *exam, const char *cuda)
{
    return gp_version_major(cuda) == 11 ? "libcudart.so.11.0" /* of all 11.x */
                                        : gp_exam_text(exam, "libcudart.so.%s", cuda);
}

/* A nightly build is for the CUDA of the release that it became. Early ones are for that of the
 * release before, and do not say so before 2.3. Whether that one is here, and may be meant. */
static bool may_be_early(struct gp_exam *exam, const struct gp_case *c)
{
    static const struct {
        const char *version;
        unsigned long date;
    } seen[] = {{"2.1", 20191120}}; /* by a public report */
    const char *mark = strstr(c->version, ".dev"), *before = "";
    struct gp_build build;
    if (!mark || gp_version_compare(c->version, "2.3") >= 0)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(seen); i++)
        if (gp_version_compare(c->version, seen[i].version) == 0 &&
            strtoul(mark + 4, NULL, 10) >= seen[i].date)
            return false;
    for (size_t i = 0; gp_build_at(GP_FRAMEWORK_TENSORFLOW, i, &build); i++)
        if (gp_version_compare(build.version, c->version) < 0)
            before = build.cuda;
    return before[0] && gp_library_is_loadable(exam, c->env, runtime_of(exam, before));
}

/* The first library of CUDA's that the loader does not find although the machine has it, in that
 * directory, or another version of it (NULL); false: there is no such library. 11.0 has a cuSOLVER
 * of its own. */
static bool find_unreached(struct gp_exam *exam, const struct gp_case *c, const char **ret_name,
                           const char **ret_folder)
{
    unsigned major = gp_version_major(c->cuda);
    bool is_major = major == 11 || (major == 10 && gp_version_minor(c->cuda) > 0);
    const char *const names[] = {runtime_of(exam, c->cuda),
                                 is_major ? gp_exam_text(exam, "libcublas.so.%u", major)
                                          : gp_exam_text(exam, "libcublas.so.%s", c->cuda),
                                 strcmp(c->cuda, "11.0") == 0 ? "libcusolver.so.10" : NULL};
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && names[i]; i++) {
        *ret_name = names[i];
        *ret_folder = gp_library_folder(exam, names[i]);
        if (!gp_library_is_loadable(exam, c->env, names[i]) &&
            (*ret_folder || gp_library_other(exam, names[i])))
            return true;
    }
    return false;
}

/* Whether a toolkit that the loader does not reach has both CUDA and cuDNN. */
static bool has_both(struct gp_exam *exam, const struct gp_case *c, const char *cudnn)
{
    const char *name, *folder;
    return cudnn[0] && find_unreached(exam, c, &name, &folder) && folder &&
           gp_files_exist(&exam->files,
                          gp_exam_text(exam, "%s/libcudnn.so.%u", folder, gp_version_major(cudnn)));
}

/* Before 1.14 it is linked with CUDA's libraries, rather than opening them. */
static bool is_linked(const struct gp_case *c)
{
    return gp_version_compare(c->version, "1.14") < 0;
}

/* Whether a toolkit has the libraries that a build for this CUDA needs. From 11.2 on, those of
 * newer 11.x do, too. */
static bool is_toolkit_for(const char *cuda, const char *toolkit)
{
    unsigned have = gp_version_minor(toolkit), need = gp_version_minor(cuda);
    return gp_version_major(cuda) == gp_version_major(toolkit) &&
           (have == need || (gp_version_major(cuda) == 11 && need >= 2 && have > need));
}

/* The newest version with the same major number that is for a CUDA and a cuDNN that are installed,
 * as its package; "": none. */
static const char *version_for_toolkit(struct gp_exam *exam, const struct gp_case *c,
                                       const char **ret_cuda)
{
    const char *other = "";
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const char *found = "";
    struct gp_build build;
    for (size_t i = 0; gp_build_at(GP_FRAMEWORK_TENSORFLOW, i, &build); i++) {
        bool is_fit = gp_version_major(build.version) == gp_version_major(c->version) &&
                      gp_version_compare(build.version, "2.14") < 0 &&
                      gp_version_compare(c->env->python, build.first_python) >= 0 &&
                      gp_version_compare(c->env->python, build.last_python) <= 0 &&
                      has_system_cudnn(exam, build.cudnn, &other);
        for (size_t k = 0; is_fit && k < all->count; k++)
            if (is_toolkit_for(build.cuda, all->list[k].version)) {
                found = gp_exam_text(exam, "%s==%s", build.variant, build.version);
                *ret_cuda = build.cuda;
            }
    }
    return found;
}

/* Another CUDA is installed than it needs. */
static void mend_version(struct gp_exam *exam, const struct gp_case *c)
{
    const char *cuda = "", *version = version_for_toolkit(exam, c, &cuda);
    if (version[0]) {
        const struct gp_pypackage *package = gp_tensorflow_package(c->env);
        size_t n = strcspn(version, "=");
        if (package && (strlen(package->name) != n || strncmp(version, package->name, n) != 0))
            gp_exam_pip(
                exam, c->env, GP_PIP_REMOVE, "",
                strncmp(package->name, "tf-nightly", 10) == 0
                    ? gp_exam_text(exam, "%s tf-estimator-nightly tb-nightly", package->name)
                    : package->name);
        gp_exam_pip(exam, c->env, GP_PIP_ADD,
                    gp_exam_text(exam, "the newest for CUDA %s, which is installed", cuda),
                    gp_exam_text(exam, "'%s'", version));
        gp_exam_advice(exam, "or keep it, and:");
    }
    if (c->env->kind == GP_PYENV_CONDA && gp_version_compare(c->version, "2.7") < 0)
        gp_exam_command(exam, "its libraries, for this environment",
                        "%s install -p %s cudatoolkit=%s cudnn", gp_conda_program(exam, c->env),
                        gp_exam_quoted(exam, c->env->prefix), c->cuda);
    else
        gp_exam_advice(exam,
                       "install CUDA %s as well (several can be installed), and have "
                       "LD_LIBRARY_PATH lead to its lib64",
                       c->cuda);
    gp_exam_link(exam, "https://www.tensorflow.org/install/source#gpu");
}

/* Versions without packages of CUDA need a toolkit's, where the loader must look for it. */
static void check_runtime(struct gp_exam *exam, const struct gp_case *c)
{
    const char *name, *folder;
    if (gp_version_major(c->cuda) > 11 || !strchr(c->cuda, '.') ||
        gp_version_compare(c->version, "2.14") >= 0 || gp_pyenv_package(c->env, "cudatoolkit") ||
        gp_pyenv_package_like(c->env, "nvidia-cuda-runtime") ||
        !find_unreached(exam, c, &name, &folder) || (!folder && may_be_early(exam, c)))
        return;
    const char *set = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    bool is_own = (c->env->is_active || c->env->kind == GP_PYENV_USER) &&
                  !gp_machine_variable(&exam->machine, "SUDO_USER");
    enum gp_verdict verdict = is_own ? gp_tensorflow_verdict(exam, c) : GP_VERDICT_INFO;
    gp_exam_report(exam, verdict == GP_VERDICT_WARN && is_linked(c) ? GP_VERDICT_FAIL : verdict,
                   "TensorFlow %s in %s does not find CUDA %s and %s", c->version, c->env->prefix,
                   c->cuda, is_linked(c) ? "cannot be imported" : "computes on the CPU");
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    if (folder)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", folder, name),
                         "present, but the loader does not look there");
    else
        gp_exam_evidence(exam, name, "not in any library directory; there is %s",
                         gp_library_other(exam, name));
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s", set ? set : "not set");
    gp_exam_assignments(exam, "LD_LIBRARY_PATH");
    if (is_linked(c))
        gp_exam_why(exam, "\"ImportError: %s: cannot open shared object file\".", name);
    else
        gp_exam_why(exam,
                    "It reports \"Could not load dynamic library '%s'\", and continues without "
                    "the GPU.",
                    name);
    if (!folder) {
        mend_version(exam, c);
        return;
    }
    gp_exam_command(exam, "also in the shell's startup file",
                    "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
                    gp_exam_quoted(exam, folder));
}

/* Whether LD_LIBRARY_PATH has a directory that ends like this. */
static bool is_on_path(struct gp_exam *exam, const char *end)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":;", folder)) {
        size_t n = strlen(folder), m = strlen(end);
        n -= n > 0 && folder[n - 1] == '/';
        if (n >= m && memcmp(folder + n - m, end, m) == 0)
            return true;
    }
    return false;
}

/* Whether activating the environment sets LD_LIBRARY_PATH. */
static bool sets_path(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char name[] = "LD_LIBRARY_PATH";
    const char *scripts = gp_exam_text(exam, "%s/etc/conda/activate.d", env->prefix);
    const char *const files[] = {gp_exam_text(exam, "%s/conda-meta/state", env->prefix),
                                 gp_exam_text(exam, "%s/bin/activate", env->prefix)};
    char **names;
    const char *text;
    long n = gp_files_list(&exam->files, &exam->arena, scripts, &names);
    for (long i = 0; i < n; i++)
        if ((text = gp_files_text(&exam->files, &exam->arena,
                                  gp_exam_text(exam, "%s/%s", scripts, names[i]), 65536, NULL)) &&
            strstr(text, name))
            return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++)
        if ((text = gp_files_text(&exam->files, &exam->arena, files[i], 65536, NULL)) &&
            strstr(text, name))
            return true;
    return false;
}

/* Newer versions have their CUDA as an extra; the driver must run CUDA 12. */
static void propose_extra(struct gp_exam *exam, const struct gp_case *c)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    if (gp_version_compare(c->env->python, "3.9") >= 0 &&
        gp_version_compare(c->env->python, "3.13") < 0 &&
        (!nv.driver[0] || gp_driver_reaches(nv.driver, gp_cuda_floor("12"))))
        gp_exam_pip(exam, c->env, GP_PIP_ADD, "or a version that brings its CUDA",
                    "'tensorflow[and-cuda]>=2.15,!=2.16.*'");
}

/* Whether it does not look into NVIDIA's packages: before 2.14, and in 2.16 by a fault
 * (tensorflow#63362). */
static bool is_blind(const struct gp_case *c)
{
    return gp_version_compare(c->version, "2.14") < 0 || strncmp(c->version, "2.16.", 5) == 0;
}

/* NVIDIA's packages for CUDA 11, whose libraries have the names that builds for 11.2 to 11.8 open,
 * without those that are there. */
static void install_wheels(struct gp_exam *exam, const struct gp_case *c, unsigned cudnn)
{
    static const char *const names[] = {"nvidia-cuda-runtime-cu11", "nvidia-cublas-cu11",
                                        "nvidia-cufft-cu11",        "nvidia-curand-cu11",
                                        "nvidia-cusolver-cu11",     "nvidia-cusparse-cu11"};
    const char *list = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (!gp_pyenv_package(c->env, names[i]))
            list = gp_exam_text(exam, "%s%s%s", list, *list ? " " : "", names[i]);
    if (!cudnn_wheel(c->env))
        list = gp_exam_text(exam, "%s%s'nvidia-cudnn-cu11==%u.*'", list, *list ? " " : "", cudnn);
    if (*list)
        gp_exam_pip(exam, c->env, GP_PIP_ADD, "install them, for this environment", list);
}

static void report_lost(struct gp_exam *exam, const struct gp_case *c)
{
    bool is_old = gp_version_compare(c->version, "2.14") < 0;
    if (!is_blind(c) || is_on_path(exam, "/nvidia/cudnn/lib") ||
        (!c->env->is_active && sets_path(exam, c->env)))
        return;
    gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                   "TensorFlow %s in %s does not find the CUDA libraries of its own packages",
                   c->version, c->env->prefix);
    gp_exam_evidence(exam, c->env->site, "%s", cudnn_wheel(c->env)->entry);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "does not lead to %s/nvidia/cudnn/lib", c->env->site);
    if (is_old)
        gp_exam_why(exam,
                    "Before 2.14 it looks only where the loader does: \"Could not load "
                    "dynamic library\", \"Cannot dlopen some GPU libraries\", and it computes "
                    "on the CPU.");
    else
        gp_exam_why(exam, "A fault of 2.16: \"Cannot dlopen some GPU libraries\", and it computes "
                          "on the CPU. Other versions find them.");
    if (is_old && gp_version_compare(c->version, "2.5") >= 0 && c->env->kind != GP_PYENV_SYSTEM &&
        !gp_library_is_loadable(exam, c->env, "libcublas.so.11"))
        install_wheels(exam, c, gp_version_major(cudnn_wheel(c->env)->version));
    gp_exam_add_wheels(exam, c->env);
    if (is_old) {
        propose_extra(exam, c);
        return;
    }
    gp_exam_pip(exam, c->env, GP_PIP_ADD, "or a version that finds them",
                "'tensorflow[and-cuda]>=2.17'");
    gp_exam_link(exam, "https://github.com/tensorflow/tensorflow/issues/63362");
}

/* Whether conda has installed TensorFlow itself, which then finds conda's libraries. */
static bool is_of_conda(const struct gp_pyenv *env)
{
    const struct gp_pypackage *base = gp_pyenv_package(env, "tensorflow-base");
    return base && base->is_conda;
}

/* From 2.11 on, optimizers compile with XLA, which needs NVIDIA's libdevice in the layout of a
 * toolkit; conda's cudatoolkit has it elsewhere. */
static void report_libdevice(struct gp_exam *exam, const struct gp_case *c)
{
    static const char system[] = "/usr/local/cuda/nvvm/libdevice/libdevice.10.bc";
    const char *prefix = c->env->prefix;
    const char *file = gp_exam_text(exam, "%s/lib/libdevice.10.bc", prefix);
    const char *wanted = gp_exam_text(exam, "%s/lib/nvvm/libdevice/libdevice.10.bc", prefix);
    if (gp_version_compare(c->version, "2.11") < 0 || gp_version_compare(c->version, "2.14") >= 0 ||
        gp_machine_variable(&exam->machine, "XLA_FLAGS") || !gp_files_exist(&exam->files, file) ||
        gp_files_exist(&exam->files, wanted) || gp_files_exist(&exam->files, system))
        return;
    gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                   "TensorFlow %s in %s does not find libdevice, which XLA needs", c->version,
                   prefix);
    gp_exam_evidence(exam, file, "present");
    gp_exam_evidence(exam, wanted, "missing");
    gp_exam_evidence(exam, "XLA_FLAGS", "not set");
    gp_exam_why(exam, "Since 2.11, training with Keras compiles with XLA: \"libdevice not found at "
                      "./libdevice.10.bc\".");
    const char *quoted = gp_exam_quoted(exam, prefix);
    gp_exam_command(exam, "put it where XLA looks",
                    "mkdir -p %s/lib/nvvm/libdevice && cp %s/lib/libdevice.10.bc "
                    "%s/lib/nvvm/libdevice/",
                    quoted, quoted, quoted);
    gp_conda_set(exam, c->env, "XLA_FLAGS",
                 gp_exam_text(exam, "--xla_gpu_cuda_data_dir=%s/lib", quoted));
    gp_exam_command(exam, "which has ptxas", "%s install -p %s -c nvidia cuda-nvcc=%s",
                    gp_conda_program(exam, c->env), quoted,
                    gp_version_compare(c->cuda, "11.3") < 0 ? "11.3.58" : c->cuda);
    gp_exam_link(exam, "https://github.com/tensorflow/tensorflow/issues/58681");
}

/* conda's CUDA for a TensorFlow from PyPI, which since 2.7 does not look there (tensorflow#52988).
 */
static void report_conda(struct gp_exam *exam, const struct gp_case *c)
{
    const struct gp_pypackage *package = gp_tensorflow_package(c->env);
    const char *folder = gp_exam_text(exam, "%s/lib", c->env->prefix);
    if (!package || is_of_conda(c->env) || !c->env->is_active ||
        gp_version_compare(c->version, "2.7") < 0 || is_on_path(exam, folder) ||
        sets_path(exam, c->env))
        return;
    gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                   "TensorFlow %s in %s does not find the CUDA libraries of its conda environment",
                   c->version, c->env->prefix);
    gp_exam_evidence(exam, c->env->site, "%s", package->entry);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "does not lead to %s", folder);
    gp_exam_why(exam,
                "TensorFlow is from PyPI, CUDA and cuDNN are from conda. Since 2.7 the former "
                "does not look into the environment: it computes on the CPU.");
    gp_conda_set(exam, c->env, "LD_LIBRARY_PATH", gp_exam_quoted(exam, folder));
    gp_exam_link(exam, "https://github.com/tensorflow/tensorflow/issues/52988");
}

/* Libraries for a version that has no package with them. */
static void propose_libraries(struct gp_exam *exam, const struct gp_case *c, const char *cudnn)
{
    /* Ubuntu's own package, of cuDNN 8.2 with CUDA 11.5; newer builds refuse that cuDNN. */
    static const char release[] = "22.04", first[] = "2.5", too_new[] = "2.12";
    bool is_11 = gp_version_major(c->cuda) == 11 && gp_version_minor(c->cuda) > 0;
    bool is_offered = is_11 && exam->machine.distro == GP_DISTRO_UBUNTU &&
                      strcmp(exam->machine.distro_version, release) == 0 &&
                      gp_version_compare(c->version, first) >= 0 &&
                      gp_version_compare(c->version, too_new) < 0;
    if (c->env->kind == GP_PYENV_CONDA) {
        gp_exam_command(
            exam, "install them", "%s install -p %s -c conda-forge cudatoolkit=%s cudnn=%s",
            gp_conda_program(exam, c->env), gp_exam_quoted(exam, c->env->prefix), c->cuda, cudnn);
        if (gp_version_compare(c->version, "2.7") >= 0) /* which does not look there */
            gp_conda_set(exam, c->env, "LD_LIBRARY_PATH",
                         gp_exam_quoted(exam, gp_exam_text(exam, "%s/lib", c->env->prefix)));
    } else if (is_11 && c->env->kind != GP_PYENV_SYSTEM) {
        install_wheels(exam, c, gp_version_major(cudnn));
        gp_exam_add_wheels(exam, c->env);
    } else if (!is_offered) {
        gp_exam_advice(exam,
                       "install CUDA %s and cuDNN %s, and have LD_LIBRARY_PATH lead to them: this "
                       "version has no package with them",
                       c->cuda, cudnn);
    }
    if (is_offered && c->env->kind != GP_PYENV_CONDA)
        gp_exam_command(exam,
                        c->env->kind == GP_PYENV_SYSTEM
                            ? "of multiverse, with CUDA's libraries"
                            : "or, for the whole machine, of multiverse",
                        "sudo apt install nvidia-cudnn");
    propose_extra(exam, c);
}

/* The package of cuDNN is that of another framework, such as PyTorch, and older than the one that
 * this build was compiled with. What a build says of itself is only the major version. */
static bool report_old_wheel(struct gp_exam *exam, const struct gp_case *c,
                             const struct gp_pypackage *wheel)
{
    struct gp_build build;
    if (gp_version_compare(c->version, "2.14") < 0 || strchr(c->version, '+') ||
        !gp_build_known(GP_FRAMEWORK_TENSORFLOW, c->version, "", &build) || !build.cudnn[0] ||
        gp_version_major(build.cudnn) != gp_version_major(wheel->version) ||
        gp_version_minor(wheel->version) >= gp_version_minor(build.cudnn))
        return false;
    gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                   "TensorFlow %s in %s was built with cuDNN %s, but the environment has %s",
                   c->version, c->env->prefix, build.cudnn, wheel->version);
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_evidence(exam, c->env->site, "%s", wheel->entry);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    gp_exam_why(exam,
                "\"Loaded runtime CuDNN library … but source was compiled with\": convolutions "
                "and recurrent layers fail.");
    gp_exam_pip(exam, c->env, GP_PIP_ADD,
                c->env->has_torch ? "PyTorch runs with it, too, even if pip complains"
                                  : "one that is new enough",
                gp_exam_text(exam, "'%s>=%s,<%u'", wheel->name, build.cudnn,
                             gp_version_major(build.cudnn) + 1));
    return true;
}

/* The build is for CUDA, but neither wheels nor the machine provide CUDA. */
static void check_libraries(struct gp_exam *exam, const struct gp_case *c, const char *cudnn)
{
    const struct gp_pypackage *wheel = cudnn_wheel(c->env);
    bool is_other =
        wheel && cudnn[0] && gp_version_major(wheel->version) != gp_version_major(cudnn);
    const char *version = "";
    const char *number = cudnn[0] ? gp_exam_text(exam, "%u", gp_version_major(cudnn)) : "*";
    if (wheel && !is_other &&
        !(gp_version_compare(c->version, "2.14") < 0 && has_system_cudnn(exam, cudnn, &version))) {
        if (!report_old_wheel(exam, c, wheel))
            report_lost(exam, c);
        return;
    }
    if (has_system_cudnn(exam, cudnn, &version)) {
        check_minor(exam, c, version);
        check_runtime(exam, c);
        return;
    }
    if (!wheel && has_both(exam, c, cudnn)) {
        check_runtime(exam, c);
        return;
    }
    if (gp_pyenv_package(c->env, "cudnn")) {
        report_conda(exam, c);
        return;
    }
    if (is_other)
        gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                       "TensorFlow %s in %s needs cuDNN %u, but cuDNN %s is installed", c->version,
                       c->env->prefix, gp_version_major(cudnn), wheel->version);
    else
        gp_exam_report(exam, gp_tensorflow_verdict(exam, c),
                       "TensorFlow %s in %s has no CUDA libraries and computes on the CPU",
                       c->version, c->env->prefix);
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    gp_exam_aside(exam, c->env, GP_FRAMEWORK_TENSORFLOW);
    if (is_other)
        gp_exam_evidence(exam, c->env->site, "%s", wheel->entry);
    else if (gp_version_major(c->cuda) < 11 && c->cuda[0]) /* for which there are no packages */
        gp_exam_evidence(exam, gp_exam_text(exam, "libcudnn.so.%s", number),
                         "not in any library directory");
    else
        gp_exam_evidence(exam, c->env->site,
                         "no package nvidia-cudnn-cu%u, and the loader finds no libcudnn.so.%s",
                         gp_version_major(c->cuda) == 11 ? 11U : 12U, number);
    gp_exam_why(exam,
                is_linked(c)
                    ? "The import fails: \"ImportError: libcublas.so: cannot open shared "
                      "object file\", or libcudnn.so."
                    : "It reports \"Could not find cuda drivers\" or \"Cannot dlopen some GPU "
                      "libraries\", and continues without the GPU.");
    if (gp_version_compare(c->version, "2.14") >= 0) {
        gp_exam_pip(exam, c->env, GP_PIP_ADD, "install them",
                    gp_exam_text(exam, "'tensorflow[and-cuda]==%s'", c->version));
        return;
    }
    propose_libraries(exam, c, cudnn);
}

void gp_check_tensorflow_libraries(struct gp_exam *exam, const struct gp_case *c, const char *cudnn)
{
    check_libraries(exam, c, cudnn);
    report_libdevice(exam, c);
}
