/* nvidia-smi mig: possible and existing MIG instances, and the messages about changes. */
#ifndef GP_SMI_MIG_H
#define GP_SMI_MIG_H

#include "smi/form.h"

struct gp_part;
struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

enum gp_smi_mig_list {
    GP_SMI_MIG_PROFILES,          /* -lgip */
    GP_SMI_MIG_PLACEMENTS,        /* -lgipp */
    GP_SMI_MIG_INSTANCES,         /* -lgi */
    GP_SMI_MIG_COMPUTE_PROFILES,  /* -lcip */
    GP_SMI_MIG_COMPUTE_INSTANCES, /* -lci */
};

enum { GP_SMI_MIG_IDS_MAX = 32 };

/* A set of ids; if empty, all are selected. */
struct gp_smi_mig_ids {
    unsigned ids[GP_SMI_MIG_IDS_MAX];
    size_t count;
};

struct gp_smi_mig {
    enum gp_smi_mig_list list;
    struct gp_smi_mig_ids gpu_instances, compute_instances;
};

/* Parses a comma-separated list of ids. */
bool gp_smi_mig_parse_ids(const char *text, struct gp_smi_mig_ids *ret);
bool gp_smi_mig_has_id(const struct gp_smi_mig_ids *ids, int64_t id);

void gp_smi_mig_want(const struct gp_smi_mig *mig, struct gp_want *want);

/* If there is nothing to list, appends the reason and returns the exit status; otherwise 0. */
#define GP_SMI_NO_MIG "No MIG-enabled devices found.\n"

int gp_smi_mig_refuse(const struct gp_smi_mig *mig, struct gp_strbuf *message,
                      const struct gp_snapshot *snapshot);

void gp_smi_mig_print(struct gp_strbuf *sb, const struct gp_smi_mig *mig,
                      const struct gp_smi_form *form, const struct gp_snapshot *snapshot);

/* Appends the result of a step on this GPU: `error` is the driver's reason for a refusal, NULL
 * after a success. */
void gp_smi_mig_say(struct gp_strbuf *sb, unsigned gpu, const struct gp_part *part,
                    const char *error);

#endif
