/* The checks of containers, in several files; container.c has their table. */
#ifndef GP_DOCTOR_CHECKS_CONTAINER_H
#define GP_DOCTOR_CHECKS_CONTAINER_H

#include "doctor/exam.h"

struct gp_log_known;

/* container_config.c: what the host's settings do to containers */
bool gp_container_has_desktop(struct gp_exam *exam);
void gp_container_check_desktop(struct gp_exam *exam);
bool gp_container_has_selinux(struct gp_exam *exam);
void gp_container_check_selinux(struct gp_exam *exam);
bool gp_container_has_config(struct gp_exam *exam);
/* A value of the toolkit's settings without quotes, and its line; NULL: it is not set. */
const char *gp_container_config_value(struct gp_exam *exam, const char *key, unsigned *ret_number);

/* The settings by which the docker or containerd of root passes GPUs; NULL: there are none.
 * Rootless ones have theirs in the user's home. */
const char *gp_container_runtime_config(struct gp_exam *exam);
/* Likewise for the user's rootless docker. */
const char *gp_container_rootless_config(struct gp_exam *exam);
bool gp_container_has_mode(struct gp_exam *exam);
void gp_container_check_mode(struct gp_exam *exam);
void gp_container_check_cgroups(struct gp_exam *exam);
bool gp_container_is_rootless(struct gp_exam *exam);
void gp_container_check_rootless(struct gp_exam *exam);
bool gp_container_has_operator(struct gp_exam *exam);
void gp_container_check_operator(struct gp_exam *exam);
bool gp_container_is_nested(struct gp_exam *exam);
void gp_container_check_nested(struct gp_exam *exam);
void gp_container_check_ldconfig_path(struct gp_exam *exam);

/* container_cdi.c: the specification of the GPUs for containers; NULL: there is none */
const char *gp_container_find_cdi(const struct gp_exam *exam);

/* Whether the toolkit binds the host's own files into containers, those that their variables name,
 * and makes none by a CDI specification. */
bool gp_container_binds_files(struct gp_exam *exam);
bool gp_container_has_cdi(struct gp_exam *exam);
void gp_container_check_cdi(struct gp_exam *exam);
/* The major number of /dev/nvidia-uvm, which the kernel chooses when the module is loaded; 0:
 * unknown. */
unsigned long gp_container_uvm_major(struct gp_exam *exam);

/* container_lxc.c: the device files of LXC containers on this host */
bool gp_container_has_guests(struct gp_exam *exam);
void gp_container_check_guests(struct gp_exam *exam);

/* container_inside.c: in a container of LXC, how its host passes the GPUs of this vendor into it */
void gp_container_advise_lxc(struct gp_exam *exam, unsigned vendor);

/* container_nodes.c: the device file of NVIDIA's driver at the start of a value, if the host lacks
 * it as nothing has used the GPUs since boot; NULL: it is there, or the value names another one */
const char *gp_container_absent_node(struct gp_exam *exam, const char *value);

struct gp_container_nodes {
    const char *container; /* "LXC container 101" */
    const char *where, *line, *file;
    const char *restart;      /* the command */
    bool is_needed;           /* it does not start without the file */
    bool wants_number;        /* its rules do not allow that of nvidia-uvm */
    const char *version_sign; /* of control groups, in such a rule */
};
void gp_container_report_nodes(struct gp_exam *exam, const struct gp_container_nodes *nodes);

/* container_incus.c: the tool that LXC, Incus and LXD pass NVIDIA's driver with */
bool gp_container_has_incus(struct gp_exam *exam);
/* False: it is not missing where it is called. */
bool gp_container_report_incus(struct gp_exam *exam);
/* The line by which a container of this manager, "Incus", "LXD" or "LXC", has the tool called, and
 * the file with it, which is that of its last start where its settings cannot be read. NULL: it has
 * not, or the manager is no longer in use. */
const char *gp_container_tool_call(struct gp_exam *exam, const char *manager, const char *name,
                                   const char **ret_path);

/* container_lxc_hook.c: LXC's hook that calls this tool and has failed */
void gp_container_check_lxc_hook(struct gp_exam *exam);

/* container_filter.c: for all engines, whether the toolkit can run the system's ldconfig */
bool gp_container_has_ldconfig(struct gp_exam *exam);
void gp_container_check_ldconfig(struct gp_exam *exam);
/* The installed libnvidia-container that does not let it run, and this system's glibc: 42 of 2.42;
 * "": none. The other explains it, in a finding. */
const char *gp_container_filtering(struct gp_exam *exam, unsigned *ret_glibc);
void gp_container_explain_filter(struct gp_exam *exam, const char *version, unsigned glibc);

/* container_legacy.c: reports that ldconfig has failed, by this line, in docker's containers, and
 * how to do without; false: it has another reason, or fails for one image alone */
bool gp_container_report_legacy(struct gp_exam *exam, const struct gp_log_known *known);

/* container_release.c: an engine of a release that breaks GPUs */
bool gp_container_has_faulty_release(struct gp_exam *exam);
void gp_container_check_release(struct gp_exam *exam);
/* Proposes the last release of the toolkit with which docker without root was reported to work. */
void gp_container_go_back(struct gp_exam *exam);

/* container_compose.c: whether compose knows what its files ask for */
bool gp_container_has_compose(struct gp_exam *exam);
void gp_container_check_compose(struct gp_exam *exam);

/* container_singularity.c: whether Singularity finds the driver's libraries */
bool gp_container_has_singularity(struct gp_exam *exam);
void gp_container_check_singularity(struct gp_exam *exam);

/* container_nvlist.c: whether Apptainer's --nv passes all of the driver's libraries through */
bool gp_container_has_nvlist(struct gp_exam *exam);
void gp_container_check_nvlist(struct gp_exam *exam);

/* container_preload.c: what is loaded into the toolkit's programs, too */
bool gp_container_has_preload(struct gp_exam *exam);
void gp_container_check_preload(struct gp_exam *exam);

/* container_plugin.c: reports that no device plugin runs on this node of Kubernetes, `service` is
 * that of k3s or RKE2, or NULL; false: one runs, or that is unknown */
bool gp_container_report_plugin(struct gp_exam *exam, const char *service, bool is_default);
/* Likewise: reports that NVIDIA's runtime gives the plugin nothing as that has no privileges;
 * false: no sign of that. */
bool gp_container_report_unprivileged(struct gp_exam *exam, const char *service, bool is_default);
/* Likewise: NVIDIA's runtime was called for a pod, and has failed, which this or another check
 * reports; false: no sign of that. */
bool gp_container_report_called(struct gp_exam *exam, const char *service);

/* container_operator.c: the GPU Operator's toolkit, and a configuration of containerd that
 * something else writes, too. Whether the GPUs are described for CDI, so that pods need no runtime.
 */
bool gp_container_has_described(struct gp_exam *exam);
/* Reports that this configuration does not name the Operator's runtime; true: that is so, or the
 * Operator needs none. */
bool gp_container_report_overwritten(struct gp_exam *exam, const char *path, const char *text);
/* Reports that the template of this configuration of k3s or RKE2 has only what the Operator wrote;
 * false: it has more, or there is none. */
bool gp_container_report_template(struct gp_exam *exam, const char *config, const char *service);

/* container_kubernetes.c: a node's container engine */
bool gp_container_has_kubelet(struct gp_exam *exam);
void gp_container_check_kubelet(struct gp_exam *exam);
bool gp_container_has_crio(struct gp_exam *exam);
void gp_container_check_crio(struct gp_exam *exam);

/* container_sections.c: reports a runtime of NVIDIA that is in the wrong section of containerd's
 * configuration; false: there is none */
bool gp_container_report_section(struct gp_exam *exam, const char *path, const char *text);
/* The runtime of containerd's first shim, which runs Kubernetes' containers in old configurations
 * that do not name a default; NULL: it does not, or none is set. The other proposes NVIDIA's there;
 * false: that is not its place. */
const char *gp_container_shim_runtime(struct gp_exam *exam, const char *text);
bool gp_container_set_shim(struct gp_exam *exam, const char *path, const char *text,
                           const char *note);

/* container_scope.c: whether running containers keep their GPUs; `is_off`: the toolkit sets no
 * rules for them */
void gp_container_check_scopes(struct gp_exam *exam, bool is_off);
/* Whether a container runs now to which the toolkit has passed GPUs. */
bool gp_container_runs_gpus(struct gp_exam *exam);

/* container_given.c: whether docker's containers are given the GPUs that they ask for */
bool gp_container_has_given(struct gp_exam *exam);
/* The first container of docker without a GPU that has printed that it finds none, or that is to
 * use one. */
struct gp_container_failure {
    const char *line, *path;
};
bool gp_container_find_failure(struct gp_exam *exam, struct gp_container_failure *ret);
void gp_container_check_given(struct gp_exam *exam);

/* container_truenas.c: whether the settings of TrueNAS' apps name their GPUs */
void gp_container_check_truenas(struct gp_exam *exam);

/* container_codecs.c: whether the program in such a container was built to use the GPU for video */
struct gp_docker_container;
void gp_container_check_codecs(struct gp_exam *exam, const struct gp_docker_container *container);
bool gp_container_is_for_video(const char *image);

/* container_image.c: whether its image is for the CPU, though it gets a GPU; and the image of a
 * program that computes on NVIDIA's GPUs only; NULL: another one, or it is started for the CPU */
void gp_container_check_image(struct gp_exam *exam, const struct gp_docker_container *container);
const char *gp_container_needs_gpu(struct gp_exam *exam,
                                   const struct gp_docker_container *container);

/* container_serving.c: whether a server of language models gets the GPUs and the memory it needs */
void gp_container_check_serving(struct gp_exam *exam, const struct gp_docker_container *container);

/* Its entry point and its arguments, each behind a space; "": it has none, or they are longer than
 * those of a server. */
const char *gp_container_command(struct gp_exam *exam, const struct gp_docker_container *container);

/* container_without.c: whether docker passes it GPUs in any way; whether it was started without
 * any, and not on purpose; and what a program in it says that cannot go on without; NULL: nothing.
 */
bool gp_container_is_passed(const struct gp_docker_container *container);
bool gp_container_is_without(const struct gp_docker_container *container);
const char *gp_container_final_failure(struct gp_exam *exam,
                                       const struct gp_docker_container *container);

/* Likewise: whether Kubernetes has created it. */
bool gp_container_is_of_pod(const struct gp_docker_container *container);

/* Likewise: the line by which the image of a running one, which needs a GPU, says that there is no
 * driver; NULL: there is none, or it may be meant so. */
const char *gp_container_banner(struct gp_exam *exam, const struct gp_docker_container *container);

/* Likewise: what one that has ended, and that docker does not start again, says of that; NULL:
 * nothing. It has failed if that was its end, and of late: a banner alone tells nothing of it. */
const char *gp_container_ended_without(struct gp_exam *exam,
                                       const struct gp_docker_container *container,
                                       bool *ret_is_failed);

/* Likewise: the one of those that is named: the last that has failed, or else the last. */
struct gp_container_ended {
    const char *id; /* NULL: there is none */
    long long at;
    bool is_failed;
};
void gp_container_take_ended(struct gp_exam *exam, const struct gp_docker_container *container,
                             struct gp_container_ended *ended);

/* Likewise: how bad that is: its user may have created another one since. */
enum gp_verdict gp_container_judge_ended(struct gp_exam *exam,
                                         const struct gp_container_ended *ended);

/* container_blank.c: whether blanks or quotes change the variables that it has for the GPUs; true:
 * that keeps the GPUs, or the driver's parts, from it */
bool gp_container_check_blanks(struct gp_exam *exam, const struct gp_docker_container *container);

/* container_nvenc.c: whether this driver is new enough for it */
void gp_container_check_nvenc(struct gp_exam *exam, const struct gp_docker_container *container);

/* container_groups.c: whether the user of such a container may open them */
void gp_container_check_groups(struct gp_exam *exam, const struct gp_docker_container *container);

/* container_dri.c: whether such a container gets the files that it wants */
void gp_container_check_dri(struct gp_exam *exam, const struct gp_docker_container *container);

/* container_set.c: the file by which such a container's program is set to use a GPU, NVIDIA's or
 * one of VA-API, and the words in it; NULL: none */
const char *gp_container_setting(struct gp_exam *exam, const struct gp_docker_container *container,
                                 bool is_nvidia, const char **ret_words);

/* container_vain.c: a machine that can start containers with NVIDIA GPUs, or one without such GPUs
 * that was asked to */
bool gp_container_may_start(struct gp_exam *exam);
void gp_container_report_vain(struct gp_exam *exam);
/* A line by which docker or the toolkit has refused a container with NVIDIA GPUs; NULL: none. */
const struct gp_log_known *gp_container_refusal(struct gp_exam *exam);

/* container_default.c: reports that the toolkit has passed in the utilities alone; for a container
 * without CUDA's library. False: it has not. */
bool gp_container_report_default(struct gp_exam *exam);

/* container_snap.c: docker's snap at this path, the only docker here; reports one next to another
 * docker if its log says that it cannot pass GPUs */
void gp_container_check_snap(struct gp_exam *exam, const char *docker);
bool gp_container_report_snap_beside(struct gp_exam *exam);

/* container_hook.c: reports that docker does not find the toolkit's program by its name */
bool gp_container_report_hook_name(struct gp_exam *exam);
/* Whether docker has found the toolkit since it refused GPUs with this line. */
bool gp_container_is_asked_before(struct gp_exam *exam, const struct gp_log_known *asked);

/* container_toolkit.c */
void gp_container_check_toolkit(struct gp_exam *exam);

/* container_links.c: the first running container of docker in which libcuda.so.1 is missing, though
 * the library itself is there */
struct gp_container_unlinked {
    const char *container, *library; /* its name, and the path on the host */
};
bool gp_container_find_unlinked(struct gp_exam *exam, struct gp_container_unlinked *ret);

/* container_socket.c: reports that the Operator's toolkit does not find the engine's socket */
bool gp_container_report_socket(struct gp_exam *exam);
/* Whether that is so. */
bool gp_container_lacks_socket(struct gp_exam *exam);

/* container_asked.c: whether there are the CDI devices that Kubernetes' containers ask for */
bool gp_container_has_asked(struct gp_exam *exam);
void gp_container_check_asked(struct gp_exam *exam);

/* container_narrow.c */
bool gp_container_has_narrow(struct gp_exam *exam);
void gp_container_check_narrow(struct gp_exam *exam);

/* container_nixos.c */
bool gp_container_is_nixos(struct gp_exam *exam);
void gp_container_check_nixos(struct gp_exam *exam);

/* container_docker.c */
bool gp_container_has_docker(struct gp_exam *exam);
void gp_container_check_docker(struct gp_exam *exam);

/* container_keep_groups.c: containers that podman starts without root, and the groups of their user
 */
bool gp_container_has_keep_groups(struct gp_exam *exam);
void gp_container_check_keep_groups(struct gp_exam *exam);

/* container_podman.c */
bool gp_container_has_podman(struct gp_exam *exam);
void gp_container_check_podman(struct gp_exam *exam);

/* container_version.c: whether driver, toolkit and images fit */
void gp_container_check_hook(struct gp_exam *exam);
bool gp_container_has_version(struct gp_exam *exam);
void gp_container_check_version(struct gp_exam *exam);
bool gp_container_has_old_engine(struct gp_exam *exam);
void gp_container_check_engine(struct gp_exam *exam);
bool gp_container_has_refused(struct gp_exam *exam);
void gp_container_check_refused(struct gp_exam *exam);
/* A fix: an update of those of the toolkit's packages that are installed; and their source, if a
 * release upgrade has turned it off. The second also has docker restarted, if it is there. */
void gp_container_update_packages(struct gp_exam *exam);
void gp_container_update_toolkit(struct gp_exam *exam);
/* The 31 of this system's glibc 2.31, until 2.33 from the name of its file; 0: unknown. */
unsigned gp_container_glibc(struct gp_exam *exam);
/* The host's libraries in apptainer; `program` uses them (NULL: none is known to). */
void gp_container_check_glibc(struct gp_exam *exam, const char *program);

#endif
