/* Shared by the checks of the GPUs' health. */
#ifndef GP_DOCTOR_CHECKS_HEALTH_H
#define GP_DOCTOR_CHECKS_HEALTH_H

#include "doctor/readers/gpuset.h"
#include "source/source.h"
#include "why/health_rules.h"

/* What the health checks read of the driver. */
struct gp_want gp_health_want(void);

/* Whether a driver should respond: it was queried, and there is something to query. */
bool gp_health_is_expected(struct gp_exam *exam);

enum gp_verdict gp_health_verdict(enum gp_health_grade grade);

/* Adds it to the finding, for these GPUs. */
void gp_health_prescribe(struct gp_exam *exam, enum gp_cure cure, const struct gp_gpuset *set);

/* The checks in separate files. */
void gp_health_run_mig(struct gp_exam *exam);
bool gp_health_has_mig(struct gp_exam *exam);
void gp_health_run_manager(struct gp_exam *exam);
bool gp_health_has_manager(struct gp_exam *exam);
void gp_health_run_nvlink(struct gp_exam *exam);
bool gp_health_has_nvlink(struct gp_exam *exam);
void gp_health_run_unattributed(struct gp_exam *exam);
bool gp_health_has_unattributed(struct gp_exam *exam);
void gp_health_run_orphans(struct gp_exam *exam);
bool gp_health_has_orphans(struct gp_exam *exam);
void gp_health_run_peers(struct gp_exam *exam);
bool gp_health_has_peers(struct gp_exam *exam);
void gp_health_run_rdma(struct gp_exam *exam);
bool gp_health_has_rdma(struct gp_exam *exam);

#endif
