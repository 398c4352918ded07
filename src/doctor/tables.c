#include "doctor/tables.h"

#include "model/event.h"

#include <stdlib.h>
#include <string.h>

enum { NVIDIA = 0x10de };

static int compare_chip(const void *key, const void *row)
{
    const unsigned *device = key;
    const struct gp_chip *chip = row;
    return (*device > chip->device) - (*device < chip->device);
}

const struct gp_chip *gp_chip_find(unsigned vendor, unsigned device)
{
    if (vendor != NVIDIA)
        return NULL;
    return bsearch(&device, gp_chips, gp_chip_count, sizeof(gp_chips[0]), compare_chip);
}

/* For tables whose key, a number, is the first member. */
static int compare_number(const void *key, const void *row)
{
    const unsigned *a = key, *b = row;
    return (*a > *b) - (*a < *b);
}

#define FIND(table, count, number)                                                                 \
    bsearch(&(number), table, count, sizeof((table)[0]), compare_number)

bool gp_xid_row_find(unsigned code, struct gp_xid_row *ret)
{
    const struct gp_xid_row *row = FIND(gp_xid_rows, gp_xid_row_count, code);
    const struct gp_xid_info *info = gp_xid_find(code);
    if (!row)
        return false;
    *ret = *row;
    if (info) {
        ret->words = info->words;
        ret->fault = info->fault;
        ret->advice = info->advice;
    }
    return true;
}

const struct gp_sxid_row *gp_sxid_row_find(unsigned code)
{
    return FIND(gp_sxid_rows, gp_sxid_row_count, code);
}

const struct gp_recovery_action *gp_recovery_action_find(unsigned number)
{
    return FIND(gp_recovery_actions, gp_recovery_action_count, number);
}
