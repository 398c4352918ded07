/* The lists of a GPU: how a reader builds rows. Shared by the files that read them.
 *
 * A reader adds row after row and fills the cells that are wanted; what it leaves alone is not
 * supported. What it returns is the status of the list as a whole. */
#ifndef GP_SOURCE_NVML_LISTS_H
#define GP_SOURCE_NVML_LISTS_H

#include "source/nvml/readers.h"

struct nvml_rows {
    struct nvml_device *device;
    const struct gp_metric_set *want;
    enum gp_scope scope;
    uint64_t now_ns;
    const struct gp_list *before; /* what was read last time */
    struct gp_list list;          /* what there is so far; words of a reader that fails */
    size_t capacity;
    struct gp_arena *arena; /* for text */
};

typedef nvmlReturn_t (*nvml_list_fn)(struct nvml_rows *rows);

/* Adds a row. NVML_ERROR_MEMORY, or NVML_ERROR_INSUFFICIENT_SIZE for more than NVML_LIST_MAX. */
nvmlReturn_t nvml_rows_add(struct nvml_rows *rows);

static inline bool nvml_rows_want(const struct nvml_rows *rows, enum gp_metric m)
{
    return gp_metric_set_has(rows->want, m);
}

/* A cell of a row. */
struct gp_value *nvml_rows_cell(const struct nvml_rows *rows, size_t row, enum gp_metric m);

/* Fill a cell with the outcome of a call. Numbers that no GPU has become errors; text is copied and
 * made safe. */
void nvml_cell_number(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                      uint64_t number);
void nvml_cell_real(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    double number);
void nvml_cell_text(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    const char *text);
/* A code as its name; one that has none is not supported. */
void nvml_cell_code(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    const struct code_name *names, uint64_t code);

/* Whether a cell is wanted and has to be asked for. One that was asked before and lasts, or was
 * refused, is filled with what is known of it; for that its row must mean the same each time. */
bool nvml_cell_is_due(const struct nvml_rows *rows, size_t row, enum gp_metric m);

/* In the last row, what is known. */
void nvml_put_number(const struct nvml_rows *rows, enum gp_metric m, uint64_t number);
void nvml_put_text(const struct nvml_rows *rows, enum gp_metric m, const char *text);

/* list_readers.c, links.c, topology.c, activity.c */
nvmlReturn_t nvml_list_clocks(struct nvml_rows *rows);
nvmlReturn_t nvml_list_pages(struct nvml_rows *rows);
nvmlReturn_t nvml_list_apps(struct nvml_rows *rows);
nvmlReturn_t nvml_list_fans(struct nvml_rows *rows);
nvmlReturn_t nvml_list_encoders(struct nvml_rows *rows);
nvmlReturn_t nvml_list_captures(struct nvml_rows *rows);
nvmlReturn_t nvml_list_links(struct nvml_rows *rows);
nvmlReturn_t nvml_list_peers(struct nvml_rows *rows);
nvmlReturn_t nvml_list_profiles(struct nvml_rows *rows);
nvmlReturn_t nvml_list_samples(struct nvml_rows *rows);

/* links.c: how many links the GPU has; 0 without, NOT_SUPPORTED in MIG mode. */
nvmlReturn_t nvml_link_count(struct nvml_device *device, unsigned *ret);
/* How many links of this or another GPU lead to an NVSwitch; where one of this GPU leads. */
nvmlReturn_t nvml_switch_links(struct nvml_device *device, nvmlDevice_t handle, unsigned *ret);
nvmlReturn_t nvml_link_remote(struct nvml_device *device, unsigned link, nvmlPciInfo_t *ret);

#endif
