#include "model/event.h"

#include "base/cli.h"
#include "base/err.h"

#include <string.h>

const char *const gp_event_group_names[GP_EVENT_GROUP__COUNT] = {
    [GP_EVENT_GROUP_STREAM] = "stream",   [GP_EVENT_GROUP_HEALTH] = "health",
    [GP_EVENT_GROUP_STATE] = "state",     [GP_EVENT_GROUP_FREQUENT] = "frequent",
    [GP_EVENT_GROUP_PROCESS] = "process",
};

const struct gp_event_info gp_event_table[GP_EVENT__COUNT] = {
#define EVENT(id, name, group, help) {name, help, GP_EVENT_GROUP_##group},
#include "model/event.def"
#undef EVENT
};

gp_event_kinds gp_event_group_kinds(enum gp_event_group group)
{
    gp_event_kinds kinds = 0;
    for (int k = 0; k < GP_EVENT__COUNT; k++)
        if (gp_event_table[k].group == group)
            kinds |= gp_event_bit((enum gp_event_kind)k);
    return kinds;
}

gp_event_kinds gp_event_default_kinds(void)
{
    return gp_event_group_kinds(GP_EVENT_GROUP_HEALTH) | gp_event_group_kinds(GP_EVENT_GROUP_STATE);
}

gp_event_kinds gp_event_all_kinds(void)
{
    return (UINT64_C(1) << GP_EVENT__COUNT) - 1;
}

/* The choices of --kind: kinds, groups and "all". */
static const char *choice(const void *ctx, size_t i)
{
    (void)ctx;
    if (i < GP_EVENT__COUNT)
        return gp_event_table[i].name;
    i -= GP_EVENT__COUNT;
    if (i < GP_EVENT_GROUP__COUNT)
        return gp_event_group_names[i];
    return i == GP_EVENT_GROUP__COUNT ? "all" : NULL;
}

static gp_event_kinds chosen(size_t i)
{
    if (i < GP_EVENT__COUNT)
        return gp_event_bit((enum gp_event_kind)i);
    i -= GP_EVENT__COUNT;
    if (i < GP_EVENT_GROUP__COUNT)
        return gp_event_group_kinds((enum gp_event_group)i);
    return gp_event_all_kinds();
}

int gp_event_kinds_parse(const char *list, gp_event_kinds *ret, struct gp_err *err)
{
    gp_event_kinds kinds = 0;
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        size_t i = 0;
        const char *name;
        while ((name = choice(NULL, i)) && (strlen(name) != n || memcmp(name, at, n) != 0))
            i++;
        if (!name) {
            char word[32] = "";
            memcpy(word, at, n < sizeof(word) - 1 ? n : sizeof(word) - 1);
            return gp_err_set(err, GP_EUSAGE,
                              "unknown event kind '%s'%s; gpulse events --list shows all", word,
                              gp_cli_hint(word, choice, NULL).text);
        }
        kinds |= chosen(i);
        at += n;
        if (!*at)
            break;
    }
    *ret = kinds;
    return 0;
}

/* ---- Xid ---- */

#define FAULT_APPLICATION "application"
#define FAULT_DRIVER "driver"
#define FAULT_HARDWARE "hardware"
#define FAULT_UNCLEAR "unclear"

const struct gp_xid_info *gp_xid_find(uint64_t number)
{
    static const struct {
        unsigned first, last;
        struct gp_xid_info info;
    } table[] = {
#define XID(first, last, fault, advice, words) {first, last, {FAULT_##fault, advice, words}},
#include "model/xid.def"
#undef XID
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(table); i++)
        if (number >= table[i].first && number <= table[i].last)
            return &table[i].info;
    return NULL;
}
