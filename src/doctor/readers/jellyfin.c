#include "doctor/readers/jellyfin.h"

#include "doctor/exam.h"
#include "doctor/readers/services.h"

#include <string.h>

const char *gp_jellyfin_path(struct gp_exam *exam)
{
    static const char *const paths[] = {"/etc/jellyfin/encoding.xml",
                                        "/var/lib/jellyfin/config/encoding.xml", NULL},
                             *const programs[] = {"/usr/bin/jellyfin", "/usr/lib/jellyfin/jellyfin",
                                                  "/usr/lib/jellyfin/bin/jellyfin", NULL};
    /* apt remove keeps the first, and every package manager the second */
    return gp_service_is_installed(exam, "jellyfin.service") ||
                   gp_files_first(&exam->files, programs)
               ? gp_files_first(&exam->files, paths)
               : NULL;
}

const char *gp_jellyfin_text(struct gp_exam *exam)
{
    const char *path = gp_jellyfin_path(exam);
    return path ? gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL) : NULL;
}

const char *gp_jellyfin_value(struct gp_exam *exam, const char *text, const char *name)
{
    const char *mark = gp_exam_text(exam, "<%s>", name), *found = strstr(text, mark);
    const char *value = found ? found + strlen(mark) : "";
    return gp_exam_text(exam, "%.*s", (int)strcspn(value, "<\r\n"), value);
}

const char *gp_jellyfin_setting(struct gp_exam *exam, const char *name)
{
    const char *text = gp_jellyfin_text(exam);
    return text ? gp_jellyfin_value(exam, text, name) : NULL;
}

bool gp_jellyfin_uses_dri(struct gp_exam *exam)
{
    const char *type = gp_jellyfin_setting(exam, "HardwareAccelerationType");
    return type && (strcmp(type, "vaapi") == 0 || strcmp(type, "qsv") == 0);
}
