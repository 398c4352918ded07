/* What the doctor asks the driver. */
#include "cmd/app.h"
#include "cmd/doctor_verbs.h"

#include "base/err.h"
#include "doctor/checks/health.h"
#include "model/snapshot.h"

#include <string.h>

enum { TIMEOUT_S = 2 };

/* A copy of a machine's files has no driver to query, unless one is simulated. */
static bool has_driver(void)
{
    return gp_app_observed()->sim || !gp_app_observed()->prefix;
}

/* Takes a sample within the timeout; NULL: err has the reason. */
static struct gp_snapshot *sample(const struct gp_want *want, struct gp_err *err)
{
    static const struct gp_loop once = {.interval_ns = 0};
    struct gp_snapshot *snapshot = NULL;
    struct gp_sampler *sampler;
    if (gp_app_open(want, &once, &sampler, err) < 0)
        return NULL;
    if (gp_sampler_tick(sampler, &snapshot, err) < 0)
        snapshot = NULL;
    gp_app_close(sampler);
    return snapshot;
}

static bool has_silent_gpu(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].status == GP_STATUS_TIMEOUT)
            return true;
    return false;
}

struct gp_snapshot *gp_doctor_ask_driver(struct gp_exam *exam)
{
    struct gp_want want = gp_health_want();
    struct gp_err err = {0};
    if (!has_driver())
        return NULL;
    gp_common()->timeout_ns = gp_app_timeout_ns(TIMEOUT_S * GP_NS_PER_S);
    struct gp_snapshot *snapshot = sample(&want, &err);
    if (snapshot && has_silent_gpu(snapshot)) {
        /* querying a GPU for its peers waits for hanging ones */
        want.lists = 0;
        gp_snapshot_free(snapshot);
        snapshot = sample(&want, &err);
    }
    exam->driver_words = snapshot ? "" : gp_exam_text(exam, "%s", err.text);
    return snapshot;
}

const char *const *gp_doctor_pythons(struct gp_exam *exam, const char *list)
{
    enum { MOST = 64 };
    size_t count = 0;
    const char **pythons = list ? gp_arena_alloc(&exam->arena, MOST + 1, sizeof(*pythons)) : NULL;
    for (const char *p = list; pythons && *p && count < MOST;) {
        size_t n = strcspn(p, ",");
        if (n > 0)
            pythons[count++] = gp_exam_text(exam, "%.*s", (int)n, p);
        p += n + (p[n] == ',');
    }
    return pythons;
}
