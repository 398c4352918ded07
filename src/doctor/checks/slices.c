/* Slices, and the managers of users, whose programs systemd keeps from the GPUs: DevicePolicy= and
 * DeviceAllow= hold for all control groups below. */
#include "doctor/checks/system.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/accounts.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/services.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static const char self[] = "/proc/self";

static bool is_group(const char *unit)
{
    return gp_lines_ends(unit, ".slice") ||
           (strncmp(unit, "user@", 5) == 0 && gp_lines_ends(unit, ".service"));
}

/* Whether settings for "user-1000.slice", "user-.slice" or "user@.service" are those of a unit. */
static bool is_for(const char *settings, const char *unit)
{
    const char *dot = strrchr(settings, '.');
    size_t n = dot ? (size_t)(dot - settings) : 0;
    if (strcmp(settings, unit) == 0)
        return true;
    return n > 0 && strchr("-@", dot[-1]) && strncmp(settings, unit, n) == 0 &&
           gp_lines_ends(unit, dot);
}

/* ---- who is in it ---- */

struct victim {
    const char *process, *name, *unit; /* "/proc/900", "dockerd", "user-1000.slice" */
    const char *shown;                 /* the control group */
    const char *wish;                  /* the file by which it is to use GPUs; NULL: itself */
};

/* The control group that decides about a process's devices: the only one, or of version 1. */
static const char *group_of(struct gp_exam *exam, const char *process)
{
    const char *text = gp_files_text(&exam->files, &exam->arena,
                                     gp_exam_text(exam, "%s/cgroup", process), 1 << 14, NULL);
    const char *first = text ? strstr(text, ":devices:/") : NULL;
    const char *second = text && strncmp(text, "0::/", 4) == 0 ? text : NULL;
    const char *at = first ? strchr(first, '/') : second ? second + 3 : NULL;
    return at ? gp_exam_text(exam, "%.*s", (int)strcspn(at, "\n"), at) : NULL;
}

/* The unit of the system in a control group that has these settings, and lacks GPUs; what is below
 * a user's manager is that one's. NULL: there is none. */
static const char *unit_in(struct gp_exam *exam, const char *group, const char *settings)
{
    const char *lines;
    for (const char *p = group; *p == '/'; p += strcspn(p, "/")) {
        p++;
        const char *unit = gp_exam_text(exam, "%.*s", (int)strcspn(p, "/"), p);
        if (is_for(settings, unit) && gp_sandbox_lacks(exam, unit, &lines))
            return unit;
        if (strncmp(unit, "user@", 5) == 0)
            break;
    }
    return NULL;
}

/* The file by which a user's own docker is to have NVIDIA's runtime; NULL: it is not. */
static const char *docker_config(struct gp_exam *exam, const char *group)
{
    const char *mark = strstr(group, "/user@");
    char *accounts = mark ? gp_accounts_text(exam) : NULL;
    unsigned long user = mark ? strtoul(mark + 6, NULL, 10) : 0;
    for (struct gp_account_line account; accounts && gp_accounts_next(&accounts, &account);) {
        if (account.user != user)
            continue;
        const char *path = gp_exam_text(exam, "%s/.config/docker/daemon.json", account.home);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
        return text && strstr(text, "nvidia") ? path : NULL;
    }
    return NULL;
}

/* Programs that are there to compute on a GPU, as the kernel has their names. */
static bool is_for_gpu(const char *name)
{
    static const char *const names[] = {"ollama",       "llama-server", "vllm", "VLLM",
                                        "tritonserver", "sglang",       NULL};
    return gp_lines_starts_any(name, names);
}

/* Whether a process is below the unit with these settings. Its name is asked first: most have
 * another one, and the units of each group cost many reads. */
static bool is_victim(struct gp_exam *exam, const char *process, const char *settings,
                      struct victim *ret)
{
    char name[32];
    if (!gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", process), name, sizeof(name)))
        return false;
    bool is_docker = strcmp(name, "dockerd") == 0, is_self = strcmp(process, self) == 0;
    if (!is_docker && !is_self && !is_for_gpu(name))
        return false;
    const char *group = group_of(exam, process);
    const char *wish = group && is_docker ? docker_config(exam, group) : NULL;
    const char *unit = group && (wish || !is_docker) ? unit_in(exam, group, settings) : NULL;
    *ret = (struct victim){.process = process,
                           .name = gp_exam_text(exam, "%s", name),
                           .unit = unit,
                           .shown = group,
                           .wish = wish};
    return unit;
}

/* A program that is to use a GPU; or else this one, which is asked there why there is none. */
static bool find_victim(struct gp_exam *exam, const char *settings, struct victim *ret)
{
    struct gp_processes all = gp_processes_of(exam);
    for (const char *process; (process = gp_processes_next(exam, &all, ""));)
        if (is_victim(exam, process, settings, ret))
            return true;
    return exam->files.is_here && is_victim(exam, self, settings, ret);
}

/* ---- the finding ---- */

static const char *one_line(struct gp_exam *exam, const char *lines)
{
    return gp_sandbox_joined(exam, lines, "", "", ", ");
}

static void show_settings(struct gp_exam *exam, const char *unit)
{
    static const char *const names[] = {"DevicePolicy", "DeviceAllow"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *where = gp_service_where(exam, unit, names[i]);
        if (where)
            gp_exam_evidence(exam, where, "%s=%s", names[i],
                             i == 0 ? gp_service_value(exam, unit, names[i])
                                    : one_line(exam, gp_service_list(exam, unit, names[i])));
    }
}

/* What "systemctl set-property" has set is changed by it, too, and at once. */
static void set_property(struct gp_exam *exam, const char *unit, const char *lines, bool is_runtime)
{
    gp_exam_command(exam, "allow these devices, too; it takes effect at once",
                    "sudo systemctl set-property%s %s %s", is_runtime ? " --runtime" : "",
                    gp_exam_quoted(exam, unit),
                    gp_sandbox_joined(exam, lines, "'DeviceAllow=", "'", " "));
    gp_exam_advice(exam,
                   "or take all of its settings back, if none of them is wanted: sudo systemctl "
                   "revert %s",
                   gp_exam_quoted(exam, unit));
}

/* The administrator's file to be changed: an update replaces what is in /usr, a boot what is in
 * /run, and "slice.d" is for all slices; there a drop-in for the same names adds to it. */
static const char *file_to_edit(struct gp_exam *exam, const char *unit, const char *where)
{
    static const char etc[] = "/etc/systemd/system/";
    const char *file = strrchr(where, '/') + 1, *folder = file - 1;
    while (folder > where && folder[-1] != '/')
        folder--;
    const char *name = gp_exam_text(exam, "%.*s", (int)(file - 1 - folder), folder);
    bool is_for_type = strcmp(name, "slice.d") == 0 || strcmp(name, "service.d") == 0;
    if (strncmp(where, etc, sizeof(etc) - 1) == 0 && !is_for_type)
        return where;
    if (is_for_type || !gp_lines_ends(file, ".conf"))
        name = gp_exam_text(exam, "%s.d", is_for_type ? unit : file);
    const char *place = gp_exam_text(exam, "%s%s", etc, name);
    gp_exam_command(exam, "for the file below", "sudo mkdir -p %s", gp_exam_quoted(exam, place));
    return gp_exam_text(exam, "%s/zz-gpu.conf", place);
}

static void edit(struct gp_exam *exam, const char *unit, const char *where, const char *lines)
{
    const char *file = file_to_edit(exam, unit, where);
    const char *section = gp_lines_ends(unit, ".slice") ? "[Slice]" : "[Service]";
    const char *note = file == where ? gp_exam_text(exam, "in %s add the lines below", section)
                                     : "write the lines below";
    gp_exam_command(exam, note, "sudoedit %s", gp_exam_quoted(exam, file));
    if (file != where)
        gp_exam_advice(exam, "%s", section);
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n')
        gp_exam_advice(exam, "DeviceAllow=%.*s", (int)strcspn(line, "\n"), line);
    gp_exam_command(exam, "", "sudo systemctl daemon-reload");
}

static void open_up(struct gp_exam *exam, const char *unit, const char *lines)
{
    const char *where = gp_service_where(exam, unit, "DeviceAllow");
    where = where ? where : gp_service_where(exam, unit, "DevicePolicy");
    bool is_runtime = strncmp(where, "/run/", 5) == 0;
    if (strcmp(exam->machine.distro_id, "nixos") == 0) {
        gp_exam_advice(exam, "in configuration.nix add to DeviceAllow of %s: %s", unit,
                       one_line(exam, lines));
        gp_exam_command(exam, "", "sudo nixos-rebuild switch");
    } else if (strstr(where, "/systemd/system.control/") || strstr(where, "/systemd/transient/")) {
        set_property(exam, unit, lines, is_runtime);
    } else {
        edit(exam, unit, where, lines);
    }
    gp_exam_advice(exam, "then start the programs again; if they still find no GPU, log their user "
                         "out of all sessions, or reboot");
}

/* A login where nothing is known to want a GPU may be closed for a batch system's sake. */
static void report(struct gp_exam *exam, const char *settings, const struct victim *victim)
{
    const char *unit = victim ? victim->unit : settings, *lines;
    const char *path = gp_sandbox_lacks(exam, unit, &lines);
    bool is_harmed = victim && strcmp(victim->process, self) != 0;
    gp_exam_report(exam, is_harmed ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "systemd keeps the programs in %s from the GPUs: it does not allow %s", unit,
                   path);
    show_settings(exam, unit);
    if (victim) {
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/cgroup", victim->process), "%s runs in %s",
                         victim->name, victim->shown);
        if (victim->wish)
            gp_exam_evidence(exam, victim->wish, "names NVIDIA's runtime");
    }
    gp_exam_why(exam,
                "Opening the device files fails there with Operation not permitted, whatever their "
                "modes are: these programs and their containers find no GPU, though others do.%s",
                is_harmed ? "" : " It may be meant so.");
    if (gp_slurm_is_there(exam))
        gp_exam_advice(exam, "on this node of Slurm, use GPUs in jobs: srun --gres=gpu:1 …");
    else
        open_up(exam, unit, lines);
}

static size_t closed_units(struct gp_exam *exam, const char *ret[MOST])
{
    const char *lines;
    size_t count = gp_service_units(exam, is_group, ret, MOST), kept = 0;
    for (size_t i = 0; i < count; i++)
        if (gp_sandbox_lacks(exam, ret[i], &lines))
            ret[kept++] = ret[i];
    return kept;
}

bool gp_slices_apply(struct gp_exam *exam)
{
    const char *units[MOST];
    const struct gp_machine *m = &exam->machine;
    return m->nvidia_count + m->amd_count > 0 && !m->is_wsl && !m->container &&
           closed_units(exam, units) > 0;
}

static bool is_told(const char *const *told, size_t count, const char *unit)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(told[i], unit) == 0)
            return true;
    return false;
}

/* On a node of Slurm, users may use GPUs in their jobs alone. Settings for "user-.slice" and for
 * "user-1000.slice" are both of the latter. */
void gp_slices_check(struct gp_exam *exam)
{
    const char *units[MOST], *told[MOST];
    size_t count = closed_units(exam, units), told_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct victim victim;
        bool is_one = !gp_slurm_is_there(exam) && find_victim(exam, units[i], &victim);
        const char *unit = is_one ? victim.unit : units[i];
        if (is_told(told, told_count, unit))
            continue;
        told[told_count++] = unit;
        report(exam, units[i], is_one ? &victim : NULL);
    }
}
