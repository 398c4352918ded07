#include "out/reservation.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"

#include <string.h>

static const struct {
    const char *key;
    enum gp_metric metric;
} fields[] = {
    {"user", GP_RESERVATION_USER}, {"name", GP_RESERVATION_NAME}, {"since", GP_RESERVATION_SINCE}};

void gp_reservation_want(struct gp_metric_set *metrics)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(fields); i++)
        gp_metric_set_add(metrics, fields[i].metric);
}

bool gp_is_reserved(const struct gp_device *device)
{
    return gp_device_text(device, GP_RESERVATION_USER, NULL);
}

void gp_reservation_add(struct gp_strbuf *sb, const struct gp_device *device, size_t columns)
{
    const char *name = gp_device_text(device, GP_RESERVATION_NAME, "");
    gp_strbuf_addf(sb, "reserved by %s", gp_device_text(device, GP_RESERVATION_USER, "?"));
    if (!*name)
        return;
    gp_strbuf_adds(sb, " (");
    gp_utf8_add_safe(sb, name, strlen(name), columns > 0 ? columns : strlen(name) + 1);
    gp_strbuf_addc(sb, ')');
}

json_t *gp_reservation_object(const struct gp_device *device)
{
    if (!gp_is_reserved(device))
        return json_null();
    json_t *object = json_object();
    for (size_t i = 0; i < GP_ARRAY_LEN(fields); i++)
        (void)json_object_set_new(object, fields[i].key,
                                  json_string(gp_device_text(device, fields[i].metric, "")));
    return object;
}

json_t *gp_reservation_list(const struct gp_snapshot *snapshot)
{
    json_t *list = json_array();
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        char gpu[GP_DEVICE_LABEL_SIZE];
        if (!gp_is_reserved(device))
            continue;
        gp_device_label(device, gpu);
        json_t *object = json_pack("{s:s}", "gpu", gpu);
        (void)json_object_update_new(object, gp_reservation_object(device));
        (void)json_array_append_new(list, object);
    }
    return list;
}
