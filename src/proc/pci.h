/* Where PCI devices sit, from /sys: the bridges and NUMA nodes between two of them, and the network
 * cards. The driver tells this of two GPUs, not of a GPU and a card.
 *
 * All files are read under a root prefix, so that a test is a directory. */
#ifndef GP_PROC_PCI_H
#define GP_PROC_PCI_H

#include "base/util.h"

struct gp_pci_place {
    int node;       /* of NUMA; −1: none */
    char path[240]; /* from the root complex on: "pci0000:17/0000:17:01.0/…"; "": not known */
};

/* An InfiniBand or RoCE card, as the kernel names it: "mlx5_0". */
struct gp_pci_network {
    char name[64];
    struct gp_pci_place place;
};

/* The place of a device by its address in the driver's form, "00000000:19:00.0". */
struct gp_pci_place gp_pci_find(const char *root, const char *bus_id);

/* The way between two devices in nvidia-smi's letters: PIX, PXB, PHB, NODE or SYS; NULL if one of
 * the places is not known. */
const char *gp_pci_level(const struct gp_pci_place *a, const struct gp_pci_place *b);

/* The cards in the order of their numbers; returns how many there are, `max` at most. */
size_t gp_pci_networks(const char *root, struct gp_pci_network *ret, size_t max);

#endif
