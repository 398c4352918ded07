/* How to go back to the kernel's own driver nouveau where the last driver of an old GPU shows no
 * picture: what keeps nouveau out, or names NVIDIA's modules and libraries, has to go, too. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/initramfs.h"
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
            names = gp_exam_text(exam, "%s%s%s", names, *names ? " " : "",
                                 gp_exam_quoted(exam, packages[i].name));
    return names;
}

/* What nouveau draws with comes first: pacman keeps NVIDIA's libraries while a program, such as
 * Steam, has nothing else for Vulkan. */
static void remove_packages(struct gp_exam *exam, const char *names)
{
    bool has_32_bit = strstr(names, "lib32-");
    gp_exam_command(exam, "what draws with nouveau",
                    "sudo pacman -S --needed mesa vulkan-nouveau%s",
                    has_32_bit ? " lib32-mesa lib32-vulkan-nouveau" : "");
    gp_exam_command(exam,
                    "remove NVIDIA's driver; name also what pacman says needs it, such as cuda",
                    "sudo pacman -Rs %s", names);
}

static void remove_driver(struct gp_exam *exam)
{
    const char *names = exam->machine.distro == GP_DISTRO_ARCH ? packages_of_arch(exam) : "";
    if (gp_install_of(exam)->run_trace[0])
        gp_exam_command(exam, "remove what the .run installer installed", "sudo nvidia-uninstall");
    else if (names[0])
        remove_packages(exam, names);
    else
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_DRIVER, NULL, NULL);
}

/* The packages take away what keeps nouveau out, except for what an administrator has set. */
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

/* The file may be a link into a repository of the user's settings, which has to stay one; those in
 * /nix/store are written by home-manager. */
static void comment_out(struct gp_exam *exam, const char *path)
{
    static const char note[] = "variables that lead programs to NVIDIA's libraries",
                      names[] = "NVD_BACKEND|LIBVA_DRIVER_NAME|GBM_BACKEND|"
                                "__GLX_VENDOR_LIBRARY_NAME";
    char real[GP_PATH_SIZE];
    if (gp_files_real(&exam->files, path, real) && strncmp(real, "/nix/store/", 11) == 0)
        gp_exam_advice(exam, "take out of what %s is made from: the %s", path, note);
    else
        gp_exam_command(exam, note, "sed --follow-symlinks -i.before -E '/(%s)/s/^/#/' %s", names,
                        gp_exam_quoted(exam, path));
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
                comment_out(exam, path);
        }
}

static void go_back(struct gp_exam *exam)
{
    remove_driver(exam);
    let_in(exam);
    struct gp_initramfs_line lines[GP_INITRAMFS_LINES];
    gp_driver_fix_initramfs(exam, lines, gp_initramfs_lines(exam, "nvidia", lines));
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
