/* Who has reserved the GPUs: the fields reservation.* of devices. */
#include "sample/assemble_internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "sample/assemble.h"

#include <string.h>

enum { TEXT_BYTES = 4096 };

static const enum gp_metric fields[] = {GP_RESERVATION_USER, GP_RESERVATION_NAME,
                                        GP_RESERVATION_SINCE};

bool gp_wants_reservations(const struct gp_metric_set *metrics)
{
    bool any = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(fields); i++)
        any = any || gp_metric_set_has(metrics, fields[i]);
    return any;
}

/* The reservations of one GPU. */
struct found {
    size_t count;
    uint64_t since_ns; /* of the earliest */
    uint32_t pid;      /* of the only one */
    struct gp_strbuf users, names;
};

static void add_lease(struct found *found, const struct gp_lease *lease)
{
    const char *name = lease->name[0] ? lease->name : lease->command;
    if (found->count == 0 || lease->since_wall_ns < found->since_ns)
        found->since_ns = lease->since_wall_ns;
    found->pid = found->count == 0 ? lease->pid : 0;
    gp_strbuf_adds(&found->users, found->count > 0 ? ", " : "");
    gp_utf8_add_safe(&found->users, lease->user, strlen(lease->user), sizeof(lease->user));
    gp_strbuf_adds(&found->names, found->count > 0 ? ", " : "");
    gp_strbuf_adds(&found->names, name); /* safe since it was read */
    found->count++;
}

static void fill_device(struct gp_assembler *a, struct gp_device *device, struct found *found)
{
    static const char none[] = "not reserved";
    static const char nameless[] = "the UUID of the GPU is unknown";
    static const char unknown[] = "the reservations cannot be read";
    const struct gp_leases *leases = &a->shared.leases;
    struct gp_snapshot *snapshot = a->snapshot;
    const char *uuid = gp_device_text(device, GP_UUID, "");
    char since[GP_RFC3339_SIZE] = "";
    gp_strbuf_reset(&found->users);
    gp_strbuf_reset(&found->names);
    found->count = 0;
    found->pid = 0;
    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].state == GP_LEASE_HELD && gp_lease_has_gpu(&leases->items[i], uuid))
            add_lease(found, &leases->items[i]);
    device->reserved_by = found->pid;
    if (found->count > 0)
        gp_clock_rfc3339(found->since_ns, since);
    const char *const texts[] = {found->users.buf, found->names.buf, since};
    for (size_t i = 0; i < GP_ARRAY_LEN(fields); i++) {
        struct gp_value *v = gp_device_value(device->values, fields[i]);
        if (!gp_metric_set_has(&a->want.metrics, fields[i]))
            continue;
        if (a->shared.is_unknown)
            gp_value_set_absent(v, GP_STATUS_ERROR, unknown, snapshot->mono_ns);
        else if (found->count == 0)
            gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, *uuid ? none : nameless,
                                snapshot->mono_ns);
        else
            gp_value_set_text(v, gp_arena_strdup(&snapshot->arena, texts[i]), snapshot->mono_ns);
        if (found->count > 0 && !v->s)
            gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", snapshot->mono_ns);
    }
}

void gp_assemble_reservations(struct gp_assembler *a)
{
    struct found found = {.users = GP_STRBUF_INIT(TEXT_BYTES), .names = GP_STRBUF_INIT(TEXT_BYTES)};
    for (size_t i = 0; a->shared.wants_leases && i < a->snapshot->device_count; i++)
        fill_device(a, &a->snapshot->devices[i], &found);
    gp_strbuf_fini(&found.users);
    gp_strbuf_fini(&found.names);
}
