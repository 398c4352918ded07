/* Releases of the driver that are known to fail: with some GPUs, a part of driver.persistence; and
 * with programs of Wayland, a part of driver.libraries. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/log.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <string.h>

/* ---- GPUs that do not start ---- */

enum { GSP_ERROR = 120 };

/* GPUs of an architecture fail with this error with these releases. */
static const struct regression {
    const char *first;
    const char *fixed;        /* the first release without the fault; "": unknown */
    const char *last;         /* if so, the newest that is reported to have it */
    const char *architecture; /* "": any */
    const char *kind;         /* a word of the model's name */
    const char *error;
    const char *sign; /* another line, by its entry in data/explain; NULL: none */
    unsigned xid;     /* an Xid before it; 0: none */
    const char *words;
    const char *earlier, *link;
} regressions[] = {
    {"575.57.08", "575.64", "", "Blackwell", "Mobile", "RmInitAdapter failed! (0x62:", NULL,
     GSP_ERROR, "its firmware (GSP) crashes at the start of GPUs of laptops",
     "570.144, 570.169 or 570.172.08",
     "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/876"},
    /* Reported of an Ada and a Blackwell GPU; 595.45.04 starts the former. */
    {"595.58.03", "", "595.58.03", "", "", "RmInitAdapter failed! (0x62:0x40:2168)", "nv.booter", 0,
     "its firmware (GSP) does not start", "595.45.04, or one of branch 580",
     "https://github.com/ublue-os/bazzite/issues/4494"},
};

static bool is_one(struct gp_exam *exam, const struct regression *r, const struct gp_pci_gpu *gpu,
                   const struct gp_log_line *line)
{
    const char *driver = exam->machine.driver;
    if (!gpu->chip || (r->architecture[0] && strcmp(gpu->chip->architecture, r->architecture) != 0))
        return false;
    /* A host that did not reset a GPU makes it fail likewise in its virtual machine. */
    if (!r->fixed[0] && gp_machine_is_virtual(&exam->files))
        return false;
    return strstr(gpu->chip->name, r->kind) && strstr(line->kmsg.body, r->error) &&
           gp_version_compare(driver, r->first) >= 0 &&
           (r->fixed[0] ? gp_version_compare(driver, r->fixed) < 0
                        : gp_version_compare(driver, r->last) <= 0);
}

/* No release is known to be well again: back to one from before. */
static void go_back(struct gp_exam *exam, const struct regression *r)
{
    if (gp_machine_is_ostree(&exam->machine)) {
        gp_exam_command(exam, "back to the image before, if it was well",
                        "sudo rpm-ostree rollback");
        gp_exam_command(exam, "then switch it on again: a reboot may not reset the GPU",
                        "sudo poweroff");
        gp_exam_advice(exam,
                       "otherwise rebase to an image with driver %s; keep it until a newer one is "
                       "reported to work",
                       r->earlier);
        return;
    }
    gp_exam_advice(exam,
                   "install the release before, with which such GPUs are reported to work (%s), in "
                   "the way in which this one was installed, and keep it until a newer one works",
                   r->earlier);
    gp_exam_command(exam, "then switch it on again: a reboot may not reset the GPU",
                    "sudo poweroff");
}

static void update(struct gp_exam *exam, const struct regression *r)
{
    if (exam->machine.distro == GP_DISTRO_ARCH)
        gp_driver_fix_update(exam);
    else
        gp_driver_fix_at_least(exam, r->fixed);
    gp_exam_command(exam, "then switch it on again: a reboot may not reset the GPU",
                    "sudo poweroff");
    gp_exam_advice(exam,
                   "or, if the same error comes back: install a release with which such GPUs "
                   "are reported to work (%s)",
                   r->earlier);
}

static void report(struct gp_exam *exam, const struct regression *r, const struct gp_pci_gpu *gpu,
                   const struct gp_log_line *line)
{
    const char *driver = exam->machine.driver;
    gp_exam_report(exam, GP_VERDICT_FAIL, "driver %s cannot start %s%s", driver,
                   gp_driver_gpu_words(exam, gpu),
                   r->fixed[0] ? " because of a known bug" : ", as is reported of this release");
    gp_exam_evidence(exam, "/proc/driver/nvidia/version", "%s", driver);
    gp_exam_evidence(exam, line->where, "%s", line->kmsg.body);
    if (r->fixed[0])
        gp_exam_why(exam,
                    "A known bug of this release, not a fault of the board: %s. It came with %s, "
                    "and %s fixes it.",
                    r->words, r->first, r->fixed);
    else
        gp_exam_why(exam, "With this release %s on several models, and not with earlier ones.",
                    r->words);
}

bool gp_driver_report_regression(struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                                 const struct gp_log_line *line)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(regressions); i++) {
        const struct regression *r = &regressions[i];
        if (!is_one(exam, r, gpu, line))
            continue;
        const struct gp_log_line *xid = r->xid ? gp_log_xid(exam, gpu->bus_id, r->xid) : NULL;
        const struct gp_log_known *sign =
            r->sign ? gp_log_known_for(exam, r->sign, gpu->bus_id) : NULL;
        if ((r->xid && !xid) || (r->sign && !sign))
            continue;
        report(exam, r, gpu, line);
        if (xid)
            gp_exam_evidence(exam, xid->where, "%s", xid->kmsg.body);
        if (sign)
            gp_exam_evidence(exam, sign->where, "%s", sign->text);
        if (r->fixed[0])
            update(exam, r);
        else
            go_back(exam, r);
        gp_exam_link(exam, r->link);
        return true;
    }
    return false;
}

/* ---- programs that hang ---- */

/* By NVIDIA's list of changes of the second: the releases in which Vulkan hangs on Wayland. */
static const char hangs_first[] = "580.65.06", hangs_fixed[] = "580.82.07";

/* Its logs stay when it is removed. */
static bool has_zed(struct gp_exam *exam, const char *home)
{
    const char *const paths[] = {
        "/usr/bin/zeditor",
        "/usr/lib/zed/zed-editor",
        "/usr/libexec/zed-editor",
        "/var/lib/flatpak/app/dev.zed.Zed",
        gp_exam_text(exam, "%s/.local/zed.app", home),
        gp_exam_text(exam, "%s/.local/share/flatpak/app/dev.zed.Zed", home),
        NULL};
    return gp_files_first(&exam->files, paths);
}

/* The log of Zed, which draws by Vulkan alone, if its last start was on this driver; NULL: it is
 * not, or there is none. */
static const char *zed_log(struct gp_exam *exam)
{
    static const char *const logs[] = {".local/share/zed/logs/Zed.log",
                                       ".var/app/dev.zed.Zed/data/zed/logs/Zed.log"};
    const struct gp_homes *homes = gp_homes_of(exam);
    const char *mark = gp_exam_text(exam, "driver_info: \"%s\"", exam->machine.driver);
    for (size_t i = 0; i < homes->count * GP_ARRAY_LEN(logs); i++) {
        size_t length = 0;
        const char *path = gp_exam_text(exam, "%s/%s", homes->list[i / GP_ARRAY_LEN(logs)],
                                        logs[i % GP_ARRAY_LEN(logs)]);
        const char *text = gp_files_tail(&exam->files, &exam->arena, path, 1 << 20, &length);
        const char *last = NULL;
        for (const char *p = text; p && (p = strstr(p, "driver_info: ")); p++)
            last = p;
        if (last && strncmp(last, mark, strlen(mark)) == 0 &&
            has_zed(exam, homes->list[i / GP_ARRAY_LEN(logs)]))
            return path;
    }
    return NULL;
}

void gp_driver_check_hangs(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *type = gp_machine_variable(m, "XDG_SESSION_TYPE");
    if (m->container || !m->is_driver_loaded || !type || strcmp(type, "wayland") != 0 ||
        gp_version_compare(m->driver, hangs_first) < 0 ||
        gp_version_compare(m->driver, hangs_fixed) >= 0 || !gp_driver_shows_screen(m))
        return;
    const char *log = zed_log(exam);
    gp_exam_report(exam, log ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   log ? "Zed can hang: driver %s has a known bug with Vulkan on Wayland"
                       : "driver %s has a known bug: on Wayland, programs with Vulkan can hang",
                   m->driver);
    gp_exam_evidence(exam, "/proc/driver/nvidia/version", "%s", m->driver);
    if (log)
        gp_exam_evidence(exam, log, "Zed has started on this driver");
    gp_exam_evidence(exam, "XDG_SESSION_TYPE", "wayland");
    gp_exam_why(exam,
                "Windows freeze after their first picture. It came with %s, and %s fixes "
                "it.",
                hangs_first, hangs_fixed);
    if (m->distro == GP_DISTRO_ARCH) {
        gp_driver_fix_update(exam);
        gp_driver_fix_reboot(exam, "");
    } else {
        gp_driver_fix_at_least(exam, hangs_fixed);
    }
    gp_exam_advice(exam, "until then, start such a program without the variable WAYLAND_DISPLAY, "
                         "so that it uses X11: env -u WAYLAND_DISPLAY zeditor");
    gp_exam_link(exam, "https://github.com/zed-industries/zed/issues/35948");
}
