/* Builds for the CPU where there are GPUs: alone, or together with the package for GPUs that has
 * the same files. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/shared.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <string.h>

/* ---- whose files are there ---- */

/* By the files themselves: the package that was installed last has overwritten those of the other,
 * and who builds a package from source may keep the name of the one for the CPU. */
enum origin {
    ORIGIN_UNKNOWN,
    ORIGIN_CPU,
    ORIGIN_GPU,
};

static enum origin origin_of_library(struct gp_exam *exam, const struct gp_pyenv *env,
                                     const char *file)
{
    static const char *const starts[] = {"libcudart.so", "libcublas.so", "libcuda.so", NULL};
    struct gp_elf shared;
    const char *name;
    char path[GP_PATH_SIZE];
    size_t from = 0;
    if (!gp_pyenv_path(env, file, path) || !gp_elf_read(&shared, &exam->files, &exam->arena, path))
        return ORIGIN_UNKNOWN;
    while ((name = gp_elf_needed(&shared, &from)))
        if (gp_lines_starts_any(name, starts))
            return ORIGIN_GPU;
    return ORIGIN_CPU;
}

static enum origin origin_of_mxnet(struct gp_exam *exam, const struct gp_pyenv *env)
{
    return origin_of_library(exam, env, "mxnet/libmxnet.so");
}

/* Whether its file says that it has CUDA; the build for the CPU does not say so. */
static enum origin origin_of_onnx(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *text = gp_pyenv_text(exam, env, "onnxruntime/capi/build_and_package_info.py");
    char cuda[16];
    if (gp_python_version(text, "cuda_version", cuda, sizeof(cuda)) && cuda[0])
        return ORIGIN_GPU;
    return *text ? ORIGIN_CPU : ORIGIN_UNKNOWN;
}

static enum origin origin_of_paddle(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *text = gp_pyenv_text(exam, env, "paddle/version/__init__.py");
    char cuda[16];
    if (!gp_python_version(text, "cuda_version", cuda, sizeof(cuda)))
        return ORIGIN_UNKNOWN;
    return strcmp(cuda, "False") == 0 ? ORIGIN_CPU : ORIGIN_GPU;
}

/* It has a module for each kind of CPU, of which it takes the best: a module that is left over from
 * the other package counts, too. */
static enum origin origin_of_faiss(struct gp_exam *exam, const struct gp_pyenv *env)
{
    enum { TEXT_MAX = 4 << 20 };
    static const char start[] = "swigfaiss", end[] = ".py";
    enum origin origin = ORIGIN_UNKNOWN;
    char folder[GP_PATH_SIZE], **names;
    struct gp_arena scratch = {0};
    long n = gp_pyenv_path(env, "faiss", folder)
                 ? gp_files_list(&exam->files, &scratch, folder, &names)
                 : 0;
    for (long i = 0; i < n && origin != ORIGIN_CPU; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(names[i], start, strlen(start)) != 0 || length < strlen(end) ||
            strcmp(names[i] + length - strlen(end), end) != 0)
            continue;
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *text = gp_files_text(&exam->files, &scratch, path, TEXT_MAX, NULL);
        if (text)
            origin = strstr(text, "StandardGpuResources") ? ORIGIN_GPU : ORIGIN_CPU;
    }
    gp_arena_fini(&scratch);
    return origin;
}

/* ---- two packages with the same files ---- */

/* Two packages that install the same module: the one installed last wins, or they are mixed. */
static const struct twins {
    const char *cpu, *gpu; /* of the latter the beginning */
    const char *why;       /* with the files of the first */
    enum origin (*origin)(struct gp_exam *exam, const struct gp_pyenv *env);
    enum gp_verdict unknown; /* where it is unknown whose files are there */
} twins[] = {
    {"onnxruntime", "onnxruntime-gpu",
     "Both install the same module; with the files of the first there is no "
     "CUDAExecutionProvider.",
     origin_of_onnx, GP_VERDICT_WARN},
    {"paddlepaddle", "paddlepaddle-gpu",
     "Both install the same module; with the files of the first: \"Cannot use GPU because you have "
     "installed CPU version PaddlePaddle\".",
     origin_of_paddle, GP_VERDICT_WARN},
    {"mxnet", "mxnet-cu",
     "Both install the same module; with the files of the first: \"Compile with USE_CUDA=1 to "
     "enable GPU usage\".",
     origin_of_mxnet, GP_VERDICT_INFO},
    {"faiss-cpu", "faiss-gpu",
     "Both install the same module; with the files of the first it has no "
     "StandardGpuResources.",
     origin_of_faiss, GP_VERDICT_INFO},
};

/* Where a build of Paddle is found that is not in PyPI: "2.6.1.post117". */
static const char *index_of_paddle(struct gp_exam *exam, const struct gp_pypackage *gpu)
{
    if (strcmp(gpu->name, "paddlepaddle-gpu") != 0)
        return "";
    if (gp_version_major(gpu->version) < 3)
        return strstr(gpu->version, ".post")
                   ? " -f https://www.paddlepaddle.org.cn/whl/linux/mkl/avx/stable.html"
                   : "";
    return gp_paddle_index(exam);
}

static void check_twins(struct gp_exam *exam, const struct gp_pyenv *env, const struct twins *both)
{
    const struct gp_pypackage *cpu = gp_pyenv_package(env, both->cpu);
    const struct gp_pypackage *gpu = gp_pyenv_package_like(env, both->gpu);
    if (!cpu || !gpu || cpu->is_conda || gpu->is_conda)
        return;
    enum origin origin = both->origin(exam, env);
    if (origin == ORIGIN_GPU)
        return; /* the one for GPUs was installed last */
    bool is_certain = origin == ORIGIN_CPU && both->origin == origin_of_paddle;
    enum gp_verdict verdict = is_certain                 ? gp_pyenv_verdict(env, false)
                              : origin == ORIGIN_UNKNOWN ? both->unknown
                                                         : GP_VERDICT_WARN;
    gp_exam_report(exam, verdict, "%s has both %s and %s: the first can hide the GPU", env->prefix,
                   cpu->name, gpu->name);
    gp_exam_stands_alone(exam);
    gp_exam_evidence(exam, env->site, "%s, %s", cpu->entry, gpu->entry);
    gp_exam_why(exam, "%s", both->why);
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", gp_exam_text(exam, "%s %s", cpu->name, gpu->name));
    gp_exam_pip(
        exam, env, GP_PIP_ADD, "",
        gp_exam_text(exam, "%s==%s%s", gpu->name, gpu->version, index_of_paddle(exam, gpu)));
}

/* ---- builds for the CPU ---- */

/* Packages that have another name for GPUs, or a library only if built for them. */
static const struct {
    const char *name, *title;
    const char *library;        /* below the environment's packages; NULL: by the name */
    const char *other, *remedy; /* the package for GPUs, and how to get it; NULL: MXNet's */
    bool is_framework;          /* computes by itself, also beside another framework */
    const char *word;           /* in programs that want it to use a GPU; NULL: unknown */
    enum origin (*origin)(struct gp_exam *exam, const struct gp_pyenv *env); /* NULL: by the name */
} cpu_only[] = {
    {"onnxruntime", "ONNX Runtime", NULL, "onnxruntime-gpu", "onnxruntime-gpu", false,
     "CUDAExecutionProvider", origin_of_onnx},
    {"faiss-cpu", "Faiss", NULL, "faiss-gpu", "faiss-gpu-cu12", false, "StandardGpuResources",
     origin_of_faiss},
    {"paddlepaddle", "PaddlePaddle", NULL, "paddlepaddle-gpu", "paddlepaddle-gpu", true},
    {"xgboost-cpu", "XGBoost", NULL, NULL, "xgboost", true},
    {"mxnet", "MXNet", NULL, "mxnet-cu", NULL, false, NULL, origin_of_mxnet},
    {"dgl", "DGL", NULL, "dgl-cu", "dgl -f https://data.dgl.ai/wheels/cu121/repo.html", true},
    {"llama-cpp-python", "llama-cpp-python", "llama_cpp/lib/libggml-cuda.so", NULL,
     "--no-cache-dir --prefer-binary llama-cpp-python --extra-index-url "
     "https://abetlen.github.io/llama-cpp-python/whl/cu124",
     true},
};

/* Why a build for CUDA did not come about, although the user may have asked for one. The finished
 * build needs no compiler. */
static void show_old_nvcc(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_pypackage *package)
{
    const char *source, *old = gp_llama_old_nvcc(exam, &source);
    if (!old)
        return;
    gp_exam_evidence(exam, source, "CUDA %s, whose nvcc is too old to compile it", old);
    gp_exam_why(exam,
                "pip compiles it for the CPU unless CMAKE_ARGS says otherwise, and with the nvcc "
                "of CUDA %s its build for CUDA fails.",
                old);
    gp_exam_advice(exam, "or, to compile it here:");
    gp_llama_build(exam, env, package->version);
}

/* Only in the user's own environment; others than frameworks only where no framework may be what
 * uses the GPU. */
static void check_cpu_only(struct gp_exam *exam, const struct gp_pyenv *env)
{
    char path[GP_PATH_SIZE] = "";
    bool is_meant = env->is_active || env->is_named, has_other = gp_pyenv_frameworks(env) > 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(cpu_only); i++) {
        bool is_around = !is_meant && cpu_only[i].word; /* a program's own folder */
        if (!is_meant && !is_around && !(cpu_only[i].library && gp_llama_is_used(exam, env)))
            continue;
        const struct gp_pypackage *package = gp_pyenv_package(env, cpu_only[i].name);
        const char *word = cpu_only[i].word;
        const char *program = package && word
                                  ? gp_project_program_with(exam, env, word, has_other || is_around)
                                  : NULL;
        if (package && (package->is_conda || strchr(package->version, '+') ||
                        ((has_other || is_around) && !cpu_only[i].is_framework && !program)))
            continue;
        const char *library = cpu_only[i].library;
        bool has_folder = !library || (gp_pyenv_path(env, "llama_cpp/lib", path) &&
                                       gp_files_exist(&exam->files, path));
        if (!package || !has_folder ||
            (cpu_only[i].origin && cpu_only[i].origin(exam, env) == ORIGIN_GPU) ||
            (cpu_only[i].other && gp_pyenv_package_like(env, cpu_only[i].other)) ||
            (library && gp_pyenv_path(env, library, path) && gp_files_exist(&exam->files, path)))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s in %s is a build for the CPU", cpu_only[i].title,
                       env->prefix);
        gp_exam_stands_alone(exam);
        gp_exam_evidence(exam, env->site, "%s", package->entry);
        if (program)
            gp_exam_evidence(exam, program, "uses %s", word);
        if (library)
            gp_exam_evidence(exam, path, "missing");
        if (!library)
            gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
        if (strcmp(package->name, "paddlepaddle") == 0) {
            gp_paddle_install(exam, env, package->version);
            continue;
        }
        const char *cuda, *mxnet = gp_mxnet_package(exam, &cuda);
        gp_exam_pip(exam, env, library ? GP_PIP_AGAIN : GP_PIP_ADD, "the build for GPUs",
                    strcmp(package->name, "onnxruntime") == 0
                        ? gp_onnx_gpu_package(exam, package->version)
                    : cpu_only[i].remedy ? cpu_only[i].remedy
                    : mxnet              ? mxnet
                                         : "mxnet-cu112");
        if (library)
            show_old_nvcc(exam, env, package);
        if (!cpu_only[i].remedy && !mxnet)
            gp_exam_advice(exam, "it needs the libraries of CUDA 11.2 and cuDNN 8, which it does "
                                 "not contain");
    }
}

/* ---- OpenCV ---- */

/* Whether a program first asks whether there is CUDA: it works without it. */
static bool asks_for_cuda(struct gp_exam *exam, const char *program)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, program, 1 << 20, NULL);
    return text && strstr(text, "getCudaEnabledDeviceCount");
}

/* PyPI has OpenCV only for the CPU: a program that uses CUDA gets an error, or a warning and the
 * CPU. OpenCV built for one version of Python has a library of another name: whose it is, is not
 * known then. */
static void check_opencv(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const words[] = {"DNN_BACKEND_CUDA", "cv2.cuda.", "cv2.cuda_", NULL};
    static const char library[] = "cv2/cv2.abi3.so";
    const struct gp_pypackage *package = gp_pyenv_package_like(env, "opencv-");
    const char *program = package && !package->is_conda && (env->is_active || env->is_named)
                              ? gp_project_program(exam, env, words)
                              : NULL;
    struct gp_nvidia nv;
    if (!program || origin_of_library(exam, env, library) != ORIGIN_CPU ||
        asks_for_cuda(exam, program))
        return;
    gp_nvidia_read(&nv, exam);
    unsigned capability = nv.count > 0 ? nv.gpus[0].capability : 0;
    gp_exam_report(exam, GP_VERDICT_WARN, "OpenCV in %s is a build for the CPU", env->prefix);
    gp_exam_stands_alone(exam);
    gp_exam_evidence(exam, env->site, "%s: PyPI has none for CUDA", package->entry);
    gp_exam_evidence(exam, program, "uses CUDA");
    gp_exam_why(exam, "\"DNN module was not built with CUDA backend; switching to CPU\", or \"The "
                      "library is compiled without CUDA support\".");
    gp_exam_advice(exam,
                   "build OpenCV from its source for this Python, with opencv_contrib: cmake -D "
                   "WITH_CUDA=ON -D WITH_CUDNN=ON -D OPENCV_DNN_CUDA=ON -D CUDA_ARCH_BIN=%s -D "
                   "OPENCV_EXTRA_MODULES_PATH=…/opencv_contrib/modules …; it needs the CUDA "
                   "toolkit and cuDNN",
                   capability ? gp_exam_text(exam, "%u.%u", capability / 10, capability % 10)
                              : "X.Y");
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "when it is built, before it is installed",
                package->name);
}

void gp_check_cpu_builds(struct gp_exam *exam, const struct gp_pyenv *env)
{
    check_opencv(exam, env);
    for (size_t k = 0; k < GP_ARRAY_LEN(twins); k++)
        check_twins(exam, env, &twins[k]);
    check_cpu_only(exam, env);
}
