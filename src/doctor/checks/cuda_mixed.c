/* A compiler and headers of two releases of CUDA in one directory, as packages of Python and conda
 * bring them one by one: CCCL's headers compare the two and refuse others. */
#include "doctor/checks/cuda.h"

#include "doctor/checks/pyinstall.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char check_text[] = "CUDA compiler and CUDA toolkit headers are incompatible",
                  cccl_file[] = "cuda/std/__cccl/cuda_toolkit.h";

struct mixed {
    const char *root, *where;            /* what builds use, and what leads there */
    const char *header, *cccl;           /* the files that are compared, and that compares */
    const struct gp_pyenv *env;          /* whose packages they are */
    const struct gp_pypackage *compiler; /* nvcc's */
    char version[GP_TOOLKIT_VERSION];    /* of the headers */
};

const char *gp_cuda_build_root(struct gp_exam *exam, const char **ret_where)
{
    static const char *const names[] = {"CUDA_HOME", "CUDA_PATH"};
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    char real[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *value = gp_machine_variable(&exam->machine, names[i]);
        if (!value || !value[0])
            continue;
        *ret_where = names[i];
        return gp_files_real(&exam->files, value, real) ? gp_exam_text(exam, "%s", real) : NULL;
    }
    *ret_where = "PATH";
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].is_on_path)
            return all->list[i].path;
    return NULL;
}

/* Whether a place in an environment is where wheels put all of CUDA, "/nvidia/cu13". Those before
 * CUDA 13 had a directory for each part. */
static bool is_of_wheels(const char *place)
{
    static const char start[] = "/nvidia/cu";
    return strncmp(place, start, sizeof(start) - 1) == 0 &&
           isdigit((unsigned char)place[sizeof(start) - 1]);
}

/* The environment with the packages in this directory: conda's are its whole prefix. */
static bool find_compiler(struct gp_exam *exam, struct mixed *m)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    char real[GP_PATH_SIZE];
    for (size_t i = 0; i < envs->count && !m->compiler; i++) {
        m->env = &envs->list[i];
        size_t n = gp_files_real(&exam->files, m->env->site, real) ? strlen(real) : 0;
        if (n > 0 && strncmp(m->root, real, n) == 0 && is_of_wheels(m->root + n))
            m->compiler = gp_pyenv_package(m->env, "nvidia-cuda-nvcc");
        else if (m->env->kind == GP_PYENV_CONDA &&
                 gp_files_real(&exam->files, m->env->prefix, real) && strcmp(real, m->root) == 0)
            m->compiler = gp_pyenv_package(m->env, "cuda-nvcc");
    }
    return m->compiler && gp_files_exist(&exam->files, gp_exam_text(exam, "%s/bin/nvcc", m->root));
}

enum { TEXT_MAX = 64 << 10 };

/* Keeps the first file that compares the releases; older ones do not. `text`: TEXT_MAX bytes. */
static void keep_cccl(struct gp_exam *exam, struct mixed *m, const char *file, char *text)
{
    if (!m->cccl && gp_files_read(&exam->files, file, text, TEXT_MAX) > 0 &&
        strstr(text, check_text))
        m->cccl = file;
}

/* The version of the headers, and the file of CCCL's that compares it, among them or in FlashInfer,
 * which brings its own. */
static bool find_headers(struct gp_exam *exam, struct mixed *m)
{
    const char *folders[] = {
        gp_exam_text(exam, "%s/include", m->root),
        gp_exam_text(exam, "%s/targets/%s-linux/include", m->root, exam->machine.arch)};
    static const char *const places[] = {"cccl/", ""};
    char *text = gp_arena_alloc(&exam->arena, 1, TEXT_MAX);
    if (!text)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        const char *header = gp_exam_text(exam, "%s/cuda_runtime_api.h", folders[i]);
        if (!m->header && gp_files_read(&exam->files, header, text, TEXT_MAX) > 0 &&
            gp_runtime_read_header(text, m->version))
            m->header = header;
        for (size_t k = 0; k < GP_ARRAY_LEN(places); k++)
            keep_cccl(exam, m, gp_exam_text(exam, "%s/%s%s", folders[i], places[k], cccl_file),
                      text);
    }
    keep_cccl(exam, m,
              gp_exam_text(exam, "%s/flashinfer/data/cccl/libcudacxx/include/%s", m->env->site,
                           cccl_file),
              text);
    return m->header && m->cccl;
}

static bool is_same_release(const char *a, const char *b)
{
    return gp_version_major(a) == gp_version_major(b) && gp_version_minor(a) == gp_version_minor(b);
}

/* Whether the comparison is turned off, or another compiler is named to FlashInfer. */
static bool is_told(const struct gp_exam *exam)
{
    static const char *const names[] = {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
                                        "FLASHINFER_EXTRA_CUDAFLAGS"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *value = gp_machine_variable(&exam->machine, names[i]);
        if (value && strstr(value, "CCCL_DISABLE_CTK_COMPATIBILITY_CHECK"))
            return true;
    }
    return gp_machine_variable(&exam->machine, "FLASHINFER_NVCC");
}

static bool has_module(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    char path[GP_PATH_SIZE];
    return gp_pyenv_path(env, gp_exam_text(exam, "%s/__init__.py", name), path) &&
           gp_files_exist(&exam->files, path);
}

/* What compiles for the GPU when it is first used, with CCCL's headers; NULL: nothing. DeepSpeed is
 * not one: it compiles only what a program asks for, mostly without these headers. */
static const char *jit_user(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const struct {
        const char *module, *word;
    } users[] = {{"flashinfer", "FlashInfer"}, {"deep_gemm", "DeepGEMM"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(users); i++)
        if (has_module(exam, env, users[i].module))
            return users[i].word;
    return NULL;
}

/* The compiler's packages in the release of the headers, which are PyTorch's. */
static void fix(struct gp_exam *exam, const struct mixed *m)
{
    static const char *const parts[] = {"nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt",
                                        "nvidia-cuda-cccl"};
    const char *words = "--no-deps";
    if (m->compiler->is_conda) {
        gp_exam_command(exam, "the compiler of the headers' release",
                        "%s install -p %s -c conda-forge cuda-nvcc=%s",
                        gp_conda_program(exam, m->env), gp_exam_quoted(exam, m->env->prefix),
                        m->version);
        return;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++) {
        const struct gp_pypackage *part = gp_pyenv_package(m->env, parts[i]);
        if (part && !part->is_conda && !is_same_release(part->version, m->version))
            words = gp_exam_text(exam, "%s '%s==%s.*'", words, parts[i], m->version);
    }
    gp_exam_pip(exam, m->env, GP_PIP_ADD, "the compiler of the headers' release", words);
}

/* FlashInfer keeps its build files, with the compiler in them. */
static void forget_builds(struct gp_exam *exam, const struct mixed *m)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    if (home && has_module(exam, m->env, "flashinfer") &&
        gp_files_exist(&exam->files, gp_exam_text(exam, "%s/.cache/flashinfer", home)))
        gp_exam_command(exam, "what was compiled before; FlashInfer makes it again",
                        "rm -r ~/.cache/flashinfer");
}

bool gp_check_cuda_mixed(struct gp_exam *exam)
{
    struct mixed m = {0};
    m.root = gp_cuda_build_root(exam, &m.where);
    if (!m.root || is_told(exam) || !find_compiler(exam, &m) || !find_headers(exam, &m) ||
        is_same_release(m.compiler->version, m.version))
        return false;
    const char *user = jit_user(exam, m.env);
    gp_exam_report(exam, user ? GP_VERDICT_WARN : gp_cuda_build_verdict(exam),
                   "the packages of CUDA in %s are of two releases: nvcc of %u.%u, headers of %s",
                   m.env->prefix, gp_version_major(m.compiler->version),
                   gp_version_minor(m.compiler->version), m.version);
    gp_exam_evidence(exam, m.where, "leads to %s", m.root);
    gp_exam_evidence(exam, m.env->prefix, "%s %s", m.compiler->name, m.compiler->version);
    gp_exam_evidence(exam, m.header, "CUDA %s", m.version);
    gp_exam_evidence(exam, m.cccl, "refuses other headers than those of the compiler's release");
    gp_exam_why(exam,
                "What is compiled there stops with \"%s\"%s%s%s. PyTorch's own kernels are "
                "not affected.",
                check_text, user ? "; " : "", user ? user : "",
                user ? " compiles when it is first used" : "");
    fix(exam, &m);
    forget_builds(exam, &m);
    return true;
}
