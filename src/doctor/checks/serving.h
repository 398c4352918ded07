/* Servers of language models that divide a model among GPUs: vLLM, SGLang, TGI. */
#ifndef GP_DOCTOR_CHECKS_SERVING_H
#define GP_DOCTOR_CHECKS_SERVING_H

#include "base/util.h"

struct gp_exam;

/* The number of this machine's GPUs that a command of such a server wants; 0: it is none, or may
 * mean GPUs of several machines. */
unsigned gp_serving_gpus(const char *command);

/* Whether GPUs are divided into parts (MIG), which count as GPUs. */
bool gp_serving_has_parts(struct gp_exam *exam);

/* Why more GPUs than there are do not work, for a finding. */
void gp_serving_explain(struct gp_exam *exam);

/* Services that systemd starts with more GPUs than there are. */
bool gp_serving_wants_more(struct gp_exam *exam);
void gp_serving_check_services(struct gp_exam *exam);

#endif
