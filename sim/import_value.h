/* Converts a text of a capture to a value of a machine file. Private to the import. */
#ifndef GPULSE_SIM_IMPORT_VALUE_H
#define GPULSE_SIM_IMPORT_VALUE_H

#include "sim/node.h"

#include <jansson.h>

enum sim_conversion {
    SIM_AS_IS,   /* a text, or a name of the answer's kind */
    SIM_COUNT,   /* "53", "51 %", "16x", "345 MHz", "500 KB/s": the leading integer */
    SIM_MIB,     /* "81559 MiB" in bytes */
    SIM_MILLI,   /* "68.57 W" in mW */
    SIM_US_NS,   /* "770461242 us" in ns */
    SIM_HEX,     /* "0x5300" */
    SIM_YES_NO,  /* 1 or 0 */
    SIM_DATE_US, /* "2026/08/20 14:59:03.740" in microseconds since 1970, as UTC */
};

/* One value: its place in the capture and in the machine file. */
struct sim_row {
    const char *path;
    const char *key, *member;
    enum sim_conversion as;
};

/* The return code for nvidia-smi's placeholder of a missing value; NULL for a real value. */
const char *sim_words_code(const char *text);

/* The leading number of a text, times a factor; false if there is none or it is too large. */
bool sim_parse_scaled(const char *text, double factor, json_int_t *ret);

/* The JSON for a text of the capture; NULL if it cannot be converted. */
json_t *sim_convert(const char *text, enum sim_conversion as);

/* Sets object[key], or object[key][member], unless it exists: if several rows provide an answer,
 * the first one in the capture wins. Takes ownership of `value`. */
bool sim_put(json_t *object, const char *key, const char *member, json_t *value);

/* Sets every row that the capture has. */
bool sim_put_rows(json_t *object, const struct sim_node *node, const struct sim_row *rows,
                  size_t count);

/* Memory in bytes, from a group with total, used, free and possibly reserved. */
json_t *sim_memory_info(const struct sim_node *group);

/* In import_gpu.c. The answers and fields of a GPU. `driver` is the major and minor version. */
bool sim_put_answers(json_t *answers, const struct sim_node *gpu, unsigned int pci_device_id);
bool sim_put_fields(json_t *fields, const struct sim_node *gpu, const unsigned int driver[2]);

/* In import_lists.c. The lists of a GPU; lists that the capture does not have are omitted. */
json_t *sim_import_lists(const struct sim_node *gpu);

#endif
