#include "smi/monitor.h"

#include "base/parse.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "smi/monitor_columns.h"
#include "smi/processes.h"
#include "source/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COLUMNS = 64 };

void gp_smi_monitor_init(struct gp_smi_monitor *m, enum gp_smi_monitor_kind kind)
{
    *m = (struct gp_smi_monitor){.kind = kind};
    memcpy(m->groups, gp_smi_monitor_views[kind].groups, strlen(gp_smi_monitor_views[kind].groups));
}

const char *gp_smi_monitor_default(enum gp_smi_monitor_kind kind)
{
    return gp_smi_monitor_views[kind].groups;
}

static bool has_group(const struct gp_smi_monitor_view *view, char letter)
{
    for (size_t i = 0; i < view->column_count; i++)
        if (view->columns[i].group == letter)
            return letter != GP_SMI_FRONT && letter != GP_SMI_BACK;
    return false;
}

bool gp_smi_monitor_select(struct gp_smi_monitor *m, const char *letters, struct gp_strbuf *words)
{
    size_t n = 0;
    bool known = *letters;
    for (; known && *letters; letters++) {
        known = has_group(&gp_smi_monitor_views[m->kind], *letters);
        if (known && !memchr(m->groups, *letters, n))
            m->groups[n++] = *letters;
    }
    m->groups[n] = '\0';
    if (!known)
        gp_strbuf_adds(words, "Failed to find any metric to display\n");
    return known;
}

bool gp_smi_monitor_stamp(struct gp_smi_monitor *m, const char *letters, struct gp_strbuf *words)
{
    m->date = strchr(letters, 'D') != NULL;
    m->time = strchr(letters, 'T') != NULL;
    bool known = *letters && letters[strspn(letters, "DT")] == '\0';
    if (!known)
        gp_strbuf_adds(words, "Error in parsing options\n");
    return known;
}

bool gp_smi_monitor_format(struct gp_smi_monitor *m, const char *list, struct gp_strbuf *words)
{
    const struct {
        const char *word;
        bool *flag;
    } flags[] = {{"csv", &m->csv}, {"nounit", &m->no_unit}, {"noheader", &m->no_header}};
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        bool known = false;
        for (size_t i = 0; i < GP_ARRAY_LEN(flags); i++)
            if (strlen(flags[i].word) == n && strncmp(flags[i].word, p, n) == 0)
                known = *flags[i].flag = true;
        if (!known) {
            gp_strbuf_addf(words,
                           "%.*s is not a recognized format option\n"
                           "Error parsing format options\n",
                           (int)n, p);
            return false;
        }
        p += n + (p[n] == ',');
    }
    return *list;
}

bool gp_smi_monitor_gpm(struct gp_smi_monitor *m, const char *list, struct gp_strbuf *words)
{
    const char *strange = &list[strspn(list, "0123456789,")];
    if (*strange)
        gp_strbuf_addf(words, "Found offending character: %c\n", *strange);
    for (const char *p = list; *p && words->len == 0;) {
        char *end;
        unsigned long number = strtoul(p, &end, 10);
        if (number > GP_SMI_GPM_HIGHEST)
            gp_strbuf_addf(words, "Metric value too high: %.*s\n", (int)(end - p), p);
        else if (end > p && m->gpm_count == GP_SMI_GPM_COLUMNS)
            gp_strbuf_addf(words, "More than %d metrics cannot be shown\n", GP_SMI_GPM_COLUMNS);
        else if (end > p)
            m->gpm[m->gpm_count++] = (uint8_t)number;
        p = end + (*end == ',');
    }
    if (words->len > 0)
        gp_strbuf_adds(words, "Could not parse GPM metrics\n");
    return words->len == 0;
}

void gp_smi_monitor_add_groups(struct gp_strbuf *sb, enum gp_smi_monitor_kind kind)
{
    const struct gp_smi_monitor_view *view = &gp_smi_monitor_views[kind];
    char last = GP_SMI_FRONT;
    for (size_t i = 0; i < view->column_count; i++) {
        const struct gp_smi_monitor_column *c = &view->columns[i];
        if (!has_group(view, c->group))
            continue;
        if (c->group != last)
            gp_strbuf_addf(sb, "%s        %c  ", last == GP_SMI_FRONT ? "" : "\n", c->group);
        gp_strbuf_addf(sb, "%s%s", c->group == last ? " " : "", c->head);
        last = c->group;
    }
    gp_strbuf_addc(sb, '\n');
}

void gp_smi_monitor_add_gpm(struct gp_strbuf *sb)
{
    for (size_t i = 0; i < GP_SMI_GPM_METRICS; i++)
        gp_strbuf_addf(sb, "        %2u  %-8s %s\n", gp_smi_gpm_table[i].number,
                       gp_smi_gpm_table[i].column.head, gp_smi_gpm_table[i].words);
}

/* ---- required metrics ---- */

/* The columns in order; if form is NULL, also those of other drivers. */
struct layout {
    const struct gp_smi_monitor_column *columns[COLUMNS];
    size_t count;
    size_t plain; /* number of columns that are not GPM columns */
    struct gp_smi_monitor_column unnamed[GP_SMI_GPM_COLUMNS];
    char heads[GP_SMI_GPM_COLUMNS][8]; /* of those */
};

/* The column of the ith GPM metric. */
static const struct gp_smi_monitor_column *gpm_column(const struct gp_smi_monitor *m, size_t i,
                                                      struct layout *layout)
{
    for (size_t k = 0; k < GP_SMI_GPM_METRICS; k++)
        if (gp_smi_gpm_table[k].number == m->gpm[i])
            return &gp_smi_gpm_table[k].column;
    (void)snprintf(layout->heads[i], sizeof(layout->heads[i]), "id=%u", m->gpm[i]);
    layout->unnamed[i] = (struct gp_smi_monitor_column){
        .group = GP_SMI_BACK,
        .width = gp_smi_gpm_table[0].column.width,
        .head = layout->heads[i],
        .unit = m->gpm[i] ? "GPM:%" : "GPM",
        .metric = GP_METRIC__COUNT,
    };
    return &layout->unnamed[i];
}

static void lay_out(const struct gp_smi_monitor *m, const struct gp_smi_form *form,
                    struct layout *ret)
{
    const struct gp_smi_monitor_view *view = &gp_smi_monitor_views[m->kind];
    char order[GP_SMI_GROUPS + 3] = {GP_SMI_FRONT};
    size_t n = strlen(m->groups);
    ret->count = 0;
    memcpy(&order[1], m->groups, n);
    order[n + 1] = GP_SMI_BACK;
    for (const char *group = order; *group; group++)
        for (size_t i = 0; i < view->column_count; i++) {
            const struct gp_smi_monitor_column *c = &view->columns[i];
            if (c->group == *group && (!form || gp_smi_in(form, c->in)))
                ret->columns[ret->count++] = c;
        }
    ret->plain = ret->count;
    for (size_t i = 0; i < m->gpm_count; i++)
        ret->columns[ret->count++] = gpm_column(m, i, ret);
}

void gp_smi_monitor_want(const struct gp_smi_monitor *m, struct gp_want *want)
{
    enum gp_scope scope = gp_smi_monitor_views[m->kind].scope;
    struct layout layout;
    lay_out(m, NULL, &layout);
    for (size_t i = 0; i < layout.count; i++)
        if (layout.columns[i]->metric != GP_METRIC__COUNT)
            gp_smi_monitor_want_column(layout.columns[i], want);
    want->processes = want->process_names = scope == GP_SCOPE_PROCESS;
    if (want->processes)
        gp_metric_set_add(&want->metrics, GP_PROCESS_GI);
    if (gp_scope_is_list(scope))
        want->lists |= UINT32_C(1) << gp_list_index(scope);
}

/* A MIG GPU reports this for no process, but is shown anyway. */
bool gp_smi_monitor_is_refused(const struct gp_smi_monitor *m, const struct gp_snapshot *snapshot)
{
    bool refused = false;
    if (gp_smi_monitor_views[m->kind].scope != GP_SCOPE_PROCESS || !strchr(m->groups, 'u'))
        return false;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        if (gp_process_value(p, GP_PROCESS_GI)->status == GP_STATUS_OK ||
            gp_process_value(p, GP_PROCESS_SM)->status != GP_STATUS_UNSUPPORTED)
            return false;
        refused = true;
    }
    return refused;
}

/* ---- lines ---- */

struct printer {
    struct gp_smi_monitor *m;
    const struct gp_smi_monitor_view *view;
    const struct gp_smi_monitor_era *era;
    struct gp_strbuf *sb;
    struct gp_strbuf cell;
    struct layout layout;
    char date[16], time[16];
};

static void add_stamp(struct printer *p, char first, const char *date, const char *time)
{
    const struct gp_smi_monitor *m = p->m;
    if (m->csv) {
        gp_strbuf_addf(p->sb, "%s%s%s%s", m->date ? date : "", m->date ? ", " : "",
                       m->time ? time : "", m->time ? ", " : "");
        return;
    }
    gp_strbuf_addc(p->sb, first);
    if (m->date)
        gp_strbuf_addf(p->sb, "%-*s", m->time ? p->era->stamp->date : p->era->stamp->date_alone,
                       date);
    if (m->time)
        gp_strbuf_addf(p->sb, "%-*s", m->date ? p->era->stamp->time : p->era->stamp->time_alone,
                       time);
}

/* Appends the cell in the scratch buffer as the column with this index. */
static void add_column(struct printer *p, const struct gp_smi_monitor_line *line, size_t i)
{
    const struct gp_smi_monitor_column *c = p->layout.columns[i];
    bool gpm = i >= p->layout.plain;
    if (p->cell.error && !p->sb->error)
        p->sb->error = p->cell.error;
    if (p->m->csv)
        gp_strbuf_addf(p->sb, ", %s", p->cell.buf);
    else if (c->width == GP_SMI_WIDTH_NAME)
        gp_strbuf_addf(p->sb, "%*s%s", line->width[GP_SMI_WIDTH_NAME], "", p->cell.buf);
    else
        gp_strbuf_addf(p->sb, "%*s",
                       c->width < GP_SMI_WIDTH__COUNT ? line->width[c->width] : c->width,
                       p->cell.buf);
    if (!p->m->csv && (gpm ? p->era->gpm_blank : i + 1 == p->layout.plain && line->blank))
        gp_strbuf_addc(p->sb, ' ');
}

static void print_heading(struct printer *p, bool units)
{
    bool stamped = p->m->date || p->m->time;
    if (p->m->csv)
        gp_strbuf_addc(p->sb, '#');
    if (stamped)
        add_stamp(p, '#', units ? "YYYYMMDD" : "Date", units ? "HH:MM:SS" : "Time");
    gp_strbuf_addf(p->sb, "%s%s", stamped || p->m->csv ? "" : "# ", p->view->index[units]);
    for (size_t i = 0; i < p->layout.count; i++) {
        const struct gp_smi_monitor_column *c = p->layout.columns[i];
        gp_strbuf_reset(&p->cell);
        gp_strbuf_adds(&p->cell, units ? c->unit : c->head);
        add_column(p, p->era->head, i);
    }
    gp_strbuf_addc(p->sb, '\n');
}

/* In CSV the header is printed once. */
static void print_header(struct printer *p)
{
    struct gp_smi_monitor *m = p->m;
    bool due = m->rows == 0 || (!m->csv && m->rows % p->view->rows_per_header == 0);
    m->rows++;
    if (due && !m->no_header)
        print_heading(p, false);
    if (due && !m->no_unit)
        print_heading(p, true);
}

static void print_row(struct printer *p, const struct gp_smi_monitor_row *row)
{
    bool stamped = p->m->date || p->m->time;
    print_header(p);
    if (p->m->csv)
        gp_strbuf_addc(p->sb, ' ');
    if (stamped)
        add_stamp(p, ' ', p->date, p->time);
    gp_strbuf_addf(p->sb, "%*u", p->m->csv ? 0 : stamped ? 3 : 5, row->device->index);
    for (size_t i = 0; i < p->layout.count; i++) {
        gp_smi_monitor_add_cell(&p->cell, p->layout.columns[i], row);
        if (p->layout.columns[i]->width == GP_SMI_WIDTH_NAME && p->cell.len < GP_SMI_NAME_BYTES)
            gp_strbuf_fill(&p->cell, ' ', GP_SMI_NAME_BYTES - p->cell.len);
        add_column(p, p->era->row, i);
    }
    gp_strbuf_addc(p->sb, '\n');
}

/* ---- rows ---- */

/* Stale processes of a GPU that does not respond are not listed. */
static void print_processes(struct printer *p, struct gp_smi_monitor_row *row)
{
    if (row->device->status == GP_STATUS_OK)
        row->process = gp_smi_next_process(row->snapshot, row->device, NULL);
    do {
        print_row(p, row);
        row->process =
            row->process ? gp_smi_next_process(row->snapshot, row->device, row->process) : NULL;
    } while (row->process);
}

static void print_sessions(struct printer *p, struct gp_smi_monitor_row *row)
{
    const struct gp_entries *list = &row->snapshot->lists[gp_list_index(p->view->scope)];
    size_t device = (size_t)(row->device - row->snapshot->devices);
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        row->entry = &list->entries[i];
        if (row->entry->device != device)
            continue;
        print_row(p, row);
        any = true;
    }
    row->entry = NULL;
    if (!any)
        print_row(p, row);
}

static void print_device(struct printer *p, struct gp_smi_monitor_row *row)
{
    if (p->view->scope == GP_SCOPE_DEVICE)
        print_row(p, row);
    else if (p->view->scope == GP_SCOPE_PROCESS)
        print_processes(p, row);
    else
        print_sessions(p, row);
}

static void set_time(struct printer *p, uint64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / GP_NS_PER_S);
    struct tm tm;
    (void)localtime_r(&seconds, &tm);
    (void)strftime(p->date, sizeof(p->date), "%Y%m%d", &tm);
    (void)strftime(p->time, sizeof(p->time), "%H:%M:%S", &tm);
}

void gp_smi_monitor_print(struct gp_smi_monitor *m, struct gp_strbuf *sb,
                          const struct gp_smi_form *form, const struct gp_snapshot *snapshot)
{
    struct printer p = {
        .m = m, .view = &gp_smi_monitor_views[m->kind], .sb = sb, .cell = GP_STRBUF_INIT(4096)};
    p.era = p.view->eras;
    while (!gp_smi_in(form, p.era->in))
        p.era++;
    lay_out(m, form, &p.layout);
    set_time(&p, snapshot->wall_ns);
    for (size_t i = 0; i < snapshot->device_count; i++) {
        struct gp_smi_monitor_row row = {form, snapshot, &snapshot->devices[i], NULL, NULL};
        if (!row.device->is_mig)
            print_device(&p, &row);
    }
    gp_strbuf_fini(&p.cell);
}
