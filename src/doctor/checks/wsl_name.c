/* In WSL: what loads libcuda by its plain name, which ldconfig does not list. */
#include "doctor/checks/wsl.h"
#include "doctor/exam.h"
#include "doctor/readers/ldcache.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

static const char folder[] = "/usr/lib/wsl/lib", plain[] = "/usr/lib/wsl/lib/libcuda.so";

/* What loads it so in a Python environment, and what follows. */
struct user {
    const char *name, *version, *effect, *why;
    const struct gp_pyenv *env;
};

/* bitsandbytes before 0.43, which asks PyTorch instead. */
static bool is_bitsandbytes(const struct gp_pyenv *env, struct user *ret)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "bitsandbytes");
    if (!package || gp_version_compare(package->version, "0.43") >= 0)
        return false;
    *ret = (struct user){package->name, package->version,
                         "does not find libcuda.so: it loads it without a number",
                         "It then takes its library for the CPU, and 8-bit functions and "
                         "optimizers fail. Version 0.43 and newer do not need the name.",
                         env};
    return true;
}

static bool is_taichi(const struct gp_pyenv *env, struct user *ret)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "taichi");
    if (package)
        *ret = (struct user){
            "Taichi", package->version, "does not find libcuda.so: it loads it without a number",
            "It then computes on the CPU: \"Arch=[<Arch.cuda>] is not supported\".", env};
    return package != NULL;
}

/* Whether a directory to which cuDNN's own search path may lead has the name: a link made by
 * hand, or conda's. */
static bool has_link(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const files[] = {"nvidia/cudnn/lib/libcuda.so", "torch/lib/libcuda.so"};
    char path[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++)
        if (gp_pyenv_path(env, files[i], path) && gp_files_exist(&exam->files, path))
            return true;
    return gp_files_exist(&exam->files, gp_exam_text(exam, "%s/lib/libcuda.so", env->prefix));
}

/* PyTorch with cuDNN 8.3 to 8.5, with which this was reported: 1.12 to 2.0, for CUDA 11.3 to 11.7.
 */
static bool is_cudnn(struct gp_exam *exam, const struct gp_pyenv *env, struct user *ret)
{
    struct gp_torch torch;
    if (!gp_pyenv_torch(exam, env, &torch) || gp_version_compare(torch.version, "1.12") < 0 ||
        gp_version_compare(torch.version, "2.1") >= 0 ||
        gp_version_compare(torch.cuda, "11.3") < 0 || gp_version_compare(torch.cuda, "11.8") >= 0 ||
        has_link(exam, env))
        return false;
    *ret = (struct user){"PyTorch", gp_exam_text(exam, "%s", torch.version),
                         "fails at convolutions: its cuDNN 8 loads libcuda.so without a number",
                         "The program is aborted: \"Could not load library "
                         "libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object "
                         "file\". Other operations work.",
                         env};
    return true;
}

/* An environment with such a package; of several, the one in use. */
static bool find_user(struct gp_exam *exam, struct user *ret)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    struct user user;
    ret->name = NULL;
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        if ((ret->name && !env->is_active) ||
            (!is_bitsandbytes(env, &user) && !is_taichi(env, &user) && !is_cudnn(exam, env, &user)))
            continue;
        *ret = user;
    }
    return ret->name != NULL;
}

/* Whether a directory of the loader, which the user named or which it knows, has the name. */
static bool is_found(struct gp_exam *exam)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char named[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ":;", named))
        if (named[0] == '/' &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/libcuda.so", named)))
            return true;
    return gp_system_library(exam, "", "libcuda.so") != NULL;
}

/* Windows' files are copies, not links, so ldconfig lists one name of them; the plain one, which
 * some programs load, is found only by a path. So it is with every WSL: a problem only for such a
 * program. */
void gp_wsl_report_plain_name(struct gp_exam *exam)
{
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0, from_plain = 0;
    if (!gp_files_exist(&exam->files, plain) ||
        gp_ldcache_read(&cache, &exam->files, &exam->arena) != 0 ||
        !gp_ldcache_find(&cache, "libcuda.so.1", NULL, &from, &library) ||
        gp_ldcache_find(&cache, "libcuda.so", NULL, &from_plain, &library) || is_found(exam))
        return;
    struct user user;
    bool is_used = find_user(exam, &user);
    if (is_used)
        gp_exam_report(exam, GP_VERDICT_WARN, "%s %s in %s %s", user.name, user.version,
                       user.env->prefix, user.effect);
    else
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "programs that load libcuda.so, without a number, do not find it");
    gp_exam_evidence(exam, plain, "present");
    gp_exam_evidence(exam, "/etc/ld.so.cache", "has only libcuda.so.1");
    gp_exam_why(exam, "%s",
                is_used ? user.why
                        : "Most programs load libcuda.so.1. Others report \"libcuda.so: cannot "
                          "open shared object file\".");
    gp_exam_command(exam,
                    is_used ? "in the script that starts it, or in the shell's startup file"
                            : "for such a program",
                    "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", folder);
    gp_exam_link(exam, "https://github.com/microsoft/WSL/issues/8587");
}

void gp_wsl_advise_plain_name(struct gp_exam *exam)
{
    struct user user;
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    if (!gp_files_exist(&exam->files, plain) || (list && strstr(list, folder)))
        return;
    gp_exam_command(exam,
                    find_user(exam, &user)
                        ? gp_exam_text(exam,
                                       "then, for %s, which loads libcuda.so without a number: "
                                       "also in the shell's startup file",
                                       user.name)
                        : "then, only for a program that loads libcuda.so without a number",
                    "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", folder);
}
