#include "base/cli_doc.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <string.h>

bool gp_cli_is_hidden(const struct gp_cmd *cmd)
{
    return cmd->name[0] == '_';
}

bool gp_cli_next_line(const char **cursor, struct gp_cli_line *ret)
{
    if (!*cursor || !**cursor)
        return false;
    ret->text = *cursor;
    ret->len = strcspn(*cursor, "\n");
    *cursor += ret->len + ((*cursor)[ret->len] == '\n');
    return true;
}

void gp_cli_split_pair(struct gp_cli_line line, struct gp_cli_line *ret_left,
                       struct gp_cli_line *ret_right)
{
    const char *tab = memchr(line.text, '\t', line.len);
    size_t left = tab ? (size_t)(tab - line.text) : line.len;
    *ret_left = (struct gp_cli_line){line.text, left};
    *ret_right =
        tab ? (struct gp_cli_line){tab + 1, line.len - left - 1} : (struct gp_cli_line){"", 0};
}

bool gp_cli_next_paragraph(const char **cursor, struct gp_cli_line *ret)
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

/* The help; of memory, also the unit of a bare number, before what is in parentheses already. */
static void add_help(struct gp_strbuf *sb, const struct gp_opt *opt)
{
    const char *rest = opt->in_mib ? strstr(opt->help, " (") : NULL;
    const size_t n = rest ? (size_t)(rest - opt->help) : strlen(opt->help);
    gp_strbuf_add(sb, opt->help, n);
    if (opt->in_mib)
        gp_strbuf_adds(sb, rest ? " (a bare number is MiB; " : " (a bare number is MiB)");
    if (rest)
        gp_strbuf_adds(sb, rest + strlen(" ("));
}

void gp_cli_add_option_text(struct gp_strbuf *sb, const struct gp_opt *opt)
{
    const char *last = strstr(opt->help, " (default");
    size_t n = last ? (size_t)(last - opt->help) : strlen(opt->help);
    if (opt->type != GP_OPT_CHOICE || !opt->choices || names_all(opt->arg, opt->choices) ||
        names_all(opt->help, opt->choices)) {
        add_help(sb, opt);
        return;
    }
    gp_strbuf_add(sb, opt->help, n);
    gp_strbuf_adds(sb, ": {");
    for (const char *p = opt->choices; *p; p++)
        gp_strbuf_addc(sb, *p == ' ' ? '|' : *p);
    gp_strbuf_addf(sb, "}%s", opt->help + n);
}

bool gp_cli_is_listed(const struct gp_opt *opt, const struct gp_cmd *cmd)
{
    return opt->help && !(opt->for_loops && cmd && cmd->no_loop) &&
           !(opt->for_tapes && cmd && !cmd->takes_tape);
}

bool gp_cli_has_options(const struct gp_opt *options)
{
    return options && options->name;
}

const char *gp_cli_program_usage(const struct gp_program *program)
{
    return gp_cli_has_options(program->common) ? "[common options] COMMAND [arguments]"
                                               : "COMMAND [arguments]";
}
