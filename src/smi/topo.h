/* nvidia-smi topo: how the GPUs hang together, with network cards and with processors. */
#ifndef GP_SMI_TOPO_H
#define GP_SMI_TOPO_H

#include "proc/pci.h"
#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

enum gp_smi_topo_question {
    GP_SMI_TOPO_MATRIX,     /* everything to everything else */
    GP_SMI_TOPO_MATRIX_PCI, /* the same without NVLink */
    GP_SMI_TOPO_P2P,        /* which GPUs reach each other's memory */
    GP_SMI_TOPO_CPU,        /* the GPUs near to a processor */
    GP_SMI_TOPO_NEAREST,    /* the GPUs at a distance from the first one */
    GP_SMI_TOPO_PATH,       /* the way from the first GPU to the second */
    GP_SMI_TOPO_NODES,      /* the NUMA nodes near to a GPU */
};

enum { GP_SMI_TOPO_DISTANCES = 6 };

struct gp_smi_topo {
    enum gp_smi_topo_question question;
    const char *letters;   /* of P2P: all these must work, of "rwnap" */
    uint64_t number;       /* the processor, or the distance */
    bool cpu, memory, gpu; /* of NODES: which */
};

/* What the driver does not tell: where the GPUs sit, in the order of the snapshot, and the network
 * cards. */
struct gp_smi_sites {
    const struct gp_pci_place *gpus;
    const struct gp_pci_network *networks;
    size_t network_count;
};

/* Whether these are letters of P2P. */
bool gp_smi_topo_knows(const char *letters);

void gp_smi_topo_want(const struct gp_smi_topo *topo, struct gp_want *want);

/* False if it is a question about one GPU, or about two, and there are more or fewer. */
bool gp_smi_topo_has_ends(const struct gp_smi_topo *topo, const struct gp_snapshot *snapshot);

void gp_smi_topo_print(struct gp_strbuf *sb, const struct gp_smi_topo *topo,
                       const struct gp_smi_form *form, const struct gp_snapshot *snapshot,
                       const struct gp_smi_sites *sites);

#endif
