/* CTranslate2, with which faster-whisper computes, and the cuDNN that it finds. A finding of
 * python.others. */
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/version.h"

#include <string.h>

/* It needs cuDNN 9 since this release, and 8 before. */
static const char first_with_cudnn_9[] = "4.5";

/* Whether a package is there that the lists of packages leave out, by its metadata. */
static bool has_distribution(struct gp_exam *exam, const struct gp_pyenv *env, const char *start)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, env->site, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], start, strlen(start)) == 0)
            return true;
    return false;
}

/* Whether something in the environment needs cuDNN of it: Whisper does, and translation does not.
 */
static bool needs_cudnn(struct gp_exam *exam, const struct gp_pyenv *env)
{
    return has_distribution(exam, env, "faster_whisper") || has_distribution(exam, env, "whisper");
}

/* The loader's path of an environment that nobody has active is unknown. */
static enum gp_verdict verdict_of(const struct gp_pyenv *env)
{
    return env->is_active || env->is_named || env->kind != GP_PYENV_VENV ? GP_VERDICT_WARN
                                                                         : GP_VERDICT_INFO;
}

/* PyTorch in the same process loads cuDNN for itself, but of version 8 only the parts that it uses,
 * when it uses them: where nothing runs on the GPU before faster-whisper, they are missing. */
static bool is_loaded_by_torch(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_pypackage *user, unsigned cudnn)
{
    enum { BY_PARTS = 8 };
    return env->has_torch &&
           (cudnn != BY_PARTS || gp_version_compare(user->version, first_with_cudnn_9) >= 0 ||
            !has_distribution(exam, env, "faster_whisper") ||
            has_distribution(exam, env, "whisperx") || has_distribution(exam, env, "pyannote"));
}

/* Whether a script that starts the program sets the variable: that of the environment, or one in
 * the folder in which the environment is. */
static bool is_set_in_script(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *slash = strrchr(env->prefix, '/');
    const char *top =
        gp_exam_text(exam, "%.*s", slash ? (int)(slash - env->prefix) : 0, env->prefix);
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, top[0] ? top : "/", &names);
    for (long i = -1; i < n; i++) {
        const char *path = i < 0 ? gp_exam_text(exam, "%s/bin/activate", env->prefix)
                                 : gp_exam_text(exam, "%s/%s", top, names[i]);
        const char *end = strrchr(path, '.');
        const char *text = i < 0 || (end && strcmp(end, ".sh") == 0)
                               ? gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL)
                               : NULL;
        if (text && strstr(text, "LD_LIBRARY_PATH"))
            return true;
    }
    return false;
}

/* Whether the loader is led to cuDNN of this version. */
static bool is_led_to_cudnn(struct gp_exam *exam, const struct gp_pyenv *env, unsigned cudnn)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    unsigned other = 0;
    struct gp_ldcache cache = {.count = 0};
    while (gp_search_path_next(&list, ":;", folder))
        if (strstr(folder, "cudnn") || gp_cudnn_is_in(exam, folder, cudnn, &other))
            return true;
    bool is_known = gp_ldcache_read(&cache, &exam->files, &exam->arena) == 0;
    for (size_t i = 0; is_known && i < cache.count; i++)
        if (gp_cudnn_of_name(gp_ldcache_at(&cache, i).name) == cudnn)
            return true;
    return is_set_in_script(exam, env);
}

/* ctranslate2 and its cuDNN do not look into wheels. */
static void check_path(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_pypackage *package, const struct gp_pypackage *wheel)
{
    enum { BUNDLED = 8 }; /* with PyTorch, in its builds that have no wheels for it */
    const char *libraries = gp_exam_text(exam, "%s/torch/lib", env->site);
    unsigned other = 0, cudnn = wheel ? gp_version_major(wheel->version) : BUNDLED;
    if ((!wheel && !gp_cudnn_is_in(exam, libraries, cudnn, &other)) || !needs_cudnn(exam, env) ||
        is_loaded_by_torch(exam, env, package, cudnn) || is_led_to_cudnn(exam, env, cudnn))
        return;
    if (wheel)
        libraries = gp_exam_text(exam, "%s/nvidia/cudnn/lib", env->site);
    gp_exam_report(exam, verdict_of(env),
                   "CTranslate2 %s in %s does not find cuDNN, although it is installed %s",
                   package->version, env->prefix, wheel ? "as a package" : "with PyTorch");
    gp_exam_evidence(exam, env->site, "%s, %s", package->entry, wheel ? wheel->entry : "torch");
    gp_exam_evidence(exam, "LD_LIBRARY_PATH", "does not lead to %s", libraries);
    gp_exam_why(exam, "It searches only the loader's directories: \"Unable to load any of "
                      "{libcudnn_cnn.so.9.1.0, …}\", or libcudnn_ops_infer.so.8 cannot be opened.");
    gp_exam_command(
        exam, "before it starts",
        "export LD_LIBRARY_PATH=%s%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
        gp_exam_quoted(exam, libraries),
        wheel ? gp_exam_text(exam, ":%s/nvidia/cublas/lib", gp_exam_quoted(exam, env->site)) : "");
}

/* The packages bring a cuDNN of another version than it needs. */
static bool check_version(struct gp_exam *exam, const struct gp_pyenv *env,
                          const struct gp_pypackage *package, const struct gp_pypackage *wheel)
{
    unsigned needed = gp_version_compare(package->version, first_with_cudnn_9) < 0 ? 8 : 9;
    unsigned other = 0, have = wheel ? gp_version_major(wheel->version) : needed;
    if (have == needed || have < 8 || !needs_cudnn(exam, env) ||
        gp_cudnn_is_in(exam, gp_exam_text(exam, "%s/torch/lib", env->site), needed, &other) ||
        is_led_to_cudnn(exam, env, needed))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "CTranslate2 %s in %s needs cuDNN %u, but the environment has cuDNN %u",
                   package->version, env->prefix, needed, have);
    gp_exam_evidence(exam, env->site, "%s, %s", package->entry, wheel->entry);
    gp_exam_evidence(exam, gp_exam_text(exam, "libcudnn.so.%u", needed),
                     "not in any library directory");
    gp_exam_why(exam, needed == 8 ? "faster-whisper ends with \"Could not load library "
                                    "libcudnn_ops_infer.so.8\"."
                                  : "faster-whisper ends with \"Unable to load any of "
                                    "{libcudnn_ops.so.9.1.0, …}\".");
    gp_exam_pip(exam, env, GP_PIP_ADD, gp_exam_text(exam, "the releases for cuDNN %u", have),
                needed == 8 ? "--upgrade 'ctranslate2>=4.5,<5'" : "'ctranslate2==4.4.0'");
    gp_exam_link(exam, "https://github.com/SYSTRAN/faster-whisper#gpu");
    return true;
}

bool gp_ctranslate2_has_old_cudnn(const struct gp_pyenv *env)
{
    const struct gp_pypackage *wheel = gp_pyenv_package_like(env, "nvidia-cudnn-cu");
    return wheel && gp_version_major(wheel->version) == 8;
}

void gp_check_ctranslate2(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char first[] = "3.24", first_for_cuda_12[] = "4.0";
    const char *other;
    const struct gp_pypackage *package = gp_pyenv_package(env, "ctranslate2");
    const struct gp_pypackage *wheel = gp_pyenv_package_like(env, "nvidia-cudnn-cu");
    if (!package || package->is_conda || gp_version_compare(package->version, first) < 0 ||
        (gp_version_compare(package->version, first_for_cuda_12) < 0 &&
         gp_cuda_is_only_other(exam, env, 11, &other)))
        return; /* with another CUDA, which is reported, its cuDNN is no help */
    if (!check_version(exam, env, package, wheel))
        check_path(exam, env, package, wheel);
}
