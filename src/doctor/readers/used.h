/* Of several frameworks in one environment: which ones the user's programs compute with. */
#ifndef GP_DOCTOR_READERS_USED_H
#define GP_DOCTOR_READERS_USED_H

#include "doctor/builds.h"

struct gp_exam;
struct gp_pyenv;
struct gp_pypackage;

/* What shows that programs of an environment compute with another framework than this one, so that
 * it matters little whether this one finds a GPU: "requirements.txt names torch". NULL: nothing
 * does. */
const char *gp_framework_aside(struct gp_exam *exam, const struct gp_pyenv *env,
                               enum gp_framework framework);

/* The package of a framework itself, with is_wheel only if conda did not install it; NULL: there is
 * none. */
const struct gp_pypackage *gp_framework_package(const struct gp_pyenv *env,
                                                enum gp_framework framework, bool is_wheel);

/* The number of frameworks that an environment has. */
size_t gp_pyenv_frameworks(const struct gp_pyenv *env);

/* A program of the project in the working directory, or around the environment, that contains one
 * of these texts (up to NULL); NULL: none does. */
const char *gp_project_program(struct gp_exam *exam, const struct gp_pyenv *env,
                               const char *const *words);

/* Likewise a shell script of the project, or direnv's .envrc; with is_firm only where it wants one
 * of them: in no comment, and not only on machines that have it. */
const char *gp_project_script(struct gp_exam *exam, const struct gp_pyenv *env,
                              const char *const *words, bool is_firm);

/* Likewise a program with one text. */
const char *gp_project_program_with(struct gp_exam *exam, const struct gp_pyenv *env,
                                    const char *word, bool is_firm);

/* Adds to a finding about a framework that it matters little. */
void gp_exam_aside(struct gp_exam *exam, const struct gp_pyenv *env, enum gp_framework framework);

#endif
