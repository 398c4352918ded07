/* Kernel modules, as described by the files of depmod, modprobe and dkms. Pure functions on text.
 */
#ifndef GP_DOCTOR_READERS_MODULES_H
#define GP_DOCTOR_READERS_MODULES_H

#include "base/util.h"

/* Finds NVIDIA's module in a modules.dep(5): its path below the kernel's directory. Debian calls it
 * nvidia-current and similar. */
bool gp_modules_find_nvidia(const char *dep, size_t length, char *ret, size_t size);

/* The branch in a path such as Ubuntu's "kernel/nvidia-580-open/nvidia.ko": "580"; "" if there is
 * none. */
void gp_modules_branch(const char *path, char *ret, size_t size);

enum gp_block_kind {
    GP_BLOCK_NONE,
    GP_BLOCK_BLACKLISTED, /* not loaded automatically */
    GP_BLOCK_REFUSED,     /* not even on request */
};

/* The effect of one line of a modprobe.d(5) file on a module. */
enum gp_block_kind gp_modules_config_line(const char *line, size_t length, const char *module);

/* Whether such a line says what to load by the name of a module: an alias, or a command. */
bool gp_modules_is_renamed(const char *line, size_t length, const char *module);

/* The effect of the kernel command line on it; the word responsible is copied to `ret`. */
enum gp_block_kind gp_modules_command_line(const char *text, const char *module, char *ret,
                                           size_t size);

/* The word of it that keeps a module out of dracut's initramfs, but not out of the system after
 * that; false: there is none. */
bool gp_modules_initramfs_line(const char *text, const char *module, char *ret, size_t size);

/* The first line of a build log that gives an error; returns its number, 0: none. */
size_t gp_modules_first_error(const char *log, size_t length, const char **ret, size_t *ret_length);

/* The kernel that dkms built for, from the head of its log; "" if not stated. */
void gp_modules_log_kernel(const char *log, size_t length, char *ret, size_t size);

#endif
