/* What Slurm knows of this node's GPUs: slurm.conf and gres.conf. */
#include "doctor/checks/system.h"

#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/readers/log.h"
#include "doctor/readers/searchpath.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const folders[] = {"/etc/slurm", "/etc/slurm-llnl", "/usr/local/etc/slurm",
                                      "/usr/local/etc", "/opt/slurm/etc"};

struct config {
    const char *path;
    const char *text; /* NULL: there is none */
};

static struct config read_config(struct gp_exam *exam, const char *folder, const char *name)
{
    const char *path = gp_exam_text(exam, "%s/%s", folder, name);
    return (struct config){path, gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL)};
}

/* The directory that has one of them; NULL: none has. */
static const char *folder_of(struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (read_config(exam, folders[i], "gres.conf").text ||
            read_config(exam, folders[i], "slurm.conf").text)
            return folders[i];
    return NULL;
}

bool gp_slurm_is_there(struct gp_exam *exam)
{
    return exam->machine.nvidia_count > 0 && folder_of(exam);
}

/* The next line that has something besides a comment, and its number; NULL after the last. */
static const char *next_line(struct gp_exam *exam, const char **text, unsigned *number)
{
    while (*text && **text) {
        size_t n = strcspn(*text, "\n");
        const char *line = gp_exam_text(exam, "%.*s", (int)strcspn(*text, "#\r\n"), *text);
        *text += n + ((*text)[n] == '\n');
        ++*number;
        line += strspn(line, " \t");
        if (*line)
            return line;
    }
    return NULL;
}

/* The value of a parameter of a line, whose case does not matter; NULL: it has none. */
static const char *value_of(struct gp_exam *exam, const char *line, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = line; (p = strcasestr(p, key)); p += n)
        if ((p == line || isspace((unsigned char)p[-1])) && p[n] == '=')
            return gp_exam_text(exam, "%.*s", (int)strcspn(p + n + 1, " \t"), p + n + 1);
    return NULL;
}

/* ---- which node this is ---- */

static const char *host_name(struct gp_exam *exam)
{
    char name[256];
    if (!gp_files_line(&exam->files, "/etc/hostname", name, sizeof(name)))
        return "";
    return gp_exam_text(exam, "%.*s", (int)strcspn(name, "."), name);
}

void gp_slurm_resume(struct gp_exam *exam)
{
    const char *host = host_name(exam);
    if (folder_of(exam) && host[0])
        gp_exam_command(exam, "on the controller, if the node is drained or invalid",
                        "sudo scontrol update nodename=%s state=resume",
                        gp_exam_quoted(exam, host));
}

/* Whether the digits at `name` are in a list such as "01-04,07", up to its bracket. */
static bool is_in_ranges(const char *list, const char *name)
{
    size_t digits = strspn(name, "0123456789");
    unsigned long number = strtoul(name, NULL, 10);
    for (const char *p = list; digits > 0 && *p && *p != ']';) {
        char *end;
        unsigned long first = strtoul(p, &end, 10), last = first;
        size_t width = (size_t)(end - p);
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (number >= first && number <= last && (digits == width || name[0] != '0'))
            return true;
        p = *end == ',' ? end + 1 : "";
    }
    return false;
}

/* Whether a node is in a list such as "gpu[01-04],login". */
static bool is_listed(const char *list, const char *host)
{
    while (*list) {
        size_t plain = strcspn(list, "[,");
        const char *close = list[plain] == '[' ? strchr(list, ']') : NULL;
        if (strncasecmp(list, host, plain) == 0) {
            const char *rest = host + plain;
            if (!close && !*rest)
                return true;
            if (close && is_in_ranges(list + plain + 1, rest) &&
                !rest[strspn(rest, "0123456789")] && strchr(",", close[1]))
                return true;
        }
        list = close ? close + 1 : list + plain;
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return false;
}

/* Whether a line of gres.conf is for this node. */
static bool is_for_node(struct gp_exam *exam, const char *line)
{
    const char *list = value_of(exam, line, "NodeName"), *host = host_name(exam);
    return !list || (*host && is_listed(list, host));
}

/* This node's line of slurm.conf; NULL: it has none, or the name of the machine is unknown. */
static const char *node_line(struct gp_exam *exam, const struct config *slurm, unsigned *number)
{
    const char *text = slurm->text, *line, *host = host_name(exam);
    while (*host && (line = next_line(exam, &text, number))) {
        const char *list =
            strncasecmp(line, "NodeName=", 9) == 0 ? value_of(exam, line, "NodeName") : NULL;
        if (list && is_listed(list, host))
            return line;
    }
    return NULL;
}

/* ---- a line of gres.conf ---- */

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

/* Whether the driver has GPUs, and nothing has created their device files since it was loaded. The
 * driver may also be in a container, with files of its own. */
static bool has_no_files(struct gp_exam *exam)
{
    static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia0",
                                        "/run/nvidia/driver/dev/nvidiactl", NULL};
    char **names;
    return exam->machine.is_driver_loaded && !exam->machine.container &&
           !gp_files_first(&exam->files, files) &&
           gp_files_list(&exam->files, &exam->arena, "/proc/driver/nvidia/gpus", &names) > 0;
}

/* Programs of users create them by nvidia-modprobe, which slurmd does not use: it only looks. */
static void report_no_files(struct gp_exam *exam, const char *place, const char *line,
                            const char *missing)
{
    static const char folder[] = "/etc/systemd/system/slurmd.service.d";
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "nothing has created the GPUs' device files that slurmd waits for: %s is "
                   "missing, though the driver is loaded",
                   missing);
    gp_exam_evidence(exam, "/proc/driver/nvidia/version", "the module %s is loaded",
                     exam->machine.driver);
    gp_exam_evidence(exam, "/dev/nvidiactl", "missing");
    gp_exam_evidence(exam, place, "%s", line);
    const struct gp_log_known *said = gp_log_known_of(exam, "slurm.nodev");
    gp_log_show_known(exam, said ? said : gp_log_known_of(exam, "dev.nodes"));
    gp_exam_why(exam, "Loading the module does not create them: the first program that uses a GPU "
                      "does, such as nvidia-smi as root. slurmd does not start (\"can't stat "
                      "gres.conf file\").");
    gp_exam_command(exam, "create those of all GPUs now", "sudo nvidia-smi -L");
    gp_exam_command(exam, "and at each boot, before slurmd starts", "sudo mkdir -p %s", folder);
    gp_exam_command(exam, "",
                    "printf '[Service]\\nExecStartPre=-/usr/bin/nvidia-smi -L\\n' | "
                    "sudo tee %s/gpu-files.conf",
                    folder);
    gp_exam_command(exam, "", "sudo systemctl daemon-reload");
}

static bool report_missing(struct gp_exam *exam, const char *place, const char *line)
{
    const char *file = value_of(exam, line, "File");
    const char *missing = file && is_for_node(exam, line) ? missing_file(exam, file) : NULL;
    if (!missing)
        return false;
    if (has_no_files(exam)) {
        report_no_files(exam, place, line, missing);
        gp_exam_command(exam, "then", "sudo systemctl restart slurmd");
        return true;
    }
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

static unsigned long number_of(struct gp_exam *exam, const char *line, const char *key)
{
    const char *value = value_of(exam, line, key);
    return value ? strtoul(value, NULL, 10) : 0;
}

/* How many cores the largest node of slurm.conf has; 0: unknown, or none has hyper-threads. */
static unsigned long most_cores(struct gp_exam *exam, const struct config *slurm)
{
    const char *text = slurm->text, *line;
    unsigned long most = 0;
    unsigned number = 0;
    bool has_threads = false;
    while ((line = next_line(exam, &text, &number))) {
        if (strncmp(line, "NodeName=", 9) != 0)
            continue;
        unsigned long cores =
            number_of(exam, line, "Sockets") * number_of(exam, line, "CoresPerSocket");
        if (cores == 0)
            return 0;
        has_threads = has_threads || number_of(exam, line, "ThreadsPerCore") > 1;
        most = cores > most ? cores : most;
    }
    return has_threads ? most : 0;
}

/* Slurm counts cores; the driver's topology counts their threads. */
static bool report_cores(struct gp_exam *exam, const char *place, const char *line,
                         unsigned long cores)
{
    const char *list = value_of(exam, line, "Cores");
    if (!list)
        list = value_of(exam, line, "CPUs");
    unsigned long last = 0;
    for (const char *at = list ? list : ""; *at;) {
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

/* Slurm asks the driver by a plugin, which builds without NVML lack. */
static bool report_plugin(struct gp_exam *exam, const char *place, const char *line)
{
    static const char *const plugins[] = {"/usr/lib/x86_64-linux-gnu/slurm-wlm",
                                          "/usr/lib/aarch64-linux-gnu/slurm-wlm",
                                          "/usr/lib64/slurm",
                                          "/usr/lib/slurm",
                                          "/usr/lib/slurm-wlm",
                                          "/usr/local/lib/slurm",
                                          "/opt/slurm/lib/slurm"};
    const char *way = value_of(exam, line, "AutoDetect"), *folder = NULL;
    if (!way || strcasecmp(way, "nvml") != 0)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(plugins); i++) {
        const char *at = plugins[i];
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/gpu_nvml.so", at)))
            return false;
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/gres_gpu.so", at)))
            folder = at;
    }
    if (!folder)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Slurm cannot ask the driver for its GPUs: it was built without NVML");
    gp_exam_evidence(exam, place, "%s", line);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/gpu_nvml.so", folder), "missing");
    gp_exam_why(exam, "slurmd stops with \"We were configured to autodetect nvml functionality, "
                      "but we weren't able to find that lib when Slurm was configured\".");
    gp_exam_advice(exam,
                   "list the GPUs in %.*s instead of AutoDetect=nvml: Name=gpu File=%s; or install "
                   "a Slurm that was built with NVML, or its package with this plugin",
                   (int)strcspn(place, ":"), place,
                   exam->machine.nvidia_count > 1
                       ? gp_exam_text(exam, "/dev/nvidia[0-%zu]", exam->machine.nvidia_count - 1)
                       : "/dev/nvidia0");
    gp_exam_command(exam, "then", "sudo systemctl restart slurmd");
    return true;
}

/* Whether slurmd started once more after that line, which precedes a start's own line, and found
 * the library then. */
static bool is_before_last_start(struct gp_exam *exam, const struct gp_log_known *said)
{
    static const char words[] = "that lib wasn't found", start[] = "slurmd version ";
    size_t length = 0, starts = 0;
    const char *text = gp_files_tail(&exam->files, &exam->arena, said->path, 1 << 20, &length);
    for (const char *p = text; p && (p = strstr(p, words)); p += sizeof(words) - 1)
        text = p;
    for (const char *p = text; p && (p = strstr(p, start)); p += sizeof(start) - 1)
        starts++;
    return starts > 1;
}

/* Whether gres.conf lists this node's GPUs besides: then nothing depends on their detection. */
static bool has_files(struct gp_exam *exam, const struct config *gres)
{
    const char *text = gres->text, *line;
    unsigned number = 0;
    while ((line = next_line(exam, &text, &number)))
        if (value_of(exam, line, "File") && is_for_node(exam, line))
            return true;
    return false;
}

/* The daemon opens NVML before its plugin does, by the name that is meant for linking: drivers'
 * packages often bring only the one with a number. */
static bool report_name(struct gp_exam *exam, const struct config *gres, const char *place,
                        const char *line)
{
    static const char name[] = "libnvidia-ml.so";
    static const char list[] =
        "list the GPUs in gres.conf (Name=gpu File=/dev/nvidia…) instead of AutoDetect=nvml";
    const struct gp_machine *m = &exam->machine;
    const bool can_link = !gp_machine_is_ostree(m) && strcmp(m->distro_id, "nixos") != 0;
    const char *way = value_of(exam, line, "AutoDetect");
    const char *library = gp_system_library(exam, "", "libnvidia-ml.so.1");
    if (!way || strcasecmp(way, "nvml") != 0 || !is_for_node(exam, line) || m->container ||
        !library || gp_system_library(exam, "", name))
        return false;
    const struct gp_log_known *said = gp_log_known_of(exam, "slurm.nvml-name");
    if (!said || is_before_last_start(exam, said) || has_files(exam, gres))
        return false;
    const char *folder =
        gp_exam_text(exam, "%.*s", (int)(strrchr(library, '/') - library), library);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "slurmd finds no GPU: it opens NVML as %s, a name that is missing here", name);
    gp_log_show_known(exam, said);
    (void)gp_log_known_of(exam, "slurm.waiting"); /* follows from it */
    gp_exam_evidence(exam, place, "%s", line);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", folder, name), "missing");
    gp_exam_evidence(exam, library, "present");
    gp_exam_why(exam,
                "The driver's packages bring only %s.1, which nvidia-smi uses. Without the "
                "other name slurmd detects no GPU, and Slurm calls the node invalid.",
                name);
    if (can_link) {
        gp_exam_command(exam, "give the library that name, too", "sudo ln -sfn %s.1 %s/%s", name,
                        gp_exam_quoted(exam, folder), name);
        gp_exam_command(exam, "", "sudo ldconfig");
    } else {
        gp_exam_advice(exam, "%s", list);
    }
    gp_exam_command(exam, "then", "sudo systemctl restart slurmd");
    gp_slurm_resume(exam);
    if (can_link)
        gp_exam_advice(exam, "or %s", list);
    return true;
}

/* ---- slurm.conf ---- */

/* How many GPUs a list such as "gpu:a100:4(S:0-1),gpu:2,mps:400" has; 0: none, or unknown. */
static unsigned long count_gpus(const char *gres)
{
    unsigned long count = 0;
    while (*gres) {
        size_t n = strcspn(gres, ",("), last = n;
        while (last > 0 && gres[last - 1] != ':')
            last--;
        if (strncasecmp(gres, "gpu", 3) == 0 && (gres[3] == ':' || n == 3))
            count +=
                isdigit((unsigned char)gres[last]) && last > 0 ? strtoul(gres + last, NULL, 10) : 1;
        gres += n;
        if (*gres == '(')
            gres += strcspn(gres, ")");
        gres += strcspn(gres, ",");
        gres += *gres == ',';
    }
    return count;
}

/* A cluster whose nodes have GPUs, a kind of resource that slurm.conf does not name. */
static bool report_kinds(struct gp_exam *exam, const struct config *slurm)
{
    const char *text = slurm->text, *line, *node = NULL;
    unsigned number = 0, at = 0;
    while ((line = next_line(exam, &text, &number))) {
        if (strncasecmp(line, "GresTypes", 9) == 0 || strncasecmp(line, "include", 7) == 0)
            return false;
        const char *gres =
            strncasecmp(line, "NodeName=", 9) == 0 ? value_of(exam, line, "Gres") : NULL;
        if (!node && gres && count_gpus(gres) > 0) {
            node = line;
            at = number;
        }
    }
    if (!node)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "Slurm does not know GPUs as a resource: slurm.conf has no GresTypes=gpu");
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", slurm->path, at), "%s", node);
    gp_exam_why(exam, "Jobs that request a GPU are refused: \"Invalid generic resource (gres) "
                      "specification\".");
    gp_exam_advice(exam,
                   "add the line GresTypes=gpu to %s, the same on all nodes and the controller",
                   slurm->path);
    gp_exam_command(exam, "on the controller", "sudo systemctl restart slurmctld");
    gp_exam_command(exam, "on each node", "sudo systemctl restart slurmd");
    return true;
}

/* Which file names their devices is not known where nodes get their files from the controller. */
static bool report_no_list(struct gp_exam *exam, const struct config *gres, const char *place,
                           const char *node)
{
    if (gres->text)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "slurm.conf gives this node GPUs, but there is no gres.conf");
    gp_exam_evidence(exam, place, "%s", node);
    gp_exam_evidence(exam, gres->path, "missing");
    gp_exam_why(exam, "Slurm then knows no device files: it drains the node (\"gres/gpu count "
                      "reported lower than configured\"), or jobs get no GPU of their own.");
    gp_exam_command(exam, "write one", "echo 'Name=gpu File=/dev/nvidia%s' | sudo tee %s",
                    exam->machine.nvidia_count > 1
                        ? gp_exam_text(exam, "[0-%zu]", exam->machine.nvidia_count - 1)
                        : "0",
                    gres->path);
    gp_exam_command(exam, "", "sudo systemctl restart slurmd");
    return true;
}

/* Whether GPUs may be divided: Slurm then counts their parts. */
static bool may_be_divided(const struct config *gres)
{
    return strcasestr(gres->text, "AutoDetect") || strcasestr(gres->text, "MultipleFiles") ||
           strcasestr(gres->text, "nvidia-cap") || strcasestr(gres->text, "include");
}

static bool report_count(struct gp_exam *exam, const struct config *gres, const char *place,
                         const char *node, unsigned long count)
{
    size_t have = exam->machine.nvidia_count;
    if (count <= have || may_be_divided(gres))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "slurm.conf gives this node %lu GPUs, but the machine has %zu", count, have);
    gp_exam_evidence(exam, place, "%s", node);
    gp_exam_evidence(exam, "/sys/bus/pci/devices", "%zu NVIDIA GPU%s", have, have > 1 ? "s" : "");
    gp_exam_why(exam, "Slurm drains the node: \"gres/gpu count reported lower than configured\".");
    gp_exam_advice(exam,
                   "if a GPU is missing, find it first; if not, correct Gres= of this node in "
                   "slurm.conf, on the controller, too");
    gp_exam_command(exam, "on the controller", "sudo scontrol reconfigure");
    gp_exam_command(exam, "", "sudo scontrol update nodename=%s state=resume",
                    gp_exam_quoted(exam, host_name(exam)));
    return true;
}

/* The type of "gpu:a100:4"; "": it has none. */
static const char *type_in(struct gp_exam *exam, const char *gres)
{
    const char *type = strncasecmp(gres, "gpu:", 4) == 0 ? gres + 4 : "";
    size_t n = strcspn(type, ":,(");
    return isdigit((unsigned char)type[0]) && type[n] != ':'
               ? ""
               : gp_exam_text(exam, "%.*s", (int)n, type);
}

/* A type in slurm.conf that no line of gres.conf has. */
static bool report_type(struct gp_exam *exam, const struct config *gres, const char *place,
                        const char *node, const char *wanted)
{
    const char *text = gres->text, *line, *type = type_in(exam, wanted), *other = NULL;
    unsigned number = 0, at = 0;
    while (*type && (line = next_line(exam, &text, &number))) {
        const char *given = value_of(exam, line, "Type"), *name = value_of(exam, line, "Name");
        if (value_of(exam, line, "AutoDetect") || strncasecmp(line, "include", 7) == 0)
            return false;
        if (!is_for_node(exam, line) || !name || strcasecmp(name, "gpu") != 0)
            continue;
        if (!given || strcasecmp(given, type) == 0)
            return false;
        other = other ? other : line;
        at = at ? at : number;
    }
    if (!other)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "slurm.conf gives this node GPUs of type %s, gres.conf those of another type",
                   type);
    gp_exam_evidence(exam, place, "%s", node);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", gres->path, at), "%s", other);
    gp_exam_why(exam, "Slurm finds none of the type and drains the node: \"gres/gpu count reported "
                      "lower than configured\".");
    gp_exam_advice(exam, "write the same type into both files, or none");
    gp_exam_command(exam, "then, on the controller, too", "sudo scontrol reconfigure");
    return true;
}

static bool report_node(struct gp_exam *exam, const struct config *slurm, const struct config *gres)
{
    unsigned number = 0;
    const char *node = node_line(exam, slurm, &number);
    const char *wanted = node ? value_of(exam, node, "Gres") : NULL;
    unsigned long count = wanted ? count_gpus(wanted) : 0;
    const char *place = gp_exam_text(exam, "%s:%u", slurm->path, number);
    return count > 0 && (report_no_list(exam, gres, place, node) ||
                         report_count(exam, gres, place, node, count) ||
                         report_type(exam, gres, place, node, wanted));
}

void gp_slurm_check(struct gp_exam *exam)
{
    const char *folder = folder_of(exam), *line;
    struct config gres = read_config(exam, folder, "gres.conf");
    struct config slurm = read_config(exam, folder, "slurm.conf");
    unsigned long cores = gres.text ? most_cores(exam, &slurm) : 0;
    const char *text = gres.text;
    unsigned number = 0;
    while ((line = next_line(exam, &text, &number))) {
        const char *place = gp_exam_text(exam, "%s:%u", gres.path, number);
        if (report_missing(exam, place, line) || report_cores(exam, place, line, cores) ||
            report_plugin(exam, place, line) || report_name(exam, &gres, place, line))
            return;
    }
    if (!report_kinds(exam, &slurm))
        (void)report_node(exam, &slurm, &gres);
}
