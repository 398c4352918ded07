/* Images of docker that are there in variants: a container that gets a GPU, of the one for the CPU.
 */
#include "doctor/checks/container.h"

#include "doctor/exam.h"
#include "doctor/readers/docker.h"

#include <string.h>

/* Programs whose image for the CPU has none of these words in its tag. */
static const struct {
    const char *image;                /* in its name */
    const char *gpu;                  /* words of the tags for GPUs, a comma list */
    const char *nvidia, *intel, *amd; /* what to do for each maker; NULL: there is none for it */
} images[] = {
    {"immich-app/immich-machine-learning", "cuda,openvino,rocm,armnn,rknn",
     "add -cuda to the tag (release-cuda)", "add -openvino to the tag (release-openvino)",
     "add -rocm to the tag (release-rocm)"},
    {"ggerganov/llama.cpp", "cuda,vulkan,rocm,intel,musa", "add -cuda to the tag (server-cuda)",
     "add -vulkan to the tag (server-vulkan)", "add -vulkan to the tag (server-vulkan)"},
    {"ggml-org/llama.cpp", "cuda,vulkan,rocm,intel,musa", "add -cuda to the tag (server-cuda)",
     "add -vulkan to the tag (server-vulkan)", "add -vulkan to the tag (server-vulkan)"},
    {"tensorflow/tensorflow", "gpu,rocm", "add -gpu to the tag (latest-gpu)", NULL, NULL},
    {"tensorflow/serving", "gpu", "add -gpu to the tag (latest-gpu)", NULL, NULL},
    {"pytorch/torchserve", "gpu", "use a tag with gpu (latest-gpu)", NULL, NULL},
    {"linuxserver/faster-whisper", "gpu", "use the tag gpu", NULL, NULL},
    {"onerahmet/openai-whisper-asr-webservice", "gpu", "add -gpu to the tag (latest-gpu)", NULL,
     NULL},
};

/* "repository:tag", "registry:5000/repository", "repository@sha256:…" */
static const char *tag_of(struct gp_exam *exam, const char *image)
{
    const char *slash = strrchr(image, '/'), *colon = strchr(slash ? slash : image, ':');
    bool has_tag = colon && !memchr(image, '@', (size_t)(colon - image));
    return has_tag ? gp_exam_text(exam, "%.*s", (int)strcspn(colon + 1, "@"), colon + 1) : "latest";
}

/* Whether a tag contains one of these words. */
static bool has_one(const char *tag, const char *words)
{
    char word[16];
    for (const char *p = words; *p; p += strspn(p, ",")) {
        size_t n = strcspn(p, ",");
        if (n < sizeof(word)) {
            memcpy(word, p, n);
            word[n] = '\0';
            if (strstr(tag, word))
                return true;
        }
        p += n;
    }
    return false;
}

/* "latest-cpu", "cpu-1.5" */
static bool is_named_cpu(const char *tag)
{
    const char *found = strstr(tag, "cpu");
    return found && (found == tag || found[-1] == '-') && (!found[3] || found[3] == '-');
}

/* What to do for a maker whose GPU it is given on request; NULL: it is given none. */
static const char *variant_for(const struct gp_exam *exam, const struct gp_docker_container *c,
                               size_t row)
{
    const struct gp_machine *m = &exam->machine;
    if (m->nvidia_count > 0 && gp_docker_has_gpus(c))
        return images[row].nvidia;
    if (m->amd_count > 0 && gp_docker_has_device(c, "/dev/kfd"))
        return images[row].amd;
    return m->intel_count > 0 && gp_docker_has_device(c, "/dev/dri") ? images[row].intel : NULL;
}

static void report(struct gp_exam *exam, const struct gp_docker_container *c, const char *image,
                   const char *advice)
{
    gp_exam_report(
        exam, GP_VERDICT_WARN,
        "container %s gets a GPU, but computes on the CPU: its image is the one for that", c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_why(exam, "An image brings its own libraries for GPUs, and this one has none; what the "
                      "container is given does not change that.");
    gp_exam_advice(exam,
                   "create the container again from the image for GPUs: %s; with docker "
                   "compose, change image: of the service, then docker compose up -d",
                   advice);
}

void gp_container_check_variant(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const char *tag = image ? tag_of(exam, image) : "";
    if (!image || !c->is_running || exam->machine.is_jetson)
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(images); i++) {
        if (!strstr(image, images[i].image) || has_one(tag, images[i].gpu))
            continue;
        const char *advice = variant_for(exam, c, i);
        if (advice)
            report(exam, c, image, advice);
        return;
    }
    if (is_named_cpu(tag) && exam->machine.nvidia_count > 0 &&
        json_array_size(gp_docker_requests(c)) > 0 && gp_docker_has_gpus(c))
        report(exam, c, image,
               "many programs have one with cuda or gpu in its tag, in place of cpu");
}
