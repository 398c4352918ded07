#include "cmd/doctor_ask.h"

#include "cmd/app.h"

#include "base/err.h"
#include "doctor/checks/all.h"
#include "doctor/checks/health.h"
#include "model/snapshot.h"

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

/* NULL: it does not respond, and the exam gets the reason, or there is none to query. */
static struct gp_snapshot *ask_driver(struct gp_exam *exam)
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

int gp_doctor_open(struct gp_exam *exam, const struct gp_doctor_options *o, bool asks_driver,
                   struct gp_err *err)
{
    int r = gp_exam_open(exam, &gp_checks_all, gp_app_observed()->prefix, err);
    if (r < 0)
        return r;
    r = o->python ? gp_exam_set_pythons(exam, o->python, err) : 0;
    if (r < 0) {
        gp_exam_close(exam);
        return r;
    }
    exam->is_simulated = gp_app_observed()->sim;
    exam->snapshot = asks_driver ? ask_driver(exam) : NULL;
    return 0;
}

void gp_doctor_close(struct gp_exam *exam)
{
    gp_snapshot_free((struct gp_snapshot *)(uintptr_t)exam->snapshot);
    gp_exam_close(exam);
}

void gp_doctor_run(struct gp_exam *exam, const char *only, const char *without)
{
    gp_exam_run(exam, only, without);
    if (exam->is_stuck)
        gp_app_note_stuck();
}
