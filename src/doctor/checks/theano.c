/* Theano before 0.10, whose backend for GPUs compiles its programs with nvcc when they run. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <string.h>

static const char flags_name[] = "THEANO_FLAGS";

/* The user's file of settings; "" if there is none. */
static const char *settings_of(struct gp_exam *exam, const char **ret_path)
{
    enum { TEXT_MAX = 64 << 10 };
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    *ret_path = gp_exam_text(exam, "%s/.theanorc", home ? home : "/root");
    const char *text = gp_files_text(&exam->files, &exam->arena, *ret_path, TEXT_MAX, NULL);
    return text ? text : "";
}

/* The value of a line "key = value" in a section of those settings, or NULL. */
static const char *setting(struct gp_exam *exam, const char *text, const char *section,
                           const char *key)
{
    size_t n = strlen(key), length = strlen(section);
    bool is_inside = false;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *line = text + strspn(text, " \t");
        if (*line == '[')
            is_inside = strncmp(line + 1, section, length) == 0 && line[1 + length] == ']';
        if (!is_inside)
            continue;
        const char *value = line + n + strspn(strncmp(line, key, n) == 0 ? line + n : "", " \t");
        if (strncmp(line, key, n) == 0 && *value == '=') {
            value += 1 + strspn(value + 1, " \t");
            return gp_exam_text(exam, "%.*s", (int)strcspn(value, " \t\r\n"), value);
        }
    }
    return NULL;
}

/* The list of settings in the variable, "device=gpu,floatX=float32"; NULL: none. */
static const char *flags_of(struct gp_exam *exam, const char **ret_place)
{
    const char *flags = gp_machine_variable(&exam->machine, flags_name);
    *ret_place = flags_name;
    return flags ? flags : gp_assignment_last(exam, flags_name, ret_place);
}

/* The value that it has for a key; NULL: none. */
static const char *flag(struct gp_exam *exam, const char *flags, const char *key)
{
    size_t n = strlen(key);
    char element[GP_PATH_SIZE];
    const char *value = NULL;
    while (gp_search_path_next(&flags, ",", element)) {
        const char *word = element + strspn(element, " \t");
        if (strncmp(word, key, n) == 0 && word[n] == '=') /* of two, the last one counts */
            value = gp_exam_text(exam, "%.*s", (int)strcspn(word + n + 1, " \t"), word + n + 1);
    }
    return value;
}

/* What shows that Theano is to compute on a GPU, with the words in it; NULL: nothing does. */
static const char *gpu_wanted(struct gp_exam *exam, const struct gp_pyenv *env,
                              const char **ret_words)
{
    static const char *const words[] = {"device=gpu", "device={},force_device",
                                        "device=%s,force_device", "theano.sandbox.cuda.use", NULL};
    const char *place, *flags = flags_of(exam, &place), *device = flag(exam, flags, "device");
    const char *path, *settings = settings_of(exam, &path);
    if (device) { /* it has precedence over the file */
        *ret_words = flags;
        return strncmp(device, "gpu", 3) == 0 ? place : NULL;
    }
    device = setting(exam, settings, "global", "device");
    if (device) {
        *ret_words = gp_exam_text(exam, "device = %s", device);
        return strncmp(device, "gpu", 3) == 0 ? path : NULL;
    }
    *ret_words = "chooses the device for Theano";
    return env->is_active || env->is_named ? gp_project_program(exam, env, words) : NULL;
}

/* Whether the directory in Theano's settings has the compiler. */
static bool is_told(struct gp_exam *exam)
{
    const char *path, *settings = settings_of(exam, &path), *place;
    const char *const roots[] = {gp_machine_variable(&exam->machine, "CUDA_ROOT"),
                                 flag(exam, flags_of(exam, &place), "cuda.root"),
                                 setting(exam, settings, "cuda", "root"),
                                 setting(exam, settings, "global", "cuda.root")};
    for (size_t i = 0; i < GP_ARRAY_LEN(roots); i++)
        if (roots[i] && roots[i][0] == '/' &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/bin/nvcc", roots[i])))
            return true;
    return false;
}

/* The newest CUDA for this driver and this Theano, which is older than CUDA 9. */
static const char *usable_cuda(const struct gp_nvidia *nv)
{
    static const char last[] = "8.0";
    const char *ceiling = nv->driver[0] ? gp_cuda_ceiling(nv->driver) : NULL;
    return ceiling && gp_version_compare(ceiling, last) < 0 ? ceiling : last;
}

/* Whether its compiler is not newer than a CUDA, "8.0". */
static bool is_usable(const struct gp_toolkit_found *toolkit, const char *cuda)
{
    unsigned major = gp_version_major(toolkit->version), most = gp_version_major(cuda);
    return toolkit->has_compiler && toolkit->version[0] &&
           (major < most ||
            (major == most && gp_version_minor(toolkit->version) <= gp_version_minor(cuda)));
}

/* Whether new shells find a compiler, as with sudo, which takes another PATH. */
static bool is_in_shells(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    bool is_elsewhere = false;
    for (size_t i = 0; i < all->count; i++)
        is_elsewhere = is_elsewhere || all->list[i].has_compiler;
    return gp_assignments_reach(exam, "PATH", "nvcc", is_elsewhere);
}

static void mend(struct gp_exam *exam, const struct gp_nvidia *nv)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    const char *cuda = usable_cuda(nv), *path = NULL;
    for (size_t i = 0; i < all->count; i++)
        if (is_usable(&all->list[i], cuda))
            path = all->list[i].path;
    if (!path) {
        gp_exam_advice(exam, "install the toolkit of CUDA %s:", cuda);
        gp_cuda_fix_compiler(exam, cuda);
        path = gp_exam_text(exam, "/usr/local/cuda-%s", cuda);
    }
    gp_exam_command(exam, "also in the shell's startup file", "export PATH=%s/bin:$PATH",
                    gp_exam_quoted(exam, path));
}

/* GPUs since Volta are newer than its last release: nothing helps there. */
static bool has_newer_gpu(const struct gp_nvidia *nv)
{
    enum { VOLTA = 70 };
    for (size_t i = 0; i < nv->count; i++)
        if (nv->gpus[i].capability >= VOLTA)
            return true;
    return false;
}

void gp_check_theano(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv)
{
    static const char file[] = "theano/sandbox/cuda/nvcc_compiler.py";
    const struct gp_pypackage *package = gp_pyenv_package(env, "theano");
    const char *list = gp_machine_variable(&exam->machine, "PATH"), *words;
    char path[GP_PATH_SIZE];
    if (!package || !list || has_newer_gpu(nv) || !gp_pyenv_path(env, file, path) ||
        !gp_files_exist(&exam->files, path) || gp_toolkits_of(exam)->nvcc[0] || is_told(exam) ||
        is_in_shells(exam))
        return;
    const char *place = gpu_wanted(exam, env, &words);
    if (!place)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "Theano %s in %s does not find nvcc, CUDA's compiler",
                   package->version, env->prefix);
    gp_exam_evidence(exam, place, "%s", words);
    gp_exam_evidence(exam, path, "compiles what runs on the GPU with nvcc");
    gp_exam_evidence(exam, "PATH", "no nvcc");
    gp_exam_why(exam, "\"You forced the use of gpu device gpu0, but nvcc was not found\"; without "
                      "force_device it computes on the CPU. The driver does not contain it.");
    mend(exam, nv);
}
