/* Servers of models record NCCL's calls in CUDA graphs, which an NCCL that was built with CUDA 11.0
 * refuses. */
#include "doctor/checks/framework.h"
#include "doctor/checks/python.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/machine.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/torch.h"
#include "doctor/version.h"

#include <string.h>

/* What divides a model between GPUs, and records it unless told not to. */
static const struct server {
    const char *name, *title, *option; /* without graphs */
    const char *library;               /* the variable that names another NCCL */
} servers[] = {
    {"vllm", "vLLM", "--enforce-eager", "VLLM_NCCL_SO_PATH"},
    {"sglang", "SGLang", "--disable-cuda-graph", "SGLANG_NCCL_SO_PATH"},
};

/* The package of PyPI for CUDA 11, whose releases from 2.18 on are built with CUDA 11.0, whatever
 * the CUDA of the PyTorch; NCCL wants 11.3 for graphs. */
static const struct gp_pypackage *plain_nccl(const struct gp_pyenv *env)
{
    static const char name[] = "nvidia-nccl-cu11", first[] = "2.18";
    const struct gp_pypackage *package = gp_pyenv_package(env, name);
    return package && !package->is_conda && gp_version_compare(package->version, first) >= 0
               ? package
               : NULL;
}

/* The first PyTorch for CUDA 11.8 that takes NCCL from that package. */
static const char first_with_package[] = "2.2";

/* Whether the server is made for a PyTorch whose builds have an NCCL of their own. */
static bool is_for_older(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_pypackage *package)
{
    struct gp_requirement wanted;
    return !package->is_conda && gp_pypackage_torch(exam, env, package, &wanted) &&
           wanted.version[0] && gp_version_compare(wanted.version, first_with_package) < 0;
}

/* The NCCL for which the PyTorch cannot be recorded on these GPUs; NULL: it can. */
static const struct gp_pypackage *
refused_nccl(const struct gp_pyenv *env, const struct gp_torch *torch, const struct gp_nvidia *nv)
{
    bool is_used = nv->gpu_count > 1 && gp_version_major(torch->cuda) == 11 &&
                   gp_version_compare(torch->version, first_with_package) >= 0 &&
                   !gp_pyenv_package(env, "vllm-nccl-cu11");
    return is_used ? plain_nccl(env) : NULL;
}

static void fix(struct gp_exam *exam, const struct gp_nvidia *nv, const struct server *server)
{
    const char *floor = gp_cuda_floor("12.1");
    if (gp_driver_reaches(nv->driver, floor))
        gp_exam_advice(exam,
                       "in a new environment: PyTorch and %s for CUDA 12, which the driver runs, "
                       "and whose NCCL is built with CUDA 12",
                       server->title);
    else
        gp_exam_advice(exam,
                       "PyTorch and %s for CUDA 12, in a new environment; that needs driver %s or "
                       "newer",
                       server->title, floor);
    gp_exam_advice(exam, "or do without CUDA graphs, which is slower: %s", server->option);
}

/* What refuses it, and where this was reported. */
static void show(struct gp_exam *exam, const struct gp_pyenv *env, const struct gp_pypackage *nccl)
{
    gp_exam_evidence(
        exam, gp_exam_text(exam, "%s/%s", env->site, nccl->entry),
        "built with CUDA 11.0: \"NCCL cannot be captured in a graph\" on several GPUs");
    gp_exam_link(exam, "https://github.com/vllm-project/vllm/issues/3069");
}

void gp_nccl_graph_show(struct gp_exam *exam, const struct gp_pyenv *env,
                        const struct gp_torch *torch, const struct gp_pypackage *package)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    const struct gp_pypackage *nccl = refused_nccl(env, torch, &nv);
    for (size_t i = 0; nccl && i < GP_ARRAY_LEN(servers); i++)
        if (strcmp(package->name, servers[i].name) == 0 && is_for_older(exam, env, package))
            show(exam, env, nccl);
}

/* A note: whether the server divides a model, and with graphs, is known only when it runs. Where it
 * is for an older PyTorch, that is the finding (pins.c). */
void gp_check_nccl_graph(struct gp_exam *exam, const struct gp_pyenv *env,
                         const struct gp_torch *torch, const struct gp_nvidia *nv)
{
    const struct gp_pypackage *nccl = refused_nccl(env, torch, nv);
    for (size_t i = 0; nccl && i < GP_ARRAY_LEN(servers); i++) {
        const struct gp_pypackage *package = gp_pyenv_package(env, servers[i].name);
        if (!package || is_for_older(exam, env, package) ||
            gp_machine_variable(&exam->machine, servers[i].library))
            continue;
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "%s in %s cannot use several GPUs with CUDA graphs: NCCL %s is built with "
                       "CUDA 11.0",
                       servers[i].title, env->prefix, nccl->version);
        gp_exam_evidence(exam, env->site, "%s", package->entry);
        show(exam, env, nccl);
        gp_exam_why(exam,
                    "The NCCL that PyTorch %s brings is refused when a model on several GPUs is "
                    "recorded. On one GPU, or without graphs (%s), nothing is amiss.",
                    torch->version, servers[i].option);
        fix(exam, nv, &servers[i]);
        return;
    }
}
