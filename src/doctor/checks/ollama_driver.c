/* Ollama: whether the driver is new enough for its release, here or in a container of docker. A
 * finding of system.ollama. */
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/ollama.h"
#include "doctor/compat.h"
#include "doctor/exam.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/log.h"
#include "doctor/readers/nvidia.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

const char *const gp_ollama_folders[] = {"/usr/local/lib/ollama", "/usr/lib/ollama",
                                         "/usr/lib64/ollama", NULL};

/* The releases that leave out a GPU if its driver is older than this. From its page about hardware,
 * and logs of users (#16415, #17290). */
static const struct {
    const char *release;
    unsigned from, below; /* compute capability */
    const char *driver;
} floors[] = {{"0.30", 50, 70, "570"}, {"0.32", 70, 1000, "550"}};

/* Where a release is seen, and what it needs. */
struct need {
    const char *where, *text;
    const char *driver;              /* "570" */
    const struct gp_nvidia_gpu *gpu; /* NULL: any */
};

/* What the first of the GPUs needs that this driver does not give; false: nothing. */
static bool find_need(const struct gp_nvidia *nv, const char *release, struct need *ret)
{
    for (size_t i = 0; nv->driver[0] && i < GP_ARRAY_LEN(floors); i++)
        for (size_t k = 0; k < nv->count; k++) {
            unsigned capability = nv->gpus[k].capability;
            if (gp_version_compare(release, floors[i].release) < 0 || capability < floors[i].from ||
                capability >= floors[i].below || gp_driver_reaches(nv->driver, floors[i].driver))
                continue;
            ret->driver = floors[i].driver;
            ret->gpu = &nv->gpus[k];
            return true;
        }
    return false;
}

/* The release of an image, "0.32.1" of "docker.io/ollama/ollama:0.32.1"; "": another image, or a
 * tag that does not tell. */
static const char *release_of(const char *image)
{
    static const char name[] = "ollama/ollama:";
    const char *found = image ? strstr(image, name) : NULL;
    const char *tag = found ? found + sizeof(name) - 1 : "";
    bool is_rocm = strstr(tag, "rocm");
    return tag[0] >= '0' && tag[0] <= '9' && !is_rocm ? tag : "";
}

struct search {
    const struct gp_nvidia *nv;
    struct need need;
    bool is_any, is_found; /* a container of Ollama with GPUs; and one with a need */
};

static void look_at(struct gp_exam *exam, const struct gp_docker_container *container,
                    void *argument)
{
    struct search *search = argument;
    const json_t *config = json_object_get(container->config, "Config");
    const char *image = gp_docker_text(config, "Image");
    const char *release = release_of(image);
    bool has_gpus = gp_docker_has_gpus(container);
    if (!container->is_running || !release[0] || !has_gpus || search->is_found)
        return;
    search->is_any = true;
    search->is_found = search->nv && find_need(search->nv, release, &search->need);
    search->need.where = gp_exam_text(exam, "container %s", container->name);
    search->need.text = gp_exam_text(exam, "%s", image);
}

bool gp_ollama_is_in_docker(struct gp_exam *exam)
{
    struct search search = {.nv = NULL};
    if (exam->machine.nvidia_count > 0 && !exam->machine.container)
        (void)gp_docker_each(exam, look_at, &search);
    return search.is_any;
}

/* The number in its own words: "NVIDIA driver too old" … required_driver="570 or newer". */
static bool find_said(const struct gp_nvidia *nv, const struct gp_log_known *said, struct need *ret)
{
    const char *at = said ? strstr(said->text, "required") : NULL;
    const char *number = at ? at + strcspn(at, "0123456789") : "";
    if (strtoul(number, NULL, 10) == 0)
        return false;
    *ret = (struct need){.where = said->where, .text = said->text, .driver = NULL};
    for (size_t i = 0; i < GP_ARRAY_LEN(floors); i++)
        if (strncmp(number, floors[i].driver, strlen(floors[i].driver)) == 0)
            ret->driver = floors[i].driver;
    /* It names what all GPUs need, and old ones need more. */
    struct need more;
    if (find_need(nv, floors[0].release, &more)) {
        ret->driver = more.driver;
        ret->gpu = more.gpu;
    }
    return ret->driver && nv->driver[0] && !gp_driver_reaches(nv->driver, ret->driver);
}

/* Since 0.30 the models run in a program of its own. */
static bool find_installed(struct gp_exam *exam, const struct gp_nvidia *nv, struct need *ret)
{
    for (size_t i = 0; gp_ollama_folders[i]; i++) {
        const char *path = gp_exam_text(exam, "%s/llama-server", gp_ollama_folders[i]);
        if (!gp_files_exist(&exam->files, path))
            continue;
        *ret = (struct need){.where = path, .text = "present: Ollama 0.30 or newer"};
        return find_need(nv, floors[0].release, ret);
    }
    return false;
}

bool gp_ollama_report_needs(struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    struct search search = {.nv = &nv};
    const struct gp_log_known *said = gp_log_known_of(exam, "ollama.driver-floor");
    if (!exam->machine.container)
        (void)gp_docker_each(exam, look_at, &search);
    bool is_docker = search.is_found;
    struct need own = {0};
    const struct need *need = is_docker ? &search.need : &own;
    if (!is_docker && !find_said(&nv, said, &own) && !find_installed(exam, &nv, &own))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "this release of Ollama needs driver %s or newer%s%s; this machine has %s",
                   need->driver, need->gpu ? " for " : "",
                   need->gpu ? gp_nvidia_gpu_words(exam, need->gpu) : "", nv.driver);
    gp_exam_evidence(exam, need->where, "%s", need->text);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s", nv.driver);
    gp_exam_why(exam, "It leaves the GPU out, and computes on the CPU or with Vulkan, which is "
                      "slower. OLLAMA_DEBUG=1 shows \"NVIDIA driver too old\".");
    if (said && is_docker)
        gp_log_show_known(exam, said);
    gp_driver_fix_at_least(exam, need->driver);
    if (gp_driver_reaches(nv.driver, gp_cuda_floor("12")))
        gp_exam_advice(exam,
                       "or keep the driver, and use Ollama 0.24, the last release that works with "
                       "it%s",
                       is_docker ? " (the image ollama/ollama:0.24.0)" : "");
    gp_exam_link(exam, "https://docs.ollama.com/gpu");
    return true;
}
