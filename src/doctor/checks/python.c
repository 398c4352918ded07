/* Python environments, and PyTorch in them. */
#include "doctor/checks/python.h"

#include "doctor/checks/cuda.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/archlist.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

/* ---- environments ---- */

static const char nothing[] = "no framework";

/* "torch 2.7.1, jax 0.4.30": the packages people ask for by name. */
static const char *framework_words(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const names[] = {"torch",       "tensorflow",      "jax",  "vllm",
                                        "onnxruntime", "onnxruntime-gpu", "cupy", "pytorch"};
    const char *words = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, names[i]);
        if (package)
            words = gp_exam_text(exam, "%s%s%s %s", words, *words ? ", " : "", names[i],
                                 package->version);
    }
    return *words ? words : nothing;
}

static void show_environment(struct gp_exam *exam, const struct gp_pyenv *env)
{
    gp_exam_evidence(exam, env->prefix, "%s, Python %s%s: %s", gp_pyenv_kind_word(env->kind),
                     env->python[0] ? env->python : "of unknown version",
                     env->is_active && !env->is_named ? ", active" : "",
                     framework_words(exam, env));
}

static bool has_framework(struct gp_exam *exam, const struct gp_pyenvs *envs)
{
    for (size_t i = 0; i < envs->count; i++)
        if (envs->list[i].error || strcmp(framework_words(exam, &envs->list[i]), nothing) != 0)
            return true;
    return false;
}

/* In a copy of a machine they may be at a place of their own; on the machine itself the environment
 * in use is known. */
static void report_none(struct gp_exam *exam, const struct gp_pyenvs *envs)
{
    bool is_copy = gp_homes_of(exam)->is_of_all && !exam->is_simulated;
    gp_exam_report(exam, is_copy ? GP_VERDICT_INFO : GP_VERDICT_OK, "no Python environment %s",
                   envs->count > 0 ? "has a framework for GPUs" : "was found");
    for (size_t i = 0; i < envs->count; i++)
        show_environment(exam, &envs->list[i]);
    gp_python_show_places(exam);
    gp_exam_is_empty(exam);
}

static void run_find(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    size_t readable = 0;
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        readable += env->error == 0;
        if (env->error == 0)
            continue;
        if (env->is_named && env->error == -ENOENT)
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "%s is neither a Python interpreter nor an environment", env->prefix);
        else
            gp_exam_unreadable(exam, env->site[0] ? env->site : env->prefix, env->error);
    }
    if (envs->is_cut)
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "there are more than %d Python environments: the others were not checked",
                       GP_PYENVS);
    if (envs->count == 0 || (gp_homes_of(exam)->is_of_all && !has_framework(exam, envs))) {
        report_none(exam, envs);
        return;
    }
    if (readable == 0)
        return;
    gp_exam_report(exam, exam->pythons ? GP_VERDICT_INFO : GP_VERDICT_OK,
                   "%zu Python environment%s", readable, readable == 1 ? "" : "s");
    for (size_t i = 0; i < envs->count; i++)
        if (envs->list[i].error == 0)
            show_environment(exam, &envs->list[i]);
}

/* ---- PyTorch: facts about an installation ---- */

/* Whether "10.1.243", as conda's builds say, is the table's "10.1". */
static bool is_cuda(const char *version, const char *known)
{
    size_t n = strlen(known);
    return strncmp(version, known, n) == 0 && (!version[n] || version[n] == '.');
}

/* A nightly build, "2.6.0.dev20241112+cu121", has code for the GPUs of the release before it for
 * the same CUDA. NULL: there is none. */
static const struct gp_torch_build *release_before(const struct gp_torch *t)
{
    const struct gp_torch_build *found = NULL;
    if (!strstr(t->version, ".dev") || !strstr(t->version, "+cu"))
        return NULL;
    for (size_t i = 0; i < gp_torch_build_count; i++)
        if (gp_version_compare(gp_torch_builds[i].torch, t->version) < 0 &&
            is_cuda(t->cuda, gp_torch_builds[i].cuda))
            found = &gp_torch_builds[i];
    return found;
}

/* The table row of a build; NULL: an unknown build. */
static const struct gp_torch_build *known_build(const struct gp_torch *t)
{
    size_t n = strcspn(t->version, "+");
    for (size_t i = 0; i < gp_torch_build_count; i++)
        if (strlen(gp_torch_builds[i].torch) == n &&
            strncmp(gp_torch_builds[i].torch, t->version, n) == 0 &&
            is_cuda(t->cuda, gp_torch_builds[i].cuda))
            return &gp_torch_builds[i];
    return release_before(t);
}

/* Results are reused: the same version is the same build, and the libraries are large. */
struct known_archs {
    const char *version, *archs, *where;
};

struct torches {
    struct gp_case cases[GP_PYENVS];
    size_t count;
    struct known_archs known[GP_PYENVS];
    size_t known_count;
    uint64_t budget; /* bytes left to read from libraries */
};

static bool read_library(struct gp_exam *exam, struct torches *all, const struct gp_torch *t,
                         const char *file, struct known_archs *ret)
{
    char path[GP_PATH_SIZE], archs[GP_ARCHLIST_SIZE];
    if (!gp_pyenv_path(t->env, file, path) ||
        !gp_archlist_read(&exam->files, path, &all->budget, archs))
        return false;
    ret->archs = gp_exam_text(exam, "%s", archs);
    ret->where = gp_exam_text(exam, "%s", path);
    return true;
}

/* What no release before 1.0 goes below: its builds have code for Kepler and newer, at most. */
static bool read_age(const struct gp_torch *t, struct known_archs *ret)
{
    if (gp_version_compare(t->version, "1.0") >= 0)
        return false;
    ret->archs = "sm_30 compute_30";
    ret->where = "builds before 1.0 (at most)";
    return true;
}

/* The GPUs that a build has code for: from its library, else from the table, else from the other
 * library that can contain the list, else from its age. */
static struct known_archs archs_of(struct gp_exam *exam, struct torches *all,
                                   const struct gp_torch *t)
{
    struct known_archs archs = {gp_exam_text(exam, "%s", t->version), "", ""};
    for (size_t i = 0; i < all->known_count; i++)
        if (strcmp(all->known[i].version, t->version) == 0)
            return all->known[i];
    if (!read_library(exam, all, t, "torch/lib/libtorch_python.so", &archs)) {
        const struct gp_torch_build *row = known_build(t);
        if (row) {
            archs.archs = row->archs;
            archs.where = "table of builds";
        } else if (!read_library(exam, all, t, "torch/lib/libtorch_cuda.so", &archs)) {
            (void)read_age(t, &archs);
        }
    }
    all->known[all->known_count++] = archs;
    return archs;
}

/* Releases before 0.4 do not name their CUDA, and need not bring it. */
static bool is_unstated(const struct gp_torch *t)
{
    return !t->cuda[0] && gp_version_compare(t->version, "0.4") < 0;
}

static enum gp_trouble trouble_of(const struct gp_torch *t)
{
    if (!t->version[0])
        return GP_TROUBLE_BROKEN;
    if (t->cuda[0])
        return GP_TROUBLE_NONE;
    if (is_unstated(t))
        return GP_TROUBLE_UNKNOWN;
    return t->hip[0] || t->xpu[0] ? GP_TROUBLE_OTHER_VENDOR : GP_TROUBLE_CPU_ONLY;
}

static const char *seen_words(struct gp_exam *exam, const struct gp_torch *t)
{
    if (!t->version[0])
        return "missing, or names no version";
    if (t->cuda[0])
        return gp_exam_text(exam, "PyTorch %s for CUDA %s", t->version, t->cuda);
    if (t->hip[0])
        return gp_exam_text(exam, "PyTorch %s for ROCm %s", t->version, t->hip);
    if (is_unstated(t))
        return gp_exam_text(exam, "PyTorch %s", t->version);
    return gp_exam_text(exam, "PyTorch %s for %s", t->version,
                        t->xpu[0] ? "Intel's GPUs" : "the CPU");
}

static void add_torch(struct gp_exam *exam, const struct gp_nvidia *nv, struct torches *all,
                      const struct gp_torch *t)
{
    char path[GP_PATH_SIZE] = "";
    (void)gp_pyenv_path(t->env, "torch/version.py", path);
    if (t->error) {
        gp_exam_unreadable(exam, path, t->error);
        return;
    }
    struct gp_case c = {.env = t->env,
                        .framework = GP_FRAMEWORK_TORCH,
                        .version = gp_exam_text(exam, "%s", t->version),
                        .cuda = gp_exam_text(exam, "%s", t->cuda),
                        .archs = "",
                        .archs_where = "",
                        .where = gp_exam_text(exam, "%s", path),
                        .seen = seen_words(exam, t),
                        .trouble = trouble_of(t)};
    const struct gp_pypackage *package = gp_pyenv_package(t->env, "torch");
    if (c.trouble == GP_TROUBLE_BROKEN && package)
        c.version = package->version;
    if (c.trouble == GP_TROUBLE_NONE) {
        struct known_archs archs = archs_of(exam, all, t);
        c.archs = archs.archs;
        c.archs_where = archs.where;
        gp_case_judge(&c, nv);
    }
    all->cases[all->count++] = c;
}

/* ---- PyTorch: other problems in an environment ---- */

/* Whether download.pytorch.org has a directory for builds with this suffix. */
static bool is_of_pytorch(const char *suffix)
{
    return strcmp(suffix, "cpu") == 0 || strcmp(suffix, "xpu") == 0 ||
           (strncmp(suffix, "cu", 2) == 0 && strspn(suffix + 2, "0123456789") > 0) ||
           strncmp(suffix, "rocm", 4) == 0;
}

/* Suggests reinstalling "2.5.1+cu124". PyPI has no versions with a suffix, and no index has the
 * builds that NVIDIA's containers ship or that users compile. */
static void install_again(struct gp_exam *exam, const struct gp_pyenv *env, const char *version)
{
    const char *suffix = strchr(version, '+');
    const char *words;
    if (suffix && !is_of_pytorch(suffix + 1)) {
        gp_exam_advice(
            exam, "reinstall PyTorch %s from its source; no package index has this build", version);
        return;
    }
    words = suffix ? gp_torch_request(
                         exam, gp_torch_release(exam, version), "",
                         gp_exam_text(exam, "https://download.pytorch.org/whl/%s", suffix + 1))
                   : gp_exam_text(exam, "torch==%s", version);
    gp_exam_pip(exam, env, GP_PIP_AGAIN, "", words);
}

/* Two versions of a package in one directory: the files of the newer one overwrote those of the
 * older. */
static void check_twice(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *first = gp_pyenv_package(env, "torch");
    for (size_t i = 0; first && i < env->count; i++) {
        const struct gp_pypackage *other = &env->packages[i];
        if (other->is_conda || strcmp(other->name, "torch") != 0 ||
            strcmp(other->version, first->version) == 0)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s has PyTorch twice: %s and %s", env->prefix,
                       first->version, other->version);
        gp_exam_evidence(exam, env->site, "%s, %s", first->entry, other->entry);
        gp_exam_why(exam, "An update was interrupted; files of both versions may be mixed.");
        install_again(exam, env, other->version);
        return;
    }
}

/* The user's own packages take precedence in every Python except virtual environments. */
static void check_shadow(struct gp_exam *exam, const struct gp_torch *user,
                         const struct gp_torch *t)
{
    bool is_before = t->env->kind != GP_PYENV_VENV && t->env->kind != GP_PYENV_USER &&
                     t->env->python[0] && strcmp(t->env->python, user->env->python) == 0;
    if (!is_before || strcmp(t->version, user->version) == 0 ||
        gp_homes_separate(exam, user->env->prefix, t->env->prefix))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "Python %s uses PyTorch %s in %s, not the %s in %s",
                   t->env->python, user->version, user->env->prefix, t->version, t->env->prefix);
    gp_exam_evidence(exam, user->env->site, "PyTorch %s", user->version);
    gp_exam_evidence(exam, t->env->site, "PyTorch %s", t->version);
    gp_exam_command(exam, "ignore the user's packages", "export PYTHONNOUSERSITE=1");
}

static void check_shadows(struct gp_exam *exam, const struct gp_pyenvs *envs)
{
    struct gp_torch user, other;
    for (size_t u = 0; u < envs->count; u++) {
        if (envs->list[u].kind != GP_PYENV_USER || !gp_pyenv_torch(exam, &envs->list[u], &user))
            continue;
        for (size_t i = 0; i < envs->count; i++)
            if (gp_pyenv_torch(exam, &envs->list[i], &other))
                check_shadow(exam, &user, &other);
    }
}

/* Directories in PYTHONPATH come before the packages of any environment. Images set it on purpose,
 * for the system's Python. */
static void check_pythonpath(struct gp_exam *exam, const struct gp_torch *t)
{
    const char *list = gp_machine_variable(&exam->machine, "PYTHONPATH");
    char folder[GP_PATH_SIZE], version[64];
    while (t->env->is_active && t->version[0] && gp_search_path_next(&list, ":", folder)) {
        const char *path = gp_exam_text(exam, "%s/torch/version.py", folder);
        const char *text = folder[0] == '/' && strcmp(folder, t->env->site) != 0
                               ? gp_files_text(&exam->files, &exam->arena, path, 4096, NULL)
                               : NULL;
        if (!text || !gp_python_version(text, "__version__", version, sizeof(version)) ||
            strcmp(version, t->version) == 0)
            continue;
        bool is_meant = t->env->kind == GP_PYENV_SYSTEM || t->env->kind == GP_PYENV_USER;
        gp_exam_report(exam, is_meant ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                       "PYTHONPATH puts PyTorch %s before the %s in %s", version, t->version,
                       t->env->prefix);
        gp_exam_evidence(exam, path, "PyTorch %s", version);
        gp_exam_evidence(exam, t->env->site, "PyTorch %s", t->version);
        gp_exam_unset(exam, "PYTHONPATH", "also where it is set");
        return;
    }
}

/* ---- PyTorch: the wheels it was built with ---- */

struct wheels {
    bool is_bad;        /* one is older or missing */
    const char *list;   /* "nvidia-cudnn-cu12 9.1.0.70 instead of 9.7.1.26" … */
    const char *wanted; /* "nvidia-cudnn-cu12==9.7.1.26 …" */
};

static void compare_wheel(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_requirement *wanted, struct wheels *ret)
{
    const struct gp_pypackage *have = gp_pyenv_package(env, wanted->name);
    int order = have ? gp_version_compare(have->version, wanted->version) : -1;
    bool is_other = have && gp_version_major(have->version) != gp_version_major(wanted->version);
    if (order == 0)
        return;
    ret->is_bad = ret->is_bad || order < 0 || is_other;
    ret->list = gp_exam_text(exam, "%s%s%s ", ret->list, ret->list[0] ? ", " : "", wanted->name);
    ret->list =
        have ? gp_exam_text(exam, "%s%s instead of %s", ret->list, have->version, wanted->version)
             : gp_exam_text(exam, "%sis missing", ret->list);
    ret->wanted = gp_exam_text(exam, "%s%s%s==%s", ret->wanted, ret->wanted[0] ? " " : "",
                               wanted->name, wanted->version);
}

/* Other packages replace cuDNN or NCCL with the version they prefer. */
static void check_wheels(struct gp_exam *exam, const struct gp_torch *t)
{
    const struct gp_pypackage *torch = gp_pyenv_package(t->env, "torch");
    struct gp_requirement wanted;
    struct wheels wheels = {.list = "", .wanted = ""};
    if (!torch || torch->is_conda || t->env->kind == GP_PYENV_SYSTEM || !t->cuda[0] ||
        gp_pyenv_package(t->env, "pytorch"))
        return;
    const char *file = gp_exam_text(exam, "%s/METADATA", torch->entry);
    const char *text = gp_pyenv_text(exam, t->env, file);
    while ((text = gp_requirement_next(text, &wanted)))
        if (strncmp(wanted.name, "nvidia-", 7) == 0 && wanted.version[0] && !wanted.is_extra &&
            (!wanted.machine[0] || strcmp(wanted.machine, exam->machine.arch) == 0))
            compare_wheel(exam, t->env, &wanted, &wheels);
    if (!wheels.list[0])
        return;
    gp_exam_report(exam, wheels.is_bad ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "PyTorch %s in %s does not have the CUDA libraries that it was built with",
                   t->version, t->env->prefix);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", t->env->site, file), "%s", wheels.list);
    gp_exam_why(exam, wheels.is_bad ? "Another package replaced them, or they were not installed: "
                                      "the import or the first convolution can fail."
                                    : "Another package installed newer ones, which usually work.");
    gp_exam_pip(exam, t->env, GP_PIP_ADD, "restore them", wheels.wanted);
}

/* The PyTorch that a project installs, "2.1.2" of "pip install torch==2.1.2", and its file; NULL:
 * any, or unknown. */
static const char *pinned_torch(struct gp_exam *exam, const char *project, const char **ret_file)
{
    static const char *const files[] = {"requirements.txt", "modules/launch_utils.py", "launch.py"};
    static const char pin[] = "torch==";
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++) {
        *ret_file = gp_exam_text(exam, "%s/%s", project, files[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, *ret_file, 64 << 10, NULL);
        for (const char *p = text; p && (p = strstr(p, pin)); p++)
            if (p == text || strchr(" \n\"'", p[-1])) {
                p += sizeof(pin) - 1;
                return gp_exam_text(exam, "%.*s", (int)strspn(p, "0123456789."), p);
            }
    }
    return NULL;
}

/* An environment next to a project, whose Python is newer than the PyTorch that the project asks
 * for: its installation failed, and will. */
static void check_python(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *slash = strrchr(env->prefix, '/'), *file;
    struct gp_build build;
    if (env->kind != GP_PYENV_VENV || env->has_torch || !env->python[0] || !slash)
        return;
    const char *project = gp_exam_text(exam, "%.*s", (int)(slash - env->prefix), env->prefix);
    const char *wanted = pinned_torch(exam, project, &file);
    if (!wanted || !gp_build_newest(GP_FRAMEWORK_TORCH, wanted, &build) || !build.last_python[0] ||
        gp_version_compare(env->python, build.last_python) <= 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s has Python %s, for which there is no PyTorch %s, which %s asks for",
                   env->prefix, env->python, wanted, project);
    gp_exam_evidence(exam, file, "torch==%s: for Python %s to %s", wanted, build.first_python,
                     build.last_python);
    gp_exam_evidence(exam, env->site, "Python %s, without torch", env->python);
    gp_exam_why(exam, "\"Could not find a version that satisfies the requirement torch==%s\".",
                wanted);
    const char *uv = "uv venv --clear --seed";
    gp_exam_command(exam, "make it again with an older Python, which uv downloads",
                    "%s --python %s %s", uv, build.last_python, gp_exam_quoted(exam, env->prefix));
    gp_exam_advice(exam, "then start or install %s again", project);
}

/* 1.7.0 has code of CUDA 11.0 for 8.0 that runs on 8.6, too. What it compiles while it runs, it
 * compiles for 8.6, which the compiler of 11.0 does not know; 1.7.1 compiles for 8.0. */
static bool report_compiler(struct gp_exam *exam, const struct gp_nvidia *nv,
                            const struct gp_case *c, bool is_only)
{
    enum { NEWEST = 80, NEXT = 90 };
    static const char first[] = "1.7.0", mended[] = "1.7.1", cuda[] = "11.0";
    const struct gp_nvidia_gpu *gpu = NULL;
    size_t count = 0;
    for (size_t i = 0; i < nv->count; i++)
        if (nv->gpus[i].capability > NEWEST && nv->gpus[i].capability < NEXT) {
            gpu = &nv->gpus[i];
            count++;
        }
    if (!gpu || strcmp(c->cuda, cuda) != 0 || gp_version_compare(c->version, first) < 0 ||
        gp_version_compare(c->version, mended) >= 0 ||
        c->version[strspn(c->version, "0123456789.")] == 'a')
        return false;
    gp_exam_report(exam, count < nv->count ? GP_VERDICT_WARN : gp_pyenv_verdict(c->env, is_only),
                   "PyTorch %s in %s cannot compile kernels for %s", c->version, c->env->prefix,
                   gp_nvidia_gpu_words(exam, gpu));
    gp_exam_evidence(exam, c->where, "%s", c->seen);
    if (c->archs[0])
        gp_exam_evidence(exam, c->archs_where, "built for %s", c->archs);
    gp_exam_why(exam, "Simple operations work. Those that it compiles while it runs fail with \"no "
                      "kernel image is available for execution on the device\".");
    if (gp_pyenv_package(c->env, "pytorch")) {
        gp_torch_release_bound(exam, c->env);
        gp_exam_command(exam, "the first version that can",
                        "%s install -p %s -c pytorch pytorch=%s%s cudatoolkit=%s",
                        gp_conda_program(exam, c->env), gp_exam_quoted(exam, c->env->prefix),
                        mended, gp_torch_companions(exam, c->env), cuda);
        gp_torch_return_bound(exam, c->env);
    } else {
        gp_exam_pip(
            exam, c->env, GP_PIP_ADD, "the first version that can",
            gp_exam_text(exam,
                         "torch==%s+cu110%s%s -f "
                         "https://download.pytorch.org/whl/torch_stable.html",
                         mended,
                         gp_pyenv_package(c->env, "torchvision") ? " torchvision==0.8.2+cu110" : "",
                         gp_pyenv_package(c->env, "torchaudio") ? " torchaudio==0.7.2" : ""));
    }
    gp_exam_link(exam, "https://github.com/pytorch/pytorch/issues/49161");
    return true;
}

static void check_torch(struct gp_exam *exam)
{
    enum { BUDGET = 1 << 30 };
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct torches *all = gp_arena_alloc(&exam->arena, 1, sizeof(*all));
    struct gp_nvidia nv;
    struct gp_torch t;
    if (!all)
        return;
    gp_nvidia_read(&nv, exam);
    gp_cuda_use_compat(exam, &nv);
    all->budget = BUDGET;
    for (size_t i = 0; i < envs->count; i++)
        if (gp_pyenv_torch(exam, &envs->list[i], &t))
            add_torch(exam, &nv, all, &t);
    check_shadows(exam, envs);
    gp_cases_report(exam, &nv, all->cases, all->count);
    for (size_t i = 0; i < envs->count; i++)
        check_python(exam, &envs->list[i]);
    for (size_t i = 0; i < all->count; i++) {
        check_twice(exam, all->cases[i].env);
        if (gp_pyenv_torch(exam, all->cases[i].env, &t))
            check_pythonpath(exam, &t);
        if (all->cases[i].trouble == GP_TROUBLE_NONE &&
            !report_compiler(exam, &nv, &all->cases[i], all->count == 1) &&
            gp_pyenv_torch(exam, all->cases[i].env, &t))
            check_wheels(exam, &t);
    }
    gp_cases_report_well(exam, GP_FRAMEWORK_TORCH, all->cases, all->count);
}

static bool has_triton(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++)
        if (gp_triton_of(&envs->list[i]))
            return gp_nvidia_is_there(exam);
    return false;
}

const struct gp_check gp_checks_python[] = {
    {.id = "python.find", .title = "Python environments can be read", .run = run_find},
    {.id = "python.torch",
     .title = "PyTorch fits the GPUs and the driver",
     .needs = {"driver.loaded"},
     .applies = gp_nvidia_is_there,
     .run = check_torch,
     .is_run_anyway = true},
    {.id = "python.tensorflow",
     .title = "TensorFlow fits the GPUs and the driver",
     .needs = {"driver.loaded"},
     .applies = gp_nvidia_is_there,
     .run = gp_check_tensorflow,
     .is_run_anyway = true},
    {.id = "python.jax",
     .title = "JAX fits the GPUs and the driver",
     .needs = {"driver.loaded"},
     .applies = gp_nvidia_is_there,
     .run = gp_check_jax,
     .is_run_anyway = true},
    {.id = "python.others",
     .title = "packages that use GPUs match each other",
     .needs = {"driver.loaded"},
     .applies = gp_nvidia_is_there,
     .run = gp_check_python_others,
     .is_run_anyway = true},
    {.id = "python.triton",
     .title = "Triton can compile programs for the GPUs",
     .needs = {"driver.loaded", "driver.libraries"},
     .applies = has_triton,
     .run = gp_check_triton},
    {0},
};
