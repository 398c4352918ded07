#include "smi/topo.h"

#include "base/strbuf.h"
#include "smi/entries.h"
#include "smi/value.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>

/* Also written into files and pipes. */
#define UNDERLINE "\x1b[4m"
#define PLAIN "\x1b[0m"

struct printer {
    struct gp_strbuf *sb;
    const struct gp_smi_topo *topo;
    const struct gp_smi_form *form;
    const struct gp_snapshot *snapshot;
    const struct gp_smi_sites *sites;
};

/* ---- the GPUs of the snapshot ---- */

static const struct gp_device *next_gpu(const struct gp_snapshot *snapshot,
                                        const struct gp_device *last)
{
    const struct gp_device *end = snapshot->devices + snapshot->device_count;
    const struct gp_device *d = last ? last + 1 : snapshot->devices;
    while (d < end && d->is_mig)
        d++;
    return d < end ? d : NULL;
}

/* What `from` reports about the GPU with this index; NULL if nothing. */
static const char *peer_text(const struct gp_snapshot *snapshot, const struct gp_device *from,
                             unsigned index, enum gp_metric m)
{
    const struct gp_entry *e = NULL;
    while ((e = gp_smi_next_entry(snapshot, from, GP_SCOPE_PEER, e))) {
        const struct gp_value *number = gp_smi_entry_value(e, GP_PEER_NUMBER);
        const struct gp_value *v = gp_smi_entry_value(e, m);
        if (gp_value_is_present(number) && number->i == (int64_t)index)
            return gp_value_is_present(v) ? v->s : NULL;
    }
    return NULL;
}

static const struct gp_value *value_of(const struct gp_snapshot *snapshot,
                                       const struct gp_device *gpu, enum gp_metric m)
{
    return gp_snapshot_value(snapshot, gpu, NULL, m);
}

/* ---- the matrix ---- */

/* A row or column: a GPU or a network card. */
struct site {
    const struct gp_device *gpu;
    const struct gp_pci_network *network;
    const struct gp_pci_place *place;
    size_t number;
};

/* Iterates over the sites; starts from a zeroed one. */
static bool next_site(const struct printer *p, struct site *site)
{
    const struct gp_smi_sites *sites = p->sites;
    bool first = !site->gpu && !site->network;
    if (first || site->gpu) {
        site->number = first ? 0 : site->number + 1;
        site->gpu = next_gpu(p->snapshot, site->gpu);
        site->place = &sites->gpus[site->number];
        if (site->gpu)
            return true;
    }
    site->number = site->network ? site->number + 1 : 0;
    site->network = &sites->networks[site->number];
    site->place = &site->network->place;
    return site->number < sites->network_count;
}

/* Since 520, network cards are numbered; before, they have their names. */
static bool counts_networks(const struct printer *p)
{
    return p->form->driver >= GP_SMI_DRIVER(520, 0);
}

static void add_name(const struct printer *p, const struct site *site)
{
    if (site->gpu)
        gp_strbuf_addf(p->sb, "GPU%u", site->gpu->index);
    else if (counts_networks(p))
        gp_strbuf_addf(p->sb, "NIC%zu", site->number);
    else
        gp_strbuf_adds(p->sb, site->network->name);
}

static const char *connection(const struct printer *p, const struct site *row,
                              const struct site *column)
{
    bool pci_only = p->topo->question == GP_SMI_TOPO_MATRIX_PCI;
    if (row->place == column->place)
        return " X ";
    const char *text = row->gpu && column->gpu
                           ? peer_text(p->snapshot, row->gpu, column->gpu->index,
                                       pci_only ? GP_PEER_LEVEL : GP_PEER_CONNECTION)
                           : gp_pci_level(row->place, column->place);
    return text ? text : "N/A";
}

/* At most six ranges are shown. */
static void add_cpus(struct gp_strbuf *sb, const struct gp_value *v)
{
    size_t ranges = 0;
    for (const char *c = gp_value_is_present(v) ? v->s : ""; *c; c++) {
        ranges += *c == ',';
        if (ranges == 6)
            return;
        gp_strbuf_addc(sb, *c);
    }
}

/* The affinity columns after the connections of a row. The tabs are as irregular as in
 * nvidia-smi. */
static void add_affinity(const struct printer *p, const struct gp_device *gpu)
{
    bool has_node = p->form->driver >= GP_SMI_DRIVER(535, 0);
    if (!gpu) {
        gp_strbuf_adds(p->sb, has_node ? "\t\t\t\t\n" : "\t\t\n");
        return;
    }
    const struct gp_value *cpus = value_of(p->snapshot, gpu, GP_AFFINITY_CPU);
    const struct gp_value *memory = value_of(p->snapshot, gpu, GP_AFFINITY_MEMORY);
    gp_strbuf_addc(p->sb, '\t');
    add_cpus(p->sb, cpus);
    gp_strbuf_addc(p->sb, '\t');
    if (gp_value_is_present(memory))
        gp_strbuf_adds(p->sb, memory->s);
    else if (gp_value_is_present(cpus))
        gp_strbuf_adds(p->sb, "\tN/A");
    const struct gp_value *node = value_of(p->snapshot, gpu, GP_NUMA_NODE);
    if (has_node && gp_value_is_present(node))
        gp_strbuf_addf(p->sb, "\t\t%lld", (long long)node->i);
    else if (has_node)
        gp_strbuf_adds(p->sb, "\t\tN/A");
    gp_strbuf_addc(p->sb, '\n');
}

static void print_legend(const struct printer *p)
{
    gp_strbuf_adds(
        p->sb,
        "\nLegend:\n\n"
        "  X    = Self\n"
        "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "
        "(e.g., QPI/UPI)\n"
        "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
        "within a NUMA node\n"
        "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
        "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
        "Bridge)\n"
        "  PIX  = Connection traversing at most a single PCIe bridge\n");
    if (p->topo->question == GP_SMI_TOPO_MATRIX)
        gp_strbuf_adds(p->sb, "  NV#  = Connection traversing a bonded set of # NVLinks\n");
    if (!counts_networks(p) || p->sites->network_count == 0)
        return;
    gp_strbuf_adds(p->sb, "\nNIC Legend:\n\n");
    for (size_t i = 0; i < p->sites->network_count; i++)
        gp_strbuf_addf(p->sb, "  NIC%zu: %s\n", i, p->sites->networks[i].name);
    gp_strbuf_addc(p->sb, '\n');
}

static void print_matrix(const struct printer *p)
{
    bool has_node = p->form->driver >= GP_SMI_DRIVER(535, 0);
    struct site row = {NULL};
    gp_strbuf_adds(p->sb, "\t" UNDERLINE);
    for (struct site column = {NULL}; next_site(p, &column);) {
        add_name(p, &column);
        gp_strbuf_addc(p->sb, '\t');
    }
    gp_strbuf_addf(p->sb, "CPU Affinity\tNUMA Affinity%s" PLAIN "\n",
                   has_node ? "\tGPU NUMA ID" : "");
    while (next_site(p, &row)) {
        add_name(p, &row);
        for (struct site column = {NULL}; next_site(p, &column);)
            gp_strbuf_addf(p->sb, "\t%s", connection(p, &row, &column));
        add_affinity(p, row.gpu);
    }
    print_legend(p);
}

/* ---- P2P ---- */

static const struct {
    char letter;
    enum gp_metric metric;
} abilities[] = {
    {'r', GP_PEER_READ},    {'w', GP_PEER_WRITE}, {'n', GP_PEER_NVLINK},
    {'a', GP_PEER_ATOMICS}, {'p', GP_PEER_PCIE},
};

static size_t find_ability(char letter)
{
    size_t i = 0;
    while (i < GP_ARRAY_LEN(abilities) && abilities[i].letter != letter)
        i++;
    return i;
}

bool gp_smi_topo_knows(const char *letters)
{
    for (const char *c = letters; *c; c++)
        if (find_ability(*c) == GP_ARRAY_LEN(abilities))
            return false;
    return *letters != '\0';
}

/* OK if all requested properties are OK, otherwise the first that is not. */
static const char *p2p_state(const struct printer *p, const struct gp_device *from,
                             const struct gp_device *to)
{
    if (from == to)
        return "X";
    for (const char *c = p->topo->letters; *c; c++) {
        enum gp_metric m = abilities[find_ability(*c)].metric;
        const char *text = peer_text(p->snapshot, from, to->index, m);
        if (!text || strcmp(text, "OK") != 0)
            return text ? text : "U";
    }
    return "OK";
}

static void print_p2p(const struct printer *p)
{
    static const struct {
        const char *text;
        struct gp_smi_range drivers;
    } legend[] = {
        {"X    = Self", GP_SMI_ALL},
        {"OK   = Status Ok", GP_SMI_ALL},
        {"CNS  = Chipset not supported", GP_SMI_ALL},
        {"GNS  = GPU not supported", GP_SMI_ALL},
        {"TNS  = Topology not supported", GP_SMI_ALL},
        {"NS   = Not supported", GP_SMI_ALL},
        {"DR   = Disabled by regkey", GP_SMI_FROM(610, 0)},
        {"U    = Unknown", GP_SMI_ALL},
    };
    const struct gp_device *row = NULL;
    const struct gp_device *column = NULL;
    gp_strbuf_adds(p->sb, " \t" UNDERLINE);
    while ((column = next_gpu(p->snapshot, column)))
        gp_strbuf_addf(p->sb, "GPU%u\t", column->index);
    gp_strbuf_adds(p->sb, PLAIN "\n");
    while ((row = next_gpu(p->snapshot, row))) {
        gp_strbuf_addf(p->sb, " GPU%u\t", row->index);
        while ((column = next_gpu(p->snapshot, column)))
            gp_strbuf_addf(p->sb, "%s\t", p2p_state(p, row, column));
        gp_strbuf_addc(p->sb, '\n');
    }
    gp_strbuf_adds(p->sb, "\nLegend:\n\n");
    for (size_t i = 0; i < GP_ARRAY_LEN(legend); i++)
        if (gp_smi_in(p->form, legend[i].drivers))
            gp_strbuf_addf(p->sb, "  %s\n", legend[i].text);
}

/* ---- single answers ---- */

/* Whether a list such as "0-31,64-95" contains this number. */
static bool list_has(const char *list, uint64_t number)
{
    while (*list) {
        char *end;
        uint64_t first = strtoull(list, &end, 10);
        uint64_t last = *end == '-' ? strtoull(end + 1, &end, 10) : first;
        if (number >= first && number <= last)
            return true;
        list = *end ? end + 1 : end;
    }
    return false;
}

static void print_cpu(const struct printer *p)
{
    const char *separator = "";
    const struct gp_device *gpu = NULL;
    unsigned long long cpu = p->topo->number;
    while ((gpu = next_gpu(p->snapshot, gpu))) {
        const struct gp_value *cpus = value_of(p->snapshot, gpu, GP_AFFINITY_CPU);
        if (!gp_value_is_present(cpus) || !list_has(cpus->s, p->topo->number))
            continue;
        if (!*separator)
            gp_strbuf_addf(p->sb, "The GPUs that have an affinity with CPU %llu are:\n", cpu);
        gp_strbuf_addf(p->sb, "%s%u", separator, gpu->index);
        separator = ", ";
    }
    if (!*separator)
        gp_strbuf_addf(p->sb, "No GPUs were found to have an affinity with CPU %llu.", cpu);
    gp_strbuf_adds(p->sb, "\n\n");
}

/* Ordered by distance. */
static const struct {
    const char *level, *words;
} ways[GP_SMI_TOPO_DISTANCES] = {
    {"X", "a single PCIe switch on a dual GPU board"},
    {"PIX", "a single PCIe switch"},
    {"PXB", "potentially multiple PCIe switches"},
    {"PHB", "a PCIe host bridge"},
    {"NODE", "an on-CPU interconnect link between PCIe host bridges"},
    {"SYS", "an SMP interconnect link between NUMA nodes"},
};

static void print_nearest(const struct printer *p)
{
    const struct gp_device *gpu = next_gpu(p->snapshot, NULL);
    const struct gp_entry *e = NULL;
    const char *words = ways[p->topo->number].words;
    bool any = false;
    if (!gpu)
        return;
    while ((e = gp_smi_next_entry(p->snapshot, gpu, GP_SCOPE_PEER, e))) {
        const struct gp_value *number = gp_smi_entry_value(e, GP_PEER_NUMBER);
        const struct gp_value *level = gp_smi_entry_value(e, GP_PEER_LEVEL);
        if (!gp_value_is_present(number) || !gp_value_is_present(level) ||
            strcmp(level->s, ways[p->topo->number].level) != 0)
            continue;
        if (!any)
            gp_strbuf_addf(p->sb, "Device %u is connected by way of %s to device(s): ", gpu->index,
                           words);
        gp_strbuf_addf(p->sb, "%s%lld", any ? ", " : "", (long long)number->i);
        any = true;
    }
    if (!any)
        gp_strbuf_addf(p->sb, "Device %u is not connected to other devices by way of %s.",
                       gpu->index, words);
    gp_strbuf_adds(p->sb, "\n\n");
}

bool gp_smi_topo_has_ends(const struct gp_smi_topo *topo, const struct gp_snapshot *snapshot)
{
    size_t wanted = topo->question == GP_SMI_TOPO_PATH      ? 2
                    : topo->question == GP_SMI_TOPO_NEAREST ? 1
                    : topo->question == GP_SMI_TOPO_NODES   ? 1
                                                            : 0;
    size_t count = 0;
    for (const struct gp_device *gpu = NULL; (gpu = next_gpu(snapshot, gpu));)
        count++;
    return wanted == 0 || count == wanted;
}

static void print_path(const struct printer *p)
{
    const struct gp_device *from = next_gpu(p->snapshot, NULL);
    const struct gp_device *to = from ? next_gpu(p->snapshot, from) : NULL;
    const char *level = to ? peer_text(p->snapshot, from, to->index, GP_PEER_LEVEL) : NULL;
    if (to && !level)
        gp_strbuf_addf(p->sb, "Device %u is connected to device %u by way of N/A.\n", from->index,
                       to->index);
    for (size_t i = 0; level && i < GP_ARRAY_LEN(ways); i++)
        if (strcmp(ways[i].level, level) == 0)
            gp_strbuf_addf(p->sb, "Device %u is connected to device %u by way of %s.\n",
                           from->index, to->index, ways[i].words);
}

/* Without a node of its own, a GPU has "N/A" in place of the whole line. */
static void print_nodes(const struct printer *p)
{
    const struct {
        bool asked;
        const char *label;
        enum gp_metric metric;
    } rows[] = {
        {p->topo->cpu, "NUMA IDs of closest CPU: ", GP_AFFINITY_MEMORY},
        {p->topo->memory, "NUMA IDs of closest memory: ", GP_AFFINITY_MEMORY},
        {p->topo->gpu, "GPU NUMA ID: ", GP_NUMA_NODE},
    };
    const struct gp_device *gpu = next_gpu(p->snapshot, NULL);
    for (size_t i = 0; gpu && i < GP_ARRAY_LEN(rows); i++) {
        enum gp_metric m = rows[i].metric;
        const struct gp_value *v = value_of(p->snapshot, gpu, m);
        if (!rows[i].asked)
            continue;
        gp_strbuf_adds(p->sb, m == GP_NUMA_NODE && !gp_value_is_present(v) ? "" : rows[i].label);
        gp_smi_add_value(p->sb, p->form, m, v, GP_SMI_LOG);
        gp_strbuf_addc(p->sb, '\n');
    }
}

/* ---- the questions ---- */

#define WITH_PEER(...)                                                                             \
    {                                                                                              \
        GP_PCI_BUS_ID, GP_PEER_NUMBER, __VA_ARGS__                                                 \
    }

static const struct {
    enum gp_metric wanted[8];
    void (*print)(const struct printer *p);
} questions[] = {
    [GP_SMI_TOPO_MATRIX] = {WITH_PEER(GP_PEER_CONNECTION, GP_AFFINITY_CPU, GP_AFFINITY_MEMORY,
                                      GP_NUMA_NODE),
                            print_matrix},
    [GP_SMI_TOPO_MATRIX_PCI] = {WITH_PEER(GP_PEER_LEVEL, GP_AFFINITY_CPU, GP_AFFINITY_MEMORY,
                                          GP_NUMA_NODE),
                                print_matrix},
    [GP_SMI_TOPO_P2P] = {{GP_PEER_NUMBER}, print_p2p},
    [GP_SMI_TOPO_CPU] = {{GP_AFFINITY_CPU}, print_cpu},
    [GP_SMI_TOPO_NEAREST] = {WITH_PEER(GP_PEER_LEVEL), print_nearest},
    [GP_SMI_TOPO_PATH] = {WITH_PEER(GP_PEER_LEVEL), print_path},
    [GP_SMI_TOPO_NODES] = {{GP_AFFINITY_MEMORY, GP_NUMA_NODE}, print_nodes},
};

void gp_smi_topo_want(const struct gp_smi_topo *topo, struct gp_want *want)
{
    gp_smi_want_all(want, questions[topo->question].wanted);
    for (const char *c = topo->letters ? topo->letters : ""; *c; c++)
        gp_metric_set_add(&want->metrics, abilities[find_ability(*c)].metric);
}

void gp_smi_topo_print(struct gp_strbuf *sb, const struct gp_smi_topo *topo,
                       const struct gp_smi_form *form, const struct gp_snapshot *snapshot,
                       const struct gp_smi_sites *sites)
{
    const struct printer p = {sb, topo, form, snapshot, sites};
    questions[topo->question].print(&p);
}
