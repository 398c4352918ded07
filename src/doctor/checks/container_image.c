/* Docker's images of programs that have one for NVIDIA's GPUs and others: one that computes on a
 * GPU only, in a container without GPUs; and one for the CPU, in a container with GPUs. */
#include "doctor/checks/container.h"

#include "doctor/readers/docker.h"

#include <string.h>

/* Programs by the end of their images' names. */
static const struct program {
    const char *name;
    const char
        *word;       /* in the tags for NVIDIA's GPUs; "": in none, they are for these by default */
    const char *cpu; /* in the tags for the CPU; "": all that name no GPU are for it; NULL: it has
                        none, or chooses by itself */
    const char *advice; /* the image to take in place of that for the CPU */
} programs[] = {
    {"vllm/vllm-openai", "", NULL, ""},
    {"lmsysorg/sglang", "", NULL, ""},
    {"huggingface/text-generation-inference", "", NULL, ""},
    {"huggingface/text-embeddings-inference", "", "cpu",
     "the tag without \"cpu-\" for A100 and A30, or with, in its place, \"turing-\" (T4, RTX 20), "
     "\"86-\" (A10, A40, RTX 30), \"89-\" (L4, L40, RTX 40) or \"hopper-\" (H100)"},
    {"ggml-org/llama.cpp", "cuda", "",
     "the tag server-cuda, full-cuda or light-cuda, as server, full or light now"},
    {"ggerganov/llama.cpp", "cuda", "",
     "the same tag with -cuda (server-cuda), of ghcr.io/ggml-org/llama.cpp, the project's new "
     "address"},
    {"localai/localai", "cuda", "cpu",
     "a tag with gpu-nvidia-cuda-12 in place of cpu, such as latest-aio-gpu-nvidia-cuda-12"},
    {"onerahmet/openai-whisper-asr-webservice", "gpu", "",
     "the same tag with -gpu, such as latest-gpu"},
    {"immich-app/immich-machine-learning", "cuda", "", "the same tag with -cuda"},
    {"speaches-ai/speaches", "cuda", "cpu", "the tag with -cuda in place of -cpu"},
    {"fedirz/faster-whisper-server", "cuda", "cpu", "the tag with -cuda in place of -cpu"},
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

/* The program of an image, "ghcr.io/ggml-org/llama.cpp:server", and its tag; NULL: another one.
 * Without a tag, what is meant is latest; by a digest alone, nothing is known. */
static const struct program *program_of(const char *image, const char **ret_tag)
{
    const char *slash = strrchr(image, '/');
    const char *colon = strchr(slash ? slash : image, ':');
    size_t length = colon ? (size_t)(colon - image) : strlen(image);
    *ret_tag = colon ? colon + 1 : "";
    if (strchr(image, '@'))
        return NULL;
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

/* Whether what it was started with says that it is to compute on the CPU, or not to serve. */
static bool is_started_for_cpu(const struct gp_docker_container *c)
{
    static const char *const words[] = {"cpu",    "bench", "none", "--disable-custom-kernels",
                                        "--help", "sh",    "bash", "/bin/bash",
                                        "/bin/sh"};
    static const char *const layers[] = {"-ngl", "--n-gpu-layers", "--gpu-layers"};
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
            if (strcmp(one, words[k]) == 0)
                return true;
        for (size_t k = 0; k < GP_ARRAY_LEN(layers); k++)
            if (strcmp(before, layers[k]) == 0 && strcmp(one, "0") == 0)
                return true;
        before = one;
    }
    return false;
}

const char *gp_container_needs_gpu(const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image"), *tag;
    const struct program *p = image ? program_of(image, &tag) : NULL;
    if (!p || !strstr(tag, p->word) || strstr(tag, "cpu") || is_for_others(tag) ||
        is_started_for_cpu(c))
        return NULL;
    return image;
}

/* The program of an image for the CPU; NULL: it is none. */
static const struct program *program_for_cpu(const char *image)
{
    const char *tag;
    const struct program *p = program_of(image, &tag);
    if (!p || !p->cpu || !strstr(tag, p->cpu) || is_for_others(tag) ||
        (p->word[0] && strstr(tag, p->word)))
        return NULL;
    return p;
}

void gp_container_check_image(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *image = gp_docker_text(json_object_get(c->config, "Config"), "Image");
    const struct gp_machine *m = &exam->machine;
    const struct program *p = image ? program_for_cpu(image) : NULL;
    if (!p || !c->is_running || m->nvidia_count == 0 || m->is_jetson || !gp_docker_has_gpus(c) ||
        gp_docker_is_for_cpu(c) || is_started_for_cpu(c))
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s gets the GPU, but its image is the one for the CPU", c->name);
    gp_exam_evidence(exam, c->config_path, "Image: %s", image);
    gp_exam_why(exam, "The program in this image has no code for a GPU, and computes on the CPU. "
                      "Driver, toolkit and options of the container do not add it.");
    gp_exam_advice(exam,
                   "create the container again from the program's image for NVIDIA's GPUs (image: "
                   "in its compose file, then docker compose up -d): %s",
                   p->advice);
}
