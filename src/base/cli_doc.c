/* Renders the option tables as help (for people), scdoc (for manual pages) and completion
 * candidates (for shells). Everything here is a pure function of the tables. */
#include "base/cli.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

enum {
    PAGE_COLUMNS = 80,
    LABEL_INDENT = 2,
    OPTION_COLUMN_MAX = 30, /* a longer label moves its text to the next line */
    EXAMPLE_COLUMN_MAX = 46,
    LABEL_BYTES = 512,
    TEXT_BYTES = 8192,
};

static bool is_hidden(const struct gp_cmd *cmd)
{
    return cmd->name[0] == '_';
}

/* Columns of n bytes of our own text, which has no wide or combining characters. */
static size_t columns_of(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

/* One line of "left\tright" or "word" text, without its newline. */
struct line {
    const char *text;
    size_t len;
};

static bool next_line(const char **cursor, struct line *ret)
{
    if (!*cursor || !**cursor)
        return false;
    ret->text = *cursor;
    ret->len = strcspn(*cursor, "\n");
    *cursor += ret->len + ((*cursor)[ret->len] == '\n');
    return true;
}

/* Cuts a line at its tab; the right half is empty without one. */
static void split_pair(struct line line, struct line *ret_left, struct line *ret_right)
{
    const char *tab = memchr(line.text, '\t', line.len);
    size_t left = tab ? (size_t)(tab - line.text) : line.len;
    *ret_left = (struct line){line.text, left};
    *ret_right = tab ? (struct line){tab + 1, line.len - left - 1} : (struct line){"", 0};
}

/* One paragraph of a description, up to an empty line. Lines that begin with a blank are shown
 * verbatim, so they form paragraphs of their own. */
static bool next_paragraph(const char **cursor, struct line *ret)
{
    const char *p = *cursor;
    while (p && *p == '\n')
        p++;
    if (!p || !*p)
        return false;
    const char *end = strstr(p, "\n\n");
    ret->text = p;
    ret->len = end ? (size_t)(end - p) : strlen(p);
    while (ret->len > 0 && p[ret->len - 1] == '\n')
        ret->len--;
    *cursor = p + ret->len;
    return true;
}

/* ------------------------------------------------------------------ help */

static void add_description(struct gp_strbuf *sb, const char *text)
{
    struct line paragraph;
    while (next_paragraph(&text, &paragraph)) {
        if (paragraph.text[0] == ' ') {
            gp_strbuf_add(sb, paragraph.text, paragraph.len);
            gp_strbuf_addc(sb, '\n');
        } else {
            gp_utf8_add_wrapped(sb, paragraph.text, paragraph.len, 0, PAGE_COLUMNS);
        }
        gp_strbuf_addc(sb, '\n');
    }
}

/* A label and its text, which starts at `column`. */
static void add_row(struct gp_strbuf *sb, struct line label, struct line text, size_t column)
{
    gp_strbuf_fill(sb, ' ', LABEL_INDENT);
    gp_strbuf_add(sb, label.text, label.len);
    size_t end = LABEL_INDENT + columns_of(label.text, label.len);
    if (text.len == 0) {
        gp_strbuf_addc(sb, '\n');
        return;
    }
    if (end + 2 > column) {
        gp_strbuf_addc(sb, '\n');
        end = 0;
    }
    gp_strbuf_fill(sb, ' ', column - end);
    gp_utf8_add_wrapped(sb, text.text, text.len, column, PAGE_COLUMNS);
}

static size_t wider(size_t column, size_t label_columns, size_t column_max)
{
    size_t wanted = LABEL_INDENT + label_columns + 2;
    return wanted > column && wanted <= column_max ? wanted : column;
}

/* Lines of "label\ttext" as a block with a title. */
static void add_pairs(struct gp_strbuf *sb, const char *title, const char *text, size_t column_max)
{
    if (!text || !*text)
        return;
    struct line line, left, right;
    size_t column = 8;
    for (const char *p = text; next_line(&p, &line);) {
        split_pair(line, &left, &right);
        column = wider(column, columns_of(left.text, left.len), column_max);
    }
    gp_strbuf_addf(sb, "%s:\n", title);
    for (const char *p = text; next_line(&p, &line);) {
        split_pair(line, &left, &right);
        add_row(sb, left, right, column);
    }
    gp_strbuf_addc(sb, '\n');
}

/* "-i, --id LIST", "    --watch[=TIME]" */
static void format_label(struct gp_strbuf *sb, const struct gp_opt *opt)
{
    if (opt->letter)
        gp_strbuf_addf(sb, "-%c, ", opt->letter);
    else
        gp_strbuf_adds(sb, "    ");
    gp_strbuf_addf(sb, "--%s", opt->name);
    if (opt->arg)
        gp_strbuf_addf(sb, opt->fallback ? "[=%s]" : " %s", opt->arg);
}

/* Whether a text contains all words of a space-separated list. */
static bool names_all(const char *text, const char *list)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        const char *at = text;
        while ((at = memmem(at, strlen(at), p, n)) &&
               (isalnum((unsigned char)at[n]) || (at > text && isalnum((unsigned char)at[-1]))))
            at++;
        if (!at)
            return false;
        p += n + (p[n] == ' ');
    }
    return true;
}

/* The help text; unless it or the label names the choices itself, they are added as
 * {auto|always|never} before its "(default …)". */
static void format_option_text(struct gp_strbuf *sb, const struct gp_opt *opt)
{
    const char *last = strstr(opt->help, " (default");
    size_t n = last ? (size_t)(last - opt->help) : strlen(opt->help);
    if (opt->type != GP_OPT_CHOICE || !opt->choices || names_all(opt->arg, opt->choices) ||
        names_all(opt->help, opt->choices)) {
        gp_strbuf_adds(sb, opt->help);
        return;
    }
    gp_strbuf_add(sb, opt->help, n);
    gp_strbuf_adds(sb, ": {");
    for (const char *p = opt->choices; *p; p++)
        gp_strbuf_addc(sb, *p == ' ' ? '|' : *p);
    gp_strbuf_addf(sb, "}%s", opt->help + n);
}

static bool is_listed(const struct gp_opt *opt, const struct gp_cmd *cmd)
{
    return opt->help && !(opt->for_loops && cmd && cmd->no_loop);
}

static void add_option(struct gp_strbuf *sb, const struct gp_opt *opt, size_t column)
{
    struct gp_strbuf label = GP_STRBUF_INIT(LABEL_BYTES);
    struct gp_strbuf text = GP_STRBUF_INIT(TEXT_BYTES);
    format_label(&label, opt);
    format_option_text(&text, opt);
    add_row(sb, (struct line){label.buf, label.len}, (struct line){text.buf, text.len}, column);
    gp_strbuf_fini(&label);
    gp_strbuf_fini(&text);
}

static size_t option_column(const struct gp_opt *options, const struct gp_cmd *cmd)
{
    struct gp_strbuf label = GP_STRBUF_INIT(LABEL_BYTES);
    size_t column = 8;
    for (const struct gp_opt *opt = options; opt && opt->name; opt++) {
        if (!is_listed(opt, cmd))
            continue;
        gp_strbuf_reset(&label);
        format_label(&label, opt);
        column = wider(column, columns_of(label.buf, label.len), OPTION_COLUMN_MAX);
    }
    gp_strbuf_fini(&label);
    return column;
}

/* The options under their headings; those before the first heading go under `title`. If a heading
 * comes twice, the second block continues the first. */
static void add_options(struct gp_strbuf *sb, const char *title, const struct gp_opt *options,
                        const struct gp_cmd *cmd)
{
    size_t column = option_column(options, cmd);
    const char *group = title;
    const char *said = NULL;
    for (const struct gp_opt *opt = options; opt && opt->name; opt++) {
        group = opt->group ? opt->group : group;
        if (!is_listed(opt, cmd))
            continue;
        if (!said || strcmp(group, said) != 0)
            gp_strbuf_addf(sb, "%s%s:\n", said ? "\n" : "", group);
        said = group;
        add_option(sb, opt, column);
    }
    if (said)
        gp_strbuf_addc(sb, '\n');
}

static void add_commands(struct gp_strbuf *sb, const struct gp_cmd *const *commands)
{
    size_t column = 8;
    const char *group = "Commands";
    for (size_t i = 0; commands[i]; i++)
        if (!is_hidden(commands[i]))
            column = wider(column, strlen(commands[i]->name), OPTION_COLUMN_MAX);
    for (size_t i = 0; commands[i]; i++) {
        const struct gp_cmd *cmd = commands[i];
        if (is_hidden(cmd))
            continue;
        if (i == 0 || cmd->group) {
            group = cmd->group ? cmd->group : group;
            gp_strbuf_addf(sb, "%s%s:\n", i ? "\n" : "", group);
        }
        add_row(sb, (struct line){cmd->name, strlen(cmd->name)},
                (struct line){cmd->summary, strlen(cmd->summary)}, column);
    }
    gp_strbuf_addc(sb, '\n');
}

/* "gpulse query: summary" and "usage: gpulse query [FIELDS] [options]", wrapped after the name. */
static void add_head(struct gp_strbuf *sb, const char *before, const char *program,
                     const struct gp_cmd *cmd, const char *after, const char *text)
{
    size_t start = sb->len;
    gp_strbuf_addf(sb, "%s%s%s%s%s", before, program, cmd ? " " : "", cmd ? cmd->name : "", after);
    if (text && *text)
        gp_utf8_add_wrapped(sb, text, strlen(text), sb->len - start, PAGE_COLUMNS);
    else
        gp_strbuf_addc(sb, '\n');
    gp_strbuf_addc(sb, '\n');
}

static bool has_options(const struct gp_opt *options)
{
    return options && options->name;
}

static const char *program_usage(const struct gp_program *program)
{
    return has_options(program->common) ? "[common options] COMMAND [arguments]"
                                        : "COMMAND [arguments]";
}

void gp_cli_help(struct gp_strbuf *sb, const struct gp_program *program)
{
    add_head(sb, "", program->name, NULL, ": ", program->summary);
    add_head(sb, "Usage: ", program->name, NULL, " ", program_usage(program));
    add_description(sb, program->description);
    add_commands(sb, program->commands);
    add_options(sb, "Common options", program->common, NULL);
    add_pairs(sb, "Environment", program->environment, OPTION_COLUMN_MAX);
    add_pairs(sb, "Signals", program->signals, OPTION_COLUMN_MAX);
    add_pairs(sb, "Exit codes", program->exit_codes, OPTION_COLUMN_MAX);
    gp_strbuf_addf(sb, "%s COMMAND --help lists the options of a command, with examples.\n",
                   program->name);
}

void gp_cli_help_command(struct gp_strbuf *sb, const struct gp_program *program,
                         const struct gp_cmd *cmd)
{
    add_head(sb, "", program->name, cmd, ": ", cmd->summary);
    add_head(sb, "Usage: ", program->name, cmd, cmd->usage && *cmd->usage ? " " : "", cmd->usage);
    add_options(sb, "Options", cmd->options, cmd);
    add_pairs(sb, "Examples", cmd->examples, EXAMPLE_COLUMN_MAX);
    add_pairs(sb, "Exit codes", cmd->exit_codes, OPTION_COLUMN_MAX);
    if (has_options(program->common) && !cmd->no_common)
        gp_strbuf_addf(sb, "Common options (-i,%s --sim, …): %s --help\n",
                       gp_cli_option(cmd->options, "timeout", strlen("timeout"), 0) ? ""
                                                                                    : " --timeout,",
                       program->name);
    /* Each block ends with an empty line; the page must not. */
    if (!sb->error && sb->len >= 2 && memcmp(sb->buf + sb->len - 2, "\n\n", 2) == 0)
        sb->buf[--sb->len] = '\0';
}

/* ------------------------------------------------------------------ manual pages */

/* Text as scdoc expects it: markup characters escaped, newlines replaced by blanks. */
static void add_scdoc(struct gp_strbuf *sb, const char *s, size_t n)
{
    bool line_start = sb->len == 0 || sb->buf[sb->len - 1] == '\n' || sb->buf[sb->len - 1] == '\t';
    for (size_t i = 0; i < n; i++) {
        char c = s[i] == '\n' ? ' ' : s[i];
        if (strchr("\\*_`", c) || (i == 0 && line_start && strchr("#-|[];!", c)))
            gp_strbuf_addc(sb, '\\');
        /* "++" at the end of a line would be a line break. */
        if (c == '+' && i > 0 && s[i - 1] == '+')
            gp_strbuf_addc(sb, '\\');
        gp_strbuf_addc(sb, c);
    }
}

static void add_scdoc_str(struct gp_strbuf *sb, const char *s)
{
    add_scdoc(sb, s, strlen(s));
}

static void add_scdoc_bold(struct gp_strbuf *sb, const char *s, size_t n)
{
    gp_strbuf_addc(sb, '*');
    add_scdoc(sb, s, n);
    gp_strbuf_addc(sb, '*');
}

static void man_title(struct gp_strbuf *sb, const char *title)
{
    gp_strbuf_addf(sb, "# %s\n\n", title);
}

/* Lines that begin with a blank become a literal block, the others a paragraph. */
static void man_description(struct gp_strbuf *sb, const char *text)
{
    struct line paragraph;
    while (next_paragraph(&text, &paragraph)) {
        if (paragraph.text[0] == ' ') {
            gp_strbuf_adds(sb, "```\n");
            gp_strbuf_add(sb, paragraph.text, paragraph.len);
            gp_strbuf_adds(sb, "\n```\n\n");
        } else {
            add_scdoc(sb, paragraph.text, paragraph.len);
            gp_strbuf_adds(sb, "\n\n");
        }
    }
}

static void man_pairs(struct gp_strbuf *sb, const char *title, const char *text)
{
    if (!text || !*text)
        return;
    man_title(sb, title);
    struct line line, left, right;
    while (next_line(&text, &line)) {
        split_pair(line, &left, &right);
        add_scdoc_bold(sb, left.text, left.len);
        gp_strbuf_adds(sb, "\n\t");
        add_scdoc(sb, right.text, right.len);
        gp_strbuf_adds(sb, "\n\n");
    }
}

/* A meaning of the program's exit codes that begins with names of commands ("run, pick: …"):
 * whether this command is one of them, and the rest. True for any other meaning. */
static bool applies_to(struct line meaning, const char *cmd, struct line *ret_rest)
{
    size_t names = 0;
    bool is_named = false;
    *ret_rest = meaning;
    while (names < meaning.len) {
        const char *name = meaning.text + names;
        size_t n = 0;
        while (names + n < meaning.len && (islower((unsigned char)name[n]) || name[n] == '-'))
            n++;
        is_named |= strlen(cmd) == n && memcmp(name, cmd, n) == 0;
        names += n;
        if (n == 0 || names + 2 > meaning.len || memcmp(meaning.text + names, ", ", 2) != 0)
            break;
        names += 2;
    }
    if (names + 2 > meaning.len || memcmp(meaning.text + names, ": ", 2) != 0)
        return true;
    *ret_rest = (struct line){meaning.text + names + 2, meaning.len - names - 2};
    return is_named;
}

/* The command's exit codes, or those of the program's that apply to it. */
static void man_exit_codes(struct gp_strbuf *sb, const struct gp_program *program,
                           const struct gp_cmd *cmd)
{
    struct gp_strbuf own = GP_STRBUF_INIT(TEXT_BYTES);
    struct line line, code, meaning, rest;
    if (cmd->exit_codes)
        gp_strbuf_adds(&own, cmd->exit_codes);
    for (const char *p = program->exit_codes; !cmd->exit_codes && next_line(&p, &line);) {
        split_pair(line, &code, &meaning);
        if (!applies_to(meaning, cmd->name, &rest))
            continue;
        gp_strbuf_add(&own, code.text, code.len);
        gp_strbuf_addc(&own, '\t');
        gp_strbuf_add(&own, rest.text, rest.len);
        gp_strbuf_addc(&own, '\n');
    }
    man_pairs(sb, "EXIT STATUS", own.buf);
    gp_strbuf_fini(&own);
}

/* The other long names of an option, as a sentence. */
static void man_aliases(struct gp_strbuf *sb, const char *aliases)
{
    if (!aliases || !*aliases)
        return;
    gp_strbuf_adds(sb, " (also ");
    for (const char *p = aliases; *p;) {
        size_t n = strcspn(p, " ");
        gp_strbuf_adds(sb, "*--");
        add_scdoc(sb, p, n);
        gp_strbuf_addc(sb, '*');
        p += n + (p[n] == ' ');
        if (*p)
            gp_strbuf_adds(sb, ", ");
    }
    gp_strbuf_addc(sb, ')');
}

static void man_options(struct gp_strbuf *sb, const struct gp_opt *options,
                        const struct gp_cmd *cmd)
{
    struct gp_strbuf text = GP_STRBUF_INIT(TEXT_BYTES);
    for (const struct gp_opt *opt = options; opt && opt->name; opt++) {
        if (opt->group)
            gp_strbuf_addf(sb, "## %s\n\n", opt->group);
        if (!is_listed(opt, cmd))
            continue;
        if (opt->letter)
            gp_strbuf_addf(sb, "*-%c*, ", opt->letter);
        gp_strbuf_adds(sb, "*--");
        add_scdoc_str(sb, opt->name);
        gp_strbuf_addc(sb, '*');
        if (opt->arg) {
            gp_strbuf_adds(sb, opt->fallback ? "\\[=_" : " _");
            add_scdoc_str(sb, opt->arg);
            gp_strbuf_adds(sb, opt->fallback ? "_\\]" : "_");
        }
        gp_strbuf_reset(&text);
        format_option_text(&text, opt);
        gp_strbuf_adds(sb, "\n\t");
        add_scdoc(sb, text.buf, text.len);
        man_aliases(sb, opt->aliases);
        gp_strbuf_adds(sb, "\n\n");
    }
    gp_strbuf_fini(&text);
}

/* The page of "gpulse query" is named gpulse-query. */
static void add_page_name(struct gp_strbuf *sb, const char *program, const char *cmd)
{
    for (const char *p = program; *p; p++)
        gp_strbuf_addc(sb, *p == ' ' ? '-' : *p);
    if (cmd)
        gp_strbuf_addf(sb, "-%s", cmd);
}

static void man_head(struct gp_strbuf *sb, const struct gp_program *program,
                     const struct gp_cmd *cmd)
{
    const char *name = cmd ? cmd->name : NULL;
    add_page_name(sb, program->name, name);
    gp_strbuf_addf(sb, "(1) \"%s\" \"gpulse manual\"\n\n", program->version);
    man_title(sb, "NAME");
    add_page_name(sb, program->name, name);
    gp_strbuf_adds(sb, " - ");
    add_scdoc_str(sb, cmd ? cmd->summary : program->summary);
    gp_strbuf_adds(sb, "\n\n");
    man_title(sb, "SYNOPSIS");
}

static void man_synopsis(struct gp_strbuf *sb, const struct gp_program *program,
                         const struct gp_cmd *cmd)
{
    gp_strbuf_addf(sb, "*%s %s* ", program->name, cmd->name);
    if (cmd->usage)
        add_scdoc_str(sb, cmd->usage);
    gp_strbuf_adds(sb, "\n\n");
}

/* A helper program ("gpulse sim") documents its commands on its own page; the main program has one
 * page per command. */
static bool is_helper_program(const struct gp_program *program)
{
    return strchr(program->name, ' ') != NULL;
}

static void man_command_list(struct gp_strbuf *sb, const struct gp_program *program)
{
    for (size_t i = 0; program->commands[i]; i++) {
        const struct gp_cmd *cmd = program->commands[i];
        if (is_hidden(cmd))
            continue;
        add_scdoc_bold(sb, cmd->name, strlen(cmd->name));
        gp_strbuf_adds(sb, "\n\t");
        add_scdoc_str(sb, cmd->summary);
        gp_strbuf_adds(sb, "\n\n");
    }
}

/* Every command in full, for the page of a helper program. */
static void man_command_sections(struct gp_strbuf *sb, const struct gp_program *program)
{
    for (size_t i = 0; program->commands[i]; i++) {
        const struct gp_cmd *cmd = program->commands[i];
        if (is_hidden(cmd))
            continue;
        gp_strbuf_addf(sb, "## %s\n\n", cmd->name);
        man_synopsis(sb, program, cmd);
        add_scdoc_str(sb, cmd->summary);
        gp_strbuf_adds(sb, "\n\n");
        man_description(sb, cmd->description);
        man_options(sb, cmd->options, cmd);
        struct line line, left, right;
        for (const char *p = cmd->examples; next_line(&p, &line);) {
            split_pair(line, &left, &right);
            add_scdoc_bold(sb, left.text, left.len);
            gp_strbuf_adds(sb, "\n\t");
            add_scdoc(sb, right.text, right.len);
            gp_strbuf_adds(sb, "\n\n");
        }
    }
}

/* The pages of all commands of `program`, unless it is NULL, then the others and the handbook. */
static void man_see_also(struct gp_strbuf *sb, const struct gp_program *program, const char *others)
{
    man_title(sb, "SEE ALSO");
    for (size_t i = 0; program && program->commands[i]; i++)
        if (!is_hidden(program->commands[i]))
            gp_strbuf_addf(sb, "*%s-%s*(1), ", program->name, program->commands[i]->name);
    gp_strbuf_addf(sb, "%s\n\n", others);
    gp_strbuf_adds(sb, "The handbook: share/doc/gpulse/README.md below the installation prefix.\n");
}

void gp_cli_man(struct gp_strbuf *sb, const struct gp_program *program)
{
    man_head(sb, program, NULL);
    gp_strbuf_addf(sb, "*%s* ", program->name);
    add_scdoc_str(sb, program_usage(program));
    gp_strbuf_adds(sb, "\n\n");
    man_title(sb, "DESCRIPTION");
    man_description(sb, program->description);
    man_title(sb, "COMMANDS");
    if (is_helper_program(program))
        man_command_sections(sb, program);
    else
        man_command_list(sb, program);
    if (has_options(program->common)) {
        man_title(sb, "COMMON OPTIONS");
        man_options(sb, program->common, NULL);
    }
    man_pairs(sb, "ENVIRONMENT", program->environment);
    man_pairs(sb, "SIGNALS", program->signals);
    man_pairs(sb, "EXIT STATUS", program->exit_codes);
    if (is_helper_program(program))
        man_see_also(sb, NULL, "*gpulse*(1)");
    else
        man_see_also(sb, program, "*gpulse-metrics*(7)");
}

void gp_cli_man_command(struct gp_strbuf *sb, const struct gp_program *program,
                        const struct gp_cmd *cmd)
{
    man_head(sb, program, cmd);
    man_synopsis(sb, program, cmd);
    man_title(sb, "DESCRIPTION");
    man_description(sb, cmd->description ? cmd->description : cmd->summary);
    if (has_options(cmd->options)) {
        man_title(sb, "OPTIONS");
        man_options(sb, cmd->options, cmd);
    }
    if (has_options(program->common) && !cmd->no_common) {
        man_title(sb, "COMMON OPTIONS");
        man_options(sb, program->common, cmd);
    }
    man_pairs(sb, "KEYS", cmd->keys);
    man_pairs(sb, "COLUMNS", cmd->columns);
    man_pairs(sb, "EXAMPLES", cmd->examples);
    man_exit_codes(sb, program, cmd);
    man_see_also(sb, NULL, "*gpulse*(1), *gpulse-metrics*(7)");
}

/* ------------------------------------------------------------------ completion */

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
    struct line line;
    for (const char *p = names.buf; next_line(&p, &line);)
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
    if (opt->type != GP_OPT_CHOICE) {
        complete_kind(sb, opt->complete, whole, value, expand);
        return;
    }
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
        if (!is_listed(opt, cmd))
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
        if (!is_hidden(cmd) && has_prefix(cmd->name, word))
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
