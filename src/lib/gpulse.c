/* The public C interface, include/gpulse/gpulse.h: a thin layer over the sampler, whose types stay
 * private. */
#include "lib/lib.h"

#include "model/snapshot.h"
#include "out/field.h"
#include "out/writer.h"
#include "proc/signal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)GPULSE_HOST == (int)GP_SCOPE_HOST && (int)GPULSE_GPU == (int)GP_SCOPE_DEVICE &&
                   (int)GPULSE_PROCESS == (int)GP_SCOPE_PROCESS,
               "kinds of rows are passed through");
_Static_assert((int)GPULSE_INT == (int)GP_TYPE_INT && (int)GPULSE_REAL == (int)GP_TYPE_REAL &&
                   (int)GPULSE_TEXT == (int)GP_TYPE_TEXT,
               "types are passed through");
_Static_assert((int)GPULSE_NONE == (int)GP_STATUS_NONE && (int)GPULSE_OK == (int)GP_STATUS_OK &&
                   (int)GPULSE_STALE == (int)GP_STATUS_STALE &&
                   (int)GPULSE_UNSUPPORTED == (int)GP_STATUS_UNSUPPORTED &&
                   (int)GPULSE_NO_PERMISSION == (int)GP_STATUS_NO_PERMISSION &&
                   (int)GPULSE_LOST == (int)GP_STATUS_LOST &&
                   (int)GPULSE_TIMEOUT == (int)GP_STATUS_TIMEOUT &&
                   (int)GPULSE_ASLEEP == (int)GP_STATUS_ASLEEP &&
                   (int)GPULSE_RELEASED == (int)GP_STATUS_RELEASED &&
                   (int)GPULSE_ERROR == (int)GP_STATUS_ERROR,
               "statuses are passed through");

struct gpulse_session {
    pid_t pid; /* of the process that opened it */
    struct gp_sampler *sampler;
    struct gp_selection selection;
    struct gp_metric_set asked;
};

struct gpulse_sample {
    struct gp_snapshot *snapshot;
    struct gp_metric_set asked;
};

const char *gpulse_version(void)
{
    return GPULSE_VERSION;
}

/* ---- metrics ---- */

static bool is_metric(int metric)
{
    return metric >= 0 && metric < GP_METRIC__COUNT;
}

int gpulse_metric_find(const char *name, struct gpulse_error *error)
{
    struct gp_err err = {0};
    enum gp_metric metric;
    int r = gp_metric_find(name, &metric, &err);
    return r < 0 ? gp_lib_fail(error, &err, r) : (int)metric;
}

int gpulse_metric_count(void)
{
    return GP_METRIC__COUNT;
}

int gpulse_metric_describe(int metric, struct gpulse_metric_info *ret)
{
    if (!is_metric(metric))
        return GPULSE_EUSAGE;
    const struct gp_metric_info *info = &gp_metric_table[metric];
    *ret = (struct gpulse_metric_info){
        .name = gp_metric_name(info),
        .unit = gp_unit_name((enum gp_unit)info->unit),
        .help = gp_metric_help(info),
        .scope = info->scope,
        .type = (enum gpulse_type)info->type,
    };
    return 0;
}

int gpulse_scope_find(const char *name)
{
    for (int i = 0; i < GP_SCOPE__COUNT; i++)
        if (strcmp(gp_scope_table[i].plural, name) == 0)
            return i;
    return GPULSE_EUSAGE;
}

/* ---- sessions ---- */

/* What must be read for these fields, and what they are. */
static int add_fields(const char *fields, struct gp_want *want, struct gp_metric_set *asked,
                      struct gp_err *err)
{
    struct gp_field_list list;
    int r = gp_field_list_parse(fields, GP_SCOPE_ANY, &list, err);
    if (r < 0)
        return r;
    want->host_only = true;
    for (size_t i = 0; i < list.count; i++) {
        enum gp_metric m = list.fields[i].metric;
        enum gp_scope scope = (enum gp_scope)gp_metric_table[m].scope;
        gp_metric_set_add(&want->metrics, m);
        gp_metric_set_add(asked, m);
        want->host_only = want->host_only && scope == GP_SCOPE_HOST;
        gp_want_rows(want, scope);
    }
    want->process_names = want->processes;
    gp_metric_set_add(asked, GP_PID);
    if (want->processes)
        gp_metric_set_add(&want->metrics, GP_PID); /* for gpulse_sample_signal() */
    gp_field_list_fini(&list);
    return 0;
}

static int open_sampler(gpulse_session *session, const struct gpulse_options *options,
                        struct gp_err *err)
{
    struct gp_want want = {.mig = options->flags & GPULSE_MIG};
    const char *fields = options->fields ? options->fields : gp_field_usual;
    int r = add_fields(fields, &want, &session->asked, err);
    return r < 0 ? r : gp_lib_open(options, &session->selection, &want, &session->sampler, err);
}

int gpulse_open(const struct gpulse_options *given, gpulse_session **ret,
                struct gpulse_error *error)
{
    struct gp_err err = {0};
    const struct gpulse_options options = gp_lib_options(given);
    gpulse_session *session = calloc(1, sizeof(*session));
    *ret = NULL;
    if (!session)
        return gp_lib_fail(error, &err, GP_ENOMEM);
    session->pid = getpid();
    int r = options.flags & ~(unsigned)(GPULSE_MIG | GPULSE_STILL)
                ? gp_err_set(&err, GP_EUSAGE, "unknown flags")
                : open_sampler(session, &options, &err);
    if (r < 0) {
        if (session->sampler)
            gp_lib_keep(session, session->sampler);
        else
            free(session);
        return gp_lib_fail(error, &err, r);
    }
    *ret = session;
    return 0;
}

bool gpulse_close(gpulse_session *session)
{
    if (!session)
        return true;
    /* The threads of the sampler exist only in the process that opened it. */
    if (session->pid == getpid() && !gp_sampler_free(session->sampler)) {
        gp_lib_keep(session, session->sampler);
        return false;
    }
    free(session);
    return true;
}

/* ---- samples ---- */

int gpulse_take(gpulse_session *session, gpulse_sample **ret, struct gpulse_error *error)
{
    struct gp_err err = {0};
    *ret = NULL;
    if (session->pid != getpid())
        return gp_lib_fail_fork(error);
    gpulse_sample *sample = malloc(sizeof(*sample));
    if (!sample)
        return gp_lib_fail(error, &err, GP_ENOMEM);
    int r = gp_sampler_tick(session->sampler, &sample->snapshot, &err);
    if (r < 0) {
        free(sample);
        return gp_lib_fail(error, &err, r);
    }
    sample->asked = session->asked;
    *ret = sample;
    return 0;
}

void gpulse_sample_free(gpulse_sample *sample)
{
    if (sample)
        gp_snapshot_free(sample->snapshot);
    free(sample);
}

uint64_t gpulse_sample_time(const gpulse_sample *sample)
{
    return sample->snapshot->wall_ns;
}

bool gpulse_sample_is_partial(const gpulse_sample *sample)
{
    return sample->snapshot->partial;
}

size_t gpulse_sample_rows(const gpulse_sample *sample, int scope)
{
    const struct gp_snapshot *snapshot = sample->snapshot;
    switch (scope) {
    case GPULSE_HOST:
        return 1;
    case GPULSE_GPU:
        return snapshot->device_count;
    case GPULSE_PROCESS:
        return snapshot->process_count;
    default:
        return scope >= 0 && gp_scope_is_list((enum gp_scope)scope)
                   ? snapshot->lists[gp_list_index((enum gp_scope)scope)].count
                   : 0;
    }
}

int gpulse_sample_gpu_of(const gpulse_sample *sample, int scope, size_t row)
{
    const struct gp_snapshot *snapshot = sample->snapshot;
    if (scope == GPULSE_HOST || row >= gpulse_sample_rows(sample, scope))
        return GPULSE_EUSAGE;
    if (scope == GPULSE_GPU)
        return (int)row;
    if (scope == GPULSE_PROCESS)
        return (int)snapshot->processes[row].device;
    return (int)snapshot->lists[gp_list_index((enum gp_scope)scope)].entries[row].device;
}

/* The row must exist. */
static const struct gp_value *value_at(const struct gp_snapshot *snapshot, enum gp_metric m,
                                       size_t row)
{
    enum gp_scope scope = (enum gp_scope)gp_metric_table[m].scope;
    if (scope == GP_SCOPE_DEVICE)
        return gp_snapshot_value(snapshot, &snapshot->devices[row], NULL, m);
    if (scope == GP_SCOPE_PROCESS)
        return gp_process_value(&snapshot->processes[row], m);
    if (gp_scope_is_list(scope))
        return &snapshot->lists[gp_list_index(scope)]
                    .entries[row]
                    .values[m - gp_scope_table[scope].first];
    return gp_snapshot_value(snapshot, NULL, NULL, m);
}

/* What comes along with processes is there only if it was asked for: whether it was read depends on
 * other fields. */
static bool is_left_out(const gpulse_sample *sample, enum gp_metric m)
{
    return gp_metric_table[m].scope == GP_SCOPE_PROCESS && !gp_metric_set_has(&sample->asked, m);
}

enum gpulse_status gpulse_sample_get(const gpulse_sample *sample, int metric, size_t row,
                                     struct gpulse_value *ret)
{
    *ret = (struct gpulse_value){.reason = gp_status_reason(GP_STATUS_NONE)};
    if (!is_metric(metric) || row >= gpulse_sample_rows(sample, gp_metric_table[metric].scope) ||
        is_left_out(sample, (enum gp_metric)metric))
        return GPULSE_NONE;
    const struct gp_snapshot *snapshot = sample->snapshot;
    const struct gp_value *v = value_at(snapshot, (enum gp_metric)metric, row);
    const uint64_t time_ns = gp_value_time_ns(v);
    ret->type = (enum gpulse_type)gp_metric_table[metric].type;
    ret->status = (enum gpulse_status)v->status;
    ret->age_ns = time_ns && time_ns < snapshot->mono_ns ? snapshot->mono_ns - time_ns : 0;
    ret->reason = gp_status_reason((enum gp_status)v->status);
    if (!gp_value_is_present(v)) {
        if (v->s && v->status != GP_STATUS_NONE)
            ret->reason = v->s;
        return ret->status;
    }
    if (ret->type == GPULSE_TEXT)
        ret->u.s = v->s;
    else if (ret->type == GPULSE_REAL)
        ret->u.f = v->f;
    else
        ret->u.i = v->i;
    return ret->status;
}

bool gpulse_sample_number(const gpulse_sample *sample, int metric, size_t row, double *ret)
{
    struct gpulse_value value;
    enum gpulse_status status = gpulse_sample_get(sample, metric, row, &value);
    if ((status != GPULSE_OK && status != GPULSE_STALE) || value.type == GPULSE_TEXT)
        return false;
    *ret = value.type == GPULSE_REAL ? value.u.f : (double)value.u.i;
    return true;
}

const char *gpulse_sample_text(const gpulse_sample *sample, int metric, size_t row)
{
    struct gpulse_value value;
    enum gpulse_status status = gpulse_sample_get(sample, metric, row, &value);
    bool is_present = status == GPULSE_OK || status == GPULSE_STALE;
    return is_present && value.type == GPULSE_TEXT ? value.u.s : NULL;
}

/* When the driver listed the process of a row. */
static uint64_t seen_wall_ns(const gpulse_sample *sample, size_t row)
{
    struct gpulse_value pid;
    (void)gpulse_sample_get(sample, GP_PID, row, &pid);
    return sample->snapshot->wall_ns - pid.age_ns;
}

int gpulse_sample_signal(const gpulse_sample *sample, size_t row, int signal,
                         struct gpulse_error *error)
{
    struct gp_err err = {0};
    double pid;
    int fd;
    if (!gpulse_sample_number(sample, GP_PID, row, &pid))
        return gp_lib_fail_with(error, GPULSE_EUSAGE, "the sample has no such process");
    if (!gp_lib_is_reachable())
        return gp_lib_fail_with(error, GPULSE_EUSAGE,
                                "the processes of this sample do not run on this machine");
    int r = gp_proc_hold((int64_t)pid, seen_wall_ns(sample, row), &fd, &err);
    if (r == 0) {
        r = gp_proc_signal(fd, signal, &err);
        (void)close(fd);
    }
    return r < 0 ? gp_lib_fail(error, &err, r) : 0;
}
