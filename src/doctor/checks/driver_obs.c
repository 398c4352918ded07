/* What OBS Studio says of a driver that is too old for its NVENC. */
#include "doctor/checks/driver.h"
#include "doctor/exam.h"
#include "doctor/readers/log.h"

#include <string.h>

static const char old_id[] = "obs.old-driver", api_id[] = "nvenc.api";

static bool is_refusal(const struct gp_log_known *known)
{
    static const char words[] = "driver does not support this NVENC version";
    return strcmp(known->id, old_id) == 0 ||
           (strcmp(known->id, api_id) == 0 && strstr(known->text, words));
}

const struct gp_log_known *gp_driver_obs_refusal(struct gp_exam *exam)
{
    const struct gp_log_known *failure = gp_log_known_of(exam, old_id);
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; !failure && i < log->known_count; i++)
        if (is_refusal(&log->known[i]))
            failure = gp_log_known_of(exam, api_id);
    return failure;
}

bool gp_driver_is_of_flatpak(const struct gp_log_known *failure)
{
    static const char app[] = "com.obsproject.Studio";
    return strstr(failure->path, app) || strstr(failure->text, app);
}

/* Another OBS' refusal does not count as reported by asking for this. */
const struct gp_log_known *gp_driver_obs_of_flatpak(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++)
        if (is_refusal(&log->known[i]))
            return gp_driver_is_of_flatpak(&log->known[i]) ? gp_driver_obs_refusal(exam) : NULL;
    return NULL;
}
