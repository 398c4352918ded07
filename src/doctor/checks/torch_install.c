/* Commands that change the PyTorch of an environment, together with what was compiled for it. */
#include "doctor/checks/pyinstall.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/version.h"

#include <string.h>

const char *gp_torch_index(struct gp_exam *exam, const char *cuda)
{
    const char *dot = strchr(cuda, '.');
    if (!cuda[0])
        return "https://download.pytorch.org/whl/cpu";
    return gp_exam_text(exam, "https://download.pytorch.org/whl/cu%u%.*s", gp_version_major(cuda),
                        dot ? (int)strcspn(dot + 1, ".") : 1, dot ? dot + 1 : "0");
}

const char *gp_torch_release(struct gp_exam *exam, const char *version)
{
    return gp_exam_text(exam, "torch==%.*s", (int)strcspn(version, "+"), version);
}

const char *gp_torch_companions(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char *const names[] = {"torchvision", "torchaudio"};
    const char *words = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (gp_pyenv_package(env, names[i]))
            words = gp_exam_text(exam, "%s %s", words, names[i]);
    return words;
}

/* Reinstalling brings the newest of all that they depend on; NumPy is torchvision's. Packages that
 * were compiled for NumPy 1.x do not bear the newest; if PyTorch is removed first, it stays. */
static bool keeps_numpy(const struct gp_pyenv *env)
{
    static const char first_python[] = "3.9"; /* of NumPy 2 */
    const struct gp_pypackage *numpy = gp_pyenv_package(env, "numpy");
    return numpy && gp_pyenv_package(env, "torchvision") && gp_version_major(numpy->version) == 1 &&
           (!env->python[0] || gp_version_compare(env->python, first_python) >= 0);
}

void gp_exam_torch(struct gp_exam *exam, const struct gp_pyenv *env, const char *note,
                   const char *torch, const char *index)
{
    const char *companions = gp_torch_companions(exam, env);
    bool is_kept = keeps_numpy(env);
    if (is_kept)
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", gp_exam_text(exam, "torch%s", companions));
    gp_exam_pip(exam, env, is_kept ? GP_PIP_ADD : GP_PIP_AGAIN, note,
                gp_exam_text(exam, "%s%s --index-url %s", torch, companions, index));
}
