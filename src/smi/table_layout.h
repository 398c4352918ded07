/* The layouts of the summary: what the boxes of each driver look like. */
#ifndef GP_SMI_TABLE_LAYOUT_H
#define GP_SMI_TABLE_LAYOUT_H

#include "smi/form.h"

enum { GP_SMI_BOX_LINES = 3, GP_SMI_BOX_COLUMNS = 4 };

/* A column of a box: the lines of its heading and of an entry, in which "%6s" and "%-6s" are cells.
 * Shorter lines are padded with blanks. */
struct gp_smi_box_column {
    size_t width;
    const char *head[GP_SMI_BOX_LINES];
    const char *entry[GP_SMI_BOX_LINES];
};

struct gp_smi_box {
    const struct gp_smi_box_column *columns[GP_SMI_BOX_COLUMNS];
    size_t head_lines, entry_lines;
    bool ruled;       /* a rule below each entry, not only below the last */
    const char *none; /* replaces missing entries */
};

/* A word of the driver and its replacement in the cell. */
struct gp_smi_cell_word {
    const char *word, *cell;
};

enum gp_smi_memory { GP_SMI_MEMORY_KNOWN, GP_SMI_MEMORY_DENIED, GP_SMI_MEMORY_NONE };

struct gp_smi_gpu_box {
    struct gp_smi_box box;
    const char *banner;
    const char *const *memory; /* by enum gp_smi_memory */
    const struct gp_smi_cell_word *modes;
    size_t name_max;
    const char *no_unit; /* after a word that replaces a power value */
};

struct gp_smi_process_box {
    struct gp_smi_box box;
    size_t name_max;
};

struct gp_smi_layout {
    struct gp_smi_range drivers;
    const struct gp_smi_gpu_box *gpus;
    const struct gp_smi_box *migs;
    const struct gp_smi_process_box *processes;
    const char *model; /* heading of the driver model, on Windows */
    char corner;       /* at the left of the rule below the banner */
    size_t blanks;     /* in the line above the processes */
};

/* The layout of this driver. */
const struct gp_smi_layout *gp_smi_layout_of(const struct gp_smi_form *form);

#endif
