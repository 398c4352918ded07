/* nvidia_uvm, which CUDA needs, where nothing loads it or where a part of it fails. Findings of
 * driver.nodes. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/log_show.h"
#include "doctor/checks/ollama.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/install.h"
#include "doctor/readers/log.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"
#include "doctor/version.h"

#include <string.h>

static const char module[] = "/sys/module/nvidia_uvm";

static const char unit[] = "/etc/systemd/system/nvidia-device-files.service",
                  ollama_unit[] = "ollama.service";

/* The service outlives updates of the driver. */
static void enable_unit(struct gp_exam *exam, const char *note, const char *order,
                        const char *command)
{
    gp_exam_command(
        exam, note,
        "printf '%s[Service]\\nType=oneshot\\n%sExecStart=/usr/bin/nvidia-modprobe -u -m -c "
        "0\\n[Install]\\nWantedBy=multi-user.target\\n' | sudo tee %s",
        order, command, unit);
    gp_exam_command(exam, "", "sudo systemctl enable nvidia-device-files");
}

/* nvidia-modprobe creates the device files, too. */
static void fix_load(struct gp_exam *exam)
{
    gp_exam_command(exam, "load it now", "sudo nvidia-modprobe -u -m -c 0");
    enable_unit(exam, "and at each boot", "", "");
}

/* nvidia-smi fails with one bad GPU of several: the rest is done all the same. */
void gp_driver_create_at_boot(struct gp_exam *exam, const char *services)
{
    enable_unit(exam, "the same at each boot, before containers start",
                gp_exam_text(exam, "[Unit]\\nBefore=%s\\n", services),
                "ExecStart=-/usr/bin/nvidia-smi\\n");
}

/* Containers without privileges, as those of enroot, cannot load modules or create device files;
 * elsewhere nvidia-modprobe or a service of root does that at first use. */
static void check_containers(struct gp_exam *exam)
{
    static const char hook[] = "/etc/enroot/hooks.d/98-nvidia.sh";
    if (!gp_files_exist(&exam->files, hook))
        return;
    const struct gp_log_known *failure = gp_log_known_of(exam, "container.modeset");
    gp_exam_report(exam, failure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "enroot's containers cannot use the GPUs: nvidia_uvm is not loaded");
    gp_exam_evidence(exam, module, "not loaded");
    gp_exam_evidence(exam, hook, "present");
    gp_log_show_known(exam, failure);
    gp_exam_why(exam, "Nothing loads it at boot. Root's programs and Docker load it at first use, "
                      "with its device files; a container without privileges cannot.");
    fix_load(exam);
}

/* A program that Flatpak has installed, and that uses CUDA or NVENC; NULL: none. */
static const char *flatpak_program(struct gp_exam *exam)
{
    static const char *const programs[] = {
        "com.obsproject.Studio", "org.blender.Blender",         "fr.handbrake.ghb",
        "org.kde.kdenlive",      "com.jeffser.Alpaca",          "com.dec05eba.gpu_screen_recorder",
        "org.shotcut.Shotcut",   "dev.lizardbyte.app.Sunshine", "org.jellyfin.JellyfinServer"};
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++) {
        const char *const paths[] = {
            gp_exam_text(exam, "/var/lib/flatpak/app/%s", programs[i]),
            gp_exam_text(exam, "%s/.local/share/flatpak/app/%s", home ? home : "", programs[i]),
            NULL};
        const char *found = gp_files_first(&exam->files, paths);
        if (found)
            return found;
    }
    return NULL;
}

/* Flatpak's programs are in a container of the same kind. */
static void check_flatpak(struct gp_exam *exam)
{
    const char *program = flatpak_program(exam);
    if (!program)
        return;
    const struct gp_log_known *failure =
        gp_log_known_of(exam, "obs.cuinit-unknown,ffmpeg.cuinit-unknown");
    gp_exam_report(exam, failure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "programs of Flatpak cannot use CUDA or NVENC: nvidia_uvm is not loaded");
    gp_exam_evidence(exam, module, "not loaded");
    gp_exam_evidence(exam, program, "installed");
    gp_log_show_known(exam, failure);
    gp_exam_why(exam, "Nothing loads it at boot. A program outside of Flatpak loads it at first "
                      "use of CUDA, with its device files; one in Flatpak's sandbox cannot: cuInit "
                      "fails with error 999.");
    fix_load(exam);
}

/* The arguments of a running program that has this text among them, "/proc/…/cmdline"; NULL: none.
 */
static const char *running(struct gp_exam *exam, const char *program, const char *argument)
{
    struct gp_processes all = gp_processes_of(exam);
    const char *process;
    while ((process = gp_processes_next(exam, &all, program))) {
        const char *path = gp_exam_text(exam, "%s/cmdline", process);
        size_t length = 0;
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &length);
        if (text && memmem(text, length, argument, strlen(argument)))
            return path;
    }
    return NULL;
}

/* Something loaded the module at boot, but its device files are made at CUDA's first use by a
 * program of the host: a container that was started before has none. */
static void check_nspawn(struct gp_exam *exam)
{
    static const char file[] = "/dev/nvidia-uvm";
    const char *container = NULL;
    if (!exam->machine.container && gp_files_exist(&exam->files, module) &&
        gp_files_exist(&exam->files, "/dev/nvidiactl") && !gp_files_exist(&exam->files, file))
        container = running(exam, "systemd-nspawn", "/dev/nvidia");
    if (!container)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s is missing: containers have no CUDA", file);
    gp_exam_evidence(exam, file, "missing");
    gp_exam_evidence(exam, module, "loaded");
    gp_exam_evidence(exam, container, "systemd-nspawn, which binds /dev/nvidia*");
    gp_exam_why(exam, "nvidia-smi works without it, but CUDA does not. Root's programs create it "
                      "at first use; a container of systemd-nspawn gets what is there when it "
                      "starts.");
    gp_exam_command(exam, "create it now, and at each boot before the containers start",
                    "sudo nvidia-modprobe -c0 -u");
    gp_exam_advice(exam, "then start the container again, with %s and %s-tools among what it binds",
                   file, file);
}

/* Whether one of these variables, each ended by NUL, hides the GPUs or asks for the CPU. */
static bool is_hiding(const char *text, size_t length)
{
    static const char *const hidden[] = {"CUDA_VISIBLE_DEVICES=-", "OLLAMA_LLM_LIBRARY=cpu",
                                         "OLLAMA_LLM_LIBRARY=vulkan"};
    static const char empty[] = "CUDA_VISIBLE_DEVICES="; /* with the NUL */
    for (size_t i = 0; i < GP_ARRAY_LEN(hidden); i++)
        if (memmem(text, length, hidden[i], strlen(hidden[i])))
            return true;
    return memmem(text, length, empty, sizeof(empty));
}

static bool is_hiding_in_unit(struct gp_exam *exam, const char *variable)
{
    enum { MOST = 32 };
    struct gp_service_setting found[MOST];
    size_t n = gp_service_settings(exam, variable, found, MOST);
    for (size_t i = 0; i < n; i++) {
        const char *text = gp_exam_text(exam, "%s=%s", variable, found[i].value);
        if (strcmp(found[i].service, ollama_unit) == 0 && is_hiding(text, strlen(text) + 1))
            return true;
    }
    return false;
}

/* What a running Ollama is to compute on: WARN, if on the GPUs; INFO, if nothing tells; OK, if on
 * the CPU. Only its user and root can read its variables; for others its unit tells. */
static enum gp_verdict purpose_of(struct gp_exam *exam, const char *cmdline)
{
    const char *path =
        gp_exam_text(exam, "%.*s/environ", (int)(strrchr(cmdline, '/') - cmdline), cmdline);
    size_t length = 0;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &length);
    if (text ? is_hiding(text, length)
             : is_hiding_in_unit(exam, "CUDA_VISIBLE_DEVICES") ||
                   is_hiding_in_unit(exam, "OLLAMA_LLM_LIBRARY"))
        return GP_VERDICT_OK;
    bool is_known = text || (gp_service_is_installed(exam, ollama_unit) &&
                             !gp_service_list(exam, ollama_unit, "EnvironmentFile")[0]);
    return is_known ? GP_VERDICT_WARN : GP_VERDICT_INFO;
}

/* Ollama asks CUDA for GPUs when it starts, which loads the module: while it runs without it, CUDA
 * has failed, or could not load it. */
static void check_ollama(struct gp_exam *exam)
{
    static const char *const programs[] = {"/usr/local/bin/ollama", "/usr/bin/ollama"};
    const char *process = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(programs) && !process; i++)
        if (gp_ollama_has_cuda(exam, programs[i]))
            process = running(exam, "ollama", programs[i]);
    enum gp_verdict verdict = process ? purpose_of(exam, process) : GP_VERDICT_OK;
    if (verdict == GP_VERDICT_OK)
        return;
    gp_exam_report(exam, verdict,
                   "Ollama computes on the CPU: nvidia_uvm is not loaded, without which CUDA does "
                   "not start");
    gp_exam_evidence(exam, module, "not loaded");
    gp_exam_evidence(exam, process, "Ollama runs");
    gp_exam_why(exam, "nvidia-smi works without it. Ollama looks for GPUs once, when it starts: it "
                      "must be started again.");
    fix_load(exam);
    gp_exam_command(exam, "", "sudo systemctl restart ollama");
}

/* Images of programs that compute with CUDA, by a part of their names. */
static bool is_for_cuda(const char *image)
{
    static const char *const names[] = {"ollama",         "llama.cpp",  "llama-cpp",
                                        "vllm",           "sglang",     "whisper",
                                        "comfyui",        "pytorch",    "/cuda",
                                        "nvidia/cuda",    "tensorflow", "immich-machine-learning",
                                        "text-generation"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strstr(image, names[i]))
            return true;
    return false;
}

struct blind {
    const char *name, *image, *path; /* of a container; NULL: none */
};

static void look_at(struct gp_exam *exam, const struct gp_docker_container *container,
                    void *argument)
{
    struct blind *ret = argument;
    const char *image = gp_docker_text(json_object_get(container->config, "Config"), "Image");
    bool has_gpus = gp_docker_has_gpus(container);
    if (!container->is_running || !has_gpus || !image || !is_for_cuda(image) || ret->name)
        return;
    *ret = (struct blind){container->name, gp_exam_text(exam, "%s", image), container->host_path};
}

/* NVIDIA's older runtimes load the module for a container; with CDI, nothing does. */
static void check_docker(struct gp_exam *exam)
{
    struct blind blind = {NULL};
    (void)gp_docker_each(exam, look_at, &blind);
    if (!blind.name)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s has no CUDA: nvidia_uvm is not loaded on this host", blind.name);
    gp_exam_evidence(exam, module, "not loaded");
    gp_exam_evidence(exam, blind.path, "%s, running with GPUs", blind.image);
    gp_exam_why(exam, "nvidia-smi works in the container, but cuInit fails with error 999. The "
                      "container gets the device files that are there when it starts.");
    fix_load(exam);
    gp_exam_command(exam, "", "sudo docker restart %s", gp_exam_quoted(exam, blind.name));
}

/* On some machines with the kernels of RHEL 9 and 10, nothing but CUDA's error shows it
 * (open-gpu-kernel-modules#901, #947); where a program uses CUDA now, it works. */
static bool is_known_for_hmm(struct gp_exam *exam)
{
    enum { FIRST = 570, LAST = 580 };
    unsigned branch = gp_version_major(exam->machine.driver);
    char users[16];
    const char *kernel = exam->machine.kernel;
    return (strstr(kernel, ".el9") || strstr(kernel, ".el10")) && branch >= FIRST &&
           branch <= LAST &&
           gp_files_line(&exam->files, "/sys/module/nvidia_uvm/refcnt", users, sizeof(users)) &&
           strcmp(users, "0") == 0;
}

/* Heterogeneous memory management, in the open modules since 535, fails with some kernels: CUDA
 * then reports error 3, although all that it needs is there. */
static void check_hmm(struct gp_exam *exam)
{
    static const char setting[] = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm";
    char value[8];
    if (!gp_files_line(&exam->files, setting, value, sizeof(value)) || strcmp(value, "N") != 0 ||
        !exam->machine.is_driver_open || !gp_files_exist(&exam->files, "/dev/nvidia-uvm") ||
        gp_driver_is_mismatched(exam))
        return;
    const struct gp_log_known *failure = gp_log_known_of(exam, "ollama.init-3,cuda.init-3");
    if (!failure && !is_known_for_hmm(exam))
        return;
    if (failure) {
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "CUDA cannot be initialized (error 3) while nvidia_uvm uses HMM");
        gp_log_show_known(exam, failure);
    } else {
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "CUDA may find no device while nvidia_uvm uses HMM with this kernel");
        gp_exam_evidence(exam, "/proc/sys/kernel/osrelease", "%s", exam->machine.kernel);
        gp_exam_evidence(exam, "/proc/driver/nvidia/version", "%s, open modules",
                         exam->machine.driver);
    }
    gp_exam_evidence(exam, setting, "N");
    gp_exam_evidence(exam, "/dev/nvidia-uvm", "present, and the versions match");
    gp_exam_why(exam, "HMM of the open modules fails with some kernels and drivers, and cuInit "
                      "with it. No program needs HMM for its usual work.");
    if (!failure)
        gp_exam_advice(exam, "only if CUDA finds no device, although nvidia-smi works:");
    gp_exam_module_setting(exam, "let nvidia_uvm do without HMM", "nvidia-uvm-hmm.conf",
                           "options nvidia_uvm uvm_disable_hmm=1");
    gp_exam_command(exam, "load it again, once nothing uses CUDA; or reboot",
                    "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm");
    gp_exam_advice(exam, "if it persists: reboot, and look for an Xid in journalctl -k");
}

/* Kernels that no longer give nvidia_uvm a symbol, and the first driver that does without it. */
static const struct {
    const char *kernel, *driver;
} refusals[] = {{"5.9", "455.45.01"}};

/* The line in which the kernel refuses the module a symbol; NULL: there is none. A missing symbol
 * of the driver's other module means that the two are of different versions. */
static const struct gp_log_line *refusal(struct gp_exam *exam)
{
    static const char start[] = "nvidia_uvm: ", unknown[] = "nvidia_uvm: Unknown symbol ";
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->count; i++) {
        const struct gp_log_line *line = &log->lines[i];
        const char *body = line->kmsg.body;
        if (line->kmsg.kind != GP_KMSG_WRONG_KERNEL || strncmp(body, start, strlen(start)) != 0)
            continue;
        const char *symbol =
            strncmp(body, unknown, strlen(unknown)) == 0 ? body + strlen(unknown) : "nv";
        if (strncmp(symbol, "nv", 2) != 0 || strstr(body, "GPL-only symbols"))
            return line;
    }
    return NULL;
}

static void fix_refusal(struct gp_exam *exam, const char *kernel, const char *driver)
{
    const struct gp_machine *m = &exam->machine;
    const char *other = gp_install_of(exam)->other_kernel;
    unsigned last = gp_driver_wish(exam).last;
    if (!driver || (last > 0 && last < gp_version_major(driver)))
        gp_driver_fix_update(exam); /* an old branch can be adapted to newer kernels, too */
    else
        gp_driver_fix_at_least(exam, driver);
    if (other[0] && gp_version_compare(other, kernel ? kernel : m->kernel) < 0)
        gp_driver_fix_other_kernel(exam);
    else
        gp_exam_advice(exam, "until then: boot an older kernel%s%s", kernel ? ", before " : "",
                       kernel ? kernel : "");
}

bool gp_driver_report_uvm_refused(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_log_line *line = m->is_driver_loaded && !m->container ? refusal(exam) : NULL;
    const char *kernel = NULL, *driver = NULL;
    if (!line || gp_files_exist(&exam->files, module))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(refusals); i++)
        if (gp_version_compare(m->kernel, refusals[i].kernel) >= 0 &&
            gp_version_compare(m->driver, refusals[i].driver) < 0) {
            kernel = refusals[i].kernel;
            driver = refusals[i].driver;
        }
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "kernel %s refuses nvidia_uvm, which CUDA needs: driver %s does not fit it",
                   m->kernel, m->driver);
    gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    gp_exam_evidence(exam, module, "not loaded");
    gp_exam_evidence(exam, "/proc/driver/nvidia/version", "%s%s%s", m->driver,
                     driver ? "; for this kernel, CUDA needs " : "", driver ? driver : "");
    gp_exam_why(exam, kernel ? "nvidia-smi and OpenGL work without it, CUDA and OpenCL do not. "
                               "Since Linux 5.9, a module that uses NVIDIA's proprietary one gets "
                               "no symbols that are only for modules under the GPL."
                             : "nvidia-smi and OpenGL work without it, CUDA and OpenCL do not. The "
                               "kernel does not have the symbol for this module: the driver is "
                               "older than the kernel.");
    fix_refusal(exam, kernel, driver);
    return true;
}

void gp_driver_check_uvm(struct gp_exam *exam)
{
    check_nspawn(exam);
    if (!exam->machine.container && !gp_files_exist(&exam->files, module) &&
        !gp_driver_is_without_cuda(exam)) {
        check_containers(exam);
        check_flatpak(exam);
        check_ollama(exam);
        check_docker(exam);
    }
    check_hmm(exam);
}
