#include "cmd/proc_idle.h"

#include "cmd/app.h"
#include "cmd/proc_choice.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"

#include <stdio.h>
#include <unistd.h>

enum { TOLD_S = 2 };

/* The time left, on a terminal; elsewhere only how long it will take. */
void gp_idle_count_down(uint64_t for_ns, uint64_t left_ns)
{
    const bool is_terminal = isatty(STDERR_FILENO);
    if (for_ns < TOLD_S * GP_NS_PER_S)
        return;
    if (is_terminal && left_ns == 0)
        (void)fprintf(stderr, "\r\033[K");
    else if (is_terminal)
        (void)fprintf(stderr, "\rgpulse: observing, %.0f s left\033[K", (double)left_ns / 1e9);
    else if (left_ns == for_ns)
        (void)fprintf(stderr, "gpulse: observing for %.0f s\n", (double)for_ns / 1e9);
}

/* Appends "gpu=0,3,4:1"; without GPUs, "gpu=", which selects no process. */
static void add_gpus(struct gp_strbuf *sb, const struct gp_snapshot *snapshot)
{
    char label[GP_DEVICE_LABEL_SIZE];
    gp_strbuf_adds(sb, "gpu=");
    for (size_t i = 0; i < snapshot->device_count; i++) {
        gp_device_label(&snapshot->devices[i], label);
        gp_strbuf_adds(sb, i == 0 ? "" : ",");
        gp_strbuf_adds(sb, label);
    }
}

int gp_idle_take_id(char *filter, size_t size, struct gp_err *err)
{
    const struct gp_loop once = {.interval_ns = 0};
    struct gp_want want = {.mig = false};
    struct gp_sampler *sampler;
    struct gp_snapshot *snapshot = NULL;
    struct gp_strbuf word = GP_STRBUF_INIT(size);
    if (!gp_common()->id)
        return 0;
    gp_metric_set_add(&want.metrics, GP_INDEX);
    int r = gp_app_open(&want, &once, &sampler, err);
    if (r < 0)
        return r;
    r = gp_sampler_tick(sampler, &snapshot, err);
    if (r == 0) {
        add_gpus(&word, snapshot);
        r = word.error ? gp_err_set(err, word.error == GP_ENOMEM ? GP_ENOMEM : GP_EUSAGE,
                                    "cannot combine --idle with so many GPUs; select fewer with "
                                    "--id")
                       : gp_proc_choice_add_words(word.buf, filter, size, err);
    }
    gp_strbuf_fini(&word);
    gp_snapshot_free(snapshot);
    gp_app_close(sampler);
    gp_common()->id = NULL;
    return r;
}

int gp_idle_watch(struct gp_sampler *sampler, const char *filter, uint64_t for_ns,
                  struct gp_idle *ret, struct gp_snapshot **ret_last, struct gp_err *err)
{
    *ret_last = NULL;
    return gp_common()->id
               ? gp_err_set(err, GP_EUSAGE,
                            "--idle looks at all GPUs; it cannot be combined with --id")
               : gp_idle_observe(sampler, filter, for_ns, gp_idle_count_down, ret, ret_last, err);
}
