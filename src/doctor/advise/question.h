/* The question that advice answers: about which subject, and for which machine. */
#ifndef GP_DOCTOR_ADVISE_QUESTION_H
#define GP_DOCTOR_ADVISE_QUESTION_H

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

/* Parses "torch", "torch==2.8", or "torch" and "2.8". *ret_version points into the words; NULL:
 * none is asked for. GP_EUSAGE. */
int gp_subject_parse(int count, char *const *words, enum gp_subject *ret, const char **ret_version,
                     struct gp_err *err) GP_MUST_CHECK;

/* The machine that advice is for: the examined one, or a hypothetical one. */
struct gp_client {
    const char *driver;                     /* "": none is loaded, or none was named */
    unsigned capabilities[GP_MACHINE_GPUS]; /* each once, ascending; 0: unknown */
    size_t count;
    bool is_here;        /* the examined machine */
    const char *models;  /* the GPUs as the user named them; NULL */
    const char *version; /* of the framework, "2.8" or "2.8.1"; NULL: the best one is wanted */
};

/* Adds a GPU, unless there is one like it. */
void gp_client_add(struct gp_client *client, unsigned capability);

/* The NVIDIA GPUs and the driver of the examined machine. If they are given, `models` ("RTX
 * 4090,8.0") and `driver` replace them; otherwise these are NULL, as is `version` if any is good.
 * The client points to them, and to the exam. GP_EUSAGE names the unknown one. */
int gp_client_read(struct gp_client *ret, struct gp_exam *exam, const char *models,
                   const char *driver, const char *version, struct gp_err *err) GP_MUST_CHECK;

/* "GPUs of compute capability 6.1 and 12.0" */
const char *gp_client_gpus(struct gp_exam *exam, const struct gp_client *client);

/* "driver 550.54.15"; "any driver" if none is known. */
const char *gp_client_driver(struct gp_exam *exam, const struct gp_client *client);

/* The options that repeat the question about another machine. */
const char *gp_client_options(struct gp_exam *exam, const struct gp_client *client,
                              bool with_driver);

/* The range of driver branches that support all of its GPUs; 0: no limit. */
void gp_client_branches(const struct gp_client *client, unsigned *first, unsigned *last);

/* Whether a text is a compute capability, "8.9", which is stored as 89; otherwise it is a name. */
bool gp_capability_parse(const char *text, unsigned *ret);

#endif
