/* A kernel module's file: what modinfo(8) says of it, also if it is compressed. */
#ifndef GP_DOCTOR_READERS_MODULE_FILE_H
#define GP_DOCTOR_READERS_MODULE_FILE_H

#include "base/util.h"

struct gp_files;

struct gp_module_file {
    char version[32]; /* "570.124.06"; "": not stated */
    bool is_signed;
};

/* Reads the whole file, which takes a second for a large compressed one. False: it cannot be read,
 * or is no module. */
bool gp_module_file_read(const struct gp_files *files, const char *path,
                         struct gp_module_file *ret);

#endif
