/* CPUs without AVX, which programs for GPUs need: hardware.cpu. */
#include "doctor/checks/hardware.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/ollama.h"
#include "doctor/readers/log.h"
#include "doctor/readers/pyenv.h"
#include "doctor/version.h"

#include <string.h>

static const char cpuinfo[] = "/proc/cpuinfo";

/* The value of the first line with this key, "model name", after a space. */
static const char *cpu_value(struct gp_exam *exam, const char *key)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, cpuinfo, 1 << 16, NULL);
    const char *line = text ? strstr(text, key) : NULL;
    size_t n = line ? strcspn(line, "\n") : 0;
    const char *colon = n ? memchr(line, ':', n) : NULL;
    return colon ? gp_exam_text(exam, "%.*s", (int)(line + n - colon - 1), colon + 1) : " ";
}

/* Models that a hypervisor makes up, with few instructions. */
static bool is_made_up(struct gp_exam *exam)
{
    const char *model = cpu_value(exam, "model name");
    return strstr(model, "QEMU Virtual CPU") || strstr(model, "Common KVM processor") ||
           strstr(model, "Common 32-bit KVM processor");
}

/* Of an old CPU, which a hypervisor is configured to show. */
static bool is_old_model(struct gp_exam *exam)
{
    const char *model = cpu_value(exam, "model name");
    return strstr(model, "xx (") || strstr(model, " Class Core") || strstr(model, " Class Opteron");
}

static bool is_virtual(struct gp_exam *exam)
{
    return is_made_up(exam) || strstr(cpu_value(exam, "flags"), " hypervisor");
}

static bool lacks_avx(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *flags = cpu_value(exam, "flags");
    return flags[1] && !strstr(flags, " avx") && strcmp(m->arch, "x86_64") == 0 &&
           m->nvidia_count + m->amd_count > 0;
}

/* What ends at its import without AVX, by the first such release on PyPI; builds of others may do
 * without. */
static const struct {
    const char *package, *first, *title;
} users[] = {{"tensorflow", "1.6", "TensorFlow"},
             {"tensorflow-gpu", "1.6", "TensorFlow"},
             {"jaxlib", "0.1.62", "JAX"}};

/* What needs AVX, and where that is seen. */
struct need {
    const char *title, *where, *text;
    const struct gp_log_known *said; /* NULL: nothing */
};

static bool find_package(struct gp_exam *exam, struct need *ret)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    for (size_t i = 0; i < envs->count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(users); k++) {
            const struct gp_pyenv *env = &envs->list[i];
            const struct gp_pypackage *package = gp_pyenv_package(env, users[k].package);
            if (!package || package->is_conda ||
                gp_version_compare(package->version, users[k].first) < 0)
                continue;
            *ret = (struct need){users[k].title, env->site, package->entry, NULL};
            return true;
        }
    return false;
}

static bool find_need(struct gp_exam *exam, struct need *ret)
{
    *ret = (struct need){.said = gp_log_known_of(exam, "ollama.vector")};
    const char *old = gp_ollama_before_split(exam);
    if (ret->said || old) {
        ret->title = "Ollama";
        ret->where = old;
        ret->text = "present: its parts for GPUs are built for AVX";
        return true;
    }
    ret->said = gp_log_known_of(exam, "ffmpeg.cuinit-unsupported");
    return (ret->said && is_made_up(exam)) || find_package(exam, ret);
}

bool gp_hardware_lacks_avx(struct gp_exam *exam)
{
    struct need need;
    return lacks_avx(exam) && (is_made_up(exam) || find_need(exam, &need));
}

static void fix_real(struct gp_exam *exam, const struct need *need)
{
    if (strcmp(need->title, "Ollama") == 0)
        gp_exam_advice(exam, "use a computer whose CPU has AVX, a newer release of Ollama, or "
                             "llama.cpp built here, for this CPU");
    else
        gp_exam_advice(exam,
                       "use a computer whose CPU has AVX, or build %s here, for this CPU; PyTorch "
                       "runs without AVX",
                       need->title);
}

void gp_hardware_check_cpu(struct gp_exam *exam)
{
    struct need need;
    bool is_needed = find_need(exam, &need), is_guest = is_made_up(exam) || is_old_model(exam);
    bool is_seen_by_guest = !is_guest && is_virtual(exam) && !exam->machine.is_wsl;
    gp_exam_report(exam, is_needed ? GP_VERDICT_WARN : GP_VERDICT_INFO, "%s",
                   is_guest
                       ? "this virtual machine has a generic CPU, without instructions that some "
                         "GPU programs need"
                       : gp_exam_text(exam, "this CPU%s has no AVX, which %s needs",
                                      is_seen_by_guest ? ", as the virtual machine sees it," : "",
                                      need.title));
    gp_exam_evidence(exam, cpuinfo, "%s, without avx", cpu_value(exam, "model name") + 1);
    if (need.where)
        gp_exam_evidence(exam, need.where, "%s", need.text);
    gp_log_show_known(exam, need.said);
    if (need.title && strcmp(need.title, "Ollama") == 0)
        gp_exam_why(exam, "Such a release of Ollama then does not use the GPU either: \"CPU does "
                          "not have minimum vector extensions, GPU inference disabled\".");
    else if (is_guest)
        gp_exam_why(
            exam,
            "With such a CPU cuInit can fail with CUDA_ERROR_NOT_SUPPORTED, although "
            "nvidia-smi works; and TensorFlow and other programs built for AVX end with \"Illegal "
            "instruction\".");
    else
        gp_exam_why(exam, "It ends at once: \"Illegal instruction\", or a message that it was "
                          "built for AVX.");
    if (is_guest)
        gp_exam_advice(exam,
                       "on the host: give the virtual machine the host's CPU, and start it again "
                       "(Proxmox: qm set VMID --cpu host; libvirt: <cpu mode='host-passthrough'/>; "
                       "TrueNAS: CPU Mode: Host Passthrough)");
    else if (is_seen_by_guest)
        gp_exam_advice(exam, "if the host's CPU has AVX, give the virtual machine that CPU");
    if (!is_guest)
        fix_real(exam, &need);
}
