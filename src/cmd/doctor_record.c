#include "cmd/doctor_record.h"

#include "cmd/app.h"

#include "base/ask.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

enum { PATIENCE = 30 }; /* all calls together, in the time limits of one */

int gp_doctor_record(uint64_t timeout_ns, char **ret, struct gp_err *err)
{
    static const int never;
    const struct gp_observed *observed = gp_app_observed();
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    char program[GP_PATH_SIZE];
    char timeout[48];
    char library[GP_PATH_SIZE + 16];
    char name[] = "gpulse-sim", verb[] = "record", redact[] = "--redact";
    char *argv[] = {name, verb, redact, timeout, library, NULL};
    int status = 0;
    if (observed->result < 0)
        return gp_err_copy(err, &observed->err);
    int r = gp_io_find_companion("sim", name, program, err);
    if (r < 0)
        return r;
    (void)snprintf(timeout, sizeof(timeout), "--timeout=%lluns", (unsigned long long)timeout_ns);
    (void)snprintf(library, sizeof(library), "--library=%s",
                   observed->library ? observed->library : "");
    argv[4] = observed->library ? library : NULL;
    gp_app_export();
    r = gp_ask(program, argv, PATIENCE * timeout_ns, &never, &sb, &status, err);
    if (r == 0 && (status != 0 || sb.len == 0))
        r = gp_err_set(err, GP_EFAIL, "gpulse sim record ended with status %d", status);
    *ret = r == 0 ? strdup(sb.buf) : NULL;
    gp_strbuf_fini(&sb);
    return r < 0 || *ret ? r : gp_err_set(err, GP_ENOMEM, "out of memory");
}
