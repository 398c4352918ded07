/* Settings files: written completely or not at all; errors on reading name the place in the
 * file. */
#ifndef GP_SAMPLE_SETTINGS_FILE_H
#define GP_SAMPLE_SETTINGS_FILE_H

#include "source/control.h"

struct gp_err;
struct gp_strbuf;

/* The settings of one GPU in a file. */
struct gp_saved_gpu {
    char uuid[96];
    char name[128]; /* escaped; "" if the file has none */
    bool present;   /* for the caller's use */
    bool has[GP_CONTROL__COUNT];
    struct gp_control_value values[GP_CONTROL__COUNT];
};

struct gp_saved {
    struct gp_saved_gpu *gpus; /* owned */
    size_t count;
};

/* Reads a file; "-" is standard input. GP_EIO, GP_EFORMAT names the file and the place in it. */
int gp_saved_read(const char *path, struct gp_saved *ret, struct gp_err *err) GP_MUST_CHECK;
void gp_saved_fini(struct gp_saved *saved);

/* Replaces the content of the file, completely or not at all. GP_EIO. */
int gp_saved_write(const char *path, const struct gp_strbuf *text,
                   struct gp_err *err) GP_MUST_CHECK;

#endif
