/* Programs from Flatpak that compute with HIP, whose sandbox has no ROCm. */
#include "doctor/checks/amd.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/searchpath.h"

#include <string.h>

static const char runtime[] = "libamdhip64.so";

/* Programs that open ROCm's HIP if it is there, and contain none. */
static const struct program {
    const char *id, *title, *command;
    const char *place; /* where it chooses its device */
    const char *elsewhere, *link;
} programs[] = {
    {"org.blender.Blender", "Blender", "blender", "Cycles Render Devices > HIP",
     "use Blender's archive for Linux from blender.org, unpacked into the home directory: it opens "
     "the ROCm of the system",
     "https://github.com/flathub/org.blender.Blender/issues/121"},
};

static const char system_folder[] = "/var/lib/flatpak";

/* The installations of Flatpak, the system's first; NULL: no more. */
static const char *installation(struct gp_exam *exam, size_t index)
{
    const struct gp_homes *homes = gp_homes_of_all(exam);
    if (index > homes->count)
        return NULL;
    return index == 0 ? system_folder
                      : gp_exam_text(exam, "%s/.local/share/flatpak", homes->list[index - 1]);
}

/* The installed program, in the first installation that has it; NULL: none. */
static const struct program *find_program(struct gp_exam *exam, const char **ret_folder)
{
    const char *folder;
    for (size_t i = 0; (folder = installation(exam, i)); i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(programs); k++) {
            *ret_folder = gp_exam_text(exam, "%s/app/%s", folder, programs[k].id);
            if (gp_files_exist(&exam->files, *ret_folder))
                return &programs[k];
        }
    return NULL;
}

/* ---- what the sandbox has ---- */

static bool has_runtime(struct gp_exam *exam, const char *folder)
{
    struct gp_arena scratch = {0};
    char **names;
    bool is_found = false;
    long n = gp_files_list(&exam->files, &scratch, folder, &names);
    for (long i = 0; i < n && !is_found; i++)
        is_found = strncmp(names[i], runtime, sizeof(runtime) - 1) == 0;
    gp_arena_fini(&scratch);
    return is_found;
}

/* Of a program or an extension, "…/runtime/NAME": in "ARCH/BRANCH/active/files/lib" and others. */
static bool has_runtime_in(struct gp_exam *exam, const char *package, const char *command)
{
    const char *const folders[] = {
        "lib", "lib64", "lib/x86_64-linux-gnu", "rocm/lib", "lib/rocm/lib", command,
    };
    char **archs, **branches;
    long n = gp_files_list(&exam->files, &exam->arena, package, &archs);
    for (long i = 0; i < n; i++) {
        const char *arch = gp_exam_text(exam, "%s/%s", package, archs[i]);
        long m = gp_files_list(&exam->files, &exam->arena, arch, &branches);
        for (long k = 0; k < m; k++)
            for (size_t j = 0; j < GP_ARRAY_LEN(folders); j++)
                if (has_runtime(exam, gp_exam_text(exam, "%s/%s/active/files/%s", arch, branches[k],
                                                   folders[j])))
                    return true;
    }
    return false;
}

/* By its name an extension with ROCm, wherever in it the libraries are. */
static bool is_of_rocm(const char *name)
{
    return strcasestr(name, "rocm") || strstr(name, ".HIP");
}

static bool has_inside(struct gp_exam *exam, const struct program *program)
{
    const char *folder;
    char **names;
    for (size_t i = 0; (folder = installation(exam, i)); i++) {
        const char *app = gp_exam_text(exam, "%s/app/%s", folder, program->id);
        const char *runtimes = gp_exam_text(exam, "%s/runtime", folder);
        if (has_runtime_in(exam, app, program->command))
            return true;
        long n = gp_files_list(&exam->files, &exam->arena, runtimes, &names);
        for (long k = 0; k < n; k++)
            if (is_of_rocm(names[k]) ||
                has_runtime_in(exam, gp_exam_text(exam, "%s/%s", runtimes, names[k]),
                               program->command))
                return true;
    }
    return false;
}

/* Whether someone has let a ROCm into the sandbox, by flatpak override or Flatseal. */
static bool is_overridden(struct gp_exam *exam, const struct program *program)
{
    const char *const files[] = {program->id, "global"};
    const char *folder;
    for (size_t i = 0; (folder = installation(exam, i)); i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(files); k++) {
            const char *path = gp_exam_text(exam, "%s/overrides/%s", folder, files[k]);
            const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
            if (text && (strstr(text, "LD_LIBRARY_PATH") || strcasestr(text, "rocm")))
                return true;
        }
    return false;
}

/* ---- the machine ---- */

/* The directory of the system's own; NULL: it has none. */
static const char *host_folder(struct gp_exam *exam)
{
    static const char *const of_amd[] = {"/opt/rocm/lib", "/opt/rocm/lib64", "/opt/rocm/hip/lib"};
    const char *folder;
    for (size_t i = 0; i < GP_ARRAY_LEN(of_amd); i++)
        if (has_runtime(exam, of_amd[i]))
            return of_amd[i];
    for (size_t i = 0; (folder = gp_system_folder(exam, i)); i++)
        if (has_runtime(exam, folder))
            return folder;
    return NULL;
}

/* Whether HIP's renderers support one of the GPUs: those before gfx10 only in some releases. */
static bool has_usable_gpu(struct gp_exam *exam)
{
    struct gp_gfxlist targets;
    (void)gp_amd_targets(exam, &targets);
    for (size_t i = 0; i < targets.count; i++)
        if (strncmp(targets.names[i], "gfx1", 4) == 0)
            return true;
    return false;
}

bool gp_amd_has_flatpak(struct gp_exam *exam)
{
    const char *folder;
    return !exam->machine.container && gp_amd_drives(exam) && find_program(exam, &folder) &&
           has_usable_gpu(exam);
}

/* Only a note: no file that is read says whether Blender is to compute by HIP. ROCm may be
 * installed for something else, and another Blender may be the one that is started. */
void gp_amd_check_flatpak(struct gp_exam *exam)
{
    const char *folder, *host = host_folder(exam);
    const struct program *program = find_program(exam, &folder);
    if (!program || has_inside(exam, program) || is_overridden(exam, program))
        return;
    gp_exam_report(exam, GP_VERDICT_INFO,
                   "%s from Flatpak does not find the AMD GPU for HIP: its sandbox has no ROCm",
                   program->title);
    gp_exam_evidence(exam, folder, "without %s, as are Flatpak's runtimes", runtime);
    if (host)
        gp_exam_evidence(exam, host, "has it, but the sandbox does not see this directory");
    gp_exam_why(exam,
                "Flatpak's runtimes have Mesa, for OpenGL and Vulkan, but no ROCm. \"No compatible "
                "GPUs found\" in %s; drawing works.",
                program->place);
    gp_exam_advice(exam, "%s%s", program->elsewhere, host ? "" : ", which is to be installed");
    gp_exam_link(exam, program->link);
}
