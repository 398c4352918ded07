/* A machine that can start containers: its programs for that. */
#ifndef GP_DOCTOR_CHECKS_CONTAINER_HOST_H
#define GP_DOCTOR_CHECKS_CONTAINER_HOST_H

#include "base/io.h"

struct gp_exam;

struct gp_engine {
    const char *name, *program;
    const char *restart; /* of what runs containers for users; "": nothing; NULL: it may be for
                            other programs */
};

/* The first that is installed: docker, podman, Kubernetes' and others; NULL: none. */
const struct gp_engine *gp_container_engine(const struct gp_exam *exam);

/* Whether the command docker is a name for podman. */
bool gp_container_is_podman(const struct gp_exam *exam);

/* A machine with NVIDIA GPUs that can start containers. */
bool gp_container_is_host(struct gp_exam *exam);

/* Whether NVIDIA's toolkit for containers is installed, in any of its forms. */
bool gp_container_has_toolkit(const struct gp_exam *exam);

/* The version of an installed package without its epoch, "18.09.1" of "5:18.09.1~3-0"; "". */
const char *gp_container_engine_version(struct gp_exam *exam, const char *name);

/* The version of NVIDIA's toolkit, by its package, by the name of its library, which has the same,
 * or by what zypper has installed; "": unknown. */
const char *gp_container_toolkit_version(struct gp_exam *exam);

/* The first podman that knows GPUs by a CDI specification, and whether this one is older. */
#define GP_PODMAN_WITH_CDI "4.1"
bool gp_container_is_before_cdi(struct gp_exam *exam);

/* The toolkit's link to its hook, if the hook is missing, and the hook in `ret`; NULL: it is there,
 * or there is no link. */
const char *gp_container_lost_hook(const struct gp_exam *exam, char ret[GP_PATH_SIZE]);

/* Kubernetes before 1.24 uses docker by itself, unless the kubelet has flags for another engine;
 * kubeadm names the network only for docker. */
bool gp_container_has_dockershim(struct gp_exam *exam);

/* Begins the finding that pods get no GPU: "NVIDIA Container Toolkit is installed, but ENGINE". */
void gp_container_report_lacking(struct gp_exam *exam, const char *engine, const char *path,
                                 const char *seen);

/* A system whose web interface installs the toolkit with the driver: TrueNAS, Unraid. */
bool gp_container_is_appliance(const struct gp_exam *exam);

/* The commands that add NVIDIA's runtime to docker's configuration. */
void gp_container_configure_docker(struct gp_exam *exam);
/* Likewise for containerd, which may name the runtime of an installation that was removed. */
void gp_container_configure_containerd(struct gp_exam *exam);

#endif
