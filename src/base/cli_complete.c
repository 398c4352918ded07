/* Completion candidates, for shells: a pure function of the option tables. */
#include "base/cli_doc.h"

#include "base/strbuf.h"

#include <string.h>

typedef void (*expand_fn)(struct gp_strbuf *sb, enum gp_complete kind);

/* The parse state of the words before the one being completed. */
struct typed {
    const struct gp_cmd *cmd;   /* NULL: none yet */
    const struct gp_opt *wants; /* the option that expects the last word as its value */
    bool unknown_command;
    bool options_ended;
    int positional; /* after the command */
};

static bool has_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static const struct gp_opt *option_of(const struct gp_program *program, const struct gp_cmd *cmd,
                                      const char *name, size_t n, char letter)
{
    const struct gp_opt *opt = cmd ? gp_cli_option(cmd->options, name, n, letter) : NULL;
    return opt ? opt : gp_cli_option(program->common, name, n, letter);
}

/* The option in `word` that expects the next word as its value, or NULL. */
static const struct gp_opt *option_awaiting(const struct gp_program *program,
                                            const struct gp_cmd *cmd, const char *word)
{
    const struct gp_opt *opt = NULL;
    if (word[1] == '-') {
        if (strchr(word, '='))
            return NULL;
        opt = option_of(program, cmd, word + 2, strlen(word + 2), 0);
    } else {
        for (const char *p = word + 1; *p; p++) {
            opt = option_of(program, cmd, "", 0, *p);
            if (opt && opt->type != GP_OPT_FLAG && p[1])
                return NULL; /* the rest of the word is its value */
        }
    }
    return opt && opt->type != GP_OPT_FLAG && !opt->fallback ? opt : NULL;
}

static const struct gp_cmd *command_named(const struct gp_program *program, const char *name)
{
    for (size_t i = 0; program->commands[i]; i++)
        if (strcmp(program->commands[i]->name, name) == 0)
            return program->commands[i];
    return NULL;
}

static struct typed understand(const struct gp_program *program, int count, char *const *words)
{
    struct typed typed = {0};
    for (int i = 0; i < count - 1; i++) {
        const char *word = words[i];
        if (typed.wants) {
            typed.wants = NULL;
        } else if (!typed.options_ended && strcmp(word, "--") == 0) {
            typed.options_ended = true;
        } else if (!typed.options_ended && word[0] == '-' && word[1]) {
            typed.wants = option_awaiting(program, typed.cmd, word);
        } else if (!typed.cmd) {
            typed.cmd = command_named(program, word);
            typed.unknown_command |= !typed.cmd;
        } else {
            typed.positional++;
            typed.options_ended |= typed.cmd->raw_rest;
        }
    }
    return typed;
}

/* One candidate: the unchanged start of the word, the name, and its meaning. */
static void add_candidate(struct gp_strbuf *sb, const char *kept, size_t kept_len, const char *name,
                          size_t name_len, const char *meaning)
{
    gp_strbuf_add(sb, kept, kept_len);
    gp_strbuf_add(sb, name, name_len);
    if (meaning && *meaning)
        gp_strbuf_addf(sb, "\t%s", meaning);
    gp_strbuf_addc(sb, '\n');
}

/* The lines of `expand` (a name, optionally a tab and its meaning) that begin with `partial`. */
static void add_expanded(struct gp_strbuf *sb, enum gp_complete kind, const char *kept,
                         size_t kept_len, const char *partial, expand_fn expand)
{
    enum { NAMES_BYTES = 1 << 20 };
    if (!expand)
        return;
    struct gp_strbuf names = GP_STRBUF_INIT(NAMES_BYTES);
    expand(&names, kind);
    struct gp_cli_line line;
    for (const char *p = names.buf; gp_cli_next_line(&p, &line);)
        if (has_prefix(line.text, partial))
            add_candidate(sb, kept, kept_len, line.text, line.len, NULL);
    gp_strbuf_fini(&names);
}

/* The start of the last item of a comma list. */
static const char *last_item(const char *word)
{
    const char *comma = strrchr(word, ',');
    return comma ? comma + 1 : word;
}

static void complete_kind(struct gp_strbuf *sb, enum gp_complete kind, const char *whole,
                          const char *value, expand_fn expand)
{
    const char *item = last_item(value);
    switch (kind) {
    case GP_COMPLETE_NONE:
        break;
    case GP_COMPLETE_FILE:
        gp_strbuf_adds(sb, "FILES\n");
        break;
    case GP_COMPLETE_METRICS:
    case GP_COMPLETE_EVENTS:
        add_expanded(sb, kind, whole, (size_t)(item - whole), item, expand);
        break;
    case GP_COMPLETE_MACHINE:
        add_expanded(sb, kind, whole, (size_t)(value - whole), value, expand);
        gp_strbuf_adds(sb, "FILES\n");
        break;
    case GP_COMPLETE_THEMES:
        add_expanded(sb, kind, whole, (size_t)(value - whole), value, expand);
        break;
    case GP_COMPLETE_CONTROLS:
        add_expanded(sb, kind, whole, 0, whole, expand);
        break;
    case GP_COMPLETE_COMMAND:
        gp_strbuf_adds(sb, "COMMANDS\n");
        break;
    }
}

/* `whole` is the word as typed; the value begins at `value` inside it ("--format=js"). */
static void complete_value(struct gp_strbuf *sb, const struct gp_opt *opt, const char *whole,
                           const char *value, expand_fn expand)
{
    complete_kind(sb, opt->complete, whole, value, expand);
    const char *item = last_item(value);
    for (const char *p = opt->choices; p && *p;) {
        size_t n = strcspn(p, " ");
        if (has_prefix(p, item) && strlen(item) <= n)
            add_candidate(sb, whole, (size_t)(item - whole), p, n, NULL);
        p += n + (p[n] == ' ');
    }
}

static void complete_option_names(struct gp_strbuf *sb, const struct gp_opt *options,
                                  const struct gp_cmd *cmd, const char *word)
{
    const char *partial = word + strspn(word, "-");
    bool letter = word[1] && word[1] != '-';
    for (const struct gp_opt *opt = options; opt && opt->name; opt++) {
        if (!gp_cli_is_listed(opt, cmd))
            continue;
        if (!letter && has_prefix(opt->name, partial))
            add_candidate(sb, "--", 2, opt->name, strlen(opt->name), opt->help);
        else if (letter && opt->letter == word[1] && !word[2])
            add_candidate(sb, word, 2, "", 0, opt->help);
    }
}

static void complete_commands(struct gp_strbuf *sb, const struct gp_program *program,
                              const char *word)
{
    for (size_t i = 0; program->commands[i]; i++) {
        const struct gp_cmd *cmd = program->commands[i];
        if (!gp_cli_is_hidden(cmd) && has_prefix(cmd->name, word))
            add_candidate(sb, cmd->name, strlen(cmd->name), "", 0, cmd->summary);
    }
}

void gp_cli_complete(struct gp_strbuf *sb, const struct gp_program *program, int count,
                     char *const *words, expand_fn expand)
{
    if (count <= 0)
        return;
    const char *word = words[count - 1];
    struct typed typed = understand(program, count, words);
    const char *equals = strchr(word, '=');
    if (typed.wants) {
        complete_value(sb, typed.wants, word, word, expand);
    } else if (!typed.options_ended && has_prefix(word, "--") && equals) {
        const struct gp_opt *opt =
            option_of(program, typed.cmd, word + 2, (size_t)(equals - word) - 2, 0);
        if (opt)
            complete_value(sb, opt, word, equals + 1, expand);
    } else if (!typed.options_ended && word[0] == '-') {
        complete_option_names(sb, typed.cmd ? typed.cmd->options : NULL, typed.cmd, word);
        complete_option_names(sb, program->common, typed.cmd, word);
    } else if (typed.unknown_command) {
        return;
    } else if (!typed.cmd || (strcmp(typed.cmd->name, "help") == 0 && typed.positional == 0)) {
        complete_commands(sb, program, word);
    } else if (typed.cmd->complete == GP_COMPLETE_COMMAND && typed.positional > 0) {
        gp_strbuf_adds(sb, "FILES\n");
    } else {
        complete_kind(sb, typed.cmd->complete, word, word, expand);
    }
}
