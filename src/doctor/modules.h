/* Kernel modules, as the files of depmod, modprobe and dkms speak of them. Texts in, answers out.
 */
#ifndef GP_DOCTOR_MODULES_H
#define GP_DOCTOR_MODULES_H

#include "base/util.h"

/* Finds NVIDIA's module in a modules.dep(5): its path below the folder of the kernel. Debian calls
 * it nvidia-current and the like. */
bool gp_modules_find_nvidia(const char *dep, size_t length, char *ret, size_t size);

/* The branch in a path as Ubuntu's "kernel/nvidia-580-open/nvidia.ko": "580"; "" where there is
 * none. */
void gp_modules_branch(const char *path, char *ret, size_t size);

enum gp_block_kind {
    GP_BLOCK_NONE,
    GP_BLOCK_BLACKLISTED, /* not loaded by itself */
    GP_BLOCK_REFUSED,     /* not even when it is asked for */
};

/* What one line of a modprobe.d(5) file does to a module. */
enum gp_block_kind gp_modules_config_line(const char *line, size_t length, const char *module);

/* What the kernel's command line does to it; the word that does it is copied to `ret`. */
enum gp_block_kind gp_modules_command_line(const char *text, const char *module, char *ret,
                                           size_t size);

/* The first line of a build's log that says what went wrong; 0: none does. Its number is returned.
 */
size_t gp_modules_first_error(const char *log, size_t length, const char **ret, size_t *ret_length);

/* The kernel that dkms built for, from the head of its log; "" where it does not say. */
void gp_modules_log_kernel(const char *log, size_t length, char *ret, size_t size);

#endif
