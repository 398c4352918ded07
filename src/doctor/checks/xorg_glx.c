/* NVIDIA's old GLX module, which takes the place of Xorg's own, in a server that draws on another
 * GPU: drivers before 435, or without libglvnd. */
#include "doctor/checks/xorg.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/log.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20, MOST_LINE = 300 };

/* What the log of a server says of it. */
struct glx {
    const char *failure, *module, *path; /* the lines, and the module's file */
    const char *where;                   /* of the failure */
    const char *driver;                  /* the line of the one that draws */
    bool is_of_nvidia;                   /* the module */
};

/* The drivers of other GPUs, which begin their lines with the number of their screen. */
static bool is_other_driver(const char *line)
{
    static const char *const words[] = {"modeset(0): ", "intel(0): ", "AMDGPU(0): ", "RADEON(0): "};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static void read_line(struct gp_exam *exam, const char *line, const char *where, struct glx *ret)
{
    static const char loading[] = "Loading /", end[] = "/libglx.so";
    const char *at = strstr(line, loading);
    if (at && strstr(at, end)) {
        at += sizeof(loading) - 2;
        ret->path = gp_exam_text(exam, "%.*s", (int)strcspn(at, " "), at);
        ret->is_of_nvidia = false;
    } else if (ret->path && strstr(line, "Module glx: vendor=\"NVIDIA Corporation\"")) {
        ret->is_of_nvidia = true;
        ret->module = line;
    } else if (strstr(line, "Compatible NVIDIA X driver not found")) {
        ret->failure = line;
        ret->where = where;
    } else if (!ret->driver && is_other_driver(line)) {
        ret->driver = line;
    }
}

/* Whether the module is still installed, and did not start for lack of NVIDIA's driver. */
static bool read_log(struct gp_exam *exam, const char *path, struct glx *ret)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_tail(&exam->files, &exam->arena, path, MOST_BYTES, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    if (!text || !strstr(text, "Compatible NVIDIA X driver not found"))
        return false;
    while (gp_lines_next(&lines, &line, &n))
        read_line(exam, gp_exam_text(exam, "%.*s", n < MOST_LINE ? (int)n : MOST_LINE, line),
                  gp_exam_text(exam, "%s:%zu", path, (size_t)lines.number), ret);
    return ret->failure && ret->is_of_nvidia && ret->driver && !strstr(text, "NVIDIA(0): ") &&
           gp_files_exist(&exam->files, ret->path);
}

/* Whether NVIDIA's GPU is here, with its driver, beside another one. */
static bool is_hybrid(const struct gp_machine *m)
{
    bool has_nvidia = false, has_other = false;
    for (size_t i = 0; i < m->gpu_count; i++) {
        bool is_nvidia = m->gpus[i].vendor == GP_PCI_NVIDIA;
        has_nvidia = has_nvidia || (is_nvidia && strcmp(m->gpus[i].driver, "nvidia") == 0);
        has_other = has_other || (!is_nvidia && m->gpus[i].driver[0]);
    }
    return has_nvidia && has_other;
}

/* On Ubuntu and what is built on it, gpu-manager arranges both GPUs at each start, by the choice
 * that nvidia-prime keeps. */
static void fix(struct gp_exam *exam)
{
    static const char manager[] = "/usr/bin/gpu-manager", chooser[] = "/usr/bin/prime-select";
    static const char *const others[] = {"/usr/bin/optirun", "/usr/bin/system76-power", NULL};
    bool is_managed = exam->machine.distro == GP_DISTRO_UBUNTU &&
                      gp_files_exist(&exam->files, manager) &&
                      !gp_files_first(&exam->files, others);
    if (is_managed && gp_files_exist(&exam->files, chooser)) {
        gp_exam_command(exam, "NVIDIA's GPU then draws; or intel in place of nvidia",
                        "sudo %s nvidia", "prime-select");
        gp_exam_command(exam, "", "sudo reboot");
    } else if (is_managed) {
        gp_exam_evidence(exam, chooser, "missing: nvidia-prime is not installed");
        gp_exam_command(exam, "gpu-manager then sets up both GPUs at each start",
                        "sudo apt install nvidia-prime");
        gp_exam_command(exam, "", "sudo reboot");
        gp_exam_advice(exam, "then choose the GPU that draws: sudo prime-select nvidia, or intel, "
                             "and reboot");
    } else {
        gp_exam_advice(exam, "have NVIDIA's GPU draw (PRIME, in Xorg's configuration), or give "
                             "Xorg its own GLX module back: with the distribution's tool that "
                             "switches between them, or by removing NVIDIA's driver");
        gp_exam_link(exam, "https://wiki.archlinux.org/title/PRIME");
    }
}

void gp_xorg_check_glx(struct gp_exam *exam)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    const char *const logs[] = {
        "/var/log/Xorg.0.log",
        gp_exam_text(exam, "%s/.local/share/xorg/Xorg.0.log", home ? home : "/root")};
    if (!is_hybrid(&exam->machine) || (type && strcmp(type, "wayland") == 0))
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(logs); i++) {
        struct glx glx = {.path = NULL};
        if (!gp_boot_is_before(exam, logs[i]) || !read_log(exam, logs[i], &glx))
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "Xorg has no OpenGL: it draws on another GPU, but has NVIDIA's GLX module");
        gp_exam_evidence(exam, glx.where, "%s", glx.failure);
        gp_exam_evidence(exam, logs[i], "%s", glx.driver);
        gp_exam_evidence(exam, glx.path, "NVIDIA's, in place of Xorg's own");
        gp_exam_why(exam, "NVIDIA's driver was installed, but nothing has arranged the two GPUs. "
                          "Desktops that draw with OpenGL stay black, and games do not start.");
        fix(exam);
        return;
    }
}
