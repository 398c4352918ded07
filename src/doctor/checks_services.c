/* Services that are kept from the GPUs by a variable in their unit, and Slurm's list of GPUs. */
#include "doctor/checks_services.h"

#include "doctor/exam.h"
#include "doctor/services.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 32 };

/* Variables by which a service sees no GPU: with a value that begins like this. */
static const struct {
    const char *variable, *value; /* "": an empty one, or one that begins with '-' */
} hiding[] = {{"CUDA_VISIBLE_DEVICES", ""},
              {"HIP_VISIBLE_DEVICES", ""},
              {"ROCR_VISIBLE_DEVICES", ""},
              {"OLLAMA_LLM_LIBRARY", "cpu"}};

static bool is_hiding(size_t i, const char *value)
{
    return hiding[i].value[0] ? strncmp(value, hiding[i].value, strlen(hiding[i].value)) == 0
                              : !value[0] || value[0] == '-';
}

/* Programs that are there to use a GPU; others may be meant to compute on the CPU. */
static bool is_for_gpu(const char *service)
{
    static const char *const names[] = {"ollama", "vllm",    "llama",  "comfy",          "sglang",
                                        "triton", "whisper", "diffus", "text-generation"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strstr(service, names[i]))
            return true;
    return false;
}

bool gp_services_has_hidden(struct gp_exam *exam)
{
    struct gp_service_setting found[1];
    bool is_any = false;
    for (size_t i = 0; exam->machine.gpu_count > 0 && i < GP_ARRAY_LEN(hiding); i++)
        is_any = is_any || gp_service_settings(exam, hiding[i].variable, found, 1) > 0;
    return is_any;
}

void gp_services_check_hidden(struct gp_exam *exam)
{
    struct gp_service_setting found[MOST];
    for (size_t i = 0; i < GP_ARRAY_LEN(hiding); i++) {
        size_t count = gp_service_settings(exam, hiding[i].variable, found, MOST);
        for (size_t k = 0; k < count; k++) {
            if (!is_hiding(i, found[k].value))
                continue;
            gp_exam_report(exam, is_for_gpu(found[k].service) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                           "%s sees no GPU: its unit sets %s", found[k].service,
                           hiding[i].variable);
            gp_exam_evidence(exam, found[k].where, "%s=%s", hiding[i].variable, found[k].value);
            gp_exam_command(exam, "remove that line", "sudo systemctl edit --full %s",
                            gp_exam_quoted(exam, found[k].service));
            gp_exam_command(exam, "", "sudo systemctl restart %s",
                            gp_exam_quoted(exam, found[k].service));
        }
    }
}

/* ---- Slurm ---- */

static const char *const gres_paths[] = {"/etc/slurm/gres.conf", "/etc/slurm-llnl/gres.conf",
                                         "/usr/local/etc/gres.conf"};

bool gp_services_has_gres(struct gp_exam *exam)
{
    for (size_t i = 0; exam->machine.nvidia_count > 0 && i < GP_ARRAY_LEN(gres_paths); i++)
        if (gp_files_exist(&exam->files, gres_paths[i]))
            return true;
    return false;
}

/* The first of "/dev/nvidia[0-3]" or "/dev/nvidia0" that does not exist; NULL: all do. Lists with
 * commas are left alone. */
static const char *missing_file(struct gp_exam *exam, const char *pattern)
{
    const char *open = strchr(pattern, '[');
    char *end = NULL;
    unsigned long first = open ? strtoul(open + 1, &end, 10) : 0;
    unsigned long last = open && *end == '-' ? strtoul(end + 1, &end, 10) : first;
    if (strncmp(pattern, "/dev/nvidia", 11) != 0 || (open && *end != ']'))
        return NULL;
    for (unsigned long i = first; i <= last && i < GP_MACHINE_GPUS; i++) {
        const char *path =
            open ? gp_exam_text(exam, "%.*s%lu", (int)(open - pattern), pattern, i) : pattern;
        if (!gp_files_exist(&exam->files, path))
            return path;
    }
    return NULL;
}

/* Whether a line is for other nodes than this one: "NodeName=node[1-4] Name=gpu File=…". */
static bool is_for_node(struct gp_exam *exam, const char *line)
{
    const char *name = strstr(line, "NodeName=");
    char host[256];
    if (!name)
        return true;
    return gp_files_line(&exam->files, "/etc/hostname", host, sizeof(host)) && host[0] &&
           strncmp(name + 9, host, strlen(host)) == 0 && strchr(" \t", name[9 + strlen(host)]);
}

void gp_services_check_gres(struct gp_exam *exam)
{
    static const char key[] = "File=";
    for (size_t i = 0; i < GP_ARRAY_LEN(gres_paths); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, gres_paths[i], 1 << 16, NULL);
        unsigned number = 1;
        for (const char *line = text; line && *line; number++) {
            size_t n = strcspn(line, "\n");
            const char *one = gp_exam_text(exam, "%.*s", (int)n, line);
            const char *file = one[0] != '#' ? strstr(one, key) : NULL;
            file =
                file ? gp_exam_text(exam, "%.*s", (int)strcspn(file + 5, " \t\r"), file + 5) : NULL;
            const char *missing = file && is_for_node(exam, one) ? missing_file(exam, file) : NULL;
            line += n + (line[n] == '\n');
            if (!missing)
                continue;
            gp_exam_report(exam, GP_VERDICT_WARN,
                           "Slurm's list of GPUs names %s, which does not exist", missing);
            gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", gres_paths[i], number), "%s", one);
            gp_exam_why(exam,
                        "slurmd does not start (\"can't stat gres.conf file\"), or drains the "
                        "node: \"gres/gpu count reported lower than configured\".");
            gp_exam_advice(
                exam,
                "if a GPU is missing, find it first; if there are only %zu, correct that "
                "line and Gres= in slurm.conf, or have Slurm ask the driver: "
                "AutoDetect=nvml",
                exam->machine.nvidia_count);
            gp_exam_command(exam, "then", "sudo systemctl restart slurmd");
            return;
        }
    }
}
