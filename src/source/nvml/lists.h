/* The lists of a GPU: helpers for readers to build rows.
 *
 * A reader adds rows and fills the requested cells; other cells are not supported. It returns the
 * status of the whole list. */
#ifndef GP_SOURCE_NVML_LISTS_H
#define GP_SOURCE_NVML_LISTS_H

#include "source/nvml/readers.h"

struct nvml_rows {
    struct nvml_device *device;
    const struct gp_metric_set *want;
    enum gp_scope scope;
    uint64_t now_ns;
    const struct gp_list *before; /* the previous content */
    struct gp_list list;          /* the rows so far; the reason if a reader fails */
    size_t capacity;
    struct gp_arena *arena; /* for texts */
    bool is_partial;        /* rows are missing values that a later read may have */
};

typedef nvmlReturn_t (*nvml_list_fn)(struct nvml_rows *rows);

/* Adds a row. Returns NVML_ERROR_MEMORY, or NVML_ERROR_INSUFFICIENT_SIZE for more than
 * NVML_LIST_MAX. */
nvmlReturn_t nvml_rows_add(struct nvml_rows *rows);

static inline bool nvml_rows_want(const struct nvml_rows *rows, enum gp_metric m)
{
    return gp_metric_set_has(rows->want, m);
}

/* A cell of a row. */
struct gp_value *nvml_rows_cell(const struct nvml_rows *rows, size_t row, enum gp_metric m);

/* Fill a cell with the result of a call. Impossible numbers become errors; texts are copied and
 * sanitized. */
void nvml_cell_number(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                      uint64_t number);
void nvml_cell_real(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    double number);
void nvml_cell_text(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    const char *text);
/* The name for a code; a code without a name is not supported. */
void nvml_cell_code(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    const struct code_name *names, uint64_t code);

/* Whether a cell is requested and must be read. A cell that was read before is filled from the
 * cache if it is permanent or was refused; its row must then mean the same every time. */
bool nvml_cell_is_due(const struct nvml_rows *rows, size_t row, enum gp_metric m);

/* Fill a cell of the last row with a known value. */
void nvml_put_number(const struct nvml_rows *rows, enum gp_metric m, uint64_t number);
void nvml_put_text(const struct nvml_rows *rows, enum gp_metric m, const char *text);

/* In list_readers.c, links.c, topology.c and activity.c. */
nvmlReturn_t nvml_list_clocks(struct nvml_rows *rows);
nvmlReturn_t nvml_list_pages(struct nvml_rows *rows);
nvmlReturn_t nvml_list_apps(struct nvml_rows *rows);
nvmlReturn_t nvml_list_fans(struct nvml_rows *rows);
nvmlReturn_t nvml_list_encoders(struct nvml_rows *rows);
nvmlReturn_t nvml_list_captures(struct nvml_rows *rows);
nvmlReturn_t nvml_list_links(struct nvml_rows *rows);
nvmlReturn_t nvml_list_peers(struct nvml_rows *rows);
nvmlReturn_t nvml_list_samples(struct nvml_rows *rows);

/* In mig_lists.c. */
nvmlReturn_t nvml_list_profiles(struct nvml_rows *rows);
nvmlReturn_t nvml_list_gpu_instances(struct nvml_rows *rows);
nvmlReturn_t nvml_list_compute_instances(struct nvml_rows *rows);
nvmlReturn_t nvml_list_compute_profiles(struct nvml_rows *rows);

/* In links.c. The number of links; 0 without, NOT_SUPPORTED in MIG mode. */
nvmlReturn_t nvml_link_count(struct nvml_device *device, unsigned *ret);
/* The sum of a field over all links. */
nvmlReturn_t nvml_sum_links(struct nvml_device *device, unsigned field, uint64_t *ret);
/* The number of links of this or another GPU that lead to an NVSwitch; and where a link of this GPU
 * leads. */
nvmlReturn_t nvml_switch_links(struct nvml_device *device, nvmlDevice_t handle, unsigned *ret);
nvmlReturn_t nvml_link_remote(struct nvml_device *device, unsigned link, nvmlPciInfo_t *ret);

#endif
