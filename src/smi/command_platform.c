/* nvidia-smi conf-compute, clocks, c2c and vgpu. */
#include "smi/command.h"

#include "base/strbuf.h"

/* ---- conf-compute ---- */

enum {
    OPT_LOG,
    OPT_FEATURE,
    OPT_MULTI_GPU,
    OPT_CPU,
    OPT_GPU,
    OPT_READY,
    OPT_ENVIRONMENT,
    OPT_DEVTOOLS,
    OPT_HELP,
#define X(id, kind, names, value, help) OPT_##id,
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        OPT__COUNT,
};

static const struct gp_smi_option cc_options[] = {
    [OPT_LOG] = {"-q --query-conf-compute", GP_SMI_FLAG, NULL, NULL, "show everything"},
    [OPT_FEATURE] = {"-f --get-cc-feature", GP_SMI_FLAG, NULL, NULL, "show whether it is on"},
    [OPT_MULTI_GPU] = {"-mgm --get-multigpu-mode", GP_SMI_FLAG, NULL, NULL,
                       "show the mode for several GPUs"},
    [OPT_CPU] = {"-gc --get-cpu-caps", GP_SMI_FLAG, NULL, NULL, "show what the CPU supports"},
    [OPT_GPU] = {"-gg --get-gpus-caps", GP_SMI_FLAG, NULL, NULL, "show what the GPUs support"},
    [OPT_READY] = {"-grs --get-gpus-ready-state", GP_SMI_FLAG, NULL, NULL,
                   "show whether the GPUs accept work"},
    [OPT_ENVIRONMENT] = {"-e --get-environment", GP_SMI_FLAG, NULL, NULL,
                         "show the environment: production or simulation"},
    [OPT_DEVTOOLS] = {"-d --get-devtools-mode", GP_SMI_FLAG, NULL, NULL,
                      "show whether developer tools have access"},
    [OPT_HELP] = {"-h --help", GP_SMI_FLAG, NULL, NULL, "show this help"},
#define X(id, kind, names, value, help) [OPT_##id] = {names, kind, NULL, value, help},
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        [OPT__COUNT] = {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct gp_smi_syntax cc_syntax = {
    "nvidia-smi conf-compute",
    "show the state of confidential computing.",
    cc_options,
    OPT_HELP,
    OPT_ID,
};

static void want_cc(const void *ctx, struct gp_want *want)
{
    gp_smi_conf_compute_want(ctx, want);
}

static int refuse_cc(const void *ctx, struct gp_strbuf *message, const struct gp_snapshot *snapshot)
{
    return gp_smi_conf_compute_refuse(ctx, message, snapshot);
}

static void print_cc(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                     const struct gp_snapshot *snapshot)
{
    gp_smi_conf_compute_print(sb, ctx, form, snapshot);
}

int gp_smi_read_conf_compute(int argc, char **argv, struct gp_smi_request *ret,
                             struct gp_strbuf *sb)
{
    static const int asked[GP_SMI_CC__COUNT] = {
        [GP_SMI_CC_FEATURE] = OPT_FEATURE,   [GP_SMI_CC_MULTI_GPU] = OPT_MULTI_GPU,
        [GP_SMI_CC_CPU] = OPT_CPU,           [GP_SMI_CC_GPU] = OPT_GPU,
        [GP_SMI_CC_READY] = OPT_READY,       [GP_SMI_CC_ENVIRONMENT] = OPT_ENVIRONMENT,
        [GP_SMI_CC_DEVTOOLS] = OPT_DEVTOOLS,
    };
    const char *given[OPT__COUNT] = {NULL};
    struct gp_smi_conf_compute *cc = &ret->conf_compute;
    bool any = false;
    int status;
    ret->show = (struct gp_smi_show){want_cc, print_cc, refuse_cc};
    ret->ctx = cc;
    *cc = (struct gp_smi_conf_compute){.log = false};
    if (!gp_smi_begin(&cc_syntax, argc, argv, given, ret, sb, &status))
        return status;
    for (int i = 0; i < GP_SMI_CC__COUNT; i++) {
        cc->asked[i] = given[asked[i]] != NULL;
        any = any || cc->asked[i];
    }
    cc->log = given[OPT_LOG] != NULL;
    if (any == cc->log)
        return gp_smi_refuse_combination(ret, sb);
    return 0;
}

/* ---- clocks ---- */

enum {
    CLOCKS_LIST,
    CLOCKS_ADD,
    CLOCKS_REMOVE,
    CLOCKS_HELP,
#define X(id, kind, names, value, help) CLOCKS_##id,
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        CLOCKS__COUNT,
};

static const struct gp_smi_option clocks_options[] = {
    [CLOCKS_LIST] = {"--sync-boost-list", GP_SMI_FLAG, NULL, NULL, "list the groups"},
    [CLOCKS_ADD] = {"--sync-boost-add", GP_SMI_FLAG, NULL, NULL, "make the GPUs of -i a group"},
    [CLOCKS_REMOVE] = {"--sync-boost-remove", GP_SMI_VALUE, NULL, "GROUP", "remove this group"},
    [CLOCKS_HELP] = {"-h --help", GP_SMI_FLAG, NULL, NULL, "show this help"},
#define X(id, kind, names, value, help) [CLOCKS_##id] = {names, kind, NULL, value, help},
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        [CLOCKS__COUNT] = {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct gp_smi_syntax clocks_syntax = {
    "nvidia-smi clocks", "groups of GPUs with synchronized boost.", clocks_options, CLOCKS_HELP,
    CLOCKS_ID,
};

/* There is no public call for this. */
int gp_smi_read_clocks(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    const char *given[CLOCKS__COUNT] = {NULL};
    int status;
    if (!gp_smi_begin(&clocks_syntax, argc, argv, given, ret, sb, &status))
        return status;
    if (!given[CLOCKS_LIST] && !given[CLOCKS_ADD] && !given[CLOCKS_REMOVE])
        return gp_smi_refuse_combination(ret, sb);
    gp_strbuf_adds(sb, "Synchronized boost groups are not supported.\n" GP_SMI_NO_CALL);
    return gp_smi_end(ret, GP_SMI_EXIT_NOT_SUPPORTED);
}

/* ---- c2c and vgpu: one view each ---- */

enum {
    ONE_SHOW,
    ONE_HELP,
#define X(id, kind, names, value, help) ONE_##id,
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        ONE__COUNT,
};

static const struct gp_smi_option c2c_options[] = {
    [ONE_SHOW] = {"-s --status", GP_SMI_FLAG, NULL, NULL, "show the speed of active links"},
    [ONE_HELP] = {"-h --help", GP_SMI_FLAG, NULL, NULL, "show this help"},
#define X(id, kind, names, value, help) [ONE_##id] = {names, kind, NULL, value, help},
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        [ONE__COUNT] = {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct gp_smi_option vgpu_options[] = {
    [ONE_SHOW] = {"-q --query", GP_SMI_FLAG, NULL, NULL, "show the guests of the GPUs"},
    [ONE_HELP] = {"-h --help", GP_SMI_FLAG, NULL, NULL, "show this help"},
#define X(id, kind, names, value, help) [ONE_##id] = {names, kind, NULL, value, help},
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        [ONE__COUNT] = {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct gp_smi_syntax c2c_syntax = {
    "nvidia-smi c2c", "show the links between GPU and CPU.", c2c_options, ONE_HELP, ONE_ID,
};
static const struct gp_smi_syntax vgpu_syntax = {
    "nvidia-smi vgpu", "show GPUs shared by guests.", vgpu_options, ONE_HELP, ONE_ID, true,
};

static void want_c2c(const void *ctx, struct gp_want *want)
{
    (void)ctx;
    gp_smi_c2c_want(want);
}

static int refuse_c2c(const void *ctx, struct gp_strbuf *message,
                      const struct gp_snapshot *snapshot)
{
    (void)ctx;
    return gp_smi_c2c_refuse(message, snapshot);
}

static void print_c2c(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                      const struct gp_snapshot *snapshot)
{
    (void)ctx;
    gp_smi_c2c_print(sb, form, snapshot);
}

int gp_smi_read_c2c(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    const char *given[ONE__COUNT] = {NULL};
    int status;
    ret->show = (struct gp_smi_show){want_c2c, print_c2c, refuse_c2c};
    if (!gp_smi_begin(&c2c_syntax, argc, argv, given, ret, sb, &status))
        return status;
    return given[ONE_SHOW] ? 0 : gp_smi_refuse_combination(ret, sb);
}

static void want_vgpu(const void *ctx, struct gp_want *want)
{
    (void)ctx;
    gp_smi_vgpu_want(want);
}

static int refuse_vgpu(const void *ctx, struct gp_strbuf *message,
                       const struct gp_snapshot *snapshot)
{
    (void)ctx;
    return gp_smi_vgpu_refuse(message, snapshot);
}

static void print_vgpu(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                       const struct gp_snapshot *snapshot)
{
    (void)ctx;
    (void)form;
    (void)snapshot;
    gp_smi_vgpu_print(sb);
}

int gp_smi_read_vgpu(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    const char *given[ONE__COUNT] = {NULL};
    int status;
    ret->show = (struct gp_smi_show){want_vgpu, print_vgpu, refuse_vgpu};
    if (!gp_smi_begin(&vgpu_syntax, argc, argv, given, ret, sb, &status))
        return status;
    return 0;
}
