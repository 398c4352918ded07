/* A part of cuda.env: the network interfaces that NCCL and Gloo are told to use. */
#include "doctor/checks_cuda.h"
#include "doctor/exam.h"
#include "doctor/searchpath.h"

#include <stdio.h>
#include <string.h>

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

/* The value in NCCL's file of settings, "NAME=value"; NULL: it has none. */
static const char *value_in(struct gp_exam *exam, const char *path, const char *name)
{
    enum { MOST = 1 << 14 };
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == '=')
            return gp_exam_text(exam, "%.*s", (int)strcspn(line + n + 1, " \t\r\n"), line + n + 1);
    }
    return NULL;
}

/* Adds the interfaces that could be meant. */
static void show_interfaces(struct gp_exam *exam, char **names, long count)
{
    const char *list = "";
    for (long i = 0; i < count && i < 16; i++)
        list = gp_exam_text(exam, "%s%s%s", list, list[0] ? ", " : "", names[i]);
    gp_exam_evidence(exam, interfaces, "%s", list);
}

static void report(struct gp_exam *exam, size_t i, const char *value, const char *file)
{
    gp_exam_report(exam, GP_VERDICT_WARN, "%s names no network interface of this machine: %s",
                   variables[i].name, value);
    gp_exam_evidence(exam, file ? file : variables[i].name, "%s", value);
    if (!file)
        gp_exam_assignments(exam, variables[i].name);
}

void gp_check_cuda_network(struct gp_exam *exam)
{
    char **names;
    long count = gp_files_list(&exam->files, &exam->arena, interfaces, &names);
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    const char *files[] = {home ? gp_exam_text(exam, "%s/.nccl.conf", home) : "", "/etc/nccl.conf"};
    for (size_t i = 0; i < GP_ARRAY_LEN(variables) && count > 0; i++) {
        const char *value = gp_machine_variable(&exam->machine, variables[i].name), *file = NULL;
        for (size_t f = 0; f < GP_ARRAY_LEN(files) && !value && variables[i].is_prefix; f++) {
            value = value_in(exam, files[f], variables[i].name);
            file = value ? files[f] : NULL;
        }
        if (!value || !value[0] || value[0] == '^' ||
            names_one(value, variables[i].is_prefix, names, count))
            continue;
        report(exam, i, value, file);
        show_interfaces(exam, names, count);
        gp_exam_why(exam, "%s, and so does everything that starts several processes with it.",
                    variables[i].failure);
        if (file)
            gp_exam_command(exam, "it then chooses one itself", "sudo sed -i.before '/%s/d' %s",
                            variables[i].name, gp_exam_quoted(exam, file));
        else
            gp_exam_command(exam, "it then chooses one itself", "unset %s", variables[i].name);
        gp_exam_advice(exam, "or, with several machines, name the interface that reaches the "
                             "others");
    }
}
