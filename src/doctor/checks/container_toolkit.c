/* A host: whether NVIDIA Container Toolkit is there for its containers. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/log.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/toolkit.h"

#include <string.h>

/* Whether only containers can be what this driver is for: a service that runs them is there, and no
 * screen, toolkit or Python package that uses a GPU. */
static bool is_only_use(struct gp_exam *exam, const struct gp_engine *engine)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    bool is_used = (!m->is_driver_loaded && !m->is_wsl) || gp_toolkits_of(exam)->count > 0 ||
                   envs->is_cut || !gp_pyenvs_readable(envs);
    for (size_t i = 0; i < m->gpu_count; i++)
        is_used = is_used || m->gpus[i].shows_screen;
    for (size_t i = 0; i < envs->count; i++)
        is_used = is_used || envs->list[i].count > 0;
    return !is_used && engine->restart;
}

/* A unit of podman (quadlet) with a GPU of NVIDIA, of the system or of this user; NULL: none. */
static const char *unit_with_gpu(struct gp_exam *exam)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const char *folders[] = {"/etc/containers/systemd",
                             gp_exam_text(exam, "%s/.config/containers/systemd",
                                          home && home[0] == '/' ? home : "/root")};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        char **names;
        long n = gp_files_list(&exam->files, &exam->arena, folders[i], &names);
        for (long k = 0; k < n; k++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[i], names[k]);
            const char *text = strstr(names[k], ".container")
                                   ? gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL)
                                   : NULL;
            if (text && strstr(text, "\nAddDevice=nvidia.com/gpu"))
                return path;
        }
    }
    return NULL;
}

void gp_container_check_toolkit(struct gp_exam *exam)
{
    const struct gp_engine *engine = gp_container_engine(exam);
    if (!gp_container_is_host(exam)) {
        gp_container_report_vain(exam);
        return;
    }
    if (strncmp(engine->program, "/snap/", 6) == 0) {
        gp_container_check_snap(exam, engine->program);
        return;
    }
    if (gp_container_has_toolkit(exam)) {
        gp_container_check_hook(exam);
        return;
    }
    if (gp_files_exist(&exam->files, "/run/nvidia/validations") ||
        gp_files_exist(&exam->files, "/run/nvidia/driver"))
        return; /* the GPU Operator brings it */
    const char *config = gp_container_runtime_config(exam);
    const struct gp_log_known *asked = gp_log_known_of(exam, "docker.no-toolkit");
    struct gp_container_failure failure;
    bool has_failed = gp_container_find_failure(exam, &failure);
    const char *unit = strcmp(engine->name, "podman") == 0 ? unit_with_gpu(exam) : NULL;
    bool is_wanted = config || asked || has_failed || unit || is_only_use(exam, engine);
    gp_exam_report(exam, is_wanted ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "containers cannot use GPUs yet: NVIDIA Container Toolkit is not installed");
    gp_exam_evidence(exam, engine->program, "present, but nvidia-ctk is missing");
    gp_log_show_known(exam, asked);
    if (has_failed)
        gp_exam_evidence(exam, failure.path, "%s", failure.line);
    if (unit)
        gp_exam_evidence(exam, unit, "AddDevice=nvidia.com/gpu…");
    if (config)
        gp_exam_evidence(exam, config, "names nvidia-container-runtime, which it does not find");
    if (exam->machine.is_jetson)
        gp_exam_command(exam, "from JetPack's repository",
                        "sudo apt update && sudo apt install nvidia-container-toolkit");
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    if (gp_container_is_appliance(exam))
        return;
    if (strcmp(engine->name, "docker") == 0)
        gp_container_configure_docker(exam);
    else if (strcmp(engine->name, "podman") == 0)
        gp_exam_command(exam, "describe the GPUs for podman, and again after updates of the driver",
                        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
    else if (config && strstr(config, "containerd"))
        gp_container_configure_containerd(exam);
    else if (engine->restart && engine->restart[0])
        gp_exam_command(exam, "it looks for the toolkit when it starts", "%s", engine->restart);
    if (has_failed)
        gp_exam_advice(exam, "then create the container again with --gpus all");
}
