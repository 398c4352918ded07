/* What the settings of an initramfs name for loading before the system itself. */
#ifndef GP_DOCTOR_READERS_INITRAMFS_H
#define GP_DOCTOR_READERS_INITRAMFS_H

#include <stdbool.h>
#include <stddef.h>

struct gp_exam;

enum { GP_INITRAMFS_LINES = 8 };

struct gp_initramfs_line {
    const char *path, *text;
    unsigned number;
    bool is_list;  /* a line of its own for each module, as of initramfs-tools */
    bool is_array; /* of several lines, which a closing parenthesis ends: mkinitcpio's */
};

/* The first lines of mkinitcpio's, dracut's and initramfs-tools' files, in /etc, that name a module
 * whose name begins so, one for each file; comments do not. Their number. */
size_t gp_initramfs_lines(struct gp_exam *exam, const char *module,
                          struct gp_initramfs_line ret[GP_INITRAMFS_LINES]);

#endif
