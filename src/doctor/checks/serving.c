#include "doctor/checks/serving.h"

#include "doctor/exam.h"
#include "doctor/readers/services.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

/* The options by which they say among how many GPUs each copy of the model is divided. */
static const struct {
    const char *program, *option;
} options[] = {{"vllm", "--tensor-parallel-size"},
               {"vllm", "-tp"},
               {"sglang", "--tensor-parallel-size"},
               {"sglang", "--tp-size"},
               {"sglang", "--tp"},
               {"text-generation-inference", "--num-shard"},
               {"text-generation-launcher", "--num-shard"}};

/* Options with which the GPUs may be those of several machines, or no GPUs. */
static const char *const elsewhere[] = {"ray", "--nnodes", "--headless", "--dist-init-addr",
                                        "--device"};

unsigned gp_serving_gpus(const char *command)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(elsewhere); i++)
        if (strstr(command, elsewhere[i]))
            return 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(options); i++) {
        const char *found = strstr(command, options[i].program);
        size_t n = strlen(options[i].option);
        while (found && (found = strstr(found, options[i].option))) {
            bool is_word = found[-1] == ' ' && (found[n] == ' ' || found[n] == '=');
            found += n;
            if (is_word && isdigit((unsigned char)found[1]))
                return (unsigned)strtoul(found + 1, NULL, 10);
        }
    }
    return 0;
}

bool gp_serving_has_parts(struct gp_exam *exam)
{
    char **names;
    return gp_files_list(&exam->files, &exam->arena, "/proc/driver/nvidia/capabilities/gpu0/mig",
                         &names) > 0;
}

void gp_serving_explain(struct gp_exam *exam)
{
    gp_exam_why(exam, "It divides the model among that many GPUs, and stops at the start: \"The "
                      "number of required GPUs exceeds the total number of available GPUs\", or "
                      "\"invalid device ordinal\".");
    gp_exam_advice(exam, "the number must also divide the model's attention heads; a model that "
                         "does not fit into the memory of these GPUs needs a quantized version");
}

/* The first of them; 0: there is none. */
static unsigned find(struct gp_exam *exam, struct gp_service_setting *ret)
{
    struct gp_service_setting commands[MOST];
    size_t n = gp_service_commands(exam, commands, MOST);
    for (size_t i = 0; i < n; i++) {
        unsigned wanted = gp_serving_gpus(commands[i].value);
        *ret = commands[i];
        if (wanted > exam->machine.nvidia_count && gp_service_is_enabled(exam, commands[i].service))
            return wanted;
    }
    return 0;
}

bool gp_serving_wants_more(struct gp_exam *exam)
{
    struct gp_service_setting one;
    const struct gp_machine *m = &exam->machine;
    return m->nvidia_count > 0 && m->nvidia_count == m->gpu_count && find(exam, &one) > 0 &&
           !gp_serving_has_parts(exam);
}

void gp_serving_check_services(struct gp_exam *exam)
{
    struct gp_service_setting one;
    unsigned wanted = gp_serving_wants_more(exam) ? find(exam, &one) : 0;
    size_t count = exam->machine.nvidia_count;
    if (wanted == 0)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s is started for %u GPUs, but this machine has %zu",
                   one.service, wanted, count);
    gp_exam_evidence(exam, one.where, "%u GPUs", wanted);
    gp_exam_evidence(exam, "/sys/bus/pci/devices", "%zu of NVIDIA", count);
    const char *service = gp_exam_quoted(exam, one.service);
    gp_exam_command(exam, gp_exam_text(exam, "start it with %zu or less", count),
                    "sudo systemctl edit --full %s", service);
    gp_exam_command(exam, "", "sudo systemctl restart %s", service);
    gp_serving_explain(exam);
}
