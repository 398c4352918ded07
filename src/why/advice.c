#include "why/advice.h"

#include "why/rule.h"

#include <string.h>

/* Limits: shares from 0 to 1, percent as the driver reports them. More than eight workers rarely
 * help a single process; a copy reaches about 80 percent of a link's rate. */
static const double roomy = 0.6, usable = 0.9, copies = 0.05, link_reached = 0.8, most_copied = 0.9;
static const double dram_used = 40; /* percent */
static const unsigned workers_most = 8;

/* ---- what is known ---- */

static const struct gp_why_verdict *verdict_of(const struct gp_advice_case *a,
                                               enum gp_why_rule rule)
{
    for (size_t i = 0; i < a->verdict_count; i++)
        if (a->verdicts[i].rule == rule)
            return &a->verdicts[i];
    return NULL;
}

/* The value of a variable; NULL: it is not set, or the environment is unknown. */
static const char *variable(const struct gp_advice_case *a, const char *name)
{
    return a->knows_environment ? gp_list_value(a->environment, a->environment_count, name) : NULL;
}

static void take(struct gp_advice *ret, const struct gp_why_verdict *v)
{
    ret->sure = v->sure;
    ret->gain = v->gain;
    gp_why_put(ret->seen, "%s", v->seen);
}

static unsigned whole(double number)
{
    static const double most = 1e6;
    return number > 0 ? (unsigned)(number < most ? number : most) : 0;
}

/* ---- the advice ---- */

static bool gp_advice_environment(const struct gp_advice_case *a, struct gp_advice *ret)
{
    static const struct {
        const char *name, *value, *effect;
        unsigned least_gpus;
    } slow[] = {
        {"CUDA_LAUNCH_BLOCKING", "1", "the program waits for each kernel that it starts", 1},
        {"PYTORCH_NO_CUDA_MEMORY_CACHING", "1", "each tensor is allocated by the driver", 1},
        {"NVIDIA_TF32_OVERRIDE", "0", "the tensor cores do not compute FP32", 1},
        {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", "each collective is checked", 1},
        {"NCCL_P2P_DISABLE", "1", "GPUs exchange data through host memory", 2},
        {"NCCL_SHM_DISABLE", "1", "GPUs may exchange data over the network", 2},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(slow); i++) {
        const char *value = variable(a, slow[i].name);
        if (!value || strcmp(value, slow[i].value) != 0 || a->c->job_gpus < slow[i].least_gpus)
            continue;
        gp_why_put(ret->seen, "%s%s=%s: %s", ret->seen[0] ? "; " : "", slow[i].name, value,
                   slow[i].effect);
        gp_why_put(ret->change, "%s %s", ret->change[0] ? "" : "unset", slow[i].name);
    }
    ret->sure = GP_WHY_CERTAIN;
    return ret->seen[0] != '\0';
}

static bool gp_advice_workers(const struct gp_advice_case *a, struct gp_advice *ret)
{
    const struct gp_tasks_use *h = &a->c->host;
    const struct gp_why_verdict *loader = verdict_of(a, GP_WHY_RULE_LOADER);
    const struct gp_why_verdict *alone = verdict_of(a, GP_WHY_RULE_MAIN_THREAD);
    /* for each of the job's processes, which will all do the same */
    const unsigned ranks = a->c->job_gpus > 1 ? a->c->job_gpus : 1;
    const unsigned idle = whole(gp_why_free_cpus(a->c) / ranks);
    unsigned needed = 0;
    if (alone && h->workers == 0 && idle > 0)
        needed = idle < workers_most ? idle : workers_most;
    if (loader) { /* as many times more as the GPU could take; others, such as torch.compile's, idle
                   */
        needed = whole(h->workers_active * 100 / gp_why_mean(a->c, GP_WHY_UTILIZATION) + 0.99);
        needed = needed < h->workers_active + idle ? needed : h->workers_active + idle;
    }
    if (!gp_why_is_python(a->c) || needed <= h->workers_active)
        return false;
    const struct gp_why_verdict *reason = loader ? loader : alone;
    if (!reason)
        return false;
    take(ret, reason);
    if (reason == alone)
        ret->sure = GP_WHY_POSSIBLE; /* what the main thread does is not visible */
    gp_why_put(ret->seen, "; %u CPUs are free for it", idle);
    gp_why_put(ret->change, "DataLoader(…, num_workers=%u, persistent_workers=True)", needed);
    return true;
}

static bool gp_advice_cpu_threads(const struct gp_advice_case *a, struct gp_advice *ret)
{
    const struct gp_tasks_use *h = &a->c->job;
    const struct gp_why_verdict *cores = verdict_of(a, GP_WHY_RULE_CORES);
    const unsigned processes = h->processes + h->workers_active;
    if (!cores || !a->knows_environment || processes < 2 || h->allowed == 0 ||
        variable(a, "OMP_NUM_THREADS"))
        return false;
    const unsigned part = whole(gp_why_cpus(h)) / processes;
    const unsigned each = part > 0 ? part : 1;
    take(ret, cores);
    ret->sure = GP_WHY_POSSIBLE;
    gp_why_put(ret->seen, "; %u processes, and OMP_NUM_THREADS is not set", processes);
    gp_why_put(ret->change, "OMP_NUM_THREADS=%u in its environment, or torch.set_num_threads(%u)",
               each, each);
    return true;
}

static bool gp_advice_pinned(const struct gp_advice_case *a, struct gp_advice *ret)
{
    const double copied = gp_why_link_share(a->c) / link_reached;
    const bool waits = gp_why_mean(a->c, GP_WHY_UTILIZATION) < GP_WHY_WAITS_BELOW;
    if (!gp_why_is_python(a->c) || !waits || !gp_why_is_used(a->c) || !(copied >= copies))
        return false;
    ret->sure = GP_WHY_POSSIBLE; /* whether they are pinned already is not visible */
    ret->gain = 1 / (1 - (copied < most_copied ? copied : most_copied));
    gp_why_put_busy(a->c, ret->seen);
    gp_why_put(ret->seen,
               "; %.1f GB/s over PCIe, which are transfers for about %.0f %% of the time",
               gp_why_traffic(a->c) / 1e9, 100 * copied);
    gp_why_put(ret->change,
               "DataLoader(…, pin_memory=True), and batch.to(device, non_blocking=True)");
    return true;
}

static bool gp_advice_precision(const struct gp_advice_case *a, struct gp_advice *ret)
{
    const struct gp_why_verdict *idle = verdict_of(a, GP_WHY_RULE_TENSOR);
    const double dram = gp_why_mean(a->c, GP_WHY_DRAM);
    if (!idle || !gp_why_is_python(a->c))
        return false;
    take(ret, idle);
    /* Half the bytes: then the memory bandwidth is the limit, if it is near. Otherwise the limit is
     * the tensor cores', which differ by GPU. */
    ret->gain = dram >= dram_used ? 200 / dram : 0;
    if (gp_why_is_known(dram))
        gp_why_put_percent(a->c, ret->seen, "memory bandwidth", GP_WHY_DRAM);
    gp_why_put(ret->change, "with torch.autocast(\"cuda\", dtype=torch.bfloat16): …; or only "
                            "torch.set_float32_matmul_precision(\"high\")");
    return true;
}

static bool gp_advice_compile(const struct gp_advice_case *a, struct gp_advice *ret)
{
    const struct gp_why_verdict *small = verdict_of(a, GP_WHY_RULE_TINY_KERNELS);
    if (!small || !gp_why_is_python(a->c))
        return false;
    take(ret, small);
    gp_why_put(ret->change, "model = torch.compile(model, mode=\"reduce-overhead\")");
    return true;
}

static bool gp_advice_batch(const struct gp_advice_case *a, struct gp_advice *ret)
{
    const struct gp_why_verdict *small = verdict_of(a, GP_WHY_RULE_TINY_KERNELS);
    const struct gp_why_verdict *main = verdict_of(a, GP_WHY_RULE_MAIN_THREAD);
    const struct gp_why_verdict *why = small ? small : main;
    const double total = gp_why_mean(a->c, GP_WHY_MEMORY_TOTAL);
    const double share = gp_why_most(a->c, GP_WHY_MEMORY) / total;
    /* The main thread may load the data as well: then a larger batch makes more work for it. */
    const bool loads = !small && a->c->host.workers == 0;
    if (!why || loads || !(share <= roomy) || !(share > 0) || a->c->others > 0)
        return false;
    const double times = usable / share;
    take(ret, why);
    ret->sure = GP_WHY_POSSIBLE; /* how much of the memory depends on the batch is not visible */
    ret->gain = why->gain > times || why->gain <= 1 ? times : why->gain;
    gp_why_put(ret->seen, "; at most %.0f of %.0f GiB in use",
               gp_why_most(a->c, GP_WHY_MEMORY) / 0x1p30, total / 0x1p30);
    gp_why_put(ret->change,
               "up to %.1f times the batch size; gpulse fit-batch finds the largest that fits",
               times);
    return true;
}

static bool gp_advice_segments(const struct gp_advice_case *a, struct gp_advice *ret)
{
    static const char option[] = "expandable_segments:True";
    const struct gp_why_verdict *full = verdict_of(a, GP_WHY_RULE_MEMORY_FULL);
    const char *new = variable(a, "PYTORCH_ALLOC_CONF");
    const char *old = variable(a, "PYTORCH_CUDA_ALLOC_CONF");
    if (!full || !gp_why_is_python(a->c) || (new &&strstr(new, option)) ||
        (old && strstr(old, option)))
        return false;
    take(ret, full);
    if (a->knows_environment)
        gp_why_put(ret->seen, "; its environment does not set expandable_segments");
    else
        ret->sure = GP_WHY_POSSIBLE;
    gp_why_put(ret->change,
               "PYTORCH_CUDA_ALLOC_CONF=%s in its environment, or gpulse run "
               "--torch-expandable",
               option);
    return true;
}

static bool gp_advice_checkpoints(const struct gp_advice_case *a, struct gp_advice *ret)
{
    const struct gp_why_verdict *full = verdict_of(a, GP_WHY_RULE_MEMORY_FULL);
    if (!full || !gp_why_is_python(a->c))
        return false;
    take(ret, full);
    ret->sure = GP_WHY_POSSIBLE;
    gp_why_put(
        ret->change,
        "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False): about a third "
        "more computation for much less memory");
    return true;
}

/* ---- all of it ---- */

static const struct {
    const char *word, *title;
    bool (*fits)(const struct gp_advice_case *a, struct gp_advice *ret);
} rows[] = {
#define GP_ADVICE(id, word, title, fits) {word, title, gp_advice_##fits},
#include "why/advice.def"
#undef GP_ADVICE
};

const char *gp_advice_word(enum gp_advice_id id)
{
    return rows[id].word;
}

const char *gp_advice_title(enum gp_advice_id id)
{
    return rows[id].title;
}

size_t gp_advice_find(const struct gp_advice_case *a, struct gp_advice ret[GP_ADVICE__COUNT])
{
    size_t count = 0;
    for (size_t i = 0; !a->c->is_failed && i < GP_ARRAY_LEN(rows); i++) {
        ret[count] = (struct gp_advice){.id = (enum gp_advice_id)i};
        count += rows[i].fits(a, &ret[count]);
    }
    return count;
}
