/* Advice: which version of a framework, CUDA or the driver fits a machine, and how to install it.
 * Advice is reported as findings of the exam: the summary is what to install, the fixes are the
 * commands, and the evidence gives details and the source of the table rows. */
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

/* The machine that advice is for: the examined one, or a hypothetical one. */
struct gp_client {
    const char *driver;                     /* "": none is loaded, or none was named */
    unsigned capabilities[GP_MACHINE_GPUS]; /* each once, ascending; 0: unknown */
    size_t count;
    bool is_here;        /* the examined machine */
    const char *models;  /* the GPUs as the user named them; NULL */
    const char *version; /* of the framework, "2.8" or "2.8.1"; NULL: the best one is wanted */
};

void gp_client_add(struct gp_client *client, unsigned capability);

/* The examined machine's NVIDIA GPUs and driver. */
void gp_client_of(struct gp_client *ret, struct gp_exam *exam);

void gp_advise(struct gp_exam *exam, enum gp_subject subject, const struct gp_client *client);

#endif
