#include "doctor/readers/log_programs.h"

#include "doctor/entries.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/docker.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/journal.h"
#include "doctor/readers/libvirt.h"
#include "doctor/readers/podlogs.h"
#include "doctor/readers/services.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE_SIZE = 8192,
    KNOWN_SIZE = 800, /* of a line, whose reason may come last */
};

/* ---- known errors ---- */

bool gp_log_is_shared(const char *path)
{
    return strcmp(path, "/var/log/syslog") == 0 || strcmp(path, "/var/log/messages") == 0;
}

static bool is_hex(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)p[i]))
            return false;
    return true;
}

/* "01:00" with nothing that makes it a part of a longer number or a time. */
static bool is_place(const char *text, const char *p)
{
    return is_hex(p, 2) && p[2] == ':' && is_hex(p + 3, 2) && p[5] == '.' && p[6] >= '0' &&
           p[6] <= '7' && !isalnum((unsigned char)p[7]) &&
           (p == text || (!isalnum((unsigned char)p[-1]) && p[-1] != ':' && p[-1] != '.'));
}

/* The address in a line, "0000:01:00.0"; "": it has none. */
static void find_address(const char *text, char ret[GP_KMSG_BUS_ID])
{
    *ret = '\0';
    for (const char *p = text; *p; p++) {
        bool is_whole = is_hex(p, 4) && p[4] == ':' && is_hex(p + 5, 2) && p[7] == ':' &&
                        is_hex(p + 8, 2) && (p == text || !isalnum((unsigned char)p[-1]));
        if (is_whole)
            (void)snprintf(ret, GP_KMSG_BUS_ID, "%.10s.%c", p,
                           p[10] == '.' && isdigit((unsigned char)p[11]) ? p[11] : '0');
        else if (is_place(text, p))
            (void)snprintf(ret, GP_KMSG_BUS_ID, "0000:%.7s", p);
        else
            continue;
        for (char *c = ret; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        return;
    }
}

/* Whether a line is about a GPU of the machine, or about no PCI device. */
static bool is_of_gpu(const struct gp_exam *exam, const char *address)
{
    enum { SAME_DEVICE = 10 }; /* "0000:01:00": a GPU's sound and USB-C are functions of it */
    for (size_t i = 0; i < exam->machine.gpu_count; i++)
        if (strncmp(exam->machine.gpus[i].bus_id, address, SAME_DEVICE) == 0)
            return true;
    return !address[0];
}

/* The one that has been kept of an error on a device; NULL: none. */
static struct gp_log_known *kept_of(struct gp_log *log, const char *id, const char *address)
{
    for (size_t i = 0; i < log->known_count; i++)
        if (log->known[i].id == id && strcmp(log->known[i].address, address) == 0)
            return &log->known[i];
    return NULL;
}

void gp_log_keep_known(struct gp_exam *exam, struct gp_log *log, struct gp_log_place place,
                       const char *text)
{
    char address[GP_KMSG_BUS_ID];
    unsigned weight;
    const struct gp_error_entry *entry = gp_entry_of_line(text, &weight);
    if (!entry || entry->log == GP_VERDICT_OK)
        return;
    find_address(text, address);
    if (!is_of_gpu(exam, address))
        return;
    enum gp_verdict verdict = (enum gp_verdict)entry->log;
    struct gp_log_known *known = kept_of(log, entry->id, address);
    if (known && known->verdict >= verdict) {
        known->times += known->path == place.path;
        return;
    }
    if (!known) {
        if (log->known_count == GP_LOG_KNOWN)
            return;
        known = &log->known[log->known_count++];
    }
    const char *where =
        place.line ? gp_exam_text(exam, "%s:%llu", place.path, (unsigned long long)place.line)
                   : place.path;
    *known = (struct gp_log_known){.id = entry->id,
                                   .family = entry->family,
                                   .look = entry->look,
                                   .cause = entry->cause,
                                   .fix = entry->fix,
                                   .verdict = verdict,
                                   .text = gp_exam_text(exam, "%.*s", KNOWN_SIZE, text),
                                   .path = place.path,
                                   .where = where,
                                   .unit = place.unit,
                                   .times = 1,
                                   .since_boot_ns = place.since_boot_ns,
                                   .is_shared = gp_log_is_shared(place.path),
                                   .is_general = gp_entry_is_generic(weight)};
    memcpy(known->address, address, sizeof(address));
}

/* ---- sources ---- */

/* Whether a program writes this line when it starts: what is before it is past. */
static bool is_start(const char *text)
{
    static const char toolkit[] =
        "-- WARNING, the following logs are for debugging purposes only --";
    return strcmp(text, toolkit) == 0 || strstr(text, ": starting up libvirt version: ") ||
           strstr(text, " | Running DaVinci Resolve ");
}

/* The lines of one log since the last boot that it tells; in some, since the program's last start.
 */
static void read_program(struct gp_exam *exam, struct gp_log *log, const char *path,
                         const char *all, size_t length)
{
    char text[LINE_SIZE];
    size_t n, before = log->known_count;
    const char *line;
    struct gp_lines lines = gp_lines_of(all, all ? length : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        struct gp_kmsg k;
        (void)snprintf(text, sizeof(text), "%.*s", (int)(n < LINE_SIZE ? n : LINE_SIZE - 1), line);
        if (is_start(text) || (gp_kmsg_parse(text, &k) && k.kind == GP_KMSG_BOOT))
            log->known_count = before;
        gp_log_keep_known(exam, log, (struct gp_log_place){.path = path}, text);
    }
}

enum { MOST_TEXT = 1 << 20, MOST_FILES = 64 };

/* Likewise, of the end of a file. */
static void read_end(struct gp_exam *exam, struct gp_log *log, const char *path, size_t most)
{
    size_t length = 0;
    const char *all = gp_files_tail(&exam->files, &exam->arena, path, most, &length);
    read_program(exam, log, path, all, length);
}

/* The programs' messages in the logs of a syslog daemon, where the kernel's own are, too, and in
 * logs of their own. */
static void read_files(struct gp_exam *exam, struct gp_log *log)
{
    static const char *const paths[] = {"/var/log/syslog",
                                        "/var/log/messages",
                                        "/var/log/daemon.log",
                                        "/var/log/docker.log",
                                        "/var/log/slurm/slurmd.log",
                                        "/var/log/slurm-llnl/slurmd.log",
                                        "/var/log/slurmd.log",
                                        "/var/log/ollama.log",
                                        "/var/log/nvidia-container-toolkit.log",
                                        "/var/log/nvidia-container-runtime.log",
                                        "/var/log/nvidia-mps/control.log",
                                        "/var/log/nvidia-mps/server.log",
                                        "/var/log/nv-hostengine.log"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++)
        if (!log->path || strcmp(log->path, paths[i]) != 0)
            read_end(exam, log, paths[i], MOST_TEXT);
}

/* What NVIDIA's containers on a node of Kubernetes have printed. */
static void read_pods(struct gp_exam *exam, struct gp_log *log)
{
    const char *paths[GP_POD_LOGS];
    size_t count = gp_pod_logs(exam, paths);
    for (size_t i = 0; i < count; i++)
        read_end(exam, log, paths[i], MOST_TEXT / 4);
}

/* Drops all others that were kept from this one on. */
static void keep_only(struct gp_log *log, size_t first,
                      bool (*is_kept)(const struct gp_log_known *known))
{
    size_t n = first;
    for (size_t i = first; i < log->known_count; i++)
        if (is_kept(&log->known[i]))
            log->known[n++] = log->known[i];
    log->known_count = n;
}

/* Lines that name no device are about others than the GPU, or continue the line before. */
static bool has_address(const struct gp_log_known *known)
{
    return known->address[0] != '\0';
}

/* What QEMU said of libvirt's virtual machines that have a GPU now, and were started since the
 * boot: the logs stay when a machine is deleted. */
static void read_virtual_machines(struct gp_exam *exam, struct gp_log *log)
{
    static const char folder[] = "/var/log/libvirt/qemu";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names), count = 0;
    for (long i = 0; i < n && count < MOST_FILES; i++) {
        size_t size = strlen(names[i]);
        if (size < 4 || strcmp(names[i] + size - 4, ".log") != 0)
            continue;
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *name = gp_exam_text(exam, "%.*s", (int)(size - 4), names[i]);
        if (!gp_boot_is_before(exam, path) || !gp_libvirt_has_gpu(exam, name))
            continue;
        size_t first = log->known_count;
        read_end(exam, log, path, MOST_TEXT / 16);
        keep_only(log, first, has_address);
        count++;
    }
}

/* Whether nothing shows that a GPU was wanted for the container. */
static bool is_without_gpu(const struct gp_docker_container *c)
{
    const char *runtime = gp_docker_text(c->host, "Runtime");
    return c->host && !gp_docker_has_device(c, "/dev/dri") &&
           !gp_docker_has_device(c, "/dev/kfd") && !gp_docker_has_device(c, "/dev/nvidia") &&
           json_array_size(gp_docker_requests(c)) == 0 &&
           !(runtime && (strstr(runtime, "nvidia") || strstr(runtime, "amd")));
}

/* What programs that try a GPU say where there is none: no fault. */
static const char tried[] = "cuda.100,cuda.count-100,ffmpeg.cuinit-none,ld.libcuda,ld.nvml,"
                            "nvdec.library,ollama.fallback,ollama.no-gpu,video.libcuda";

static bool is_more_than_tried(const struct gp_log_known *known)
{
    return !gp_exam_is_listed(tried, known->id);
}

static void lower_tried(struct gp_log *log, size_t first)
{
    for (size_t i = first; i < log->known_count; i++)
        if (!is_more_than_tried(&log->known[i]))
            log->known[i].verdict = GP_VERDICT_INFO;
}

/* Whether CUDA and its libraries are not to be expected here. */
static bool is_without_nvidia(const struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->gpu_count > 0 && m->nvidia_count == 0 && !m->is_driver_loaded && !m->is_wsl;
}

/* What a running container of docker has printed since it was started; why another one did not
 * start: "failed to …\nnvidia-container-cli: …" */
static void read_container(struct gp_exam *exam, const struct gp_docker_container *c,
                           void *argument)
{
    struct gp_log *log = argument;
    const json_t *state = json_object_get(c->config, "State");
    const char *error = gp_docker_text(state, "Error");
    size_t length = 0;
    if (!c->is_running && error) {
        read_program(exam, log, c->config_path, gp_exam_text(exam, "%s", error), strlen(error));
    } else if (c->is_running) {
        const char *all = gp_docker_printed(exam, c, &length);
        size_t first = log->known_count;
        read_program(exam, log, c->log_path, all, length);
        const char *path, *own = gp_docker_jellyfin(exam, c, &path, &length);
        if (own)
            read_program(exam, log, path, own, length);
        if (gp_docker_is_for_cpu(c)) /* then it is not worth a line */
            keep_only(log, first, is_more_than_tried);
        else if (is_without_gpu(c))
            lower_tried(log, first);
    }
}

/* Logs with the name of a program, or that begin with this text and go on with the time when they
 * were begun: the last one tells what is so now. A folder without a slash at its start is below a
 * home. */
static const struct {
    const char *folder, *start;
} own_logs[] = {
    {"/var/lib/boinc", "stdoutdae.txt"},
    {"/var/lib/boinc-client", "stdoutdae.txt"},
    {"/var/lib/emby/logs", "embyserver.txt"},
    {"/var/lib/fahclient", "log.txt"},
    {"/var/lib/plexmediaserver/Library/Application Support/Plex Media Server/Logs",
     "Plex Media Server.log"},
    {"/var/log/fah-client", "log.txt"},
    {"/var/log/jellyfin", "FFmpeg.Transcode"},
    {".config/obs-studio/logs", "20"},
    {".config/sunshine", "sunshine.log"},
    {".local/share/DaVinciResolve/logs", "ResolveDebug.txt"},
    {".local/share/DaVinciResolve/logs", "davinci_resolve.log"},
    {".var/app/com.obsproject.Studio/config/obs-studio/logs", "20"},
    {"ComfyUI/user", "comfyui.log"},
};

/* What was written before the machine was started, if that is known, may be past. */
static void read_last(struct gp_exam *exam, struct gp_log *log, const char *folder,
                      const char *start)
{
    char **names;
    long last = gp_files_list(&exam->files, &exam->arena, folder, &names) - 1;
    while (last >= 0 && strncmp(names[last], start, strlen(start)) != 0)
        last--;
    if (last < 0)
        return;
    /* A file with just this name is newer than its rotated "log.txt.1". */
    const char *path = gp_exam_text(exam, "%s/%s", folder, start);
    if (!gp_files_exist(&exam->files, path))
        path = gp_exam_text(exam, "%s/%s", folder, names[last]);
    if (!gp_boot_is_after(exam, path))
        read_end(exam, log, path, MOST_TEXT / 16);
}

static void read_own_logs(struct gp_exam *exam, struct gp_log *log)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    for (size_t i = 0; i < GP_ARRAY_LEN(own_logs); i++) {
        const char *folder = own_logs[i].folder, *start = own_logs[i].start;
        if (folder[0] == '/')
            read_last(exam, log, folder, start);
        for (size_t k = 0; k < homes->count && folder[0] != '/'; k++)
            read_last(exam, log, gp_exam_text(exam, "%s/%s", homes->list[k], folder), start);
    }
}

struct target {
    struct gp_exam *exam;
    struct gp_log *log;
    const char *unit; /* of the line before */
    bool is_for_cpu;
};

/* What a program has found is less certain than what the kernel says of the hardware. */
static void take_printed(const struct gp_journal_line *line, void *argument)
{
    struct target *to = argument;
    struct gp_log_place place = {
        .path = line->where,
        .unit = line->unit,
        .since_boot_ns = line->since_boot_us * GP_NS_PER_US,
    };
    size_t first = to->log->known_count;
    if (line->unit && line->unit != to->unit)
        to->is_for_cpu = gp_service_is_for_cpu(to->exam, line->unit);
    to->unit = line->unit;
    gp_log_keep_known(to->exam, to->log, place, line->text);
    if ((line->unit && to->is_for_cpu) || is_without_nvidia(to->exam))
        keep_only(to->log, first, is_more_than_tried);
    for (size_t i = first; i < to->log->known_count; i++)
        if (to->log->known[i].verdict > GP_VERDICT_WARN)
            to->log->known[i].verdict = GP_VERDICT_WARN;
}

void gp_log_read_programs(struct gp_exam *exam, struct gp_log *log)
{
    (void)gp_journal_programs(exam, take_printed, &(struct target){.exam = exam, .log = log});
    read_files(exam, log);
    read_pods(exam, log);
    read_virtual_machines(exam, log);
    (void)gp_docker_each(exam, read_container, log);
    read_own_logs(exam, log);
}
