#include "doctor/container_host.h"

#include "doctor/exam.h"

static const struct gp_engine engines[] = {{"docker", "/usr/bin/docker"},
                                           {"docker", "/snap/bin/docker"},
                                           {"podman", "/usr/bin/podman"},
                                           {"containerd", "/usr/bin/containerd"}};

const struct gp_engine *gp_container_engine(const struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(engines); i++)
        if (gp_files_exist(&exam->files, engines[i].program))
            return &engines[i];
    return NULL;
}

bool gp_container_is_host(struct gp_exam *exam)
{
    return !exam->machine.container && exam->machine.nvidia_count > 0 && gp_container_engine(exam);
}

bool gp_container_has_toolkit(const struct gp_exam *exam)
{
    /* The last two are from before nvidia-ctk. */
    static const char *const programs[] = {
        "/usr/bin/nvidia-ctk", "/usr/local/bin/nvidia-ctk", "/usr/local/nvidia/toolkit/nvidia-ctk",
        "/usr/bin/nvidia-container-cli", "/usr/bin/nvidia-container-runtime"};
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        if (gp_files_exist(&exam->files, programs[i]))
            return true;
    return false;
}
