/* Docker's images of programs that have one for NVIDIA's GPUs and others: one that computes on a
 * GPU only, in a container without GPUs; and one for the CPU, in a container with GPUs. */
#include "doctor/checks/container.h"

#include "doctor/readers/docker.h"
#include "doctor/readers/searchpath.h"

#include <string.h>

/* Programs by the end of their images' names. */
static const struct program {
    const char *name;
    const char
        *word;       /* in the tags for NVIDIA's GPUs; "": in none, they are for these by default */
    const char *cpu; /* in the tags for the CPU; "": all that name no GPU are for it; NULL: it has
                        none, or chooses by itself */
    const char *serves; /* its commands that do not run, or are of no use, without a GPU, if its
                           tag is one for NVIDIA's; NULL: it also runs without */
    const char *nvidia, *intel, *amd; /* the image to take in place of that for the CPU, by the
                                         maker of the GPU; NULL: there is none */
} programs[] = {
    {"vllm/vllm-openai", "", NULL, "vllm serve,vllm.entrypoints.openai.api_server", NULL, NULL,
     NULL},
    {"lmsysorg/sglang", "", NULL, "sglang.launch_server,sglang serve", NULL, NULL, NULL},
    {"huggingface/text-generation-inference", "", NULL,
     "text-generation-launcher,tgi-entrypoint.sh --", NULL, NULL, NULL},
    {"huggingface/text-embeddings-inference", "", "cpu", "text-embeddings-router,entrypoint.sh --",
     "the tag without \"cpu-\" for A100 and A30, or with, in its place, \"turing-\" (T4, RTX 20), "
     "\"86-\" (A10, A40, RTX 30), \"89-\" (L4, L40, RTX 40) or \"hopper-\" (H100)",
     NULL, NULL},
    {"ggml-org/llama.cpp", "cuda", "", "llama-server,llama-cli,tools.sh --server,tools.sh -s",
     "add -cuda to the tag (server-cuda)", "add -vulkan to the tag (server-vulkan)",
     "add -vulkan to the tag (server-vulkan)"},
    {"ggerganov/llama.cpp", "cuda", "", "llama-server,llama-cli,tools.sh --server,tools.sh -s",
     "the same tag with -cuda (server-cuda), of ghcr.io/ggml-org/llama.cpp, the project's new "
     "address",
     "the same tag with -vulkan, of ghcr.io/ggml-org/llama.cpp, the project's new address",
     "the same tag with -vulkan, of ghcr.io/ggml-org/llama.cpp, the project's new address"},
    {"localai/localai", "cuda", "cpu", NULL,
     "a tag with gpu-nvidia-cuda-12 in place of cpu, such as latest-aio-gpu-nvidia-cuda-12", NULL,
     NULL},
    {"onerahmet/openai-whisper-asr-webservice", "gpu", "", NULL, "add -gpu to the tag (latest-gpu)",
     NULL, NULL},
    {"immich-app/immich-machine-learning", "cuda", "", NULL, "add -cuda to the tag (release-cuda)",
     "add -openvino to the tag (release-openvino)", "add -rocm to the tag (release-rocm)"},
    {"speaches-ai/speaches", "cuda", "cpu", NULL, "the tag with -cuda in place of -cpu", NULL,
     NULL},
    {"fedirz/faster-whisper-server", "cuda", "cpu", NULL, "the tag with -cuda in place of -cpu",
     NULL, NULL},
    {"linuxserver/faster-whisper", "gpu", "", NULL, "use the tag gpu", NULL, NULL},
    {"tensorflow/tensorflow", "gpu", "", NULL, "add -gpu to the tag (latest-gpu)", NULL, NULL},
    {"tensorflow/serving", "gpu", "", NULL, "add -gpu to the tag (latest-gpu)", NULL, NULL},
    {"pytorch/torchserve", "gpu", "", NULL, "use a tag with gpu (latest-gpu)", NULL, NULL},
};

/* Words of tags for other vendors' GPUs and other processors. */
static const char *const others[] = {"rocm", "hip",    "intel",  "xpu",    "sycl",    "vulkan",
                                     "musa", "openvi", "hpu",    "gaudi",  "xeon",    "npu",
                                     "cann", "tpu",    "armnn",  "neuron", "rknn",    "s390x",
                                     "mlx",  "l4t",    "jetson", "metal",  "llamacpp"};

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t n = strlen(end);
    return length >= n && strncmp(text + length - n, end, n) == 0 &&
           (length == n || text[length - n - 1] == '/');
}

/* The tag of "repository:tag", "registry:5000/repository" or "repository:tag@sha256:…"; "": it is
 * not known, by a digest alone. */
static const char *tag_of(struct gp_exam *exam, const char *image)
{
    const char *slash = strrchr(image, '/'), *at = strchr(image, '@');
    const char *colon = strchr(slash ? slash : image, ':');
    if (colon && (!at || colon < at))
        return gp_exam_text(exam, "%.*s", (int)strcspn(colon + 1, "@"), colon + 1);
    return at ? "" : "latest";
}

/* The program of an image, "ghcr.io/ggml-org/llama.cpp:server"; NULL: another one. */
static const struct program *program_of(const char *image)
{
    const char *slash = strrchr(image, '/');
    size_t length = slash ? (size_t)(slash - image) + strcspn(slash, ":@") : strcspn(image, ":@");
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++)
        if (ends_with(image, length, programs[i].name))
            return &programs[i];
    return NULL;
}

static bool is_for_others(const char *tag)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (strstr(tag, others[i]))
            return true;
    return false;
}

/* "cpu" of "cpu" and of "--device=cpu" */
static const char *value_of(const char *word)
{
    const char *sign = word[0] == '-' ? strchr(word, '=') : NULL;
    return sign ? sign + 1 : word;
}

/* "-ngl 0", "--gpu-layers=0" */
static bool is_zero_option(const char *before, const char *word)
{
    static const char *const options[] = {"-ngl", "--n-gpu-layers", "--gpu-layers",
                                          "--data-parallel-size-local"};
    const char *value = value_of(word), *option = value == word ? before : word;
    size_t n = strcspn(option, "=");
    for (size_t i = 0; strcmp(value, "0") == 0 && i < GP_ARRAY_LEN(options); i++)
        if (strlen(options[i]) == n && strncmp(option, options[i], n) == 0)
            return true;
    return false;
}

/* Whether what it was started with says that it is to compute on the CPU, or not to serve. */
static bool is_started_for_cpu(const struct gp_docker_container *c)
{
    static const char *const words[] = {"cpu",     "bench", "none", "--disable-custom-kernels",
                                        "--help",  "sh",    "bash", "/bin/bash",
                                        "/bin/sh", "ray"};
    const json_t *settings = json_object_get(c->config, "Config");
    const json_t *command = json_object_get(settings, "Cmd");
    const json_t *entry = json_object_get(settings, "Entrypoint");
    const char *before = "";
    for (size_t i = 0; i < json_array_size(entry) + json_array_size(command); i++) {
        size_t n = json_array_size(entry);
        const char *one =
            json_string_value(i < n ? json_array_get(entry, i) : json_array_get(command, i - n));
        if (!one)
            return true; /* not understood */
        for (size_t k = 0; k < GP_ARRAY_LEN(words); k++)
            if (strcmp(value_of(one), words[k]) == 0)
                return true;
        if (is_zero_option(before, one))
            return true;
        before = one;
    }
    const char *layers = gp_docker_variable(c, "LLAMA_ARG_N_GPU_LAYERS");
    return layers && strcmp(layers, "0") == 0;
}

/* Whether its command is one that needs a GPU: people also start routers, clients and shells from
 * these images. */
static bool is_serving(struct gp_exam *exam, const struct gp_docker_container *c,
                       const struct program *p)
{
    const char *command = gp_container_command(exam, c), *list = p->serves;
    char one[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ",", one))
        if (strstr(command, one))
            return true;
    return false;
}

const char *gp_container_needs_gpu(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const struct program *p = image ? program_of(image) : NULL;
    const char *tag = p ? tag_of(exam, image) : "";
    if (!tag[0] || !strstr(tag, p->word) || strstr(tag, "cpu") || is_for_others(tag) ||
        !is_serving(exam, c, p) || is_started_for_cpu(c))
        return NULL;
    return image;
}

static bool is_for_cpu(const struct program *p, const char *tag)
{
    return p->cpu && strstr(tag, p->cpu) && !is_for_others(tag) &&
           !(p->word[0] && strstr(tag, p->word));
}

/* "latest-cpu", "cpu-1.5" */
static bool is_named_cpu(const char *tag)
{
    const char *found = strstr(tag, "cpu");
    return found && (found == tag || found[-1] == '-') && (!found[3] || found[3] == '-');
}

/* What to do for a maker whose GPU the container is given on request; NULL: nothing. */
static const char *advice_for(const struct gp_exam *exam, const struct gp_docker_container *c,
                              const struct program *p)
{
    const struct gp_machine *m = &exam->machine;
    if (m->nvidia_count > 0 && gp_docker_has_gpus(c))
        return p->nvidia;
    if (m->amd_count > 0 && gp_docker_has_device(c, "/dev/kfd"))
        return p->amd;
    return m->intel_count > 0 && gp_docker_has_device(c, "/dev/dri") ? p->intel : NULL;
}

/* Likewise for programs that are not in the table. */
static const char *advice_by_name(const struct gp_exam *exam, const struct gp_docker_container *c,
                                  const char *tag)
{
    return is_named_cpu(tag) && exam->machine.nvidia_count > 0 &&
                   json_array_size(gp_docker_requests(c)) > 0 && gp_docker_has_gpus(c)
               ? "many programs have one with cuda or gpu in its tag, in place of cpu"
               : NULL;
}

void gp_container_check_image(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const char *tag = image ? tag_of(exam, image) : "", *advice = NULL;
    if (!tag[0] || !c->is_running || exam->machine.is_jetson || gp_docker_is_for_cpu(c) ||
        is_started_for_cpu(c))
        return;
    const struct program *p = program_of(image);
    if (!p)
        advice = advice_by_name(exam, c, tag);
    else if (is_for_cpu(p, tag))
        advice = advice_for(exam, c, p);
    if (!advice)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s gets a GPU, but its image is the one for the CPU", c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_why(exam, "An image brings its own libraries for GPUs, and this one has none: driver, "
                      "toolkit and options of the container do not change that.");
    gp_exam_advice(exam,
                   "create the container again from the program's image for GPUs (image: in its "
                   "compose file, then docker compose up -d): %s",
                   advice);
}
