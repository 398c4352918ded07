/* Programs that are started with an argument by which they compute on the CPU. */
#include "doctor/checks/system.h"
#include "doctor/exam.h"
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

struct found {
    const char *service, *folder; /* one of them is NULL */
    const char *where, *argument;
};

/* webui-user.sh sets the arguments of Stable Diffusion's web interface. */
static size_t find_webui(struct gp_exam *exam, struct found ret[MOST])
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    char **names;
    size_t count = 0;
    long n = home ? gp_files_list(&exam->files, &exam->arena, home, &names) : 0;
    for (long i = 0; i < n && count < MOST; i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", home, names[i]);
        const char *path = gp_exam_text(exam, "%s/webui-user.sh", folder), *set;
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
        unsigned line = 0;
        size_t length;
        while (text && gp_assignment_next(&text, "COMMANDLINE_ARGS", &line, &set, &length)) {
            const char *argument = argument_in("", gp_exam_text(exam, "%.*s", (int)length, set));
            if (argument && count < MOST)
                ret[count++] =
                    (struct found){NULL, folder, gp_exam_text(exam, "%s:%u", path, line), argument};
        }
    }
    return count;
}

static size_t find_services(struct gp_exam *exam, struct found ret[MOST])
{
    struct gp_service_setting commands[MOST];
    size_t n = gp_service_commands(exam, commands, MOST), count = 0;
    for (size_t i = 0; i < n; i++) {
        const char *argument = argument_in(commands[i].service, commands[i].value);
        if (argument)
            ret[count++] = (struct found){commands[i].service, NULL, commands[i].where, argument};
    }
    return count;
}

bool gp_arguments_have_cpu(struct gp_exam *exam)
{
    struct found found[MOST];
    return find_services(exam, found) > 0 || find_webui(exam, found) > 0;
}

static void report(struct gp_exam *exam, const struct found *found)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "%s computes on the CPU: it is started with %s",
                   found->service ? found->service : found->folder, found->argument);
    gp_exam_evidence(exam, found->where, "%s", found->argument);
    gp_exam_why(exam, "The argument is for machines without a GPU.");
    if (found->service) {
        const char *service = gp_exam_quoted(exam, found->service);
        gp_exam_command(exam, "remove it", "sudo systemctl edit --full %s", service);
        gp_exam_command(exam, "", "sudo systemctl restart %s", service);
        return;
    }
    gp_exam_advice(exam,
                   "remove it from that file, with --skip-torch-cuda-test, --no-half and "
                   "--precision full if they came with it: if its PyTorch does not fit the GPU, "
                   "the web interface then says so");
}

void gp_arguments_check_cpu(struct gp_exam *exam)
{
    struct found found[MOST];
    size_t n = find_services(exam, found);
    for (size_t i = 0; i < n; i++)
        report(exam, &found[i]);
    n = find_webui(exam, found);
    for (size_t i = 0; i < n; i++)
        report(exam, &found[i]);
}
