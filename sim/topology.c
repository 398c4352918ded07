#include "sim/topology.h"

#include "base/err.h"
#include "base/util.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    nvmlGpuTopologyLevel_t level;
} level_names[] = {
    {"X", NVML_TOPOLOGY_INTERNAL},   {"PIX", NVML_TOPOLOGY_SINGLE},
    {"PXB", NVML_TOPOLOGY_MULTIPLE}, {"PHB", NVML_TOPOLOGY_HOSTBRIDGE},
    {"NODE", NVML_TOPOLOGY_NODE},    {"SYS", NVML_TOPOLOGY_SYSTEM},
};

static const struct {
    const char *name;
    nvmlGpuP2PStatus_t status;
} p2p_names[] = {
    {"OK", NVML_P2P_STATUS_OK},
    {"CNS", NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED},
    {"GNS", NVML_P2P_STATUS_GPU_NOT_SUPPORTED},
    {"TNS", NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED},
    {"DR", NVML_P2P_STATUS_DISABLED_BY_REGKEY},
    {"NS", NVML_P2P_STATUS_NOT_SUPPORTED},
    {"U", NVML_P2P_STATUS_UNKNOWN},
};

static int load_levels(json_t *json, struct sim_topology *ret, struct gp_err *err)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count == 0 || count > SIM_MAX_LEVELS)
        return gp_err_set(err, GP_EFORMAT, "levels: expected an array of 1 to %d names",
                          SIM_MAX_LEVELS);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(json, i));
        size_t k = 0;
        while (text && k < GP_ARRAY_LEN(level_names) && strcmp(level_names[k].name, text) != 0)
            k++;
        if (!text || k == GP_ARRAY_LEN(level_names))
            return gp_err_set(err, GP_EFORMAT, "levels[%zu]: expected PIX, PXB, PHB, NODE or SYS",
                              i);
        ret->levels[i] = level_names[k].level;
    }
    ret->level_count = count;
    return GP_OK;
}

bool sim_topology_mask(const char *list, size_t bits, unsigned long *mask)
{
    const size_t word = CHAR_BIT * sizeof(*mask);
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        if (last < first || last >= bits)
            return false;
        for (unsigned long bit = first; mask && bit <= last; bit++)
            mask[bit / word] |= 1UL << bit % word;
        if (*end == '\0')
            return true;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

static int load_sockets(json_t *json, const char *key, struct gp_arena *arena, const char **texts,
                        size_t *ret_count, struct gp_err *err)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count > SIM_MAX_SOCKETS)
        return gp_err_set(err, GP_EFORMAT, "%s: expected an array of at most %d lists", key,
                          SIM_MAX_SOCKETS);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(json, i));
        /* Empty: this process may not use any CPU of the socket. */
        if (!text || (*text && !sim_topology_mask(text, 4096, NULL)))
            return gp_err_set(err, GP_EFORMAT,
                              "%s[%zu]: expected a list, for example \"0-31,64-95\"", key, i);
        if (!(texts[i] = gp_arena_strdup(arena, text)))
            return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    *ret_count = count;
    return GP_OK;
}

static int load_p2p(json_t *json, struct sim_topology *ret, struct gp_err *err)
{
    const char *text = json_string_value(json);
    for (size_t i = 0; text && i < GP_ARRAY_LEN(p2p_names); i++)
        if (strcmp(p2p_names[i].name, text) == 0) {
            ret->p2p = p2p_names[i].status;
            return GP_OK;
        }
    return gp_err_set(err, GP_EFORMAT, "p2p: expected OK, CNS, GNS, TNS, DR, NS or U");
}

int sim_topology_load(json_t *json, struct gp_arena *arena, struct sim_topology *ret,
                      struct gp_err *err)
{
    const char *key;
    json_t *value;
    ret->p2p = NVML_P2P_STATUS_NOT_SUPPORTED;
    if (json && !json_is_object(json))
        return gp_err_set(err, GP_EFORMAT, "expected an object");
    json_object_foreach(json, key, value)
    {
        int r;
        if (strcmp(key, "levels") == 0)
            r = load_levels(value, ret, err);
        else if (strcmp(key, "cpus") == 0)
            r = load_sockets(value, key, arena, ret->cpus, &ret->cpu_count, err);
        else if (strcmp(key, "nodes") == 0)
            r = load_sockets(value, key, arena, ret->nodes, &ret->node_count, err);
        else if (strcmp(key, "p2p") == 0)
            r = load_p2p(value, ret, err);
        else
            r = gp_err_set(err, GP_EFORMAT, "unknown key '%.60s'; known: levels, cpus, nodes, p2p",
                           key);
        if (r < 0)
            return r;
    }
    return GP_OK;
}

nvmlReturn_t sim_topology_level(const struct sim_topology *topology, unsigned int a, unsigned int b,
                                nvmlGpuTopologyLevel_t *ret)
{
    if (topology->level_count == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    size_t i = (a ^ b) < topology->level_count ? a ^ b : topology->level_count;
    *ret = a == b ? NVML_TOPOLOGY_INTERNAL : topology->levels[i - 1];
    return NVML_SUCCESS;
}
