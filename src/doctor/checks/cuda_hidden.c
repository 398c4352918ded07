/* Files that hide all GPUs from the programs of one environment: the variables that conda sets when
 * it is activated, and those of a kernel of Jupyter's. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/used.h"

#include <jansson.h>
#include <string.h>

static const char variable[] = "CUDA_VISIBLE_DEVICES";

enum { MOST_TEXT = 1 << 16, MOST_KERNELS = 64 };

/* Whether a file in JSON sets the variable to a value that hides all GPUs: "" or a negative number.
 */
static bool is_hiding(const char *text, const char **ret_value)
{
    const char *found = text ? strstr(text, "\"CUDA_VISIBLE_DEVICES\"") : NULL;
    if (!found)
        return false;
    found += sizeof(variable) - 1 + 2;
    found += strspn(found, " \t\r\n");
    if (*found++ != ':')
        return false;
    found += strspn(found, " \t\r\n");
    if (strncmp(found, "\"\"", 2) == 0)
        *ret_value = "\"\"";
    else if (strncmp(found, "\"-1\"", 4) == 0)
        *ret_value = "-1";
    else
        return false;
    return true;
}

static const char *text_of(struct gp_exam *exam, const char *path)
{
    return gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, NULL);
}

bool gp_name_is_for_cpu(const char *name)
{
    static const char *const words[] = {"cpu", "nogpu", "no-gpu", "no_gpu", "no gpu"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

/* ---- conda ---- */

static void check_conda(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *path = gp_exam_text(exam, "%s/conda-meta/state", env->prefix), *value;
    const char *slash = strrchr(env->prefix, '/');
    if (env->kind != GP_PYENV_CONDA || gp_pyenv_frameworks(env) == 0 ||
        !is_hiding(text_of(exam, path), &value) || gp_name_is_for_cpu(slash ? slash + 1 : ""))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s hides all GPUs from the programs of %s", variable,
                   env->prefix);
    gp_exam_evidence(exam, path, "%s=%s", variable, value);
    gp_exam_why(exam, "conda sets it whenever the environment is activated.");
    const char *program = gp_conda_program(exam, env);
    if (strcmp(program, "conda") == 0)
        gp_exam_command(exam, "then activate the environment again",
                        "%s env config vars unset -p %s %s", program,
                        gp_exam_quoted(exam, env->prefix), variable);
    else /* others have no such command */
        gp_exam_advice(exam, "remove it from \"env_vars\" in that file, and activate the "
                             "environment again");
}

/* ---- Jupyter ---- */

/* The program that a kernel starts, its Python; "": unknown. */
static const char *program_of(struct gp_exam *exam, const char *text)
{
    json_t *kernel = text ? json_loads(text, 0, NULL) : NULL;
    const char *program = json_string_value(json_array_get(json_object_get(kernel, "argv"), 0));
    program = program ? gp_exam_text(exam, "%s", program) : "";
    json_decref(kernel);
    return program;
}

static const char *kernel_path(struct gp_exam *exam, const char *folder, const char *name)
{
    return gp_exam_text(exam, "%s/%s/kernel.json", folder, name);
}

/* Whether another kernel in a folder starts the same Python, and does not hide the GPUs. */
static bool has_other(struct gp_exam *exam, const char *folder, char **names, long n,
                      const char *program)
{
    const char *value;
    for (long i = 0; program[0] && i < n; i++) {
        const char *text = text_of(exam, kernel_path(exam, folder, names[i]));
        if (text && !is_hiding(text, &value) && strcmp(program_of(exam, text), program) == 0)
            return true;
    }
    return false;
}

/* The kernels in a folder. One that hides the GPUs beside another one of the same Python is meant
 * for the CPU. */
static void check_kernels(struct gp_exam *exam, const char *folder)
{
    char **names;
    const char *value;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    n = n < MOST_KERNELS ? n : MOST_KERNELS;
    for (long i = 0; i < n; i++) {
        const char *path = kernel_path(exam, folder, names[i]);
        const char *text = text_of(exam, path);
        const char *title = text ? strstr(text, "\"display_name\"") : NULL;
        const char *line =
            title ? gp_exam_text(exam, "%.*s", (int)strcspn(title, "\n,}"), title) : "";
        if (!is_hiding(text, &value) || gp_name_is_for_cpu(names[i]) || gp_name_is_for_cpu(line) ||
            has_other(exam, folder, names, n, program_of(exam, text)))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "%s hides all GPUs from notebooks with Jupyter's kernel %s", variable,
                       names[i]);
        gp_exam_evidence(exam, path, "\"%s\": %s", variable,
                         strcmp(value, "-1") == 0 ? "\"-1\"" : value);
        gp_exam_why(exam, "Jupyter sets it whenever it starts the kernel, whatever the shell has.");
        gp_exam_advice(exam, "remove it from \"env\" in that file, and restart the kernel");
    }
}

void gp_check_cuda_hidden(struct gp_exam *exam)
{
    static const char below[] = "share/jupyter/kernels";
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    if (home)
        check_kernels(exam, gp_exam_text(exam, "%s/.local/%s", home, below));
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        check_conda(exam, env);
        if (env->kind == GP_PYENV_VENV || env->kind == GP_PYENV_CONDA)
            check_kernels(exam, gp_exam_text(exam, "%s/%s", env->prefix, below));
    }
}
