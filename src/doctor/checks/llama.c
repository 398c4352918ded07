/* llama.cpp: whether what is started for the GPU was built for one: system.llama. */
#include "doctor/checks/system.h"

#include "doctor/exam.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { MOST = 64 };

/* The option by which layers of a model are put on the GPU; newer releases do so by themselves. */
static const char *const options[] = {"-ngl", "--n-gpu-layers", "--gpu-layers"};

/* A program of llama.cpp that was started with options to use the GPU. */
struct program {
    const char *path;  /* "/home/ada/llama.cpp/build/bin/llama-server"; "": unknown */
    const char *where; /* the unit's line, or the process */
    const char *option;
};

/* The option in a command whose words end with this character, unless its value is 0. */
static const char *option_in(const char *text, size_t length, char end)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++) {
        size_t n = strlen(options[i]);
        const char *found = memmem(text, length, options[i], n);
        const char *value = found ? found + n + 1 : NULL;
        bool is_inside = value && value < text + length;
        if (is_inside && (found[n] == end || found[n] == '=') &&
            !(value[0] == '0' && !isdigit((unsigned char)value[1])))
            return options[i];
    }
    return NULL;
}

static bool is_ours(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && strncmp(slash + 1, "llama-", 6) == 0;
}

static bool find_in_services(struct gp_exam *exam, struct program *ret)
{
    struct gp_service_setting commands[MOST];
    size_t n = gp_service_commands(exam, commands, MOST);
    for (size_t i = 0; i < n; i++) {
        const char *text = strchr(commands[i].value, '=');
        text = text ? text + 1 + strspn(text + 1, " \t-@:+!") : "";
        const char *path = gp_exam_text(exam, "%.*s", (int)strcspn(text, " \t\r\n"), text);
        *ret = (struct program){path, commands[i].where, option_in(text, strlen(text), ' ')};
        /* a unit that nobody starts is no wish; find_running() sees what runs */
        if (ret->option && is_ours(path) && gp_service_is_enabled(exam, commands[i].service))
            return true;
    }
    return false;
}

static bool find_running(struct gp_exam *exam, struct program *ret)
{
    char path[GP_PATH_SIZE];
    struct gp_processes all = gp_processes_of(exam);
    const char *process;
    while ((process = gp_processes_next(exam, &all, "llama-"))) {
        const char *where = gp_exam_text(exam, "%s/cmdline", process);
        size_t length = 0;
        const char *text = gp_files_text(&exam->files, &exam->arena, where, 1 << 16, &length);
        const char *option = text ? option_in(text, length, '\0') : NULL;
        if (!option)
            continue;
        bool is_known = gp_files_link(&exam->files, gp_exam_text(exam, "%s/exe", process), path);
        *ret = (struct program){gp_exam_text(exam, "%s", is_known ? path : text), where, option};
        return is_ours(ret->path);
    }
    return false;
}

static bool find(struct gp_exam *exam, struct program *ret)
{
    return find_in_services(exam, ret) || find_running(exam, ret);
}

bool gp_llama_is_there(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    struct program program;
    return m->nvidia_count + m->amd_count > 0 && find(exam, &program);
}

/* Whether the libraries next to it are only for the CPU. */
static bool is_split_for_cpu(struct gp_exam *exam, const char *folder)
{
    static const char start[] = "libggml-";
    static const char *const parts[] = {"base", "cpu", "blas"}; /* all others are for GPUs */
    bool is_split = false;
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *part = names[i] + sizeof(start) - 1;
        bool is_known = false;
        if (strncmp(names[i], start, sizeof(start) - 1) != 0)
            continue;
        for (size_t k = 0; k < GP_ARRAY_LEN(parts); k++)
            is_known = is_known || strncmp(part, parts[k], strlen(parts[k])) == 0;
        if (!is_known)
            return false;
        is_split = is_split || strncmp(part, "cpu", 3) == 0;
    }
    return is_split;
}

/* One of CMake's words for "no"; all others may be on. */
static bool is_off(const char *value)
{
    static const char *const words[] = {"OFF", "0", "FALSE", "NO", "N", ""};
    size_t n = strcspn(value, "\r\n");
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strlen(words[i]) == n && strncasecmp(value, words[i], n) == 0)
            return true;
    return false;
}

/* Whether its build was configured for the CPU: some parts are named, and none is on. */
static bool is_built_for_cpu(struct gp_exam *exam, const char *cache)
{
    static const char *const parts[] = {"CUDA", "CUBLAS",   "HIP",     "HIPBLAS", "VULKAN",
                                        "SYCL", "OPENCL",   "CLBLAST", "MUSA",    "RPC",
                                        "CANN", "OPENVINO", "WEBGPU"};
    const char *text = gp_files_text(&exam->files, &exam->arena, cache, 1 << 20, NULL);
    bool is_named = false;
    for (size_t i = 0; text && i < GP_ARRAY_LEN(parts); i++) {
        const char *key = gp_exam_text(exam, "_%s:BOOL=", parts[i]);
        for (const char *p = text; (p = strstr(p, key)); is_named = true) {
            p += strlen(key);
            if (!is_off(p))
                return false;
        }
    }
    return is_named;
}

/* The option as this tree calls it: older ones have other names, and ignore the newer. */
static const char *option_of(struct gp_exam *exam, const char *cache, bool is_nvidia)
{
    static const char *const names[2][3] = {{"GGML_HIP", "GGML_HIPBLAS", "LLAMA_HIPBLAS"},
                                            {"GGML_CUDA", "LLAMA_CUDA", "LLAMA_CUBLAS"}};
    const char *text = gp_files_text(&exam->files, &exam->arena, cache, 1 << 20, NULL);
    for (size_t i = 0; text && i < GP_ARRAY_LEN(names[0]); i++)
        if (strstr(text, gp_exam_text(exam, "\n%s:BOOL=", names[is_nvidia][i])))
            return names[is_nvidia][i];
    return names[is_nvidia][0];
}

void gp_llama_check(struct gp_exam *exam)
{
    struct program program;
    if (!find(exam, &program) || program.path[0] != '/')
        return;
    const char *slash = strrchr(program.path, '/');
    const char *folder = gp_exam_text(exam, "%.*s", (int)(slash - program.path), program.path);
    const char *last = strrchr(folder, '/');
    bool is_in_bin = last && strcmp(last, "/bin") == 0;
    const char *build =
        is_in_bin ? gp_exam_text(exam, "%.*s", (int)(last - folder), folder) : folder;
    const char *cache = gp_exam_text(exam, "%s/CMakeCache.txt", build);
    bool has_cache = gp_files_exist(&exam->files, cache);
    if (has_cache ? !is_built_for_cpu(exam, cache) : !is_split_for_cpu(exam, folder))
        return;
    bool is_nvidia = exam->machine.nvidia_count > 0;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "llama.cpp computes on the CPU: %s was built without a part for GPUs",
                   program.path);
    gp_exam_evidence(exam, program.where, "%s", program.option);
    if (has_cache)
        gp_exam_evidence(exam, cache, "%s is not on, and no other part for GPUs",
                         option_of(exam, cache, is_nvidia));
    else
        gp_exam_evidence(exam, folder, "libggml-cpu, but no libggml-cuda, -hip or -vulkan");
    gp_exam_why(exam, "Such a build ignores the option: \"no usable GPU found, --gpu-layers option "
                      "will be ignored\".");
    if (!has_cache) {
        gp_exam_advice(exam,
                       "use the release's archive for Vulkan (…-ubuntu-vulkan-x64), or build "
                       "it with -DGGML_%s=ON",
                       is_nvidia ? "CUDA" : "HIP");
        return;
    }
    const char *top = strrchr(build, '/');
    const char *source =
        gp_exam_quoted(exam, gp_exam_text(exam, "%.*s", top ? (int)(top - build) : 0, build));
    const char *quoted = gp_exam_quoted(exam, build);
    gp_exam_command(exam, is_nvidia ? "needs nvcc, of the CUDA toolkit" : "needs ROCm's compiler",
                    "cmake -S %s -B %s -D%s=ON", source, quoted, option_of(exam, cache, is_nvidia));
    gp_exam_command(exam, "then start it again", "cmake --build %s --config Release -j", quoted);
}
