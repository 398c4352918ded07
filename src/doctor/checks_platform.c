/* Machines of a kind of their own: WSL, Jetson, Linux on Apple's chips. */
#include "doctor/exam.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- WSL ---- */

static bool is_wsl(struct gp_exam *exam)
{
    return exam->machine.is_wsl;
}

#define WSL_LIBRARY "/usr/lib/wsl/lib/libcuda.so.1"

/* The driver is that of Windows: its libraries are mounted, and the device is /dev/dxg. */
static void check_wsl_driver(struct gp_exam *exam)
{
    const struct {
        const char *path, *what;
    } parts[] = {{"/dev/dxg", "the device"}, {WSL_LIBRARY, "the library"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(parts); i++) {
        if (gp_files_exist(&exam->files, parts[i].path))
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL, "Windows gives this WSL no GPU: %s is not there",
                       parts[i].path);
        gp_exam_evidence(exam, parts[i].path, "%s that the driver of Windows brings is missing",
                         parts[i].what);
        gp_exam_why(exam, "In WSL 2 the driver is the one that is installed in Windows; nothing of "
                          "it is installed in Linux.");
        gp_exam_advice(exam, "in Windows: install NVIDIA's driver (528.33 or newer for CUDA 12), "
                             "then run wsl --update and wsl --shutdown in PowerShell");
        return;
    }
}

/* Packages of a Linux driver bring a libcuda that talks to a kernel module, which WSL has not. */
static void check_wsl_shadow(struct gp_exam *exam)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib",
                                          "/usr/local/lib"};
    char path[GP_PATH_SIZE], real[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        (void)snprintf(path, sizeof(path), "%s/libcuda.so.1", folders[i]);
        if (!gp_files_real(&exam->files, path, real) || strstr(real, "/wsl/"))
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "a driver for Linux is installed in WSL, and hides that of Windows");
        gp_exam_evidence(exam, path, "leads to %s", real);
        gp_exam_why(exam, "It wants a kernel module that WSL does not have: CUDA then finds no "
                          "GPU, although nvidia-smi may still work.");
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_DRIVER, NULL, NULL);
        return;
    }
}

/* ---- Jetson ---- */

static bool is_jetson(struct gp_exam *exam)
{
    return exam->machine.is_jetson;
}

/* "# R36 (release), REVISION: 4.3, …" and the JetPack that it belongs to. */
static void check_jetson(struct gp_exam *exam)
{
    static const struct {
        unsigned release;
        const char *jetpack;
    } packs[] = {{38, "7"}, {36, "6"}, {35, "5"}, {34, "5"}, {32, "4"}};
    char line[256], model[128] = "";
    const char *jetpack = "";
    if (!gp_files_line(&exam->files, "/etc/nv_tegra_release", line, sizeof(line))) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "/etc/nv_tegra_release cannot be read");
        return;
    }
    (void)gp_files_line(&exam->files, "/proc/device-tree/model", model, sizeof(model));
    const char *number = strstr(line, "# R");
    unsigned release = number ? gp_version_major(number + 3) : 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(packs); i++)
        if (packs[i].release == release)
            jetpack = packs[i].jetpack;
    gp_exam_report(exam, GP_VERDICT_INFO, "this is a Jetson%s%s%s%s", model[0] ? ": " : "", model,
                   jetpack[0] ? ", JetPack " : "", jetpack);
    gp_exam_evidence(exam, "/etc/nv_tegra_release", "%s", line);
    gp_exam_why(exam, "The GPU is part of the chip: it is not on the PCI bus, and its driver comes "
                      "with JetPack.");
    gp_exam_advice(exam, "take the wheels that NVIDIA builds for Jetson: those of PyPI and "
                         "pytorch.org have no code for its GPU");
}

/* ---- Apple ---- */

static bool is_apple(struct gp_exam *exam)
{
    return exam->machine.is_apple;
}

static void check_apple(struct gp_exam *exam)
{
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "this is Linux on a chip of Apple: its GPU does graphics, Vulkan and OpenCL");
    gp_exam_evidence(exam, "/proc/device-tree/compatible", "begins with apple,");
    gp_exam_why(exam, "There is no CUDA, no ROCm, and PyTorch's mps works in macOS only. What uses "
                      "Vulkan can run on it, as llama.cpp with its Vulkan backend.");
}

const struct gp_check gp_checks_platform[] = {
    {"platform.wsl", "Windows gives WSL its GPU", {NULL}, is_wsl, check_wsl_driver},
    {"platform.wsl-shadow",
     "no driver for Linux hides that of Windows",
     {"platform.wsl"},
     is_wsl,
     check_wsl_shadow},
    {"platform.jetson", "the release of a Jetson", {NULL}, is_jetson, check_jetson},
    {"platform.apple", "what the GPU of Apple's chips can do", {NULL}, is_apple, check_apple},
    {0},
};
