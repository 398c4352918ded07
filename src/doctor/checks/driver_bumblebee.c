/* Bumblebee, which starts a second X server on a laptop's NVIDIA GPU for optirun and primusrun, by
 * the directories in its configuration: a part of driver.blacklist. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"

#include <string.h>

static const char conf_path[] = "/etc/bumblebee/bumblebee.conf", x_driver[] = "nvidia_drv.so";

/* Bumblebee's settings for NVIDIA's driver; "" where it has none. */
struct bumblebee {
    const char *driver, *kernel_driver, *libraries, *modules;
};

bool gp_driver_has_bumblebee(struct gp_exam *exam)
{
    static const char *const daemons[] = {"/usr/bin/bumblebeed", "/usr/sbin/bumblebeed",
                                          "/lib/systemd/system/bumblebeed.service",
                                          "/usr/lib/systemd/system/bumblebeed.service", NULL};
    return gp_files_first(&exam->files, daemons) != NULL;
}

static bool read_conf(struct gp_exam *exam, struct bumblebee *ret)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, conf_path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    const char *section = "";
    *ret = (struct bumblebee){"", "", "", ""};
    const struct {
        const char *section, *key;
        const char **value;
    } keys[] = {{"[bumblebeed]", "Driver=", &ret->driver},
                {"[driver-nvidia]", "KernelDriver=", &ret->kernel_driver},
                {"[driver-nvidia]", "LibraryPath=", &ret->libraries},
                {"[driver-nvidia]", "XorgModulePath=", &ret->modules}};
    while (gp_lines_next(&lines, &line, &n)) {
        const char *copy = gp_exam_text(exam, "%.*s", (int)n, line);
        section = copy[0] == '[' ? copy : section;
        for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++)
            if (strncmp(section, keys[i].section, strlen(keys[i].section)) == 0 &&
                strncmp(copy, keys[i].key, strlen(keys[i].key)) == 0)
                *keys[i].value = copy + strlen(keys[i].key);
    }
    return text && ret->modules[0];
}

/* Whether X finds the driver in one of these directories, or in what it looks for below them. */
static bool finds_x_driver(struct gp_exam *exam, const char *list)
{
    static const char *const below[] = {"", "/drivers", "/extensions", "/updates/drivers"};
    for (const char *p = list; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        const char *folder = gp_exam_text(exam, "%.*s", (int)n, p);
        for (size_t i = 0; i < GP_ARRAY_LEN(below); i++)
            if (gp_files_exist(&exam->files,
                               gp_exam_text(exam, "%s%s/%s", folder, below[i], x_driver)))
                return true;
        p += n;
    }
    return false;
}

/* Whether sed takes the text as it is in its script, which runs as root. */
static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._+:/-";
    return text[strspn(text, plain)] == '\0';
}

/* The directory in which a package has put it, "/usr/lib/nvidia-384/xorg"; NULL: it is not there.
 */
static const char *folder_of_x_driver(struct gp_exam *exam)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu/nvidia/xorg",
                                          "/usr/lib/nvidia/xorg",
                                          "/usr/lib/nvidia",
                                          "/usr/lib64/nvidia/xorg",
                                          "/usr/lib/xorg/modules/drivers",
                                          "/usr/lib64/xorg/modules/drivers"};
    static const char top[] = "/usr/lib", start[] = "nvidia-";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, top, &names);
    for (long i = n - 1; i >= 0; i--) {
        const char *folder = gp_exam_text(exam, "%s/%s/xorg", top, names[i]);
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 && is_plain(names[i]) &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, x_driver)))
            return folder;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folders[i], x_driver)))
            return folders[i];
    return NULL;
}

/* The module's name as modprobe takes it: Ubuntu's old packages have one for each branch. */
static const char *module_of(struct gp_exam *exam, const char *folder)
{
    size_t n = strcspn(folder + strlen("/usr/lib/"), "/");
    const char *first = gp_exam_text(exam, "%.*s", (int)n, folder + strlen("/usr/lib/"));
    const char *file = gp_driver_module_name(exam);
    return strncmp(file, "nvidia_", 7) == 0 && strncmp(first, "nvidia-", 7) == 0 ? first : file;
}

/* The directory of the driver's libraries, and that of those of 32 bits, if there is one. Ubuntu's
 * old packages have the X driver below it. */
static const char *library_path(struct gp_exam *exam, const char *x_folder)
{
    static const char own[] = "/usr/lib/nvidia-";
    const struct gp_driver_library *library = gp_install_library(gp_install_of(exam));
    bool is_own = strncmp(x_folder, own, sizeof(own) - 1) == 0;
    const char *file = is_own ? x_folder : library ? library->real : "";
    const char *slash = strrchr(file, '/');
    if (!slash)
        return "";
    const char *folder = gp_exam_text(exam, "%.*s", (int)(slash - file), file);
    const char *narrow =
        is_own ? gp_exam_text(exam, "/usr/lib32%s", folder + strlen("/usr/lib")) : "";
    return narrow[0] && gp_files_exist(&exam->files, narrow)
               ? gp_exam_text(exam, "%s:%s", folder, narrow)
               : folder;
}

static void fix_conf(struct gp_exam *exam, const char *folder)
{
    const char *base = gp_files_exist(&exam->files, "/usr/lib64/xorg/modules")
                           ? "/usr/lib64/xorg/modules"
                           : "/usr/lib/xorg/modules";
    const char *libraries = library_path(exam, folder), *module = module_of(exam, folder);
    if (!is_plain(libraries) || !is_plain(module)) {
        gp_exam_advice(exam, "name the installed driver in %s, then restart bumblebeed", conf_path);
        return;
    }
    const char *script =
        gp_exam_text(exam,
                     "s|^Driver=$|Driver=nvidia|; s|^KernelDriver=nvidia.*|KernelDriver=%s|; "
                     "s|^XorgModulePath=.*|XorgModulePath=%s,%s|",
                     module, folder, base);
    if (libraries[0])
        script = gp_exam_text(exam, "%s; s|^LibraryPath=.*|LibraryPath=%s|", script, libraries);
    gp_exam_command(exam, "name the installed driver; the original file is kept next to it",
                    "sudo sed -i.before %s %s", gp_exam_quoted(exam, script), conf_path);
    gp_exam_command(exam, "", "sudo service bumblebeed restart");
    gp_exam_command(exam, "it must name NVIDIA's driver", "optirun glxinfo | grep OpenGL");
}

bool gp_driver_report_bumblebee(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    struct bumblebee conf;
    if (m->container || m->gpu_count == m->nvidia_count || !gp_install_of(exam)->module[0] ||
        !read_conf(exam, &conf) || (conf.driver[0] && strcmp(conf.driver, "nvidia") != 0) ||
        finds_x_driver(exam, conf.modules))
        return false;
    const char *folder = folder_of_x_driver(exam);
    if (!folder)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "optirun does not find NVIDIA's driver: Bumblebee's configuration names other "
                   "directories");
    gp_exam_evidence(exam, conf_path, "XorgModulePath=%s: no %s there", conf.modules, x_driver);
    if (conf.libraries[0])
        gp_exam_evidence(exam, conf_path, "LibraryPath=%s", conf.libraries);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", folder, x_driver), "present");
    const struct gp_block *block = &gp_install_of(exam)->nvidia;
    gp_exam_evidence(exam, block->where, "%s: only Bumblebee loads the module", block->text);
    gp_exam_why(exam, "The driver was replaced by one of another branch, in other directories; the "
                      "second X server ends with \"Failed to load module nvidia\".");
    fix_conf(exam, folder);
    return true;
}
