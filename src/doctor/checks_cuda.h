/* The CUDA checks that look at the user's environment. */
#ifndef GP_DOCTOR_CHECKS_CUDA_H
#define GP_DOCTOR_CHECKS_CUDA_H

struct gp_exam;

/* parts of cuda.toolkits */
void gp_check_cuda_host(struct gp_exam *exam);
void gp_check_cuda_torch(struct gp_exam *exam);

/* The CUDA of the PyTorch that the user's shell would start, or of the only one; "": none. */
const char *gp_cuda_of_torch(struct gp_exam *exam);

void gp_check_cuda_env(struct gp_exam *exam);
void gp_check_cuda_ldpath(struct gp_exam *exam);

#endif
