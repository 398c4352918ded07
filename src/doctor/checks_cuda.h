/* The checks of CUDA's user space that look at the environment of who examines. */
#ifndef GP_DOCTOR_CHECKS_CUDA_H
#define GP_DOCTOR_CHECKS_CUDA_H

struct gp_exam;

void gp_check_cuda_env(struct gp_exam *exam);
void gp_check_cuda_ldpath(struct gp_exam *exam);

#endif
