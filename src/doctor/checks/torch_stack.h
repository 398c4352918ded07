/* Packages on top of a PyTorch that do not take another one, and how to change both together. */
#ifndef GP_DOCTOR_CHECKS_TORCH_STACK_H
#define GP_DOCTOR_CHECKS_TORCH_STACK_H

#include "doctor/builds.h"

struct gp_case;
struct gp_exam;
struct gp_nvidia;
struct gp_pyenv;
struct gp_pypackage;
struct gp_torch;

enum gp_stack {
    GP_STACK_FREE,  /* nothing keeps the environment on its PyTorch */
    GP_STACK_FIXED, /* the fix changes the packages that do */
    GP_STACK_KEPT,  /* they keep it; the fix must be another one */
};

/* The release of a package that requires this PyTorch, by the table; NULL: unknown. */
const struct gp_torch_stack *gp_torch_stack_for(const char *package, const char *torch);

/* The oldest PyTorch from a version on that runs here, with this Python; false: none. */
bool gp_torch_oldest_from(const struct gp_pyenv *env, const struct gp_nvidia *nv, const char *least,
                          struct gp_build *ret);

/* A fix, instead of another PyTorch: updates the packages that do not allow `build`. Not where the
 * PyTorch would run with a newer driver: that driver is the fix. */
enum gp_stack gp_torch_stack_propose(struct gp_exam *exam, const struct gp_nvidia *nv,
                                     const struct gp_case *c, const struct gp_build *build);

/* Adds which of pip's packages need another release after conda has changed PyTorch. */
void gp_torch_stack_advise(struct gp_exam *exam, const struct gp_case *c,
                           const struct gp_build *build);

/* A fix: updates a package that is for an older PyTorch than the installed one. */
void gp_torch_stack_update(struct gp_exam *exam, const struct gp_pyenv *env,
                           const struct gp_pypackage *package, const struct gp_torch *torch,
                           const char *note);

/* Adds which of the installed packages must be compiled again for another PyTorch. */
void gp_torch_compile_again(struct gp_exam *exam, const struct gp_pyenv *env);

#endif
