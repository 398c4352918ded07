/* How many lanes the cards of a chip are wired to. */
#include "doctor/checks/hardware.h"

#include "doctor/machine.h"
#include "doctor/tables.h"

#include <string.h>

/* Chips with fewer lanes than 16, by the ids of their devices or, of NVIDIA's, by their code. Some
 * report 16 all the same: what they are wired to is not a fault. */
static const struct {
    unsigned vendor, first, last;
    const char *code;
    long lanes;
} narrow_chips[] = {
    {GP_PCI_AMD, 0x67e0, 0x67ff, "", 8},          /* Polaris 11: RX 460, RX 560 */
    {GP_PCI_AMD, 0x6980, 0x699f, "", 8},          /* Polaris 12: RX 550 */
    {GP_PCI_AMD, 0x7340, 0x734f, "", 8},          /* Navi 14: RX 5500 */
    {GP_PCI_AMD, 0x73e0, 0x73ff, "", 8},          /* Navi 23: RX 6600 */
    {GP_PCI_AMD, 0x7420, 0x743f, "", 4},          /* Navi 24: RX 6400, RX 6500 */
    {GP_PCI_AMD, 0x7480, 0x749f, "", 8},          /* Navi 33: RX 7600 */
    {GP_PCI_NVIDIA, 0, 0, "GP108", 4},            /* GT 1030 */
    {GP_PCI_NVIDIA, 0, 0, "GA107", 8},            /* RTX 3050, RTX A1000 */
    {GP_PCI_NVIDIA, 0, 0, "GeForce RTX 3050", 8}, /* also with half of a GA106 */
    {GP_PCI_NVIDIA, 0, 0, "AD106", 8},            /* RTX 4060 Ti */
    {GP_PCI_NVIDIA, 0, 0, "AD107", 8},            /* RTX 4060 */
    {GP_PCI_NVIDIA, 0, 0, "GB206", 8},            /* RTX 5060 */
    {GP_PCI_NVIDIA, 0, 0, "GB207", 8},            /* RTX 5050 */
};

long gp_hardware_lanes_of(const struct gp_pci_gpu *gpu, long others)
{
    const char *name = gpu->chip ? gpu->chip->name : "";
    for (size_t i = 0; i < GP_ARRAY_LEN(narrow_chips); i++)
        if (narrow_chips[i].vendor == gpu->vendor &&
            (narrow_chips[i].code[0]
                 ? strstr(name, narrow_chips[i].code) != NULL
                 : gpu->device >= narrow_chips[i].first && gpu->device <= narrow_chips[i].last))
            return narrow_chips[i].lanes;
    return others;
}
