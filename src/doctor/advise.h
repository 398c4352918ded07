/* Advice: which version of a framework, of CUDA or of the driver fits a machine, and how to install
 * it. It is given as findings of the exam: the summary is what to take, the fixes are the commands,
 * the evidence says what it is and where the rows of the tables are from. */
#ifndef GP_DOCTOR_ADVISE_H
#define GP_DOCTOR_ADVISE_H

#include "doctor/builds.h"
#include "doctor/exam.h"

/* X(id, word) */
#define GP_SUBJECTS(X)                                                                             \
    X(TORCH, "torch")                                                                              \
    X(TENSORFLOW, "tensorflow")                                                                    \
    X(JAX, "jax")                                                                                  \
    X(CUDA, "cuda")                                                                                \
    X(DRIVER, "driver")

enum gp_subject {
#define X(id, word) GP_SUBJECT_##id,
    GP_SUBJECTS(X)
#undef X
        GP_SUBJECT__COUNT
};

const char *gp_subject_word(enum gp_subject subject);

/* Whom the advice is for: the machine of an exam, or one that is thought of. */
struct gp_client {
    const char *driver;                     /* "": none is loaded, or none is named */
    unsigned capabilities[GP_MACHINE_GPUS]; /* each once, ascending; 0: not known */
    size_t count;
    bool is_here; /* it is the machine of the exam */
};

void gp_client_add(struct gp_client *client, unsigned capability);

/* The machine's NVIDIA GPUs and driver. */
void gp_client_of(struct gp_client *ret, const struct gp_machine *machine);

void gp_advise(struct gp_exam *exam, enum gp_subject subject, const struct gp_client *client);

#endif
