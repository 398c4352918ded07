/* Runs the checks, and collects their findings. */
#include "doctor/exam.h"

#include "base/clock.h"
#include "base/err.h"
#include "sample/thread.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A slow server responds within seconds; a dead one never. */
enum { PATIENCE_S = 10 };

static const struct gp_check *const groups[] = {
    gp_checks_platform, gp_checks_hardware, gp_checks_driver, gp_checks_container,
    gp_checks_log,      gp_checks_health,   gp_checks_cuda,   gp_checks_python,
    gp_checks_system,   gp_checks_amd,      gp_checks_intel,
};

const struct gp_check *gp_check_at(size_t place)
{
    for (size_t g = 0; g < GP_ARRAY_LEN(groups); g++)
        for (const struct gp_check *check = groups[g]; check->id; check++)
            if (place-- == 0)
                return check;
    return NULL;
}

const char *gp_verdict_word(enum gp_verdict verdict)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_VERDICTS(X)
#undef X
    };
    return words[verdict];
}

int gp_exam_open(struct gp_exam *exam, const char *root, struct gp_err *err)
{
    *exam = (struct gp_exam){.driver_words = "", .patience_ns = PATIENCE_S * GP_NS_PER_S};
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
    struct gp_outcome *outcome = &exam->outcomes[exam->place];
    if (verdict > outcome->verdict)
        outcome->verdict = verdict;
    if (!finding) {
        spare = (struct gp_finding){0};
        return &spare;
    }
    *finding = (struct gp_finding){.check = gp_check_at(exam->place),
                                   .verdict = verdict,
                                   .summary = summary,
                                   .why = "",
                                   .link = ""};
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

void gp_exam_evidence(struct gp_exam *exam, const char *where, const char *format, ...)
{
    const char *text;
    FORMATTED(text, exam, format);
    struct gp_evidence *evidence = gp_arena_alloc(&exam->arena, 1, sizeof(*evidence));
    if (!evidence || !exam->last)
        return;
    struct gp_evidence **end = &exam->last->evidence;
    while (*end)
        end = &(*end)->next;
    *evidence = (struct gp_evidence){.where = gp_exam_text(exam, "%s", where), .text = text};
    *end = evidence;
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
    struct gp_fix **end = &exam->last->fixes;
    while (*end)
        end = &(*end)->next;
    *fix = (struct gp_fix){.command = command, .note = note};
    *end = fix;
}

void gp_exam_command(struct gp_exam *exam, const char *note, const char *format, ...)
{
    const char *text;
    FORMATTED(text, exam, format);
    add_fix(exam, text, note);
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

void gp_exam_remedy(struct gp_exam *exam, enum gp_remedy remedy, const char *first,
                    const char *second)
{
    const struct gp_remedy_row *row = &gp_remedies[remedy];
    const char *commands = row->commands[exam->machine.distro];
    bool is_safe = is_list(first) && is_list(second);
    if (!commands || !is_safe) {
        add_fix(exam, NULL, row->note);
        return;
    }
    const char *note = row->note; /* only once, next to the first command */
    while (*commands) {
        size_t length = strcspn(commands, "\n");
        add_fix(exam, fill(exam, commands, length, first, second), note);
        note = "";
        commands += length + (commands[length] == '\n');
    }
}

void gp_exam_unreadable(struct gp_exam *exam, const char *path, int error)
{
    bool is_forbidden = error == -EACCES || error == -EPERM;
    gp_exam_report(exam, GP_VERDICT_SKIP, "%s cannot be read: %s%s", path, strerror(-error),
                   is_forbidden ? " (requires root)" : "");
}

/* ---- the order ---- */

/* Whether the word is the check's id or its group. */
static bool is_word_of(const char *word, size_t length, const char *id)
{
    return (length == strlen(id) || length == strcspn(id, ".")) && strncmp(word, id, length) == 0;
}

static bool is_listed(const char *list, const char *id)
{
    for (const char *p = list; p && *p;) {
        size_t n = strcspn(p, ",");
        if (is_word_of(p, n, id))
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

const char *gp_exam_unknown(const char *list, size_t *ret_length)
{
    const struct gp_check *check;
    for (const char *p = list; p && *p; p += *ret_length + (p[*ret_length] == ',')) {
        size_t i = 0;
        *ret_length = strcspn(p, ",");
        while ((check = gp_check_at(i)) && !is_word_of(p, *ret_length, check->id))
            i++;
        if (!check && *ret_length > 0)
            return p;
    }
    return NULL;
}

/* The failed check that this one needs directly or indirectly; NULL: none failed. */
static const struct gp_check *failed_need(const struct gp_exam *exam, const struct gp_check *check)
{
    const struct gp_check *other;
    for (size_t n = 0; n < GP_CHECK_NEEDS && check->needs[n]; n++)
        for (size_t i = 0; (other = gp_check_at(i)); i++)
            if (strcmp(other->id, check->needs[n]) == 0 && exam->outcomes[i].root_cause)
                return exam->outcomes[i].root_cause;
    return NULL;
}

static void run_check(struct gp_exam *exam, const struct gp_check *check)
{
    struct gp_outcome *outcome = &exam->outcomes[exam->place];
    const struct gp_check *because = failed_need(exam, check);
    outcome->is_run = true;
    if (because) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "skipped because %s failed", because->id);
        if (exam->last)
            exam->last->because = because;
        outcome->root_cause = because;
        return;
    }
    const struct gp_finding *before = exam->last;
    uint64_t start = gp_clock_mono_ns();
    check->run(exam);
    outcome->ms = (double)(gp_clock_mono_ns() - start) / 1e6;
    if (exam->last == before)
        gp_exam_report(exam, GP_VERDICT_OK, "%s", check->title);
    if (outcome->verdict == GP_VERDICT_FAIL)
        outcome->root_cause = check;
}

struct round {
    struct gp_exam *exam;
    const char *only, *without;
};

/* Runs the checks from the exam's current one on. */
static void *run_rest(void *ctx)
{
    const struct round *round = ctx;
    struct gp_exam *exam = round->exam;
    const struct gp_check *check;
    for (; (check = gp_check_at(exam->place)) && exam->place < GP_EXAM_CHECKS; exam->place++) {
        if ((round->only && !is_listed(round->only, check->id)) ||
            (round->without && is_listed(round->without, check->id)))
            continue;
        if (!check->applies || check->applies(exam))
            run_check(exam, check);
        else
            exam->outcomes[exam->place].root_cause = failed_need(exam, check);
    }
    return NULL;
}

/* Reports the path that does not respond, and makes later checks avoid it: the whole mount if its
 * files come from elsewhere, otherwise only the path (it may be a link to another file system). The
 * file system that gpulse was started from is never blocked as a whole. */
static void report_stall(struct gp_exam *exam, const char *path)
{
    static struct gp_mount mount; /* large */
    const char *root = exam->files.is_here ? "" : exam->files.root;
    size_t prefix = strlen(root);
    const char *silent = path;
    bool is_known = gp_mount_of(gp_exam_text(exam, "%s%s", root, path), &mount) &&
                    mount.is_remote && strcmp(mount.folder, "/") != 0;
    if (is_known)
        silent = strncmp(mount.folder, root, prefix) == 0 ? mount.folder + prefix : "";
    gp_stall_refuse(&exam->stall, silent);
    exam->outcomes[exam->place].is_run = true;
    gp_exam_report(exam, GP_VERDICT_WARN, "%s does not respond", *silent ? silent : "/");
    gp_exam_evidence(exam, path, "no response for %.0f s", (double)exam->patience_ns / 1e9);
    if (is_known)
        gp_exam_evidence(exam, "/proc/self/mounts", "%s on %s (%s)", mount.source, mount.folder,
                         mount.type);
    gp_exam_why(
        exam, "Every program that accesses it hangs just as long, and no signal ends that; this "
              "happens to a network mount when its server is gone. Files on it were not checked.");
    gp_exam_advice(exam, "check that the server of that mount is up and reachable");
}

/* Waits until the thread has finished (true), or has waited too long for a file. */
static bool wait_for(struct gp_exam *exam, pthread_t thread, char path[GP_PATH_SIZE])
{
    enum { LOOK_MS = 50 };
    for (;;) {
        struct timespec until = gp_clock_timespec(gp_clock_wall_ns() + LOOK_MS * GP_NS_PER_MS);
        if (pthread_timedjoin_np(thread, NULL, &until) == 0)
            return true;
        if (gp_stall_give_up(&exam->stall, exam->patience_ns, path))
            return false;
    }
}

void gp_exam_run(struct gp_exam *exam, const char *only, const char *without)
{
    struct round round = {.exam = exam, .only = only, .without = without};
    char path[GP_PATH_SIZE];
    pthread_t thread;
    exam->place = 0;
    while (gp_check_at(exam->place)) {
        if (gp_thread_start(&thread, run_rest, &round) < 0) {
            (void)run_rest(&round);
            return;
        }
        if (wait_for(exam, thread, path))
            return;
        exam->is_stuck = true;
        report_stall(exam, path);
        exam->place++;
    }
}

const struct gp_finding *gp_exam_first(const struct gp_exam *exam)
{
    const struct gp_finding *first = NULL;
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (f->verdict >= GP_VERDICT_WARN && (!first || f->verdict > first->verdict))
            first = f;
    return first;
}
