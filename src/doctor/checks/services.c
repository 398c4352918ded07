/* Services that are kept from the GPUs by a variable in their unit. */
#include "doctor/checks/system.h"

#include "doctor/checks/cuda.h"
#include "doctor/checks/serving.h"
#include "doctor/exam.h"
#include "doctor/readers/services.h"

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
    return is_any || gp_serving_wants_more(exam);
}

void gp_services_check_hidden(struct gp_exam *exam)
{
    struct gp_service_setting found[MOST];
    gp_arguments_check_cpu(exam);
    gp_serving_check_services(exam);
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
