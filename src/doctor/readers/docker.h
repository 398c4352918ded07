/* Docker's containers on a host, as its own files describe them. */
#ifndef GP_DOCTOR_READERS_DOCKER_H
#define GP_DOCTOR_READERS_DOCKER_H

#include <jansson.h>
#include <stdbool.h>

struct gp_error_entry;
struct gp_exam;

struct gp_docker_container {
    const char *id, *name; /* the name without the slash; "": unknown */
    bool is_running;
    const json_t *config, *host; /* config.v2.json and hostconfig.json, until the visit ends; NULL:
                                    not readable, or no JSON */
    const char *config_path, *host_path, *log_path; /* the last: of what it prints */
};

typedef void gp_docker_visit(struct gp_exam *exam, const struct gp_docker_container *container,
                             void *argument);

/* Visits the containers, at most GP_DOCKER_CONTAINERS, in the order of their ids. Returns their
 * number, or −errno if their folder cannot be listed. */
enum { GP_DOCKER_CONTAINERS = 256 };
long gp_docker_each(struct gp_exam *exam, gp_docker_visit *visit, void *argument);

/* Where docker keeps its containers, which daemon.json may change ("data-root"). */
const char *gp_docker_folder(struct gp_exam *exam);

/* Whether containers get NVIDIA's runtime unless they name another one ("default-runtime"). */
bool gp_docker_is_nvidia_default(struct gp_exam *exam);

/* One of the engines' files, of podman too, which the caller owns; NULL: not readable, no JSON, or
 * larger than 1 MiB. */
json_t *gp_docker_json(struct gp_exam *exam, const char *path);

/* A string below config or host; NULL: there is none. */
const char *gp_docker_text(const json_t *object, const char *key);

/* A variable of the container or its image; NULL: it is not set. */
const char *gp_docker_variable(const struct gp_docker_container *container, const char *name);

/* Whether its user has set it: docker puts these before those of the image, of which PATH is the
 * first. */
bool gp_docker_is_users(const struct gp_docker_container *container, const char *name);

/* Where one of its directories is on this machine, a volume or a bind; NULL: unknown. */
const char *gp_docker_source(struct gp_exam *exam, const struct gp_docker_container *container,
                             const char *folder);

/* How to begin a change of its service in its compose file, "in /srv/compose.yaml, add to the
 * service jellyfin"; "": it was not created so. */
const char *gp_docker_compose_service(struct gp_exam *exam,
                                      const struct gp_docker_container *container);

/* What its program says of a file of a GPU, in /dev/dri or /dev/kfd, that it cannot open, or of the
 * lack of such a GPU; NULL: it does not. The other adds it to the finding as evidence. */
const char *gp_docker_denied_line(struct gp_exam *exam,
                                  const struct gp_docker_container *container);
void gp_docker_show_denied(struct gp_exam *exam, const struct gp_docker_container *container);

/* Whether its user has said that it computes on the CPU. */
bool gp_docker_is_for_cpu(const struct gp_docker_container *container);

/* Whether a container, by its config.v2.json, does not run, and docker will not start it by itself:
 * what it says of an error may be long past. */
bool gp_docker_is_left_over(struct gp_exam *exam, const char *config_path);

/* Whether NVIDIA's runtime starts it: it was created with --runtime=nvidia, or that is docker's
 * default. The runtime adds only the GPUs that the container asks for. */
bool gp_docker_has_runtime(const struct gp_docker_container *container);

/* The GPUs that it asks that runtime for; "": none, on purpose; NULL: it does not say. Images
 * before CUDA 9.1 name only their CUDA, and get all GPUs. */
const char *gp_docker_asked(const struct gp_docker_container *container);

/* Whether it gets GPUs of NVIDIA by that runtime; and whether it gets some in any way. */
bool gp_docker_asks_runtime(const struct gp_docker_container *container);
bool gp_docker_has_gpus(const struct gp_docker_container *container);

/* The path on this machine of the device file that it is given (--device) at this place, "" if the
 * entry has none; NULL: behind the last. */
const char *gp_docker_device(const struct gp_docker_container *container, size_t place);

/* Whether it is given a device file whose path begins so. */
bool gp_docker_has_device(const struct gp_docker_container *container, const char *start);

/* Whether it gets the device files of GPUs other than NVIDIA's. */
bool gp_docker_has_other_gpu(const struct gp_docker_container *container);

/* The requests for devices (--gpus), an array; NULL: there are none. */
const json_t *gp_docker_requests(const struct gp_docker_container *container);

/* Whether a request is for NVIDIA's GPUs. One by CDI names the vendor, "amd.com/gpu=all"; others
 * are NVIDIA's unless they name a driver. */
bool gp_docker_is_for_nvidia(const json_t *request);

/* The last lines that it has printed since it was started, with a NUL behind them; NULL: none. */
const char *gp_docker_printed(struct gp_exam *exam, const struct gp_docker_container *container,
                              size_t *ret_length);

/* Jellyfin's own log of the last FFmpeg that it has started, in the container's /config, unless it
 * is of a day before the container was started; NULL: there is none. */
const char *gp_docker_jellyfin(struct gp_exam *exam, const struct gp_docker_container *container,
                               const char **ret_path, size_t *ret_length);

/* Which of these files a line is in. */
const char *gp_docker_log_of(struct gp_exam *exam, const struct gp_docker_container *container,
                             const char *line);

/* A line with one of these known errors (ids, a comma list) among them, if it is one that the
 * caller means; NULL: there is none. */
const char *gp_docker_printed_error(struct gp_exam *exam,
                                    const struct gp_docker_container *container, const char *errors,
                                    bool (*is_one)(const struct gp_error_entry *, const char *));

/* The directory with what was written into its file system, on the host; NULL: docker keeps it in
 * another way than overlay2, or it cannot be read. */
const char *gp_docker_layer(struct gp_exam *exam, const struct gp_docker_container *container);
/* Likewise with those of its image below it, from the top: that one at place 0; NULL: behind the
 * last. */
const char *gp_docker_layer_at(struct gp_exam *exam, const struct gp_docker_container *container,
                               size_t place);

#endif
