/* nvidia-smi topo: how GPUs, network cards and CPUs are connected. */
#ifndef GP_SMI_TOPO_H
#define GP_SMI_TOPO_H

#include "proc/pci.h"
#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

enum gp_smi_topo_question {
    GP_SMI_TOPO_MATRIX,     /* all connections */
    GP_SMI_TOPO_MATRIX_PCI, /* all connections, without NVLink */
    GP_SMI_TOPO_P2P,        /* which GPUs can access each other's memory */
    GP_SMI_TOPO_CPU,        /* the GPUs near a CPU */
    GP_SMI_TOPO_NEAREST,    /* the GPUs at a given distance from the first one */
    GP_SMI_TOPO_PATH,       /* the path from the first GPU to the second */
    GP_SMI_TOPO_NODES,      /* the NUMA nodes near a GPU */
};

enum { GP_SMI_TOPO_DISTANCES = 6 };

struct gp_smi_topo {
    enum gp_smi_topo_question question;
    const char *letters;   /* of P2P: all of these must work, of "rwnap" */
    uint64_t number;       /* the CPU, or the distance */
    bool cpu, memory, gpu; /* of NODES: which nodes */
};

/* Data that the driver does not report: where the GPUs are located, in the order of the snapshot,
 * and the network cards. */
struct gp_smi_sites {
    const struct gp_pci_place *gpus;
    const struct gp_pci_network *networks;
    size_t network_count;
};

/* Whether these are valid P2P letters. */
bool gp_smi_topo_knows(const char *letters);

void gp_smi_topo_want(const struct gp_smi_topo *topo, struct gp_want *want);

/* False if the query needs exactly one GPU, or two, and a different number is selected. */
bool gp_smi_topo_has_ends(const struct gp_smi_topo *topo, const struct gp_snapshot *snapshot);

void gp_smi_topo_print(struct gp_strbuf *sb, const struct gp_smi_topo *topo,
                       const struct gp_smi_form *form, const struct gp_snapshot *snapshot,
                       const struct gp_smi_sites *sites);

#endif
