#include "doctor/readers/vulkan.h"

#include "doctor/exam.h"
#include "doctor/readers/lutris.h"

#include <jansson.h>
#include <string.h>

const char *const gp_vulkan_folders[] = {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d",
                                         "/usr/local/share/vulkan/icd.d",
                                         "/run/opengl-driver/share/vulkan/icd.d", /* NixOS */
                                         NULL};

bool gp_vulkan_is_directed(const struct gp_exam *exam)
{
    static const char *const names[] = {"VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES",
                                        "VK_ICD_FILENAMES"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (gp_machine_variable(&exam->machine, names[i]))
            return true;
    return false;
}

bool gp_vulkan_is_read(const char *name)
{
    size_t n = strlen(name), m = sizeof(GP_VULKAN_END) - 1;
    return n > m && strcmp(name + n - m, GP_VULKAN_END) == 0;
}

const char *gp_vulkan_user(struct gp_exam *exam)
{
    static const char *const paths[] = {"/usr/bin/vulkaninfo",
                                        "/usr/bin/steam",
                                        "/usr/games/steam",
                                        "/usr/bin/lutris",
                                        "/usr/bin/heroic",
                                        "/usr/bin/gamescope",
                                        "/usr/lib/wine/x86_64-unix/winevulkan.so",
                                        "/usr/lib64/wine/x86_64-unix/winevulkan.so",
                                        "/usr/lib/x86_64-linux-gnu/wine/x86_64-unix/winevulkan.so",
                                        NULL};
    return gp_files_first(&exam->files, paths);
}

bool gp_vulkan_is_narrow(struct gp_exam *exam, const char *path)
{
    static const char head[] = "\177ELF\1"; /* ELFCLASS32 */
    char text[sizeof(head)];
    return gp_files_read(&exam->files, path, text, sizeof(text)) == sizeof(head) - 1 &&
           memcmp(text, head, sizeof(head) - 1) == 0;
}

bool gp_vulkan_driver_read(struct gp_exam *exam, const char *path, struct gp_vulkan_driver *ret)
{
    enum { MOST = 1 << 16 };
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
    json_t *document = json_loads(text ? text : "", 0, NULL);
    const json_t *icd = json_object_get(document, "ICD");
    const char *library = json_string_value(json_object_get(icd, "library_path"));
    const char *arch = json_string_value(json_object_get(icd, "library_arch"));
    bool is_path = library && library[0] == '/';
    bool is_narrow = is_path && gp_vulkan_is_narrow(exam, library);
    bool is_there = library && (!is_path || gp_files_exist(&exam->files, library));
    *ret = (struct gp_vulkan_driver){
        .is_wide = is_there && !is_narrow && !(arch && strcmp(arch, "32") == 0),
        .is_narrow = is_there && (is_narrow || !is_path) && !(arch && strcmp(arch, "64") == 0),
    };
    json_decref(document);
    return library != NULL;
}

const char *gp_vulkan_narrow_user(struct gp_exam *exam)
{
    static const char *const steam[] = {"/usr/bin/steam", "/usr/games/steam", NULL};
    static const char *const wine[] = {"/usr/bin/wine", "/usr/bin/wine32", "/usr/lib/wine/wine",
                                       "/usr/lib/wine/wine32"};
    static const char *const unix_parts[] = {
        "/usr/lib/wine/i386-unix/winevulkan.so", "/usr/lib32/wine/i386-unix/winevulkan.so",
        "/usr/lib/i386-linux-gnu/wine/i386-unix/winevulkan.so", NULL};
    const char *found = gp_files_first(&exam->files, steam);
    if (!found)
        found = gp_files_first(&exam->files, unix_parts);
    for (size_t i = 0; i < GP_ARRAY_LEN(wine) && !found; i++)
        found = gp_vulkan_is_narrow(exam, wine[i]) ? wine[i] : NULL;
    char **names;
    long n = found ? 0 : gp_files_list(&exam->files, &exam->arena, "/opt", &names);
    for (long i = 0; i < n && !found; i++) {
        const char *path = gp_exam_text(exam, "/opt/%s/bin/wine", names[i]);
        found = strncmp(names[i], "wine", 4) == 0 && gp_vulkan_is_narrow(exam, path) ? path : NULL;
    }
    const char *where, *text;
    return !found && gp_lutris_lacks_narrow(exam, &where, &text) ? gp_lutris_narrow_wine(exam)
                                                                 : found;
}

bool gp_vulkan_is_of_lutris(const char *program)
{
    return strstr(program, "/lutris/");
}

const char *gp_vulkan_narrow_words(const char *program)
{
    return gp_vulkan_is_of_lutris(program) ? "Lutris's Wine"
           : strstr(program, "steam")      ? "Steam"
                                           : "32-bit Wine";
}

const char *gp_vulkan_narrow_missing(struct gp_exam *exam, const char *library,
                                     const char **ret_wide)
{
    static const struct {
        const char *wide, *narrow;
    } folders[] = {{"/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu"},
                   {"/usr/lib64", "/usr/lib"},
                   {"/usr/lib", "/usr/lib32"}};
    char wide[GP_PATH_SIZE], narrow[GP_PATH_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folders[i].narrow, library);
        *ret_wide = gp_exam_text(exam, "%s/%s", folders[i].wide, library);
        bool is_one = gp_files_real(&exam->files, folders[i].wide, wide) &&
                      gp_files_real(&exam->files, folders[i].narrow, narrow) &&
                      strcmp(wide, narrow) == 0; /* on Arch /usr/lib64 is /usr/lib */
        if (!is_one && gp_files_exist(&exam->files, *ret_wide))
            return gp_files_exist(&exam->files, path) ? NULL : path;
    }
    return NULL;
}
