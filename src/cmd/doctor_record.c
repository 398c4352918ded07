#include "cmd/doctor_record.h"

#include "cmd/app.h"

#include "base/err.h"
#include "sim/record.h"

int gp_doctor_record(uint64_t timeout_ns, char **ret, struct gp_err *err)
{
    struct rec_config config = {.timeout_ns = timeout_ns, .redact = true};
    json_t *machine = NULL;
    bool stuck = false;
    const struct gp_observed *observed = gp_app_observed();
    if (observed->result < 0)
        return gp_err_copy(err, &observed->err);
    config.library = observed->library;
    int r = rec_machine(&config, &machine, &stuck, err);
    if (stuck)
        gp_app_note_stuck();
    if (r < 0)
        return r;
    *ret = json_dumps(machine, JSON_INDENT(2));
    json_decref(machine);
    return *ret ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}
