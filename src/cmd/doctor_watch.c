/* gpulse doctor --watch-log: follows the kernel log, and explains each line about a GPU. */
#include "cmd/app.h"
#include "cmd/doctor_verbs.h"
#include "doctor/explain/explanation.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "doctor/explain/follow.h"
#include "out/json.h"

#include <stdio.h>
#include <unistd.h>

#define LOOK_NS (250 * GP_NS_PER_MS)

static int tell(void *context, const char *line, const struct gp_explanation *e, struct gp_err *err)
{
    const struct gp_doctor_options *o = context;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (o->json) {
        gp_json_add(&sb, gp_doctor_explanation_json(e, line), 0);
        gp_strbuf_addc(&sb, '\n');
    } else {
        gp_doctor_add_line(&sb, line);
        gp_doctor_add_explanation(&sb, e, o->sources);
    }
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* GP_EINTR after a signal. */
static int follow(struct gp_follow *log, struct gp_err *err)
{
    int r;
    do {
        r = gp_follow_read(log, err);
        if (r == 0)
            r = gp_app_sleep(NULL, gp_clock_mono_ns() + LOOK_NS, log->is_file ? -1 : log->fd,
                             STDOUT_FILENO);
    } while (r == 0);
    return r;
}

int gp_doctor_watch(const struct gp_doctor_options *o, struct gp_err *err)
{
    static struct gp_follow log; /* large */
    struct gp_doctor_options options = *o;
    char note[GP_PATH_SIZE + 64];
    log.tell = tell;
    log.context = &options;
    int r = gp_follow_open(&log, gp_app_observed()->prefix, err);
    if (r == 0) {
        gp_app_catch_signals();
        (void)snprintf(note, sizeof(note), "follows %s", log.path);
        gp_io_print_note("gpulse", note);
        r = follow(&log, err);
    }
    log.context = NULL;
    gp_follow_close(&log);
    return r;
}
