/* Packages with compiled extensions of PyTorch that must be made for the installed one. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* Where a text names an environment; not as the beginning of another one's path: "/opt/conda" is
 * also in "/opt/conda/envs/a". */
static const char *place_of(const char *text, const char *prefix)
{
    for (const char *at = text; (at = strstr(at, prefix)); at++) {
        const char *end = at + strlen(prefix);
        bool is_sentence = *end == '.' && (end[1] == ' ' || !end[1]);
        if (!*end || is_sentence || strchr(" ,:;)", *end))
            return at;
    }
    return NULL;
}

bool gp_python_is_reported(struct gp_exam *exam, const struct gp_pyenv *env, const char *name)
{
    const char *word = strncmp(name, "cupy", 4) == 0 ? "cupy" : name;
    for (const struct gp_finding *f = exam->findings; f; f = f->next) {
        const char *at = f->verdict >= GP_VERDICT_WARN ? place_of(f->summary, env->prefix) : NULL;
        const char *rest = at ? gp_exam_text(exam, "%.*s%s", (int)(at - f->summary), f->summary,
                                             at + strlen(env->prefix))
                              : "";
        if (strcasestr(rest, word))
            return true;
    }
    return false;
}

/* Whether PyTorch's own wheels use the newer C++ ABI: all since 2.7, and of 2.6 those for
 * CUDA 12.6.
 */
static bool has_new_abi(const struct gp_torch *torch)
{
    return gp_version_compare(torch->version, "2.7") >= 0 ||
           (gp_version_compare(torch->version, "2.6") >= 0 && strcmp(torch->cuda, "12.6") == 0);
}

/* A flash-attn with the other C++ ABI: by the name of its wheel, or one of those that were built
 * for the newer one although PyTorch 2.6 has the older. */
static void check_flash_abi(struct gp_exam *exam, const struct gp_pyenv *env,
                            const struct gp_torch *torch)
{
    static const char first[] = "2.8";
    const struct gp_pypackage *package = gp_pyenv_package(env, "flash-attn");
    if (!package || !torch->cuda[0] || package->is_conda)
        return;
    const char *release =
        gp_exam_text(exam, "%.*s", (int)strcspn(package->version, "+"), package->version);
    const char *origin = gp_pyenv_text(
        exam, env, gp_exam_text(exam, "flash_attn-%s.dist-info/direct_url.json", release));
    bool says_new = strstr(origin, "cxx11abiTRUE") || strstr(package->version, "cxx11abiTRUE");
    bool says_old = strstr(origin, "cxx11abiFALSE") || strstr(package->version, "cxx11abiFALSE");
    bool is_misbuilt = !says_new && !says_old && gp_version_compare(release, first) >= 0 &&
                       gp_version_compare(torch->version, "2.6") >= 0 && !has_new_abi(torch);
    if (has_new_abi(torch) ? !says_old : !says_new && !is_misbuilt)
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "flash-attn %s in %s is built for another C++ ABI than PyTorch %s", release,
                   env->prefix, torch->version);
    gp_exam_evidence(exam, env->site, "%s%s", package->entry,
                     says_new   ? ": cxx11abiTRUE"
                     : says_old ? ": cxx11abiFALSE"
                                : "");
    gp_exam_why(exam, "The import fails with \"undefined symbol: _ZN3c10…\".");
    if (is_misbuilt)
        gp_exam_pip(exam, env, GP_PIP_AGAIN, "the last one that fits PyTorch 2.6",
                    "--no-deps --no-build-isolation flash-attn==2.7.4.post1");
    else
        gp_exam_advice(exam,
                       "install the wheel of its release page with cxx11abi%s in its name, for "
                       "this PyTorch and CUDA, or build it: pip install --no-build-isolation "
                       "flash-attn==%s",
                       says_new ? "FALSE" : "TRUE", release);
    gp_exam_link(exam, "https://github.com/Dao-AILab/flash-attention/releases");
}

/* "2.7.4.post1+cu12torch2.6cxx11abiFALSE": the PyTorch build that a flash-attn wheel was made for.
 */
static bool check_flash(struct gp_exam *exam, const struct gp_pyenv *env,
                        const struct gp_torch *torch)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "flash-attn");
    const char *at = package ? strstr(package->version, "torch") : NULL;
    const char *cuda = package ? strstr(package->version, "+cu") : NULL;
    unsigned major = cuda ? (unsigned)strtoul(cuda + 3, NULL, 10) : 0;
    if (!at)
        return false;
    at += strlen("torch");
    size_t n = strspn(at, "0123456789.");
    bool is_other_cuda =
        major > 0 && major < 100 && torch->cuda[0] && major != gp_version_major(torch->cuda);
    bool is_other_torch = strncmp(at, torch->version, n) != 0 || torch->version[n] != '.';
    if (!is_other_cuda && !is_other_torch)
        return false;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "flash-attn in %s is for PyTorch %.*s with CUDA %u, but PyTorch %s with CUDA %s "
                   "is installed",
                   env->prefix, (int)n, at, major, torch->version,
                   torch->cuda[0] ? torch->cuda : "none");
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_why(exam, "The import fails with an undefined symbol.");
    gp_exam_pip(exam, env, GP_PIP_AGAIN, "build it for this PyTorch",
                "--no-deps --no-build-isolation flash-attn");
    return true;
}

/* The value of "torch": "2.0.1+cu118" in a text of JSON; "": none. */
static const char *built_for(struct gp_exam *exam, const char *text)
{
    static const char key[] = "\"torch\":";
    const char *found = strstr(text, key);
    if (!found)
        return "";
    found += sizeof(key) - 1;
    found += strspn(found, " \"");
    return gp_exam_text(exam, "%.*s", (int)strcspn(found, "\",}\n "), found);
}

/* xformers loads its kernels only into the PyTorch that it was built for; since 2.1 another CUDA of
 * the same major version does. */
static void check_xformers(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_torch *torch)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "xformers");
    const char *file = "xformers/cpp_lib.json";
    struct gp_requirement pin;
    const char *built = package ? built_for(exam, gp_pyenv_text(exam, env, file)) : "";
    const char *cu = strstr(built, "+cu"), *dot = strchr(torch->cuda, '.');
    if (!built[0] || !torch->cuda[0] || !dot)
        return;
    const char *cuda =
        gp_exam_text(exam, "%u%u", gp_version_major(torch->cuda), gp_version_minor(torch->cuda));
    bool is_old = gp_version_compare(torch->version, "2.1") < 0;
    bool is_other_torch = gp_version_major(built) != gp_version_major(torch->version) ||
                          gp_version_minor(built) != gp_version_minor(torch->version);
    bool is_other_cuda = cu && strncmp(cu + 3, cuda, is_old ? strlen(cuda) : 2) != 0;
    bool is_reported = gp_pypackage_torch(exam, env, package, &pin) && pin.version[0] &&
                       gp_version_compare(pin.version, torch->version) != 0;
    if (is_reported || (!is_other_torch && !is_other_cuda))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "xformers %s in %s was built for PyTorch %s, but PyTorch %s for CUDA %s is "
                   "installed",
                   package->version, env->prefix, built, torch->version, torch->cuda);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", env->site, file), "torch: %s", built);
    gp_exam_why(exam, "\"xFormers can't load C++/CUDA extensions\": its kernels are not available, "
                      "and programs that need them fail.");
    if (is_other_torch)
        gp_exam_advice(exam,
                       "install the version of xformers for this PyTorch (its release notes "
                       "say which), or PyTorch %s",
                       built);
    gp_exam_pip(
        exam, env, GP_PIP_AGAIN,
        is_other_torch ? "or both together, in fitting versions" : "both for the same CUDA",
        gp_exam_text(exam, "torch xformers%s --index-url %s", gp_torch_companions(exam, env),
                     gp_torch_index(exam, is_other_torch || !cu
                                              ? torch->cuda
                                              : gp_exam_text(exam, "%.2s.%s", cu + 3, cu + 5))));
}

/* The major version of CUDA that a release of vLLM is built for, by its release notes; 0: unknown.
 */
static unsigned vllm_cuda(const char *version)
{
    static const struct {
        const char *first;
        unsigned cuda;
    } rows[] = {{"0.21", 13}, {"0.2.2", 12}};
    const char *own = strstr(version, "+cu");
    if (own)
        return (unsigned)strtoul(own + 3, NULL, 10) / 10;
    if (strchr(version, '+') || strstr(version, "dev"))
        return 0; /* built by somebody */
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        if (gp_version_compare(version, rows[i].first) >= 0)
            return rows[i].cuda;
    return 11;
}

/* Suggests what makes both one CUDA: PyTorch's, for which vLLM since CUDA 13 has builds, too, or
 * vLLM's, if the driver runs it. */
static void fix_vllm(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_torch *torch,
                     const char *version, const char *cuda)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    bool has_builds = gp_version_major(cuda) == 13 && gp_version_major(torch->cuda) == 12;
    if (has_builds)
        gp_exam_pip(exam, env, GP_PIP_AGAIN, "its build for CUDA 12",
                    gp_exam_text(exam,
                                 "--no-deps vllm==%s --index-url https://wheels.vllm.ai/%s/cu129",
                                 version, version));
    if (has_builds && nv.driver[0] && !gp_driver_reaches(nv.driver, gp_cuda_floor(cuda)))
        return;
    gp_exam_torch(exam, env,
                  has_builds ? "or the PyTorch that it was built for"
                             : "the PyTorch that it was built for",
                  gp_torch_release(exam, torch->version), gp_torch_index(exam, cuda));
    if (!has_builds && gp_version_major(cuda) != gp_version_major(torch->cuda))
        gp_exam_advice(exam, "or install the build of vLLM for CUDA %u, as its page says",
                       gp_version_major(torch->cuda));
}

/* vLLM with a PyTorch for another CUDA; or, with PyTorch 2.6, for a CUDA with the other C++ ABI. */
static void check_vllm(struct gp_exam *exam, const struct gp_pyenv *env,
                       const struct gp_torch *torch)
{
    static const char six[] = "2.6.", first[] = "0.8", next[] = "0.9";
    const struct gp_pypackage *package = gp_pyenv_package(env, "vllm");
    unsigned cuda = package && torch->cuda[0] ? vllm_cuda(package->version) : 0;
    if (cuda == 0)
        return;
    bool is_other = cuda != gp_version_major(torch->cuda);
    bool is_abi = strncmp(torch->version, six, sizeof(six) - 1) == 0 && has_new_abi(torch) &&
                  gp_version_compare(package->version, first) >= 0 &&
                  gp_version_compare(package->version, next) < 0;
    if (!is_other && !is_abi)
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "vLLM %s in %s is built for PyTorch with CUDA %s, but PyTorch %s for CUDA %s is "
                   "installed",
                   package->version, env->prefix,
                   is_other ? gp_exam_text(exam, "%u", cuda) : "12.4", torch->version, torch->cuda);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    if (is_other)
        gp_exam_why(exam, "The import fails: \"libcudart.so.%u: cannot open shared object file\".",
                    cuda);
    else
        gp_exam_why(exam, "That PyTorch has another C++ ABI: the import of vllm._C fails with an "
                          "undefined symbol.");
    const char *right = !is_other ? "12.4" : cuda == 11 ? "11.8" : cuda == 12 ? "12.8" : "13.0";
    if (is_other && cuda == 12 && gp_version_compare(package->version, "0.8") < 0)
        right = gp_version_compare(package->version, "0.6.4") < 0 ? "12.1" : "12.4";
    fix_vllm(exam, env, torch, package->version, right);
}

/* What the suffix of a version says that it was built for: "2.1.2+pt20cu118", and
 * "0.2.3+cu121.torch2.4.0". */
struct built {
    unsigned torch_major, torch_minor; /* 0: it does not say */
    unsigned cuda;                     /* the major version; 0: it does not say */
    bool is_cpu;
};

static struct built built_of(const char *suffix)
{
    struct built built = {.is_cpu = strstr(suffix, "cpu")};
    const char *torch = strstr(suffix, "torch"), *pt = strstr(suffix, "pt");
    const char *cuda = strstr(suffix, "cu");
    char *end;
    if (torch) {
        built.torch_major = (unsigned)strtoul(torch + 5, &end, 10);
        built.torch_minor = *end == '.' ? (unsigned)strtoul(end + 1, NULL, 10) : 0;
    } else if (pt && strspn(pt + 2, "0123456789") >= 2) {
        built.torch_major = (unsigned)(pt[2] - '0');
        built.torch_minor = (unsigned)strtoul(pt + 3, NULL, 10);
    }
    built.cuda = cuda ? (unsigned)strtoul(cuda + 2, NULL, 10) : 0;
    if (built.cuda >= 100)
        built.cuda /= 10;
    return built;
}

/* PyTorch's own packages, and those that another check reads. */
static bool is_own(const char *name)
{
    static const char names[] = "torch,torchvision,torchaudio,vllm,xformers,flash-attn,triton,"
                                "llama-cpp-python,tensorflow";
    return gp_lines_list_has(names, name) || strncmp(name, "nvidia-", 7) == 0 ||
           strncmp(name, "intel-", 6) == 0;
}

/* Extensions whose version says for which PyTorch they were compiled. */
static void check_suffix(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, const struct gp_pypackage *package)
{
    const char *suffix = strchr(package->version, '+');
    if (!suffix || package->is_conda || is_own(package->name) || !torch->cuda[0] ||
        gp_python_is_reported(exam, env, package->name))
        return;
    const struct built built = built_of(suffix);
    bool is_other_torch =
        built.torch_major > 0 && (built.torch_major != gp_version_major(torch->version) ||
                                  built.torch_minor != gp_version_minor(torch->version));
    bool is_other_cuda = built.cuda > 0 && built.cuda != gp_version_major(torch->cuda);
    if (!is_other_torch && !is_other_cuda && !built.is_cpu)
        return;
    const char *number =
        gp_exam_text(exam, "%.*s", (int)(suffix - package->version), package->version);
    const char *with =
        built.is_cpu     ? "the CPU"
        : is_other_torch ? gp_exam_text(exam, "PyTorch %u.%u", built.torch_major, built.torch_minor)
                         : gp_exam_text(exam, "CUDA %u", built.cuda);
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "%s in %s was built for %s, but PyTorch %s for CUDA %s is installed",
                   package->name, env->prefix, with, torch->version, torch->cuda);
    gp_exam_evidence(exam, env->site, "%s", package->entry);
    gp_exam_why(exam, "%s",
                built.is_cpu ? "\"Not compiled with CUDA support\": it cannot work with data on "
                               "the GPU."
                             : "Its compiled code does not match: the import fails with an "
                               "undefined symbol, or a library that cannot be opened.");
    bool is_of_pyg =
        strncmp(package->name, "torch-", 6) == 0 || strcmp(package->name, "pyg-lib") == 0;
    if (is_of_pyg && gp_version_is_between(torch->version))
        gp_compiled_again(exam, env, package);
    else if (is_of_pyg)
        gp_exam_pip(exam, env, GP_PIP_AGAIN, "the build for this PyTorch",
                    gp_exam_text(exam, "--no-deps %s -f %s", package->name,
                                 gp_torch_pyg_page(exam, torch)));
    else
        gp_exam_advice(exam,
                       "install the build of %s for PyTorch %u.%u and CUDA %s, from its release "
                       "page (this one is %s), or the PyTorch that it was built for",
                       package->name, gp_version_major(torch->version),
                       gp_version_minor(torch->version), torch->cuda, number);
}

void gp_check_torch_extensions(struct gp_exam *exam, const struct gp_pyenv *env,
                               const struct gp_torch *torch)
{
    /* A GPU that it has no kernels for comes first: another build of it would not help. */
    if (!gp_python_is_reported(exam, env, "flash-attn") && !check_flash(exam, env, torch))
        check_flash_abi(exam, env, torch);
    check_xformers(exam, env, torch);
    gp_check_xformers_flash(exam, env);
    check_vllm(exam, env, torch);
    for (size_t i = 0; i < env->count; i++)
        check_suffix(exam, env, torch, &env->packages[i]);
}
