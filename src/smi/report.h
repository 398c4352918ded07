/* The report of all values: `-q` as text, `-q -x` as XML. One tree (report.def), two writers. */
#ifndef GP_SMI_REPORT_H
#define GP_SMI_REPORT_H

#include "model/metric.h"
#include "smi/form.h"

struct gp_err;
struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

/* The sections for -d, in the order of nvidia-smi's help. */
#define GP_SMI_SECTIONS(X)                                                                         \
    X(MEMORY)                                                                                      \
    X(UTILIZATION)                                                                                 \
    X(ECC)                                                                                         \
    X(TEMPERATURE)                                                                                 \
    X(POWER)                                                                                       \
    X(CLOCK)                                                                                       \
    X(COMPUTE)                                                                                     \
    X(PIDS)                                                                                        \
    X(PERFORMANCE)                                                                                 \
    X(SUPPORTED_CLOCKS)                                                                            \
    X(PAGE_RETIREMENT)                                                                             \
    X(ACCOUNTING)                                                                                  \
    X(ENCODER_STATS)                                                                               \
    X(SUPPORTED_GPU_TARGET_TEMP)                                                                   \
    X(VOLTAGE)                                                                                     \
    X(FBC_STATS)                                                                                   \
    X(ROW_REMAPPER)                                                                                \
    X(RESET_STATUS)                                                                                \
    X(GSP_FIRMWARE_VERSION)                                                                        \
    X(POWER_SMOOTHING)                                                                             \
    X(POWER_PROFILES)

enum gp_smi_section {
#define X(id) GP_SMI_##id,
    GP_SMI_SECTIONS(X)
#undef X
        GP_SMI_SECTION__COUNT,
};

struct gp_smi_report {
    bool xml;
    bool units;        /* report units, not GPUs */
    /* gp_smi_add_dtd(), to include the document type in the XML; NULL: name its file */
    void (*add_dtd)(struct gp_strbuf *sb, const struct gp_smi_form *form, bool units);
    uint32_t sections; /* bits 1 << gp_smi_section; 0: all */
};

/* Finds a section by its name (n bytes, case-insensitive); false if there is none. */
bool gp_smi_section_find(const char *name, size_t n, enum gp_smi_section *ret);

void gp_smi_report_want(const struct gp_smi_report *report, struct gp_want *want);

/* nvsmi_device_vN.dtd: programs select their parser by this number. */
unsigned gp_smi_dtd_version(const struct gp_smi_form *form);

/* An element of a GPU in the XML. */
struct gp_smi_element {
    struct gp_smi_range
        drivers;     /* drivers that print it, including all following elements of higher levels */
    unsigned level;  /* 1: directly below the GPU or MIG device */
    const char *tag; /* NULL: the following elements belong to its parent */
    enum gp_smi_element_kind { GP_SMI_LEAF, GP_SMI_BRANCH, GP_SMI_PART } kind;
    enum gp_scope scope; /* of a part: the list of its entries; DEVICE: MIG devices */
    bool conditional;    /* not present for every GPU */
};

/* The i-th element of a GPU or a MIG device; false after the last one. */
bool gp_smi_report_element(bool mig, size_t i, struct gp_smi_element *ret);

/* Appends the whole document. */
void gp_smi_report_print(struct gp_strbuf *sb, const struct gp_smi_report *report,
                         const struct gp_smi_form *form, const struct gp_snapshot *snapshot);

#endif
