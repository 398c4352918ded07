/* Fields of an output: metrics with a unit, and how their values are written. */
#ifndef GP_OUT_FIELD_H
#define GP_OUT_FIELD_H

#include "model/metric.h"

struct gp_err;
struct gp_strbuf;

/* An alternative unit of a metric: "memory.used:GiB". */
struct gp_unit_choice {
    const char *name;
    enum gp_unit of;
    double factor; /* in terms of the catalog's unit */
    int decimals;
};

struct gp_field {
    enum gp_metric metric;
    const struct gp_unit_choice *unit; /* NULL: the catalog's unit */
    bool identity;                     /* added implicitly, to identify the GPU of the row */
};

struct gp_field_list {
    struct gp_field *fields; /* owned */
    size_t count;
};

/* Parses "index,memory.*,power.draw:kW": names, aliases, groups that end in ".*", and "*" for all.
 *
 * A group selects metrics of the given scope. "*" in rows of processes or lists also adds the
 * fields that identify the GPU, unless they were given before. A single name may belong to a wider
 * scope (a host metric in a device row). In rows of a list the prefix is optional ("graphics" for
 * "supported_clocks.graphics"). In rows of processes, "name" is "process_name". GP_SCOPE_ANY
 * accepts all fields. GP_EUSAGE names the bad field. May also fail with GP_ENOMEM. */
int gp_field_list_parse(const char *text, enum gp_scope scope, struct gp_field_list *ret,
                        struct gp_err *err) GP_MUST_CHECK;
/* What is read if no fields are named: of GPUs. */
extern const char gp_field_usual[];

/* Why a value is missing or old, as in JSON; "" if it is neither. Constant. */
const char *gp_status_reason(enum gp_status status);

/* The fields of one scope, after the index and UUID of the GPU in rows of processes and lists; none
 * if there is no field of this scope. GP_ENOMEM. */
int gp_field_list_of(const struct gp_field_list *list, enum gp_scope scope,
                     struct gp_field_list *ret) GP_MUST_CHECK;
void gp_field_list_fini(struct gp_field_list *list);

/* Parses one "name[:unit]" of n bytes. */
int gp_field_parse(const char *text, size_t n, struct gp_field *ret,
                   struct gp_err *err) GP_MUST_CHECK;

enum gp_style {
    GP_STYLE_HUMAN, /* with unit, bytes scaled; "N/A" */
    GP_STYLE_PLAIN, /* only the number; "N/A" */
    GP_STYLE_CSV,   /* only the number; "[N/A]", like nvidia-smi */
};

/* Appends the value, or the placeholder of an absent one. */
void gp_field_format(struct gp_strbuf *sb, const struct gp_field *field, const struct gp_value *v,
                     enum gp_style style);

/* The name of the field's unit; "" if it has none. */
const char *gp_field_unit(const struct gp_field *field);

/* The number in the field's unit, rounded as printed. The value must be present and not a text. */
double gp_field_number(const struct gp_field *field, const struct gp_value *v);

/* Why a value is absent, or how old a stale one is, for JSON. now_ns is the time of the
 * snapshot. */
void gp_field_reason(struct gp_strbuf *sb, const struct gp_value *v, uint64_t now_ns);

#endif
