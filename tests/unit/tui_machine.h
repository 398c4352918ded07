/* Machines that the live monitor is shown, and its picture as text. */
#ifndef GP_TEST_TUI_MACHINE_H
#define GP_TEST_TUI_MACHINE_H

#include "unit.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/cells.h"
#include "tui/keys.h"
#include "tui/task.h"
#include "tui/ui.h"

#include <stdio.h>

enum { NOW_S = 1000, GIB = 1 << 30 };

/* A screen gives up on its task after a moment, in which a busy machine may not even have started
 * it. Here the tasks do end (by the linker's --wrap). */
bool __real_gp_task_end(struct gp_task *task, int patience_ms);
bool __wrap_gp_task_end(struct gp_task *task, int patience_ms);
bool __wrap_gp_task_end(struct gp_task *task, int patience_ms)
{
    return __real_gp_task_end(task, patience_ms > 0 ? 60 * 1000 : 0);
}

/* Appends the frame as lines of text, without trailing blanks. */
static inline void cells_text(struct gp_strbuf *sb, const struct gp_cells *cells)
{
    for (int y = 0; y < cells->h; y++) {
        const struct gp_cell *row = cells->cells + (size_t)y * (size_t)cells->w;
        int end = cells->w;
        while (end > 0 && row[end - 1].cp == ' ')
            end--;
        for (int x = 0; x < end; x++)
            if (row[x].cp)
                gp_utf8_add(sb, row[x].cp);
        gp_strbuf_addc(sb, '\n');
    }
}

static inline struct gp_value *device_value(struct gp_device *d, enum gp_metric m)
{
    return &d->values[m - GP_DEVICE__FIRST];
}

static inline struct gp_value *process_value(struct gp_process *p, enum gp_metric m)
{
    return &p->cells[m - GP_PROCESS__FIRST];
}

static inline void fill_gpu(struct gp_device *d, unsigned index, uint64_t now_ns)
{
    static const struct {
        enum gp_metric metric;
        int64_t n;
    } numbers[] = {
        {GP_MEMORY_TOTAL, INT64_C(80) * GIB},
        {GP_MEMORY_RESERVED, INT64_C(2) * GIB},
        {GP_UTILIZATION_MEMORY, 34},
        {GP_UTILIZATION_ENCODER, 5},
        {GP_UTILIZATION_DECODER, 0},
        {GP_TEMPERATURE_MEMORY, 61},
        {GP_THRESHOLD_SLOWDOWN, 87},
        {GP_CLOCK_SM, 1980},
        {GP_CLOCK_MEMORY, 2619},
        {GP_PCIE_GEN, 5},
        {GP_PCIE_GEN_MAX, 5},
        {GP_PCIE_WIDTH, 16},
        {GP_PCIE_WIDTH_MAX, 16},
    };
    d->index = index;
    d->status = GP_STATUS_OK;
    d->status_text = "";
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        gp_value_set_int(device_value(d, numbers[i].metric), numbers[i].n, now_ns);
    gp_value_set_text(device_value(d, GP_NAME), "NVIDIA H100 80GB HBM3", now_ns);
    gp_value_set_text(device_value(d, GP_PSTATE), "P0", now_ns);
    gp_value_set_int(device_value(d, GP_MEMORY_USED), (int64_t)(index % 8 * 11) * GIB, now_ns);
    gp_value_set_int(device_value(d, GP_UTILIZATION_GPU), index * 13 % 101, now_ns);
    gp_value_set_int(device_value(d, GP_TEMPERATURE_GPU), 40 + index * 7 % 50, now_ns);
    gp_value_set_int(device_value(d, GP_REASONS_ACTIVE), index % 4 == 3 ? 4 : 0, now_ns);
    gp_value_set_real(device_value(d, GP_POWER_DRAW), 100.0 + index * 37 % 600, now_ns);
    gp_value_set_real(device_value(d, GP_POWER_LIMIT_ENFORCED), 700, now_ns);
}

static inline void fill_process(struct gp_process *p, size_t device, int64_t pid, uint64_t now_ns)
{
    static const char *const users[] = {"alice", "bob", "carol"};
    static const char *const commands[] = {"python train.py --config llama-8b.yaml",
                                           "vllm serve Qwen", "/usr/lib/xorg/Xorg :0",
                                           "日本語 モデル"};
    p->device = (uint32_t)device;
    gp_value_set_int(process_value(p, GP_PID), pid, now_ns);
    gp_value_set_text(process_value(p, GP_PROCESS_TYPE), "C", now_ns);
    gp_value_set_text(process_value(p, GP_PROCESS_USER), users[pid % 3], now_ns);
    gp_value_set_text(process_value(p, GP_PROCESS_COMMAND), commands[pid % 4], now_ns);
    gp_value_set_text(process_value(p, GP_PROCESS_START), "2026-11-20T12:04:05.000+01:00", now_ns);
    gp_value_set_int(process_value(p, GP_PROCESS_MEMORY), pid % 9 * GIB, now_ns);
    gp_value_set_int(process_value(p, GP_PROCESS_SM), pid % 100, now_ns);
    gp_value_set_int(process_value(p, GP_PROCESS_RSS), pid % 50 * GIB / 8, now_ns);
    gp_value_set_real(process_value(p, GP_PROCESS_CPU), (double)(pid % 400), now_ns);
}

/* Processes are grouped by device. */
static inline void find_first_processes(struct gp_snapshot *s)
{
    for (size_t i = s->process_count; i-- > 0;) {
        struct gp_device *d = &s->devices[s->processes[i].device];
        d->first_process = i;
        d->process_count++;
    }
}

/* `gpus` GPUs with two processes each, one of them on the next GPU, too. */
static inline struct gp_snapshot *machine(size_t gpus, unsigned tick)
{
    struct gp_snapshot *s = calloc(1, sizeof(*s));
    uint64_t now_ns = (NOW_S + tick) * GP_NS_PER_S;
    s->mono_ns = now_ns;
    s->wall_ns = UINT64_C(1795183445123) * GP_NS_PER_MS;
    s->devices = gp_arena_alloc(&s->arena, gpus + 1, sizeof(*s->devices));
    s->processes = gp_arena_alloc(&s->arena, 3 * gpus + 1, sizeof(*s->processes));
    for (size_t i = 0; i <= 3 * gpus; i++)
        s->processes[i].cells =
            gp_arena_alloc(&s->arena, GP_PROCESS__COUNT, sizeof(struct gp_value));
    gp_value_set_text(&s->host[GP_HOST_NAME], "node1", now_ns);
    gp_value_set_text(&s->host[GP_DRIVER_VERSION], "580.95.05", now_ns);
    gp_value_set_text(&s->host[GP_CUDA_VERSION], "13.0", now_ns);
    gp_value_set_real(&s->host[GP_HOST_CPU], 12.3, now_ns);
    gp_value_set_real(&s->host[GP_HOST_LOAD], 3.21, now_ns);
    gp_value_set_int(&s->host[GP_HOST_CPU_COUNT], 64, now_ns);
    gp_value_set_int(&s->host[GP_HOST_MEMORY_TOTAL], INT64_C(512) * GIB, now_ns);
    gp_value_set_int(&s->host[GP_HOST_MEMORY_AVAILABLE], INT64_C(392) * GIB, now_ns);
    gp_value_set_int(&s->host[GP_HOST_SWAP_TOTAL], INT64_C(8) * GIB, now_ns);
    gp_value_set_int(&s->host[GP_HOST_SWAP_USED], INT64_C(1) * GIB, now_ns);
    for (size_t g = 0; g < gpus; g++) {
        struct gp_device *d = &s->devices[s->device_count++];
        fill_gpu(d, (unsigned)g, now_ns);
        gp_value_set_int(device_value(d, GP_UTILIZATION_GPU), (int64_t)(g * 13 + tick * 7) % 101,
                         now_ns);
        fill_process(&s->processes[s->process_count++], g, 1000 + 2 * (int64_t)g, now_ns);
        fill_process(&s->processes[s->process_count++], g, 1001 + 2 * (int64_t)g, now_ns);
        if (g + 1 < gpus)
            fill_process(&s->processes[s->process_count++], g + 1, 1000 + 2 * (int64_t)g, now_ns);
    }
    find_first_processes(s);
    if (gpus >= 8) { /* one that does not answer */
        struct gp_device *d = &s->devices[5];
        d->status = GP_STATUS_TIMEOUT;
        d->status_text = "no answer for 12 s (nvmlDeviceGetPowerUsage)";
    }
    return s;
}

/* A monitor that has watched for some ticks. */
static inline void watch(struct gp_ui *ui, size_t gpus)
{
    gp_ui_init(ui);
    for (unsigned tick = 0; tick < 40; tick++)
        gp_ui_take(ui, machine(gpus, tick), GP_NS_PER_MS);
}

static inline void press(struct gp_ui *ui, const char *keys)
{
    for (; *keys; keys++)
        (void)gp_ui_key(ui, *keys == '\n' ? GP_KEY_ENTER : *keys);
}

static inline const char *picture(struct gp_ui *ui, int w, int h)
{
    static struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, w, h), 0);
    gp_ui_draw(ui, &cells, "14:02");
    gp_strbuf_reset(&sb);
    cells_text(&sb, &cells);
    gp_cells_fini(&cells);
    return sb.buf;
}

static inline void check_has(struct gp_ui *ui, const char *words)
{
    const char *text = picture(ui, 100, 30);
    if (!strstr(text, words))
        fail_msg("'%s' is not in\n%s", words, text);
}

/* The line of the picture in which the words are. */
static inline const char *line_with(struct gp_ui *ui, int w, int h, const char *words)
{
    static char line[1024];
    const char *text = picture(ui, w, h);
    const char *at = strstr(text, words);
    if (!at)
        fail_msg("'%s' is not in\n%s", words, text);
    while (at > text && at[-1] != '\n')
        at--;
    (void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

#endif
