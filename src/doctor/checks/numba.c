/* Numba, whose CUDA programs are compiled when they run: with a toolkit's NVVM, to PTX that the
 * driver compiles. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/cuda_found.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/readers/used.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

/* ---- which NVVM it finds ---- */

static bool has_library(struct gp_exam *exam, const char *folder)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "libnvvm.so", 10) == 0)
            return true;
    return false;
}

/* The toolkit that it uses: conda's, CUDA_HOME's, or the one at /usr/local/cuda. */
struct nvvm {
    const char *place;   /* NULL: it finds none */
    const char *version; /* "": unknown */
};

/* The version of the toolkit at a path; "": unknown. */
static const char *version_at(struct gp_exam *exam, const char *path)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    char real[GP_PATH_SIZE];
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->list[i].path, path) == 0 ||
            (gp_files_real(&exam->files, path, real) && strcmp(all->list[i].path, real) == 0))
            return all->list[i].version;
    return "";
}

static const struct gp_pypackage *conda_cuda(const struct gp_pyenv *env)
{
    static const char *const names[] = {"cudatoolkit", "cuda-version"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, names[i]);
        if (package && package->is_conda && (i == 0 || gp_pyenv_package(env, "cuda-nvcc")))
            return package;
    }
    return NULL;
}

static struct nvvm find_nvvm(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *home = gp_machine_variable(&exam->machine, "CUDA_HOME");
    const char *const toolkits[] = {
        home, home ? NULL : gp_machine_variable(&exam->machine, "CUDA_PATH"), "/usr/local/cuda"};
    const char *const folders[] = {gp_exam_text(exam, "%s/lib", env->prefix),
                                   gp_exam_text(exam, "%s/nvvm/lib64", env->prefix)};
    const struct gp_pypackage *conda = conda_cuda(env);
    if (conda)
        return (struct nvvm){conda->entry, conda->version};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (has_library(exam, folders[i]))
            return (struct nvvm){folders[i], ""};
    if (gp_pyenv_package_like(env, "nvidia-cuda-nvcc") || gp_pyenv_package_like(env, "nvidia-nvvm"))
        return (struct nvvm){env->site, ""};
    for (size_t i = 0; i < GP_ARRAY_LEN(toolkits); i++)
        if (toolkits[i] && toolkits[i][0] == '/' &&
            has_library(exam, gp_exam_text(exam, "%s/nvvm/lib64", toolkits[i])))
            return (struct nvvm){toolkits[i], version_at(exam, toolkits[i])};
    for (size_t i = 0; gp_system_folder(exam, i); i++)
        if (has_library(exam, gp_system_folder(exam, i)))
            return (struct nvvm){gp_system_folder(exam, i), ""};
    return (struct nvvm){
        gp_library_is_loadable(exam, env, "libnvvm.so") ? "the loader's directories" : NULL, ""};
}

/* A toolkit in a place where it does not look; NULL: there is none. */
static const char *toolkit_elsewhere(struct gp_exam *exam)
{
    const struct gp_toolkits *all = gp_toolkits_of(exam);
    for (size_t i = 0; i < all->count; i++)
        if (has_library(exam, gp_exam_text(exam, "%s/nvvm/lib64", all->list[i].path)))
            return all->list[i].path;
    return NULL;
}

/* ---- findings ---- */

/* The newest CUDA that both the driver and this Numba take. */
static const char *usable_cuda(const struct gp_pypackage *numba, const struct gp_nvidia *nv)
{
    static const char first_12[] = "0.57", last_11[] = "11.8", last_12[] = "12.9";
    const char *ceiling = nv->driver[0] ? gp_cuda_ceiling(nv->driver) : last_12;
    const char *most = gp_version_compare(numba->version, first_12) < 0 ? last_11 : last_12;
    return gp_version_compare(ceiling, most) > 0 ? most : ceiling;
}

/* conda's packages of a CUDA: from 12 on they are several. */
static void install_conda(struct gp_exam *exam, const struct gp_pyenv *env, const char *cuda)
{
    const char *program = gp_conda_program(exam, env), *prefix = gp_exam_quoted(exam, env->prefix);
    if (gp_version_major(cuda) < 12)
        gp_exam_command(exam, "", "%s install -p %s cudatoolkit=%s", program, prefix, cuda);
    else
        gp_exam_command(exam, "",
                        "%s install -p %s -c conda-forge cuda-nvcc cuda-nvrtc "
                        "cuda-version=%s",
                        program, prefix, cuda);
}

static void report_none(struct gp_exam *exam, const struct gp_pyenv *env,
                        const struct gp_pypackage *numba, const char *program,
                        const struct gp_nvidia *nv)
{
    const char *other = toolkit_elsewhere(exam), *cuda = usable_cuda(numba, nv);
    gp_exam_report(exam, GP_VERDICT_WARN, "Numba %s in %s does not find CUDA's compiler",
                   numba->version, env->prefix);
    gp_exam_evidence(exam, program, "uses numba.cuda");
    gp_exam_evidence(exam, "libnvvm.so", "%s",
                     other ? gp_exam_text(exam, "in %s/nvvm/lib64, where it does not look", other)
                           : "not in the environment, in CUDA_HOME or in /usr/local/cuda");
    gp_exam_why(exam, "\"NvvmSupportError: libNVVM cannot be found\". PyTorch's packages do not "
                      "contain it.");
    if (other)
        gp_exam_command(exam, "also in the shell's startup file", "export CUDA_HOME=%s",
                        gp_exam_quoted(exam, other));
    else if (env->kind == GP_PYENV_CONDA)
        install_conda(exam, env, cuda);
    else {
        gp_exam_advice(exam, "install the toolkit of CUDA %s:", cuda);
        gp_cuda_fix_toolkit(exam, cuda);
    }
}

/* The PTX of a newer toolkit is one that the driver cannot compile. */
static void report_newer(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_pypackage *numba, const char *program,
                         const struct gp_nvidia *nv, const struct nvvm *nvvm)
{
    const char *cuda = usable_cuda(numba, nv);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Numba %s in %s compiles with CUDA %s, which is newer than the driver's %s",
                   numba->version, env->prefix, nvvm->version, gp_cuda_ceiling(nv->driver));
    gp_exam_evidence(exam, program, "uses numba.cuda");
    gp_exam_evidence(exam, nvvm->place, "CUDA %s", nvvm->version);
    gp_exam_why(exam, "The driver does not compile its PTX: \"[222] Call to cuLinkAddData results "
                      "in CUDA_ERROR_UNSUPPORTED_PTX_VERSION\", \"Unsupported .version\".");
    if (env->kind == GP_PYENV_CONDA)
        install_conda(exam, env, cuda);
    else
        gp_exam_advice(exam, "have CUDA_HOME lead to a toolkit of CUDA %s or older", cuda);
    gp_exam_advice(exam, "or keep it, and:");
    gp_driver_fix_at_least(exam, gp_cuda_own_driver(nvvm->version));
}

/* 0.57 is the first that works with the NVVM of CUDA 12 (numba#8290). */
static void report_older(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_pypackage *numba, const char *program,
                         const struct nvvm *nvvm)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "Numba %s in %s does not work with CUDA %s",
                   numba->version, env->prefix, nvvm->version);
    gp_exam_evidence(exam, program, "uses numba.cuda");
    gp_exam_evidence(exam, nvvm->place, "CUDA %s", nvvm->version);
    gp_exam_why(exam, "0.57 is the first release for CUDA 12: \"No supported GPU compute "
                      "capabilities found\".");
    gp_exam_pip(exam, env, GP_PIP_ADD, "", "'numba>=0.57'");
    if (env->kind == GP_PYENV_CONDA) {
        gp_exam_advice(exam, "or an older CUDA:");
        install_conda(exam, env, "11.8");
    }
}

/* ---- the driver's library ---- */

/* Numba's variables that name it, and the first release that is not known to read it; "": all do.
 */
static const struct {
    const char *name, *end;
} drivers[] = {{"NUMBA_CUDA_DRIVER", ""}, {"NUMBAPRO_CUDA_DRIVER", "0.50"}};

/* An environment whose Numba reads a variable; NULL: none. */
static const struct gp_pyenv *reader_of(struct gp_exam *exam, const char *end)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pypackage *numba = gp_pyenv_package(&envs->list[i], "numba");
        if (numba && (!end[0] || gp_version_compare(numba->version, end) < 0))
            return &envs->list[i];
    }
    return NULL;
}

/* What a path is instead of the driver's library; NULL: it can be that. */
static const char *mistake_of(struct gp_exam *exam, const char *path)
{
    char real[GP_PATH_SIZE];
    struct stat st;
    const char *slash = strrchr(path, '/');
    int error = gp_files_stat(&exam->files, path, &st);
    if (error == 0 && S_ISDIR(st.st_mode))
        return "a directory";
    if (error == -ENOENT)
        return "missing";
    if (strstr(path, "/stubs/"))
        return "the toolkit's stub, for linking only";
    bool is_named = slash && strncmp(slash + 1, "libcuda.so", 10) == 0;
    slash = gp_files_real(&exam->files, path, real) ? strrchr(real, '/') : NULL;
    bool is_real = slash && strncmp(slash + 1, "libcuda.so", 10) == 0;
    return !is_named && !is_real && strncmp(slash ? slash + 1 : path, "libcudart", 9) == 0
               ? "the library of the CUDA runtime"
               : NULL;
}

void gp_check_numba_driver(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(drivers); i++) {
        const char *name = drivers[i].name, *place = name;
        const char *value = gp_machine_variable(&exam->machine, name);
        const struct gp_pyenv *env = reader_of(exam, drivers[i].end);
        if (!value)
            value = gp_assignment_last(exam, name, &place);
        const char *mistake =
            env && value && value[0] == '/' && !strchr(value, '$') ? mistake_of(exam, value) : NULL;
        if (!mistake)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN, "%s does not name the driver's library: %s", name,
                       value);
        gp_exam_evidence(exam, place, "%s: %s", value, mistake);
        if (place == name)
            gp_exam_assignments(exam, name);
        gp_exam_evidence(exam, env->site, "%s", gp_pyenv_package(env, "numba")->entry);
        gp_exam_why(exam, "Numba opens it as libcuda.so: \"CUDA driver library cannot be found\", "
                          "\"driver missing function: cuInit\", or \"is not a valid file path\".");
        const char *right = gp_system_library(exam, "", "libcuda.so.1");
        if (right)
            gp_exam_command(exam, "in place of the line that sets it", "export %s=%s", name,
                            gp_exam_quoted(exam, right));
        gp_exam_command(exam,
                        right ? "or delete that line: Numba finds the library itself"
                              : "and delete the line that sets it",
                        "unset %s", name);
    }
}

/* ---- the check ---- */

/* Whether PTX is linked by NVIDIA's linker of this CUDA, rather than by the driver: it turns newer
 * PTX into code for the GPU (minor version compatibility). */
static bool has_linker(const struct gp_pyenv *env, const char *cuda)
{
    const struct gp_pypackage *linker = gp_pyenv_package_like(env, "nvidia-nvjitlink");
    return gp_pyenv_package_like(env, "pynvjitlink") ||
           (gp_pyenv_package_like(env, "numba-cuda") && linker &&
            gp_version_major(linker->version) == gp_version_major(cuda));
}

/* Whether its simulator runs the programs for CUDA on the CPU. */
static bool is_simulated(const struct gp_exam *exam)
{
    const char *value = gp_machine_variable(&exam->machine, "NUMBA_ENABLE_CUDASIM");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* Many packages require Numba for the CPU: only a program that uses its CUDA shows that it
 * matters. */
void gp_check_numba(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_nvidia *nv)
{
    static const char *const words[] = {"numba.cuda", "from numba import cuda", "@cuda.jit", NULL};
    const struct gp_pypackage *numba = gp_pyenv_package(env, "numba");
    const char *program = numba && (env->is_active || env->is_named) && !is_simulated(exam)
                              ? gp_project_program(exam, env, words)
                              : NULL;
    if (!program)
        return;
    struct nvvm nvvm = find_nvvm(exam, env);
    bool is_known = nvvm.place && nvvm.version[0];
    if (!nvvm.place)
        report_none(exam, env, numba, program, nv);
    else if (is_known && gp_version_major(nvvm.version) >= 12 &&
             gp_version_compare(numba->version, "0.57") < 0)
        report_older(exam, env, numba, program, &nvvm);
    else if (is_known && nv->driver[0] &&
             !gp_driver_reaches(nv->driver, gp_cuda_own_driver(nvvm.version)) &&
             !has_linker(env, nvvm.version))
        report_newer(exam, env, numba, program, nv, &nvvm);
}
