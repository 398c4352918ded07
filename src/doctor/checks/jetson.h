/* The part of platform.jetson that looks at images, and that of platform.jetson-torch that looks at
 * packages of Python. */
#ifndef GP_DOCTOR_CHECKS_JETSON_H
#define GP_DOCTOR_CHECKS_JETSON_H

struct gp_exam;
struct gp_pyenv;
struct gp_torch;

void gp_jetson_check_image(struct gp_exam *exam, const char *release);
void gp_jetson_check_driver(struct gp_exam *exam);
void gp_jetson_check_sparse(struct gp_exam *exam, const struct gp_torch *torch);
void gp_jetson_report_no_cuda(struct gp_exam *exam, const struct gp_torch *torch);
void gp_jetson_check_others(struct gp_exam *exam, const struct gp_pyenv *env);

#endif
