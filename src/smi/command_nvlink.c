/* nvidia-smi nvlink. */
#include "smi/command.h"

#include "base/parse.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

enum {
    OPT_LINK,
    OPT_STATUS,
    OPT_CAPABILITIES,
    OPT_BUS_ID,
    OPT_REMOTE,
    OPT_ERRORS,
    OPT_THROUGHPUT,
    OPT_HELP,
    OPT_SET_COUNTERS,
    OPT_OLD_COUNTERS,
#define X(id, kind, names, value, help) OPT_##id,
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        OPT__COUNT,
};

static const struct gp_smi_option options[] = {
    [OPT_LINK] = {"-l --link", GP_SMI_VALUE, NULL, "N", "only this link of each GPU"},
    [OPT_STATUS] = {"-s --status", GP_SMI_FLAG, NULL, NULL, "show the speed of active links"},
    [OPT_CAPABILITIES] = {"-c --capabilities", GP_SMI_FLAG, NULL, NULL,
                          "show what the links can do"},
    [OPT_BUS_ID] = {"-p --pcibusid", GP_SMI_FLAG, NULL, NULL,
                    "show the PCI addresses of remote devices"},
    [OPT_REMOTE] = {"-R --remotelinkinfo", GP_SMI_FLAG, NULL, NULL,
                    "show the PCI addresses and link numbers of remote ends"},
    [OPT_ERRORS] = {"-e --errorcounters", GP_SMI_FLAG, NULL, NULL, "show the error counters"},
    [OPT_THROUGHPUT] = {"-gt --getthroughput", GP_SMI_VALUE, NULL, "WHAT",
                        "show the transferred data: d data, r raw, including protocol overhead"},
    [OPT_HELP] = {"-h --help", GP_SMI_FLAG, NULL, NULL, "show this help"},
    [OPT_SET_COUNTERS] = {"-sc --setcontrol -g --getcounters -r --resetcounters", GP_SMI_VALUE,
                          NULL, "N", "utilization counters of older drivers; not supported"},
    [OPT_OLD_COUNTERS] = {"-gc --getcontrol", GP_SMI_FLAG, NULL, NULL,
                          "their setting; not supported"},
#define X(id, kind, names, value, help) [OPT_##id] = {names, kind, NULL, value, help},
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        [OPT__COUNT] = {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct gp_smi_syntax syntax = {
    "nvidia-smi nvlink", "show the NVLinks of the GPUs.", options, OPT_HELP, OPT_ID,
};

static const struct {
    int option;
    const char *value; /* NULL: not set */
    enum gp_smi_nvlink_question question;
} questions[] = {
    {OPT_STATUS, NULL, GP_SMI_NVLINK_STATUS}, {OPT_CAPABILITIES, NULL, GP_SMI_NVLINK_CAPABILITIES},
    {OPT_BUS_ID, NULL, GP_SMI_NVLINK_BUS_ID}, {OPT_REMOTE, NULL, GP_SMI_NVLINK_REMOTE},
    {OPT_ERRORS, NULL, GP_SMI_NVLINK_ERRORS}, {OPT_THROUGHPUT, "d", GP_SMI_NVLINK_DATA},
    {OPT_THROUGHPUT, "r", GP_SMI_NVLINK_RAW},
};

/* The driver's calls for them are obsolete, and return no counts on current GPUs. */
static int refuse_counters(struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    gp_strbuf_adds(sb, "NVLink utilization counters are not supported.\ngpulse: for transferred "
                       "data use: nvidia-smi nvlink -gt d\n");
    return gp_smi_end(ret, GP_SMI_EXIT_NOT_SUPPORTED);
}

static int take(const char *const *given, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    struct gp_smi_nvlink *nvlink = &ret->nvlink;
    const char *throughput = given[OPT_THROUGHPUT];
    size_t asked = 0;
    size_t found = 0;
    for (int option = OPT_STATUS; option < OPT_HELP; option++)
        asked += given[option] != NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(questions); i++) {
        const char *value = given[questions[i].option];
        if (!value || (questions[i].value && strcmp(value, questions[i].value) != 0))
            continue;
        nvlink->question = questions[i].question;
        found++;
    }
    if (given[OPT_SET_COUNTERS] || given[OPT_OLD_COUNTERS])
        return refuse_counters(ret, sb);
    if (asked != 1)
        return gp_smi_refuse_combination(ret, sb);
    if (!found)
        return gp_smi_refuse_value(ret, sb, "-gt", throughput);
    nvlink->one_link = given[OPT_LINK] != NULL;
    if (nvlink->one_link && !gp_parse_u64(given[OPT_LINK], &nvlink->link))
        return gp_smi_refuse_value(ret, sb, "-l", given[OPT_LINK]);
    return 0;
}

static void want(const void *ctx, struct gp_want *want)
{
    gp_smi_nvlink_want(ctx, want);
}

static int refuse(const void *ctx, struct gp_strbuf *message, const struct gp_snapshot *snapshot)
{
    const struct gp_smi_nvlink *nvlink = ctx;
    if (gp_smi_nvlink_has_link(nvlink, snapshot))
        return 0;
    char number[24];
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)nvlink->link);
    return gp_smi_add_invalid(message, "-l", number);
}

static void print(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot)
{
    gp_smi_nvlink_print(sb, ctx, form, snapshot);
}

int gp_smi_read_nvlink(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    const char *given[OPT__COUNT] = {NULL};
    int status;
    ret->show = (struct gp_smi_show){.want = want, .print = print, .refuse = refuse};
    ret->ctx = &ret->nvlink;
    ret->nvlink = (struct gp_smi_nvlink){.one_link = false};
    return gp_smi_begin(&syntax, argc, argv, given, ret, sb, &status) ? take(given, ret, sb)
                                                                      : status;
}
