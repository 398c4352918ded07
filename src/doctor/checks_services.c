/* Services that are kept from the GPUs by a variable in their unit, and Slurm's list of GPUs. */
#include "doctor/checks_services.h"

#include "doctor/checks_cuda.h"
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
    bool is_any = exam->machine.gpu_count > 0 && gp_arguments_have_cpu(exam);
    for (size_t i = 0; exam->machine.gpu_count > 0 && i < GP_ARRAY_LEN(hiding); i++)
        is_any = is_any || gp_service_settings(exam, hiding[i].variable, found, 1) > 0;
    return is_any;
}

void gp_services_check_hidden(struct gp_exam *exam)
{
    struct gp_service_setting found[MOST];
    gp_arguments_check_cpu(exam);
    for (size_t i = 0; i < GP_ARRAY_LEN(hiding); i++) {
        size_t count = gp_service_settings(exam, hiding[i].variable, found, MOST);
        for (size_t k = 0; k < count; k++) {
            bool is_for_cuda = strcmp(hiding[i].variable, "CUDA_VISIBLE_DEVICES") == 0;
            if (!is_hiding(i, found[k].value) &&
                !(is_for_cuda && gp_cuda_mask_is_empty(exam, found[k].value)))
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

static bool report_missing(struct gp_exam *exam, const char *place, const char *line)
{
    static const char key[] = "File=";
    const char *file = strstr(line, key);
    file = file ? gp_exam_text(exam, "%.*s", (int)strcspn(file + 5, " \t\r"), file + 5) : NULL;
    const char *missing = file && is_for_node(exam, line) ? missing_file(exam, file) : NULL;
    if (!missing)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "Slurm's list of GPUs names %s, which does not exist",
                   missing);
    gp_exam_evidence(exam, place, "%s", line);
    gp_exam_why(exam, "slurmd does not start (\"can't stat gres.conf file\"), or drains the "
                      "node: \"gres/gpu count reported lower than configured\".");
    gp_exam_advice(exam,
                   "if a GPU is missing, find it first; if there are only %zu, correct that "
                   "line and Gres= in slurm.conf, or have Slurm ask the driver: "
                   "AutoDetect=nvml",
                   exam->machine.nvidia_count);
    gp_exam_command(exam, "then", "sudo systemctl restart slurmd");
    return true;
}

static unsigned long number_after(const char *line, const char *key)
{
    const char *found = strstr(line, key);
    return found ? strtoul(found + strlen(key), NULL, 10) : 0;
}

/* How many cores the largest node of slurm.conf has; 0: unknown, or none has hyper-threads. */
static unsigned long most_cores(struct gp_exam *exam, const char *gres)
{
    const char *path =
        gp_exam_text(exam, "%.*s/slurm.conf", (int)(strrchr(gres, '/') - gres), gres);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    unsigned long most = 0;
    bool has_threads = false;
    for (const char *line = text; line && *line; line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        const char *one = gp_exam_text(exam, "%.*s", (int)n, line);
        line += n;
        if (strncmp(one, "NodeName=", 9) != 0)
            continue;
        unsigned long cores =
            number_after(one, " Sockets=") * number_after(one, " CoresPerSocket=");
        if (cores == 0)
            return 0;
        has_threads = has_threads || number_after(one, " ThreadsPerCore=") > 1;
        most = cores > most ? cores : most;
    }
    return has_threads ? most : 0;
}

/* Slurm counts cores; the driver's topology counts their threads. */
static bool report_cores(struct gp_exam *exam, const char *place, const char *line,
                         unsigned long cores)
{
    const char *list = strstr(line, " Cores=");
    if (!list)
        list = strstr(line, " CPUs=");
    unsigned long last = 0;
    for (const char *at = list ? strchr(list, '=') + 1 : ""; *at && !strchr(" \t\r", *at);) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        last = number > last ? number : last;
        at = end + (*end == ',' || *end == '-');
        if (at == end)
            break;
    }
    if (cores == 0 || last < cores)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Slurm's list of GPUs names core %lu, but its nodes have %lu cores", last,
                   cores);
    gp_exam_evidence(exam, place, "%s", line);
    gp_exam_why(exam, "Slurm numbers cores, not their threads. slurmctld logs \"invalid GRES "
                      "core specification\".");
    gp_exam_advice(exam,
                   "leave the numbers from %lu on out of all lines (Cores=0-15 in place of "
                   "0-15,%lu-%lu), or have Slurm ask the driver: AutoDetect=nvml",
                   cores, cores, cores + 15);
    gp_exam_command(exam, "then", "sudo scontrol reconfigure");
    return true;
}

void gp_services_check_gres(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(gres_paths); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, gres_paths[i], 1 << 16, NULL);
        unsigned long cores = text ? most_cores(exam, gres_paths[i]) : 0;
        unsigned number = 1;
        for (const char *line = text; line && *line; number++) {
            size_t n = strcspn(line, "\n");
            const char *one = gp_exam_text(exam, "%.*s", (int)n, line);
            const char *place = gp_exam_text(exam, "%s:%u", gres_paths[i], number);
            line += n + (line[n] == '\n');
            if (one[0] != '#' &&
                (report_missing(exam, place, one) || report_cores(exam, place, one, cores)))
                return;
        }
    }
}
