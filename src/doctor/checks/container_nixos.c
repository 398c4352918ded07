/* NixOS, whose modules write docker's settings: which way docker has there to pass GPUs. */
#include "doctor/checks/container.h"
#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"
#include "doctor/version.h"

#include <string.h>

static const char unit[] = "/etc/systemd/system/docker.service";

struct nix_docker {
    const char *version; /* "27.1.1"; "": unknown */
    const char *config;  /* the path of its settings; "": it has none */
    bool has_runtime, has_cdi;
};

/* "/nix/store/…-docker-27.1.1/bin/docker"; NULL: it is not installed, or is podman's. */
static const char *find_version(struct gp_exam *exam)
{
    static const char mark[] = "-docker-", program[] = "/run/current-system/sw/bin/docker";
    char real[GP_PATH_SIZE];
    if (!gp_files_real(&exam->files, program, real) || strstr(real, "podman"))
        return NULL;
    const char *found = strstr(real, mark);
    return found ? gp_exam_text(exam, "%.*s", (int)strspn(found + sizeof(mark) - 1, "0123456789."),
                                found + sizeof(mark) - 1)
                 : "";
}

/* The runtime is named in the unit (--add-runtime) or in the settings, by the release of NixOS.
 * Docker 25 and newer pass GPUs by a specification on request, and since 28.2 unless told not to.
 */
static bool find_docker(struct gp_exam *exam, struct nix_docker *ret)
{
    static const char mark[] = "--config-file=";
    const char *text = gp_files_text(&exam->files, &exam->arena, unit, 1 << 16, NULL);
    const char *version = text ? find_version(exam) : NULL;
    const char *at = version ? strstr(text, mark) : NULL;
    if (!version)
        return false;
    at = at ? at + sizeof(mark) - 1 : "";
    const char *path = gp_exam_text(exam, "%.*s", (int)strcspn(at, " \t\\\r\n"), at);
    const char *config =
        path[0] ? gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL) : "{}";
    json_t *settings = json_loads(config ? config : "", 0, NULL);
    if (!settings)
        return false; /* unknown */
    const json_t *cdi = json_object_get(json_object_get(settings, "features"), "cdi");
    *ret = (struct nix_docker){
        .version = version,
        .config = path,
        .has_runtime = strstr(text, " nvidia=") || strstr(text, "-nvidia-docker") ||
                       json_object_get(json_object_get(settings, "runtimes"), "nvidia"),
        .has_cdi =
            json_is_boolean(cdi) ? json_is_true(cdi) : gp_version_compare(version, "28.2") >= 0,
    };
    json_decref(settings);
    return true;
}

bool gp_container_is_nixos(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return strcmp(m->distro_id, "nixos") == 0 && !m->container && m->nvidia_count > 0 &&
           m->is_driver_loaded && gp_files_exist(&exam->files, unit) && find_version(exam);
}

static void look_at_request(struct gp_exam *exam, const struct gp_docker_container *c,
                            void *argument)
{
    const char *driver = gp_docker_text(json_array_get(gp_docker_requests(c), 0), "Driver");
    (void)exam;
    *(bool *)argument |= driver && strcmp(driver, "cdi") == 0;
}

static void advise_cdi(struct gp_exam *exam)
{
    gp_exam_command(exam, "in place of --gpus and --runtime",
                    "docker run --rm --device=nvidia.com/gpu=all ubuntu nvidia-smi");
    gp_exam_advice(exam,
                   "in compose files, in place of runtime or driver nvidia: deploy: {resources: "
                   "{reservations: {devices: [{driver: cdi, device_ids: "
                   "[nvidia.com/gpu=all]}]}}}");
}

/* What is missing in configuration.nix. */
static void advise_settings(struct gp_exam *exam, const struct nix_docker *docker, bool has_spec)
{
    static const char toolkit[] = "hardware.nvidia-container-toolkit.enable = true;",
                      feature[] = "virtualisation.docker.daemon.settings.features.cdi = true;";
    bool is_old = docker->version[0] && gp_version_compare(docker->version, "25") < 0;
    gp_exam_command(
        exam,
        gp_exam_text(exam, "after setting, in configuration.nix: %s%s%s%s", has_spec ? "" : toolkit,
                     has_spec || docker->has_cdi ? "" : " ", docker->has_cdi ? "" : feature,
                     is_old ? " and virtualisation.docker.package to docker 25 or newer" : ""),
        "sudo nixos-rebuild switch");
}

void gp_container_check_nixos(struct gp_exam *exam)
{
    static const char errors[] = "docker.runtime-name,docker.no-toolkit";
    const char *spec = gp_container_find_cdi(exam);
    const struct gp_log_known *failed;
    struct nix_docker docker;
    bool is_used = false;
    if (!find_docker(exam, &docker) || docker.has_runtime)
        return;
    failed = gp_log_known_of(exam, errors);
    (void)gp_docker_each(exam, look_at_request, &is_used);
    if (is_used && !failed)
        return; /* its user knows how */
    bool has_way = spec && docker.has_cdi;
    gp_exam_report(exam, failed ? GP_VERDICT_WARN : GP_VERDICT_INFO, "%s",
                   has_way ? "docker passes GPUs only by CDI here: it has no runtime nvidia"
                           : "docker cannot pass GPUs to containers");
    gp_exam_evidence(exam, docker.config[0] ? docker.config : unit, "no runtime nvidia%s",
                     docker.has_cdi ? "" : ", nor the feature cdi");
    gp_exam_evidence(exam, spec ? spec : "/run/cdi/nvidia-container-toolkit.json", "%s",
                     spec ? "present" : "missing");
    gp_log_show_known(exam, failed);
    /* Newer releases may take --gpus for a request by the specification: what was refused tells. */
    bool fails = !has_way || (failed && strcmp(failed->id, "docker.no-toolkit") == 0) ||
                 (docker.version[0] && gp_version_compare(docker.version, "28") < 0);
    gp_exam_why(exam,
                "--runtime=nvidia fails with \"unknown or invalid runtime name: nvidia\"%s. NixOS "
                "writes docker's settings itself: nvidia-ctk runtime configure does not change "
                "them.",
                fails ? ", and --gpus with \"could not select device driver\"" : "");
    if (!has_way)
        advise_settings(exam, &docker, spec);
    advise_cdi(exam);
    if (has_way)
        gp_exam_advice(exam,
                       "or, for programs that insist on the runtime: "
                       "virtualisation.docker.enableNvidia = true; in configuration.nix "
                       "(deprecated)%s, and sudo nixos-rebuild switch",
                       strcmp(exam->machine.arch, "x86_64") == 0
                           ? " with hardware.graphics.enable32Bit = true; (before 24.11: "
                             "hardware.opengl.driSupport32Bit), which it requires"
                           : "");
}
