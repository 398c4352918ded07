/* What the programs of an environment compute with: by the imports of a project's programs, by its
 * requirements, and by the packages that are installed. */
#include "doctor/readers/used.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- what is installed ---- */

/* Packages of a framework itself. */
static const char *const installed[][5] = {
    [GP_FRAMEWORK_TORCH] = {"torch", "pytorch"},
    [GP_FRAMEWORK_TENSORFLOW] = {"tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly",
                                 "tf-nightly-gpu"},
    [GP_FRAMEWORK_JAX] = {"jaxlib"},
};

const struct gp_pypackage *gp_framework_package(const struct gp_pyenv *env,
                                                enum gp_framework framework, bool is_wheel)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(installed[0]) && installed[framework][i]; i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, installed[framework][i]);
        if (package && !(is_wheel && package->is_conda))
            return package;
    }
    return NULL;
}

static bool has_framework(const struct gp_pyenv *env, size_t framework)
{
    return gp_framework_package(env, framework, false) ||
           (framework == GP_FRAMEWORK_TORCH && env->has_torch);
}

size_t gp_pyenv_frameworks(const struct gp_pyenv *env)
{
    size_t count = 0;
    for (size_t i = 0; i < GP_FRAMEWORK__COUNT; i++)
        count += has_framework(env, i);
    return count;
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
    {"brax", GP_FRAMEWORK_JAX},
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

/* The name after "import " or "from "; NULL: the line has none. */
static const char *imported(const char *line)
{
    static const char *const words[] = {"import ", "from "};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (strncmp(line, words[i], n) == 0)
            return line + n + strspn(line + n, " ");
    }
    return NULL;
}

/* "import torch", "from jax import …". */
static void note_import(struct uses *uses, const char *line, const char *file)
{
    const char *name = imported(line);
    if (name)
        note(uses, name, file);
}

/* "torch==2.1", "- pytorch=1.10", "  'jax>=0.3',", "tensorflow = \"^2.9\"". */
static void note_requirement(struct uses *uses, const char *line, const char *file)
{
    note(uses, line + strspn(line, "-\"' "), file);
}

/* ---- its programs ---- */

/* The programs of a project: those in its folder, and what they import of its own. */
struct project {
    struct gp_exam *exam;
    const char *folder;
    const char *programs[128];
    size_t count;
};

static void add_program(struct project *project, const char *path)
{
    for (size_t i = 0; i < project->count; i++)
        if (strcmp(project->programs[i], path) == 0)
            return;
    if (project->count < GP_ARRAY_LEN(project->programs))
        project->programs[project->count++] = gp_exam_text(project->exam, "%s", path);
}

/* Adds the module of this name, relative to a folder: a file, or the __init__.py of a folder. */
static void add_module(struct project *project, const char *folder, const char *name, int length)
{
    static const char *const ends[] = {".py", "/__init__.py"};
    char path[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(ends); i++) {
        int n = snprintf(path, sizeof(path), "%s/%.*s%s", folder, length, name, ends[i]);
        if (n < 0 || n >= GP_PATH_SIZE)
            continue;
        for (char *p = path + strlen(folder) + 1; p < path + n - strlen(ends[i]); p++)
            *p = *p == '.' ? '/' : *p;
        if (gp_files_exist(&project->exam->files, path))
            add_program(project, path);
    }
}

/* "import models.net", "from src.net import Net", "from .net import Net", "from src import net". */
static void follow_import(struct project *project, const char *line, const char *file)
{
    enum { NAME_MAX_LENGTH = 128 };
    static const char mark[] = " import ";
    const char *name = imported(line);
    size_t length = name ? strcspn(name, " \t,;#\r\n") : 0;
    if (length == 0 || length > NAME_MAX_LENGTH || memchr(name, '/', length))
        return;
    const char *folder = project->folder, *slash = strrchr(file, '/');
    if (*name == '.') /* next to this file */
        folder = gp_exam_text(project->exam, "%.*s", (int)(slash - file), file), name++, length--;
    if (length > 0 && *name != '.')
        add_module(project, folder, name, (int)length);
    const char *rest = name + length;
    if (*line != 'f' || strncmp(rest, mark, strlen(mark)) != 0)
        return;
    rest += strlen(mark);
    int n = (int)strcspn(rest, " \t,;#()*\r\n");
    const char *both = gp_exam_text(project->exam, "%.*s%s%.*s", (int)length, name,
                                    length > 0 ? "." : "", n, rest);
    if (n > 0)
        add_module(project, folder, both, (int)strlen(both));
}

/* Notes what a file names; in a program, also which files it imports. */
static void read_file(struct project *project, const char *file, bool is_program, struct uses *ret)
{
    enum { TEXT_MAX = 128 << 10 };
    struct gp_arena scratch = {0};
    const char *line = gp_files_text(&project->exam->files, &scratch, file, TEXT_MAX, NULL);
    while (line && *line) {
        line += strspn(line, " \t");
        (is_program ? note_import : note_requirement)(ret, line, file);
        if (is_program)
            follow_import(project, line, file);
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
    struct project project = {.exam = exam, .folder = folder};
    struct gp_arena scratch = {0};
    char **entries, path[GP_PATH_SIZE];
    long n = gp_files_list(&exam->files, &scratch, folder, &entries);
    for (long i = 0; i < n; i++) {
        if (snprintf(path, sizeof(path), "%s/%s", folder, entries[i]) >= GP_PATH_SIZE)
            continue;
        if (gp_lines_ends(entries[i], ".py") && project.count < PROGRAMS_MAX &&
            strcmp(entries[i], "setup.py") != 0)
            add_program(&project, path);
        for (size_t k = 0; k < GP_ARRAY_LEN(lists); k++)
            if (strcmp(entries[i], lists[k]) == 0)
                read_file(&project, gp_exam_text(exam, "%s", path), false, requirements);
    }
    gp_arena_fini(&scratch);
    for (size_t i = 0; i < project.count; i++)
        read_file(&project, project.programs[i], true, programs);
}

/* ---- texts in its programs ---- */

struct texts {
    struct gp_exam *exam;
    const char *const *words;
    const char *ending;        /* of the programs' names */
    bool is_firm;              /* lines that leave the choice to the machine do not count */
    size_t left, folders_left; /* programs and folders that may still be read */
};

/* Whether a line asks what there is, rather than what the user wants ("if use_cuda"). */
static bool is_question(const char *line)
{
    static const char *const signs[] = {" in ", " not ", "hasattr", "getattr", "available"};
    char text[512];
    int n = (int)strcspn(line, "\n");
    (void)snprintf(text, sizeof(text), "%.*s", n, line);
    for (size_t i = 0; i < GP_ARRAY_LEN(signs); i++)
        if (strstr(text, signs[i]))
            return true;
    return false;
}

/* Whether a line begins a block that is run only on machines that have something. */
static bool is_condition(const char *line)
{
    static const char *const starts[] = {"else:", "try:", "except"};
    for (size_t i = 0; i < GP_ARRAY_LEN(starts); i++)
        if (strncmp(line, starts[i], strlen(starts[i])) == 0)
            return true;
    return (strncmp(line, "if", 2) == 0 || strncmp(line, "elif", 4) == 0) && is_question(line);
}

/* Whether one of the blocks around a line is such a block. */
static bool is_in_condition(const char *text, const char *line)
{
    size_t depth = strspn(line, " \t");
    while (line > text && depth > 0) {
        const char *before = line - 1;
        while (before > text && before[-1] != '\n')
            before--;
        line = before;
        size_t n = strspn(line, " \t");
        if (line[n] == '\n' || line[n] == '#' || n >= depth)
            continue;
        if (is_condition(line + n))
            return true;
        depth = n;
    }
    return false;
}

/* Whether a line names the CPU before this word. */
static bool is_for_cpu(const char *line, const char *word)
{
    static const char cpu[] = "CPUExecutionProvider";
    return memmem(line, (size_t)(word - line), cpu, strlen(cpu));
}

/* Whether a program wants a word wherever it names it: in no comment, and not only if it is there.
 */
static bool is_wanted(const char *text, const char *word)
{
    bool is_used = false;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) {
        const char *first = at + (*at == '\n'), *line = first; /* "\nword": at a line's beginning */
        while (line > text && line[-1] != '\n')
            line--;
        if (memchr(line, '#', (size_t)(first - line)))
            continue;
        if (is_question(line) || is_for_cpu(line, first) || is_in_condition(text, line))
            return false;
        is_used = true;
    }
    return is_used;
}

static bool has_text(struct texts *t, const char *path)
{
    enum { TEXT_MAX = 128 << 10 };
    struct gp_arena scratch = {0};
    const char *text = gp_files_text(&t->exam->files, &scratch, path, TEXT_MAX, NULL);
    bool is_found = false;
    for (size_t i = 0; text && t->words[i]; i++)
        is_found = is_found ||
                   (t->is_firm ? is_wanted(text, t->words[i]) : strstr(text, t->words[i]) != NULL);
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

/* A program, by its name; direnv's file counts as a script. */
static bool is_program(const struct texts *t, const char *name)
{
    bool is_direnv = strcmp(name, ".envrc") == 0 && strcmp(t->ending, ".sh") == 0;
    return is_direnv || gp_lines_ends(name, t->ending);
}

/* The programs of a folder come before its folders, of which one with data may have thousands. */
static const char *search(struct texts *t, const char *folder, unsigned depth)
{
    enum { FOLDERS_MAX = 100 };
    struct gp_arena scratch = {0};
    const char *found = NULL;
    char **entries, path[GP_PATH_SIZE];
    long n = gp_files_list(&t->exam->files, &scratch, folder, &entries);
    size_t folders = 0;
    for (long i = 0; i < n && !found && t->left > 0; i++)
        if (is_program(t, entries[i]) &&
            snprintf(path, sizeof(path), "%s/%s", folder, entries[i]) < GP_PATH_SIZE) {
            t->left--;
            found = has_text(t, path) ? gp_exam_text(t->exam, "%s", path) : NULL;
        }
    for (long i = 0; i < n && !found && depth > 0 && t->folders_left > 0 && folders < FOLDERS_MAX;
         i++)
        if (is_folder(entries[i]) &&
            snprintf(path, sizeof(path), "%s/%s", folder, entries[i]) < GP_PATH_SIZE) {
            t->folders_left--;
            folders++;
            found = search(t, path, depth - 1);
        }
    gp_arena_fini(&scratch);
    return found;
}

/* Whether a folder has many projects, or none: an environment in it is nobody's in particular. */
static bool is_shared_folder(const char *folder)
{
    static const char *const places[] = {"",      "/opt",  "/srv",       "/usr",    "/usr/local",
                                         "/home", "/root", "/workspace", "/var/lib"};
    for (size_t i = 0; i < GP_ARRAY_LEN(places); i++)
        if (strcmp(folder, places[i]) == 0)
            return true;
    return false;
}

/* The directory around an environment; NULL: it is not made for a project. */
static const char *project_around(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *slash = strrchr(env->prefix, '/');
    const char *folder = env->kind == GP_PYENV_VENV && slash
                             ? gp_exam_text(exam, "%.*s", (int)(slash - env->prefix), env->prefix)
                             : NULL;
    return folder && !is_shared_folder(folder) ? folder : NULL;
}

/* The working directory, if its shell has the environment; NULL. Docker's default is "/". */
static const char *project_of_shell(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *folder = gp_machine_variable(&exam->machine, "PWD");
    return env->is_active && !env->is_named && folder && folder[0] == '/' && folder[1] ? folder
                                                                                       : NULL;
}

static const char *find_program(struct gp_exam *exam, const struct gp_pyenv *env,
                                const char *const *words, const char *ending, bool is_firm)
{
    enum { PROGRAMS_MAX = 400, FOLDERS_MAX = 2000, DEPTH = 4 };
    const char *const folders[] = {project_of_shell(exam, env), project_around(exam, env)};
    const char *home = gp_machine_variable(&exam->machine, "HOME"), *found = NULL;
    struct texts t = {exam, words, ending, is_firm, PROGRAMS_MAX, FOLDERS_MAX};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders) && !found; i++)
        if (folders[i]) /* a home directory has many projects */
            found = search(&t, folders[i], home && strcmp(home, folders[i]) == 0 ? 0 : DEPTH);
    return found;
}

const char *gp_project_program(struct gp_exam *exam, const struct gp_pyenv *env,
                               const char *const *words)
{
    return find_program(exam, env, words, ".py", false);
}

const char *gp_project_script(struct gp_exam *exam, const struct gp_pyenv *env,
                              const char *const *words, bool is_firm)
{
    return find_program(exam, env, words, ".sh", is_firm);
}

const char *gp_project_program_with(struct gp_exam *exam, const struct gp_pyenv *env,
                                    const char *word, bool is_firm)
{
    return find_program(exam, env, (const char *const[]){word, NULL}, ".py", is_firm);
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
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        bool is_user =
            names[i].framework == GP_FRAMEWORK_JAX && strncmp(names[i].name, "jax", 3) != 0;
        const char *name = strcmp(names[i].name, "dm_haiku") == 0 ? "dm-haiku" : names[i].name;
        const struct gp_pypackage *package = is_user ? gp_pyenv_package(env, name) : NULL;
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

static const char *find_aside(struct gp_exam *exam, const struct gp_pyenv *env,
                              enum gp_framework framework)
{
    bool is_listed;
    if (gp_pyenv_frameworks(env) < 2)
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
    if (framework == GP_FRAMEWORK_TENSORFLOW && gp_pyenv_package(env, "tensorflow-cpu") &&
        !gp_pyenv_package(env, "tensorflow"))
        return "tensorflow-cpu is the package for those who do without the GPU";
    return NULL;
}

/* An answer that was given: several findings ask for it, and it reads many files. */
struct gp_aside {
    const struct gp_pyenv *env;
    enum gp_framework framework;
    const char *text;
    const struct gp_aside *next;
};

const char *gp_framework_aside(struct gp_exam *exam, const struct gp_pyenv *env,
                               enum gp_framework framework)
{
    for (const struct gp_aside *a = exam->asides; a; a = a->next)
        if (a->env == env && a->framework == framework)
            return a->text;
    const char *text = find_aside(exam, env, framework);
    struct gp_aside *aside = gp_arena_alloc(&exam->arena, 1, sizeof(*aside));
    if (aside) {
        *aside = (struct gp_aside){env, framework, text, exam->asides};
        exam->asides = aside;
    }
    return text;
}

void gp_exam_aside(struct gp_exam *exam, const struct gp_pyenv *env, enum gp_framework framework)
{
    const char *aside = gp_framework_aside(exam, env, framework);
    if (aside)
        gp_exam_evidence(exam, env->prefix, "%s", aside);
}
