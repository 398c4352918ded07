/* nvidia-smi topo. */
#include "smi/command.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "model/snapshot.h"

#include <stdlib.h>
#include <string.h>

enum { NETWORKS_MAX = 256 };

enum {
    OPT_MATRIX,
    OPT_MATRIX_PCI,
    OPT_CPU,
    OPT_NEAREST,
    OPT_PATH,
    OPT_P2P,
    OPT_CPU_NODE,
    OPT_MEMORY_NODE,
    OPT_GPU_NODE,
    OPT_HELP,
#define X(id, kind, names, value, help) OPT_##id,
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        OPT__COUNT,
};

static const struct gp_smi_option options[] = {
    [OPT_MATRIX] = {"-m --matrix", GP_SMI_FLAG, NULL, NULL,
                    "show the topology of GPUs and network cards, with their CPU affinity"},
    [OPT_MATRIX_PCI] = {"-mp --matrix_pci", GP_SMI_FLAG, NULL, NULL, "the same, for PCIe only"},
    [OPT_CPU] = {"-c --cpu", GP_SMI_VALUE, NULL, "N", "show the GPUs near this CPU"},
    [OPT_NEAREST] = {"-n --nearest_gpus", GP_SMI_VALUE, NULL, "N",
                     "show the GPUs that GPU -i reaches at distance N: 0 one PCIe switch on the "
                     "same board, 1 one PCIe switch, 2 several PCIe switches, 3 a PCIe host "
                     "bridge, 4 several host bridges of a NUMA node, 5 different NUMA nodes"},
    [OPT_PATH] = {"-p --gpu_path", GP_SMI_FLAG, NULL, NULL,
                  "show the path between the two GPUs of -i"},
    [OPT_P2P] = {"-p2p --p2pstatus", GP_SMI_VALUE, NULL, "WHAT",
                 "show which GPUs can access each other's memory: r read, w write, n NVLink, a "
                 "atomics, p PCIe"},
    [OPT_CPU_NODE] = {"-C --get-numa-id-of-nearby-cpu", GP_SMI_FLAG, NULL, NULL,
                      "show the NUMA nodes of the CPUs near a GPU"},
    [OPT_MEMORY_NODE] = {"-M --get-numa-id-of-nearby-mem", GP_SMI_FLAG, NULL, NULL,
                         "show the NUMA nodes of the memory near a GPU"},
    [OPT_GPU_NODE] = {"-gnid --gpu-numa-id", GP_SMI_FLAG, NULL, NULL,
                      "show the NUMA node of a GPU's own memory"},
    [OPT_HELP] = {"-h --help", GP_SMI_FLAG, NULL, NULL, "show this help"},
#define X(id, kind, names, value, help) [OPT_##id] = {names, kind, NULL, value, help},
    GP_SMI_COMMON_OPTIONS(X)
#undef X
        [OPT__COUNT] = {"", GP_SMI_FLAG, NULL, NULL, NULL},
};

static const struct gp_smi_syntax syntax = {
    "nvidia-smi topo",
    "show the topology of GPUs, network cards and CPUs.",
    options,
    OPT_HELP,
    OPT_ID,
};

/* ---- the request ---- */

#define NODE_NEEDS_ONE(what)                                                                       \
    what " must be used in conjunction with the -i argument which must be a single "               \
         "identifier.\n\n"
#define NEEDS_ONE                                                                                  \
    "Nearest GPUs argument must be used in conjunction with the -i argument which must be a "      \
    "single identifier.\n\n"
/* "conjection" is nvidia-smi's. */
#define NEEDS_TWO                                                                                  \
    "Path command line flag must be used in conjection with the -i argument which must be two "    \
    "GPU identifiers.\n\n"

/* How many GPUs -i must name for it, and what is said otherwise. */
static const struct {
    int option;
    enum gp_smi_topo_question question;
    size_t gpus;
    const char *without;
} questions[] = {
    {OPT_MATRIX, GP_SMI_TOPO_MATRIX, 0, NULL},
    {OPT_MATRIX_PCI, GP_SMI_TOPO_MATRIX_PCI, 0, NULL},
    {OPT_P2P, GP_SMI_TOPO_P2P, 0, NULL},
    {OPT_CPU, GP_SMI_TOPO_CPU, 0, NULL},
    {OPT_NEAREST, GP_SMI_TOPO_NEAREST, 1, NEEDS_ONE},
    {OPT_PATH, GP_SMI_TOPO_PATH, 2, NEEDS_TWO},
    {OPT_CPU_NODE, GP_SMI_TOPO_NODES, 1, NODE_NEEDS_ONE("NUMA ID of nearest CPU")},
    {OPT_MEMORY_NODE, GP_SMI_TOPO_NODES, 1, NODE_NEEDS_ONE("NUMA ID of nearest memory")},
    {OPT_GPU_NODE, GP_SMI_TOPO_NODES, 1, NODE_NEEDS_ONE("GPU NUMA ID command")},
};

static size_t count_names(const char *list)
{
    size_t count = list != NULL;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

/* Which view is requested, and whether the options can be combined. NULL, or what is wrong. */
static const char *choose(const char *const *given, enum gp_smi_topo_question *ret)
{
    bool found = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(questions); i++) {
        if (!given[questions[i].option])
            continue;
        if (found && *ret != questions[i].question)
            return GP_SMI_COMBINATION;
        *ret = questions[i].question;
        found = true;
        if (questions[i].gpus && count_names(given[OPT_ID]) != questions[i].gpus)
            return questions[i].without;
    }
    return found ? NULL : GP_SMI_COMBINATION;
}

static int take(const char *const *given, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    struct gp_smi_topo *topo = &ret->topo;
    const char *number = given[OPT_CPU] ? given[OPT_CPU] : given[OPT_NEAREST];
    bool nearest = given[OPT_NEAREST] != NULL;
    const char *wrong = choose(given, &topo->question);
    if (wrong)
        return gp_smi_refuse(ret, sb, GP_SMI_EXIT_USAGE, wrong);
    if (number && !gp_parse_u64(number, &topo->number))
        return gp_smi_refuse_value(ret, sb, nearest ? "-n" : "-c", number);
    if (nearest && topo->number >= GP_SMI_TOPO_DISTANCES)
        return gp_smi_refuse(ret, sb, GP_SMI_EXIT_OTHER, "Failed to display the nearest GPUs\n\n");
    if (given[OPT_P2P] && !gp_smi_topo_knows(given[OPT_P2P]))
        return gp_smi_refuse(ret, sb, GP_SMI_EXIT_USAGE,
                             "Invalid p2p capability index specified at the command-line\n");
    topo->letters = given[OPT_P2P];
    topo->cpu = given[OPT_CPU_NODE];
    topo->memory = given[OPT_MEMORY_NODE];
    topo->gpu = given[OPT_GPU_NODE];
    return 0;
}

/* ---- output ---- */

static void want(const void *ctx, struct gp_want *want)
{
    const struct gp_smi_request *request = ctx;
    gp_smi_topo_want(&request->topo, want);
}

static int refuse(const void *ctx, struct gp_strbuf *message, const struct gp_snapshot *snapshot)
{
    const struct gp_smi_request *request = ctx;
    if (gp_smi_topo_has_ends(&request->topo, snapshot))
        return 0;
    gp_strbuf_adds(message, request->topo.question == GP_SMI_TOPO_PATH ? NEEDS_TWO : NEEDS_ONE);
    return GP_SMI_EXIT_USAGE;
}

static void print(void *ctx, struct gp_strbuf *sb, const struct gp_smi_form *form,
                  const struct gp_snapshot *snapshot)
{
    const struct gp_smi_request *request = ctx;
    const char *root = request->root;
    struct gp_pci_network *networks = calloc(NETWORKS_MAX, sizeof(*networks));
    struct gp_pci_place *gpus = calloc(snapshot->device_count + 1, sizeof(*gpus));
    struct gp_smi_sites sites = {gpus, networks, 0};
    size_t count = 0;
    if (root && networks)
        sites.network_count = gp_pci_networks(root, networks, NETWORKS_MAX);
    for (size_t i = 0; root && gpus && i < snapshot->device_count; i++) {
        const struct gp_device *d = &snapshot->devices[i];
        const struct gp_value *id = gp_snapshot_value(snapshot, d, NULL, GP_PCI_BUS_ID);
        if (!d->is_mig)
            gpus[count++] = gp_pci_find(root, gp_value_is_present(id) ? id->s : "");
    }
    if (networks && gpus)
        gp_smi_topo_print(sb, &request->topo, form, snapshot, &sites);
    else
        sb->error = GP_ENOMEM;
    free(networks);
    free(gpus);
}

int gp_smi_read_topo(int argc, char **argv, struct gp_smi_request *ret, struct gp_strbuf *sb)
{
    const char *given[OPT__COUNT] = {NULL};
    int status;
    ret->show = (struct gp_smi_show){.want = want, .print = print, .refuse = refuse};
    ret->ctx = ret;
    ret->topo = (struct gp_smi_topo){.question = GP_SMI_TOPO_MATRIX};
    return gp_smi_begin(&syntax, argc, argv, given, ret, sb, &status) ? take(given, ret, sb)
                                                                      : status;
}
