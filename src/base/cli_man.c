/* Manual pages, as scdoc: a pure function of the option tables. */
#include "base/cli_doc.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <string.h>

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
    struct gp_cli_line paragraph;
    while (gp_cli_next_paragraph(&text, &paragraph)) {
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
    struct gp_cli_line line, left, right;
    while (gp_cli_next_line(&text, &line)) {
        gp_cli_split_pair(line, &left, &right);
        add_scdoc_bold(sb, left.text, left.len);
        gp_strbuf_adds(sb, "\n\t");
        add_scdoc(sb, right.text, right.len);
        gp_strbuf_adds(sb, "\n\n");
    }
}

/* A meaning of the program's exit codes that begins with names of commands ("run, pick: …"):
 * whether this command is one of them, and the rest. True for any other meaning. */
static bool applies_to(struct gp_cli_line meaning, const char *cmd, struct gp_cli_line *ret_rest)
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
    *ret_rest = (struct gp_cli_line){meaning.text + names + 2, meaning.len - names - 2};
    return is_named;
}

/* The command's exit codes, or those of the program's that apply to it. */
static void man_exit_codes(struct gp_strbuf *sb, const struct gp_program *program,
                           const struct gp_cmd *cmd)
{
    struct gp_strbuf own = GP_STRBUF_INIT(GP_CLI_TEXT_BYTES);
    struct gp_cli_line line, code, meaning, rest;
    if (cmd->exit_codes)
        gp_strbuf_adds(&own, cmd->exit_codes);
    for (const char *p = program->exit_codes; !cmd->exit_codes && gp_cli_next_line(&p, &line);) {
        gp_cli_split_pair(line, &code, &meaning);
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
    struct gp_strbuf text = GP_STRBUF_INIT(GP_CLI_TEXT_BYTES);
    for (const struct gp_opt *opt = options; opt && opt->name; opt++) {
        if (opt->group)
            gp_strbuf_addf(sb, "## %s\n\n", opt->group);
        if (!gp_cli_is_listed(opt, cmd))
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
        gp_cli_add_option_text(&text, opt);
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
        if (gp_cli_is_hidden(cmd))
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
        if (gp_cli_is_hidden(cmd))
            continue;
        gp_strbuf_addf(sb, "## %s\n\n", cmd->name);
        man_synopsis(sb, program, cmd);
        add_scdoc_str(sb, cmd->summary);
        gp_strbuf_adds(sb, "\n\n");
        man_description(sb, cmd->description);
        man_options(sb, cmd->options, cmd);
        struct gp_cli_line line, left, right;
        for (const char *p = cmd->examples; gp_cli_next_line(&p, &line);) {
            gp_cli_split_pair(line, &left, &right);
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
        if (!gp_cli_is_hidden(program->commands[i]))
            gp_strbuf_addf(sb, "*%s-%s*(1), ", program->name, program->commands[i]->name);
    gp_strbuf_addf(sb, "%s\n\n", others);
    gp_strbuf_adds(sb, "The handbook: share/doc/gpulse/README.md below the installation prefix.\n");
}

void gp_cli_man(struct gp_strbuf *sb, const struct gp_program *program)
{
    man_head(sb, program, NULL);
    gp_strbuf_addf(sb, "*%s* ", program->name);
    add_scdoc_str(sb, gp_cli_program_usage(program));
    gp_strbuf_adds(sb, "\n\n");
    man_title(sb, "DESCRIPTION");
    man_description(sb, program->description);
    man_title(sb, "COMMANDS");
    if (is_helper_program(program))
        man_command_sections(sb, program);
    else
        man_command_list(sb, program);
    if (gp_cli_has_options(program->common)) {
        man_title(sb, "COMMON OPTIONS");
        man_options(sb, program->common, NULL);
    }
    man_pairs(sb, "ENVIRONMENT", program->environment);
    man_pairs(sb, "SIGNALS", program->signals);
    man_pairs(sb, "EXIT STATUS", program->exit_codes);
    if (is_helper_program(program))
        man_see_also(sb, NULL, "*gpulse*(1)");
    else
        man_see_also(sb, program, "*gpulse-metrics*(7), *gpulse-c*(3), *gpulse-python*(3)");
}

void gp_cli_man_command(struct gp_strbuf *sb, const struct gp_program *program,
                        const struct gp_cmd *cmd)
{
    man_head(sb, program, cmd);
    man_synopsis(sb, program, cmd);
    man_title(sb, "DESCRIPTION");
    man_description(sb, cmd->description ? cmd->description : cmd->summary);
    if (gp_cli_has_options(cmd->options)) {
        man_title(sb, "OPTIONS");
        man_options(sb, cmd->options, cmd);
    }
    if (gp_cli_has_options(program->common) && !cmd->no_common) {
        man_title(sb, "COMMON OPTIONS");
        man_options(sb, program->common, cmd);
    }
    man_pairs(sb, "KEYS", cmd->keys);
    man_pairs(sb, "COLUMNS", cmd->columns);
    man_pairs(sb, "EXAMPLES", cmd->examples);
    man_exit_codes(sb, program, cmd);
    man_see_also(sb, NULL, "*gpulse*(1), *gpulse-metrics*(7)");
}
