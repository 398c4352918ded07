/* How the live monitor shows GPUs and processes in every state, each cell with its ink; and the
 * tables that have no other test: keys, themes, ASCII. */
#include "tui_scene.h"

#include "base/err.h"
#include "tui/alerts.h"
#include "tui/gpu_flags.h"
#include "tui/gpu_text.h"
#include "tui/gpus.h"
#include "tui/plain.h"
#include "tui/theme.h"

/* ---- GPUs in every state ---- */

enum { INT, REAL, TEXT, ABSENT, STALE };

/* A GPU of the machine with some values changed, each on either side of what makes a difference. */
struct variant {
    const char *name;
    struct change {
        enum gp_metric metric;
        int type;
        int64_t n;
        const char *text;
    } changes[4];
    enum gp_status status;
    const char *status_text;
};

static const struct variant variants[] = {
    {"plain", {{GP_TEMPERATURE_GPU, INT, 76, NULL}}, 0, NULL},
    {"warm", {{GP_TEMPERATURE_GPU, INT, 77, NULL}}, 0, NULL},
    {"warmer", {{GP_TEMPERATURE_GPU, INT, 86, NULL}}, 0, NULL},
    {"hot", {{GP_TEMPERATURE_GPU, INT, 87, NULL}}, 0, NULL},
    {"79, no limit",
     {{GP_TEMPERATURE_GPU, INT, 79, NULL}, {GP_THRESHOLD_SLOWDOWN, ABSENT, GP_STATUS_NONE, NULL}},
     0,
     NULL},
    {"80, no limit",
     {{GP_TEMPERATURE_GPU, INT, 80, NULL}, {GP_THRESHOLD_SLOWDOWN, ABSENT, GP_STATUS_NONE, NULL}},
     0,
     NULL},
    {"90, no limit",
     {{GP_TEMPERATURE_GPU, INT, 90, NULL}, {GP_THRESHOLD_SLOWDOWN, ABSENT, GP_STATUS_NONE, NULL}},
     0,
     NULL},
    {"no heat", {{GP_TEMPERATURE_GPU, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"warm memory",
     {{GP_TEMPERATURE_MEMORY, INT, 90, NULL}, {GP_THRESHOLD_MEMORY_MAX, INT, 95, NULL}},
     0,
     NULL},
    {"hot memory",
     {{GP_TEMPERATURE_MEMORY, INT, 95, NULL}, {GP_THRESHOLD_MEMORY_MAX, INT, 95, NULL}},
     0,
     NULL},
    {"no heat of memory", {{GP_TEMPERATURE_MEMORY, ABSENT, GP_STATUS_NONE, NULL}}, 0, NULL},
    {"fan", {{GP_FAN_SPEED, INT, 35, NULL}}, 0, NULL},
    {"GeForce RTX", {{GP_NAME, TEXT, 0, "NVIDIA GeForce RTX 4090"}}, 0, NULL},
    {"no name", {{GP_NAME, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"99.9 GiB", {{GP_MEMORY_TOTAL, INT, INT64_C(107266808545), NULL}}, 0, NULL},
    {"100 GiB", {{GP_MEMORY_TOTAL, INT, INT64_C(100) * GIB, NULL}}, 0, NULL},
    {"no memory used", {{GP_MEMORY_USED, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"no total", {{GP_MEMORY_TOTAL, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"total 0", {{GP_MEMORY_TOTAL, INT, 0, NULL}}, 0, NULL},
    {"old memory", {{GP_MEMORY_USED, STALE, 0, NULL}}, 0, NULL},
    {"nothing reserved", {{GP_MEMORY_RESERVED, ABSENT, GP_STATUS_NONE, NULL}}, 0, NULL},
    {"full and reserved",
     {{GP_MEMORY_USED, INT, INT64_C(79) * GIB, NULL},
      {GP_MEMORY_RESERVED, INT, INT64_C(12) * GIB, NULL}},
     0,
     NULL},
    {"old power", {{GP_POWER_DRAW, STALE, 0, NULL}}, 0, NULL},
    {"no power", {{GP_POWER_DRAW, ABSENT, GP_STATUS_NO_PERMISSION, NULL}}, 0, NULL},
    {"no limit", {{GP_POWER_LIMIT_ENFORCED, ABSENT, GP_STATUS_NONE, NULL}}, 0, NULL},
    {"old use", {{GP_UTILIZATION_GPU, STALE, 0, NULL}}, 0, NULL},
    {"use 9", {{GP_UTILIZATION_GPU, INT, 9, NULL}}, 0, NULL},
    {"use 10", {{GP_UTILIZATION_GPU, INT, 10, NULL}}, 0, NULL},
    {"use 74", {{GP_UTILIZATION_GPU, INT, 74, NULL}}, 0, NULL},
    {"use 75", {{GP_UTILIZATION_GPU, INT, 75, NULL}}, 0, NULL},
    {"use 100", {{GP_UTILIZATION_GPU, INT, 100, NULL}}, 0, NULL},
    {"use 0", {{GP_UTILIZATION_GPU, INT, 0, NULL}}, 0, NULL},
    {"idle", {{GP_REASONS_ACTIVE, INT, 1, NULL}}, 0, NULL},
    {"software power cap", {{GP_REASONS_ACTIVE, INT, 4, NULL}}, 0, NULL},
    {"hardware slowdown", {{GP_REASONS_ACTIVE, INT, 8, NULL}}, 0, NULL},
    {"sync boost", {{GP_REASONS_ACTIVE, INT, 16, NULL}}, 0, NULL},
    {"software heat", {{GP_REASONS_ACTIVE, INT, 32, NULL}}, 0, NULL},
    {"hardware heat", {{GP_REASONS_ACTIVE, INT, 64, NULL}}, 0, NULL},
    {"power brake", {{GP_REASONS_ACTIVE, INT, 128, NULL}}, 0, NULL},
    {"display clock", {{GP_REASONS_ACTIVE, INT, 256, NULL}}, 0, NULL},
    {"old reasons", {{GP_REASONS_ACTIVE, STALE, 0, NULL}}, 0, NULL},
    {"recovery", {{GP_RECOVERY_ACTION, TEXT, 0, "GPU reset"}}, 0, NULL},
    {"no recovery", {{GP_RECOVERY_ACTION, TEXT, 0, "None"}}, 0, NULL},
    {"recovery and heat",
     {{GP_RECOVERY_ACTION, TEXT, 0, "Drain"}, {GP_REASONS_ACTIVE, INT, 8, NULL}},
     0,
     NULL},
    {"ECC 0", {{GP_ECC_UNCORRECTED_VOLATILE, INT, 0, NULL}}, 0, NULL},
    {"ECC 1", {{GP_ECC_UNCORRECTED_VOLATILE, INT, 1, NULL}}, 0, NULL},
    {"all of it",
     {{GP_RECOVERY_ACTION, TEXT, 0, "GPU reset"},
      {GP_ECC_UNCORRECTED_VOLATILE, INT, 3, NULL},
      {GP_REASONS_ACTIVE, INT, 4, NULL},
      {GP_PCIE_WIDTH, INT, 8, NULL}},
     0,
     NULL},
    {"narrow", {{GP_PCIE_WIDTH, INT, 8, NULL}}, 0, NULL},
    {"no lanes", {{GP_PCIE_WIDTH, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"no generation",
     {{GP_PCIE_GEN, ABSENT, GP_STATUS_UNSUPPORTED, NULL}, {GP_PCIE_WIDTH, INT, 8, NULL}},
     0,
     NULL},
    {"most lanes not known",
     {{GP_PCIE_WIDTH_MAX, ABSENT, GP_STATUS_NONE, NULL}, {GP_PCIE_WIDTH, INT, 8, NULL}},
     0,
     NULL},
    {"PCIe",
     {{GP_PCIE_RX, REAL, INT64_C(12340000000), NULL}, {GP_PCIE_TX, REAL, 560000000, NULL}},
     0,
     NULL},
    {"half of PCIe", {{GP_PCIE_RX, REAL, INT64_C(12340000000), NULL}}, 0, NULL},
    {"NVLink",
     {{GP_NVLINK_RATE_RX, REAL, INT64_C(98760000000), NULL},
      {GP_NVLINK_RATE_TX, REAL, INT64_C(45600000000), NULL}},
     0,
     NULL},
    {"SMs", {{GP_GPM_SM, REAL, 61, NULL}}, 0, NULL},
    {"no encoder",
     {{GP_UTILIZATION_ENCODER, ABSENT, GP_STATUS_UNSUPPORTED, NULL},
      {GP_UTILIZATION_DECODER, ABSENT, GP_STATUS_UNSUPPORTED, NULL}},
     0,
     NULL},
    {"no bus", {{GP_UTILIZATION_MEMORY, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"no clocks", {{GP_CLOCK_SM, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"no clock of memory", {{GP_CLOCK_MEMORY, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"no state", {{GP_PSTATE, ABSENT, GP_STATUS_UNSUPPORTED, NULL}}, 0, NULL},
    {"asleep", {{0}}, GP_STATUS_ASLEEP, "asleep"},
    {"released", {{0}}, GP_STATUS_RELEASED, "released"},
    {"lost", {{0}}, GP_STATUS_LOST, "GPU is lost"},
    {"hangs", {{0}}, GP_STATUS_TIMEOUT, "no answer for 12 s (nvmlDeviceGetPowerUsage)"},
    {"fails", {{0}}, GP_STATUS_ERROR, "driver error 999"},
    {"tells nothing",
     {{GP_UTILIZATION_GPU, ABSENT, GP_STATUS_UNSUPPORTED, NULL},
      {GP_MEMORY_USED, ABSENT, GP_STATUS_NO_PERMISSION, NULL},
      {GP_TEMPERATURE_GPU, ABSENT, GP_STATUS_UNSUPPORTED, NULL},
      {GP_POWER_DRAW, ABSENT, GP_STATUS_UNSUPPORTED, NULL}},
     0,
     NULL},
    {"can nothing",
     {{GP_UTILIZATION_GPU, ABSENT, GP_STATUS_UNSUPPORTED, NULL},
      {GP_MEMORY_USED, ABSENT, GP_STATUS_UNSUPPORTED, NULL},
      {GP_TEMPERATURE_GPU, ABSENT, GP_STATUS_UNSUPPORTED, NULL},
      {GP_POWER_DRAW, ABSENT, GP_STATUS_UNSUPPORTED, NULL}},
     0,
     NULL},
    {"tells its power alone",
     {{GP_UTILIZATION_GPU, ABSENT, GP_STATUS_NO_PERMISSION, NULL},
      {GP_MEMORY_USED, ABSENT, GP_STATUS_NO_PERMISSION, NULL},
      {GP_TEMPERATURE_GPU, ABSENT, GP_STATUS_NO_PERMISSION, NULL}},
     0,
     NULL},
    {"reserved", {{GP_RESERVATION_USER, TEXT, 0, "mia"}}, 0, NULL},
    {"is not asked",
     {{GP_UTILIZATION_GPU, ABSENT, GP_STATUS_NONE, NULL},
      {GP_MEMORY_USED, ABSENT, GP_STATUS_NO_PERMISSION, NULL},
      {GP_TEMPERATURE_GPU, ABSENT, GP_STATUS_NO_PERMISSION, NULL},
      {GP_POWER_DRAW, ABSENT, GP_STATUS_NO_PERMISSION, NULL}},
     0,
     NULL},
};

static void apply_change(struct gp_device *d, const struct change *c, uint64_t now_ns)
{
    struct gp_value *v = device_value(d, c->metric);
    if (c->type == INT)
        gp_value_set_int(v, c->n, now_ns);
    else if (c->type == REAL)
        gp_value_set_real(v, (double)c->n, now_ns);
    else if (c->type == TEXT)
        gp_value_set_text(v, c->text, now_ns);
    else if (c->type == ABSENT)
        gp_value_set_absent(v, (enum gp_status)c->n, NULL, now_ns);
    else
        v->status = GP_STATUS_STALE;
}

static void apply_variant(struct gp_device *d, const struct variant *variant, uint64_t now_ns)
{
    if (variant->status) {
        d->status = variant->status;
        d->status_text = variant->status_text;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(variant->changes); i++)
        if (variant->changes[i].metric)
            apply_change(d, &variant->changes[i], now_ns);
}

/* One GPU with that variant and, behind it, a MIG instance. */
static struct gp_snapshot *odd_machine(const struct variant *variant, unsigned tick)
{
    struct gp_snapshot *s = machine(2, tick);
    struct gp_device *mig = &s->devices[1];
    gp_value_set_int(device_value(&s->devices[0], GP_MEMORY_USED), INT64_C(44) * GIB, s->mono_ns);
    apply_variant(&s->devices[0], variant, s->mono_ns);
    mig->is_mig = true;
    mig->index = 0;
    mig->mig_index = 3;
    gp_value_set_text(device_value(mig, GP_MIG_PROFILE), "1g.10gb", s->mono_ns);
    s->process_count = 0;
    return s;
}

static void watch_odd(struct gp_ui *ui, const struct variant *variant, unsigned ticks)
{
    gp_ui_init(ui);
    for (unsigned tick = 0; tick < ticks; tick++)
        gp_ui_take(ui, odd_machine(variant, tick), GP_NS_PER_MS);
}

static void draw_variants(const char *golden, const char *keys, int w, int h)
{
    struct gp_strbuf all = GP_STRBUF_INIT(4 << 20);
    for (size_t i = 0; i < GP_ARRAY_LEN(variants); i++) {
        struct gp_ui ui;
        watch_odd(&ui, &variants[i], 12);
        press(&ui, keys);
        add_scene(&all, &ui, w, h, variants[i].name);
        assert_true(gp_ui_fini(&ui));
    }
    golden_check(golden, all.buf, all.len);
    gp_strbuf_fini(&all);
}

/* x: the GPUs alone; g: the next density, beginning with cards. */
static void odd_gpus_as_lines(void **state)
{
    (void)state;
    draw_variants("top-odd-lines.txt", "xggg", 100, 5);
}

static void odd_gpus_as_bars(void **state)
{
    (void)state;
    draw_variants("top-odd-bars.txt", "xgg", 150, 12);
}

static void odd_gpus_as_narrow_bars(void **state)
{
    (void)state;
    draw_variants("top-odd-narrow-bars.txt", "xgg", 80, 5);
}

static void odd_gpus_as_tiles(void **state)
{
    (void)state;
    draw_variants("top-odd-tiles.txt", "xgggg", 60, 2);
}

/* An escaped name of a broken driver. */
static void long_names_are_cut(void **state)
{
    char name[400];
    const struct variant variant = {"long", {{GP_NAME, TEXT, 0, name}}, 0, NULL};
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
    struct gp_ui ui;
    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    watch_odd(&ui, &variant, 1);
    press(&ui, "xgg");
    add_scene(&all, &ui, 80, 5, variant.name);
    assert_true(gp_ui_fini(&ui));
    assert_non_null(strstr(all.buf, " 0 xxxx"));
    gp_strbuf_fini(&all);
}

static void odd_gpus_are_told_in_lines(void **state)
{
    (void)state;
    struct gp_strbuf all = GP_STRBUF_INIT(4 << 20);
    for (size_t i = 0; i < GP_ARRAY_LEN(variants); i++) {
        struct gp_snapshot *s = odd_machine(&variants[i], 0);
        const struct gp_procs_options options = {.gpu = -1};
        struct gp_strbuf one = GP_STRBUF_INIT(1 << 16);
        assert_int_equal(gp_plain_add(&one, s, &options), 0);
        gp_strbuf_addf(&all, "==== %s%s", variants[i].name,
                       i == 0 ? "\n" : strchr(one.buf, '\n')); /* the machine is the same */
        if (i == 0)
            gp_strbuf_adds(&all, one.buf);
        gp_strbuf_fini(&one);
        gp_snapshot_free(s);
    }
    golden_check("top-odd-plain.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
}

/* ---- alerts ---- */

/* What is told of a GPU, on both sides of each bound; "": nothing. */
static const struct {
    struct variant variant;
    enum gp_ink ink;
    const char *text;
} alert_cases[] = {
    {{"", {{GP_TEMPERATURE_GPU, INT, 86, NULL}}, 0, NULL}, 0, ""},
    {{"", {{GP_TEMPERATURE_GPU, INT, 87, NULL}}, 0, NULL},
     GP_INK_CRITICAL,
     "GPU 0 too hot (87°C, slows down at 87°C)"},
    {{"", {{GP_TEMPERATURE_GPU, INT, 99, NULL}, {GP_THRESHOLD_SLOWDOWN, STALE, 0, NULL}}, 0, NULL},
     0,
     ""},
    {{"", {{GP_THRESHOLD_MEMORY_MAX, INT, 62, NULL}}, 0, NULL}, 0, ""},
    {{"", {{GP_THRESHOLD_MEMORY_MAX, INT, 61, NULL}}, 0, NULL},
     GP_INK_CRITICAL,
     "GPU 0 too hot (memory 61°C, slows down at 61°C)"},
    {{"", {{GP_REASONS_ACTIVE, INT, 0x17, NULL}}, 0, NULL}, 0, ""},
    {{"", {{GP_REASONS_ACTIVE, INT, 0x08, NULL}}, 0, NULL},
     GP_INK_HIGH,
     "GPU 0 slowed by the hardware"},
    {{"", {{GP_REASONS_ACTIVE, INT, 0x48, NULL}}, 0, NULL}, GP_INK_HIGH, "GPU 0 slowed by heat"},
    {{"", {{GP_REASONS_ACTIVE, INT, 0x88, NULL}}, 0, NULL},
     GP_INK_HIGH,
     "GPU 0 slowed by power supply"},
    {{"", {{GP_REASONS_ACTIVE, INT, 0x20, NULL}}, 0, NULL}, GP_INK_HIGH, "GPU 0 slowed by heat"},
    {{"", {{GP_REASONS_ACTIVE, INT, 0x40, NULL}}, 0, NULL}, GP_INK_HIGH, "GPU 0 slowed by heat"},
    {{"", {{GP_MEMORY_UNATTRIBUTED, INT, GIB - 1, NULL}}, 0, NULL}, 0, ""},
    {{"", {{GP_MEMORY_UNATTRIBUTED, INT, GIB, NULL}}, 0, NULL},
     GP_INK_HIGH,
     "GPU 0 orphaned memory (1.0G)"},
    {{"", {{GP_REASONS_ACTIVE, INT, 0x80, NULL}}, 0, NULL},
     GP_INK_HIGH,
     "GPU 0 slowed by power supply"},
    {{"", {{GP_RECOVERY_ACTION, TEXT, 0, "None"}}, 0, NULL}, 0, ""},
    {{"", {{GP_RECOVERY_ACTION, TEXT, 0, ""}}, 0, NULL}, 0, ""},
    {{"", {{GP_RECOVERY_ACTION, TEXT, 0, "Drain"}}, 0, NULL},
     GP_INK_CRITICAL,
     "GPU 0 needs recovery (Drain)"},
    {{"", {{GP_ECC_UNCORRECTED_VOLATILE, INT, 0, NULL}}, 0, NULL}, 0, ""},
    {{"", {{GP_ECC_UNCORRECTED_VOLATILE, INT, 1, NULL}}, 0, NULL},
     GP_INK_CRITICAL,
     "GPU 0 memory errors (1 uncorrected)"},
    {{"", {{GP_REMAPPED_FAILURE, TEXT, 0, "No"}}, 0, NULL}, 0, ""},
    {{"", {{GP_REMAPPED_FAILURE, TEXT, 0, "Yes"}}, 0, NULL},
     GP_INK_CRITICAL,
     "GPU 0 broken memory (no spare rows)"},
    {{"", {{GP_REMAPPED_PENDING, TEXT, 0, "No"}, {GP_RETIRED_PENDING, TEXT, 0, "No"}}, 0, NULL},
     0,
     ""},
    {{"", {{GP_REMAPPED_PENDING, TEXT, 0, "Yes"}}, 0, NULL},
     GP_INK_HIGH,
     "GPU 0 repair waits for a reset"},
    {{"", {{GP_RETIRED_PENDING, TEXT, 0, "Yes"}}, 0, NULL},
     GP_INK_HIGH,
     "GPU 0 repair waits for a reset"},
    {{"", {{GP_PCIE_WIDTH, INT, 15, NULL}}, 0, NULL}, 0, ""}, /* it may be built so */
    {{"", {{GP_PCIE_WIDTH, INT, 8, NULL}, {GP_PCIE_WIDTH_MAX, STALE, 0, NULL}}, 0, NULL}, 0, ""},
    {{"", {{GP_MEMORY_USED, INT, INT64_C(76) * GIB - 1, NULL}}, 0, NULL}, 0, ""},
    {{"", {{GP_MEMORY_USED, INT, INT64_C(76) * GIB, NULL}}, 0, NULL},
     GP_INK_HIGH,
     "GPU 0 memory nearly full (95%)"},
    {{"", {{GP_MEMORY_TOTAL, INT, 0, NULL}}, 0, NULL}, 0, ""},
    {{"", {{0}}, GP_STATUS_ASLEEP, "asleep"}, 0, ""},
    {{"", {{0}}, GP_STATUS_RELEASED, "released"}, 0, ""},
    {{"", {{0}}, GP_STATUS_LOST, "GPU is lost"},
     GP_INK_CRITICAL,
     "GPU 0 lost: reset or reboot needed"},
};

static void alerts_have_their_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(alert_cases); i++) {
        const struct gp_history history = {.tracks = NULL};
        const struct gp_xids xids = {.count = 0};
        struct gp_alert alert = {.text = ""};
        struct gp_snapshot *s = odd_machine(&alert_cases[i].variant, 0);
        /* nothing is told of its instance, however bad */
        gp_value_set_int(device_value(&s->devices[1], GP_TEMPERATURE_GPU), 200, 1);
        size_t count = gp_alerts_find(s, &history, &xids, &alert, 1);
        if (strcmp(alert.text, alert_cases[i].text) != 0 ||
            count != (*alert_cases[i].text != '\0') || (count && alert.ink != alert_cases[i].ink))
            fail_msg("case %zu: %zu alerts, '%s'", i, count, alert.text);
        gp_snapshot_free(s);
    }
}

static void xids_are_told_for_less_than_an_hour(void **state)
{
    (void)state;
    static const struct {
        uint64_t number, age_s;
        enum gp_ink ink;
        const char *text;
    } cases[] = {{79, 3600, 0, NULL},
                 {79, 3599, GP_INK_CRITICAL, " · 59 min ago"},
                 {79, 59, GP_INK_CRITICAL, " · just now"},
                 {79, 60, GP_INK_CRITICAL, " · 1 min ago"},
                 {13, 60, GP_INK_HIGH, " · 1 min ago"},
                 {4711, 60, GP_INK_CRITICAL, "GPU 3 Xid 4711, unknown error · 1 min ago"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const struct gp_history history = {.tracks = NULL};
        struct gp_xids xids = {.count = 0};
        struct gp_alert alert = {.text = ""};
        struct gp_snapshot *s = machine(1, 0);
        gp_xids_add(&xids,
                    (struct gp_xid){3, cases[i].number, s->wall_ns - cases[i].age_s * GP_NS_PER_S});
        assert_int_equal(gp_alerts_find(s, &history, &xids, &alert, 1), cases[i].text != NULL);
        if (cases[i].text) {
            assert_non_null(strstr(alert.text, cases[i].text));
            assert_int_equal(alert.ink, cases[i].ink);
        }
        gp_snapshot_free(s);
    }
}

/* The newest first; a ring forgets the oldest. */
static void as_many_xids_as_are_kept(void **state)
{
    (void)state;
    enum { MORE = GP_XIDS_MAX + 3 };
    const struct gp_history history = {.tracks = NULL};
    struct gp_xids xids = {.count = 0};
    struct gp_alert alerts[MORE];
    struct gp_snapshot *s = machine(1, 0);
    for (unsigned i = 0; i < MORE; i++)
        gp_xids_add(&xids, (struct gp_xid){i, 79, s->wall_ns + GP_NS_PER_S}); /* a clock set back */
    assert_int_equal(gp_alerts_find(s, &history, &xids, alerts, MORE), GP_XIDS_MAX);
    for (unsigned i = 0; i < GP_XIDS_MAX; i++) {
        char words[32];
        (void)snprintf(words, sizeof(words), "GPU %u Xid 79, ", MORE - 1 - i);
        assert_ptr_equal(strstr(alerts[i].text, words), alerts[i].text);
        assert_non_null(strstr(alerts[i].text, " · just now"));
    }
    gp_snapshot_free(s);
}

/* ---- loads from empty to full, all series, both kinds of graphs ---- */

static void every_series_as_graph_of_both_kinds(void **state)
{
    (void)state;
    struct gp_strbuf all = GP_STRBUF_INIT(4 << 20);
    for (int series = 0; series < GP_SERIES__COUNT; series++)
        for (int blocks = 0; blocks < 2; blocks++) {
            struct gp_ui ui;
            gp_ui_init(&ui);
            ui.prefs.series = series;
            ui.prefs.graph = blocks;
            for (unsigned tick = 0; tick < 60; tick++) {
                struct gp_snapshot *s = machine(1, tick);
                struct gp_device *d = &s->devices[0];
                int64_t load = (int64_t)(tick * 2);
                gp_value_set_int(device_value(d, GP_UTILIZATION_GPU), load > 100 ? 0 : load, 1);
                gp_value_set_int(device_value(d, GP_UTILIZATION_MEMORY), load / 2, 1);
                gp_value_set_int(device_value(d, GP_MEMORY_USED), load * GIB * 2 / 3, 1);
                gp_value_set_int(device_value(d, GP_TEMPERATURE_GPU), 30 + load / 2, 1);
                gp_value_set_real(device_value(d, GP_POWER_DRAW), 7.0 * (double)load, 1);
                gp_value_set_real(device_value(d, GP_GPM_SM), (double)load / 3, 1);
                gp_value_set_real(device_value(d, GP_PCIE_TX), 1e8 * (double)load, 1);
                gp_value_set_real(device_value(d, GP_PCIE_RX), 3e7 * (double)load, 1);
                gp_value_set_real(device_value(d, GP_NVLINK_RATE_TX), 9e8 * (double)load, 1);
                gp_value_set_real(device_value(d, GP_NVLINK_RATE_RX), 2e9 * (double)load, 1);
                if (tick % 20 == 7) /* a gap */
                    d->values[GP_UTILIZATION_GPU - GP_DEVICE__FIRST].status = GP_STATUS_STALE;
                gp_ui_take(&ui, s, GP_NS_PER_MS);
            }
            press(&ui, "xg");
            add_scene(&all, &ui, 100, 16, gp_series_titles[series]);
            add_scene(&all, &ui, 59, 11, "without words");
            press(&ui, "ggxx"); /* as a line, with the processes */
            add_scene(&all, &ui, 90, 7, "as a line");
            assert_true(gp_ui_fini(&ui));
        }
    golden_check("top-series.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
}

/* The bounds of the inks. */
static void loads_have_their_inks(void **state)
{
    (void)state;
    static const struct {
        enum gp_series series;
        int permille;
        enum gp_ink ink;
    } cases[] = {
        {GP_SERIES_GPU, -1, GP_INK_STALE},      {GP_SERIES_GPU, 0, GP_INK_LOW},
        {GP_SERIES_GPU, 500, GP_INK_LOW},       {GP_SERIES_GPU, 1000, GP_INK_LOW},
        {GP_SERIES_MEMORY, -1, GP_INK_STALE},   {GP_SERIES_MEMORY, 0, GP_INK_MEMORY},
        {GP_SERIES_MEMORY, 949, GP_INK_MEMORY}, {GP_SERIES_MEMORY, 950, GP_INK_HIGH},
        {GP_SERIES_POWER, 1000, GP_INK_PLAIN},  {GP_SERIES_TEMPERATURE, 990, GP_INK_PLAIN},
        {GP_SERIES_SM, 1000, GP_INK_LOW},       {GP_SERIES_NVLINK, 10, GP_INK_LOW},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        if (gp_load_ink(cases[i].series, cases[i].permille) != cases[i].ink)
            fail_msg("case %zu", i);
}

/* Held is what nothing has used for half a minute, and is worth a look. */
static void memory_that_is_held_stands_out(void **state)
{
    (void)state;
    static const struct {
        unsigned idle_s;
        int64_t gib;
        bool is_known;
        enum gp_ink ink;
    } cases[] = {
        {60, 40, true, GP_INK_MEDIUM}, {31, 40, true, GP_INK_MEDIUM},
        {29, 40, true, GP_INK_MEMORY}, {60, 7, true, GP_INK_MEMORY},
        {60, 8, true, GP_INK_MEDIUM},  {60, 76, true, GP_INK_HIGH},
        {0, 40, true, GP_INK_MEMORY},  {60, 40, false, GP_INK_MEMORY},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_history history = {.tracks = NULL};
        struct gp_snapshot *s = NULL;
        for (unsigned at = 0; at <= 60; at++) {
            gp_snapshot_free(s);
            s = machine(1, at);
            struct gp_device *d = &s->devices[0];
            gp_value_set_int(device_value(d, GP_MEMORY_USED), cases[i].gib * GIB, s->mono_ns);
            gp_value_set_int(device_value(d, GP_UTILIZATION_GPU), at + cases[i].idle_s > 60 ? 0 : 9,
                             s->mono_ns);
            if (!cases[i].is_known)
                device_value(d, GP_UTILIZATION_GPU)->status = GP_STATUS_UNSUPPORTED;
            gp_history_add(&history, s, GP_NS_PER_S);
        }
        const struct gp_device *d = &s->devices[0];
        if (gp_gpu_memory_ink(d, gp_history_find(&history, d), s->mono_ns) != cases[i].ink)
            fail_msg("case %zu", i);
        gp_snapshot_free(s);
        gp_history_fini(&history);
    }
}

static void letters_have_their_inks(void **state)
{
    (void)state;
    static const struct {
        int64_t reasons, errors;
        bool is_pending, is_failed, needs_reset;
        const char *letters;
        enum gp_ink inks[2];
        uint64_t xid;
        int64_t orphans;
    } cases[] = {
        {0x04, 0, false, false, false, "P ", {GP_INK_DIM}},
        {0x80, 0, false, false, false, "P ", {GP_INK_HIGH}},
        {0x88, 0, false, false, false, "P ", {GP_INK_HIGH}},
        {0x20, 0, false, false, false, "T ", {GP_INK_HIGH}},
        {0x40, 0, false, false, false, "T ", {GP_INK_HIGH}},
        {0x08, 0, false, false, false, "H ", {GP_INK_HIGH}},
        {0x44, 0, false, false, false, "T ", {GP_INK_HIGH}},
        {0x10, 0, false, false, false, "S ", {GP_INK_DIM}},
        {0x00, 0, false, false, false, "  ", {0}},
        {0x04, 3, false, false, false, "EP", {GP_INK_CRITICAL, GP_INK_DIM}},
        {0x04, 0, true, false, false, "RP", {GP_INK_HIGH, GP_INK_DIM}},
        {0x04, 1, true, false, false, "ER", {GP_INK_CRITICAL, GP_INK_HIGH}},
        {0x20, 0, true, true, false, "RT", {GP_INK_CRITICAL, GP_INK_HIGH}},
        {0x20, 2, true, false, true, "RE", {GP_INK_CRITICAL, GP_INK_CRITICAL}},
        {0x04, 0, false, false, false, "XP", {GP_INK_CRITICAL, GP_INK_DIM}, 94, GIB - 1},
        {0x04, 0, false, false, false, "XO", {GP_INK_HIGH, GP_INK_HIGH}, 13, GIB},
        {0x20, 0, false, false, false, "TO", {GP_INK_HIGH, GP_INK_HIGH}, 0, GIB},
        {0x04, 0, false, false, false, "OP", {GP_INK_HIGH, GP_INK_DIM}, 0, 36 * (int64_t)GIB},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_snapshot *s = machine(1, 0);
        struct gp_device *d = &s->devices[0];
        struct gp_cells cells = {0, 0, NULL};
        assert_int_equal(gp_cells_resize(&cells, 3, 1), 0);
        gp_value_set_int(device_value(d, GP_REASONS_ACTIVE), cases[i].reasons, 1);
        gp_value_set_int(device_value(d, GP_ECC_UNCORRECTED_VOLATILE), cases[i].errors, 1);
        gp_value_set_text(device_value(d, GP_REMAPPED_PENDING), cases[i].is_pending ? "Yes" : "No",
                          1);
        gp_value_set_text(device_value(d, GP_REMAPPED_FAILURE), cases[i].is_failed ? "Yes" : "No",
                          1);
        gp_value_set_text(device_value(d, GP_RECOVERY_ACTION),
                          cases[i].needs_reset ? "Reset" : "None", 1);
        gp_value_set_int(device_value(d, GP_MEMORY_UNATTRIBUTED), cases[i].orphans, 1);
        struct gp_xids xids = {.count = 0};
        if (cases[i].xid)
            gp_xids_add(&xids, (struct gp_xid){0, cases[i].xid, s->wall_ns});
        const struct gp_flags_of of = {d, &xids, s->wall_ns};
        gp_gpu_draw_flags(&(struct gp_box){&cells, 0, 0, 3, 1}, 0, 0, 2, &of);
        for (int x = 0; x < 2; x++)
            if (cells.cells[x].cp != (uint32_t)cases[i].letters[x] ||
                cells.cells[x].ink != (uint32_t)cases[i].inks[x])
                fail_msg("case %zu, letter %d: %c, ink %d", i, x, cells.cells[x].cp,
                         cells.cells[x].ink);
        assert_int_equal(cells.cells[2].cp, ' '); /* a third one does not fit */
        gp_cells_fini(&cells);
        gp_snapshot_free(s);
    }
}

static void bars_are_exact_to_an_eighth(void **state)
{
    (void)state;
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 16);
    for (int permille = -1; permille <= 1000; permille += permille < 0 ? 1 : 20) {
        struct gp_cells cells = {0, 0, NULL};
        assert_int_equal(gp_cells_resize(&cells, 10, 1), 0);
        struct gp_box box = {&cells, 0, 0, 10, 1};
        gp_draw_bar(&box, 1, 0, 8, GP_INK_LOW, permille);
        gp_strbuf_addf(&all, "%4d ", permille);
        add_cells(&all, &cells);
        gp_cells_fini(&cells);
    }
    golden_check("top-bars.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
}

/* A track with these values, a second apart, the last of them just now. */
static void fill_track(struct gp_track *track, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct gp_track_sample sample = {.mono_ns = (NOW_S - count + 1 + i) * GP_NS_PER_S,
                                         .present = 1};
        sample.values[0] = values[i];
        gp_track_add(track, sample, GP_NS_PER_S);
    }
}

static void add_panel(struct gp_strbuf *sb, const struct gp_panel *panel,
                      const struct gp_span *span, int w, int h)
{
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, w, h), 0);
    struct gp_box box = {&cells, 0, 0, w, h};
    gp_draw_panel(&box, panel, span);
    add_cells(sb, &cells);
    gp_cells_fini(&cells);
}

/* Three samples that were not taken are no zeros, and neither is what the driver does not have. */
static void add_gaps(struct gp_strbuf *sb)
{
    static const struct {
        int w, h;
        bool blocks, is_absent;
    } sizes[] = {{30, 3, false, false}, {64, 5, false, false}, {64, 5, true, false},
                 {64, 5, false, true},  {30, 3, false, true},  {12, 2, false, true}};
    const float values[] = {4, 4, -1, -1, -1, 4, 6, 7, 0};
    struct gp_track track = {.id = 0};
    for (size_t i = 0; i < GP_ARRAY_LEN(values); i++) {
        struct gp_track_sample sample = {.mono_ns = (NOW_S - 8 + i) * GP_NS_PER_S,
                                         .present = values[i] >= 0 ? 1 : 0,
                                         .values = {values[i]}};
        gp_track_add(&track, sample, GP_NS_PER_S);
    }
    const struct gp_span span = {NOW_S * GP_NS_PER_S + GP_NS_PER_S / 2, GP_NS_PER_S, true};
    for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++) {
        const struct gp_panel panel = {.plot = {&track, 0, 8.4, GP_SERIES_MEMORY},
                                       .title = "held",
                                       .unit = "GiB",
                                       .label = "HELD",
                                       .now_ns = NOW_S * GP_NS_PER_S,
                                       .blocks = sizes[i].blocks,
                                       .is_absent = sizes[i].is_absent};
        gp_strbuf_addf(sb, "==== %s, %d x %d\n", sizes[i].is_absent ? "absent" : "gaps", sizes[i].w,
                       sizes[i].h);
        add_panel(sb, &panel, &span, sizes[i].w, sizes[i].h);
    }
    gp_track_fini(&track);
}

/* Of a lost GPU the total is unknown, too; its past keeps its place. */
static void the_past_keeps_its_scale(void **state)
{
    (void)state;
    struct gp_history history = {.tracks = NULL};
    struct gp_snapshot *s = machine(1, 0);
    struct gp_device *d = &s->devices[0];
    const double max = gp_series_max(d, GP_SERIES_MEMORY);
    assert_true(max > 0);
    assert_true(gp_track_max(NULL, d, GP_SERIES_MEMORY) >= max);
    gp_history_add(&history, s, GP_NS_PER_S);
    for (int lost = 0; lost < 2; lost++) {
        device_value(d, GP_MEMORY_TOTAL)->status = GP_STATUS_LOST;
        device_value(d, GP_MEMORY_USED)->status = GP_STATUS_LOST;
        assert_true(gp_series_max(d, GP_SERIES_MEMORY) <= 0);
        const double kept = gp_track_max(gp_history_find(&history, d), d, GP_SERIES_MEMORY);
        assert_true(kept >= max && kept <= max);
        assert_false(gp_series_is_absent(d, GP_SERIES_MEMORY));
        gp_history_add(&history, s, GP_NS_PER_S);
    }
    device_value(d, GP_NVLINK_RATE_RX)->status = GP_STATUS_UNSUPPORTED;
    assert_true(gp_series_is_absent(d, GP_SERIES_NVLINK));
    gp_snapshot_free(s);
    gp_history_fini(&history);
}

/* Words, an axis of time and the graph come and go with the size. */
static void graphs_of_every_size(void **state)
{
    (void)state;
    static const int widths[] = {1, 5, 6, 7, 16, 59, 60, 61};
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
    const float values[] = {0, 10, 25, 50, 75, 99.4F, 99.5F, 150, 100};
    struct gp_track track = {.id = 0};
    fill_track(&track, values, GP_ARRAY_LEN(values));
    const struct gp_span span = {NOW_S * GP_NS_PER_S + GP_NS_PER_S / 2, GP_NS_PER_S, false};
    for (int h = 1; h <= 7; h++)
        for (size_t i = 0; i < GP_ARRAY_LEN(widths); i++) {
            const struct gp_panel panel = {.plot = {&track, 0, 100, GP_SERIES_GPU},
                                           .title = "load",
                                           .unit = "%",
                                           .label = "LOAD",
                                           .now_ns = NOW_S * GP_NS_PER_S};
            gp_strbuf_addf(&all, "==== %d x %d\n", widths[i], h);
            add_panel(&all, &panel, &span, widths[i], h);
        }
    gp_track_fini(&track);
    add_gaps(&all);
    golden_check("top-graph-sizes.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
}

/* What is written beside the axis of a graph whose highest value is this one, and in words. */
static void axes_end_in_round_numbers(void **state)
{
    (void)state;
    static const struct {
        double highest;
        const char *unit, *axis, *words;
    } cases[] = {
        {0, "GB/s", "0.1", " 0 GB/s"},
        {0.09, "GB/s", "0.1", " 0.1 GB/s"},
        {0.15, "GB/s", "0.2", " 0.2 GB/s"},
        {0.3, "GB/s", "0.5", " 0.3 GB/s"},
        {0.7, "GB/s", "1.0", " 0.7 GB/s"},
        {1, "GB/s", "1.0", " 1.0 GB/s"},
        {1.5, "GB/s", "2.0", " 1.5 GB/s"},
        {2, "GB/s", "2.0", " 2.0 GB/s"},
        {2.5, "GB/s", "5.0", " 2.5 GB/s"},
        {5, "GB/s", "5.0", " 5.0 GB/s"},
        {5.5, "GB/s", "10│", " 5.5 GB/s"},
        {9.9, "GB/s", "10│", " 9.9 GB/s"},
        {10, "GB/s", "10│", " 10 GB/s"},
        {11, "GB/s", "20│", " 11 GB/s"},
        {100, "GB/s", "100│", " 100 GB/s"},
        {300, "", "500│", " 300"},
        {300, "%", "500%│", " 300%"},
        {5, "%", "5%│", " 5%"},
        {5, "", "5.0│", " 5.0"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
        const float values[] = {(float)cases[i].highest};
        struct gp_track track = {.id = 0};
        fill_track(&track, values, 1);
        const struct gp_span span = {NOW_S * GP_NS_PER_S, GP_NS_PER_S, false};
        const struct gp_panel panel = {.plot = {&track, 0, 0, GP_SERIES_PCIE},
                                       .title = "rate",
                                       .unit = cases[i].unit,
                                       .now_ns = NOW_S * GP_NS_PER_S};
        add_panel(&sb, &panel, &span, 70, 4);
        const char *axis = sb.buf + strspn(sb.buf, " ");
        const char *words = strstr(sb.buf, "now ");
        assert_non_null(words);
        words += strcspn(words, "\n") - strlen(cases[i].words);
        if (strncmp(axis, cases[i].axis, strlen(cases[i].axis)) != 0 ||
            strncmp(words, cases[i].words, strlen(cases[i].words)) != 0)
            fail_msg("case %zu:\n%s", i, sb.buf);
        gp_strbuf_fini(&sb);
        gp_track_fini(&track);
    }
}

/* The text from there to the next blank. */
static const char *word_from(const char *text, const char *what, char ret[], size_t size)
{
    const char *at = strstr(text, what);
    assert_non_null(at);
    (void)snprintf(ret, size, "%.*s", (int)strcspn(at, "\n "), at);
    return ret;
}

/* Round times before now, each below its column: 30 columns, of one or two steps. */
static void times_at_the_axis(void **state)
{
    (void)state;
    static const struct {
        uint64_t step_ms, back_ms;
        bool blocks;
        const char *times, *word;
    } cases[] = {
        {1000, 0, true, "└──────────────15s──────────now", "now"},
        {1000, 0, false, "└──────────────30s──────────now", "now"},
        {4000, 0, true, "└──────────────1m───────────now", "now"},
        {500, 0, false, "└──────────────15s──────────now", "now"},
        {100, 0, true, "└─────────2s────────────────now", "now"},
        {1000, 499, true, "└──────────────15s──────────now", "now"},
        {1000, 500, true, "└──────────────15s───────────1s", "now"},
        {1000, 1000, true, "└30s────────────15s──────────1s", "end"},
        {1000, 125000, true, "└───2m30s──────────2m15s───2m5s", "end"},
        {3600000, 0, true, "└─────1d──────────12h───────now", "now"},
        {100000000, 0, true, "└─32d───────────16d─────────now", "now"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
        const uint64_t now_ns = NOW_S * GP_NS_PER_S;
        const struct gp_span span = {now_ns - cases[i].back_ms * GP_NS_PER_MS,
                                     cases[i].step_ms * GP_NS_PER_MS, false};
        const struct gp_panel panel = {.title = "rate",
                                       .unit = "%",
                                       .label = "RATE",
                                       .plot.max = 100,
                                       .now_ns = now_ns,
                                       .blocks = cases[i].blocks};
        char times[256];
        add_panel(&sb, &panel, &span, 36, 6);
        if (strcmp(word_from(sb.buf, "└", times, sizeof(times)), cases[i].times) != 0)
            fail_msg("case %zu: %s", i, times);
        gp_strbuf_reset(&sb);
        add_panel(&sb, &panel, &span, 60, 6);
        if (!strstr(sb.buf, cases[i].word))
            fail_msg("case %zu:\n%s", i, sb.buf);
        gp_strbuf_fini(&sb);
    }
}

/* The fonts of the Linux console have halves of blocks, and no dots. */
static void characters_of_the_console(void **state)
{
    (void)state;
    static const uint32_t cases[][2] = {
        {'a', 'a'},       {0xe9, 0xe9},     {0x2500, 0x2500}, {0x2581, '_'},    {0x2582, '_'},
        {0x2583, 0x2584}, {0x2585, 0x2584}, {0x2586, 0x2584}, {0x2587, 0x2588}, {0x2588, 0x2588},
        {0x2589, 0x2588}, {0x258a, 0x2588}, {0x258b, 0x258c}, {0x258f, 0x258c}, {0x2591, 0x2591},
        {0x28c0, '_'},    {0x2840, '_'},    {0x28e0, 0x2584}, {0x28ff, 0x2588}, {0x2026, '~'},
        {0x203a, '>'},    {0x25b8, '>'},    {0x25be, 'v'},    {0x4e2d, 0x4e2d}, {0x2193, 0x2193},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        assert_int_equal(gp_cell_console(cases[i][0]), cases[i][1]);
}

/* ---- tables ---- */

/* Each key with what it does, as in htop and as in vi, and what stands in the help. */
static void every_key(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    for (int a = 0; a < GP_ACTION__COUNT; a++) {
        enum gp_action action = (enum gp_action)a;
        gp_strbuf_addf(&sb, "%d: %s | %s | first %x, %x", a, a ? gp_action_keys(action) : "",
                       a ? gp_action_help(action) : "", (unsigned)gp_action_key(action, false),
                       (unsigned)gp_action_key(action, true));
        if (gp_action_vi_letter(action))
            gp_strbuf_addf(&sb, " %c", gp_action_vi_letter(action));
        for (int vi = 0; vi < 2; vi++) {
            gp_strbuf_adds(&sb, vi ? " | vi" : " | keys");
            for (int key = -2; key < GP_KEY_ALT + 0x80; key++) {
                if (key == 0x100)
                    key = GP_KEY_UP - 1;
                if (key == GP_KEY_UNKNOWN + 2)
                    key = GP_KEY_ALT - 1;
                if (gp_key_action(key, vi) == action && (a || (key >= ' ' && key < 0x7f)))
                    gp_strbuf_addf(&sb, " %x", (unsigned)key);
            }
        }
        gp_strbuf_addc(&sb, '\n');
    }
    golden_check("top-keymap.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

static void every_theme(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    for (int t = 0; t < 2 * GP_THEME__COUNT; t++)
        for (int i = 0; i < GP_INK__COUNT; i++) {
            const struct gp_look *look = &gp_theme_looks((enum gp_theme)(t / 2), t % 2)[i];
            gp_strbuf_addf(&sb,
                           "theme %d%s ink %d: %d on %d, attributes %u; of eight %d; none %u\n",
                           t / 2, t % 2 ? " on light" : "", i, look->fg, look->bg, look->attrs,
                           look->fg_of_8, look->no_color);
        }
    golden_check("top-themes.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

static void every_preference(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_prefs prefs;
    gp_prefs_init(&prefs);
    for (int p = 0; p < GP_PREF__COUNT; p++) {
        const struct gp_pref_info *info = &gp_pref_table[p];
        gp_strbuf_addf(&sb, "%s, type %d, %s\n  %s\n ", info->name, (int)info->type,
                       info->choices ? info->choices : "anything", info->help);
        for (int i = 0; i < 12; i++) {
            gp_strbuf_addc(&sb, ' ');
            gp_pref_format(&sb, &prefs, (enum gp_pref)p);
            gp_pref_step(&prefs, (enum gp_pref)p, true);
        }
        gp_strbuf_adds(&sb, "\n  back:");
        for (int i = 0; i < 12; i++) {
            gp_strbuf_addc(&sb, ' ');
            gp_pref_step(&prefs, (enum gp_pref)p, false);
            gp_pref_format(&sb, &prefs, (enum gp_pref)p);
        }
        gp_strbuf_addc(&sb, '\n');
    }
    golden_check("top-preferences.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

/* Both ends of each range, and what lies beside them. */
static void characters_and_what_stands_for_them(void **state)
{
    (void)state;
    static const struct {
        uint32_t cp;
        char as;
    } cases[] = {
        {0x24ff, '?'}, {0x2500, '-'}, {0x2501, '-'}, {0x2502, '|'}, {0x2503, '|'}, {0x2504, '?'},
        {0x250b, '?'}, {0x250c, '+'}, {0x254b, '+'}, {0x254c, '?'}, {0x2580, '?'}, {0x2581, '.'},
        {0x2582, '.'}, {0x2583, ':'}, {0x2585, ':'}, {0x2586, '#'}, {0x2588, '#'}, {0x2589, '#'},
        {0x258b, '#'}, {0x258c, '|'}, {0x258f, '|'}, {0x2590, '?'}, {0x2591, ':'}, {0x2592, '?'},
        {0xb6, '?'},   {0xb7, '.'},   {0xb8, '?'},   {0x2025, '?'}, {0x2026, '~'}, {0x2027, '?'},
        {0x25b1, '?'}, {0x25b2, '^'}, {0x25b3, '?'}, {0x25bb, '?'}, {0x25bc, 'v'}, {0x25bd, '?'},
        {0x218f, '?'}, {0x2190, '<'}, {0x2191, '^'}, {0x2192, '>'}, {0x2193, 'v'}, {0x2194, '?'},
        {0xaf, '?'},   {0xb0, ' '},   {0xb1, '?'},   {0x25b7, '?'}, {0x25b8, '>'}, {0x25b9, '?'},
        {0x2012, '?'}, {0x2013, '-'}, {0x2014, '?'}, {0x2800, '?'}, {0x2801, '.'}, {0x2803, '.'},
        {0x2807, ':'}, {0x281f, ':'}, {0x283f, '#'}, {0x28ff, '#'}, {0x2900, '?'}, {0x7e, '~'},
        {0x7f, '?'},   {0x80, '?'},   {'a', 'a'},    {0, 0},        {0x2802, '.'}, {0x281e, ':'},
        {0x2264, '?'}, {0x2265, '>'}, {0x2266, '?'},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        if (gp_cell_ascii(cases[i].cp) != (uint32_t)cases[i].as)
            fail_msg("%x gives %x", (unsigned)cases[i].cp, (unsigned)gp_cell_ascii(cases[i].cp));
}

static void characters_of_every_length(void **state)
{
    (void)state;
    static const struct {
        uint32_t cp;
        const char *bytes;
    } cases[] = {{0x7f, "\x7f"},
                 {0x80, "\xc2\x80"},
                 {0x7ff, "\xdf\xbf"},
                 {0x800, "\xe0\xa0\x80"},
                 {0xffff, "\xef\xbf\xbf"},
                 {0x10000, "\xf0\x90\x80\x80"},
                 {0x10ffff, "\xf4\x8f\xbf\xbf"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(64);
        struct gp_cell cell = {cases[i].cp, GP_INK_PLAIN};
        struct gp_cells cells = {1, 1, &cell};
        cells_text(&sb, &cells);
        assert_memory_equal(sb.buf, cases[i].bytes, strlen(cases[i].bytes));
        assert_int_equal(sb.len, strlen(cases[i].bytes) + 1);
        gp_strbuf_fini(&sb);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_gpus_as_lines),
        cmocka_unit_test(odd_gpus_as_bars),
        cmocka_unit_test(odd_gpus_as_narrow_bars),
        cmocka_unit_test(odd_gpus_as_tiles),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(odd_gpus_are_told_in_lines),
        cmocka_unit_test(alerts_have_their_bounds),
        cmocka_unit_test(xids_are_told_for_less_than_an_hour),
        cmocka_unit_test(as_many_xids_as_are_kept),
        cmocka_unit_test(every_series_as_graph_of_both_kinds),
        cmocka_unit_test(loads_have_their_inks),
        cmocka_unit_test(memory_that_is_held_stands_out),
        cmocka_unit_test(letters_have_their_inks),
        cmocka_unit_test(bars_are_exact_to_an_eighth),
        cmocka_unit_test(graphs_of_every_size),
        cmocka_unit_test(axes_end_in_round_numbers),
        cmocka_unit_test(times_at_the_axis),
        cmocka_unit_test(the_past_keeps_its_scale),
        cmocka_unit_test(characters_of_the_console),
        cmocka_unit_test(every_key),
        cmocka_unit_test(every_theme),
        cmocka_unit_test(every_preference),
        cmocka_unit_test(characters_and_what_stands_for_them),
        cmocka_unit_test(characters_of_every_length),
    };
    return cmocka_run_group_tests_name("tui_look", tests, NULL, NULL);
}
