/* Collects the findings of the checks. */
#include "doctor/exam.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A slow server responds within seconds; a dead one never. */
enum { PATIENCE_S = 10 };

const char *gp_verdict_word(enum gp_verdict verdict)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_VERDICTS(X)
#undef X
    };
    return words[verdict];
}

int gp_exam_open(struct gp_exam *exam, const struct gp_check_list *checks, const char *root,
                 struct gp_err *err)
{
    *exam = (struct gp_exam){
        .checks = checks, .driver_words = "", .patience_ns = PATIENCE_S * GP_NS_PER_S};
    int r = gp_files_open(&exam->files, root, err);
    if (r < 0)
        return r;
    gp_stall_init(&exam->stall);
    exam->files.stall = &exam->stall;
    gp_machine_read(&exam->machine, &exam->files, &exam->arena);
    return 0;
}

void gp_exam_close(struct gp_exam *exam)
{
    gp_files_close(&exam->files);
    gp_arena_fini(&exam->arena);
}

int gp_exam_set_pythons(struct gp_exam *exam, const char *list, struct gp_err *err)
{
    enum { MOST = 64 };
    size_t count = 0;
    const char **pythons = gp_arena_alloc(&exam->arena, MOST + 1, sizeof(*pythons));
    if (!pythons)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, ",");
        if (n > 0 && count == MOST)
            return gp_err_set(err, GP_EUSAGE, "--python: more than %d places; give fewer", MOST);
        if (n > 0)
            pythons[count++] = gp_exam_text(exam, "%.*s", (int)n, p);
        p += n + (p[n] == ',');
    }
    exam->pythons = pythons;
    return 0;
}

/* ---- findings ---- */

static const char *format_text(struct gp_exam *exam, const char *format, va_list args)
{
    enum { MOST = 64 << 10 };
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < MOST ? (size_t)(length < 0 ? 0 : length) + 1 : MOST;
    char *text = gp_arena_alloc(&exam->arena, size, 1);
    if (!text)
        return "(out of memory)";
    (void)vsnprintf(text, size, format, args);
    return text;
}

#define FORMATTED(ret, exam, format)                                                               \
    do {                                                                                           \
        va_list args_;                                                                             \
        va_start(args_, format);                                                                   \
        ret = format_text(exam, format, args_);                                                    \
        va_end(args_);                                                                             \
    } while (0)

const char *gp_exam_text(struct gp_exam *exam, const char *format, ...)
{
    const char *text;
    FORMATTED(text, exam, format);
    return text;
}

static struct gp_finding *add_finding(struct gp_exam *exam, enum gp_verdict verdict,
                                      const char *summary)
{
    static struct gp_finding spare; /* if memory runs out, the verdict still counts */
    struct gp_finding *finding = gp_arena_alloc(&exam->arena, 1, sizeof(*finding));
    struct gp_check_outcome *outcome = &exam->outcomes[exam->place];
    if (verdict > outcome->verdict)
        outcome->verdict = verdict;
    if (!finding) {
        spare = (struct gp_finding){0};
        return &spare;
    }
    *finding = (struct gp_finding){
        .check = exam->check, .verdict = verdict, .summary = summary, .why = "", .link = ""};
    if (exam->last)
        exam->last->next = finding;
    else
        exam->findings = finding;
    exam->last = finding;
    return finding;
}

void gp_exam_report(struct gp_exam *exam, enum gp_verdict verdict, const char *format, ...)
{
    const char *summary;
    FORMATTED(summary, exam, format);
    (void)add_finding(exam, verdict, summary);
}

/* "user:password@" or "token@" at the begin of a host's name; a password may have an @, too. */
static size_t login_length(const char *host)
{
    size_t n = strcspn(host, "/ \t\n\"'");
    while (n > 0 && host[n - 1] != '@')
        n--;
    return n;
}

const char *gp_exam_without_logins(struct gp_exam *exam, const char *text)
{
    static const char mark[] = "://";
    enum { MARK = sizeof(mark) - 1 };
    if (!strstr(text, mark))
        return text;
    char *copy = gp_arena_alloc(&exam->arena, strlen(text) + 1, 1), *to = copy;
    if (!copy)
        return "";
    for (const char *at; (at = strstr(text, mark)) != NULL;) {
        size_t n = (size_t)(at - text) + MARK;
        memcpy(to, text, n);
        to += n;
        text += n + login_length(at + MARK);
    }
    memcpy(to, text, strlen(text) + 1);
    return copy;
}

void gp_exam_evidence(struct gp_exam *exam, const char *where, const char *format, ...)
{
    const char *text;
    FORMATTED(text, exam, format);
    text = gp_exam_without_logins(exam, text);
    struct gp_evidence *evidence = gp_arena_alloc(&exam->arena, 1, sizeof(*evidence));
    if (!evidence || !exam->last)
        return;
    struct gp_evidence **end = &exam->last->evidence;
    while (*end)
        end = &(*end)->next;
    *evidence = (struct gp_evidence){.where = gp_exam_text(exam, "%s", where), .text = text};
    *end = evidence;
}

void gp_exam_stands_alone(struct gp_exam *exam)
{
    if (exam->last)
        exam->last->stands_alone = true;
}

void gp_exam_can_wait(struct gp_exam *exam)
{
    if (exam->last)
        exam->last->can_wait = true;
}

void gp_exam_is_empty(struct gp_exam *exam)
{
    if (exam->last)
        exam->last->is_empty = true;
}

void gp_exam_why(struct gp_exam *exam, const char *format, ...)
{
    const char *text;
    FORMATTED(text, exam, format);
    if (exam->last)
        exam->last->why = text;
}

void gp_exam_link(struct gp_exam *exam, const char *url)
{
    if (exam->last)
        exam->last->link = url;
}

static void add_fix(struct gp_exam *exam, const char *command, const char *note)
{
    struct gp_fix *fix = gp_arena_alloc(&exam->arena, 1, sizeof(*fix));
    if (!fix || !exam->last)
        return;
    struct gp_fix **end = &exam->last->fixes, *before = NULL;
    for (; *end; end = &(*end)->next)
        before = *end;
    if (before && before->command && command && strcmp(before->command, command) == 0)
        return;
    *fix = (struct gp_fix){.command = command, .note = note};
    *end = fix;
}

void gp_exam_command(struct gp_exam *exam, const char *note, const char *format, ...)
{
    const char *text;
    FORMATTED(text, exam, format);
    add_fix(exam, text, note);
}

/* NixOS has no lasting /etc/modprobe.d of its own. */
void gp_exam_module_setting(struct gp_exam *exam, const char *note, const char *file,
                            const char *line)
{
    const char *mark = strchr(line, '=') ? "'" : ""; /* values may mean something to a shell */
    if (strcmp(exam->machine.distro_id, "nixos") == 0)
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "after setting, in configuration.nix: "
                                     "boot.extraModprobeConfig = \"%s\";",
                                     line),
                        "sudo nixos-rebuild boot");
    else
        gp_exam_command(exam, note, "echo %s%s%s | sudo tee /etc/modprobe.d/%s", mark, line, mark,
                        file);
}

void gp_exam_advice(struct gp_exam *exam, const char *format, ...)
{
    const char *text;
    FORMATTED(text, exam, format);
    add_fix(exam, NULL, text);
}

/* Whether a word contains only characters that are not special to a shell. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+=,-";
    return word[strspn(word, plain)] == '\0';
}

const char *gp_exam_quoted(struct gp_exam *exam, const char *word)
{
    static const char quote[] = "'\\''"; /* a quotation mark inside single quotes */
    if (word[0] && is_plain(word))
        return word;
    char *text = gp_arena_alloc(&exam->arena, strlen(word) * strlen(quote) + sizeof("''"), 1);
    if (!text)
        return "''";
    char *end = text;
    *end++ = '\'';
    for (; *word; word++)
        if (*word == '\'') {
            memcpy(end, quote, strlen(quote));
            end += strlen(quote);
        } else {
            *end++ = *word;
        }
    *end++ = '\'';
    *end = '\0';
    return text;
}

/* A line of a remedy with {} replaced by the arguments. */
static const char *fill(struct gp_exam *exam, const char *line, size_t length, const char *first,
                        const char *second)
{
    const char *argument = first ? first : "", *text = "";
    const char *end = line + length, *hole;
    while ((hole = memmem(line, (size_t)(end - line), "{}", 2))) {
        text = gp_exam_text(exam, "%s%.*s%s", text, (int)(hole - line), line, argument);
        argument = second ? second : argument;
        line = hole + 2;
    }
    return gp_exam_text(exam, "%s%.*s", text, (int)(end - line), line);
}

/* Only plain words separated by spaces, or nothing. An argument may be placed inside quotes. */
static bool is_list(const char *words)
{
    for (; words && *words; words++)
        if (*words != ' ' && !is_plain((const char[]){*words, '\0'}))
            return false;
    return true;
}

/* RHEL 7 has yum, and no dnf. */
static const char *for_release(struct gp_exam *exam, const char *command)
{
    static const char dnf[] = "sudo dnf ";
    const struct gp_machine *m = &exam->machine;
    bool is_old = m->distro == GP_DISTRO_RHEL && strtoul(m->distro_version, NULL, 10) == 7;
    return is_old && strncmp(command, dnf, sizeof(dnf) - 1) == 0
               ? gp_exam_text(exam, "sudo yum %s", command + sizeof(dnf) - 1)
               : command;
}

bool gp_exam_tool(struct gp_exam *exam, enum gp_remedy remedy, const char *argument)
{
    const struct gp_remedy_tool *tool = gp_remedy_tool(&exam->files, exam->machine.distro, remedy);
    if (!tool || !is_list(argument))
        return false;
    add_fix(exam, fill(exam, tool->command, strlen(tool->command), argument, NULL), tool->note);
    return true;
}

void gp_exam_remedy(struct gp_exam *exam, enum gp_remedy remedy, const char *first,
                    const char *second)
{
    if (gp_exam_tool(exam, remedy, first))
        return;
    const struct gp_remedy_row *row = &gp_remedies[remedy];
    const struct gp_remedy_release *release = gp_remedy_release(&exam->machine, remedy);
    const char *commands = release ? release->commands : row->commands[exam->machine.distro];
    if (!release && !commands && exam->machine.distro == GP_DISTRO_OTHER)
        commands = gp_remedy_of_kin(exam->machine.distro_id, remedy);
    const char *note = release && release->note ? release->note : row->note;
    bool is_safe = is_list(first) && is_list(second);
    const struct gp_remedy_other *other = !release && exam->machine.distro == GP_DISTRO_OTHER
                                              ? gp_remedy_other(exam->machine.distro_id, remedy)
                                              : NULL;
    if (other) {
        const char *command = other->command;
        if (command && is_safe)
            command = fill(exam, command, strlen(command), first, second);
        add_fix(exam, command && strstr(command, "{}") ? NULL : command,
                is_safe ? fill(exam, other->note, strlen(other->note), first, second)
                        : other->note);
        return;
    }
    if (!commands || !is_safe) {
        add_fix(exam, NULL, note);
        return;
    }
    while (*commands) {
        size_t length = strcspn(commands, "\n");
        add_fix(exam, for_release(exam, fill(exam, commands, length, first, second)), note);
        note = ""; /* only once, next to the first command */
        commands += length + (commands[length] == '\n');
    }
}

void gp_exam_unreadable(struct gp_exam *exam, const char *path, int error)
{
    bool is_forbidden = error == -EACCES || error == -EPERM;
    gp_exam_report(exam, GP_VERDICT_SKIP, "%s cannot be read: %s%s", path, strerror(-error),
                   is_forbidden ? " (requires root)" : "");
}

enum gp_presence gp_exam_presence(const struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    bool is_elsewhere = m->is_wsl || m->is_jetson || m->is_apple;
    if (m->gpu_count > 0 || m->is_driver_loaded || is_elsewhere ||
        (exam->snapshot && exam->snapshot->device_count > 0))
        return GP_PRESENCE_SOME;
    /* A kernel without PCI has no such directory, but has others in /sys. */
    bool is_hidden = !m->is_pci_readable && (gp_files_exist(&exam->files, "/sys/bus/pci/devices") ||
                                             !gp_files_exist(&exam->files, "/sys/bus"));
    return is_hidden ? GP_PRESENCE_UNKNOWN : GP_PRESENCE_NONE;
}

const struct gp_finding *gp_exam_first(const struct gp_exam *exam)
{
    const struct gp_finding *first = NULL;
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (f->verdict >= GP_VERDICT_WARN &&
            (!first || f->verdict > first->verdict ||
             (f->verdict == first->verdict && first->can_wait && !f->can_wait)))
            first = f;
    return first;
}

bool gp_exam_has_failed(const struct gp_exam *exam, const char *id, const char *words)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (f->verdict == GP_VERDICT_FAIL && strcmp(f->check->id, id) == 0 &&
            strstr(f->summary, words))
            return true;
    return false;
}

bool gp_exam_blame(struct gp_exam *exam, const char *id)
{
    const struct gp_finding *f = exam->findings;
    while (f && (f->verdict != GP_VERDICT_FAIL || strcmp(f->check->id, id) != 0))
        f = f->next;
    if (!f)
        return false;
    const struct gp_check *because = f->check;
    gp_exam_report(exam, GP_VERDICT_SKIP, "skipped because %s failed", id);
    exam->last->because = because;
    exam->outcomes[exam->place].root_cause = because;
    return true;
}

/* ---- lists of checks ---- */

/* Whether the word is the check's id or its group. */
static bool is_word_of(const char *word, size_t length, const char *id)
{
    return (length == strlen(id) || length == strcspn(id, ".")) && strncmp(word, id, length) == 0;
}

bool gp_exam_is_listed(const char *list, const char *id)
{
    for (const char *p = list; p && *p;) {
        size_t n = strcspn(p, ",");
        if (is_word_of(p, n, id))
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}
