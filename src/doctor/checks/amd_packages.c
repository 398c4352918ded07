/* ROCm's packages of two makers, and Python packages that are not built for AMD's GPUs. */
#include "doctor/checks/amd.h"
#include "doctor/checks/graphics.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/opencl.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/pyenv.h"
#include "doctor/version.h"

#include <ctype.h>
#include <string.h>

/* ---- packages ---- */

/* Whether a version is of AMD's repository: it contains the release as in "1.0.0.60300-39", before
 * ROCm 4.1 as in "0.3.0.141-rocm-rel-3.3-19-b3a9b56", or nothing but a number as in "1.0.0"; that
 * of a distribution ends with its own revision. */
static bool is_of_amd(const char *version)
{
    enum { DIGITS = 5 };
    if (!strchr(version, '-') || strstr(version, "rocm-rel"))
        return true;
    size_t n = 0;
    for (const char *p = version; *p && n < DIGITS; p++)
        n = isdigit((unsigned char)*p) ? n + 1 : 0;
    return n >= DIGITS;
}

/* The distribution's packages that AMD's repository has under the same name; "": none. */
static const char *foreign_packages(struct gp_exam *exam)
{
    static const char *const names[] = {"rocminfo", "hipcc", "rocm-cmake", "rocm-device-libs",
                                        NULL};
    struct gp_package *packages;
    const char *found = "";
    long n = gp_packages_read(&exam->files, &exam->arena, names, &packages);
    for (long i = 0; i < n; i++)
        for (size_t k = 0; names[k]; k++)
            if (strcmp(packages[i].name, names[k]) == 0 &&
                strcmp(packages[i].state, "installed") == 0 && !is_of_amd(packages[i].version))
                found = gp_exam_text(exam, "%s%s%s", found, found[0] ? " " : "", names[k]);
    return found;
}

/* Whether a line of a text, except comments, has a word. */
static bool has_line(const char *text, const char *word)
{
    for (const char *p = text; p && (p = strstr(p, word)); p++) {
        const char *start = p;
        while (start > text && start[-1] != '\n')
            start--;
        if (*start != '#')
            return true;
    }
    return false;
}

/* The first file of a folder with such a line; NULL: none. */
static const char *file_with(struct gp_exam *exam, const char *folder, const char *word)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (has_line(gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL), word))
            return path;
    }
    return NULL;
}

/* The file by which apt uses AMD's repository; NULL: none. */
static const char *amd_source(struct gp_exam *exam)
{
    return file_with(exam, "/etc/apt/sources.list.d", "repo.radeon.com/rocm/apt");
}

/* The releases that AMD has packages for: Ubuntu's long-term ones. */
static const struct served {
    const char *codename, *release;
} served[] = {
    {"bionic", "18.04"},
    {"focal", "20.04"},
    {"jammy", "22.04"},
    {"noble", "24.04"},
};

/* Whether Ubuntu's release is one between long-term ones: AMD has no packages for it. */
static bool is_interim(const struct gp_machine *m)
{
    const char *release = gp_machine_release(m);
    return gp_version_major(release) % 2 != 0 || gp_version_minor(release) != 4;
}

/* Whether apt has installed AMD's ROCm: all that its packages depend on is there. */
static bool is_installed(struct gp_exam *exam)
{
    const struct gp_package *core = gp_packages_installed(&exam->files, &exam->arena, "rocm-core");
    return core && is_of_amd(core->version);
}

/* The release of Ubuntu that a file of apt has AMD's packages for, if it is another one; NULL: it
 * is this one, or none, or an earlier one whose packages could be installed where there are no
 * others. */
static const char *other_release(struct gp_exam *exam, const char *path)
{
    const struct gp_machine *m = &exam->machine;
    const char *own = m->base_codename[0] ? m->base_codename : m->codename;
    if (!path || m->distro != GP_DISTRO_UBUNTU || !own[0])
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(served); i++)
        if (strcmp(own, served[i].codename) != 0 &&
            has_line(gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL),
                     gp_exam_text(exam, " %s main", served[i].codename)))
            return is_interim(m) && is_installed(exam) &&
                           gp_version_compare(served[i].release, gp_machine_release(m)) < 0
                       ? NULL
                       : served[i].codename;
    return NULL;
}

bool gp_amd_has_two_makers(struct gp_exam *exam)
{
    const char *source = exam->machine.amd_count > 0 ? amd_source(exam) : NULL;
    return source && (foreign_packages(exam)[0] || other_release(exam, source));
}

static bool report_release(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *source = amd_source(exam), *other = other_release(exam, source);
    const char *own = m->base_codename[0] ? m->base_codename : m->codename;
    if (!other)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "AMD's repository is set up for Ubuntu %s, but this is %s", other, own);
    gp_exam_evidence(exam, source, "%s", other);
    gp_exam_evidence(exam, "/etc/os-release", "%s", own);
    gp_exam_why(exam, "Its packages need libraries of that release: apt reports unmet dependencies "
                      "(libpython, libstdc++), or programs do not start.");
    if (is_interim(m))
        gp_exam_advice(exam, "AMD has packages for Ubuntu's long-term releases only: use one of "
                             "them, or a container with it (rocm/dev-ubuntu-24.04)");
    else
        gp_exam_advice(exam,
                       "remove the packages of ROCm (sudo amdgpu-install --uninstall), and "
                       "install the newest amdgpu-install for this release from the page below");
    gp_exam_link(exam, "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/");
    return true;
}

void gp_amd_check_makers(struct gp_exam *exam)
{
    if (report_release(exam))
        return;
    static const char pin[] = "/etc/apt/preferences.d/rocm-pin-600";
    const char *found = foreign_packages(exam);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "ROCm is from AMD, but parts of it are from the distribution: %s", found);
    gp_exam_evidence(exam, amd_source(exam), "AMD's repository");
    gp_exam_evidence(exam, "/var/lib/dpkg/status", "%s, not of AMD's version", found);
    gp_exam_why(exam, "The distribution's numbers are higher, so apt keeps them: AMD's packages "
                      "have unmet dependencies, or use parts of another release.");
    gp_exam_command(exam, "the distribution's", "sudo apt remove %s", found);
    if (!file_with(exam, "/etc/apt/preferences.d", "repo.radeon.com"))
        gp_exam_command(exam, "prefer AMD's",
                        "printf 'Package: *\\nPin: release o=repo.radeon.com\\n"
                        "Pin-Priority: 600\\n' | sudo tee %s",
                        pin);
    gp_exam_command(exam, "", "sudo apt update && sudo apt install rocm");
    gp_exam_link(exam, "https://github.com/ROCm/legacy-rocm-build/issues/1899");
}

/* ---- OpenCL ---- */

/* Where ROCm's OpenCL is installed; NULL: nowhere. */
static const char *opencl_library(struct gp_exam *exam)
{
    static const char *const paths[] = {"/opt/rocm/lib/libamdocl64.so",
                                        "/opt/rocm/opencl/lib/libamdocl64.so",
                                        "/opt/rocm/opencl/lib/x86_64/libamdocl64.so", NULL};
    return gp_files_first(&exam->files, paths);
}

/* Whether an installed program for OpenCL has only the AMD GPU to use. */
static bool is_for_opencl(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return !m->container && m->nvidia_count == 0 && (m->intel_count == 0 || gp_gfx_has_card(m)) &&
           gp_amd_drives(exam) && gp_opencl_program(exam);
}

bool gp_amd_has_opencl(struct gp_exam *exam)
{
    return exam->machine.amd_count > 0 &&
           (opencl_library(exam) || gp_opencl_file(exam, "amdocl") || is_for_opencl(exam));
}

/* Mesa's newer driver, rusticl, uses no GPU unless a variable names its drivers. */
static void report_no_driver(struct gp_exam *exam)
{
    static const char variable[] = "RUSTICL_ENABLE";
    enum gp_distro distro = exam->machine.distro;
    const char *value = gp_machine_variable(&exam->machine, variable);
    bool has_rusticl = gp_graphics_knows_opencl(exam, "Rusticl");
    if (gp_graphics_knows_opencl(exam, "amdocl") || gp_graphics_knows_opencl(exam, "MesaOpenCL") ||
        (has_rusticl && value && strstr(value, "radeonsi")))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "OpenCL programs do not find the AMD GPU: %s",
                   has_rusticl ? "Mesa's rusticl, the only driver, uses no GPU by default"
                               : "no driver for it is installed");
    gp_exam_evidence(exam, gp_opencl_program(exam), "uses OpenCL");
    gp_exam_evidence(exam, GP_OPENCL_VENDORS, "no file names libamdocl64.so%s",
                     has_rusticl ? ", one names rusticl" : "");
    if (has_rusticl)
        gp_exam_evidence(exam, variable, "%s", value ? value : "not set");
    if (gp_files_exist(&exam->files, "/opt/rocm") && amd_source(exam))
        gp_exam_command(exam, "the part of AMD's ROCm", "sudo apt install rocm-opencl-runtime");
    else if (!has_rusticl || distro == GP_DISTRO_FEDORA || distro == GP_DISTRO_ARCH)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_AMD_OPENCL, NULL, NULL);
    if (has_rusticl || (distro != GP_DISTRO_FEDORA && distro != GP_DISTRO_ARCH))
        gp_exam_command(exam, "Mesa's rusticl, also in the shell's startup file",
                        "export %s=radeonsi", variable);
}

void gp_amd_check_opencl(struct gp_exam *exam)
{
    static const char folder[] = GP_OPENCL_VENDORS, name[] = "libamdocl64.so";
    if (!opencl_library(exam))
        report_no_driver(exam);
    gp_amd_check_comgr(exam);
    if (!opencl_library(exam) || gp_graphics_knows_opencl(exam, "amdocl"))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "OpenCL programs do not find the AMD GPU: the file that names ROCm's library "
                   "is missing");
    gp_exam_evidence(exam, folder, "no file names libamdocl64.so");
    gp_exam_evidence(exam, opencl_library(exam), "present");
    gp_exam_why(exam, "OpenCL's loader reads from the files there which libraries to load: "
                      "clGetPlatformIDs returns -1001, and clinfo lists no platform of AMD.");
    gp_exam_command(exam, "write it", "sudo mkdir -p %s && echo %s | sudo tee %s/amdocl64.icd",
                    folder, name, folder);
    gp_exam_command(exam, "if the loader still does not find the library, add its directory",
                    "echo %.*s | sudo tee /etc/ld.so.conf.d/rocm-opencl.conf && sudo ldconfig",
                    (int)(strlen(opencl_library(exam)) - strlen(name) - 1), opencl_library(exam));
}

/* ---- frameworks ---- */

static const struct {
    const char *name, *title;
    const char *other;   /* the beginning of the package for AMD's GPUs; "": none */
    const char *library; /* or the library that its build has; "" */
    const char *page;
} frameworks[] = {
    {"tensorflow", "TensorFlow", "tensorflow-rocm", "",
     "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/3rd-party/"
     "tensorflow-install.html"},
    {"jaxlib", "JAX", "jax-rocm", "",
     "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/3rd-party/"
     "jax-install.html"},
    {"onnxruntime", "ONNX Runtime", "onnxruntime-", "",
     "https://onnxruntime.ai/docs/execution-providers/MIGraphX-ExecutionProvider.html"},
    {"onnxruntime-gpu", "ONNX Runtime", "onnxruntime-rocm", "",
     "https://onnxruntime.ai/docs/execution-providers/MIGraphX-ExecutionProvider.html"},
    {"llama-cpp-python", "llama-cpp-python", "", "llama_cpp/lib/libggml-hip.so",
     "https://github.com/abetlen/llama-cpp-python#supported-backends"},
};

/* By the part for AMD's GPUs, or by the only library of older releases. */
static bool is_llama_for_cpu(struct gp_exam *exam, const struct gp_pyenv *env, const char *part)
{
    char path[GP_PATH_SIZE];
    bool is_meant = false;
    return gp_pyenv_path(env, "llama_cpp/lib", path) && gp_files_exist(&exam->files, path)
               ? gp_pyenv_path(env, part, path) && !gp_files_exist(&exam->files, path)
               : gp_llama_for_cpu(exam, env, &is_meant) && !is_meant;
}

/* A package of the user's own environment that computes on the CPU, and its row; NULL: none. One
 * beside a PyTorch may be a part of what uses that. */
static const struct gp_pypackage *find_framework(struct gp_exam *exam, const struct gp_pyenv **env,
                                                 size_t *row)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(frameworks); k++) {
            *env = &envs->list[i];
            *row = k;
            const struct gp_pypackage *package = gp_pyenv_package(*env, frameworks[k].name);
            const char *library = frameworks[k].library;
            bool is_meant = !(*env)->has_torch && ((*env)->is_active || (*env)->is_named ||
                                                   (library[0] && gp_llama_is_used(exam, *env)));
            bool has_own = library[0] ? !is_llama_for_cpu(exam, *env, library)
                                      : gp_pyenv_package_like(*env, frameworks[k].other) != NULL;
            if (package && is_meant && !package->is_conda && !has_own &&
                !strstr(package->version, "rocm"))
                return package;
        }
    return NULL;
}

bool gp_amd_has_other_framework(struct gp_exam *exam)
{
    const struct gp_pyenv *env;
    size_t row;
    return exam->machine.nvidia_count == 0 && gp_gfx_has_card(&exam->machine) &&
           gp_files_exist(&exam->files, "/opt/rocm") && find_framework(exam, &env, &row);
}

void gp_amd_check_framework(struct gp_exam *exam)
{
    const struct gp_pyenv *env;
    size_t row;
    const struct gp_pypackage *package = find_framework(exam, &env, &row);
    if (!package)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s %s in %s is not built for AMD GPUs: it computes on the CPU",
                   frameworks[row].title, package->version, env->prefix);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_why(exam, "PyPI's package is for NVIDIA's GPUs or for the CPU.");
    gp_exam_pip(exam, env, GP_PIP_REMOVE, "", package->name);
    gp_exam_advice(exam, "and install its build for this ROCm, as the page below says");
    gp_exam_link(exam, frameworks[row].page);
}
