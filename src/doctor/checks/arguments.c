/* Programs that are started with an argument, or have a setting, by which they compute on the CPU.
 */
#include "doctor/checks/cuda.h"
#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/services.h"

#include <string.h>

enum { MOST = 64 };

static const struct {
    const char *program, *argument; /* a part of the service's name; "": any */
} on_cpu[] = {
    {"comfy", "--cpu"},           {"", "--use-cpu all"},     {"", "--always-cpu"},
    {"text-generation", "--cpu"}, {"oobabooga", "--cpu"},    {"kobold", "--usecpu"},
    {"vllm", "--device cpu"},     {"llama", "-ngl 0"},       {"llama", "--n-gpu-layers 0"},
    {"llama", "--gpu-layers 0"},  {"llama", "--device none"}};

/* Whether the words of the argument are in a command, not as a part of others. */
static bool has_words(const char *command, const char *argument)
{
    size_t n = strlen(argument);
    for (const char *p = command; (p = strstr(p, argument)); p += n)
        if (p > command && strchr(" \"'=", p[-1]) && (!p[n] || strchr(" \"'\r\\", p[n])))
            return true;
    return false;
}

static const char *argument_in(const char *program, const char *command)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(on_cpu); i++)
        if (strstr(program, on_cpu[i].program) && has_words(command, on_cpu[i].argument))
            return on_cpu[i].argument;
    return NULL;
}

enum place {
    PLACE_SERVICE,
    PLACE_WEBUI,   /* webui-user.sh of Stable Diffusion's web interface */
    PLACE_SCRIPT,  /* a script that starts a program */
    PLACE_SETTING, /* a line of a program's settings */
};

struct found {
    enum place place;
    const char *subject; /* the service, the folder, or the program */
    const char *path;    /* the file; NULL: a service's */
    const char *where, *argument;
    const char *change; /* of a setting: what sed is to do */
};

static void add(struct found ret[MOST], size_t *count, struct found found)
{
    if (*count < MOST)
        ret[(*count)++] = found;
}

static const char *text_of(struct gp_exam *exam, const char *path)
{
    return gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
}

/* The next line of a text that is no comment, with its number; NULL: none. */
static const char *next_line(struct gp_exam *exam, const char **text, unsigned *line)
{
    while (*text && **text) {
        size_t n = strcspn(*text, "\n");
        const char *found = gp_exam_text(exam, " %.*s", (int)n, *text);
        *text += n + ((*text)[n] == '\n');
        ++*line;
        if (found[1 + strspn(found + 1, " \t")] != '#')
            return found;
    }
    return NULL;
}

/* ---- folders of programs ---- */

/* webui-user.sh sets the arguments of Stable Diffusion's web interface. */
static void find_webui(struct gp_exam *exam, const char *folder, struct found ret[MOST],
                       size_t *count)
{
    const char *path = gp_exam_text(exam, "%s/webui-user.sh", folder), *set;
    const char *text = text_of(exam, path);
    unsigned line = 0;
    size_t length;
    while (text && gp_assignment_next(&text, "COMMANDLINE_ARGS", &line, &set, &length)) {
        const char *argument = argument_in("", gp_exam_text(exam, "%.*s", (int)length, set));
        if (argument)
            add(ret, count,
                (struct found){PLACE_WEBUI, folder, path, gp_exam_text(exam, "%s:%u", path, line),
                               argument, NULL});
    }
}

/* text-generation-webui reads its arguments from a file. */
static void find_flags(struct gp_exam *exam, const char *folder, struct found ret[MOST],
                       size_t *count)
{
    const char *path = gp_exam_text(exam, "%s/CMD_FLAGS.txt", folder), *command;
    const char *text = text_of(exam, path);
    unsigned line = 0;
    while ((command = next_line(exam, &text, &line))) {
        const char *argument = argument_in("text-generation", command);
        if (argument)
            add(ret, count,
                (struct found){PLACE_SCRIPT, folder, path, gp_exam_text(exam, "%s:%u", path, line),
                               argument, NULL});
    }
}

/* Whether all lines of a script that start ComfyUI have it compute on the CPU; *ret_line is one of
 * them, 0 if there is none. */
static bool starts_on_cpu(struct gp_exam *exam, const char *path, unsigned *ret_line)
{
    const char *text = text_of(exam, path), *command;
    unsigned line = 0;
    *ret_line = 0;
    while ((command = next_line(exam, &text, &line))) {
        if (!strstr(command, "main.py"))
            continue;
        *ret_line = line;
        if (!argument_in("comfy", command))
            return false;
    }
    return true;
}

/* The only scripts in ComfyUI's folder that start it; one beside others, or named for the CPU, is
 * meant. */
static void find_comfy(struct gp_exam *exam, const char *folder, struct found ret[MOST],
                       size_t *count)
{
    char **names;
    size_t before = *count;
    unsigned line;
    long n = gp_files_exist(&exam->files, gp_exam_text(exam, "%s/main.py", folder)) &&
                     (strstr(folder, "ComfyUI") || strstr(folder, "comfyui"))
                 ? gp_files_list(&exam->files, &exam->arena, folder, &names)
                 : 0;
    for (long i = 0; i < n; i++) {
        size_t length = strlen(names[i]);
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (length < 4 || strcmp(names[i] + length - 3, ".sh") != 0)
            continue;
        bool is_on_cpu = starts_on_cpu(exam, path, &line);
        if (line == 0)
            continue;
        if (!is_on_cpu || gp_name_is_for_cpu(names[i])) {
            *count = before;
            return;
        }
        add(ret, count,
            (struct found){PLACE_SCRIPT, folder, path, gp_exam_text(exam, "%s:%u", path, line),
                           "--cpu", NULL});
    }
}

/* InvokeAI's settings; its default is auto. */
static void find_invoke(struct gp_exam *exam, const char *folder, struct found ret[MOST],
                        size_t *count)
{
    const char *path = gp_exam_text(exam, "%s/invokeai.yaml", folder), *setting;
    const char *text = text_of(exam, path);
    unsigned line = 0;
    while ((setting = next_line(exam, &text, &line)))
        if (strcmp(setting + strspn(setting, " "), "device: cpu") == 0)
            add(ret, count,
                (struct found){PLACE_SETTING, "InvokeAI", path,
                               gp_exam_text(exam, "%s:%u", path, line), "device: cpu",
                               "-E 's/^( *device:) cpu/\\1 auto/'"});
}

/* Programs of AI that are not packaged are in a folder of the user's, or below /opt. A chip in the
 * CPU does not count: they would fail without the argument. */
static void find_folders(struct gp_exam *exam, struct found ret[MOST], size_t *count)
{
    const char *const above[] = {gp_machine_variable(&exam->machine, "HOME"), "/opt"};
    char **names;
    if (!gp_nvidia_is_there(exam) && !gp_gfx_has_card(&exam->machine))
        return;
    for (size_t a = 0; a < GP_ARRAY_LEN(above); a++) {
        long n = above[a] ? gp_files_list(&exam->files, &exam->arena, above[a], &names) : 0;
        for (long i = 0; i < n; i++) {
            const char *folder = gp_exam_text(exam, "%s/%s", above[a], names[i]);
            find_webui(exam, folder, ret, count);
            find_flags(exam, folder, ret, count);
            find_comfy(exam, folder, ret, count);
            if (gp_nvidia_is_there(exam))
                find_invoke(exam, folder, ret, count);
        }
    }
}

/* ---- settings of a user ---- */

static bool has_package(struct gp_exam *exam, const char *name)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++)
        if (gp_pyenv_package(&envs->list[i], name))
            return true;
    return false;
}

/* Accelerate writes it by itself where PyTorch found no GPU, and all its programs heed it later. */
static void find_accelerate(struct gp_exam *exam, struct found ret[MOST], size_t *count)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME"), *setting;
    const char *hub = gp_machine_variable(&exam->machine, "HF_HOME");
    const char *folder = hub ? hub : home ? gp_exam_text(exam, "%s/.cache/huggingface", home) : "";
    const char *path = gp_exam_text(exam, "%s/accelerate/default_config.yaml", folder);
    const char *text = *folder ? text_of(exam, path) : NULL;
    unsigned line = 0;
    while ((setting = next_line(exam, &text, &line)))
        if (strcmp(setting, " use_cpu: true") == 0 && has_package(exam, "accelerate"))
            add(ret, count,
                (struct found){PLACE_SETTING, "Accelerate", path,
                               gp_exam_text(exam, "%s:%u", path, line), "use_cpu: true",
                               "'s/^use_cpu: true/use_cpu: false/'"});
}

static size_t find_services(struct gp_exam *exam, struct found ret[MOST])
{
    struct gp_service_setting commands[MOST];
    size_t n = gp_service_commands(exam, commands, MOST), count = 0;
    for (size_t i = 0; i < n; i++) {
        const char *argument = argument_in(commands[i].service, commands[i].value);
        if (argument)
            add(ret, &count,
                (struct found){PLACE_SERVICE, commands[i].service, NULL, commands[i].where,
                               argument, NULL});
    }
    return count;
}

static size_t find_all(struct gp_exam *exam, struct found ret[MOST])
{
    size_t count = find_services(exam, ret);
    find_folders(exam, ret, &count);
    if (gp_nvidia_is_there(exam)) /* a chip of Intel's in the CPU does not count */
        find_accelerate(exam, ret, &count);
    return count;
}

bool gp_arguments_have_cpu(struct gp_exam *exam)
{
    struct found found[MOST];
    return find_all(exam, found) > 0;
}

static void report(struct gp_exam *exam, const struct found *found)
{
    bool is_setting = found->place == PLACE_SETTING;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s computes on the CPU: %s %s", found->subject,
                   is_setting ? "its settings have" : "it is started with", found->argument);
    gp_exam_evidence(exam, found->where, "%s", found->argument);
    gp_exam_why(exam, is_setting ? "The setting holds although there is a GPU."
                                 : "The argument is for machines without a GPU.");
    if (found->place == PLACE_SERVICE) {
        const char *service = gp_exam_quoted(exam, found->subject);
        gp_exam_command(exam, "remove it", "sudo systemctl edit --full %s", service);
        gp_exam_command(exam, "", "sudo systemctl restart %s", service);
    } else if (is_setting) {
        gp_exam_command(exam, "and start the program again", "sed -i.before %s %s", found->change,
                        gp_exam_quoted(exam, found->path));
    } else if (found->place == PLACE_SCRIPT) {
        gp_exam_advice(exam, "remove it from that file, and start the program again");
    } else {
        gp_exam_advice(exam,
                       "remove it from that file, with --skip-torch-cuda-test, --no-half and "
                       "--precision full if they came with it: if its PyTorch does not fit the "
                       "GPU, the web interface then says so");
    }
}

void gp_arguments_check_cpu(struct gp_exam *exam)
{
    struct found found[MOST];
    size_t n = find_all(exam, found);
    for (size_t i = 0; i < n; i++)
        report(exam, &found[i]);
}
