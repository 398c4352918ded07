/* Help, for people on a terminal: a pure function of the option tables. */
#include "base/cli_doc.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>

enum {
    PAGE_COLUMNS = 80,
    LABEL_INDENT = 2,
    OPTION_COLUMN_MAX = 30, /* a longer label moves its text to the next line */
    EXAMPLE_COLUMN_MAX = 46,
    LABEL_BYTES = 512,
};

/* Columns of n bytes of our own text, which has no wide or combining characters. */
static size_t columns_of(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

static void add_description(struct gp_strbuf *sb, const char *text)
{
    struct gp_cli_line paragraph;
    while (gp_cli_next_paragraph(&text, &paragraph)) {
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
static void add_row(struct gp_strbuf *sb, struct gp_cli_line label, struct gp_cli_line text,
                    size_t column)
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
    struct gp_cli_line line, left, right;
    size_t column = 8;
    for (const char *p = text; gp_cli_next_line(&p, &line);) {
        gp_cli_split_pair(line, &left, &right);
        column = wider(column, columns_of(left.text, left.len), column_max);
    }
    gp_strbuf_addf(sb, "%s:\n", title);
    for (const char *p = text; gp_cli_next_line(&p, &line);) {
        gp_cli_split_pair(line, &left, &right);
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

static void add_option(struct gp_strbuf *sb, const struct gp_opt *opt, size_t column)
{
    struct gp_strbuf label = GP_STRBUF_INIT(LABEL_BYTES);
    struct gp_strbuf text = GP_STRBUF_INIT(GP_CLI_TEXT_BYTES);
    format_label(&label, opt);
    gp_cli_add_option_text(&text, opt);
    add_row(sb, (struct gp_cli_line){label.buf, label.len},
            (struct gp_cli_line){text.buf, text.len}, column);
    gp_strbuf_fini(&label);
    gp_strbuf_fini(&text);
}

static size_t option_column(const struct gp_opt *options, const struct gp_cmd *cmd)
{
    struct gp_strbuf label = GP_STRBUF_INIT(LABEL_BYTES);
    size_t column = 8;
    for (const struct gp_opt *opt = options; opt && opt->name; opt++) {
        if (!gp_cli_is_listed(opt, cmd))
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
        if (!gp_cli_is_listed(opt, cmd))
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
        if (!gp_cli_is_hidden(commands[i]))
            column = wider(column, strlen(commands[i]->name), OPTION_COLUMN_MAX);
    for (size_t i = 0; commands[i]; i++) {
        const struct gp_cmd *cmd = commands[i];
        if (gp_cli_is_hidden(cmd))
            continue;
        if (i == 0 || cmd->group) {
            group = cmd->group ? cmd->group : group;
            gp_strbuf_addf(sb, "%s%s:\n", i ? "\n" : "", group);
        }
        add_row(sb, (struct gp_cli_line){cmd->name, strlen(cmd->name)},
                (struct gp_cli_line){cmd->summary, strlen(cmd->summary)}, column);
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

void gp_cli_help(struct gp_strbuf *sb, const struct gp_program *program)
{
    add_head(sb, "", program->name, NULL, ": ", program->summary);
    add_head(sb, "Usage: ", program->name, NULL, " ", gp_cli_program_usage(program));
    add_description(sb, program->description);
    add_commands(sb, program->commands);
    add_options(sb, "Common options", program->common, NULL);
    add_pairs(sb, "Environment", program->environment, OPTION_COLUMN_MAX);
    add_pairs(sb, "Signals", program->signals, OPTION_COLUMN_MAX);
    add_pairs(sb, "Exit codes", program->exit_codes, OPTION_COLUMN_MAX);
    gp_strbuf_addf(sb,
                   "%s COMMAND --help lists the options of a command, its exit codes\n"
                   "where they differ, and examples.\n",
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
    if (gp_cli_has_options(program->common) && !cmd->no_common)
        gp_strbuf_addf(sb, "Common options (-i,%s --sim, …): %s --help\n",
                       gp_cli_option(cmd->options, "timeout", strlen("timeout"), 0) ? ""
                                                                                    : " --timeout,",
                       program->name);
    /* Each block ends with an empty line; the page must not. */
    if (!sb->error && sb->len >= 2 && memcmp(sb->buf + sb->len - 2, "\n\n", 2) == 0)
        sb->buf[--sb->len] = '\0';
}
