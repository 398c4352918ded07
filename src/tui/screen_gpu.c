/* All details of one GPU: while the page is open, a second sampler reads all metrics. */
#include "tui/screen.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/field.h"
#include "tui/alerts.h"
#include "tui/feed.h"
#include "tui/gpu_card.h"
#include "tui/gpu_text.h"
#include "tui/gpus.h"
#include "tui/mig.h"
#include "tui/playback.h"
#include "tui/watch_gpus.h"

#include <stdio.h>
#include <string.h>

enum {
    INTERVAL_S = 2,
    PATIENCE_MS = 40,
    CARD_LINES = 12,
    INSTANCE_LINES = 8,
    PAGE_LINES = 8,
    NAME_FROM = 72, /* columns for the name in the title */
};

/* The device row of the page: the one with all metrics, once it has been read. */
static const struct gp_device *find_row(const struct gp_snapshot *s, unsigned gpu, int mig)
{
    for (size_t i = 0; s && i < s->device_count; i++)
        if (gp_device_is(&s->devices[i], (int)gpu, mig))
            return &s->devices[i];
    return NULL;
}

static const struct gp_device *find_device(const struct gp_ui *ui, const struct gp_snapshot *s)
{
    return find_row(s, ui->details.gpu, ui->details.mig);
}

/* ---- lines ---- */

/* Length of a metric's group: its name up to the first dot; 0 for none. */
static size_t group_of(enum gp_metric m)
{
    const char *name = GP_METRIC_NAME(m);
    size_t n = strcspn(name, ".");
    return name[n] ? n : 0;
}

static bool is_same_group(enum gp_metric a, enum gp_metric b)
{
    size_t n = group_of(a);
    return n > 0 && n == group_of(b) && strncmp(GP_METRIC_NAME(a), GP_METRIC_NAME(b), n) == 0;
}

static void add_metric(struct gp_page *page, enum gp_metric m, const struct gp_value *v)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    const struct gp_field field = {.metric = m};
    gp_field_format(&sb, &field, v, GP_STYLE_HUMAN);
    gp_page_add(page, v->status == GP_STATUS_STALE ? GP_INK_STALE : GP_INK_PLAIN, GP_METRIC_NAME(m),
                sb.buf);
    gp_strbuf_fini(&sb);
}

static const char *text_of(const struct gp_value *v)
{
    return gp_value_is_present(v) ? v->s : "?";
}

/* At the top of the page. */
static const enum gp_metric identity[] = {GP_INDEX, GP_NAME, GP_UUID, GP_PCI_BUS_ID, GP_SERIAL};

static bool is_above(const struct gp_device *device, enum gp_metric m)
{
    if (m == GP_STATUS_TEXT && device->status == GP_STATUS_OK)
        return true; /* "ok", like the status */
    for (size_t i = 0; i < GP_ARRAY_LEN(identity) && !device->is_mig; i++)
        if (m == identity[i])
            return true;
    return false;
}

static void add_identity(struct gp_page *page, const struct gp_device *device)
{
    gp_page_head(page, "GPU");
    for (size_t i = 0; i < GP_ARRAY_LEN(identity); i++) {
        const struct gp_value *v = &device->values[identity[i] - GP_DEVICE__FIRST];
        if (gp_value_is_present(v))
            add_metric(page, identity[i], v);
    }
}

/* Adds a heading for each group, and an empty line before metrics without a group. */
static void add_present(struct gp_page *page, const struct gp_device *device)
{
    enum gp_metric last = GP_METRIC__COUNT;
    for (int i = 0; i < GP_DEVICE__COUNT; i++) {
        enum gp_metric m = (enum gp_metric)(GP_DEVICE__FIRST + i);
        char title[64];
        if (!gp_value_is_present(&device->values[i]) || is_above(device, m))
            continue;
        (void)snprintf(title, sizeof(title), "%.*s", (int)group_of(m), GP_METRIC_NAME(m));
        if (last == GP_METRIC__COUNT || (!is_same_group(m, last) && *title))
            gp_page_head(page, *title ? title : device->is_mig ? "GPU" : "state");
        else if (!is_same_group(m, last) && group_of(last) > 0)
            gp_page_add(page, GP_INK_PLAIN, "", "");
        last = m;
        add_metric(page, m, &device->values[i]);
    }
}

static void add_absent(struct gp_page *page, const struct gp_device *device)
{
    bool any = false;
    for (int i = 0; i < GP_DEVICE__COUNT; i++) {
        const struct gp_value *v = &device->values[i];
        struct gp_strbuf sb = GP_STRBUF_INIT(1024);
        if (gp_value_is_present(v) || v->status == GP_STATUS_NONE)
            continue;
        if (!any)
            gp_page_head(page, "not reported for this GPU");
        any = true;
        gp_field_reason(&sb, v, 0);
        gp_page_add(page, GP_INK_DIM, GP_METRIC_NAME(GP_DEVICE__FIRST + i), sb.buf);
        gp_strbuf_fini(&sb);
    }
}

/* "1.0G of 32.0G (3%)" */
static void add_share(struct gp_page *page, const char *label, const struct gp_device *device,
                      enum gp_metric used, enum gp_metric total)
{
    GP_GPU_TEXT(text);
    double n;
    double of;
    if (!gp_device_number(device, used, &n) || !gp_device_number(device, total, &of) || of <= 0) {
        gp_page_add(page, GP_INK_DIM, label, "not reported");
        return;
    }
    gp_gpu_add_gib(&text, n);
    gp_strbuf_adds(&text, " of ");
    gp_gpu_add_gib(&text, of);
    gp_strbuf_addf(&text, " (%.0f%%)", 100 * n / of);
    gp_page_add(page, GP_INK_PLAIN, label, text.buf);
}

static void add_percent(struct gp_page *page, const char *label, const struct gp_device *device,
                        enum gp_metric m)
{
    double n;
    if (gp_device_number(device, m, &n))
        gp_page_addf(page, GP_INK_PLAIN, label, "%.0f%%", n);
    else
        gp_page_add(page, GP_INK_DIM, label, "not reported");
}

static void add_processes(struct gp_page *page, const struct gp_snapshot *s,
                          const struct gp_device *device)
{
    gp_page_head(page, "processes");
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &s->processes[device->first_process + i];
        const struct gp_value *pid = gp_process_value(p, GP_PID);
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        GP_GPU_TEXT(label);
        GP_GPU_TEXT(bytes);
        if (gp_value_is_present(pid))
            gp_strbuf_add_int(&label, (long)pid->i);
        if (gp_value_is_present(memory))
            gp_gpu_add_gib(&bytes, gp_metric_number(GP_PROCESS_MEMORY, memory));
        gp_page_addf(page, GP_INK_PLAIN, label.buf, "%-12s %6s  %s",
                     text_of(gp_process_value(p, GP_PROCESS_USER)), bytes.buf,
                     text_of(gp_process_value(p, GP_PROCESS_COMMAND)));
    }
    if (device->process_count == 0)
        gp_page_add(page, GP_INK_DIM, "",
                    device->processes_status == GP_STATUS_OK ? "none" : "unknown");
}

/* What matters most about an instance, from both samplers. */
static void add_instance(struct gp_ui *ui, const struct gp_device *device)
{
    struct gp_page *page = &ui->text;
    const struct gp_device *parent = find_row(ui->snapshot, ui->details.gpu, -1);
    const struct gp_device *shown = find_device(ui, ui->snapshot);
    GP_GPU_TEXT(ids);
    gp_mig_add_ids(&ids, device);
    gp_page_head(page, "MIG instance");
    gp_page_addf(page, GP_INK_PLAIN, "GPU", "%u %s", ui->details.gpu,
                 parent ? gp_device_text(parent, GP_NAME, "?") : "?");
    gp_page_add(page, GP_INK_PLAIN, "profile", gp_device_text(device, GP_MIG_PROFILE, "?"));
    gp_page_add(page, GP_INK_PLAIN, "ids", ids.buf);
    add_share(page, "memory", device, GP_MEMORY_USED, GP_MEMORY_TOTAL);
    add_share(page, "BAR1", device, GP_BAR1_USED, GP_BAR1_TOTAL);
    add_percent(page, "SM utilization", device, GP_GPM_SM);
    if (shown)
        add_processes(page, ui->snapshot, shown);
}

/* What the alerts of this GPU mean, and what helps. */
static void add_advice(struct gp_ui *ui)
{
    enum { MOST = 64 };
    struct gp_alert list[MOST];
    size_t found = gp_alerts_find(ui->snapshot, &ui->history, &ui->xids, list, MOST);
    for (size_t i = 0; i < found && i < MOST; i++)
        if (list[i].gpu == ui->details.gpu && *list[i].about)
            gp_page_add_wrapped(&ui->text, GP_INK_PLAIN, "", list[i].about);
}

static void open_feed(struct gp_ui *ui)
{
    struct gp_err err = {0};
    const struct gp_feed_config config = {
        ui->outside.open_details, (void *)(uintptr_t)ui->details.gpu, INTERVAL_S * GP_NS_PER_S};
    if (gp_feed_start(&config, &ui->details.feed, &err) < 0)
        gp_ui_say(ui, "%s", err.text);
}

static void fill_gpu(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    double bar1;
    if (!ui->text.count) { /* the page has just been opened */
        const struct gp_device *chosen =
            ui->mig >= 0 ? find_row(ui->snapshot, (unsigned)ui->gpu, ui->mig) : NULL;
        chosen = chosen ? chosen : gp_ui_chosen_gpu(ui);
        if (!chosen) {
            gp_ui_say(ui, "no GPU here");
            ui->mode = GP_UI_WATCH;
            return;
        }
        d->gpu = chosen->index;
        d->mig = chosen->is_mig ? (int)chosen->mig_index : -1;
        if (!chosen->is_mig) /* a verdict is about all of a GPU */
            gp_ui_observe(ui, (struct gp_verdict_topic){.gpu = d->gpu});
        if (ui->outside.open_details && !d->feed)
            open_feed(ui);
    }
    const struct gp_device *device = find_device(ui, d->snapshot ? d->snapshot : ui->snapshot);
    const struct gp_device *watched = find_device(ui, ui->snapshot);
    /* The other sampler knows what a GPU answered before, and how long it has been silent. */
    if (device && watched && device->status != GP_STATUS_OK && watched->status != GP_STATUS_OK)
        device = watched;
    gp_page_clear(&ui->text);
    if (!device) {
        gp_page_add(&ui->text, GP_INK_CRITICAL, "",
                    d->mig >= 0 ? "this MIG instance no longer exists"
                                : "this GPU no longer exists");
        return;
    }
    if (device->status != GP_STATUS_OK)
        gp_page_add(&ui->text, GP_INK_CRITICAL, "", device->status_text);
    add_advice(ui);
    if (device->is_mig) {
        add_instance(ui, device);
    } else {
        add_identity(&ui->text, device);
        gp_ui_write_verdict(ui);
        if (gp_device_number(device, GP_BAR1_TOTAL, &bar1)) {
            gp_page_head(&ui->text, "BAR1");
            add_share(&ui->text, "in use", device, GP_BAR1_USED, GP_BAR1_TOTAL);
        }
    }
    add_present(&ui->text, device);
    add_absent(&ui->text, device);
}

void gp_gpu_collect(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    struct gp_snapshot *snapshot = NULL;
    struct gp_err err = {0};
    if (!d->feed)
        return;
    if (gp_feed_take(d->feed, &snapshot, NULL, &err) < 0)
        gp_ui_say(ui, "%s", err.text);
    if (!snapshot && !err.code)
        return;
    gp_snapshot_free(d->snapshot); /* after an error it would look current forever */
    d->snapshot = snapshot;
    fill_gpu(ui);
}

static void leave_gpu(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    if (d->feed && !gp_feed_stop(d->feed, PATIENCE_MS * GP_NS_PER_MS))
        ui->is_stuck = true;
    d->feed = NULL;
    gp_snapshot_free(d->snapshot);
    d->snapshot = NULL;
    gp_ui_observe_no_more(ui);
}

/* ---- drawing ---- */

static enum gp_ui_wish key_in_gpu(struct gp_ui *ui, int key)
{
    enum gp_action action = gp_key_action(key, gp_ui_is_vi(ui));
    if (!ui->text.is_typing && action == GP_ACTION_SERIES) {
        gp_pref_step(&ui->prefs, GP_PREF_SERIES, true);
        return GP_UI_GO_ON;
    }
    if (!ui->text.is_typing && gp_playback_refuses(ui, action))
        return GP_UI_GO_ON;
    if (!ui->text.is_typing && action == GP_ACTION_ADJUST) {
        /* the GPU of this page, not of the process under the cursor */
        gp_watch_choose_gpu(ui, (int)ui->details.gpu);
        gp_ui_show(ui, GP_UI_ADJUST);
        return GP_UI_GO_ON;
    }
    return gp_page_screen_key(ui, key);
}

static void draw_gpu(struct gp_ui *ui, const struct gp_box *box)
{
    GP_GPU_TEXT(title);
    const struct gp_device *device = find_device(ui, ui->snapshot);
    if (ui->details.mig >= 0)
        gp_strbuf_addf(&title, "MIG %u:%d", ui->details.gpu, ui->details.mig);
    else
        gp_strbuf_addf(&title, "GPU %u", ui->details.gpu);
    if (device && !device->is_mig && box->w >= NAME_FROM)
        gp_strbuf_addf(&title, " · %.40s", gp_gpu_short_name(device));
    gp_strbuf_adds(&title, " · m: next graph");
    if (!ui->outside.player)
        gp_strbuf_adds(&title, ui->details.mig >= 0 ? ", a: adjust its GPU" : ", a: adjust");
    struct gp_box in = gp_draw_window(box, box->w, box->h, title.buf);
    const struct gp_gpus_view view = {
        .snapshot = ui->snapshot,
        .history = &ui->history,
        .xids = &ui->xids,
        .span = gp_ui_span(ui, ui->snapshot ? ui->snapshot->mono_ns : 0),
        .series = (enum gp_series)ui->prefs.series,
        .blocks = ui->prefs.graph,
        .hits = &ui->hits,
    };
    const int lines = ui->details.mig >= 0 ? INSTANCE_LINES : CARD_LINES;
    int card = device && in.h > lines + PAGE_LINES ? lines : 0;
    struct gp_box part = gp_box_part(&in, 0, 0, in.w, card);
    if (card > 0)
        gp_draw_gpu(&part, device, &view);
    part = gp_box_part(&in, 0, card, in.w, in.h - card);
    gp_page_draw(&ui->text, &part);
}

const struct gp_screen gp_screen_gpu = {
    .key = key_in_gpu, .draw = draw_gpu, .fill = fill_gpu, .leave = leave_gpu};
