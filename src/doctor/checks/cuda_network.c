/* A part of cuda.env: the network interfaces and adapters that variables name for NCCL and Gloo. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/nvidia.h"
#include "doctor/readers/searchpath.h"

#include <string.h>
#include <strings.h>

static const char interfaces[] = "/sys/class/net";

static const struct {
    const char *name;
    bool is_prefix; /* NCCL takes "eth" for all that begin so, and "^eth" for all others */
    const char *failure;
} variables[] = {
    {"NCCL_SOCKET_IFNAME", true, "NCCL fails: \"Bootstrap : no socket interface found\""},
    {"GLOO_SOCKET_IFNAME", false, "Gloo fails: \"Unable to find address for\" it"},
};

/* Whether an element of the list is one of these interfaces; "eth0:5000" has a port. */
static bool names_one(const char *list, bool is_prefix, char **names, long count)
{
    char word[GP_PATH_SIZE];
    bool is_exact = !is_prefix || *list == '=';
    list += *list == '=';
    while (gp_search_path_next(&list, ",", word)) {
        size_t n = strcspn(word, ":");
        for (long i = 0; n > 0 && i < count; i++)
            if (strncmp(names[i], word, n) == 0 && (!is_exact || !names[i][n]))
                return true;
    }
    return false;
}

/* Adds the entries of a folder that could be meant. */
static void show_list(struct gp_exam *exam, const char *folder, char **names, long count)
{
    const char *list = "";
    for (long i = 0; i < count && i < 16; i++)
        list = gp_exam_text(exam, "%s%s%s", list, list[0] ? ", " : "", names[i]);
    gp_exam_evidence(exam, folder, "%s", list);
}

/* With one GPU, it is a shell's startup file that other machines share. */
static enum gp_verdict verdict_of(struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    return nv.gpu_count == 1 ? GP_VERDICT_INFO : GP_VERDICT_WARN;
}

static void report(struct gp_exam *exam, size_t i, const char *value, const char *file)
{
    gp_exam_report(exam, verdict_of(exam), "%s names no network interface of this machine: %s",
                   variables[i].name, value);
    gp_exam_evidence(exam, file ? file : variables[i].name, "%s", value);
    if (!file)
        gp_exam_assignments(exam, variables[i].name);
}

/* Whether NCCL is to exchange data through TCP: what it could choose among is not used. */
static bool is_through_tcp(struct gp_exam *exam)
{
    const char *place, *off = gp_nccl_value(exam, "NCCL_IB_DISABLE", &place);
    const char *net = gp_nccl_value(exam, "NCCL_NET", &place);
    return (off && strcmp(off, "1") == 0) || (net && strcasecmp(net, "Socket") == 0);
}

/* NCCL's choice among the adapters of InfiniBand and RoCE: if it names none, the GPUs of several
 * machines exchange data through TCP. */
static void check_adapters(struct gp_exam *exam)
{
    static const char name[] = "NCCL_IB_HCA", folder[] = "/sys/class/infiniband";
    char **names;
    const char *file = NULL, *value = gp_nccl_value(exam, name, &file);
    long count = value && value[0] && value[0] != '^'
                     ? gp_files_list(&exam->files, &exam->arena, folder, &names)
                     : 0;
    if (count <= 0 || names_one(value, true, names, count) || is_through_tcp(exam))
        return;
    gp_exam_report(exam, verdict_of(exam), "%s names no network adapter of this machine: %s", name,
                   value);
    gp_exam_evidence(exam, file ? file : name, "%s", value);
    if (!file)
        gp_exam_assignments(exam, name);
    show_list(exam, folder, names, count);
    gp_exam_why(exam, "NCCL then finds no InfiniBand or RoCE (\"NET/IB : No device found\"), and "
                      "exchanges data with other machines through TCP, which is much slower.");
    if (file)
        gp_nccl_remove(exam, name, file, "it then takes all that are up");
    else
        gp_exam_command(exam, "it then takes all that are up", "unset %s", name);
}

void gp_check_cuda_network(struct gp_exam *exam)
{
    char **names;
    check_adapters(exam);
    long count = gp_files_list(&exam->files, &exam->arena, interfaces, &names);
    for (size_t i = 0; i < GP_ARRAY_LEN(variables) && count > 0; i++) {
        const char *file = NULL; /* NCCL has its own */
        const char *value = variables[i].is_prefix
                                ? gp_nccl_value(exam, variables[i].name, &file)
                                : gp_machine_variable(&exam->machine, variables[i].name);
        if (!value || !value[0] || value[0] == '^' ||
            names_one(value, variables[i].is_prefix, names, count))
            continue;
        report(exam, i, value, file);
        show_list(exam, interfaces, names, count);
        gp_exam_why(exam, "%s, and so does everything that starts several processes with it.",
                    variables[i].failure);
        if (file)
            gp_nccl_remove(exam, variables[i].name, file, "it then chooses one itself");
        else
            gp_exam_command(exam, "it then chooses one itself", "unset %s", variables[i].name);
        gp_exam_advice(exam, "or, with several machines, name the interface that reaches the "
                             "others");
    }
}
