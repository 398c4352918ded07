/* What the commands of gpulse smi share: common options, messages, and samples shown once or in a
 * loop. */
#include "cmd/smi.h"

#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "source/source.h"

#include <unistd.h>

int gp_smi_take_common(const char *const *given, bool *ret_native, struct gp_strbuf *message)
{
    enum {
#define X(id, kind, names, value, help) COMMON_##id,
        GP_SMI_COMMON_OPTIONS(X)
#undef X
    };
    struct gp_common *common = gp_common();
    if (given[COMMON_SIM])
        common->sim = given[COMMON_SIM];
    if (given[COMMON_SIM_STILL])
        common->sim_still = true;
    if (given[COMMON_ROOT])
        common->root = given[COMMON_ROOT];
    if (given[COMMON_ID])
        common->id = given[COMMON_ID];
    *ret_native = given[COMMON_NATIVE] != NULL;
    if (given[COMMON_TIMEOUT] && !gp_parse_duration(given[COMMON_TIMEOUT], &common->timeout_ns)) {
        gp_strbuf_addf(message, "Invalid value for --timeout: %s\n", given[COMMON_TIMEOUT]);
        return GP_SMI_EXIT_USAGE;
    }
    return 0;
}

/* ---- output ---- */

int gp_smi_end(struct gp_strbuf *sb, int status)
{
    struct gp_err err = {0};
    if (gp_app_write(STDOUT_FILENO, sb, &err) < 0) {
        gp_io_print_error("gpulse", &err);
        status = GP_SMI_EXIT_OTHER;
    }
    gp_strbuf_fini(sb);
    return status;
}

bool gp_smi_begin(const struct gp_smi_syntax *syntax, int argc, char **argv, const char **given,
                  struct gp_smi_show *show, int *ret_status)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    int status = gp_smi_parse(syntax->options, syntax->tool, argc, argv, given, &sb);
    if (!status)
        status = gp_smi_take_common(&given[syntax->common], &show->native, &sb);
    bool helps = !status && given[syntax->help];
    if (helps) {
        gp_strbuf_addf(&sb, "%s [options]\n\n    %s\n\n", syntax->tool, syntax->summary);
        gp_smi_add_options(&sb, syntax->options);
    }
    *ret_status = gp_smi_end(&sb, status);
    return !status && !helps;
}

int gp_smi_refuse_value(const struct gp_smi_syntax *syntax, const char *option, const char *value)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    return gp_smi_end(&sb, gp_smi_add_invalid(&sb, syntax->tool, option, value));
}

int gp_smi_refuse_combination(void)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_adds(&sb, GP_SMI_COMBINATION);
    return gp_smi_end(&sb, GP_SMI_EXIT_USAGE);
}

/* An output-specific error goes elsewhere. */
int gp_smi_explain(const struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    if (err->code == GP_EIO) {
        gp_io_print_error("gpulse", err);
        return GP_SMI_EXIT_OTHER;
    }
    int status = gp_smi_add_error(&sb, err);
    return gp_smi_end(&sb, status);
}

int gp_smi_flush(struct gp_strbuf *sb)
{
    struct gp_err err = {0};
    int r = gp_app_write(STDOUT_FILENO, sb, &err);
    gp_strbuf_reset(sb);
    return r < 0 ? gp_smi_explain(&err) : 0;
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
    gp_metric_set_add(&want.metrics, GP_DRIVER_VERSION);
    s->show->want(s->ctx, &want);
    int r = gp_app_open(&want, &s->show->loop, &sampler, &err);
    if (r < 0)
        return gp_smi_explain(&err);
    r = gp_app_loop(sampler, &s->show->loop, on_sample, s, &err);
    gp_app_close(sampler);
    if (s->refused)
        return s->refused;
    if (r == GP_EINTR)
        gp_app_end_by_signal();
    if (r == GP_EPARTIAL && err.code == GP_EPARTIAL)
        err.code = GP_ENODEV; /* the selected GPU cannot report its identity */
    else if (r == GP_EPARTIAL)
        return s->status;
    return r < 0 ? gp_smi_explain(&err) : s->status;
}

int gp_smi_show(const struct gp_smi_show *show, void *ctx)
{
    struct gp_err why = {0};
    struct showing s = {show, ctx, GP_STRBUF_INIT(256 << 20), STDOUT_FILENO, 0, 0};
    if (show->file)
        s.fd = gp_outfile_create(show->file, 0, 0666, &why);
    if (s.fd < 0) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
        gp_strbuf_addf(&sb, "Unable to open file %s: %s\n", show->file, why.text);
        return gp_smi_end(&sb, GP_SMI_EXIT_USAGE);
    }
    if (show->file)
        (void)!ftruncate(s.fd, 0); /* not for a pipe */
    int status = show_in(&s);
    if (show->file)
        (void)close(s.fd);
    gp_strbuf_fini(&s.sb);
    return status;
}
