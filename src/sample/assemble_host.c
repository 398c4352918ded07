/* The values of the machine: those of the driver, and those of /proc. */
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "proc/proc.h"
#include "sample/assemble_internal.h"

#include <string.h>

/* ---- from the driver ---- */

void gp_assembler_set_driver(struct gp_assembler *a, const struct gp_value host[GP_HOST__COUNT])
{
    gp_arena_fini(&a->driver_texts);
    for (int m = 0; m < GP_HOST__COUNT; m++) {
        struct gp_value *v = &a->driver_host[m];
        *v = host[m];
        if (v->status != GP_STATUS_OK || gp_metric_table[m].type != GP_TYPE_TEXT)
            continue;
        v->s = gp_arena_strdup(&a->driver_texts, host[m].s);
        if (!v->s)
            gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", gp_value_time_ns(v));
    }
}

bool gp_assemble_driver_host(struct gp_assembler *a, struct gp_snapshot *snapshot)
{
    for (int m = 0; m < GP_HOST__COUNT; m++) {
        snapshot->host[m] = a->driver_host[m];
        if (a->driver_host[m].status != GP_STATUS_OK || gp_metric_table[m].type != GP_TYPE_TEXT)
            continue;
        snapshot->host[m].s = gp_arena_strdup(&snapshot->arena, a->driver_host[m].s);
        if (!snapshot->host[m].s)
            return false;
    }
    return true;
}

/* ---- from /proc ---- */

static const struct {
    enum gp_metric metric;
    unsigned part; /* enum gp_proc_host_part */
} host_parts[] = {
    {GP_HOST_CPU, GP_PROC_HOST_CPU},
    {GP_HOST_CPU_COUNT, GP_PROC_HOST_CPU_COUNT},
    {GP_HOST_LOAD, GP_PROC_HOST_LOAD},
    {GP_HOST_MEMORY_TOTAL, GP_PROC_HOST_MEMORY},
    {GP_HOST_MEMORY_AVAILABLE, GP_PROC_HOST_MEMORY},
    {GP_HOST_SWAP_TOTAL, GP_PROC_HOST_SWAP},
    {GP_HOST_SWAP_USED, GP_PROC_HOST_SWAP},
    {GP_HOST_UPTIME, GP_PROC_HOST_UPTIME},
};

/* The values of the machine from /proc. */
static void fill_host(struct gp_assembler *a)
{
    struct gp_proc_host info;
    unsigned want = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(host_parts); i++)
        if (gp_metric_set_has(&a->want.metrics, host_parts[i].metric))
            want |= host_parts[i].part;
    if (want == 0)
        return;
    gp_proc_read_host(a->proc, want, a->want.host_every_ns, &info);
    struct gp_value *host = a->snapshot->host;
    uint64_t now = a->snapshot->mono_ns;
    gp_value_set_real(&host[GP_HOST_CPU], info.cpu_pct, now);
    gp_value_set_int(&host[GP_HOST_CPU_COUNT], (int64_t)info.cpu_count, now);
    gp_value_set_real(&host[GP_HOST_LOAD], info.load_1m, now);
    gp_value_set_int(&host[GP_HOST_MEMORY_TOTAL], (int64_t)info.memory_total_bytes, now);
    gp_value_set_int(&host[GP_HOST_MEMORY_AVAILABLE], (int64_t)info.memory_available_bytes, now);
    gp_value_set_int(&host[GP_HOST_SWAP_TOTAL], (int64_t)info.swap_total_bytes, now);
    gp_value_set_int(&host[GP_HOST_SWAP_USED], (int64_t)info.swap_used_bytes, now);
    gp_value_set_int(&host[GP_HOST_UPTIME], (int64_t)info.uptime_s, now);
    for (size_t i = 0; i < GP_ARRAY_LEN(host_parts); i++) {
        unsigned part = host_parts[i].part;
        struct gp_value *v = &host[host_parts[i].metric];
        uint64_t read_ns = info.read_ns[__builtin_ctz(part)];
        if (!(info.known & part))
            gp_value_set_absent(v, want & part ? GP_STATUS_UNSUPPORTED : GP_STATUS_NONE, NULL, now);
        else if (read_ns < now) /* in an earlier sample */
            gp_value_set_time(v, read_ns);
    }
}

int gp_assemble_host(struct gp_assembler *a)
{
    struct gp_snapshot *snapshot = a->snapshot;
    uint64_t now = snapshot->mono_ns;
    struct gp_value *host = snapshot->host;
    const char *name = gp_proc_host_name(a->proc);
    char time[GP_RFC3339_SIZE];
    gp_clock_rfc3339(snapshot->wall_ns, time);
    gp_value_set_text(&host[GP_TIMESTAMP], gp_arena_strdup(&snapshot->arena, time), now);
    char room[256] = "";
    struct gp_strbuf safe = GP_STRBUF_ON(room, 4096);
    gp_utf8_add_safe(&safe, name, strlen(name), sizeof(room));
    gp_value_set_text(&host[GP_HOST_NAME],
                      safe.error ? NULL : gp_arena_strdup(&snapshot->arena, safe.buf), now);
    gp_strbuf_fini(&safe);
    gp_value_set_int(&host[GP_COUNT], a->gpu_count, now);
    fill_host(a);
    return host[GP_TIMESTAMP].s && host[GP_HOST_NAME].s ? 0 : GP_ENOMEM;
}
