/* The CUDA checks that look at the user's environment. */
#ifndef GP_DOCTOR_CHECKS_CUDA_H
#define GP_DOCTOR_CHECKS_CUDA_H

struct gp_exam;

void gp_check_cuda_host(struct gp_exam *exam); /* part of cuda.toolkits */
void gp_check_cuda_env(struct gp_exam *exam);
void gp_check_cuda_ldpath(struct gp_exam *exam);

#endif
