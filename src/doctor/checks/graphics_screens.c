/* A monitor on a GPU that the compositor of Wayland does not use: the ports of a laptop are often
 * wired to another one than its own screen. */
#include "doctor/checks/graphics.h"

#include "doctor/checks/graphics_hyprland.h"
#include "doctor/exam.h"
#include "doctor/readers/processes.h"
#include "doctor/readers/searchpath.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CARDS = 16, MOST_OPEN = 1024 };

/* Compositors that draw on all GPUs, or on those of a variable; GNOME's leaves those out that a
 * rule of udev tags. The kernel keeps 15 bytes of a name. */
static const struct {
    const char *process, *desktop, *variable;
} compositors[] = {{"kwin_wayland", "KDE", "KWIN_DRM_DEVICES"},
                   {"Hyprland", "Hyprland", "AQ_DRM_DEVICES"},
                   {"sway", "sway", "WLR_DRM_DEVICES"},
                   {"labwc", "labwc", "WLR_DRM_DEVICES"},
                   {"wayfire", "wayfire", "WLR_DRM_DEVICES"},
                   {"river", "river", "WLR_DRM_DEVICES"},
                   {"gnome-shell", "GNOME", ""}};

static const char tag[] = "mutter-device-ignore";

/* Hyprland's first releases were of wlroots, with its variable. */
static const char *variable_of(struct gp_exam *exam, size_t kind)
{
    return strcmp(compositors[kind].process, "Hyprland") == 0 && gp_hyprland_is_of_wlroots(exam)
               ? "WLR_DRM_DEVICES"
               : compositors[kind].variable;
}

const char *gp_graphics_compositor(struct gp_exam *exam, const char *process)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(compositors); i++)
        if (strcmp(compositors[i].process, process) == 0)
            return variable_of(exam, i);
    return NULL;
}

bool gp_graphics_is_gpu(struct gp_exam *exam, const char *card)
{
    char vendor[16];
    int length = (int)strcspn(card, "-");
    const char *path = gp_exam_text(exam, "/sys/class/drm/%.*s/device/vendor", length, card);
    unsigned long id =
        gp_files_line(&exam->files, path, vendor, sizeof(vendor)) ? strtoul(vendor, NULL, 16) : 0;
    return id == GP_PCI_NVIDIA || id == GP_PCI_AMD || id == GP_PCI_INTEL;
}

/* What is known of the cards of the machine, by their numbers. */
struct screens {
    bool has_picture[MOST_CARDS];       /* a connector is enabled */
    const char *dark[MOST_CARDS];       /* a monitor that is not enabled: "card2-HDMI-A-1" */
    bool is_used[MOST_CARDS];           /* a process has it open */
    const char *compositor[MOST_CARDS]; /* the folder of the compositor that has it open */
};

/* The number of "card2" and "card2-HDMI-A-1"; −1: it is none of a card. */
static int number_of(const char *name)
{
    char *end = NULL;
    long number = strncmp(name, "card", 4) == 0 ? strtol(name + 4, &end, 10) : -1;
    return end && end > name + 4 && (*end == '-' || *end == '\0') && number < MOST_CARDS
               ? (int)number
               : -1;
}

static bool has_line(struct gp_exam *exam, const char *path, const char *wanted)
{
    char line[32];
    return gp_files_line(&exam->files, path, line, sizeof(line)) && strcmp(line, wanted) == 0;
}

/* A laptop's own screen may be off on purpose. */
static void read_connectors(struct gp_exam *exam, struct screens *ret)
{
    static const char folder[] = "/sys/class/drm", own[] = "-eDP-", other[] = "-Writeback-";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        int card = number_of(names[i]);
        if (card < 0 || !strchr(names[i], '-') || strstr(names[i], other))
            continue;
        if (has_line(exam, gp_exam_text(exam, "%s/%s/enabled", folder, names[i]), "enabled"))
            ret->has_picture[card] = true;
        else if (!strstr(names[i], own) && gp_graphics_is_gpu(exam, names[i]) &&
                 has_line(exam, gp_exam_text(exam, "%s/%s/status", folder, names[i]),
                          "connected") &&
                 has_line(exam, gp_exam_text(exam, "%s/%s/enabled", folder, names[i]), "disabled"))
            ret->dark[card] = names[i];
    }
}

/* Which cards the processes have open; those of other users are seen by root only. */
static void read_users(struct gp_exam *exam, const char *compositor, struct screens *ret)
{
    static const char dri[] = "/dev/dri/";
    struct gp_processes processes = gp_processes_of(exam);
    const char *process;
    char name[32], target[GP_PATH_SIZE], **files;
    while ((process = gp_processes_next(exam, &processes, ""))) {
        const char *folder = gp_exam_text(exam, "%s/fd", process);
        long n = gp_files_list(&exam->files, &exam->arena, folder, &files);
        bool is_compositor = gp_files_line(&exam->files, gp_exam_text(exam, "%s/comm", process),
                                           name, sizeof(name)) &&
                             strcmp(name, compositor) == 0;
        for (long i = 0; i < n && i < MOST_OPEN; i++) {
            const char *link = gp_exam_text(exam, "%s/%s", folder, files[i]);
            int card = gp_files_link(&exam->files, link, target) &&
                               strncmp(target, dri, sizeof(dri) - 1) == 0
                           ? number_of(target + sizeof(dri) - 1)
                           : -1;
            if (card >= 0 && is_compositor)
                ret->compositor[card] = gp_exam_text(exam, "%s", link);
            else if (card >= 0)
                ret->is_used[card] = true;
        }
    }
}

/* Whether a line of udev's rules may be about this card: it names no other one, and no GPU of
 * another kind. Other conditions are not known here. */
static bool may_mean(struct gp_exam *exam, const char *line, int card)
{
    static const char *const ids[] = {"vendor", "device"};
    static const char number[] = "card";
    char text[16];
    for (const char *at = line; (at = strstr(at, number));) {
        at += sizeof(number) - 1;
        size_t n = strspn(at, "0123456789");
        if (n > 0 && at[n] == '"' && strtol(at, NULL, 10) != card)
            return false;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(ids); i++) {
        const char *key = gp_exam_text(exam, "ATTRS{%s}==\"0x", ids[i]), *at = strstr(line, key);
        const char *path = gp_exam_text(exam, "/sys/class/drm/card%d/device/%s", card, ids[i]);
        if (at && gp_files_line(&exam->files, path, text, sizeof(text)) &&
            strtoul(text, NULL, 16) != strtoul(at + strlen(key), NULL, 16))
            return false;
    }
    return true;
}

/* The administrator's rule of udev that has GNOME leave this card out; NULL: there is none. */
static const char *find_rule(struct gp_exam *exam, int card)
{
    static const char folder[] = "/etc/udev/rules.d";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *at = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
        while (at && *at) {
            int length = (int)strcspn(at, "\n");
            const char *line = gp_exam_text(exam, "%.*s", length, at);
            if (line[strspn(line, " \t")] != '#' && strstr(line, tag) && may_mean(exam, line, card))
                return path;
            at += length;
            at += *at == '\n';
        }
    }
    return NULL;
}

/* A variable of the process whose open file this is, "/proc/900/fd/14", which only its own session
 * may have; NULL: it has none, or that may not be read. */
static const char *value_of(struct gp_exam *exam, const char *open, const char *variable,
                            const char **ret_where)
{
    const char *process = gp_exam_text(exam, "%.*s", (int)(strstr(open, "/fd/") - open), open);
    *ret_where = gp_exam_text(exam, "%s/environ", process);
    return gp_process_variable(exam, process, variable);
}

/* Whether a value, "/dev/dri/card1:/dev/dri/card2", has this card, also by a link to it. A part
 * that is no card, such as one of a path with colons in it, could be. */
static bool may_name(struct gp_exam *exam, const char *value, int card)
{
    static const char dri[] = "/dev/dri/";
    char part[GP_PATH_SIZE], real[GP_PATH_SIZE];
    while (gp_search_path_next(&value, ":", part)) {
        const char *path = gp_files_real(&exam->files, part, real) ? real : part;
        int number =
            strncmp(path, dri, sizeof(dri) - 1) == 0 ? number_of(path + sizeof(dri) - 1) : -1;
        if (number < 0 || number == card)
            return true;
    }
    return false;
}

/* With root's /etc/environment the variable is there in all sessions; NixOS writes its own. */
static void advise(struct gp_exam *exam, const char *variable, int used, int other)
{
    const char *line =
        gp_exam_text(exam, "%s=/dev/dri/card%d:/dev/dri/card%d", variable, used, other);
    if (strcmp(exam->machine.distro_id, "nixos") == 0)
        gp_exam_advice(exam,
                       "in configuration.nix: environment.sessionVariables.%s = "
                       "\"/dev/dri/card%d:/dev/dri/card%d\"; then log out and in",
                       variable, used, other);
    else
        gp_exam_command(exam, "name both GPUs for all sessions, then log out and in",
                        "echo '%s' | sudo tee -a /etc/environment", line);
    gp_exam_advice(exam,
                   "the numbers of the cards may change with an update of the kernel: if a screen "
                   "is missing then, correct the line");
}

/* Whether no third card has a picture or is open: one that a list leaves out goes dark. */
static bool is_pair_of(const struct screens *screens, int used, int other)
{
    for (int i = 0; i < MOST_CARDS; i++)
        if (i != used && i != other &&
            (screens->has_picture[i] || screens->dark[i] || screens->compositor[i]))
            return false;
    return true;
}

/* A Hyprland of wlroots may not draw by NVIDIA's driver without this variable, which the files of
 * some installers have, commented out. The settings may be links, to a repository or, from
 * home-manager, to the store, where nothing can be changed. */
static bool fix_backend(struct gp_exam *exam, int other)
{
    static const char name[] = "GBM_BACKEND", store[] = "/nix/store/";
    static const char what[] = "set the variable that is commented out there, then log out and in";
    char vendor[16], real[GP_PATH_SIZE];
    struct gp_hyprland_line line;
    const char *path = gp_exam_text(exam, "/sys/class/drm/card%d/device/vendor", other);
    if (gp_machine_variable(&exam->machine, name) ||
        !gp_files_line(&exam->files, path, vendor, sizeof(vendor)) ||
        strtoul(vendor, NULL, 16) != GP_PCI_NVIDIA || !gp_hyprland_left_out(exam, name, &line))
        return false;
    gp_exam_evidence(exam, line.place, "%s", line.text);
    if (gp_files_real(&exam->files, line.path, real) &&
        strncmp(real, store, sizeof(store) - 1) == 0)
        gp_exam_advice(exam, "%s: in the configuration from which %s is built", what, line.path);
    else
        gp_exam_command(exam, what,
                        "sed --follow-symlinks -i.before "
                        "'s/^[#[:space:]]*\\(env[[:space:]]*=[[:space:]]*%s[[:space:]]*,\\)/\\1/' "
                        "%s",
                        name, gp_exam_quoted(exam, line.path));
    return true;
}

static void report(struct gp_exam *exam, size_t kind, const char *variable,
                   const struct screens *screens, int used, int other, const char *rule)
{
    const char *open = screens->compositor[used], *where = "";
    const char *value = open && variable[0] ? value_of(exam, open, variable, &where) : NULL;
    bool is_pair = is_pair_of(screens, used, other);
    bool is_old = strcmp(variable, compositors[kind].variable) != 0; /* of wlroots */
    struct gp_hyprland_line line = {0};
    enum gp_hyprland_wish wish = GP_HYPRLAND_UNKNOWN;
    if (strcmp(compositors[kind].process, "Hyprland") == 0)
        wish = gp_hyprland_wish(exam, strchr(screens->dark[other], '-') + 1, &line);
    if (wish == GP_HYPRLAND_OFF)
        return;
    if (value && may_name(exam, value, other)) /* the compositor could not open it: its log tells */
        return;
    gp_exam_report(exam, is_pair && open ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   open ? "%s does not use the GPU of a monitor: %s stays dark"
                        : "no picture on the monitor of a GPU that %s may not use: %s",
                   compositors[kind].process, screens->dark[other]);
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/class/drm/%s/status", screens->dark[other]),
                     "connected");
    gp_exam_evidence(exam, gp_exam_text(exam, "/sys/class/drm/%s/enabled", screens->dark[other]),
                     "disabled");
    if (open)
        gp_exam_evidence(exam, open, "/dev/dri/card%d; it has no file of card%d open", used, other);
    if (wish == GP_HYPRLAND_ON) /* then, it may still have been turned off since */
        gp_exam_evidence(exam, line.place, "%s", line.text);
    if (rule)
        gp_exam_evidence(exam, rule, "%s", tag);
    else if (value)
        gp_exam_evidence(exam, where, "%s=%s", variable, value);
    else
        gp_exam_evidence(exam, variable, "not set here");
    gp_exam_why(exam, "The port belongs to card%d, and the picture is on %s only.%s", other,
                is_pair ? gp_exam_text(exam, "card%d", used) : "other cards",
                open ? ""
                     : " If the display settings list this monitor, it was only turned off there; "
                       "if not, the compositor does not use its GPU, which root can see.");
    if (rule)
        gp_exam_advice(exam,
                       "remove the line with %s from %s if it means this GPU (card%d), and reboot",
                       tag, rule, other);
    else if (value)
        gp_exam_advice(exam,
                       "add :/dev/dri/card%d to the value where the session sets %s, or remove it; "
                       "then log out and in",
                       other, variable);
    else if (is_old && fix_backend(exam, other))
        gp_exam_advice(exam,
                       "if that does not help, name both cards, where the session sets its "
                       "variables: %s=/dev/dri/card%d:/dev/dri/card%d",
                       variable, used, other);
    else if (is_pair)
        advise(exam, variable, used, other);
    else
        gp_exam_advice(exam,
                       "the log of the compositor tells why it leaves card%d out; a list in %s "
                       "has to name all cards, as those that it lacks stay dark",
                       other, variable);
}

/* Of a session of Wayland with this compositor. GNOME's draws for X11 as well, where the X server
 * has the cards; from a console, a session of Wayland is seen by its process. */
static bool is_session(struct gp_exam *exam, size_t kind)
{
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    const char *desktop = gp_machine_variable(&exam->machine, "XDG_CURRENT_DESKTOP");
    bool is_wayland = type && strcmp(type, "wayland") == 0;
    if (!is_wayland && ((type && strcmp(type, "tty") != 0) ||
                        (!compositors[kind].variable[0] && gp_machine_runs(&exam->files, "Xorg"))))
        return false;
    return (is_wayland && desktop && strstr(desktop, compositors[kind].desktop)) ||
           gp_machine_runs(&exam->files, compositors[kind].process);
}

static bool is_set(struct gp_exam *exam, const char *variable)
{
    const char *place;
    return gp_machine_variable(&exam->machine, variable) ||
           gp_assignment_last(exam, variable, &place);
}

void gp_graphics_check_screens_left(struct gp_exam *exam)
{
    size_t kind = 0;
    struct screens screens = {0};
    read_connectors(exam, &screens);
    int used = -1, other = -1;
    for (int i = 0; i < MOST_CARDS; i++)
        if (screens.dark[i] && !screens.has_picture[i])
            other = i;
    for (int i = 0; other >= 0 && i < MOST_CARDS; i++)
        if (screens.has_picture[i] && gp_graphics_is_gpu(exam, gp_exam_text(exam, "card%d", i)))
            used = i;
    while (used >= 0 && kind < GP_ARRAY_LEN(compositors) && !is_session(exam, kind))
        kind++;
    if (used < 0 || kind == GP_ARRAY_LEN(compositors) || exam->machine.container)
        return;
    const char *variable = variable_of(exam, kind),
               *rule = variable[0] ? NULL : find_rule(exam, other);
    if (variable[0] ? is_set(exam, variable) : !rule)
        return;
    read_users(exam, compositors[kind].process, &screens);
    for (int i = 0; i < MOST_CARDS; i++)
        if (screens.has_picture[i] && screens.compositor[i] && !screens.compositor[used])
            used = i;
    if (!screens.compositor[other] && !screens.is_used[other]) /* else turned off on purpose */
        report(exam, kind, variable, &screens, used, other, rule);
}
