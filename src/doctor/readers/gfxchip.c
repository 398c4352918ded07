#include "doctor/readers/gfxchip.h"

#include "doctor/machine.h"

#include <string.h>

struct range {
    unsigned first, last;
    const char *name, *kernel;
};

/* A range is a chip; numbers that no list has are not GPUs. The kernel is one that the first with
 * an amdgpu for the chip is not older than (Linux, amdgpu_drv.c and amdgpu_discovery.c). */
static const struct range ranges[] = {
    {0x67c0, 0x67df, "gfx803", "4.7"},   /* Polaris 10, 20 */
    {0x67e0, 0x67ff, "gfx803", "4.7"},   /* Polaris 11 */
    {0x6980, 0x699f, "gfx803", "4.7"},   /* Polaris 12 */
    {0x7300, 0x730f, "gfx803", "4.3"},   /* Fiji */
    {0x6860, 0x687f, "gfx900", "4.12"},  /* Vega 10 */
    {0x69a0, 0x69af, "gfx904", "4.16"},  /* Vega 12 */
    {0x66a0, 0x66af, "gfx906", "4.18"},  /* Vega 20: MI50, MI60, Radeon VII */
    {0x738c, 0x738e, "gfx908", "5.9"},   /* MI100 */
    {0x7408, 0x7410, "gfx90a", "5.13"},  /* MI200 */
    {0x74a0, 0x74bf, "gfx942", "6.5"},   /* MI300 */
    {0x75a0, 0x75bf, "gfx950", "6.14"},  /* MI350 */
    {0x15dd, 0x15dd, "gfx902", "4.15"},  /* Raven */
    {0x15d8, 0x15d8, "gfx902", "4.19"},  /* Picasso */
    {0x1636, 0x1636, "gfx90c", "5.5"},   /* Renoir */
    {0x1638, 0x1638, "gfx90c", "5.10"},  /* Cezanne */
    {0x164c, 0x164c, "gfx90c", "5.10"},  /* Lucienne */
    {0x15e7, 0x15e7, "gfx90c", "5.10"},  /* Barcelo */
    {0x7310, 0x731f, "gfx1010", "5.3"},  /* Navi 10 */
    {0x7360, 0x7362, "gfx1011", "5.4"},  /* Navi 12 */
    {0x7340, 0x734f, "gfx1012", "5.4"},  /* Navi 14 */
    {0x73a0, 0x73bf, "gfx1030", "5.9"},  /* Navi 21 */
    {0x73c0, 0x73df, "gfx1031", "5.10"}, /* Navi 22 */
    {0x73e0, 0x73ff, "gfx1032", "5.11"}, /* Navi 23 */
    {0x163f, 0x163f, "gfx1033", "5.10"}, /* Van Gogh */
    {0x7420, 0x743f, "gfx1034", "5.13"}, /* Navi 24 */
    {0x164d, 0x164d, "gfx1035", "5.14"}, /* Rembrandt */
    {0x1681, 0x1681, "gfx1035", "5.14"}, /* Rembrandt */
    {0x164e, 0x164e, "gfx1036", "5.18"}, /* Raphael */
    {0x13c0, 0x13c0, "gfx1036", "5.18"}, /* Granite Ridge */
    {0x7440, 0x745f, "gfx1100", "6.0"},  /* Navi 31 */
    {0x7460, 0x747f, "gfx1101", "6.0"},  /* Navi 32 */
    {0x7480, 0x749f, "gfx1102", "6.0"},  /* Navi 33 */
    {0x15bf, 0x15bf, "gfx1103", "6.0"},  /* Phoenix */
    {0x15c8, 0x15c8, "gfx1103", "6.0"},  /* Phoenix 2 */
    {0x1900, 0x1901, "gfx1103", "6.0"},  /* Hawk Point */
    {0x150e, 0x150e, "gfx1150", "6.7"},  /* Strix Point */
    {0x1586, 0x1586, "gfx1151", "6.9"},  /* Strix Halo */
    {0x1114, 0x1114, "gfx1152", "6.11"}, /* Krackan Point */
    {0x7590, 0x759f, "gfx1200", "6.11"}, /* Navi 44 */
    {0x7550, 0x755f, "gfx1201", "6.11"}, /* Navi 48 */
};

static const struct range *range_of(unsigned device)
{
    static const struct range none = {0, 0, "", ""};
    for (size_t i = 0; i < GP_ARRAY_LEN(ranges); i++)
        if (device >= ranges[i].first && device <= ranges[i].last)
            return &ranges[i];
    return &none;
}

const char *gp_gfx_of_chip(unsigned device)
{
    return range_of(device)->name;
}

const char *gp_gfx_kernel_of_chip(unsigned device)
{
    return range_of(device)->kernel;
}

/* What the GPUs are whose names begin so; the others, such as gfx803, do not count as a card
 * either: nobody expects ROCm to compute on them. */
enum kind { KIND_OTHER, KIND_CARD, KIND_INTEGRATED };

static enum kind kind_of(const char *name)
{
    static const struct {
        const char *start;
        enum kind kind;
    } kinds[] = {
        {"gfx900", KIND_CARD},        {"gfx902", KIND_INTEGRATED},  {"gfx906", KIND_CARD},
        {"gfx908", KIND_CARD},        {"gfx909", KIND_INTEGRATED},  {"gfx90a", KIND_CARD},
        {"gfx90c", KIND_INTEGRATED},  {"gfx94", KIND_CARD},         {"gfx95", KIND_CARD},
        {"gfx1013", KIND_INTEGRATED}, {"gfx101", KIND_CARD},        {"gfx1030", KIND_CARD},
        {"gfx1031", KIND_CARD},       {"gfx1032", KIND_CARD},       {"gfx1033", KIND_INTEGRATED},
        {"gfx1035", KIND_INTEGRATED}, {"gfx1036", KIND_INTEGRATED}, {"gfx1100", KIND_CARD},
        {"gfx1101", KIND_CARD},       {"gfx1102", KIND_CARD},       {"gfx1103", KIND_INTEGRATED},
        {"gfx115", KIND_INTEGRATED},  {"gfx120", KIND_CARD},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++)
        if (strncmp(name, kinds[i].start, strlen(kinds[i].start)) == 0)
            return kinds[i].kind;
    return KIND_OTHER;
}

bool gp_gfx_has_card(const struct gp_machine *machine)
{
    for (size_t i = 0; i < machine->gpu_count; i++)
        if (machine->gpus[i].vendor == GP_PCI_AMD &&
            kind_of(gp_gfx_of_chip(machine->gpus[i].device)) == KIND_CARD)
            return true;
    return false;
}

bool gp_gfx_is_integrated(const char *name)
{
    return kind_of(name) == KIND_INTEGRATED;
}
