/* What Jellyfin, as a service of this machine, is set to do with GPUs. */
#ifndef GP_DOCTOR_READERS_JELLYFIN_H
#define GP_DOCTOR_READERS_JELLYFIN_H

#include <stdbool.h>

struct gp_exam;

/* Its encoding.xml; NULL: there is none, or it was left over when Jellyfin was removed. */
const char *gp_jellyfin_path(struct gp_exam *exam);

/* What that file contains; NULL: it cannot be read, either. */
const char *gp_jellyfin_text(struct gp_exam *exam);

/* The value of a setting in this text; "": it is empty, or not there. */
const char *gp_jellyfin_value(struct gp_exam *exam, const char *text, const char *name);

/* The value of a setting in its encoding.xml, "vaapi" of HardwareAccelerationType; "": it is empty,
 * or not in the file. NULL: there is no file. */
const char *gp_jellyfin_setting(struct gp_exam *exam, const char *name);

/* Whether its videos are to be transcoded on a GPU by VA-API or Quick Sync. */
bool gp_jellyfin_uses_dri(struct gp_exam *exam);

#endif
