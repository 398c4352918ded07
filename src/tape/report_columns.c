#include "tape/report_columns.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "tape/before.h"

#include <math.h>

#define BIT(by) (1U << (by))

enum {
    ANY = (1U << GP_REPORT_BY__COUNT) - 1,
    OF_WAITS = BIT(GP_REPORT_WAIT),
    ALL = ANY & ~OF_WAITS, /* that have used GPUs */
    OF_GPUS = BIT(GP_REPORT_GPU),
    OF_PROCESSES = BIT(GP_REPORT_PROCESS) | BIT(GP_REPORT_IDLE),
    OF_GROUPS = ALL & ~(OF_GPUS | OF_PROCESSES),
    WITH_WAITS = OF_WAITS | BIT(GP_REPORT_USER) | BIT(GP_REPORT_GROUP),
};

double gp_report_hours(int64_t us)
{
    return (double)us / 3.6e9;
}

/* ---- values ---- */

static const char *text_label(const struct gp_report_row *row)
{
    return row->label;
}

static const char *text_name(const struct gp_report_row *row)
{
    return row->name;
}

static const char *text_user(const struct gp_report_row *row)
{
    return row->user;
}

static const char *text_gpu(const struct gp_report_row *row)
{
    return row->gpu;
}

static const char *text_reason(const struct gp_report_row *row)
{
    return row->reason;
}

static const char *text_command(const struct gp_report_row *row)
{
    return row->command;
}

static bool number_known(const struct gp_report_look *look, enum gp_report_by by,
                         const struct gp_report_row *row, double *ret)
{
    (void)by;
    *ret = gp_report_hours(row->sums.known_us);
    return !look->report->is_of_some;
}

static bool number_processes(const struct gp_report_look *look, enum gp_report_by by,
                             const struct gp_report_row *row, double *ret)
{
    (void)look;
    (void)by;
    *ret = (double)row->processes;
    return true;
}

static bool number_held(const struct gp_report_look *look, enum gp_report_by by,
                        const struct gp_report_row *row, double *ret)
{
    *ret = gp_report_hours(row->sums.held_us);
    (void)look;
    (void)by;
    return !*row->reason;
}

static bool has_load(const struct gp_report_look *look, enum gp_report_by by,
                     const struct gp_report_row *row)
{
    return look->report->is_of_some ? row->sums.measured_us > 0
                                    : gp_report_has_load(by, &row->sums);
}

static bool number_busy(const struct gp_report_look *look, enum gp_report_by by,
                        const struct gp_report_row *row, double *ret)
{
    *ret = gp_report_hours(row->sums.busy_us);
    return has_load(look, by, row);
}

static bool number_idle(const struct gp_report_look *look, enum gp_report_by by,
                        const struct gp_report_row *row, double *ret)
{
    *ret = gp_report_hours(row->sums.idle_us);
    return !*row->reason && has_load(look, by, row);
}

static bool number_reserved(const struct gp_report_look *look, enum gp_report_by by,
                            const struct gp_report_row *row, double *ret)
{
    *ret = gp_report_hours(row->sums.reserved_us);
    (void)by;
    return !look->report->is_of_some && !*row->reason;
}

static bool number_utilization(const struct gp_report_look *look, enum gp_report_by by,
                               const struct gp_report_row *row, double *ret)
{
    (void)look;
    (void)by;
    if (row->sums.measured_us <= 0)
        return false;
    *ret = 100 * (double)row->sums.used_us / (double)row->sums.measured_us;
    return true;
}

static bool number_memory(const struct gp_report_look *look, enum gp_report_by by,
                          const struct gp_report_row *row, double *ret)
{
    (void)look;
    (void)by;
    *ret = (double)row->sums.memory;
    return gp_report_has_memory(&row->sums);
}

static bool number_energy(const struct gp_report_look *look, enum gp_report_by by,
                          const struct gp_report_row *row, double *ret)
{
    *ret = (double)row->sums.energy_mj / 3.6e9;
    return gp_report_has_energy(look->report->is_of_some ? GP_REPORT_USER : by, &row->sums);
}

static bool number_cost(const struct gp_report_look *look, enum gp_report_by by,
                        const struct gp_report_row *row, double *ret)
{
    *ret = look->price * gp_report_hours(row->sums.held_us);
    (void)by;
    return look->has_price && !*row->reason;
}

static bool number_waits(const struct gp_report_look *look, enum gp_report_by by,
                         const struct gp_report_row *row, double *ret)
{
    (void)by;
    *ret = (double)row->waits;
    return look->report->watched_us > 0;
}

static bool number_waited(const struct gp_report_look *look, enum gp_report_by by,
                          const struct gp_report_row *row, double *ret)
{
    (void)by;
    *ret = gp_report_hours(row->waited_us);
    return look->report->watched_us > 0;
}

static bool number_waited_mean(const struct gp_report_look *look, enum gp_report_by by,
                               const struct gp_report_row *row, double *ret)
{
    (void)by;
    *ret = row->waits ? gp_report_hours(row->waited_us) / (double)row->waits : 0;
    return look->report->watched_us > 0 && row->waits > 0;
}

static bool number_waited_longest(const struct gp_report_look *look, enum gp_report_by by,
                                  const struct gp_report_row *row, double *ret)
{
    (void)by;
    *ret = gp_report_hours(row->waited_longest_us);
    return look->report->watched_us > 0;
}

const struct gp_report_column gp_report_columns[] = {
    {"key", "", GP_REPORT_TEXT, ANY, text_label, NULL, false},
    {"gpu", "GPU", GP_REPORT_TEXT, BIT(GP_REPORT_IDLE), text_gpu, NULL, false},
    {"name", "NAME", GP_REPORT_TEXT, OF_GPUS, text_name, NULL, true},
    {"user", "USER", GP_REPORT_TEXT, OF_PROCESSES | OF_WAITS, text_user, NULL, false},
    {"program", "PROGRAM", GP_REPORT_TEXT, OF_PROCESSES, text_name, NULL, false},
    {"known_hours", "SEEN", GP_REPORT_HOURS, OF_GPUS, NULL, number_known, false},
    {"processes", "PROCS", GP_REPORT_COUNT, OF_GROUPS, NULL, number_processes, false},
    {"held_hours", "HELD", GP_REPORT_HOURS, ALL, NULL, number_held, false},
    {"busy_hours", "BUSY", GP_REPORT_HOURS, ALL, NULL, number_busy, false},
    {"idle_hours", "IDLE", GP_REPORT_HOURS, ALL, NULL, number_idle, false},
    {"reserved_hours", "RESERVED", GP_REPORT_HOURS, OF_GPUS, NULL, number_reserved, false},
    {"waits", "WAITS", GP_REPORT_COUNT, OF_WAITS, NULL, number_waits, false},
    {"waited_hours", "WAITED", GP_REPORT_HOURS, WITH_WAITS, NULL, number_waited, false},
    {"waited_mean_hours", "MEAN", GP_REPORT_HOURS, OF_WAITS, NULL, number_waited_mean, false},
    {"waited_longest_hours", "LONGEST", GP_REPORT_HOURS, OF_WAITS, NULL, number_waited_longest,
     false},
    {"utilization", "UTIL", GP_REPORT_PERCENT, ALL, NULL, number_utilization, false},
    {"memory_peak_bytes", "MEMORY", GP_REPORT_BYTES, ALL, NULL, number_memory, false},
    {"energy_kwh", "ENERGY", GP_REPORT_KWH, ALL, NULL, number_energy, false},
    {"cost", "COST", GP_REPORT_COST, ALL, NULL, number_cost, false},
    {"incidents", "INCIDENTS", GP_REPORT_INCIDENTS, ALL, NULL, NULL, true},
    {"reason", "REASON FOR N/A", GP_REPORT_TEXT, OF_GPUS, text_reason, NULL, true},
    {"command", "COMMAND", GP_REPORT_TEXT, OF_PROCESSES, text_command, NULL, true},
};
const size_t gp_report_column_count = GP_ARRAY_LEN(gp_report_columns);

bool gp_report_has_column(const struct gp_report_look *look, enum gp_report_by by,
                          const struct gp_report_column *column)
{
    return column->tables & BIT(by) && (column->kind != GP_REPORT_COST || look->has_price);
}

/* Columns that are usually empty. */
bool gp_report_needs_column(const struct gp_report_look *look, const struct gp_report_table *table,
                            const struct gp_report_column *column)
{
    double n;
    if (!gp_report_has_column(look, table->by, column))
        return false;
    const bool is_rare = column->kind == GP_REPORT_INCIDENTS || column->number == number_reserved ||
                         column->text == text_reason ||
                         (column->number == number_waited && table->by != GP_REPORT_WAIT) ||
                         (column->number == number_known && look->report->is_of_some);
    for (size_t i = 0; is_rare && i < table->count; i++) {
        const struct gp_report_row *row = &table->rows[i];
        if (column->number ? column->number(look, table->by, row, &n) && n > 0
            : column->text ? *column->text(row)
                           : gp_report_count_incidents(row->incidents) > 0)
            return true;
    }
    return !is_rare;
}

/* ---- words ---- */

static const struct {
    const char *heading, *title, *missing;
} words[GP_REPORT_BY__COUNT] = {
    [GP_REPORT_GPU] = {"GPU", "GPUs", "(unknown)"},
    [GP_REPORT_USER] = {"USER", "Users", "(unknown)"},
    [GP_REPORT_GROUP] = {"GROUP", "Groups", "(no group)"},
    [GP_REPORT_JOB] = {"JOB", "Jobs", "(no job)"},
    [GP_REPORT_CONTAINER] = {"CONTAINER", "Containers", "(no container)"},
    [GP_REPORT_PROGRAM] = {"PROGRAM", "Programs", "(unknown)"},
    [GP_REPORT_PROCESS] = {"PID", "Processes", "(unknown)"},
    [GP_REPORT_WAIT] = {"JOB", "Jobs that waited for GPUs", "(unnamed)"},
    [GP_REPORT_IDLE] = {"PID", "Processes that held an idle GPU", "(unknown)"},
};

const char *gp_report_key_heading(enum gp_report_by by)
{
    return words[by].heading;
}

const char *gp_report_title(enum gp_report_by by)
{
    return words[by].title;
}

const char *gp_report_missing(enum gp_report_by by)
{
    return words[by].missing;
}

void gp_report_add_empty(struct gp_strbuf *sb, const struct gp_report *report, enum gp_report_by by)
{
    if (by == GP_REPORT_GPU)
        gp_strbuf_adds(sb, "No GPUs were seen.\n");
    else if (by == GP_REPORT_WAIT)
        gp_strbuf_adds(sb, report->watched_us > 0 ? "No job waited for GPUs.\n"
                                                  : "Who waited for GPUs is unknown.\n");
    else if (!gp_report_knows_holders(report))
        gp_strbuf_adds(sb, "Which processes used these GPUs is unknown.\n");
    else
        gp_strbuf_adds(sb, by == GP_REPORT_IDLE ? "No process held an idle GPU for that long.\n"
                                                : "No processes used these GPUs.\n");
}

uint64_t gp_report_count_incidents(const uint32_t counts[GP_EVENT__COUNT])
{
    uint64_t count = 0;
    for (size_t i = 0; i < GP_EVENT__COUNT; i++)
        count += counts[i];
    return count;
}

void gp_report_add_incidents(struct gp_strbuf *sb, const uint32_t counts[GP_EVENT__COUNT],
                             const char *between)
{
    const char *before = "";
    for (size_t i = 0; i < GP_EVENT__COUNT; i++) {
        if (counts[i] == 0)
            continue;
        gp_strbuf_addf(sb, "%s%s %u", before, gp_event_table[i].name, counts[i]);
        before = between;
    }
}

/* ---- cells ---- */

/* In one unit for the whole report, so that cells can be compared. */
static void add_hours(struct gp_strbuf *sb, const struct gp_report *report, double hours)
{
    const double length = gp_report_hours(report->to - report->from);
    if (length < 0.2)
        gp_strbuf_addf(sb, "%.0f s", hours * 3600);
    else if (length < 2)
        gp_strbuf_addf(sb, "%.1f min", hours * 60);
    else
        gp_strbuf_addf(sb, hours < 1000 ? "%.2f h" : "%.0f h", hours);
}

static void add_energy(struct gp_strbuf *sb, double kwh)
{
    if (kwh < 1)
        gp_strbuf_addf(sb, "%.1f Wh", kwh * 1000);
    else
        gp_strbuf_addf(sb, kwh < 100 ? "%.2f kWh" : "%.0f kWh", kwh);
}

static void add_bytes(struct gp_strbuf *sb, double n)
{
    if (n < 1024.0 * 1024 * 1024)
        gp_strbuf_addf(sb, "%.0f MiB", n / (1024.0 * 1024));
    else
        gp_strbuf_addf(sb, "%.1f GiB", n / (1024.0 * 1024 * 1024));
}

void gp_report_add_number(struct gp_strbuf *sb, const struct gp_report_look *look,
                          enum gp_report_kind kind, double n)
{
    switch (kind) {
    case GP_REPORT_BYTES:
        add_bytes(sb, n);
        break;
    case GP_REPORT_COUNT:
        gp_strbuf_addf(sb, "%.0f", n);
        break;
    case GP_REPORT_HOURS:
        add_hours(sb, look->report, n);
        break;
    case GP_REPORT_PERCENT:
        gp_strbuf_addf(sb, "%.0f %%", n);
        break;
    case GP_REPORT_KWH:
        add_energy(sb, n);
        break;
    case GP_REPORT_COST:
        gp_strbuf_addf(sb, "%.2f%s%s", n, *look->currency ? " " : "", look->currency);
        break;
    default:
        break;
    }
}

void gp_report_add_cell(struct gp_strbuf *sb, const struct gp_report_look *look,
                        enum gp_report_by by, const struct gp_report_row *row,
                        const struct gp_report_column *column)
{
    double n;
    if (column->kind == GP_REPORT_INCIDENTS) {
        gp_report_add_incidents(sb, row->incidents, ", ");
    } else if (column->text) {
        const char *text = column->text(row);
        gp_strbuf_adds(sb, *text                        ? text
                           : column->text == text_label ? gp_report_missing(by)
                           : column->text == text_user  ? "(unknown)"
                                                        : "");
    } else if (column->number(look, by, row, &n)) {
        gp_report_add_number(sb, look, column->kind, n);
    } else {
        gp_strbuf_adds(sb, "N/A");
    }
}

/* ---- the time ---- */

void gp_report_add_time(struct gp_strbuf *sb, int64_t wall_us)
{
    char text[GP_RFC3339_SIZE];
    gp_clock_plain((uint64_t)wall_us * GP_NS_PER_US, text);
    gp_strbuf_addf(sb, "%.16s", text);
}

void gp_report_add_span(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    gp_report_add_time(sb, report->from_us);
    gp_strbuf_adds(sb, " to ");
    gp_report_add_time(sb, report->to_us);
    gp_strbuf_adds(sb, " (");
    const double hours = gp_report_hours(report->to - report->from);
    if (hours < 72)
        add_hours(sb, report, hours);
    else
        gp_strbuf_addf(sb, "%.1f days", hours / 24);
    gp_strbuf_addc(sb, ')');
}

bool gp_report_seen_percent(const struct gp_report *report, double *ret)
{
    double known_us = 0;
    double all_us = 0;
    for (size_t i = 0; i < report->gpus.count; i++) {
        const int64_t us = report->gpus.rows[i].sums.known_us;
        known_us += (double)us;
        all_us += us > 0 ? (double)(report->to - report->from) : 0;
    }
    *ret = all_us > 0 ? fmin(100, 100 * known_us / all_us) : 0;
    return all_us > 0;
}

bool gp_report_watched_percent(const struct gp_report *report, double *ret)
{
    *ret = 100 * (double)report->watched_us / (double)(report->to - report->from);
    return report->watched_us > 0;
}

static void add_seen(struct gp_strbuf *sb, const struct gp_report *report)
{
    double seen;
    if (!gp_report_seen_percent(report, &seen))
        gp_strbuf_adds(sb, "The utilization of the GPUs is unknown for all of this time.\n");
    else if (seen < 99.95)
        gp_strbuf_addf(
            sb,
            "The recorder saw the GPUs for %.1f %% of this time. The rest is unknown, and "
            "not included.\n",
            seen);
}

static void add_rounding(struct gp_strbuf *sb, const struct gp_report *report)
{
    if (!report->is_rounded)
        return;
    gp_strbuf_adds(sb, "Sums are kept for whole ten minutes, so this report covers ");
    gp_report_add_time(sb, report->from_us);
    gp_strbuf_adds(sb, " to ");
    gp_report_add_time(sb, report->to_us);
    gp_strbuf_adds(sb, ", more than --since and --until select.\n");
}

/* Whether a report says who waited. */
static bool shows_waits(const struct gp_report *report, bool *ret_asked)
{
    bool any = *ret_asked = false;
    for (size_t i = 0; i < report->table_count; i++) {
        *ret_asked = *ret_asked || report->tables[i].by == GP_REPORT_WAIT;
        for (size_t k = 0; k < report->tables[i].count; k++)
            any = any || report->tables[i].rows[k].waits > 0;
    }
    return any || *ret_asked;
}

static void add_waits(struct gp_strbuf *sb, const struct gp_report *report)
{
    bool asked;
    double percent;
    if (!shows_waits(report, &asked))
        return;
    if (report->is_of_some_gpus)
        gp_strbuf_adds(sb, "For which GPUs a job waited is not recorded: who waited is only known "
                           "without --id.\n");
    else if (!gp_report_watched_percent(report, &percent))
        gp_strbuf_adds(sb, "Who waited for GPUs was not recorded at that time.\n");
    else if (percent < 99.95)
        gp_strbuf_addf(sb,
                       "The waiting line was recorded for %.1f %% of this time. Waiting outside of "
                       "it is unknown, and not included.\n",
                       percent);
}

static void add_detailed(struct gp_strbuf *sb, const struct gp_report *report)
{
    char time[GP_RFC3339_SIZE];
    if (report->detailed == 0)
        return;
    gp_clock_plain((uint64_t)report->detailed_us * GP_NS_PER_US, time);
    gp_strbuf_addf(sb,
                   "%lld incident%s recorded with %d samples a second,%s from %.19s on (gpulse "
                   "replay FILE --at TIME).\n",
                   (long long)report->detailed, report->detailed == 1 ? " is" : "s are",
                   1000000 / GP_BEFORE_EVERY_US, report->detailed == 1 ? "" : " the last one",
                   time);
}

void gp_report_add_notes(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    bool has_processes = false;
    bool has_groups = false;
    bool has_teams = false; /* groups of users */
    for (size_t i = 0; i < report->table_count && gp_report_knows_holders(report); i++) {
        const enum gp_report_by by = report->tables[i].by;
        has_processes =
            has_processes || (by != GP_REPORT_WAIT && by != GP_REPORT_GPU) || report->is_of_some;
        has_groups = has_groups || (OF_GROUPS & BIT(by));
        has_teams = has_teams || by == GP_REPORT_GROUP;
    }
    add_rounding(sb, report);
    add_seen(sb, report);
    add_detailed(sb, report);
    if (!gp_report_knows_holders(report) && gp_report_is_seen(&report->total))
        gp_strbuf_adds(sb, "The recording has no list of processes: who held the GPUs, and for how "
                           "long, is unknown.\n");
    else if (report->total.unlisted_us > 0)
        gp_strbuf_addf(sb,
                       "For %.1f %% of the time that the GPUs were seen, their processes are "
                       "unknown, and not included.\n",
                       100 * (double)report->total.unlisted_us / (double)report->total.known_us);
    if (report->users)
        gp_strbuf_addf(sb, "Only processes of these users are counted: %s.\n", report->users);
    if (report->groups)
        gp_strbuf_addf(sb, "Only processes of users in these groups are counted: %s.\n",
                       report->groups);
    if (has_processes)
        gp_strbuf_adds(sb,
                       "The energy of processes is an estimate: the GPU's energy, divided by SM "
                       "time.\n");
    add_waits(sb, report);
    if (report->idle_unknown)
        gp_strbuf_addf(sb,
                       "Whether the GPUs were idle is unknown for %zu more that were held for that "
                       "long by a process whose SM time is not reported.\n",
                       report->idle_unknown);
    if (has_groups)
        gp_strbuf_adds(sb, "A GPU that several users, jobs or programs hold counts in full for "
                           "each.\n");
    if (has_teams)
        gp_strbuf_adds(sb, "A user in several groups counts in full in each of them. The groups "
                           "are those of the machine that made this report, at that time.\n");
}
