/* Variables with lists of the files that name drivers of Vulkan and EGL: files that do not exist,
 * and drivers of one word size only. */
#include "doctor/checks/graphics.h"

#include "doctor/checks/variable_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/vulkan.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char without[] = "without it all installed drivers are found";

/* The programs for which a list has drivers. */
struct served {
    bool wide, narrow; /* of 64 and of 32 bits */
};

struct named {
    struct served by;
    const char *missing; /* the first file that does not exist; NULL */
    const char *meant;   /* the existing one that it is a typing error of; NULL: not known */
    bool has_any;
    bool is_plain; /* files only: the loader also reads folders */
};

static void add_driver(struct gp_exam *exam, const char *file, struct served *by)
{
    struct gp_vulkan_driver driver;
    if (!gp_vulkan_driver_read(exam, file, &driver))
        return;
    by->wide = by->wide || driver.is_wide;
    by->narrow = by->narrow || driver.is_narrow;
}

/* "…/amd_icd32.json" for "…/amd_icd32.json obs", and for a name in quotes. */
static const char *meant_by(struct gp_exam *exam, const char *file)
{
    static const char marks[] = " \t\"';,";
    size_t start = strspn(file, marks);
    const char *one = gp_exam_text(exam, "%.*s", (int)strcspn(file + start, marks), file + start);
    return one[0] == '/' && strcmp(one, file) != 0 && gp_files_exist(&exam->files, one) ? one
                                                                                        : NULL;
}

static struct named read_list(struct gp_exam *exam, const char *list)
{
    struct named all = {.is_plain = true};
    char file[GP_PATH_SIZE];
    struct stat st;
    while (gp_search_path_next(&list, ":", file)) {
        int error = gp_files_stat(&exam->files, file, &st);
        if (error == 0 && S_ISREG(st.st_mode)) {
            all.has_any = true;
            add_driver(exam, file, &all.by);
        } else if (error != -ENOENT || file[0] == '~') {
            all.has_any = true;
            all.is_plain = false;
        } else if (file[0] && !all.missing) {
            all.missing = gp_exam_text(exam, "%s", file);
            all.meant = meant_by(exam, file);
        }
    }
    return all;
}

/* Those for which drivers are installed where the loader looks without the variable. */
static struct served read_installed(struct gp_exam *exam)
{
    struct served by = {0};
    char **names;
    for (size_t f = 0; gp_vulkan_folders[f]; f++) {
        long n = gp_files_list(&exam->files, &exam->arena, gp_vulkan_folders[f], &names);
        for (long i = 0; i < n; i++)
            if (gp_vulkan_is_read(names[i]))
                add_driver(exam, gp_exam_text(exam, "%s/%s", gp_vulkan_folders[f], names[i]), &by);
    }
    return by;
}

/* The word size whose programs the list keeps from the drivers that are installed for them, and
 * such a program; NULL: none, or nobody uses such programs. */
static const char *left_out(struct gp_exam *exam, const struct named *list, const char **ret_user)
{
    struct served installed = read_installed(exam);
    const char *narrow = gp_vulkan_narrow_user(exam), *wide = gp_vulkan_user(exam);
    if (narrow && !list->by.narrow && list->by.wide && installed.narrow) {
        *ret_user = narrow;
        return "32-bit";
    }
    *ret_user = wide;
    return wide && !list->by.wide && list->by.narrow && installed.wide ? "64-bit" : NULL;
}

/* Also where a file of all shells sets it again. */
static void fix_list(struct gp_exam *exam, const char *name, const char *value,
                     const struct named *list, const char *note)
{
    const char *place;
    bool is_own = gp_machine_variable(&exam->machine, name);
    gp_exam_fix_variable(exam, name, value, note);
    if (is_own && gp_assignment_last(exam, name, &place))
        gp_exam_advice(exam, "delete the line %s, too, and log in again", place);
    if (list->meant)
        gp_exam_advice(exam, "or correct the name in the list: %s", list->meant);
}

/* Some of its files exist. Drivers may be left out on purpose, a file that does not exist is not.
 */
static void check_some(struct gp_exam *exam, const char *name, const char *value,
                       const struct named *list)
{
    const char *user = NULL, *size = list->is_plain ? left_out(exam, list, &user) : NULL;
    if (!size && !list->meant)
        return;
    if (list->missing && size)
        gp_exam_report(exam, GP_VERDICT_WARN,
                       "%s names a file that does not exist: %s programs find no Vulkan driver",
                       name, size);
    else if (size)
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "%s names no driver for %s programs, which find no Vulkan", name, size);
    else
        gp_exam_report(exam, GP_VERDICT_INFO, "%s names a file that does not exist", name);
    if (list->missing)
        gp_exam_evidence(exam, list->missing, "missing");
    if (list->meant)
        gp_exam_evidence(exam, list->meant, "present");
    if (size)
        gp_exam_evidence(exam, user, "present: it starts such programs");
    gp_exam_why(exam, "With the variable, Vulkan's loader reads only the files that it names: %s.",
                size ? "games and Proton report VK_ERROR_INCOMPATIBLE_DRIVER or \"VK_KHR_surface "
                       "not supported\""
                     : "the driver of that file is not used");
    fix_list(exam, name, value, list, without);
}

/* Drivers besides those that are found anyway. */
static void check_added(struct gp_exam *exam, const char *name)
{
    const char *value = gp_exam_session_value(exam, name);
    struct named list = read_list(exam, value);
    if (!list.missing || (list.has_any && !list.meant))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO, "%s names a file that does not exist", name);
    gp_exam_evidence(exam, list.missing, "missing");
    fix_list(exam, name, value, &list, "installed drivers are found without it");
}

void gp_graphics_check_lists(struct gp_exam *exam)
{
    enum { OLDER = 1 };
    static const struct {
        const char *name, *words;
        bool is_vulkan;
    } lists[] = {{"VK_DRIVER_FILES", "Vulkan finds no driver", true},
                 {"VK_ICD_FILENAMES", "Vulkan finds no driver", true},
                 {"__EGL_VENDOR_LIBRARY_FILENAMES", "EGL finds no driver", false}};
    bool has_newer = gp_exam_session_value(exam, lists[0].name);
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        const char *value = gp_exam_session_value(exam, lists[i].name);
        if (!value || !*value || (i == OLDER && has_newer))
            continue; /* the loader ignores the older name where both are set */
        struct named list = read_list(exam, value);
        if (!list.has_any) {
            gp_exam_report(exam, GP_VERDICT_WARN, "%s names only files that do not exist: %s",
                           lists[i].name, lists[i].words);
            gp_exam_fix_variable(exam, lists[i].name, value, without);
        } else if (lists[i].is_vulkan) {
            check_some(exam, lists[i].name, value, &list);
        }
    }
    if (!has_newer)
        check_added(exam, "VK_ADD_DRIVER_FILES");
}
