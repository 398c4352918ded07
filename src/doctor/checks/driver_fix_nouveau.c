/* How to go back to the kernel's own driver nouveau where the last driver of an old GPU shows no
 * picture: what keeps nouveau out, or names NVIDIA's modules and libraries, has to go, too. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/install.h"
#include "doctor/version.h"

#include <string.h>

/* NVIDIA's driver has GBM, by which compositors of Wayland get their memory, from this branch on.
 */
enum { FIRST_WITH_GBM = 495 };

enum { TEXT_MAX = 1 << 18 };

/* pacman removes the driver only together with what is built on it. */
static const char *packages_of_arch(struct gp_exam *exam)
{
    static const char *const words[] = {
        "nvidia", "lib32-nvidia", "opencl-nvidia", "lib32-opencl-nvidia", "libva-nvidia-driver",
        NULL};
    static const char container[] = "nvidia-container";
    struct gp_package *packages;
    const char *names = "";
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strncmp(packages[i].name, container, sizeof(container) - 1) != 0)
            names = gp_exam_text(exam, "%s%s%s", names, *names ? " " : "", packages[i].name);
    return names;
}

static void remove_driver(struct gp_exam *exam)
{
    const char *names = exam->machine.distro == GP_DISTRO_ARCH ? packages_of_arch(exam) : "";
    if (gp_install_of(exam)->run_trace[0])
        gp_exam_command(exam, "remove what the .run installer installed", "sudo nvidia-uninstall");
    else if (names[0])
        gp_exam_command(exam, "remove NVIDIA's driver", "sudo pacman -Rs %s", names);
    else
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_DRIVER, NULL, NULL);
}

/* What keeps nouveau out goes with the packages, unless somebody has set it. */
static void let_in(struct gp_exam *exam)
{
    const struct gp_block *block = &gp_install_of(exam)->nouveau;
    if (block->kind == GP_BLOCK_NONE)
        return;
    const char *colon = strrchr(block->where, ':');
    if (!colon)
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_KERNEL_ARGUMENT, block->text, NULL);
    else if (strncmp(block->where, "/etc/", 5) == 0)
        gp_exam_advice(exam, "take the lines with nouveau out of %.*s", (int)(colon - block->where),
                       block->where);
}

/* Whether a line of a text begins with a word and has NVIDIA's modules. */
static bool names_modules(const char *text, const char *start)
{
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t n = strcspn(text, "\n");
        if (strncmp(text, start, strlen(start)) == 0 && memmem(text, n, "nvidia", 6))
            return true;
    }
    return false;
}

/* The initramfs would lack modules that it is told to have. */
static void clean_initramfs(struct gp_exam *exam)
{
    static const struct {
        const char *file, *folder, *start, *script;
    } places[] = {
        {"/etc/mkinitcpio.conf", "/etc/mkinitcpio.conf.d", "MODULES",
         "/^MODULES/s/\\bnvidia([-_][a-z]+)? ?//g"},
        {"/etc/dracut.conf", "/etc/dracut.conf.d", "",
         "/^(add|force)_drivers/s/\\bnvidia([-_][a-z]+)? ?//g"},
        {"/etc/initramfs-tools/modules", NULL, "nvidia", "/^nvidia/s/^/#/"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(places); i++) {
        char **names;
        long n = places[i].folder
                     ? gp_files_list(&exam->files, &exam->arena, places[i].folder, &names)
                     : 0;
        for (long k = -1; k < (n > 0 ? n : 0); k++) {
            const char *path =
                k < 0 ? places[i].file : gp_exam_text(exam, "%s/%s", places[i].folder, names[k]);
            const char *text = gp_files_text(&exam->files, &exam->arena, path, TEXT_MAX, NULL);
            if (text && names_modules(text, places[i].start))
                gp_exam_command(exam, "the initramfs is to have none of NVIDIA's modules",
                                "sudo sed -i.before -E '%s' %s", places[i].script, path);
        }
    }
}

/* Variables that send programs to NVIDIA's libraries, in the files of a user's session. */
static void clean_session(struct gp_exam *exam)
{
    static const char *const files[] = {".config/hypr/hyprland.conf", ".config/hypr/envs.conf",
                                        ".config/uwsm/env", ".config/sway/config"};
    static const char *const marks[] = {"LIBVA_DRIVER_NAME,nvidia",
                                        "LIBVA_DRIVER_NAME=nvidia",
                                        "GLX_VENDOR_LIBRARY_NAME,nvidia",
                                        "GLX_VENDOR_LIBRARY_NAME=nvidia",
                                        "GBM_BACKEND,nvidia",
                                        "GBM_BACKEND=nvidia"};
    const struct gp_homes *homes = gp_homes_of(exam);
    for (size_t i = 0; i < homes->count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(files); k++) {
            const char *path = gp_exam_text(exam, "%s/%s", homes->list[i], files[k]);
            const char *text = gp_files_text(&exam->files, &exam->arena, path, TEXT_MAX, NULL);
            bool is_set = false;
            for (size_t m = 0; text && m < GP_ARRAY_LEN(marks); m++)
                is_set = is_set || strstr(text, marks[m]);
            if (is_set)
                gp_exam_command(exam, "variables that lead programs to NVIDIA's libraries",
                                "sed -i.before -E '/(NVD_BACKEND|LIBVA_DRIVER_NAME|GBM_BACKEND|"
                                "__GLX_VENDOR_LIBRARY_NAME)/s/^/#/' %s",
                                gp_exam_quoted(exam, path));
        }
}

static void go_back(struct gp_exam *exam)
{
    remove_driver(exam);
    let_in(exam);
    clean_initramfs(exam);
    clean_session(exam);
    gp_exam_remedy(exam, GP_REMEDY_REBUILD_INITRAMFS, NULL, NULL);
    gp_driver_fix_reboot(exam, "");
}

void gp_driver_fix_install_or_nouveau(struct gp_exam *exam)
{
    struct gp_wish wish = gp_driver_wish(exam);
    bool is_old = gp_wish_is_possible(&wish) && wish.last > 0 && wish.last < FIRST_WITH_GBM;
    const char *compositor = is_old ? gp_driver_compositor(exam) : NULL;
    bool is_of_users = exam->machine.distro == GP_DISTRO_ARCH; /* the AUR's, built by oneself */
    if (compositor) {
        gp_exam_evidence(exam, compositor,
                         "a compositor of Wayland: it needs GBM, which NVIDIA's driver has from "
                         "branch %d on",
                         FIRST_WITH_GBM);
        gp_exam_advice(exam, "to have a picture in Wayland, use the kernel's own driver, nouveau, "
                             "without CUDA:");
        go_back(exam);
        gp_exam_advice(exam, "or, instead of all that, for CUDA or a session of X11:");
    }
    gp_driver_fix_install(exam);
    if (is_old && !compositor && is_of_users && gp_driver_shows_screen(&exam->machine)) {
        gp_exam_advice(exam, "or, instead of all that, if CUDA is not needed: the kernel's own "
                             "driver, nouveau:");
        go_back(exam);
    }
}
