/* Packages that must match the driver or each other: onnxruntime, CuPy, libraries of CUDA and
 * others. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* 12 of "nvidia-nccl-cu12", "cupy-cuda12x" and "cupy-cuda120". */
static unsigned cuda_of(const struct gp_pypackage *package)
{
    const char *number = strstr(package->name, "-cu") + 3;
    unsigned cuda = (unsigned)strtoul(number + strspn(number, "da"), NULL, 10);
    return cuda < 100 ? cuda : cuda / 10;
}

/* Of two packages for different CUDAs, the one for the newer CUDA if the driver implements it. */
static const struct gp_pypackage *newest_usable(const struct gp_exam *exam,
                                                const struct gp_pypackage *a,
                                                const struct gp_pypackage *b)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    const char *ceiling = nv.driver[0] ? gp_cuda_ceiling(nv.driver) : NULL;
    const struct gp_pypackage *newer = cuda_of(a) > cuda_of(b) ? a : b;
    bool is_usable = !ceiling || gp_version_major(ceiling) >= cuda_of(newer);
    return is_usable ? newer : newer == a ? b : a;
}

/* Two of CuPy's wheels install the same module. That of PyTorch's CUDA is kept, or of the newest
 * that the driver runs. */
static void report_two_cupys(struct gp_exam *exam, const struct gp_pyenv *env,
                             const struct gp_pypackage *a, const struct gp_pypackage *b)
{
    const struct gp_pypackage *kept = newest_usable(exam, a, b);
    struct gp_torch torch;
    const char *cuda = gp_pyenv_torch(exam, env, &torch) ? torch.cuda : "";
    if (cuda_of(a) == gp_version_major(cuda) || cuda_of(b) == gp_version_major(cuda))
        kept = cuda_of(a) == gp_version_major(cuda) ? a : b;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s has both %s and %s", env->prefix, a->name, b->name);
    gp_exam_evidence(exam, env->site, "%s, %s", a->entry, b->entry);
    gp_exam_why(exam, "Both install the same module, and break each other.");
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "both: each deletes files of the other",
                gp_exam_text(exam, "%s %s", a->name, b->name));
    gp_exam_pip(exam, env, GP_PIP_ADD, gp_exam_text(exam, "the one for CUDA %u", cuda_of(kept)),
                gp_exam_text(exam, "%s==%s", kept->name, kept->version));
}

/* The package for the CUDA that a driver implements: until 11.1 there is one for each. */
static const char *cupy_for(struct gp_exam *exam, const char *driver)
{
    const char *cuda = gp_cuda_ceiling(driver);
    unsigned major = gp_version_major(cuda);
    return major >= 11 ? gp_exam_text(exam, "cupy-cuda%ux", major)
                       : gp_exam_text(exam, "cupy-cuda%u%u", major, gp_version_minor(cuda));
}

/* "cupy-cuda12x" is for CUDA 12. */
static void check_cupy(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv)
{
    const struct gp_pypackage *first = gp_pyenv_package_like(env, "cupy-cuda");
    if (!first)
        return;
    const struct gp_pypackage *end = env->packages + env->count;
    for (const struct gp_pypackage *p = first + 1; p < end; p++)
        if (strncmp(p->name, "cupy-cuda", 9) == 0 && strcmp(p->name, first->name) != 0) {
            report_two_cupys(exam, env, first, p);
            return;
        }
    const char *cuda = gp_exam_text(exam, "%.2s", first->name + 9);
    const char *floor = gp_cuda_floor(cuda);
    if (!floor[0] || !nv->driver[0] || gp_driver_reaches(nv->driver, floor))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "CuPy in %s is for CUDA %s, which needs driver %s or newer; this machine has %s",
                   env->prefix, cuda, floor, nv->driver);
    gp_exam_evidence(exam, env->site, "%s", first->entry);
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", first->name);
    gp_exam_pip(exam, env, GP_PIP_ADD, "for this driver", cupy_for(exam, nv->driver));
    gp_exam_advice(exam, "or keep it, and:");
    gp_driver_fix_at_least(exam, floor);
}

/* ---- apex ---- */

/* PyPI's package of this name is another project; NVIDIA's has version 0.1, and is built from
 * source. */
static void check_apex(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char first[] = "0.9"; /* of the other one */
    const struct gp_pypackage *package = gp_pyenv_package(env, "apex");
    if (!package || package->is_conda || !env->has_torch ||
        gp_version_compare(package->version, first) < 0)
        return;
    const char *program = gp_project_program_with(exam, env, package->name, false);
    gp_exam_report(exam, program ? gp_pyenv_verdict(env, false) : GP_VERDICT_WARN,
                   "apex %s in %s is another project than NVIDIA's Apex", package->version,
                   env->prefix);
    gp_exam_evidence(exam, env->site, "%s: of PyPI, for web sites", package->entry);
    if (program)
        gp_exam_evidence(exam, program, "uses apex");
    gp_exam_why(exam, "Its import fails: \"cannot import name "
                      "'UnencryptedCookieSessionFactoryConfig' from 'pyramid.session'\", or \"No "
                      "module named 'apex.amp'\".");
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
    gp_exam_command(exam, "NVIDIA's is not in PyPI", "git clone https://github.com/NVIDIA/apex");
    gp_exam_pip(exam, env, GP_PIP_ADD, "needs the CUDA toolkit of PyTorch's CUDA",
                "-v --no-build-isolation --config-settings '--build-option=--cpp_ext' "
                "--config-settings '--build-option=--cuda_ext' ./apex");
    gp_exam_advice(exam, "or use torch.amp, which has replaced Apex's mixed precision");
    gp_exam_link(exam, "https://github.com/NVIDIA/apex#from-source");
}

/* ---- packages for a CUDA that the driver does not run ---- */

/* What has a package for each CUDA, "tensorrt-cu13"; PyTorch, JAX and CuPy are judged elsewhere. */
static const struct for_each_cuda {
    const char *stem, *title;
    bool is_rapids; /* RAPIDS, whose packages belong together */
} for_each_cuda[] = {
    {"tensorrt", "TensorRT", false},
    {"cudf", "RAPIDS cuDF", true},
    {"cuml", "RAPIDS cuML", true},
    {"cugraph", "RAPIDS cuGraph", true},
};

/* The CUDA of the installed package, "13"; "": there is none. */
static const char *cuda_of_each(struct gp_exam *exam, const struct gp_pyenv *env,
                                const struct for_each_cuda *each)
{
    const char *start = gp_exam_text(exam, "%s-cu", each->stem);
    const struct gp_pypackage *package = gp_pyenv_package_like(env, start);
    return package && !package->is_conda ? gp_exam_text(exam, "%.2s", package->name + strlen(start))
                                         : "";
}

/* Whether a package belongs to it: those of RAPIDS all contain the CUDA. */
static bool is_part_of(struct gp_exam *exam, const char *name, const struct for_each_cuda *each,
                       const char *cuda)
{
    static const char *const rapids[] = {
        "cudf",    "libcudf", "pylibcudf",  "dask-cudf",    "rmm",       "librmm",  "cuml",
        "libcuml", "cugraph", "libcugraph", "pylibcugraph", "pylibraft", "libraft", "raft-dask"};
    const char *start = gp_exam_text(exam, "%s-cu%s", each->stem, cuda);
    if (!each->is_rapids)
        return strcmp(name, each->stem) == 0 || strncmp(name, start, strlen(start)) == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(rapids); i++)
        if (strcmp(name, gp_exam_text(exam, "%s-cu%s", rapids[i], cuda)) == 0)
            return true;
    return false;
}

/* Both are lists for pip: what to remove, and the same for another CUDA. There are packages from
 * CUDA 11 on. */
static void fix_each(struct gp_exam *exam, const struct gp_pyenv *env,
                     const struct for_each_cuda *each, const char *cuda, unsigned usable)
{
    enum { FIRST = 11 };
    const char *old = "", *new = "";
    for (size_t i = 0; i < env->count; i++)
        if (is_part_of(exam, env->packages[i].name, each, cuda))
            old = gp_exam_text(exam, "%s%s%s", old, *old ? " " : "", env->packages[i].name);
    for (size_t i = 0; i < GP_ARRAY_LEN(for_each_cuda); i++)
        if (for_each_cuda[i].is_rapids == each->is_rapids &&
            strcmp(cuda_of_each(exam, env, &for_each_cuda[i]), cuda) == 0)
            new = gp_exam_text(exam, "%s%s%s-cu%u", new, *new ? " " : "", for_each_cuda[i].stem,
                               usable);
    if (usable < FIRST)
        return;
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", old);
    gp_exam_pip(exam, env, GP_PIP_ADD, "for this driver", new);
    gp_exam_advice(exam, "or keep it, and:");
}

/* Beside a framework that works, only a program that uses it meets this. */
static void check_driver(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_nvidia *nv)
{
    bool is_rapids_done = gp_python_is_reported(exam, env, "RAPIDS");
    for (size_t i = 0; nv->driver[0] && i < GP_ARRAY_LEN(for_each_cuda); i++) {
        const struct for_each_cuda *each = &for_each_cuda[i];
        const char *cuda = cuda_of_each(exam, env, each), *floor = gp_cuda_floor(cuda);
        if (!floor[0] || gp_driver_reaches(nv->driver, floor) ||
            (each->is_rapids && is_rapids_done))
            continue;
        is_rapids_done = each->is_rapids;
        const char *program = gp_project_program_with(exam, env, each->stem, false);
        gp_exam_report(exam, program ? gp_pyenv_verdict(env, false) : GP_VERDICT_WARN,
                       "%s in %s is for CUDA %s, which needs driver %s or newer; this machine has "
                       "%s",
                       each->title, env->prefix, cuda, floor, nv->driver);
        gp_exam_evidence(
            exam, env->site, "%s",
            gp_pyenv_package_like(env, gp_exam_text(exam, "%s-cu", each->stem))->entry);
        if (program)
            gp_exam_evidence(exam, program, "uses %s", each->stem);
        fix_each(exam, env, each, cuda, gp_version_major(gp_cuda_ceiling(nv->driver)));
        gp_driver_fix_at_least(exam, floor);
    }
}

/* ---- one library for two versions of CUDA ---- */

/* A library whose packages for CUDA 12 and 13 install the same files; other libraries have their
 * CUDA version in the file name, or a folder of their own. */
struct pair {
    const char *stem, *library;
};

static const struct pair pairs[] = {
    {"nvidia-nccl", "NCCL"},
    {"nvidia-cudnn", "cuDNN"},
    {"nvidia-nvshmem", "NVSHMEM"},
    {"nvidia-cusparselt", "cuSPARSELt"},
};

/* Whether it is "nvidia-nccl-cu12" for "nvidia-nccl". */
static bool is_of_stem(const char *name, const char *stem)
{
    size_t n = strlen(stem);
    return strncmp(name, stem, n) == 0 && strncmp(name + n, "-cu", 3) == 0 &&
           name[n + 3 + strspn(name + n + 3, "0123456789")] == '\0';
}

/* A library that both packages list; "": none. NULL: one of the lists is missing. */
static const char *common_library(struct gp_exam *exam, const struct gp_pyenv *env,
                                  const struct gp_pypackage *a, const struct gp_pypackage *b)
{
    const char *mine = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/RECORD", a->entry));
    const char *other = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/RECORD", b->entry));
    if (!mine[0] || !other[0])
        return NULL;
    for (size_t n; *mine; mine += n + (mine[n] == '\n')) {
        n = strcspn(mine, "\n");
        const char *path = gp_exam_text(exam, "%.*s", (int)strcspn(mine, ",\n"), mine);
        if (!strstr(path, ".so"))
            continue;
        size_t length = strlen(path);
        bool is_first = strncmp(other, path, length) == 0 && other[length] == ',';
        if (is_first || strstr(other, gp_exam_text(exam, "\n%s,", path)))
            return path;
    }
    return "";
}

/* The version that an installed package requires of this one; NULL: none does. */
static const char *wanted_version(struct gp_exam *exam, const struct gp_pyenv *env,
                                  const char *name)
{
    for (size_t i = 0; i < env->count; i++) {
        struct gp_requirement wanted;
        const char *file = gp_exam_text(exam, "%s/METADATA", env->packages[i].entry);
        const char *text = env->packages[i].is_conda ? NULL : gp_pyenv_text(exam, env, file);
        while ((text = gp_requirement_next(text, &wanted)))
            if (!wanted.is_extra && strcmp(wanted.name, name) == 0)
                return gp_exam_text(exam, "%s", wanted.version);
    }
    return NULL;
}

static void fix_pair(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_pypackage *a,
                     const struct gp_pypackage *b)
{
    const char *for_a = wanted_version(exam, env, a->name);
    const char *for_b = wanted_version(exam, env, b->name);
    if (!for_a && !for_b) {
        const struct gp_pypackage *kept = newest_usable(exam, a, b);
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "both: each deletes files of the other",
                    gp_exam_text(exam, "%s %s", a->name, b->name));
        gp_exam_pip(exam, env, GP_PIP_AGAIN,
                    "reinstall only the one for the CUDA that your framework is built for",
                    gp_exam_text(exam, "--no-deps %s==%s", kept->name, kept->version));
        return;
    }
    if (!for_a == !for_b) {
        gp_exam_advice(exam, "packages in this environment need both: install those for CUDA 12 "
                             "and those for CUDA 13 into environments of their own");
        return;
    }
    const struct gp_pypackage *good = for_a ? a : b, *bad = for_a ? b : a;
    const char *version = for_a ? for_a : for_b;
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "nothing here requires it", bad->name);
    gp_exam_pip(
        exam, env, GP_PIP_AGAIN, "restore the files that were overwritten",
        gp_exam_text(exam, "--no-deps %s==%s", good->name, version[0] ? version : good->version));
}

static void check_pair(struct gp_exam *exam, const struct gp_pyenv *env, const struct pair *pair,
                       const struct gp_pypackage *a, const struct gp_pypackage *b)
{
    const char *common = common_library(exam, env, a, b);
    if (common && !common[0])
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s has %s for two versions of CUDA: %s and %s",
                   env->prefix, pair->library, a->name, b->name);
    gp_exam_evidence(exam, env->site, "%s, %s", a->entry, b->entry);
    if (common)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", env->site, common),
                         "installed by both: the later one overwrote it");
    gp_exam_why(exam, "Both install the same files, so a framework may load the library of the "
                      "other CUDA: it fails at the first use, or at the import with an undefined "
                      "symbol.");
    fix_pair(exam, env, a, b);
}

static void check_pairs(struct gp_exam *exam, const struct gp_pyenv *env)
{
    for (size_t p = 0; p < GP_ARRAY_LEN(pairs); p++) {
        const struct gp_pypackage *first = NULL;
        for (size_t i = 0; i < env->count; i++) {
            const struct gp_pypackage *package = &env->packages[i];
            if (package->is_conda || !is_of_stem(package->name, pairs[p].stem))
                continue;
            if (first && strcmp(first->name, package->name) != 0) {
                check_pair(exam, env, &pairs[p], first, package);
                break;
            }
            first = package;
        }
    }
}

/* ---- cuda-python ---- */

/* NVIDIA's CuTe DSL takes the newest cuda-python, whose calls of the runtime it uses; 4.4 no longer
 * does so (cutlass#2866). Where another package has brought it, programs mostly work without it. */
static const struct gp_pypackage *old_dsl(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char name[] = "nvidia-cutlass-dsl", fixed[] = "4.4";
    const struct gp_pypackage *dsl = gp_pyenv_package(env, name);
    return dsl && gp_version_compare(dsl->version, fixed) < 0 && !wanted_version(exam, env, name)
               ? dsl
               : NULL;
}

/* A program that calls the runtime through it: calls of the driver alone run with an older one, but
 * for new functions. */
static const char *caller_of_runtime(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const words[] = {"cuda.bindings import runtime", "cuda.bindings.runtime",
                                        "cuda import cudart", "cuda.cudart", NULL};
    return gp_project_program(exam, env, words);
}

static void fix_bindings(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_pypackage *package, const struct gp_pypackage *dsl,
                         const char *floor, unsigned usable)
{
    enum { FIRST = 11, FIRST_OF_DSL = 12 };
    const char *wanted = gp_exam_text(exam, "'%s<%u'", package->name, usable + 1);
    if (usable >= (dsl ? FIRST_OF_DSL : FIRST)) {
        if (package->is_conda)
            gp_exam_command(exam, "the newest for this driver", "%s install -p %s %s",
                            gp_conda_program(exam, env), gp_exam_quoted(exam, env->prefix), wanted);
        else
            gp_exam_pip(exam, env, GP_PIP_ADD, "the newest for this driver", wanted);
        gp_exam_advice(exam, "or keep it, and:");
    }
    gp_driver_fix_at_least(exam, floor);
}

/* The first number of cuda-python, and of cuda-bindings, which it consists of, is that of the CUDA
 * whose runtime is in it. */
static void check_bindings(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_nvidia *nv)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "cuda-python");
    package = package ? package : gp_pyenv_package(env, "cuda-bindings");
    const char *cuda = package ? gp_exam_text(exam, "%u", gp_version_major(package->version)) : "";
    const char *floor = package ? gp_cuda_floor(cuda) : "";
    if (!floor[0] || !nv->driver[0] || gp_driver_reaches(nv->driver, floor))
        return;
    const struct gp_pypackage *dsl = old_dsl(exam, env);
    const char *program = dsl ? NULL : caller_of_runtime(exam, env);
    if (!dsl && !program)
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "%s %s in %s is for CUDA %s, which needs driver %s or newer; this machine has "
                   "%s",
                   package->name, package->version, env->prefix, cuda, floor, nv->driver);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    if (dsl)
        gp_exam_evidence(exam, env->site, "%s, which calls CUDA's runtime through it", dsl->entry);
    else
        gp_exam_evidence(exam, program, "calls CUDA's runtime through it");
    gp_exam_why(exam, "The runtime is in the package, whatever toolkit is installed: "
                      "\"cudaErrorInsufficientDriver\" (error 35).");
    fix_bindings(exam, env, package, dsl, floor, gp_version_major(gp_cuda_ceiling(nv->driver)));
    if (dsl)
        gp_exam_link(exam, "https://github.com/NVIDIA/cutlass/issues/2866");
}

/* ---- removed files ---- */

/* The first library that a package lists, if all of them are missing; NULL: they are not, as in an
 * image from which some were removed to make it smaller, or there is no list. */
static const char *missing_file(struct gp_exam *exam, const struct gp_pyenv *env,
                                const struct gp_pypackage *package)
{
    const char *list = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/RECORD", package->entry));
    const char *first = NULL;
    char path[GP_PATH_SIZE];
    for (size_t n; *list; list += n + (list[n] == '\n')) {
        n = strcspn(list, "\n");
        const char *file = gp_exam_text(exam, "%.*s", (int)strcspn(list, ",\n"), list);
        if (strncmp(file, "nvidia/", 7) != 0 || !strstr(file, ".so") ||
            !gp_pyenv_path(env, file, path))
            continue;
        if (gp_files_exist(&exam->files, path))
            return NULL;
        first = first ? first : gp_exam_text(exam, "%s", path);
    }
    return first;
}

/* Whether the environment has the same library for another CUDA, which check_pairs() reports. */
static bool has_twin(const struct gp_pyenv *env, const struct gp_pypackage *package)
{
    const char *cuda = strstr(package->name, "-cu");
    const char *stem = package->name;
    size_t n = cuda ? (size_t)(cuda - stem) : 0;
    for (size_t i = 0; n > 0 && i < env->count; i++)
        if (strncmp(env->packages[i].name, stem, n) == 0 &&
            strncmp(env->packages[i].name + n, "-cu", 3) == 0 &&
            strcmp(env->packages[i].name, stem) != 0)
            return true;
    return false;
}

/* Removing one of two packages with the same files removes those of the other. */
static void check_files(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *again = "", *where = NULL;
    for (size_t i = 0; i < env->count; i++) {
        const struct gp_pypackage *package = &env->packages[i];
        const char *missing =
            package->is_conda || strncmp(package->name, "nvidia-", 7) != 0 || has_twin(env, package)
                ? NULL
                : missing_file(exam, env, package);
        if (!missing)
            continue;
        if (!where)
            gp_exam_report(exam, gp_pyenv_verdict(env, false), "%s %s in %s has lost its libraries",
                           package->name, package->version, env->prefix);
        where = missing;
        gp_exam_evidence(exam, missing, "missing, but %s lists it", package->entry);
        again = gp_exam_text(exam, "%s %s==%s", again, package->name, package->version);
    }
    if (!where)
        return;
    gp_exam_why(exam, "A package with the same files was removed, such as that for another CUDA. "
                      "The import fails: \"cannot open shared object file\".");
    gp_exam_pip(exam, env, GP_PIP_AGAIN, "", gp_exam_text(exam, "--no-deps%s", again));
}

/* ---- cuDNN ---- */

/* cuDNN's parts load each other by name; one that the wheel lacks comes from the system, if that
 * has it: "libcudnn_engines_tensor_ir.so.9". NULL: none. */
static const char *borrowed_part(struct gp_exam *exam, const char *wheel, const char *folder)
{
    char **mine, **theirs;
    const char *borrowed = NULL;
    long n = gp_files_list(&exam->files, &exam->arena, wheel, &mine);
    long count = gp_files_list(&exam->files, &exam->arena, folder, &theirs);
    unsigned major = 0;
    for (long i = 0; i < n; i++)
        if (strncmp(mine[i], "libcudnn.so.", 12) == 0)
            major = gp_version_major(mine[i] + 12);
    const char *end = gp_exam_text(exam, ".so.%u", major);
    for (long i = 0; major > 0 && i < count; i++) {
        size_t length = strlen(theirs[i]);
        if (strncmp(theirs[i], "libcudnn_", 9) != 0 || length < strlen(end) ||
            strcmp(theirs[i] + length - strlen(end), end) != 0)
            continue;
        if (!gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", wheel, theirs[i])))
            borrowed = theirs[i];
    }
    return borrowed;
}

static void check_cudnn(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package_like(env, "nvidia-cudnn-cu");
    const char *const folders[] = {gp_exam_text(exam, "/usr/lib/%s-linux-gnu", exam->machine.arch),
                                   "/usr/lib64", "/usr/local/cuda/lib64", "/usr/lib"};
    const char *wheel = gp_exam_text(exam, "%s/nvidia/cudnn/lib", env->site);
    char real[GP_PATH_SIZE];
    for (size_t i = 0; package && i < GP_ARRAY_LEN(folders); i++) {
        const char *part = borrowed_part(exam, wheel, folders[i]);
        const char *path = gp_exam_text(exam, "%s/%s", folders[i], part ? part : "");
        if (!part || !gp_files_real(&exam->files, path, real))
            continue;
        const char *version = gp_library_version(strrchr(real, '/') + 1);
        size_t n = strlen(version);
        if (strncmp(package->version, version, n) == 0 &&
            (package->version[n] == '.' || package->version[n] == '\0'))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "cuDNN %s in %s loads a part of the system's cuDNN %s", package->version,
                       env->prefix, version);
        gp_exam_evidence(exam, path, "version %s; the wheel does not have this part", version);
        gp_exam_evidence(exam, wheel, "%s %s", package->name, package->version);
        gp_exam_why(exam, "The parts of cuDNN load each other by name, and all must have the same "
                          "version: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH.");
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_CUDNN, NULL, NULL);
        gp_exam_advice(exam,
                       "or install the same version of cuDNN in the system as in the environment");
        return;
    }
}

/* Passed for want of packages, wherever they may be. */
static void report_none(struct gp_exam *exam)
{
    gp_exam_report(exam, GP_VERDICT_OK, "no Python environment has packages that use GPUs");
    gp_python_show_places(exam);
    gp_exam_is_empty(exam);
}

void gp_check_python_others(struct gp_exam *exam)
{
    size_t packages = 0;
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    gp_cuda_use_compat(exam, &nv);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        struct gp_torch torch;
        packages += env->count + (env->error != 0);
        gp_check_rapids(exam, env, &nv);
        gp_check_python_needs(exam, env, &nv);
        gp_check_own_libcuda(exam, env);
        gp_check_conda_stdcxx(exam, env);
        gp_check_cpu_builds(exam, env);
        gp_check_llama_python(exam, env);
        check_cupy(exam, env, &nv);
        check_driver(exam, env, &nv);
        check_bindings(exam, env, &nv);
        gp_check_python_runtime(exam, env, &nv);
        check_apex(exam, env);
        gp_check_plaidml(exam, env);
        gp_check_theano(exam, env, &nv);
        check_pairs(exam, env);
        check_files(exam, env);
        check_cudnn(exam, env);
        bool has_torch = gp_pyenv_torch(exam, env, &torch) && torch.version[0];
        if (has_torch) {
            gp_check_nccl_graph(exam, env, &torch, &nv);
            gp_check_torch_pins(exam, env, &torch);
            gp_check_torch_extensions(exam, env, &torch);
            gp_check_bitsandbytes(exam, env, &torch);
        }
        gp_check_compiled(exam, env, has_torch ? &torch : NULL);
        if (has_torch)
            gp_check_compiled_symbols(exam, env, &torch);
    }
    if (packages == 0 && (!exam->last || exam->last->check != exam->check))
        report_none(exam);
}
