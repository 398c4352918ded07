/* LD_LIBRARY_PATH: which libraries are loaded instead of a framework's own. */
#include "doctor/checks/cuda.h"

#include "doctor/builds.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/torch.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

/* CUDA libraries, and the wheel that provides each; "-cu12" may follow. */
static const struct {
    const char *library; /* the prefix of "libcublas.so." */
    const char *wheel;
    bool is_of_toolkit; /* a part of each release of CUDA */
} libraries[] = {
    {"libnvJitLink.so.", "nvidia-nvjitlink", true}, {"libcusparse.so.", "nvidia-cusparse", true},
    {"libcublas.so.", "nvidia-cublas", true},       {"libcublasLt.so.", "nvidia-cublas", true},
    {"libcudnn.so.", "nvidia-cudnn", false},        {"libcudart.so.", "nvidia-cuda-runtime", true},
    {"libcufft.so.", "nvidia-cufft", true},         {"libcusolver.so.", "nvidia-cusolver", true},
    {"libcurand.so.", "nvidia-curand", true},       {"libnvrtc.so.", "nvidia-cuda-nvrtc", true},
    {"libnccl.so.", "nvidia-nccl", false},          {"libcupti.so.", "nvidia-cuda-cupti", true},
};

/* A library in a directory of LD_LIBRARY_PATH. */
struct stray {
    const char *path;
    size_t kind;      /* in the table above */
    unsigned number;  /* from the name that programs load: 12 of libnvJitLink.so.12 */
    char version[32]; /* of the file: "12.1.105" */
};

enum { STRAYS_MAX = 64, FOLDER_MAX = 2000 };

struct strays {
    struct stray list[STRAYS_MAX];
    size_t count;
    const char *stub; /* a stub libcuda.so.1, only for linking; NULL */
    bool has_empty;   /* an empty element */
    size_t folders;   /* number present */
};

static void add_stray(struct gp_exam *exam, struct strays *s, const char *folder, const char *name)
{
    for (size_t k = 0; k < GP_ARRAY_LEN(libraries); k++) {
        size_t n = strlen(libraries[k].library);
        /* libX.so.12, and not the longer names next to it */
        if (strncmp(name, libraries[k].library, n) != 0 || strchr(name + n, '.') ||
            s->count == STRAYS_MAX)
            continue;
        char real[GP_PATH_SIZE];
        struct stray stray = {.path = gp_exam_text(exam, "%s/%s", folder, name),
                              .kind = k,
                              .number = gp_version_major(name + n)};
        if (!gp_files_real(&exam->files, stray.path, real))
            return;
        (void)snprintf(stray.version, sizeof(stray.version), "%s", gp_library_version(real));
        s->list[s->count++] = stray;
        return;
    }
}

static void look_into(struct gp_exam *exam, struct strays *s, const char *folder)
{
    struct gp_arena scratch = {0};
    char **names;
    long n = gp_files_list(&exam->files, &scratch, folder, &names);
    s->folders += n >= 0;
    for (long i = 0; i < n && i < FOLDER_MAX; i++) {
        add_stray(exam, s, folder, names[i]);
        if (strcmp(names[i], "libcuda.so.1") == 0 && strstr(folder, "/stubs"))
            s->stub = gp_exam_text(exam, "%s/%s", folder, names[i]);
    }
    gp_arena_fini(&scratch);
}

/* Compares the versions of a library file and a wheel by their first two numbers: the rest does not
 * change the symbols. */
static int compare(const char *library, const char *wheel)
{
    char a[32], b[32];
    const char *dot_a = strchr(library, '.'), *dot_b = strchr(wheel, '.');
    size_t n = dot_a ? (size_t)(dot_a - library) + 1 + strcspn(dot_a + 1, ".") : strlen(library);
    size_t m = dot_b ? (size_t)(dot_b - wheel) + 1 + strcspn(dot_b + 1, ".") : strlen(wheel);
    (void)snprintf(a, sizeof(a), "%.*s", (int)n, library);
    (void)snprintf(b, sizeof(b), "%.*s", (int)m, wheel);
    return gp_version_compare(a, b);
}

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Whether a stray library comes from a toolkit of the release of CUDA that the environment has, or
 * of a newer one: the numbers of a library may differ within one. */
static bool is_of_release(const struct strays *s, const struct stray *stray,
                          const struct gp_pyenv *env)
{
    static const char runtime[] = "libcudart.so.";
    const struct gp_pypackage *wheel = gp_pyenv_package_like(env, "nvidia-cuda-runtime");
    size_t folder = (size_t)(strrchr(stray->path, '/') - stray->path);
    for (size_t i = 0; wheel && i < s->count; i++) {
        const struct stray *other = &s->list[i];
        if (strcmp(libraries[other->kind].library, runtime) == 0 &&
            strncmp(other->path, stray->path, folder) == 0 && other->path[folder] == '/' &&
            !strchr(other->path + folder + 1, '/'))
            return gp_version_major(other->version) == gp_version_major(wheel->version) &&
                   compare(other->version, wheel->version) >= 0;
    }
    return false;
}

/* Whether the wheels are there for ONNX Runtime alone: it loads what the loader finds, so that a
 * toolkit before the wheels takes nothing from it. */
static bool is_only_onnx(const struct gp_pyenv *env)
{
    static const char *const others[] = {"cupy", "paddlepaddle", "tensorrt", "nvidia-dali"};
    bool is_other = env->has_torch || gp_pyenv_frameworks(env) > 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        is_other = is_other || gp_pyenv_package_like(env, others[i]);
    return !is_other && gp_pyenv_package(env, "onnxruntime-gpu");
}

/* The wheel in an environment whose library the stray one replaces; NULL: none, or the stray one is
 * its own or as new. */
static const struct gp_pypackage *replaced(const struct strays *s, const struct stray *stray,
                                           const struct gp_pyenv *env)
{
    bool is_same = is_below(stray->path, env->site) || is_only_onnx(env) ||
                   (libraries[stray->kind].is_of_toolkit && is_of_release(s, stray, env));
    for (size_t i = 0; i < env->count && !is_same; i++) {
        const struct gp_pypackage *wheel = &env->packages[i];
        size_t n = strlen(libraries[stray->kind].wheel);
        if (strncmp(wheel->name, libraries[stray->kind].wheel, n) != 0 ||
            (wheel->name[n] && strncmp(wheel->name + n, "-cu1", 4) != 0) ||
            gp_version_major(wheel->version) != gp_version_major(stray->version) ||
            compare(stray->version, wheel->version) >= 0)
            continue;
        return wheel;
    }
    return NULL;
}

static void show_setting(struct gp_exam *exam)
{
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "%s",
                     gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH"));
    gp_exam_assignments(exam, "LD_LIBRARY_PATH");
}

/* ---- cuDNN, which frameworks bring without a wheel of it ---- */

/* What a framework was built with, and what comes before it. */
struct cudnn_clash {
    const char *framework, *version; /* "PyTorch", "1.12.0+cu113" */
    const char *built;               /* "8.3.2.44" */
    bool is_other_build; /* only a build of this version for another CUDA has a newer one */
};

/* The version of a cuDNN in a directory: its file's, or that of the header beside it. */
static const char *cudnn_version(struct gp_exam *exam, const struct stray *stray)
{
    char text[16384], version[GP_TOOLKIT_VERSION];
    const char *slash = strrchr(stray->path, '/');
    if (strchr(stray->version, '.'))
        return stray->version;
    const char *path = gp_exam_text(exam, "%.*s/../include/cudnn_version.h",
                                    (int)(slash - stray->path), stray->path);
    if (gp_files_read(&exam->files, path, text, sizeof(text)) > 0 &&
        gp_cudnn_read_header(text, version))
        return gp_exam_text(exam, "%s", version);
    return "";
}

/* conda's builds say it: "py3.7_cuda10.1.243_cudnn7.6.3_0". */
static const char *cudnn_of_conda(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "pytorch");
    const char *found = package ? strstr(package->entry, "cudnn") : NULL;
    return found ? gp_exam_text(exam, "%.*s", (int)strspn(found + 5, "0123456789."), found + 5)
                 : "";
}

/* The cuDNN of this build, or of the build of the same version that has the newest; "": unknown. */
static const char *cudnn_of_build(enum gp_framework framework, const char *version,
                                  const char *cuda)
{
    size_t n = strcspn(version, "+");
    const char *newest = "";
    struct gp_build build;
    for (size_t i = 0; gp_build_at(framework, i, &build); i++) {
        size_t m = strlen(cuda);
        if (strlen(build.version) == n && strncmp(build.version, version, n) == 0 &&
            strncmp(build.cuda, cuda, m) == 0 && (!m || !build.cuda[m]) &&
            gp_version_compare(build.cudnn, newest) > 0)
            newest = build.cudnn;
    }
    return newest;
}

/* PyTorch with its own cuDNN in its folder, before which the stray one is found. */
static bool clashes_with_torch(struct gp_exam *exam, const struct stray *stray,
                               const struct gp_pyenv *env, struct cudnn_clash *ret)
{
    struct gp_torch torch;
    char own[GP_PATH_SIZE];
    const char *name = strrchr(stray->path, '/') + 1, *version = cudnn_version(exam, stray);
    if (!version[0] || !gp_pyenv_torch(exam, env, &torch) || !torch.cuda[0] ||
        !gp_pyenv_path(env, gp_exam_text(exam, "torch/lib/%s", name), own) ||
        !gp_files_exist(&exam->files, own))
        return false;
    const char *built = cudnn_of_conda(exam, env);
    built = built[0] ? built : cudnn_of_build(GP_FRAMEWORK_TORCH, torch.version, torch.cuda);
    const char *newest = cudnn_of_build(GP_FRAMEWORK_TORCH, torch.version, "");
    bool is_older = built[0] && compare(version, built) < 0;
    bool is_between = built[0] && compare(version, built) > 0 && compare(version, newest) < 0 &&
                      gp_version_major(version) == gp_version_major(newest);
    *ret = (struct cudnn_clash){"PyTorch", gp_exam_text(exam, "%s", torch.version),
                                is_older ? built : newest, !is_older};
    return is_older || is_between;
}

/* TensorFlow without wheels of cuDNN uses the system's, and refuses an older minor version. */
static bool clashes_with_tensorflow(struct gp_exam *exam, const struct stray *stray,
                                    const struct gp_pyenv *env, struct cudnn_clash *ret)
{
    static const char *const names[] = {"tensorflow", "tensorflow-gpu"};
    const char *version = cudnn_version(exam, stray);
    for (size_t i = 0; version[0] && i < GP_ARRAY_LEN(names); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, names[i]);
        const char *built =
            package && !package->is_conda
                ? cudnn_of_build(GP_FRAMEWORK_TENSORFLOW,
                                 gp_exam_text(exam, "%u.%u.0", gp_version_major(package->version),
                                              gp_version_minor(package->version)),
                                 "")
                : "";
        if (!strchr(built, '.') || gp_version_major(built) != gp_version_major(version) ||
            compare(version, built) >= 0)
            continue;
        *ret = (struct cudnn_clash){"TensorFlow", package->version, built, false};
        return true;
    }
    return false;
}

static void report_cudnn(struct gp_exam *exam, const struct stray *stray,
                         const struct gp_pyenv *env, const struct cudnn_clash *clash)
{
    const char *version = cudnn_version(exam, stray);
    gp_exam_report(exam, clash->is_other_build ? GP_VERDICT_WARN : gp_pyenv_verdict(env, true),
                   "LD_LIBRARY_PATH puts cuDNN %s before the one that %s %s in %s was built with",
                   version, clash->framework, clash->version, env->prefix);
    gp_exam_evidence(exam, stray->path, "cuDNN %s", version);
    gp_exam_evidence(exam, env->site, "%s %s%s: cuDNN %s", clash->framework, clash->version,
                     clash->is_other_build ? ", in its build for another CUDA" : "", clash->built);
    show_setting(exam);
    gp_exam_why(exam, "The loader takes the older one: \"cuDNN version incompatibility\", \"Loaded "
                      "runtime CuDNN library\", or an error at the first convolution.");
    if (strcmp(clash->framework, "PyTorch") == 0) {
        gp_exam_command(exam, "and remove cuDNN's directory where it is set: PyTorch has its own",
                        "unset LD_LIBRARY_PATH");
        gp_exam_advice(exam, "or install cuDNN %s there instead", clash->built);
    } else {
        gp_exam_advice(exam, "install cuDNN %s or a newer %u, and have LD_LIBRARY_PATH lead to it",
                       clash->built, gp_version_major(clash->built));
    }
}

/* Whether a library of version "8.9.7" comes from the release of a wheel "8.9.2.26". */
static bool is_release(const char *library, const char *wheel)
{
    size_t n = strlen(library);
    return strncmp(library, wheel, n) == 0 && (!wheel[n] || wheel[n] == '.');
}

/* cuDNN 8 loads its parts by name only, so those of a wheel meet parts of the stray one. */
static bool report_mixed(struct gp_exam *exam, const struct stray *stray,
                         const struct gp_pyenv *env)
{
    static const char part[] = "libcudnn_cnn_train.so.8";
    const struct gp_pypackage *wheel = gp_pyenv_package_like(env, "nvidia-cudnn-cu");
    const char *version = cudnn_version(exam, stray), *slash = strrchr(stray->path, '/');
    const char *path = gp_exam_text(exam, "%.*s/%s", (int)(slash - stray->path), stray->path, part);
    if (!wheel || stray->number != 8 || gp_version_major(wheel->version) != 8 || !version[0] ||
        is_release(version, wheel->version) || !gp_files_exist(&exam->files, path))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "LD_LIBRARY_PATH mixes parts of cuDNN %s into the cuDNN %s of %s", version,
                   wheel->version, env->prefix);
    gp_exam_evidence(exam, path, "cuDNN %s", version);
    gp_exam_evidence(exam, env->site, "%s", wheel->entry);
    show_setting(exam);
    gp_exam_why(exam,
                "cuDNN 8 loads its parts by name, and all must come from one release: "
                "\"Could not load library %s … undefined symbol\".",
                part);
    gp_exam_command(exam, "and remove the line that sets it; wheels find their cuDNN without it",
                    "unset LD_LIBRARY_PATH");
    gp_exam_link(exam, "https://github.com/pytorch/pytorch/issues/119989");
    return true;
}

/* One finding for each library: the first environment that it hits. */
static void report_cudnns(struct gp_exam *exam, const struct strays *s)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < s->count; i++) {
        const struct stray *stray = &s->list[i];
        bool is_told = strcmp(libraries[stray->kind].library, "libcudnn.so.") != 0;
        for (size_t e = 0; !is_told && e < envs->count; e++) {
            struct cudnn_clash clash;
            is_told = report_mixed(exam, stray, &envs->list[e]);
            if (is_told || (!clashes_with_torch(exam, stray, &envs->list[e], &clash) &&
                            !clashes_with_tensorflow(exam, stray, &envs->list[e], &clash)))
                continue;
            report_cudnn(exam, stray, &envs->list[e], &clash);
            is_told = true;
        }
        if (strcmp(libraries[stray->kind].library, "libcudnn.so.") == 0)
            return; /* the loader takes the first one */
    }
}

/* ---- all ---- */

static void show_replaced(struct gp_exam *exam, const struct strays *s, const struct gp_pyenv *env)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct gp_pypackage *wheel = replaced(s, &s->list[i], env);
        if (wheel)
            gp_exam_evidence(exam, s->list[i].path, "%s, before %s %s in %s", s->list[i].version,
                             wheel->name, wheel->version, env->prefix);
    }
}

/* LD_LIBRARY_PATH with the environment's directories first; NULL: it has none of them. */
static const char *reordered(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *value = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    bool is_apart = env->kind == GP_PYENV_VENV || env->kind == GP_PYENV_CONDA; /* not /usr */
    const char *wheels = "", *own = "", *others = "";
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&value, ":;", folder)) {
        const char **list = is_below(folder, env->site)                 ? &wheels
                            : is_apart && is_below(folder, env->prefix) ? &own
                                                                        : &others;
        if (folder[0])
            *list = gp_exam_text(exam, "%s%s:", *list, folder);
    }
    const char *all = gp_exam_text(exam, "%s%s%s", wheels, own, others);
    return *wheels || *own ? gp_exam_text(exam, "%.*s", (int)strlen(all) - 1, all) : NULL;
}

static void mend_clash(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *list = env ? reordered(exam, env) : NULL;
    if (list)
        gp_exam_command(exam, "and put its directories first where they are added to the variable",
                        "export LD_LIBRARY_PATH=%s", gp_exam_quoted(exam, list));
    else
        gp_exam_command(exam,
                        "and remove the line that sets it; wheels find their libraries without it",
                        "unset LD_LIBRARY_PATH");
}

/* One finding for all environments: the cause is the same. */
static void report_clash(struct gp_exam *exam, const struct strays *s)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    const struct gp_pyenv *hit[GP_PYENVS];
    size_t count = 0;
    bool is_active = false;
    for (size_t e = 0; e < envs->count; e++)
        for (size_t i = 0; i < s->count; i++)
            if (replaced(s, &s->list[i], &envs->list[e])) {
                hit[count++] = &envs->list[e];
                is_active = is_active || envs->list[e].is_active;
                break;
            }
    if (count == 0)
        return;
    if (count == 1)
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "LD_LIBRARY_PATH puts older CUDA libraries before those of %s",
                       hit[0]->prefix);
    else
        gp_exam_report(
            exam, is_active ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
            "LD_LIBRARY_PATH puts older CUDA libraries before those of %zu Python environments",
            count);
    show_setting(exam);
    for (size_t e = 0; e < count; e++)
        show_replaced(exam, s, hit[e]);
    gp_exam_why(exam, "The loader uses them instead of the framework's own: the import fails with "
                      "\"undefined symbol\", for example __nvJitLinkComplete_12_4, or cuDNN is "
                      "refused: \"Loaded runtime CuDNN library\".");
    mend_clash(exam, count == 1 ? hit[0] : NULL);
}

static void report_empty(struct gp_exam *exam)
{
    const char *value = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    const char *kept = "";
    char folder[GP_PATH_SIZE];
    while (gp_search_path_next(&value, ":;", folder))
        if (folder[0])
            kept = gp_exam_text(exam, "%s%s%s", kept, *kept ? ":" : "", folder);
    gp_exam_report(exam, GP_VERDICT_INFO, "LD_LIBRARY_PATH has an empty element");
    show_setting(exam);
    gp_exam_why(exam, "The loader treats it as the working directory, and loads libraries from "
                      "wherever a program is started.");
    if (*kept)
        gp_exam_command(exam, "", "export LD_LIBRARY_PATH=%s", gp_exam_quoted(exam, kept));
    else
        gp_exam_command(exam, "", "unset LD_LIBRARY_PATH");
}

void gp_check_cuda_ldpath(struct gp_exam *exam)
{
    const char *value = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    const struct gp_finding *first = exam->last;
    gp_check_cuda_nixos(exam);
    if (!value || !*value) {
        if (exam->last == first)
            gp_cuda_note_unset(exam);
        return;
    }
    struct strays *s = gp_arena_alloc(&exam->arena, 1, sizeof(*s));
    while (s && gp_search_path_next(&value, ":;", folder)) {
        s->has_empty = s->has_empty || !folder[0];
        if (folder[0] == '/')
            look_into(exam, s, folder);
    }
    if (!s)
        return;
    const struct gp_finding *before = exam->last;
    report_clash(exam, s);
    if (exam->last == before)
        report_cudnns(exam, s);
    if (exam->last == before)
        gp_check_cuda_bundled(exam);
    if (s->stub) {
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "LD_LIBRARY_PATH leads to a stub libcuda that is only for linking");
        gp_exam_evidence(exam, s->stub, "precedes the driver's own");
        show_setting(exam);
        gp_exam_why(exam,
                    "Every CUDA call fails with error 34, \"CUDA driver is a stub library\".");
        gp_exam_command(exam, "and remove the directory where it is set", "unset LD_LIBRARY_PATH");
    }
    if (s->has_empty && exam->last == before)
        report_empty(exam);
}
