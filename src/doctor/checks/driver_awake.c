/* Laptops whose screen is on the other GPU: the compositor of Wayland, or programs that variables
 * of the session lead to NVIDIA's GPU, have it open, so that it is never powered off. A finding of
 * driver.power. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/checks/graphics.h"
#include "doctor/checks/graphics_hyprland.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/searchpath.h"

#include <errno.h>
#include <string.h>

static const char egl_list[] = "__EGL_VENDOR_LIBRARY_FILENAMES", video[] = "LIBVA_DRIVER_NAME",
                  glx[] = "__GLX_VENDOR_LIBRARY_NAME", offload[] = "__NV_PRIME_RENDER_OFFLOAD";

/* The GPU, its card, and who has it open. */
struct awake {
    const struct gp_pci_gpu *gpu, *other; /* NVIDIA's, and that of the screen */
    const char *card, *other_card;        /* "/dev/dri/card0" */
    const char *picture;                  /* the connector of the screen, in /sys */
    enum gp_driver_rest rest;
    /* The compositor, "/proc/900", its name, its variable with the cards, and what it has open. */
    const char *compositor, *name, *variable, *open;
    bool has_card;       /* it has NVIDIA's card open, too, for monitors there */
    const char *user;    /* what another program that draws has open, "/proc/901/fd/12" */
    const char *user_of; /* its process */
    bool has_others;     /* one that computes, or was sent to it, has it open */
    const char *closed;  /* "/proc/1/fd" that cannot be read: that process may have it open */
};

/* ---- the machine ---- */

static const struct gp_pci_gpu *gpu_of(struct gp_exam *exam, const char *card)
{
    char device[GP_PATH_SIZE];
    const struct gp_machine *m = &exam->machine;
    const char *link = gp_exam_text(exam, "/sys/class/drm/%s/device", card);
    for (size_t i = 0; gp_files_link(&exam->files, link, device) && i < m->gpu_count; i++)
        if (strstr(device, m->gpus[i].bus_id))
            return &m->gpus[i];
    return NULL;
}

/* The cards of both GPUs; false: no screen of the other one is seen. */
static bool read_cards(struct gp_exam *exam, struct awake *ret)
{
    static const char folder[] = "/sys/class/drm";
    char **names, line[32];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *card = gp_exam_text(exam, "%.*s", (int)strcspn(names[i], "-"), names[i]);
        const struct gp_pci_gpu *gpu = strncmp(card, "card", 4) == 0 ? gpu_of(exam, card) : NULL;
        const char *path = gp_exam_text(exam, "%s/%s/enabled", folder, names[i]);
        if (gpu == ret->gpu)
            ret->card = gp_exam_text(exam, "/dev/dri/%s", card);
        if (!gpu || gpu == ret->gpu || !names[i][strlen(card)] ||
            (gpu->vendor != GP_PCI_INTEL && gpu->vendor != GP_PCI_AMD) ||
            !gp_files_line(&exam->files, path, line, sizeof(line)) || strcmp(line, "enabled") != 0)
            continue;
        ret->other = gpu;
        ret->other_card = gp_exam_text(exam, "/dev/dri/%s", card);
        ret->picture = path;
    }
    return ret->card && ret->other;
}

/* What a process has open. */
struct opened {
    const char *gpu; /* NVIDIA's device file: "/proc/900/fd/13" */
    bool has_card, draws;
    const char *closed; /* the folder, if it cannot be read */
};

static struct opened opened_by(struct gp_exam *exam, const char *process, const char *card)
{
    static const char dri[] = "/dev/dri/";
    enum { MOST_OPEN = 1024 };
    char **files, target[GP_PATH_SIZE];
    struct opened opened = {0};
    const char *folder = gp_exam_text(exam, "%s/fd", process);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &files);
    opened.closed = n == -EACCES ? folder : NULL;
    for (long i = 0; i < n && i < MOST_OPEN; i++) {
        const char *link = gp_exam_text(exam, "%s/%s", folder, files[i]);
        if (!gp_files_link(&exam->files, link, target))
            continue;
        if (gp_process_file_is_gpu(target))
            opened.gpu = link;
        opened.draws = opened.draws || strncmp(target, dri, sizeof(dri) - 1) == 0;
        opened.has_card = opened.has_card || strcmp(target, card) == 0;
    }
    return opened;
}

/* False: no compositor runs. gpulse itself has just asked the driver. */
static bool read_processes(struct gp_exam *exam, struct awake *ret)
{
    struct gp_processes all = gp_processes_of(exam);
    const char *process;
    char name[32];
    while ((process = gp_processes_next(exam, &all, ""))) {
        if (!gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", process), name,
                           sizeof(name)) ||
            strncmp(name, "gpulse", 6) == 0)
            continue;
        const char *variable = gp_graphics_compositor(exam, name);
        struct opened opened = opened_by(exam, process, ret->card);
        ret->has_others = ret->has_others || (opened.gpu && !opened.draws);
        ret->closed = ret->closed ? ret->closed : opened.closed;
        if (variable && (!ret->compositor || opened.gpu)) {
            ret->compositor = process;
            ret->name = gp_exam_text(exam, "%s", name);
            ret->variable = variable;
            ret->open = opened.gpu;
            ret->has_card = opened.has_card;
        } else if (!variable && opened.gpu && opened.draws && !ret->user) {
            ret->user = opened.gpu;
            ret->user_of = process;
        }
    }
    return ret->compositor;
}

static void show_state(struct gp_exam *exam, const struct awake *all)
{
    const char *bus_id = all->gpu->bus_id;
    const char *power = gp_exam_text(exam, "/sys/bus/pci/devices/%s/power", bus_id);
    gp_exam_evidence(exam, all->picture, "enabled: the screen is on the other GPU");
    gp_exam_evidence(exam, gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s/power", bus_id),
                     "Runtime D3 status: Enabled");
    if (all->rest == GP_DRIVER_NEVER_SLEEPS)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/runtime_suspended_time", power),
                         "0 ms: it was never off");
    else
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/runtime_status", power), "active");
}

/* Without root nothing is known of the services, one of which may compute. Their names do not tell:
 * no more than a note then, and how to know more. */
static void fix_closed(struct gp_exam *exam, const struct awake *all)
{
    if (!all->closed || all->has_others)
        return;
    gp_exam_evidence(exam, all->closed, "cannot be read: others may have the GPU open, too");
    if (!exam->snapshot)
        gp_exam_command(exam, "root sees whether others have it open, too",
                        "sudo gpulse doctor --only driver");
}

/* ---- variables of the session ---- */

/* Those that lead every program to NVIDIA's GPU, where prime-run does so for one. */
static const struct forced {
    const char *name, *value;
    const char *instead; /* leads to the other GPU; NULL: only without the variable */
    bool is_meant;       /* has no use unless the screen is on the other GPU */
} forced[] = {
    {video, "nvidia", NULL, false},
    {glx, "nvidia", "mesa", false},
    {"GBM_BACKEND", "nvidia-drm", NULL, false},
    {offload, "1", "0", true},
    {"__VK_LAYER_NV_optimus", "NVIDIA_only", NULL, true},
};

enum { FORCED = GP_ARRAY_LEN(forced) };

static bool has_value(const char *value, const struct forced *one)
{
    return value && strcmp(value, one->value) == 0;
}

/* Whether the whole session has the variable, not only this program: its compositor was started
 * with it, or sets it, or a file does for all. */
static bool is_of_session(struct gp_exam *exam, const struct awake *all, const struct forced *one,
                          struct gp_hyprland_line *ret)
{
    const char *place;
    *ret = (struct gp_hyprland_line){0};
    bool is_hyprland =
        strcmp(all->name, "Hyprland") == 0 && gp_hyprland_sets(exam, one->name, one->value, ret);
    return is_hyprland || has_value(gp_process_variable(exam, all->compositor, one->name), one) ||
           has_value(gp_assignment_last(exam, one->name, &place), one);
}

/* A program that was sent to NVIDIA's GPU by itself, as by prime-run, has it open on purpose. */
static void set_sent_aside(struct gp_exam *exam, struct awake *all)
{
    struct gp_hyprland_line line;
    for (size_t i = 0; i < FORCED && all->user; i++)
        if (strcmp(forced[i].name, offload) == 0 &&
            has_value(gp_process_variable(exam, all->user_of, offload), &forced[i]) &&
            !is_of_session(exam, all, &forced[i], &line)) {
            all->has_others = true;
            all->user = NULL;
        }
}

/* The name of the other GPU's driver for VA-API; NULL: it is not installed. */
static const char *video_of_other(struct gp_exam *exam, const struct awake *all)
{
    const char *path = gp_graphics_video_driver_of(exam, all->other->vendor);
    const char *name = path ? strrchr(path, '/') + 1 : NULL;
    return name ? gp_exam_text(exam, "%.*s", (int)(strstr(name, "_drv_video") - name), name) : NULL;
}

/* Whether the home with a line has settings of the user in this language. */
static bool has_settings(struct gp_exam *exam, const struct gp_hyprland_line *set, const char *end)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    for (size_t i = 0; i < homes->count; i++) {
        size_t n = strlen(homes->list[i]);
        const char *path = gp_exam_text(exam, "%s/.config/hypr/hyprland.%s", homes->list[i], end);
        if (strncmp(set->path, homes->list[i], n) == 0 && set->path[n] == '/' &&
            gp_files_exist(&exam->files, path))
            return true;
    }
    return false;
}

/* In the user's own settings, which come after the defaults that they source. Only in a file that
 * is there: Hyprland takes hyprland.lua in place of hyprland.conf, so that a new one would replace
 * all settings of the user. */
static void fix_in_hyprland(struct gp_exam *exam, const struct forced *one, const char *instead,
                            const struct gp_hyprland_line *set)
{
    const char *end = strrchr(set->path, '.');
    bool is_lua = end && strcmp(end, ".lua") == 0, has_lua = has_settings(exam, set, "lua");
    if (is_lua ? !has_lua : has_lua || !has_settings(exam, set, "conf")) {
        gp_exam_advice(exam, "take %s=%s out of %s", one->name, one->value, set->place);
        return;
    }
    const char *line = is_lua ? gp_exam_text(exam, "hl.env(\"%s\", \"%s\")", one->name, instead)
                              : gp_exam_text(exam, "env = %s,%s", one->name, instead);
    gp_exam_command(exam, "after the line that sets it, or delete that",
                    "echo '%s' >> ~/.config/hypr/hyprland.%s", line, is_lua ? "lua" : "conf");
}

static void fix_forced(struct gp_exam *exam, const struct awake *all, const struct forced *one,
                       const struct gp_hyprland_line *line)
{
    const char *place;
    const char *instead = strcmp(one->name, video) == 0 ? video_of_other(exam, all) : one->instead;
    bool is_nixos = strcmp(exam->machine.distro_id, "nixos") == 0;
    bool is_in_file = has_value(gp_assignment_last(exam, one->name, &place), one);
    if (is_nixos)
        gp_exam_advice(exam, "take %s out of the configuration of the system or of home-manager",
                       one->name);
    else if (is_in_file)
        gp_exam_unset_for_all(exam, one->name);
    if (line->text && instead && !is_nixos)
        fix_in_hyprland(exam, one, instead, line);
    else if (!is_nixos && (line->text || !is_in_file))
        gp_exam_advice(exam, "take %s=%s out of %s", one->name, one->value,
                       line->text ? line->place : "what sets the variables of the session");
}

static bool report_forced(struct gp_exam *exam, const struct awake *all)
{
    struct gp_hyprland_line lines[FORCED];
    bool is_set[FORCED] = {false}, is_any = false, has_video = true, is_meant = false;
    const char *open = all->user ? all->user : all->open;
    const char *process = all->user ? all->user_of : all->compositor;
    char name[32] = "";
    const char *names = "";
    for (size_t i = 0; i < FORCED && open; i++) {
        is_set[i] = is_of_session(exam, all, &forced[i], &lines[i]) &&
                    has_value(gp_process_variable(exam, process, forced[i].name), &forced[i]);
        if (!is_set[i])
            continue;
        names = gp_exam_text(exam, "%s%s%s", names, is_any ? ", " : "", forced[i].name);
        is_any = true;
        is_meant = is_meant || forced[i].is_meant;
        if (strcmp(forced[i].name, video) == 0)
            has_video = video_of_other(exam, all);
    }
    if (!is_any)
        return false;
    (void)gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", process), name, sizeof(name));
    bool is_sure = !all->has_others && !all->closed && has_video && !is_meant;
    gp_exam_report(exam, is_sure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s stays on: variables of the session lead every program to it (%s)",
                   gp_driver_gpu_words(exam, all->gpu), names);
    for (size_t i = 0; i < FORCED; i++)
        if (is_set[i]) {
            gp_exam_evidence(exam, gp_exam_text(exam, "%s/environ", process), "%s=%s",
                             forced[i].name, forced[i].value);
            if (lines[i].text)
                gp_exam_evidence(exam, lines[i].place, "%s", lines[i].text);
        }
    gp_exam_evidence(exam, open, "%s has the GPU open", name);
    show_state(exam, all);
    if (is_meant)
        gp_exam_why(exam,
                    "Set for the whole session, they have even programs that need no fast GPU "
                    "draw on it for a screen of the other GPU, and the battery lasts "
                    "shorter.");
    else
        gp_exam_why(exam, "They are for machines whose screen is on the NVIDIA GPU. Here programs "
                          "draw and decode on it for a screen of the other GPU, sometimes with "
                          "broken pictures, and the battery lasts shorter.");
    gp_exam_can_wait(exam);
    fix_closed(exam, all);
    if (is_meant)
        gp_exam_advice(exam, "only if not all programs are meant to draw on it:");
    for (size_t i = 0; i < FORCED; i++)
        if (is_set[i])
            fix_forced(exam, all, &forced[i], &lines[i]);
    gp_exam_advice(exam, "then log out and in; single programs on the NVIDIA GPU: "
                         "__NV_PRIME_RENDER_OFFLOAD=1 __GLX_VENDOR_LIBRARY_NAME=nvidia PROGRAM, or "
                         "prime-run PROGRAM");
    gp_exam_link(exam, "https://wiki.archlinux.org/title/PRIME#PRIME_render_offload");
    return true;
}

/* ---- the compositor ---- */

/* The first file that libglvnd reads in its folders, of those with this word in their names; NULL:
 * there is none. It passes over x.json.disabled. */
static const char *vendor_file(struct gp_exam *exam, const char *word)
{
    static const char *const folders[] = {"/etc/glvnd/egl_vendor.d",
                                          "/run/opengl-driver/share/glvnd/egl_vendor.d",
                                          "/usr/share/glvnd/egl_vendor.d"};
    char **names;
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n; i++) {
            const char *end = strrchr(names[i], '.');
            if (strstr(names[i], word) && end && strcmp(end, ".json") == 0)
                return gp_exam_text(exam, "%s/%s", folders[f], names[i]);
        }
    }
    return NULL;
}

/* Whether a path means itself in a command, in printf's format, in a unit of systemd, and in a list
 * with ":" between the files. */
static bool is_plain(const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    return !path[strspn(path, plain)];
}

/* KDE's compositor is a service, whose variables the programs of the session do not get. */
static void fix_egl(struct gp_exam *exam, const struct awake *all, const char *mesa)
{
    static const char unit[] = "plasma-kwin_wayland.service";
    const char *line = gp_exam_text(exam, "%s=%s", egl_list, mesa);
    bool is_kwin = strcmp(all->name, "kwin_wayland") == 0;
    if (strcmp(exam->machine.distro_id, "nixos") == 0) {
        gp_exam_advice(exam,
                       "in configuration.nix: environment.sessionVariables.%s = \"%s\"; then "
                       "nixos-rebuild switch, and log in again",
                       egl_list, mesa);
    } else if (is_kwin && !all->user &&
               gp_files_exist(&exam->files, gp_exam_text(exam, "/usr/lib/systemd/user/%s", unit))) {
        gp_exam_command(exam, "Mesa's EGL only, for the compositor alone; then log out and in",
                        "mkdir -p ~/.config/systemd/user/%s.d && printf '[Service]\\n"
                        "Environment=%s\\n' > ~/.config/systemd/user/%s.d/egl-of-mesa.conf",
                        unit, line, unit);
        return;
    } else if (is_kwin || strcmp(all->name, "gnome-shell") == 0) {
        gp_exam_command(exam, "Mesa's EGL only, for the session; then log out and in",
                        "mkdir -p ~/.config/environment.d && echo '%s' > "
                        "~/.config/environment.d/egl-of-mesa.conf",
                        line);
    } else {
        gp_exam_command(exam, "Mesa's EGL only, for all sessions; then log out and in",
                        "echo '%s' | sudo tee -a /etc/environment", line);
    }
    gp_exam_advice(exam,
                   "a program that is to draw on the NVIDIA GPU by EGL is then started with env -u "
                   "%s before its name",
                   egl_list);
}

/* A monitor on NVIDIA's ports would stay dark. */
static void fix_cards(struct gp_exam *exam, const struct awake *all)
{
    static const char condition[] = "if no monitor is ever plugged into a port of the NVIDIA GPU";
    if (all->variable[0])
        gp_exam_advice(exam,
                       "%s: have the compositor leave it out, by %s=%s in the variables of the "
                       "session; then log out and in. The numbers of the cards may change with an "
                       "update of the kernel",
                       condition, all->variable, all->other_card);
    else
        gp_exam_advice(exam,
                       "%s: have the compositor leave it out, by a rule of udev that gives %s the "
                       "tag mutter-device-ignore; then reboot",
                       condition, all->card);
}

/* Only where nothing chooses the GPUs of the compositor, or its EGL. */
static bool is_chosen(struct gp_exam *exam, const struct awake *all)
{
    const char *place;
    const char *const names[] = {egl_list, "__EGL_VENDOR_LIBRARY_DIRS", all->variable};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        bool is_cards = i + 1 == GP_ARRAY_LEN(names);
        if (!names[i][0] || (is_cards && !all->has_card))
            continue;
        if (gp_process_variable(exam, all->compositor, names[i]) ||
            gp_assignment_last(exam, names[i], &place))
            return true;
    }
    return false;
}

static void report_compositor(struct gp_exam *exam, const struct awake *all)
{
    const char *nvidia = vendor_file(exam, "nvidia"), *mesa = vendor_file(exam, "mesa");
    if (!all->open || is_chosen(exam, all))
        return;
    /* The folders are searched in the order of their paths, too. */
    if (!all->has_card && (!nvidia || !mesa || strcmp(nvidia, mesa) > 0 || !is_plain(mesa)))
        return;
    /* Others have it open for the same reason; but a game may run on it just now. */
    bool is_sure = !all->has_card && !all->has_others && !all->closed &&
                   (!all->user || all->rest == GP_DRIVER_NEVER_SLEEPS);
    gp_exam_report(exam, is_sure ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s stays on: %s has it open, though the screen is on the other GPU",
                   gp_driver_gpu_words(exam, all->gpu), all->name);
    gp_exam_evidence(exam, all->open, "%s has the GPU open%s", all->name,
                     all->has_card ? gp_exam_text(exam, ", and %s", all->card) : "");
    if (all->user)
        gp_exam_evidence(exam, all->user, "so has another program");
    show_state(exam, all);
    if (!all->has_card) {
        gp_exam_evidence(exam, nvidia, "comes before %s", mesa);
        gp_exam_why(exam, "EGL asks the drivers in the order of these files: NVIDIA's is loaded "
                          "first, and opens its GPU. A laptop's battery lasts much shorter with it "
                          "on.");
    } else {
        gp_exam_why(exam, "It serves the monitors of all GPUs, and may keep this one on for those "
                          "that are not there. A laptop's battery lasts much shorter with it on.");
    }
    gp_exam_can_wait(exam);
    fix_closed(exam, all);
    if (all->has_card)
        fix_cards(exam, all);
    else
        fix_egl(exam, all, mesa);
    gp_exam_link(exam, "https://wiki.archlinux.org/title/PRIME");
}

void gp_driver_check_awake(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    struct awake all = {0};
    if (!gp_machine_is_laptop(&exam->files) || !m->is_driver_loaded || m->container ||
        m->nvidia_count != 1 || m->gpu_count < 2 || gp_machine_runs(&exam->files, "Xorg"))
        return;
    for (size_t i = 0; i < m->gpu_count && !all.gpu; i++)
        if (gp_driver_is_ours(&m->gpus[i]))
            all.gpu = &m->gpus[i];
    all.rest = all.gpu ? gp_driver_rest_of(exam, all.gpu->bus_id, "Enabled (") : GP_DRIVER_SLEEPS;
    if (all.rest == GP_DRIVER_SLEEPS || (all.rest == GP_DRIVER_IS_ON && exam->snapshot) ||
        !read_cards(exam, &all) || !read_processes(exam, &all))
        return;
    set_sent_aside(exam, &all);
    if (!report_forced(exam, &all))
        report_compositor(exam, &all);
}
