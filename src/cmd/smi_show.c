/* Samples shown once or in a loop, and changes. */
#include "cmd/smi.h"

#include "cmd/app.h"

#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "sample/changer.h"

#include <signal.h>
#include <unistd.h>

/* Reads have the usual time limit. */
enum { LOOK_TIMEOUT_S = 3, CHANGE_TIMEOUT_S = 30 };

void gp_smi_use(const struct gp_smi_common *given)
{
    struct gp_common *common = gp_common();
    if (given->sim)
        common->sim = given->sim;
    if (given->sim_still)
        common->sim_still = true;
    if (given->root)
        common->root = given->root;
    if (given->id)
        common->id = given->id;
    if (given->timeout_ns)
        common->timeout_ns = given->timeout_ns;
}

/* ---- output ---- */

int gp_smi_print(struct gp_strbuf *sb, int status)
{
    struct gp_err err = {0};
    if (gp_app_write(STDOUT_FILENO, sb, &err) < 0) {
        gp_io_print_error("gpulse", &err);
        status = GP_SMI_EXIT_OTHER;
    }
    gp_strbuf_fini(sb);
    return status;
}

/* Prints nvidia-smi's message for an error; returns its exit status. An output-specific error goes
 * elsewhere. */
static int explain(const struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    if (err->code == GP_EIO) {
        gp_io_print_error("gpulse", err);
        return GP_SMI_EXIT_OTHER;
    }
    int status = gp_smi_add_error(&sb, err);
    return gp_smi_print(&sb, status);
}

/* Prints the buffer so far; returns 0, or an exit status. */
static int flush(struct gp_strbuf *sb)
{
    struct gp_err err = {0};
    int r = gp_app_write(STDOUT_FILENO, sb, &err);
    gp_strbuf_reset(sb);
    return r < 0 ? explain(&err) : 0;
}

struct showing {
    const struct gp_smi_show *show;
    void *ctx;
    struct gp_strbuf sb;
    int fd;
    int status;  /* after the last sample */
    int refused; /* the exit status if there is nothing to show */
};

/* nvidia-smi does not accept a MIG device whose GPU is not selected. */
static bool has_only_mig(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (!snapshot->devices[i].is_mig)
            return false;
    return snapshot->device_count > 0;
}

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct showing *s = ctx;
    struct gp_smi_form form = gp_smi_form_of(snapshot, s->show->native);
    gp_strbuf_reset(&s->sb);
    if (s->show->refuse)
        s->refused = s->show->refuse(s->ctx, &s->sb, snapshot);
    if (s->refused && gp_smi_exit_status(snapshot)) {
        /* what a GPU lacks is unknown while it does not respond */
        gp_strbuf_reset(&s->sb);
        gp_smi_add_failures(&s->sb, &form, snapshot);
        s->refused = gp_smi_exit_status(snapshot);
    }
    if (has_only_mig(snapshot)) {
        gp_strbuf_reset(&s->sb);
        gp_strbuf_adds(&s->sb, "No devices were found\n");
        s->refused = GP_SMI_EXIT_NOT_FOUND;
    }
    if (s->refused) {
        int r = gp_app_write(STDOUT_FILENO, &s->sb, err);
        return r < 0 ? r : GP_EFAIL;
    }
    s->show->print(s->ctx, &s->sb, &form, snapshot);
    s->status = gp_smi_exit_status(snapshot);
    return gp_app_write(s->fd, &s->sb, err);
}

static int show_in(struct showing *s)
{
    struct gp_want want = {.fresh = false};
    struct gp_sampler *sampler;
    struct gp_err err = {0};
    const struct gp_loop loop = {.interval_ns = s->show->interval_ns, .count = s->show->count};
    gp_metric_set_add(&want.metrics, GP_DRIVER_VERSION);
    s->show->want(s->ctx, &want);
    int r = gp_app_open(&want, &loop, &sampler, &err);
    if (r < 0)
        return explain(&err);
    r = gp_app_loop(sampler, &loop, on_sample, s, &err);
    gp_app_close(sampler);
    if (s->refused)
        return s->refused;
    if (r == GP_EINTR)
        gp_app_end_by_signal();
    if (r == GP_EPARTIAL && err.code == GP_EPARTIAL)
        err.code = GP_ENODEV; /* the selected GPU cannot report its identity */
    else if (r == GP_EPARTIAL)
        return s->status;
    return r < 0 ? explain(&err) : s->status;
}

int gp_smi_show(const struct gp_smi_show *show, void *ctx)
{
    struct gp_err why = {0};
    struct showing s = {show, ctx, GP_STRBUF_INIT(256 << 20), STDOUT_FILENO, 0, 0};
    if (show->file)
        s.fd = gp_outfile_create(show->file, 0, 0666, &why);
    if (s.fd < 0) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
        gp_strbuf_addf(&sb, "Failed to create the log file %s\n\n", show->file);
        gp_app_print_error(&why); /* the reason, which nvidia-smi does not give */
        return gp_smi_print(&sb, GP_SMI_EXIT_OTHER);
    }
    if (show->file)
        (void)!ftruncate(s.fd, 0); /* not for a pipe */
    int status = show_in(&s);
    if (show->file)
        (void)close(s.fd);
    gp_strbuf_fini(&s.sb);
    return status;
}

/* ---- changes ---- */

static int open_changer(const struct gp_want *want, uint64_t timeout_s, struct gp_changer **ret)
{
    struct gp_err err = {0};
    struct gp_changer_config config = {.timeout_ns = gp_app_timeout_ns(timeout_s * GP_NS_PER_S),
                                       .want = want};
    int r = gp_app_source(&config.source, &config.selection, &err);
    if (r == 0)
        r = gp_changer_new(&config, ret, &err);
    if (r == GP_ETIMEOUT)
        gp_app_note_stuck();
    return r < 0 ? explain(&err) : 0;
}

static int close_changer(struct gp_changer *changer, struct gp_strbuf *sb, int status)
{
    if (!gp_changer_free(changer))
        gp_app_note_stuck();
    return gp_smi_print(sb, status);
}

static int run_change(const struct gp_smi_request *request)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_changer *changer;
    struct gp_want want;
    gp_smi_mig_change_want(request, &want);
    int status = open_changer(&want, CHANGE_TIMEOUT_S, &changer);
    if (status)
        return status;
    /* A closed output must not stop a half-done change. */
    (void)signal(SIGPIPE, SIG_IGN);
    status = gp_smi_mig_change(request, changer, flush, &sb);
    return close_changer(changer, &sb, status);
}

/* A recording has no settings, and of the commands' lists nothing is recorded. */
static int refuse_tape(const char *what)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_addf(&sb, "gpulse: smi %s works on this machine, not on a recording\n", what);
    return gp_smi_print(&sb, GP_SMI_EXIT_NOT_SUPPORTED);
}

int gp_smi_run(const struct gp_smi_command *command, int argc, char **argv)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_smi_request request = {.is_done = false};
    if (gp_common()->tape && !command->shows_samples)
        return refuse_tape(command->name);
    int status = command->read(argc, argv, &request, &sb);
    if (request.is_done)
        return gp_smi_print(&sb, status);
    gp_strbuf_fini(&sb);
    gp_smi_use(&request.common);
    request.root = gp_app_observed()->files;
    return request.change ? run_change(&request) : gp_smi_show(&request.show, request.ctx);
}

int gp_smi_run_set(struct gp_smi_set *set)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    struct gp_changer *changer;
    int refusal = 0;
    if (gp_common()->tape)
        return refuse_tape("with a setting");
    if (set->id == GP_SMI_SET_RESET) {
        int shown = gp_smi_show(&gp_smi_reset_refusal, &refusal);
        return shown ? shown : refusal;
    }
    set->root = gp_app_observed()->files;
    int status = open_changer(
        NULL, set->given[GP_SMI_SET_DRY_RUN] ? LOOK_TIMEOUT_S : CHANGE_TIMEOUT_S, &changer);
    if (status)
        return status;
    if (set->control < GP_CONTROL__COUNT) /* as above; the others have no public call */
        (void)signal(SIGPIPE, SIG_IGN);
    status = gp_smi_set_apply(set, changer, flush, &sb);
    return close_changer(changer, &sb, status);
}
