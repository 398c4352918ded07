/* RAPIDS beside packages for another CUDA: CuPy, and NVIDIA's bindings for Python, against which
 * its modules are compiled. A finding of python.others. */
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

static const char cupy_name[] = "cupy-cuda";

/* What users name to pip: the others come with them. */
static const char *const main_parts[] = {"cudf", "cuml", "cugraph"};

/* The package that shows the CUDA of RAPIDS by what it requires, and the ones for another CUDA. */
struct mix {
    const struct gp_pypackage *rapids;
    unsigned cuda;
    const struct gp_pypackage *cupy, *python, *bindings; /* NULL: this one fits, or is not there */
};

static bool is_main(const char *name, const char *stem)
{
    size_t n = strlen(stem);
    return strncmp(name, stem, n) == 0 && (!name[n] || strncmp(name + n, "-cu", 3) == 0);
}

/* Of RAPIDS, with its libraries: "libcudf-cu12", "pylibraft". */
static bool is_part(const char *name)
{
    static const char *const stems[] = {
        "cudf",   "cuml",    "cugraph",    "libcudf",      "pylibcudf", "dask-cudf", "rmm",
        "librmm", "libcuml", "libcugraph", "pylibcugraph", "pylibraft", "libraft",   "raft-dask"};
    for (size_t i = 0; i < GP_ARRAY_LEN(stems); i++)
        if (is_main(name, stems[i]))
            return true;
    return false;
}

/* The CUDA of a CuPy, 12 of "cupy-cuda12x"; 0: it is another package, or of an older CUDA. */
static unsigned cuda_of_cupy(const char *name)
{
    size_t n = sizeof(cupy_name) - 1;
    unsigned long number = strncmp(name, cupy_name, n) == 0 ? strtoul(name + n, NULL, 10) : 0;
    return number < 100 ? (unsigned)number : 0;
}

static const char *metadata(struct gp_exam *exam, const struct gp_pyenv *env,
                            const struct gp_pypackage *package)
{
    return gp_pyenv_text(exam, env, gp_exam_text(exam, "%s/METADATA", package->entry));
}

/* The CUDA of the CuPy that a package requires; 0: it requires none, or more than one. */
static unsigned required_cuda(struct gp_exam *exam, const struct gp_pyenv *env,
                              const struct gp_pypackage *package)
{
    struct gp_requirement wanted;
    const char *text = metadata(exam, env, package);
    unsigned cuda = 0;
    while ((text = gp_requirement_next(text, &wanted))) {
        unsigned other = wanted.is_extra || wanted.is_elsewhere ? 0 : cuda_of_cupy(wanted.name);
        if (other && cuda && other != cuda)
            return 0;
        cuda = other ? other : cuda;
    }
    return cuda;
}

static bool find_rapids(struct gp_exam *exam, const struct gp_pyenv *env, struct mix *ret)
{
    for (size_t i = 0; i < env->count; i++) {
        const struct gp_pypackage *p = &env->packages[i];
        for (size_t k = 0; k < GP_ARRAY_LEN(main_parts); k++) {
            if (p->is_conda || !is_main(p->name, main_parts[k]) ||
                gp_pyenv_is_of_conda(env, p->name, p->version))
                continue;
            ret->rapids = p;
            ret->cuda = required_cuda(exam, env, p);
            if (ret->cuda)
                return true;
        }
    }
    return false;
}

/* A CuPy for another CUDA, where there is none for that of RAPIDS. */
static const struct gp_pypackage *other_cupy(const struct gp_pyenv *env, unsigned cuda)
{
    const struct gp_pypackage *found = NULL;
    for (size_t i = 0; i < env->count; i++) {
        unsigned other = cuda_of_cupy(env->packages[i].name);
        if (other == cuda)
            return NULL;
        found = other && !env->packages[i].is_conda ? &env->packages[i] : found;
    }
    return found;
}

/* NVIDIA's bindings have the number of their CUDA; RAPIDS is compiled against those of its own. */
static const struct gp_pypackage *other_bindings(const struct gp_pyenv *env, const char *name,
                                                 unsigned cuda)
{
    const struct gp_pypackage *p = gp_pyenv_package(env, name);
    return p && !p->is_conda && gp_version_major(p->version) != cuda ? p : NULL;
}

static bool find_mix(struct gp_exam *exam, const struct gp_pyenv *env, struct mix *ret)
{
    *ret = (struct mix){0};
    if (!find_rapids(exam, env, ret))
        return false;
    ret->cupy = other_cupy(env, ret->cuda);
    ret->python = other_bindings(env, "cuda-python", ret->cuda);
    ret->bindings = other_bindings(env, "cuda-bindings", ret->cuda);
    return ret->cupy || ret->python || ret->bindings;
}

/* ---- the remedy ---- */

static const char *add_word(struct gp_exam *exam, const char *list, const char *word)
{
    return gp_exam_text(exam, "%s%s%s", list, *list ? " " : "", word);
}

/* Bindings of this CUDA in place of those that are there; "". */
static const char *bindings_for(struct gp_exam *exam, const struct gp_pyenv *env, unsigned cuda)
{
    static const char *const names[] = {"cuda-python", "cuda-bindings"};
    const char *list = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (gp_pyenv_package(env, names[i]))
            list =
                add_word(exam, list, gp_exam_text(exam, "'%s>=%u,<%u'", names[i], cuda, cuda + 1));
    return list;
}

/* The packages beside RAPIDS, for its CUDA. */
static void fix_others(struct gp_exam *exam, const struct gp_pyenv *env, const struct mix *mix)
{
    const char *list = mix->python || mix->bindings ? bindings_for(exam, env, mix->cuda) : "";
    if (mix->cupy) {
        gp_exam_pip(exam, env, GP_PIP_REMOVE, "", mix->cupy->name);
        list = add_word(exam, list, gp_exam_text(exam, "%s%ux", cupy_name, mix->cuda));
    }
    gp_exam_pip(exam, env, GP_PIP_ADD,
                gp_exam_text(exam, "for the CUDA of RAPIDS, which is %u", mix->cuda), list);
}

/* RAPIDS for a CUDA that the driver runs. */
static void fix_rapids(struct gp_exam *exam, const struct gp_pyenv *env, const struct mix *mix,
                       unsigned cuda)
{
    const char *old = "", *new = "";
    for (size_t i = 0; i < env->count; i++)
        if (!env->packages[i].is_conda && is_part(env->packages[i].name))
            old = add_word(exam, old, env->packages[i].name);
    for (size_t k = 0; k < GP_ARRAY_LEN(main_parts); k++)
        for (size_t i = 0; i < env->count; i++)
            if (is_main(env->packages[i].name, main_parts[k])) {
                new = add_word(exam, new, gp_exam_text(exam, "%s-cu%u", main_parts[k], cuda));
                break;
            }
    if (mix->cupy && cuda_of_cupy(mix->cupy->name) != cuda)
        old = add_word(exam, old, mix->cupy->name);
    const char *bindings = bindings_for(exam, env, cuda);
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", old);
    gp_exam_pip(exam, env, GP_PIP_ADD, "RAPIDS for this driver",
                *bindings ? add_word(exam, new, bindings) : new);
}

static void fix(struct gp_exam *exam, const struct gp_pyenv *env, const struct mix *mix,
                const struct gp_nvidia *nv)
{
    enum { FIRST = 12 }; /* RAPIDS for an older CUDA is too old for such bindings */
    const char *floor = gp_cuda_floor(gp_exam_text(exam, "%u", mix->cuda));
    bool is_refused = nv->driver[0] && floor[0] && !gp_driver_reaches(nv->driver, floor);
    unsigned cuda = is_refused ? gp_version_major(gp_cuda_ceiling(nv->driver)) : mix->cuda;
    if (exam->machine.container)
        gp_exam_advice(exam,
                       "use an image whose packages are all for CUDA %u, such as an older or a "
                       "repaired one; or, where the environment can be changed:",
                       cuda);
    if (!is_refused) {
        fix_others(exam, env, mix);
        return;
    }
    if (cuda >= FIRST) {
        fix_rapids(exam, env, mix, cuda);
        gp_exam_advice(exam, "or keep RAPIDS for CUDA %u, and:", mix->cuda);
    }
    fix_others(exam, env, mix);
    gp_driver_fix_at_least(exam, floor);
}

void gp_check_rapids(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv)
{
    struct mix mix;
    if (!find_mix(exam, env, &mix))
        return;
    const struct gp_pypackage *const others[] = {mix.cupy, mix.python, mix.bindings};
    const struct gp_pypackage *first = mix.cupy ? mix.cupy : mix.python ? mix.python : mix.bindings;
    const char *floor = gp_cuda_floor(gp_exam_text(exam, "%u", mix.cuda));
    gp_exam_report(
        exam, gp_pyenv_verdict(env, false), "RAPIDS in %s is for CUDA %u, but %s is for CUDA %u",
        env->prefix, mix.cuda, first->name,
        first == mix.cupy ? cuda_of_cupy(first->name) : gp_version_major(first->version));
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s/METADATA", env->site, mix.rapids->entry),
                     "requires %s%ux", cupy_name, mix.cuda);
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (others[i])
            gp_exam_evidence(exam, env->site, "%s", others[i]->entry);
    const struct gp_pypackage *bindings = gp_pyenv_package(env, "cuda-bindings");
    if (bindings && !mix.bindings)
        gp_exam_evidence(exam, env->site, "%s", bindings->entry);
    if (nv->driver[0] && floor[0] && !gp_driver_reaches(nv->driver, floor))
        gp_exam_evidence(exam, "driver", "%s; CUDA %u needs %s or newer", nv->driver, mix.cuda,
                         floor);
    gp_exam_why(exam, "Its modules are compiled against the bindings of its own CUDA: the import "
                      "fails with \"does not export expected C function\", or \"has wrong "
                      "signature\".");
    fix(exam, env, &mix, nv);
}
