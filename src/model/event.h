/* GPU events, from any source. The kinds (event.def) and the meanings of Xid errors (xid.def) are
 * data. */
#ifndef GP_MODEL_EVENT_H
#define GP_MODEL_EVENT_H

#include "base/util.h"

struct gp_err;

enum gp_event_group {
    GP_EVENT_GROUP_STREAM,
    GP_EVENT_GROUP_HEALTH,
    GP_EVENT_GROUP_STATE,
    GP_EVENT_GROUP_FREQUENT,
    GP_EVENT_GROUP_PROCESS,
    GP_EVENT_GROUP__COUNT
};
extern const char *const gp_event_group_names[GP_EVENT_GROUP__COUNT];

enum gp_event_kind {
#define EVENT(id, name, group, help) GP_EVENT_##id,
#include "model/event.def"
#undef EVENT
    GP_EVENT__COUNT
};

struct gp_event_info {
    const char *name;
    const char *help;
    enum gp_event_group group;
};

extern const struct gp_event_info gp_event_table[GP_EVENT__COUNT];

/* A set of kinds. */
typedef uint64_t gp_event_kinds;
_Static_assert(GP_EVENT__COUNT <= 64, "a set of kinds has 64 bits");

static inline gp_event_kinds gp_event_bit(enum gp_event_kind kind)
{
    return UINT64_C(1) << kind;
}

/* All kinds of a group. */
gp_event_kinds gp_event_group_kinds(enum gp_event_group group);

/* What is reported unless a user requests other kinds: errors and changes of state. */
gp_event_kinds gp_event_default_kinds(void);

/* All kinds. */
gp_event_kinds gp_event_all_kinds(void);

/* Parses a comma-separated list of kinds, groups and "all". GP_EUSAGE suggests the nearest name. */
int gp_event_kinds_parse(const char *list, gp_event_kinds *ret, struct gp_err *err) GP_MUST_CHECK;

enum { GP_EVENT_NO_INSTANCE = -1 };

struct gp_event {
    enum gp_event_kind kind;
    bool from_driver; /* otherwise found by comparing readings, or about the stream */
    uint64_t wall_ns; /* when it was delivered or found */
    uint64_t mono_ns;
    bool has_gpu;
    unsigned index;
    char uuid[96]; /* "" if unknown */
    char pci[24];
    int gpu_instance; /* GP_EVENT_NO_INSTANCE: the whole GPU */
    int compute_instance;
    uint64_t number;  /* Xid, pid, or number of missed events; otherwise 0 */
    uint64_t from_ns; /* start of a gap of unknown size, in wall-clock time; otherwise 0 */
    uint64_t to_ns;
    bool numeric; /* `was` and `now` are numbers */
    char was[64]; /* "" if unknown */
    char now[64];
    char text[240]; /* for people: safe, and complete except for the GPU */
};

/* The meaning of an Xid error. */
struct gp_xid_info {
    const char *fault;  /* "application", "driver", "hardware" or "unclear" */
    const char *advice; /* the fix; "" for none */
    const char *words;
};

/* NULL if the number is not in the table. */
const struct gp_xid_info *gp_xid_find(uint64_t number);

#endif
