/* Proton needs a newer Vulkan than old drivers of NVIDIA have. A finding of driver.libraries. */
#include "doctor/checks/driver.h"
#include "doctor/readers/homes.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

const char *const gp_steam_folders[] = {".local/share/Steam", ".steam/debian-installation",
                                        ".var/app/com.valvesoftware.Steam/.local/share/Steam",
                                        "snap/steam/common/.local/share/Steam", NULL};

/* The releases of Proton that need Vulkan 1.3, by their numbers in Steam. */
static const struct {
    const char *number, *words;
} protons[] = {
    {"2348590", "Proton 8.0"},          {"2805730", "Proton 9.0"},    {"3658110", "Proton 10.0"},
    {"1493710", "Proton Experimental"}, {"2180100", "Proton Hotfix"},
};

/* The last release that needs less, which Steam keeps if a game was set to it. */
static const char last_old[] = "1887720";

/* Others' builds: "GE-Proton8-3" and newer. */
static bool is_new_build(const char *name)
{
    const char *number = strstr(name, "Proton");
    return number && strtol(number + strlen("Proton") + (number[6] == '-'), NULL, 10) >= 8;
}

static bool find_proton(struct gp_exam *exam, const char *library, const char **ret_path,
                        const char **ret_words)
{
    char **names;
    if (gp_files_exist(&exam->files,
                       gp_exam_text(exam, "%s/steamapps/appmanifest_%s.acf", library, last_old)))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(protons); i++) {
        *ret_path =
            gp_exam_text(exam, "%s/steamapps/appmanifest_%s.acf", library, protons[i].number);
        *ret_words = protons[i].words;
        if (gp_files_exist(&exam->files, *ret_path))
            return true;
    }
    const char *folder = gp_exam_text(exam, "%s/compatibilitytools.d", library);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        *ret_path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        *ret_words = names[i];
        if (is_new_build(names[i]))
            return true;
    }
    return false;
}

static bool find_in_homes(struct gp_exam *exam, const char **ret_path, const char **ret_words)
{
    const struct gp_homes *homes = gp_homes_of_all(exam);
    for (size_t i = 0; i < homes->count; i++)
        for (size_t k = 0; gp_steam_folders[k]; k++)
            if (find_proton(exam, gp_exam_text(exam, "%s/%s", homes->list[i], gp_steam_folders[k]),
                            ret_path, ret_words))
                return true;
    return false;
}

void gp_driver_check_proton(struct gp_exam *exam)
{
    enum { FIRST_WITH_VULKAN_1_3 = 510, LAST_OF_KEPLER = 470 };
    const struct gp_machine *m = &exam->machine;
    const char *path, *words;
    unsigned branch = gp_version_major(m->driver);
    bool is_last = false;
    if (branch == 0 || branch >= FIRST_WITH_VULKAN_1_3 || m->gpu_count > m->nvidia_count ||
        !find_in_homes(exam, &path, &words))
        return;
    for (size_t i = 0; i < m->gpu_count; i++)
        is_last = is_last || (m->gpus[i].chip && m->gpus[i].chip->last_branch > 0 &&
                              m->gpus[i].chip->last_branch <= LAST_OF_KEPLER);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s does not run games for Direct3D with driver %s: it needs Vulkan 1.3", words,
                   m->driver);
    gp_exam_evidence(exam, path, "%s", words);
    gp_exam_evidence(exam, "/sys/module/nvidia/version", "%s: Vulkan 1.2", m->driver);
    gp_exam_why(exam, "DXVK 2 and VKD3D-Proton in Proton 8.0 and newer need Vulkan 1.3, which "
                      "NVIDIA's drivers have since branch 510.");
    if (!is_last)
        gp_exam_advice(exam, "update the driver to branch 510 or newer");
    else
        gp_exam_advice(exam, "no newer driver supports this GPU: choose Proton 7.0 in the "
                             "properties of the game in Steam (Compatibility)");
    gp_exam_advice(exam, "or set the launch options of the game to: PROTON_USE_WINED3D=1 "
                         "%%command%%");
}
