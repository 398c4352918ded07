#include "doctor/readers/torch.h"

#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/toolkit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The version of the CUDA runtime that a wheel brings: releases before 0.4 do not name their CUDA.
 */
static void read_runtime(struct gp_exam *exam, struct gp_torch *torch)
{
    static const char start[] = "libcudart";
    char path[GP_PATH_SIZE], **names;
    long n = gp_pyenv_path(torch->env, "torch/lib", path)
                 ? gp_files_list(&exam->files, &exam->arena, path, &names)
                 : 0;
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 && gp_library_version(names[i])[0])
            (void)snprintf(torch->cuda, sizeof(torch->cuda), "%s", gp_library_version(names[i]));
}

bool gp_pyenv_torch(struct gp_exam *exam, const struct gp_pyenv *env, struct gp_torch *ret)
{
    char path[GP_PATH_SIZE], text[4096];
    *ret = (struct gp_torch){.env = env};
    const struct gp_pypackage *package = gp_pyenv_package(env, "torch");
    if ((!env->has_torch && (!package || package->is_conda)) ||
        !gp_pyenv_path(env, "torch/version.py", path))
        return false;
    long n = gp_files_read(&exam->files, path, text, sizeof(text));
    ret->error = n < 0 && n != -ENOENT ? (int)n : 0;
    if (n < 0)
        return ret->error || package; /* the directory alone may be anything */
    (void)gp_python_version(text, "__version__", ret->version, sizeof(ret->version));
    if (!gp_python_version(text, "cuda", ret->cuda, sizeof(ret->cuda)))
        read_runtime(exam, ret);
    (void)gp_python_version(text, "hip", ret->hip, sizeof(ret->hip));
    (void)gp_python_version(text, "xpu", ret->xpu, sizeof(ret->xpu));
    if (!ret->xpu[0] && strstr(ret->version, "+xpu"))
        (void)snprintf(ret->xpu, sizeof(ret->xpu), "xpu");
    return true;
}

bool gp_pypackage_torch(struct gp_exam *exam, const struct gp_pyenv *env,
                        const struct gp_pypackage *package, struct gp_requirement *ret)
{
    const char *text = gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", package->entry));
    while (!package->is_conda && (text = gp_requirement_next(text, ret)))
        if (strcmp(ret->name, "torch") == 0 && (ret->version[0] || ret->least[0]) && !ret->is_extra)
            return true;
    return false;
}
