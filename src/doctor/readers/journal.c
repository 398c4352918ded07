#include "doctor/readers/journal.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/accounts.h"
#include "doctor/readers/sdjournal.h"
#include "doctor/readers/services.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MOST_UNITS = 2048, /* on a usual machine there are about 40 */
    UNIT_LINES = 128,  /* of each of them */
    USER_LINES = 1024, /* of all programs of a user together */
    MOST_USERS = 8,
    TEXT_ENTRIES = 4096,
    MOST_TEXT = 1 << 20,
    ENTRY_LINES = 64, /* of an entry: a program can log a whole text at once */
    LINE_SIZE = 8192, /* the maximum length of a /dev/kmsg record */
};

const char gp_journal_kernel_command[] = "journalctl -k";
const char gp_journal_earlier_command[] = "journalctl -k -b -1";

/* ---- the kernel ---- */

/* Since boot; 0: unknown. */
static uint64_t monotonic_of(const struct gp_sdjournal *journal)
{
    uint64_t us = 0;
    unsigned char boot[16]; /* without it, only entries of the boot of this system have a time */
    return journal->api.get_monotonic_usec(journal->j, &us, boot) >= 0 ? us : 0;
}

/* Since 1970; 0: unknown. */
static uint64_t realtime_of(const struct gp_sdjournal *journal)
{
    uint64_t us = 0;
    return journal->api.get_realtime_usec(journal->j, &us) >= 0 ? us : 0;
}

/* A message as a record of /dev/kmsg: "4,0,1234567,-;NVRM: Xid …". */
static void take_record(const struct gp_sdjournal *journal, const char *where,
                        uint64_t before_end_us, gp_journal_take *take, void *argument)
{
    char record[LINE_SIZE];
    unsigned long source_us;
    uint64_t us = 0;
    size_t n;
    if (gp_sdjournal_number(journal, "_SOURCE_MONOTONIC_TIMESTAMP", &source_us))
        us = source_us;
    else
        us = monotonic_of(journal);
    const char *text = gp_sdjournal_field(journal, "MESSAGE", &n);
    if (!text)
        return;
    (void)snprintf(record, sizeof(record), "4,0,%" PRIu64 ",-;%.*s", us,
                   (int)(n < LINE_SIZE ? n : LINE_SIZE), text);
    take(&(struct gp_journal_line){.text = record, .where = where, .before_end_us = before_end_us},
         argument);
}

/* Programs can write to /dev/kmsg, but not with the kernel's facility. */
static bool is_match_of_kernel(const struct gp_sdjournal *journal)
{
    return gp_sdjournal_match(journal, "_TRANSPORT=kernel") >= 0 &&
           gp_sdjournal_match(journal, "SYSLOG_FACILITY=0") >= 0;
}

/* The selected messages of the kernel, from the end of the matches; those of the last day before
 * `end_us`, when the boot before ended, or, 0, all of this boot. */
static long take_kernel(const struct gp_sdjournal *journal, const char *where, uint64_t end_us,
                        gp_journal_take *take, void *argument)
{
    long count = 0;
    if (!is_match_of_kernel(journal) ||
        journal->api.previous_skip(journal->j, GP_JOURNAL_KERNEL) <= 0)
        return 0;
    do {
        uint64_t us = realtime_of(journal);
        if (us + GP_SDJOURNAL_DAY_US >= end_us)
            take_record(journal, where, us < end_us ? end_us - us : 0, take, argument);
        count++;
    } while (count < GP_JOURNAL_KERNEL && journal->api.next(journal->j) > 0);
    return count;
}

long gp_journal_kernel(struct gp_exam *exam, gp_journal_take *take, void *argument)
{
    struct gp_sdjournal journal;
    long count = 0;
    int r = gp_sdjournal_open(exam, &journal);
    if (r == 0 && gp_sdjournal_select_boot(&journal))
        count = take_kernel(&journal, gp_journal_kernel_command, 0, take, argument);
    gp_sdjournal_close(&journal);
    return r < 0 ? r : count;
}

/* Goes to the first entry of this boot; false: it was more than a day ago. */
static bool go_to_boot(const struct gp_sdjournal *journal)
{
    return gp_sdjournal_select_boot(journal) && journal->api.seek_head(journal->j) >= 0 &&
           journal->api.next(journal->j) > 0 &&
           realtime_of(journal) + GP_SDJOURNAL_DAY_US >= journal->last_us;
}

/* Selects the boot of the entry before this one, and goes to its end. The journal knows the order
 * of its entries, also where a clock was set in between. */
static bool select_earlier(const struct gp_sdjournal *journal, uint64_t *ret_last_us)
{
    size_t n = 0;
    journal->api.flush_matches(journal->j);
    if (journal->api.previous(journal->j) <= 0)
        return false;
    *ret_last_us = realtime_of(journal);
    const char *id = gp_sdjournal_field(journal, "_BOOT_ID", &n);
    if (!id || *ret_last_us < GP_SDJOURNAL_DAY_US)
        return false;
    const char *wanted = gp_exam_text(journal->exam, "_BOOT_ID=%.*s", (int)n, id);
    return gp_sdjournal_match(journal, wanted) >= 0 && journal->api.seek_tail(journal->j) >= 0;
}

long gp_journal_earlier(struct gp_exam *exam, gp_journal_take *take, void *argument)
{
    struct gp_sdjournal journal;
    uint64_t last_us;
    long count = 0;
    int r = gp_sdjournal_open(exam, &journal);
    if (r == 0 && go_to_boot(&journal) && select_earlier(&journal, &last_us))
        count = take_kernel(&journal, gp_journal_earlier_command, last_us, take, argument);
    gp_sdjournal_close(&journal);
    return r < 0 ? r : count > 0 ? count : -ENODATA;
}

/* ---- programs ---- */

/* Whether the unit is one of the machine's services: those of users are below "user@1000.service",
 * and what a user starts in a terminal is in "session-2.scope". */
static bool is_service(const char *unit, size_t n)
{
    static const char users[] = "user@", end[] = ".service";
    const size_t end_size = sizeof(end) - 1, users_size = sizeof(users) - 1;
    return n > end_size && memcmp(unit + n - end_size, end, end_size) == 0 &&
           memcmp(unit, users, users_size) != 0;
}

/* Whether the current entry is of no person, or of the one who asks: jobs of others, of cron or
 * Slurm, print as a part of that service. */
static bool is_believed(const struct gp_sdjournal *journal)
{
    unsigned long user = 0;
    (void)gp_sdjournal_number(journal, "_UID", &user);
    return user == journal->user || !gp_account_is_person(user);
}

/* Programs whose lines repeat what others have said, typed or asked for, or that tell of other
 * machines, by the names that the kernel has for them: at most 15 characters. */
static const char quoting[] =
    "alloy,apache2,atd,auditd,caddy,cockpit-ws,cron,crond,crowdsec,dbus-broker,dbus-daemon,doas,"
    "fail2ban-server,filebeat,fluent-bit,fluentd,gpulse,gpulse-doctor,grafana-agent,haproxy,httpd,"
    "journalctl,logcheck,nginx,otelcol,pkexec,polkitd,promtail,rsyslogd,slurmctld,slurmdbd,"
    "snmptrapd,sshd,sshd-auth,sshd-session,su,sudo,syslog-ng,systemd,telegraf,traefik,vector,"
    "zabbix_agent2,zabbix_agentd,zabbix_proxy,zabbix_server";

/* Whether the current entry says what its program has found itself. */
static bool is_own_word(const struct gp_sdjournal *journal)
{
    char name[16];
    size_t n = 0;
    const char *program = gp_sdjournal_field(journal, "_COMM", &n);
    (void)snprintf(name, sizeof(name), "%.*s", program ? (int)n : 0, program ? program : "");
    return !gp_lines_list_has(quoting, name) && !gp_sdjournal_field(journal, "CONTAINER_ID", &n);
}

static const char unit_field[] = "_SYSTEMD_UNIT=";

/* Whether there is a new unit of the kind for each connection, login or crash. */
static bool is_per_call(const char *unit, size_t n)
{
    static const char *const starts[] = {"check-mk-agent@", "sshd-", "sshd@", "systemd-coredump@",
                                         "user-runtime-dir@"};
    for (size_t i = 0; i < GP_ARRAY_LEN(starts); i++)
        if (n > strlen(starts[i]) && memcmp(unit, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* The matches for the services in the journal, also of those that logged before this boot. */
static size_t list_services(const struct gp_sdjournal *journal, const char *ret_matches[MOST_UNITS])
{
    const size_t n = sizeof(unit_field) - 1;
    const void *data;
    size_t size, count = 0;
    if (journal->api.query_unique(journal->j, "_SYSTEMD_UNIT") < 0)
        return 0;
    while (count < MOST_UNITS && journal->api.enumerate_unique(journal->j, &data, &size) > 0)
        if (size > n && !is_per_call((const char *)data + n, size - n) &&
            is_service((const char *)data + n, size - n))
            ret_matches[count++] =
                gp_exam_text(journal->exam, "%.*s", (int)size, (const char *)data);
    return count;
}

/* "NAME[PID]: ", as in a syslog; returns the length. */
static size_t put_name(const struct gp_sdjournal *journal, char *buf, size_t size)
{
    size_t name_length = 0, pid_length = 0;
    const char *name = gp_sdjournal_field(journal, "SYSLOG_IDENTIFIER", &name_length);
    const char *pid = gp_sdjournal_field(journal, "_PID", &pid_length);
    int n = snprintf(buf, size, "%.*s[%.*s]: ", (int)name_length, name ? name : "", (int)pid_length,
                     pid ? pid : "");
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

/* The lines of an entry. */
static void take_lines(const struct gp_sdjournal *journal, const char *unit, const char *where,
                       gp_journal_take *take, void *argument)
{
    char text[LINE_SIZE];
    const char *line;
    uint64_t us = monotonic_of(journal);
    size_t length, n, head = put_name(journal, text, sizeof(text) / 2);
    const char *message = gp_sdjournal_field(journal, "MESSAGE", &length);
    struct gp_lines lines = gp_lines_of(message, message ? length : 0);
    for (size_t i = 0; i < ENTRY_LINES && gp_lines_next(&lines, &line, &n); i++) {
        (void)snprintf(text + head, sizeof(text) - head, "%.*s", (int)n, line);
        take(&(struct gp_journal_line){text, unit, where, us}, argument);
    }
}

/* Whether a service works for others, such as docker: a line is about one call, and not about what
 * the service can do since it was started. */
static bool is_server(struct gp_exam *exam, const char *unit)
{
    static const char servers[] =
        "buildkit,containerd,cri-docker,crio,docker,gitlab-runner,incus,k3s,k3s-agent,kubelet,"
        "libvirtd,lxd,nomad,podman,rke2-agent,rke2-server,slurmd,snap.docker.dockerd,"
        "snap.lxd.daemon,snap.microk8s.daemon-containerd,snap.microk8s.daemon-kubelite,virtqemud";
    int n = (int)(strlen(unit) - strlen(".service"));
    return gp_lines_list_has(servers, gp_exam_text(exam, "%.*s", n, unit));
}

/* A part of the journal of which lines are taken. */
struct part {
    const char *unit; /* the service; NULL: a user's programs */
    const char *where;
    bool is_of_day;    /* only those of the last day that the journal tells of */
    bool is_of_person; /* the service is set up to run as one */
};

static bool is_of_part(const struct gp_sdjournal *journal, const struct part *part)
{
    size_t n = 0;
    const char *unit = gp_sdjournal_field(journal, "_SYSTEMD_UNIT", &n);
    bool is_of_service = unit && is_service(unit, n);
    return is_own_word(journal) && is_of_service == (part->unit != NULL) &&
           (part->is_of_person || is_believed(journal)) &&
           (!part->is_of_day || realtime_of(journal) + GP_SDJOURNAL_DAY_US >= journal->last_us);
}

/* Takes at most `most` entries from this one on, those later than `after_us`; returns the time of
 * the last one. */
static uint64_t take_part(const struct gp_sdjournal *journal, const struct part *part, size_t most,
                          uint64_t after_us, gp_journal_take *take, void *argument)
{
    uint64_t us = 0;
    size_t count = 0;
    do {
        us = realtime_of(journal);
        if (us > after_us && is_of_part(journal, part))
            take_lines(journal, part->unit, part->where, take, argument);
        count++;
    } while (count < most && journal->api.next(journal->j) > 0);
    return us;
}

/* Selects what a service has logged since it was last started, and goes to the first of it. */
static bool select_start(const struct gp_sdjournal *journal, const char *unit_match)
{
    size_t n = 0;
    if (!gp_sdjournal_select_boot(journal) || gp_sdjournal_match(journal, unit_match) < 0 ||
        journal->api.previous(journal->j) <= 0)
        return false;
    const char *id = gp_sdjournal_field(journal, "_SYSTEMD_INVOCATION_ID", &n);
    const char *start =
        id ? gp_exam_text(journal->exam, "_SYSTEMD_INVOCATION_ID=%.*s", (int)n, id) : unit_match;
    return gp_sdjournal_match(journal, start) >= 0 && journal->api.seek_head(journal->j) >= 0 &&
           journal->api.next(journal->j) > 0;
}

/* The beginning, where many say once which GPU they have found, and the end. */
static void take_service(const struct gp_sdjournal *journal, const char *unit_match,
                         gp_journal_take *take, void *argument)
{
    struct gp_exam *exam = journal->exam;
    const char *unit = unit_match + sizeof(unit_field) - 1;
    if (!select_start(journal, unit_match))
        return;
    struct part part = {
        .unit = unit,
        .where = gp_exam_text(exam, "journalctl -u %s", gp_exam_quoted(exam, unit)),
        .is_of_day = is_server(exam, unit),
        .is_of_person = gp_service_value(exam, unit, "User") != NULL,
    };
    uint64_t last_us = take_part(journal, &part, UNIT_LINES, 0, take, argument);
    if (journal->api.seek_tail(journal->j) >= 0 &&
        journal->api.previous_skip(journal->j, UNIT_LINES) > 0)
        (void)take_part(journal, &part, UNIT_LINES, last_us, take, argument);
}

/* What programs that are not services have printed as this user. */
static void take_user(const struct gp_sdjournal *journal, unsigned long user, gp_journal_take *take,
                      void *argument)
{
    const char *wanted = gp_exam_text(journal->exam, "_UID=%lu", user);
    struct part part = {
        .where = gp_exam_text(journal->exam, "journalctl %s", wanted),
        .is_of_day = true,
    };
    if (gp_sdjournal_select_boot(journal) && gp_sdjournal_match(journal, wanted) >= 0 &&
        journal->api.previous_skip(journal->j, USER_LINES) > 0)
        (void)take_part(journal, &part, USER_LINES, 0, take, argument);
}

/* The users whose sessions count: who asks, and those of login screens, by their names, or of the
 * numbers that systemd gives to them. */
static size_t list_users(const struct gp_sdjournal *journal, unsigned long ret_users[MOST_USERS])
{
    static const char screens[] =
        "Debian-gdm,cosmic-greeter,gdm,greetd,greeter,lightdm,plasmalogin,sddm";
    enum { FIRST_SCREEN = 60578, LAST_SCREEN = 60705 };
    struct gp_account_line account;
    const void *data;
    size_t size, count = 0;
    if (journal->user > 0)
        ret_users[count++] = journal->user;
    for (char *text = gp_accounts_text(journal->exam);
         count < MOST_USERS && gp_accounts_next(&text, &account);)
        if (gp_lines_list_has(screens, account.name) && !gp_account_is_person(account.user))
            ret_users[count++] = account.user;
    if (journal->api.query_unique(journal->j, "_UID") < 0)
        return count;
    while (count < MOST_USERS && journal->api.enumerate_unique(journal->j, &data, &size) > 0) {
        const char *digits = gp_exam_text(journal->exam, "%.*s", (int)size, (const char *)data);
        unsigned long user = strtoul(digits + sizeof("_UID=") - 1, NULL, 10);
        if (user >= FIRST_SCREEN && user <= LAST_SCREEN)
            ret_users[count++] = user;
    }
    return count;
}

int gp_journal_programs(struct gp_exam *exam, gp_journal_take *take, void *argument)
{
    unsigned long users[MOST_USERS];
    const char *units[MOST_UNITS];
    struct gp_sdjournal journal;
    int r = gp_sdjournal_open(exam, &journal);
    size_t unit_count = r == 0 ? list_services(&journal, units) : 0;
    size_t user_count = r == 0 ? list_users(&journal, users) : 0;
    for (size_t i = 0; i < unit_count; i++)
        take_service(&journal, units[i], take, argument);
    for (size_t i = 0; i < user_count; i++)
        take_user(&journal, users[i], take, argument);
    gp_sdjournal_close(&journal);
    return r;
}

/* ---- as a syslog ---- */

/* "2026-11-25T10:00:00+00:00 HOST "; returns the length. */
static size_t put_time(const struct gp_sdjournal *journal, char *buf, size_t size)
{
    struct tm tm;
    size_t host_length = 0;
    const char *host = gp_sdjournal_field(journal, "_HOSTNAME", &host_length);
    time_t time = (time_t)(realtime_of(journal) / 1000000);
    size_t n = gmtime_r(&time, &tm) ? strftime(buf, size, "%Y-%m-%dT%H:%M:%S+00:00 ", &tm) : 0;
    int m = snprintf(buf + n, size - n, "%.*s ", (int)host_length, host ? host : "");
    return m < 0 || (size_t)m >= size - n ? n : n + (size_t)m;
}

/* Drops the older half where there is no room for so much. */
static void make_room(char *text, size_t *length, size_t size)
{
    if (*length + size < MOST_TEXT)
        return;
    const char *half = memchr(text + *length / 2, '\n', *length - *length / 2);
    size_t from = half ? (size_t)(half + 1 - text) : *length;
    *length -= from;
    memmove(text, text + from, *length);
}

static void put_line(char *text, size_t *length, const char *head, size_t head_length,
                     const char *line, size_t n)
{
    if (n > LINE_SIZE)
        n = LINE_SIZE;
    make_room(text, length, head_length + n + 1);
    memcpy(text + *length, head, head_length);
    memcpy(text + *length + head_length, line, n);
    *length += head_length + n;
    text[(*length)++] = '\n';
}

/* Appends an entry's lines. */
static void put_entry(const struct gp_sdjournal *journal, char *text, size_t *length)
{
    char head[512];
    size_t size = 0, n, head_length = put_time(journal, head, sizeof(head) / 2);
    head_length += put_name(journal, head + head_length, sizeof(head) / 2);
    const char *line, *message = gp_sdjournal_field(journal, "MESSAGE", &size);
    struct gp_lines lines = gp_lines_of(message, message ? size : 0);
    for (size_t i = 0; i < ENTRY_LINES && gp_lines_next(&lines, &line, &n); i++)
        put_line(text, length, head, head_length, line, n);
}

/* Selects one unit's lines, and those of systemd about it; alternatives to what is selected. */
static bool select_unit(const struct gp_sdjournal *journal, const char *unit)
{
    return journal->api.add_disjunction(journal->j) >= 0 &&
           gp_sdjournal_match(journal, gp_exam_text(journal->exam, "%s%s", unit_field, unit)) >=
               0 &&
           journal->api.add_disjunction(journal->j) >= 0 &&
           gp_sdjournal_match(journal, gp_exam_text(journal->exam, "UNIT=%s", unit)) >= 0 &&
           gp_sdjournal_match(journal, "_PID=1") >= 0;
}

static bool select_units(const struct gp_sdjournal *journal, const char *units)
{
    journal->api.flush_matches(journal->j);
    for (const char *p = units; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (!select_unit(journal, gp_exam_text(journal->exam, "%.*s", (int)n, p)))
            return false;
        p += n;
    }
    return journal->api.seek_tail(journal->j) >= 0;
}

/* Whether the entry is of another boot than the one before it. */
static bool is_next_boot(const struct gp_sdjournal *journal, char boot[GP_SDJOURNAL_ID])
{
    size_t n = 0;
    const char *id = gp_sdjournal_field(journal, "_BOOT_ID", &n);
    bool is_other = id && boot[0] && !gp_lines_is(id, n, boot);
    if (id)
        (void)snprintf(boot, GP_SDJOURNAL_ID, "%.*s", (int)n, id);
    return is_other;
}

static const char booted[] = "kernel: Linux version";

bool gp_journal_begins_boot(const char *line, size_t length)
{
    return memmem(line, length, booted, sizeof(booted) - 1);
}

/* The entries from this one on. */
static size_t put_entries(const struct gp_sdjournal *journal, char *text)
{
    char boot[GP_SDJOURNAL_ID] = "";
    size_t length = 0;
    do {
        if (is_next_boot(journal, boot))
            put_line(text, &length, "", 0, booted, sizeof(booted) - 1);
        if (is_believed(journal))
            put_entry(journal, text, &length);
    } while (journal->api.next(journal->j) > 0);
    if (strcmp(boot, strchr(journal->boot, '=') + 1) != 0) /* nothing is of this one */
        put_line(text, &length, "", 0, booted, sizeof(booted) - 1);
    text[length] = '\0';
    return length;
}

char *gp_journal_text(struct gp_exam *exam, const char *units, size_t *ret_length)
{
    struct gp_sdjournal journal;
    char *text = NULL;
    if (gp_sdjournal_open(exam, &journal) == 0 && select_units(&journal, units) &&
        journal.api.previous_skip(journal.j, TEXT_ENTRIES) > 0)
        text = gp_arena_take(&exam->arena, MOST_TEXT, 1);
    *ret_length = text ? put_entries(&journal, text) : 0;
    gp_sdjournal_close(&journal);
    return text;
}
