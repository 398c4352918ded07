/* What a consumer asks for: metrics, each in a unit of its choice, and how a value is written. */
#ifndef GP_OUT_FIELD_H
#define GP_OUT_FIELD_H

#include "model/metric.h"

struct gp_err;
struct gp_strbuf;

/* Another unit for a metric: "memory.used:GiB". */
struct gp_unit_choice {
    const char *name;
    enum gp_unit of;
    double factor; /* catalogue unit × factor */
    int decimals;
};

struct gp_field {
    enum gp_metric metric;
    const struct gp_unit_choice *unit; /* NULL: the catalogue's */
    bool identity;                     /* not asked for by name: tells of which GPU the row is */
};

struct gp_field_list {
    struct gp_field *fields; /* owned */
    size_t count;
};

/* Parses "index,memory.*,power.draw:kW": names, aliases, groups that end in ".*", "*" for all.
 * A group takes the metrics of the given scope; before "*" in rows of processes or lists stands
 * which GPU they belong to, unless that was asked for before. A single name may also be of a wider
 * one (a host metric in a device row). In rows of a list its prefix may be left out ("graphics" for
 * "supported_clocks.graphics"). GP_SCOPE_ANY takes all fields. GP_EUSAGE names the bad field;
 * GP_ENOMEM. */
int gp_field_list_parse(const char *text, enum gp_scope scope, struct gp_field_list *ret,
                        struct gp_err *err) GP_MUST_CHECK;
void gp_field_list_fini(struct gp_field_list *list);

/* Parses one "name[:unit]" of n bytes. */
int gp_field_parse(const char *text, size_t n, struct gp_field *ret,
                   struct gp_err *err) GP_MUST_CHECK;

enum gp_style {
    GP_STYLE_HUMAN, /* with its unit, bytes scaled; "N/A" */
    GP_STYLE_PLAIN, /* the number alone; "N/A" */
    GP_STYLE_CSV,   /* the number alone; "[N/A]" as nvidia-smi writes it */
};

/* Appends the value, or the words for its absence. */
void gp_field_format(struct gp_strbuf *sb, const struct gp_field *field, const struct gp_value *v,
                     enum gp_style style);

/* The name of the unit in which the field is written; "" for none. */
const char *gp_field_unit(const struct gp_field *field);

/* The number in the field's unit, rounded as it is printed; only for present values that are not
 * text. */
double gp_field_number(const struct gp_field *field, const struct gp_value *v);

/* Why a value is absent, or how old a stale one is, for JSON. now_ns: the time of the snapshot. */
void gp_field_reason(struct gp_strbuf *sb, const struct gp_value *v, uint64_t now_ns);

#endif
