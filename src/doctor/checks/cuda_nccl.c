/* NCCL's settings: variables of the environment, or lines of its own files. */
#include "doctor/checks/cuda.h"

#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/searchpath.h"
#include "model/snapshot.h"

#include <stdlib.h>
#include <string.h>

/* Values with which NCCL makes no direct copies between GPUs; NULL: anything but "" and "0". */
static const struct setting {
    const char *name, *values[3];
} settings[] = {
    {"NCCL_P2P_DISABLE", {NULL}},
    {"NCCL_P2P_LEVEL", {"LOC", "0", NULL}},
};

static bool is_off(const struct setting *setting, const char *value)
{
    if (!setting->values[0])
        return *value && strcmp(value, "0") != 0;
    for (size_t i = 0; setting->values[i]; i++)
        if (strcmp(value, setting->values[i]) == 0)
            return true;
    return false;
}

/* The files in their order; of several lines for a variable, NCCL takes the first. */
const char *gp_nccl_value(struct gp_exam *exam, const char *name, const char **ret_place)
{
    enum { FILE_MAX = 64 << 10 };
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const char *const files[] = {gp_exam_text(exam, "%s/.nccl.conf", home ? home : "/root"),
                                 "/etc/nccl.conf"};
    const char *value = gp_machine_variable(&exam->machine, name), *at;
    size_t n = strlen(name) + 1, length;
    *ret_place = NULL;
    for (size_t i = 0; !value && i < GP_ARRAY_LEN(files); i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, files[i], FILE_MAX, NULL);
        const char *start = text;
        unsigned line = 0;
        while (text && !value && gp_assignment_next(&text, name, &line, &at, &length)) {
            if (at > start && at[-1] != '\n')
                continue; /* no line of NCCL's */
            value = gp_exam_text(exam, "%.*s", length > n ? (int)(length - n) : 0, at + n);
            *ret_place = gp_exam_text(exam, "%s:%u", files[i], line);
        }
    }
    return value;
}

void gp_nccl_remove(struct gp_exam *exam, const char *name, const char *place, const char *note)
{
    const char *file = gp_exam_text(exam, "%.*s", (int)(strrchr(place, ':') - place), place);
    gp_exam_command(exam, note, "%ssed -i.before '/^%s=/d' %s",
                    strncmp(file, "/etc/", 5) == 0 ? "sudo " : "", name,
                    gp_exam_quoted(exam, file));
}

static bool has_links(const struct gp_snapshot *snapshot)
{
    double links;
    for (size_t i = 0; snapshot && i < snapshot->device_count; i++)
        if (gp_device_number(&snapshot->devices[i], GP_NVLINK_ACTIVE, &links) && links > 0)
            return true;
    return false;
}

/* Whether GPUs of such a board are connected here: a virtual machine may have two of eight, without
 * the switches between them. */
static bool is_connected(struct gp_exam *exam)
{
    return !gp_machine_is_virtual(&exam->files) || exam->machine.nvswitch_count > 0 ||
           has_links(exam->snapshot);
}

/* A GPU on a board with NVLink, on which all GPUs have it; NULL: none is known. */
static const char *linked_board(struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    for (size_t i = 0; i < nv.count && is_connected(exam); i++)
        if (strstr(nv.gpus[i].name, "SXM") || exam->machine.nvswitch_count > 0)
            return nv.gpu_count > 1 ? gp_exam_text(exam, "%s", nv.gpus[i].name) : NULL;
    return NULL;
}

/* On boards without NVLink, these are common workarounds for bridges or drivers that spoil direct
 * copies. */
static void report(struct gp_exam *exam, const char *name, const char *value, const char *file)
{
    const char *board = linked_board(exam);
    gp_exam_report(exam, board ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s is set: NCCL copies between GPUs through host memory%s", name,
                   board ? ", not through NVLink" : "");
    if (board)
        gp_exam_evidence(exam, "driver", "several %s: they are connected by NVLink", board);
    if (file)
        gp_exam_evidence(exam, file, "%s=%s", name, value);
    else
        gp_exam_evidence(exam, name, "\"%s\"", value);
    if (board)
        gp_exam_why(exam, "This is many times slower. It also needs room in /dev/shm: \"Error "
                          "while creating shared memory segment\".");
    if (file)
        gp_nccl_remove(exam, name, file, "");
    else
        gp_exam_unset(exam, name, board ? "and remove the line that sets it" : "");
}

/* The highest GPU that a graph names, as NCCL's ids have it: without the system in the upper half;
 * −1: none, or they are matched by their ranks instead. */
static long highest_gpu(const char *text)
{
    static const char tag[] = "<gpu dev=\"";
    long most = -1;
    for (; (text = strstr(text, tag)); text++) {
        long dev = strtol(text + strlen(tag), NULL, 16);
        size_t length = strcspn(text, ">");
        if (memmem(text, length, " rank=", strlen(" rank=")) || dev > UINT8_MAX)
            return -1;
        most = dev > most ? dev : most;
    }
    return most;
}

/* A graph that was written for another machine is an error of each program with NCCL: it takes the
 * GPUs in it by their numbers (ncclTopoGetChannelFromXml()). */
static void check_graph(struct gp_exam *exam)
{
    enum { GRAPH_MAX = 1 << 20 };
    static const char name[] = "NCCL_GRAPH_FILE";
    const char *place, *value = gp_nccl_value(exam, name, &place);
    const char *text = value && value[0] == '/'
                           ? gp_files_text(&exam->files, &exam->arena, value, GRAPH_MAX, NULL)
                           : NULL;
    long highest = text ? highest_gpu(text) : -1;
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    if (nv.gpu_count == 0 || highest < (long)nv.gpu_count)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s names a graph of %ld GPUs, but this machine has %zu: NCCL refuses it", name,
                   highest + 1, nv.gpu_count);
    gp_exam_evidence(exam, place ? place : name, "%s", value);
    gp_exam_evidence(exam, value, "gpu dev=\"%lx\"", (unsigned long)highest);
    gp_exam_why(exam,
                "Programs with NCCL end with \"unhandled system error\", and NCCL_DEBUG=WARN shows "
                "\"XML Import Channel : dev %zu not found\". NCCL finds its own graph without it.",
                nv.gpu_count);
    gp_exam_link(exam, "https://github.com/NVIDIA/nccl/issues/1240");
    if (place)
        gp_nccl_remove(exam, name, place, "");
    else
        gp_exam_unset(exam, name, "and remove the line that sets it");
}

void gp_check_cuda_nccl(struct gp_exam *exam)
{
    check_graph(exam);
    for (size_t i = 0; i < GP_ARRAY_LEN(settings); i++) {
        const char *file;
        const char *value = gp_nccl_value(exam, settings[i].name, &file);
        if (value && is_off(&settings[i], value))
            report(exam, settings[i].name, value, file);
    }
}
