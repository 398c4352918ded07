/* NixOS: a compositor that was built with another Mesa than the system's, which does not take the
 * system's drivers. */
#include "doctor/checks/graphics.h"
#include "doctor/exam.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Programs that draw by GBM, and in whose session; NixOS has programs.NAME.package for each. */
static const struct {
    const char *program, *name, *desktop;
} users[] = {
    {"Hyprland", "hyprland", "Hyprland"},
    {"hyprlock", "hyprlock", "Hyprland"},
    {"sway", "sway", "sway"},
    {"niri", "niri", "niri"},
    {"labwc", "labwc", "labwc"},
    {"river", "river", "river"},
    {"wayfire", "wayfire", "wayfire"},
};

/* From the first on Mesa takes drivers of its own version only; later ones load them in another
 * way. */
static const char first_strict[] = "23.0", first_lax[] = "24.2";

static const char store[] = "/nix/store/", mesa_mark[] = "-mesa-", wlroots_mark[] = "-wlroots-";

/* The next package with this mark behind its hash, of the store's paths in a program: its run path.
 * NULL: there is none. */
static const char *next_package(const char **at, const char *end, const char *mark)
{
    enum { HASH = 32 };
    const char *found;
    while ((found = memmem(*at, (size_t)(end - *at), store, sizeof(store) - 1))) {
        *at = found + sizeof(store) - 1;
        if (end - *at > HASH + (long)strlen(mark) && memcmp(*at + HASH, mark, strlen(mark)) == 0)
            return found;
    }
    return NULL;
}

/* A package up to its slash; NULL: the text ends before. */
static const char *package_at(struct gp_exam *exam, const char *found, const char *end)
{
    enum { LONGEST = 200 };
    const char *slash = memchr(found + sizeof(store), '/', (size_t)(end - found) - sizeof(store));
    return slash && slash - found < LONGEST
               ? gp_exam_text(exam, "%.*s", (int)(slash - found), found)
               : NULL;
}

/* "23.0.3" of "/nix/store/HASH-mesa-23.0.3-drivers"; "": it is none of Mesa. */
static const char *version_in(struct gp_exam *exam, const char *package)
{
    const char *at = package ? strstr(package, mesa_mark) : NULL;
    at = at ? at + sizeof(mesa_mark) - 1 : "";
    return gp_exam_text(exam, "%.*s", (int)strspn(at, "0123456789."), at);
}

/* The first package with this mark that a file names; NULL: none. */
static const char *named_in(struct gp_exam *exam, const char *path, const char *mark)
{
    const void *map;
    size_t size;
    if (!gp_files_map(&exam->files, path, &map, &size))
        return NULL;
    const char *at = map, *end = at + size, *found, *package = NULL;
    while (!package && (found = next_package(&at, end, mark)))
        if (strcmp(mark, mesa_mark) != 0 ||
            version_in(exam, package_at(exam, found, end))[0]) /* else "-mesa-libgbm-25.0" */
            package = package_at(exam, found, end);
    (void)munmap((void *)(size_t)map, size);
    return package;
}

/* Of a program, or of the library by which it draws. */
static const char *mesa_of(struct gp_exam *exam, const char *path)
{
    const char *mesa = named_in(exam, path, mesa_mark), *wlroots;
    if (mesa || !(wlroots = named_in(exam, path, wlroots_mark)))
        return mesa;
    char **names;
    const char *folder = gp_exam_text(exam, "%s/lib", wlroots);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && !mesa; i++)
        if (strstr(names[i], ".so"))
            mesa = named_in(exam, gp_exam_text(exam, "%s/%s", folder, names[i]), mesa_mark);
    return mesa;
}

/* The program of the system or of the user, behind its wrapper; NULL: it is not installed. */
static const char *find_program(struct gp_exam *exam, const char *program)
{
    const char *user = gp_machine_variable(&exam->machine, "USER");
    const char *folders[] = {
        "/run/current-system/sw/bin",
        gp_exam_text(exam, "/etc/profiles/per-user/%s/bin", user ? user : "root")};
    char real[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folders[i], program);
        if (!gp_files_real(&exam->files, path, real) ||
            strncmp(real, store, sizeof(store) - 1) != 0)
            continue;
        const char *wrapped =
            gp_exam_text(exam, "%.*s/.%s-wrapped", (int)(strrchr(real, '/') - real), real, program);
        return gp_files_exist(&exam->files, wrapped) ? wrapped : gp_exam_text(exam, "%s", real);
    }
    return NULL;
}

/* Mesa's version of the system's drivers, which may be linked from a directory of several
 * packages; "": unknown. */
static const char *system_mesa(struct gp_exam *exam, const char **ret_where)
{
    static const char *const names[] = {"libEGL_mesa.so.0", "dri/swrast_dri.so",
                                        "dri/radeonsi_dri.so", "dri/iris_dri.so"};
    char real[GP_PATH_SIZE];
    const char *version = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && !version[0]; i++) {
        *ret_where = gp_exam_text(exam, "/run/opengl-driver/lib/%s", names[i]);
        if (gp_files_real(&exam->files, *ret_where, real))
            version = version_in(exam, real);
    }
    return version;
}

static bool is_used(struct gp_exam *exam, size_t i)
{
    const char *desktop = gp_machine_variable(&exam->machine, "XDG_CURRENT_DESKTOP");
    return (desktop && strstr(desktop, users[i].desktop)) ||
           gp_machine_runs(&exam->files, users[i].program);
}

/* Whether Mesa draws here for sure: a monitor is at a GPU of AMD or Intel, or the driver of an
 * NVIDIA GPU, which has an OpenGL of its own, is not loaded. */
static bool is_of_mesa(struct gp_exam *exam)
{
    static const char folder[] = "/sys/class/drm";
    char **names, line[16];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; exam->machine.is_driver_loaded && i < n; i++) {
        const char *status = gp_exam_text(exam, "%s/%s/status", folder, names[i]);
        const char *vendor = gp_exam_text(exam, "%s/%.*s/device/vendor", folder,
                                          (int)strcspn(names[i], "-"), names[i]);
        if (gp_files_line(&exam->files, status, line, sizeof(line)) &&
            strcmp(line, "connected") == 0 &&
            gp_files_line(&exam->files, vendor, line, sizeof(line))) {
            unsigned long id = strtoul(line, NULL, 16);
            if (id == GP_PCI_AMD || id == GP_PCI_INTEL)
                return true;
        }
    }
    return !exam->machine.is_driver_loaded;
}

static void fix(struct gp_exam *exam, const char *name)
{
    if (gp_files_exist(&exam->files, "/etc/nixos/flake.nix"))
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "after adding, in flake.nix: inputs.%s.inputs.nixpkgs.follows "
                                     "= \"nixpkgs\"; then log out and in",
                                     name),
                        "sudo nixos-rebuild switch");
    else
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "after setting, in configuration.nix: programs.%s.package = "
                                     "pkgs.%s; then log out and in",
                                     name, name),
                        "sudo nixos-rebuild switch");
    gp_exam_advice(exam,
                   "or keep %s from its own flake, and update it once its flake.lock has the "
                   "system's Mesa",
                   name);
    gp_exam_advice(exam, "if the configuration sets the system's Mesa (hardware.opengl.package, "
                         "since 24.11 hardware.graphics.package), change that setting instead: "
                         "both have to be from the same nixpkgs");
}

void gp_graphics_check_nix(struct gp_exam *exam)
{
    const char *where, *version = system_mesa(exam, &where);
    if (!version[0] || gp_version_compare(version, first_strict) < 0)
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(users); i++) {
        const char *program = find_program(exam, users[i].program);
        const char *mesa = program ? mesa_of(exam, program) : NULL;
        const char *own = version_in(exam, mesa);
        if (!own[0] || gp_version_compare(own, version) == 0 ||
            gp_version_compare(own, first_strict) < 0 || gp_version_compare(own, first_lax) >= 0)
            continue;
        bool is_sure = is_of_mesa(exam);
        gp_exam_report(exam, is_sure && is_used(exam, i) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "%s was built with Mesa %s, which does not take the system's drivers of "
                       "Mesa %s: %sthe CPU draws, or it fails",
                       users[i].program, own, version,
                       is_sure ? "" : "with a GPU of AMD or Intel, ");
        gp_exam_evidence(exam, program, "%s", mesa);
        gp_exam_evidence(exam, where, "Mesa %s", version);
        gp_exam_why(exam,
                    "It was built with another Mesa than the system has, and Mesa takes drivers of "
                    "its own version only: \"DRI driver not from this Mesa build\". Programs "
                    "in its session then show llvmpipe.");
        fix(exam, users[i].name);
        gp_exam_link(exam, "https://github.com/hyprwm/Hyprland/issues/2170");
        return;
    }
}
