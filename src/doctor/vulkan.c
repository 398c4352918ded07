#include "doctor/vulkan.h"

#include "doctor/exam.h"

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
