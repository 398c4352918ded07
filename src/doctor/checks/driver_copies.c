/* Copies of the driver's libraries and programs of another version than the driver's, which a
 * profile, a variable or a sandbox puts before the system's own: driver.copies. */
#include "doctor/checks/driver.h"
#include "doctor/checks/log_show.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/install.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const names[] = {"libnvidia-ml.so.1", "libcuda.so.1"};

/* Whether it is what the loader finds anyway; its version is for driver.mismatch. */
static bool is_of_system(const struct gp_install *in, const char *real)
{
    for (size_t i = 0; i < in->library_count; i++)
        if (strcmp(in->libraries[i].real, real) == 0)
            return true;
    return false;
}

/* The version of the driver's libraries in a directory, unless they are the system's; "". */
static const char *version_in(struct gp_exam *exam, const char *folder)
{
    char real[GP_PATH_SIZE];
    if (strstr(folder, "/compat") || strstr(folder, "/stubs"))
        return "";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (!gp_files_real(&exam->files, path, real) || is_of_system(gp_install_of(exam), real))
            continue;
        const char *version = gp_library_version(strrchr(real, '/') + 1);
        if (gp_version_major(version) >= 100)
            return gp_exam_text(exam, "%s", version);
    }
    return "";
}

/* Of a program in Nix's store: "/nix/store/HASH-nvidia-x11-460.73.01-5.11.21-bin/bin/nvidia-smi";
 * of others the libraries next to it: "/opt/old/bin/nvidia-smi", "/opt/old/lib". */
static const char *version_of_program(struct gp_exam *exam, const char *real)
{
    static const char mark[] = "-nvidia-x11-";
    const char *at = strstr(real, mark);
    if (at)
        return gp_exam_text(exam, "%.*s", (int)strspn(at + strlen(mark), "0123456789."),
                            at + strlen(mark));
    const char *slash = strrchr(real, '/');
    const char *folder = gp_exam_text(exam, "%.*s/../lib", (int)(slash - real), real);
    return version_in(exam, folder);
}

static void report(struct gp_exam *exam, const char *what, const char *where, const char *path,
                   const char *version)
{
    bool is_nix = strstr(path, "/nix/");
    gp_exam_report(exam, GP_VERDICT_WARN, "%s of version %s, but the driver is %s", what, version,
                   exam->machine.driver);
    gp_exam_evidence(exam, where, "%s", path);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s", exam->machine.driver);
    gp_exam_why(exam, "The copy is used in place of the system's, and does not match the module: "
                      "\"Driver/library version mismatch\".");
    if (is_nix)
        gp_exam_advice(exam, "remove nvidia-x11 from the profile: nix-env -e nvidia-x11, or nix "
                             "profile remove nvidia-x11, with -p and the profile if it is not "
                             "your own; the system provides the driver");
    else
        gp_exam_advice(exam, "remove the copy, or its directory from the variable");
}

static void check_programs(struct gp_exam *exam)
{
    const char *list = gp_machine_variable(&exam->machine, "PATH");
    char folder[GP_PATH_SIZE], real[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ":", folder)) {
        const char *path = gp_exam_text(exam, "%s/nvidia-smi", folder);
        if (folder[0] != '/' || !gp_files_real(&exam->files, path, real))
            continue;
        const char *version = version_of_program(exam, real);
        if (version[0] && !gp_install_same(version, exam->machine.driver))
            report(exam, "the shell finds an nvidia-smi", path, real, version);
        return; /* the first one is started */
    }
}

static void check_libraries(struct gp_exam *exam)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ":;", folder)) {
        const char *version = folder[0] == '/' ? version_in(exam, folder) : "";
        if (!version[0] || gp_install_same(version, exam->machine.driver))
            continue;
        report(exam, "LD_LIBRARY_PATH leads to libraries of the driver", "LD_LIBRARY_PATH", folder,
               version);
        return;
    }
}

/* Conda's programs search their own environment's libraries first. */
static void check_conda(struct gp_exam *exam)
{
    const char *prefix = gp_machine_variable(&exam->machine, "CONDA_PREFIX");
    const char *folder = gp_exam_text(exam, "%s/lib", prefix ? prefix : "");
    const char *version = prefix && prefix[0] == '/' ? version_in(exam, folder) : "";
    if (version[0] && !gp_install_same(version, exam->machine.driver))
        report(exam, "the conda environment has libraries of the driver", "CONDA_PREFIX", folder,
               version);
}

static const char gl_mark[] = "org.freedesktop.Platform.GL.nvidia-",
                  gl32_mark[] = "org.freedesktop.Platform.GL32.nvidia-";

/* What all installations of Flatpak have; the programs of one use the runtimes of the others. */
struct flatpak {
    const char *folder, *other; /* where a copy of another version is */
    const char *mesa;           /* where Mesa's libraries are */
    const char *broken,
        *name; /* the files of a copy without its libraries, and what it is called */
    bool has_copy, has_programs;
    bool is_of_user; /* the broken copy is in a user's installation */
};

static bool has_libraries(struct gp_exam *exam, const char *folder)
{
    char **found;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &found);
    for (long i = 0; i < n; i++)
        if (strstr(found[i], "nvidia"))
            return true;
    return false;
}

/* A copy unpacks NVIDIA's installer into files/extra, and has a link files/lib into it: nothing
 * else is searched in the sandbox. */
static bool is_broken(struct gp_exam *exam, const char *files)
{
    const char *lib = gp_exam_text(exam, "%s/lib", files);
    const char *extra = gp_exam_text(exam, "%s/extra/lib", files);
    char target[GP_PATH_SIZE];
    struct stat st;
    if (gp_files_stat(&exam->files, lib, &st) != -ENOENT)
        return false;
    return has_libraries(exam, extra) || gp_files_link(&exam->files, lib, target);
}

/* "runtime/NAME/x86_64/1.4/active/files" */
static void look_at_copy(struct gp_exam *exam, const char *copy, struct flatpak *all)
{
    char **archs, **branches;
    long n = gp_files_list(&exam->files, &exam->arena, copy, &archs);
    for (long i = 0; i < n; i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", copy, archs[i]);
        long m = gp_files_list(&exam->files, &exam->arena, folder, &branches);
        for (long k = 0; k < m && !all->broken; k++) {
            const char *files = gp_exam_text(exam, "%s/%s/active/files", folder, branches[k]);
            if (!is_broken(exam, files))
                continue;
            all->broken = files;
            all->name = strrchr(copy, '/') + 1;
        }
    }
}

static void look_at_runtimes(struct gp_exam *exam, const char *folder, const char *version,
                             struct flatpak *all)
{
    const char *runtimes = gp_exam_text(exam, "%s/runtime", folder);
    char **found;
    long n = gp_files_list(&exam->files, &exam->arena, runtimes, &found);
    for (long i = 0; i < n; i++) {
        if (strcmp(found[i], "org.freedesktop.Platform.GL.default") == 0 && !all->mesa)
            all->mesa = runtimes;
        if (strcmp(found[i], gp_exam_text(exam, "%s%s", gl_mark, version)) == 0 ||
            strcmp(found[i], gp_exam_text(exam, "%s%s", gl32_mark, version)) == 0)
            look_at_copy(exam, gp_exam_text(exam, "%s/%s", runtimes, found[i]), all);
        if (strncmp(found[i], gl_mark, strlen(gl_mark)) != 0)
            continue;
        all->has_copy = all->has_copy || strcmp(found[i] + strlen(gl_mark), version) == 0;
        all->other = found[i];
        all->folder = runtimes;
    }
}

/* As the names of the copies have it: "580-95-05". */
static const char *version_of_copy(struct gp_exam *exam)
{
    char version[32];
    (void)snprintf(version, sizeof(version), "%s", exam->machine.driver);
    for (char *p = version; *p; p++)
        *p = *p == '.' ? '-' : *p;
    return gp_exam_text(exam, "%s", version);
}

static struct flatpak flatpak_of(struct gp_exam *exam, const char *version)
{
    const struct gp_homes *homes = gp_homes_of_all(exam);
    struct flatpak all = {0};
    char **programs;
    for (size_t i = 0; i <= homes->count; i++) {
        const char *folder =
            i == 0 ? "/var/lib/flatpak"
                   : gp_exam_text(exam, "%s/.local/share/flatpak", homes->list[i - 1]);
        all.is_of_user = all.broken ? all.is_of_user : i > 0;
        look_at_runtimes(exam, folder, version, &all);
        all.has_programs =
            all.has_programs || gp_files_list(&exam->files, &exam->arena,
                                              gp_exam_text(exam, "%s/app", folder), &programs) > 0;
    }
    return all;
}

/* Only Flathub has the copies: true if it is not among the remotes, with the fix reported. */
static bool fix_without_flathub(struct gp_exam *exam, const char *name)
{
    static const char config[] = "/var/lib/flatpak/repo/config";
    const char *text = gp_files_text(&exam->files, &exam->arena, config, 1 << 16, NULL);
    if (!text || !strstr(text, "[remote \"") || strstr(text, "flathub"))
        return false;
    gp_exam_evidence(exam, config, "no remote flathub, which has the copies");
    gp_exam_command(exam, "add it",
                    "flatpak remote-add --if-not-exists flathub "
                    "https://flathub.org/repo/flathub.flatpakrepo");
    gp_exam_command(exam, "install the copy for this driver", "flatpak install flathub %s",
                    gp_exam_quoted(exam, name));
    gp_exam_advice(exam, "if programs still do not use it: uninstall their runtimes, and install "
                         "them from flathub");
    return true;
}

/* The copy is there, but not what the sandbox looks for: Flathub's build of it was faulty, or files
 * are lost. */
static void report_broken(struct gp_exam *exam, const struct flatpak *all)
{
    char target[GP_PATH_SIZE];
    const char *lib = gp_exam_text(exam, "%s/lib", all->broken);
    const char *sudo = all->is_of_user ? "" : "sudo ", *user = all->is_of_user ? "--user " : "";
    bool is_link = gp_files_link(&exam->files, lib, target);
    gp_exam_report(exam, all->has_programs ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Flatpak's copy of the driver's libraries is defective: %s has no lib",
                   all->name);
    if (is_link)
        gp_exam_evidence(exam, lib, "links to %s, which does not exist", target);
    else {
        gp_exam_evidence(exam, lib, "missing");
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/extra/lib", all->broken),
                         "has the libraries, to which lib must link");
    }
    gp_exam_why(exam,
                "Programs from Flatpak search only this directory, and so do not find the "
                "driver: they draw on the CPU, or fail. The copy has the driver's version, "
                "but %s.",
                is_link ? "its files are incomplete" : "this build of it is faulty");
    if (is_link)
        gp_exam_command(exam, "", "%s",
                        all->is_of_user ? "flatpak repair --user" : "sudo flatpak repair");
    else
        gp_exam_command(exam, "get the build with the correction, if it is published",
                        "flatpak update %s", gp_exam_quoted(exam, all->name));
    gp_exam_command(exam, "if it is still defective: install it again",
                    "flatpak install %s--reinstall flathub %s", user,
                    gp_exam_quoted(exam, all->name));
    if (is_link)
        return;
    gp_exam_command(exam, "if no newer build is published: list the earlier ones",
                    "flatpak remote-info %s--log flathub %s", user,
                    gp_exam_quoted(exam, all->name));
    gp_exam_command(exam, "and go back to the one before, by its commit",
                    "%sflatpak update %s--commit=COMMIT %s", sudo, user,
                    gp_exam_quoted(exam, all->name));
}

bool gp_driver_has_old_flatpak(struct gp_exam *exam)
{
    const struct flatpak all = flatpak_of(exam, version_of_copy(exam));
    return all.other && !all.has_copy;
}

/* Flatpak has its own copy of the libraries for each version: "…GL.nvidia-550-54-14". */
static void check_flatpak(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *version = version_of_copy(exam);
    const struct flatpak all = flatpak_of(exam, version);
    const char *other = all.other;
    if (all.broken)
        report_broken(exam, &all);
    if ((!other && !all.mesa) || all.has_copy)
        return;
    /* Another GPU's Mesa may be what its programs are to use. */
    bool is_lacking = other || (all.has_programs && m->gpu_count == m->nvidia_count);
    gp_exam_report(exam, is_lacking ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "Flatpak has no libraries for driver %s", m->driver);
    gp_exam_evidence(exam, other ? all.folder : all.mesa, "%s",
                     other ? other : "only Mesa's, none of NVIDIA");
    const struct gp_log_known *failure = other ? gp_driver_obs_of_flatpak(exam) : NULL;
    if (failure)
        gp_log_show_known(exam, failure);
    gp_exam_why(exam, "Programs from Flatpak bring their own copy of the driver's libraries, which "
                      "must have the module's version; without it they do not use the GPU.");
    if (fix_without_flathub(exam, gp_exam_text(exam, "%s%s", gl_mark, version)))
        return;
    gp_exam_command(exam, "install the copy for this driver", "flatpak update");
    /* Some copies are named without the last number: nvidia-396-24 is of 396.24.02, too. */
    const char *name = other ? other + strlen(gl_mark) : "";
    if (name[0] && strncmp(name, version, strlen(name)) == 0 && version[strlen(name)] == '-')
        gp_exam_command(exam, "until that one is published: use the copy that is installed",
                        "FLATPAK_GL_DRIVERS=nvidia-%s flatpak run APP", gp_exam_quoted(exam, name));
    gp_exam_advice(exam,
                   "if Flathub has none for this driver (flatpak remote-ls --all flathub | grep "
                   "%s%s): wait for it, as after a new release, or install a driver that is listed",
                   gl_mark, version);
}

/* A runtime hands libraries into a container with their version in the name, and links to them. An
 * image made of a running container (docker commit) keeps files of no bytes where another runtime
 * had mounted something, as on WSL, and these stay in the place of the links. */
static void check_empty(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_finding *before = exam->last;
    for (size_t i = 0; exam->machine.container && i < in->library_count; i++) {
        const char *path = in->libraries[i].real;
        const char *mark = strstr(path, ".so");
        const char *full = gp_exam_text(exam, "%.*s.so.%s", mark ? (int)(mark - path) : 0, path,
                                        exam->machine.driver);
        struct stat empty, other;
        if (!mark || gp_files_stat(&exam->files, path, &empty) < 0 || empty.st_size > 0 ||
            gp_files_stat(&exam->files, full, &other) < 0 || other.st_size == 0)
            continue;
        if (exam->last == before) {
            gp_exam_report(exam, GP_VERDICT_FAIL,
                           "the image has empty files in the place of the driver's libraries");
            gp_exam_why(exam, "The image was made of a running container, perhaps on WSL. The "
                              "loader finds these files, and not the libraries that the runtime "
                              "has added.");
        }
        gp_exam_evidence(exam, path, "0 bytes");
        gp_exam_evidence(exam, full, "present");
        gp_exam_command(exam, "in this container", "ln -sf %s %s",
                        gp_exam_quoted(exam, strrchr(full, '/') + 1), gp_exam_quoted(exam, path));
    }
    if (exam->last != before)
        gp_exam_advice(exam, "build the image again from a Dockerfile, or delete the empty files "
                             "in it and run ldconfig");
}

void gp_driver_check_copies(struct gp_exam *exam)
{
    if (!exam->machine.driver[0])
        return;
    check_empty(exam);
    check_programs(exam);
    check_libraries(exam);
    check_conda(exam);
    gp_driver_check_own_copies(exam);
    check_flatpak(exam);
}
