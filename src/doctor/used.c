#include "doctor/used.h"

#include "doctor/exam.h"
#include "doctor/pyenv.h"
#include "doctor/pypackage.h"

#include <ctype.h>
#include <string.h>

/* ---- what is installed ---- */

/* Packages of a framework itself. */
static const char *const installed[][3] = {
    [GP_FRAMEWORK_TORCH] = {"torch", "pytorch"},
    [GP_FRAMEWORK_TENSORFLOW] = {"tensorflow", "tensorflow-gpu", "tensorflow-cpu"},
    [GP_FRAMEWORK_JAX] = {"jaxlib"},
};

static bool has_framework(const struct gp_pyenv *env, size_t framework)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(installed[0]) && installed[framework][i]; i++)
        if (gp_pyenv_package(env, installed[framework][i]))
            return true;
    return framework == GP_FRAMEWORK_TORCH && env->has_torch;
}

/* ---- what a project uses ---- */

/* Names in requirements and imports, with _ for -, and the framework that they compute with; a name
 * with more letters after it is another one. */
static const struct {
    const char *name;
    enum gp_framework framework;
} names[] = {
    {"torch", GP_FRAMEWORK_TORCH},
    {"torchvision", GP_FRAMEWORK_TORCH},
    {"torchaudio", GP_FRAMEWORK_TORCH},
    {"pytorch", GP_FRAMEWORK_TORCH},
    {"pytorch_lightning", GP_FRAMEWORK_TORCH},
    {"lightning", GP_FRAMEWORK_TORCH},
    {"accelerate", GP_FRAMEWORK_TORCH},
    {"bitsandbytes", GP_FRAMEWORK_TORCH},
    {"diffusers", GP_FRAMEWORK_TORCH},
    {"easyocr", GP_FRAMEWORK_TORCH},
    {"fastai", GP_FRAMEWORK_TORCH},
    {"kornia", GP_FRAMEWORK_TORCH},
    {"monai", GP_FRAMEWORK_TORCH},
    {"openai_whisper", GP_FRAMEWORK_TORCH},
    {"open_clip_torch", GP_FRAMEWORK_TORCH},
    {"peft", GP_FRAMEWORK_TORCH},
    {"sentence_transformers", GP_FRAMEWORK_TORCH},
    {"stable_baselines3", GP_FRAMEWORK_TORCH},
    {"timm", GP_FRAMEWORK_TORCH},
    {"transformers", GP_FRAMEWORK_TORCH},
    {"ultralytics", GP_FRAMEWORK_TORCH},
    {"vllm", GP_FRAMEWORK_TORCH},
    {"whisper", GP_FRAMEWORK_TORCH},
    {"xformers", GP_FRAMEWORK_TORCH},
    {"tensorflow", GP_FRAMEWORK_TENSORFLOW},
    {"tensorflow_gpu", GP_FRAMEWORK_TENSORFLOW},
    {"tensorflow_addons", GP_FRAMEWORK_TENSORFLOW},
    {"tensorflow_hub", GP_FRAMEWORK_TENSORFLOW},
    {"keras", GP_FRAMEWORK_TENSORFLOW},
    {"jax", GP_FRAMEWORK_JAX},
    {"jaxlib", GP_FRAMEWORK_JAX},
    {"flax", GP_FRAMEWORK_JAX},
    {"haiku", GP_FRAMEWORK_JAX},
    {"dm_haiku", GP_FRAMEWORK_JAX},
    {"optax", GP_FRAMEWORK_JAX},
    {"equinox", GP_FRAMEWORK_JAX},
    {"numpyro", GP_FRAMEWORK_JAX},
};

/* The files that name a framework, by framework; NULL: none does. */
struct uses {
    const char *files[GP_FRAMEWORK__COUNT];
};

static bool is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Notes the framework of the name at the beginning of a text. */
static void note(struct uses *uses, const char *text, const char *file)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *name = names[i].name, *at = text;
        while (*name && (*at == *name || (*at == '-' && *name == '_')))
            name++, at++;
        if (!*name && !is_part_of_name(*at) && !uses->files[names[i].framework])
            uses->files[names[i].framework] = file;
    }
}

/* "import torch", "from jax import …". */
static void note_import(struct uses *uses, const char *line, const char *file)
{
    static const char *const words[] = {"import ", "from "};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (strncmp(line, words[i], n) == 0)
            note(uses, line + n + strspn(line + n, " "), file);
    }
}

/* "torch==2.1", "- pytorch=1.10", "  'jax>=0.3',", "tensorflow = \"^2.9\"". */
static void note_requirement(struct uses *uses, const char *line, const char *file)
{
    note(uses, line + strspn(line, "-\"' "), file);
}

static void read_file(struct gp_exam *exam, const char *folder, const char *name, bool is_program,
                      struct uses *ret)
{
    enum { TEXT_MAX = 128 << 10 };
    struct gp_arena scratch = {0};
    const char *file = gp_exam_text(exam, "%s/%s", folder, name);
    const char *line = gp_files_text(&exam->files, &scratch, file, TEXT_MAX, NULL);
    while (line && *line) {
        line += strspn(line, " \t");
        (is_program ? note_import : note_requirement)(ret, line, file);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    gp_arena_fini(&scratch);
}

/* The programs of a project say more than its requirements, which may name what is needed only for
 * a part of it. */
static void read_project(struct gp_exam *exam, const char *folder, struct uses *programs,
                         struct uses *requirements)
{
    enum { PROGRAMS_MAX = 64 };
    static const char *const lists[] = {"requirements.txt", "environment.yml", "environment.yaml",
                                        "pyproject.toml",   "setup.py",        "Pipfile"};
    struct gp_arena scratch = {0};
    char **entries;
    long n = gp_files_list(&exam->files, &scratch, folder, &entries), count = 0;
    for (long i = 0; i < n; i++) {
        size_t length = strlen(entries[i]);
        if (length > 3 && strcmp(entries[i] + length - 3, ".py") == 0 && count++ < PROGRAMS_MAX &&
            strcmp(entries[i], "setup.py") != 0)
            read_file(exam, folder, entries[i], true, programs);
        for (size_t k = 0; k < GP_ARRAY_LEN(lists); k++)
            if (strcmp(entries[i], lists[k]) == 0)
                read_file(exam, folder, entries[i], false, requirements);
    }
    gp_arena_fini(&scratch);
}

/* ---- texts in its programs ---- */

struct texts {
    struct gp_exam *exam;
    const char *const *words;
    size_t left; /* programs that may still be read */
};

static bool has_text(struct texts *t, const char *path)
{
    enum { TEXT_MAX = 128 << 10 };
    struct gp_arena scratch = {0};
    const char *text = gp_files_text(&t->exam->files, &scratch, path, TEXT_MAX, NULL);
    bool is_found = false;
    for (size_t i = 0; text && t->words[i]; i++)
        is_found = is_found || strstr(text, t->words[i]);
    gp_arena_fini(&scratch);
    return is_found;
}

/* Whether a name may be a folder with programs of the project. */
static bool is_folder(const char *name)
{
    static const char *const others[] = {"venv", "env", "node_modules", "build", "data"};
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return name[0] != '.' && !strchr(name, '.');
}

static const char *search(struct texts *t, const char *folder, unsigned depth)
{
    struct gp_arena scratch = {0};
    const char *found = NULL;
    char **entries;
    long n = gp_files_list(&t->exam->files, &scratch, folder, &entries);
    for (long i = 0; i < n && !found && t->left > 0; i++) {
        const char *path = gp_exam_text(t->exam, "%s/%s", folder, entries[i]);
        size_t length = strlen(entries[i]);
        if (length > 3 && strcmp(entries[i] + length - 3, ".py") == 0) {
            t->left--;
            found = has_text(t, path) ? path : NULL;
        } else if (depth > 0 && is_folder(entries[i])) {
            found = search(t, path, depth - 1);
        }
    }
    gp_arena_fini(&scratch);
    return found;
}

/* The directory around an environment; NULL: it is not made for a project. */
static const char *project_around(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *slash = strrchr(env->prefix, '/');
    return env->kind == GP_PYENV_VENV && slash
               ? gp_exam_text(exam, "%.*s", (int)(slash - env->prefix), env->prefix)
               : NULL;
}

/* The working directory, if its shell has the environment; NULL. */
static const char *project_of_shell(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *folder = gp_machine_variable(&exam->machine, "PWD");
    return env->is_active && !env->is_named && folder && folder[0] == '/' ? folder : NULL;
}

const char *gp_project_program(struct gp_exam *exam, const struct gp_pyenv *env,
                               const char *const *words)
{
    enum { PROGRAMS_MAX = 400, DEPTH = 4 };
    const char *const folders[] = {project_of_shell(exam, env), project_around(exam, env)};
    const char *home = gp_machine_variable(&exam->machine, "HOME"), *found = NULL;
    struct texts t = {exam, words, PROGRAMS_MAX};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders) && !found; i++)
        if (folders[i]) /* a home directory has many projects */
            found = search(&t, folders[i], home && strcmp(home, folders[i]) == 0 ? 0 : DEPTH);
    return found;
}

/* ---- the frameworks of a project ---- */

static struct uses uses_of(struct gp_exam *exam, const struct gp_pyenv *env, bool *ret_is_listed)
{
    struct uses programs = {{NULL}}, requirements = {{NULL}};
    const char *const folders[] = {project_around(exam, env), project_of_shell(exam, env)};
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (folders[i] && !(home && strcmp(home, folders[i]) == 0)) /* that of many projects */
            read_project(exam, folders[i], &programs, &requirements);
    *ret_is_listed = true;
    for (size_t i = 0; i < GP_FRAMEWORK__COUNT; i++)
        *ret_is_listed = *ret_is_listed && !programs.files[i];
    return *ret_is_listed ? requirements : programs;
}

/* ---- what packages use ---- */

/* A package that is built on JAX, which programs use for computing; NULL: there is none. */
static const struct gp_pypackage *user_of_jax(const struct gp_pyenv *env)
{
    static const char *const users[] = {"flax", "dm-haiku", "optax", "equinox", "numpyro", "brax"};
    for (size_t i = 0; i < GP_ARRAY_LEN(users); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, users[i]);
        if (package)
            return package;
    }
    return NULL;
}

/* Whether TensorFlow brought JAX: 2.12 requires it, for its converter. */
static bool is_of_tensorflow(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "tensorflow");
    const char *text =
        package && !package->is_conda
            ? gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", package->entry))
            : "";
    struct gp_requirement wanted;
    while ((text = gp_requirement_next(text, &wanted)))
        if (strcmp(wanted.name, "jax") == 0 && !wanted.is_extra)
            return true;
    return false;
}

/* The file that names another framework of the environment, where none names this one. */
static const char *other_of_project(struct gp_exam *exam, const struct gp_pyenv *env,
                                    const struct uses *uses, enum gp_framework framework,
                                    bool is_listed)
{
    for (size_t i = 0; i < GP_FRAMEWORK__COUNT && !uses->files[framework]; i++)
        if (uses->files[i] && has_framework(env, i))
            return gp_exam_text(exam, "%s %s %s", uses->files[i],
                                is_listed ? "requires" : "imports", gp_framework_name(i));
    return NULL;
}

const char *gp_framework_aside(struct gp_exam *exam, const struct gp_pyenv *env,
                               enum gp_framework framework)
{
    size_t count = 0;
    bool is_listed;
    for (size_t i = 0; i < GP_FRAMEWORK__COUNT; i++)
        count += has_framework(env, i);
    if (count < 2)
        return NULL;
    struct uses uses = uses_of(exam, env, &is_listed);
    const char *other = other_of_project(exam, env, &uses, framework, is_listed);
    const struct gp_pypackage *user =
        has_framework(env, GP_FRAMEWORK_JAX) ? user_of_jax(env) : NULL;
    bool is_jax = uses.files[GP_FRAMEWORK_JAX] || !uses.files[GP_FRAMEWORK_TENSORFLOW];
    if (other)
        return other;
    if (framework == GP_FRAMEWORK_TENSORFLOW && user && is_jax)
        return gp_exam_text(exam, "%s computes with JAX; TensorFlow then only reads data",
                            user->entry);
    if (framework == GP_FRAMEWORK_JAX && !user && is_of_tensorflow(exam, env) &&
        !uses.files[GP_FRAMEWORK_JAX])
        return "TensorFlow requires JAX, for a converter that does not need the GPU";
    return NULL;
}

void gp_exam_aside(struct gp_exam *exam, const struct gp_pyenv *env, enum gp_framework framework)
{
    const char *aside = gp_framework_aside(exam, env, framework);
    if (aside)
        gp_exam_evidence(exam, env->prefix, "%s", aside);
}
