/* What OpenGL, Vulkan and VA-API need, for the GPUs of all vendors. */
#ifndef GP_DOCTOR_CHECKS_GRAPHICS_H
#define GP_DOCTOR_CHECKS_GRAPHICS_H

struct gp_exam;

/* Variables that name drivers which do not exist, or have the CPU draw. */
void gp_graphics_check_variables(struct gp_exam *exam);

/* A program that decodes or encodes video with the system's VA-API; NULL: none is seen. */
const char *gp_graphics_video_user(struct gp_exam *exam);

#endif
