#include "doctor/readers/gpuset.h"

#include "base/strbuf.h"
#include "out/field.h"

#include <string.h>
#include <strings.h>

void gp_gpuset_add(struct gp_gpuset *set, const struct gp_device *gpu)
{
    if (set->count < GP_GPUSET_MAX)
        set->gpus[set->count++] = gpu;
}

void gp_gpuset_answered(struct gp_gpuset *set, const struct gp_exam *exam)
{
    const struct gp_snapshot *s = exam->snapshot;
    set->count = 0;
    for (size_t i = 0; s && i < s->device_count; i++)
        if (!s->devices[i].is_mig && s->devices[i].status == GP_STATUS_OK)
            gp_gpuset_add(set, &s->devices[i]);
}

const struct gp_device *gp_gpuset_device_at(const struct gp_exam *exam, const char *bus_id)
{
    const struct gp_snapshot *s = exam->snapshot;
    for (size_t i = 0; s && i < s->device_count; i++) {
        const char *bus = gp_device_text(&s->devices[i], GP_PCI_BUS_ID, "");
        if (!s->devices[i].is_mig && strlen(bus) > 4 && strcasecmp(bus + 4, bus_id) == 0)
            return &s->devices[i]; /* its domain has 8 digits */
    }
    return NULL;
}

/* Returns the end of the run of consecutive numbers that begins at `first`. */
static size_t run_end(const struct gp_gpuset *set, size_t first)
{
    size_t last = first;
    while (last + 1 < set->count && set->gpus[last + 1]->index == set->gpus[last]->index + 1)
        last++;
    return last > first + 1 ? last : first; /* two are listed one by one */
}

const char *gp_gpuset_names(struct gp_exam *exam, const struct gp_gpuset *set)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(2048);
    gp_strbuf_adds(&sb, set->count == 1 ? "GPU " : "GPUs ");
    for (size_t i = 0; i < set->count; i++) {
        size_t last = run_end(set, i);
        if (i > 0)
            gp_strbuf_adds(&sb, last + 1 == set->count ? " and " : ", ");
        gp_strbuf_addf(&sb, "%u", set->gpus[i]->index);
        if (last > i)
            gp_strbuf_addf(&sb, "-%u", set->gpus[last]->index);
        i = last;
    }
    const char *names = gp_exam_text(exam, "%s", sb.buf);
    gp_strbuf_fini(&sb);
    return names;
}

const char *gp_gpuset_list(struct gp_exam *exam, const struct gp_gpuset *set)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(2048);
    for (size_t i = 0; i < set->count; i++)
        gp_strbuf_addf(&sb, "%s%u", i > 0 ? "," : "", set->gpus[i]->index);
    const char *list = gp_exam_text(exam, "%s", sb.buf);
    gp_strbuf_fini(&sb);
    return list;
}

const char *gp_gpuset_label(struct gp_exam *exam, const struct gp_device *gpu)
{
    const char *bus = gp_device_text(gpu, GP_PCI_BUS_ID, "");
    const char *name = gp_device_text(gpu, GP_NAME, "");
    const char *comma = bus[0] && name[0] ? ", " : "";
    if (!bus[0] && !name[0])
        return gp_exam_text(exam, "GPU %u", gpu->index);
    return gp_exam_text(exam, "GPU %u (%s%s%s)", gpu->index, bus, comma, name);
}

static void add_value(struct gp_strbuf *sb, const struct gp_exam *exam, const struct gp_device *gpu,
                      enum gp_metric m)
{
    const struct gp_field field = {.metric = m};
    gp_strbuf_addf(sb, "%s is ", GP_METRIC_NAME(m));
    gp_field_format(sb, &field, gp_snapshot_value(exam->snapshot, gpu, NULL, m), GP_STYLE_HUMAN);
}

void gp_gpuset_evidence(struct gp_exam *exam, const struct gp_gpuset *set,
                        const enum gp_metric *metrics, size_t count)
{
    for (size_t i = 0; i < set->count && i < GP_GPUSET_SHOWN; i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(2048);
        for (size_t m = 0; m < count; m++) {
            gp_strbuf_adds(&sb, m > 0 ? ", " : "");
            add_value(&sb, exam, set->gpus[i], metrics[m]);
        }
        gp_exam_evidence(exam, gp_gpuset_label(exam, set->gpus[i]), "%s", sb.buf);
        gp_strbuf_fini(&sb);
    }
    if (set->count > GP_GPUSET_SHOWN)
        gp_exam_evidence(exam, "", "and %zu more", set->count - GP_GPUSET_SHOWN);
}
