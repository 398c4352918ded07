/* libvirt's definitions of virtual machines. */
#ifndef GPULSE_DOCTOR_READERS_LIBVIRT_H
#define GPULSE_DOCTOR_READERS_LIBVIRT_H

#include <stdbool.h>

struct gp_exam;

/* The first definition with a whole GPU of this host, in the exam's arena; NULL: none has one. */
const char *gp_libvirt_machine(struct gp_exam *exam);

/* Whether the machine of this name is still defined, and has a whole GPU of this host. */
bool gp_libvirt_has_gpu(struct gp_exam *exam, const char *name);

/* Whether libvirt starts the machine of this definition by itself. */
bool gp_libvirt_is_autostarted(struct gp_exam *exam, const char *path);

#endif
