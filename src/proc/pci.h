/* The location of PCI devices, from /sys: bridges and NUMA nodes between two devices, and network
 * cards. The driver only reports this for two GPUs, not for a GPU and a network card.
 *
 * All files are read under a root prefix, so that a test is a directory. */
#ifndef GP_PROC_PCI_H
#define GP_PROC_PCI_H

#include "base/util.h"

struct gp_pci_place {
    int node;       /* NUMA node; −1: none */
    char path[240]; /* from the root complex: "pci0000:17/0000:17:01.0/…"; "": unknown */
};

/* An InfiniBand or RoCE card, by its kernel name: "mlx5_0". */
struct gp_pci_network {
    char name[64];
    struct gp_pci_place place;
};

/* The location of a device by its address in the driver's format, "00000000:19:00.0". */
struct gp_pci_place gp_pci_find(const char *root, const char *bus_id);

/* The connection of two devices in nvidia-smi's words: PIX, PXB, PHB, NODE or SYS; NULL if a
 * location is unknown. */
const char *gp_pci_level(const struct gp_pci_place *a, const struct gp_pci_place *b);

/* The cards in the order of their numbers; returns how many there are, at most `max`. */
size_t gp_pci_networks(const char *root, struct gp_pci_network *ret, size_t max);

#endif
