#include "doctor/explain/explain.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/parse.h"
#include "doctor/entries.h"
#include "doctor/explain/explain_internal.h"
#include "doctor/tables.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TEXT_SIZE = 2048 };

const struct gp_explanation gp_explain_nothing = {
    "", "", "", "", "", "", "", "", "", "", "", "", "", "",
};

const char *gp_explain_text(struct gp_arena *arena, const char *format, ...)
{
    char buf[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(buf, sizeof(buf), format, args);
    va_end(args);
    const char *kept = gp_arena_strdup(arena, buf);
    return kept ? kept : "";
}

/* ---- numbers and names ---- */

bool gp_explain_xid(struct gp_arena *arena, unsigned code, struct gp_explanation *ret)
{
    struct gp_xid_row row;
    if (!gp_xid_row_find(code, &row))
        return false;
    *ret = gp_explain_nothing;
    ret->id = gp_explain_text(arena, "xid.%u", code);
    ret->title = gp_explain_text(arena, "Xid %u", code);
    ret->words = row.words;
    ret->name = row.mnemonic;
    ret->note = row.note;
    ret->fault = row.fault;
    ret->advice = row.advice;
    ret->action = row.action;
    ret->source = row.source;
    return true;
}

bool gp_explain_sxid(struct gp_arena *arena, unsigned code, struct gp_explanation *ret)
{
    const struct gp_sxid_row *row = gp_sxid_row_find(code);
    if (!row)
        return false;
    *ret = gp_explain_nothing;
    ret->id = gp_explain_text(arena, "sxid.%u", code);
    ret->title = gp_explain_text(arena, "SXid %u", code);
    ret->words = row->words;
    ret->name = row->name;
    ret->fault = "hardware";
    ret->advice = row->advice;
    ret->source = row->source;
    return true;
}

bool gp_explain_entry(const struct gp_error_entry *entry, struct gp_explanation *ret)
{
    if (!entry)
        return false;
    *ret = (struct gp_explanation){
        .id = entry->id,
        .title = entry->title,
        .words = entry->cause,
        .maybe = entry->maybe,
        .name = entry->name,
        .details = "",
        .note = "",
        .check = entry->check,
        .look = entry->look,
        .found = entry->found,
        .family = entry->family,
        .fault = "",
        .advice = entry->fix,
        .action = "",
        .source = entry->source,
    };
    return true;
}

/* One of the names in an entry's "cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE". */
static bool has_name(const char *names, const char *name)
{
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, ",");
        if (n == strlen(name) && strncasecmp(p, name, n) == 0)
            return true;
        p += n + strspn(p + n, ", ");
    }
    return false;
}

/* A code of a table, by its number or name. */
static bool code_topic(struct gp_arena *arena, const char *topic, const char *what, uint64_t number,
                       bool is_number, struct gp_explanation *ret)
{
    const size_t n = strlen(topic);
    if (is_number)
        return gp_explain_entry(
            gp_entry_find(gp_explain_text(arena, "%s.%llu", topic, (unsigned long long)number)),
            ret);
    for (size_t i = 0; i < gp_entry_count; i++)
        if (strncmp(gp_entries[i].id, topic, n) == 0 && gp_entries[i].id[n] == '.' &&
            has_name(gp_entries[i].name, what))
            return gp_explain_entry(&gp_entries[i], ret);
    return false;
}

static bool cuda_topic(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                       struct gp_explanation *ret)
{
    return code_topic(arena, "cuda", what, number, is_number, ret);
}

static bool nvml_topic(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                       struct gp_explanation *ret)
{
    return code_topic(arena, "nvml", what, number, is_number, ret);
}

static bool xid_topic(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                      struct gp_explanation *ret)
{
    (void)what;
    return is_number && gp_explain_xid(arena, (unsigned)number, ret);
}

static bool sxid_topic(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                       struct gp_explanation *ret)
{
    (void)what;
    return is_number && gp_explain_sxid(arena, (unsigned)number, ret);
}

/* A word of a table, NVML's name for it, or a mask with this one bit. */
static bool throttle_topic(struct gp_arena *arena, const char *what, uint64_t number,
                           bool is_number, struct gp_explanation *ret)
{
    const bool is_hex = what[0] == '0' && (what[1] == 'x' || what[1] == 'X');
    char *end = NULL;
    const uint64_t mask = is_hex ? strtoul(what, &end, 16) : number;
    const bool is_mask = is_hex ? !*end : is_number;
    for (size_t i = 0; i < gp_throttle_reason_count; i++) {
        const struct gp_throttle_reason *row = &gp_throttle_reasons[i];
        if (!(is_mask && mask == row->mask) && strcasecmp(row->word, what) != 0 &&
            strcasecmp(row->name, what) != 0)
            continue;
        *ret = gp_explain_nothing;
        ret->id = gp_explain_text(arena, "throttle.%s", row->word);
        ret->title = gp_explain_text(arena, "throttle reason %s", row->word);
        ret->words = row->words;
        ret->name = gp_explain_text(arena, "%s (0x%x)", row->name, row->mask);
        ret->advice = row->advice;
        ret->source = row->source;
        return true;
    }
    return false;
}

static bool recovery_topic(struct gp_arena *arena, const char *what, uint64_t number,
                           bool is_number, struct gp_explanation *ret)
{
    for (size_t i = 0; i < gp_recovery_action_count; i++) {
        const struct gp_recovery_action *row = &gp_recovery_actions[i];
        if (is_number ? number != row->number : strcasecmp(row->word, what) != 0)
            continue;
        *ret = gp_explain_nothing;
        ret->id = gp_explain_text(arena, "recovery.%s", row->word);
        ret->title = gp_explain_text(arena, "recovery action %u", row->number);
        ret->words = row->words;
        ret->name = row->word;
        ret->advice = row->advice;
        ret->source = row->source;
        return true;
    }
    return false;
}

static bool memory_topic(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                         struct gp_explanation *ret)
{
    (void)number;
    (void)is_number;
    for (size_t i = 0; i < gp_memory_state_count; i++) {
        const struct gp_memory_state *row = &gp_memory_states[i];
        if (strcasecmp(row->word, what) != 0)
            continue;
        *ret = gp_explain_nothing;
        ret->id = gp_explain_text(arena, "memory.%s", row->word);
        ret->title = gp_explain_text(arena, "memory state %s", row->word);
        ret->words = row->words;
        ret->advice = row->advice;
        ret->source = row->source;
        return true;
    }
    return false;
}

/* Exit statuses of shells, timeout(1) and gpulse run, and what a shell prints for them. */
static const struct exit_row {
    unsigned status;
    const char *line, *words, *advice, *maybe, *look;
} exits[] = {
    {69, "", "gpulse run: too few GPUs are free", "wait for them: gpulse run --wait"},
    {75, "", "gpulse run: --wait ran out before GPUs were free", "see gpulse queue"},
    {78, "", "gpulse run: this machine can never meet the request", "see gpulse pick --explain"},
    {124, "", "a time limit ran out: that of timeout(1), or of gpulse run --timeout",
     "allow more time"},
    {126, "", "the command cannot be run", "check that it is executable, and its first line"},
    {127, "", "the command does not exist", "check its name, PATH, and the environment"},
    {129, "Hangup", "killed by SIGHUP: its terminal was closed", "use nohup, tmux or systemd-run"},
    {130, "", "killed by SIGINT: Ctrl-C, or gpulse kill", "no action is needed"},
    {132, "Illegal instruction", "killed by SIGILL: the CPU refused an instruction",
     "update that program; if the CPU lacks what it uses: a build for this CPU",
     "the CPU lacks an instruction that the build uses (AVX, AVX2, AVX-512); or a check in the "
     "program failed; or NumPy 1.19.5 runs on a Jetson (OPENBLAS_CORETYPE=ARMV8 helps)",
     "hardware.cpu"},
    {134, "Aborted", "killed by SIGABRT: it aborted itself, after a failed assertion or an error",
     "the lines before it give the reason"},
    {135, "Bus error", "killed by SIGBUS: memory that it has mapped is not there",
     "look at df /dev/shm; in a container, raise --shm-size",
     "/dev/shm is full; or a mapped file became shorter, or lies on a full disk", "system.shm"},
    {136, "Floating point exception", "killed by SIGFPE: an integer division by zero",
     "run it in a debugger"},
    {137, "Killed", "killed by SIGKILL", "see journalctl -k for the OOM killer",
     "the kernel did it because host memory ran out; or a user or a scheduler did"},
    {139, "Segmentation fault", "killed by SIGSEGV: it accessed invalid memory",
     "a bug in the program or a library: look at the core dump (coredumpctl), or run it with "
     "python -X faulthandler"},
    {141, "Broken pipe", "killed by SIGPIPE: the program that read its output has exited",
     "no action is needed if that was intended, as with head(1)"},
    {143, "Terminated", "killed by SIGTERM: by kill, a scheduler, a service manager or a shutdown",
     "look at the scheduler's time and memory limits"},
};

static void explain_exit(struct gp_arena *arena, const struct exit_row *row,
                         struct gp_explanation *ret)
{
    *ret = gp_explain_nothing;
    ret->id = gp_explain_text(arena, "exit.%u", row->status);
    ret->title = gp_explain_text(arena, "exit status %u", row->status);
    ret->words = row->words;
    ret->maybe = row->maybe ? row->maybe : "";
    ret->advice = row->advice;
    ret->look = row->look ? row->look : "";
    ret->source = row->status < 80 ? "gpulse" : "POSIX shells";
}

static bool exit_topic(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                       struct gp_explanation *ret)
{
    (void)what;
    for (size_t i = 0; is_number && i < GP_ARRAY_LEN(exits); i++)
        if (exits[i].status == number) {
            explain_exit(arena, &exits[i], ret);
            return true;
        }
    return false;
}

bool gp_explain_is_exit(const char *number)
{
    uint64_t status = 0;
    struct gp_arena arena = {NULL};
    struct gp_explanation unused;
    bool is = gp_parse_u64(number, &status) && status >= 124 &&
              exit_topic(&arena, "", status, true, &unused);
    gp_arena_fini(&arena);
    return is;
}

/* "SIGKILL", "kill"; 0: no signal has this name. */
static int signal_of(const char *name)
{
    const char *rest = strncasecmp(name, "SIG", 3) == 0 ? name + 3 : name;
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), rest) == 0)
            return i;
    return 0;
}

bool gp_explain_is_signal(const char *name)
{
    return signal_of(name) > 0;
}

static bool signal_topic(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                         struct gp_explanation *ret)
{
    const int signal = !is_number ? signal_of(what) : number < NSIG ? (int)number : 0;
    const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;
    if (!name)
        return false;
    if (exit_topic(arena, "", 128 + (uint64_t)signal, true, ret))
        return true;
    const struct exit_row row = {128 + (unsigned)signal, "",
                                 gp_explain_text(arena, "killed by SIG%s", name),
                                 "a program or a scheduler sent it: look at their logs"};
    explain_exit(arena, &row, ret);
    return true;
}

bool gp_explain_shell(struct gp_arena *arena, const char *line, struct gp_explanation *ret)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(exits); i++) {
        const size_t n = strlen(exits[i].line);
        if (n == 0 || strncasecmp(line, exits[i].line, n) != 0 ||
            (line[n] && strcmp(line + n, " (core dumped)") != 0))
            continue;
        explain_exit(arena, &exits[i], ret);
        return true;
    }
    return false;
}

static const struct {
    const char *word;
    const char *what; /* an example */
    const char *hint; /* about an unknown one; NULL: none */
    bool (*explain)(struct gp_arena *arena, const char *what, uint64_t number, bool is_number,
                    struct gp_explanation *ret);
} topics[] = {
    {"xid", "79", NULL, xid_topic},
    {"sxid", "20034", NULL, sxid_topic},
    {"cuda", "802", NULL, cuda_topic},
    {"nvml", "18", NULL, nvml_topic},
    {"throttle", "sw_power_cap", NULL, throttle_topic},
    {"recovery", "4", NULL, recovery_topic},
    {"memory", "remap_pending", NULL, memory_topic},
    {"exit", "137", "a program chooses such a status itself, and its output says why", exit_topic},
    {"signal", "9", NULL, signal_topic},
};

bool gp_explain_is_topic(const char *word)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(topics); i++)
        if (strcasecmp(topics[i].word, word) == 0)
            return true;
    return false;
}

int gp_explain_topic(struct gp_arena *arena, const char *topic, const char *what,
                     struct gp_explanation *ret, struct gp_err *err)
{
    uint64_t number = 0;
    bool is_number = gp_parse_u64(what, &number) && number <= UINT32_MAX;
    for (size_t i = 0; i < GP_ARRAY_LEN(topics); i++) {
        if (strcasecmp(topics[i].word, topic) != 0)
            continue;
        if (topics[i].explain(arena, what, number, is_number, ret))
            return 0;
        return gp_err_set(err, GP_EFAIL, "unknown %s '%.60s'; a known one is %s %s%s%s",
                          topics[i].word, what, topics[i].word, topics[i].what,
                          topics[i].hint ? "; " : "", topics[i].hint ? topics[i].hint : "");
    }
    return gp_err_set(err, GP_EUSAGE, "unknown topic '%.60s'", topic);
}
