#include "smi/args.h"

#include "base/cli.h"
#include "base/strbuf.h"
#include "smi/message.h"

#include <string.h>

static const struct gp_smi_option *find(const struct gp_smi_option *options, const char *word,
                                        size_t n)
{
    for (; *options->names; options++)
        if (gp_cli_list_has(options->names, word, n))
            return options;
    return NULL;
}

/* The errors of nvidia-smi itself and of its commands, as seen with driver 580.159.04. */
static int refuse_word(struct gp_strbuf *message, const char *word, bool of_command)
{
    gp_strbuf_addf(message,
                   of_command
                       ? "Option \"%s\" is not recognized.\n"
                       : "ERROR: Option %s is not recognized. Please run 'nvidia-smi -h'.\n\n",
                   word);
    return of_command ? GP_SMI_EXIT_USAGE : GP_SMI_EXIT_OTHER;
}

static int refuse_absence(struct gp_strbuf *message, const char *word, bool of_command)
{
    gp_strbuf_addf(message,
                   of_command ? "Option \"%s\" is missing its value.\n"
                              : "ERROR: Option %s is missing its value. Please run 'nvidia-smi -h' "
                                "for help.\n\n",
                   word);
    return of_command ? GP_SMI_EXIT_USAGE : GP_SMI_EXIT_OTHER;
}

int gp_smi_parse(const struct gp_smi_option *options, bool of_command, int argc, char **argv,
                 const char **given, struct gp_strbuf *message)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word, "=") : strlen(word);
        const struct gp_smi_option *o = find(options, word, n);
        bool next = i + 1 < argc && (argv[i + 1][0] != '-' || argv[i + 1][1] == '\0');
        if (!o || (word[n] && o->arg == GP_SMI_FLAG))
            return refuse_word(message, word, of_command);
        const char **value = &given[o - options];
        if (word[n])
            *value = word + n + 1;
        else if (o->arg != GP_SMI_FLAG && next)
            *value = argv[++i];
        else
            *value = "";
        if (o->arg == GP_SMI_VALUE && !**value)
            return refuse_absence(message, word, of_command);
    }
    return 0;
}

/* ---- help page ---- */

enum { HELP_COLUMN = 36, PAGE_COLUMNS = 100 };

/* Appends wrapped words at HELP_COLUMN, after text that reaches to a given column. */
static void add_wrapped(struct gp_strbuf *sb, const char *text, size_t column)
{
    if (column + 1 >= HELP_COLUMN) {
        gp_strbuf_addc(sb, '\n');
        column = 0;
    }
    gp_strbuf_fill(sb, ' ', HELP_COLUMN - column);
    column = HELP_COLUMN;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + n > PAGE_COLUMNS) {
            gp_strbuf_addc(sb, '\n');
            gp_strbuf_fill(sb, ' ', HELP_COLUMN);
            column = HELP_COLUMN;
        }
        size_t gap = column > HELP_COLUMN;
        gp_strbuf_addf(sb, "%*s%.*s", (int)gap, "", (int)n, text);
        column += gap + n;
        text += n + (text[n] == ' ');
    }
    gp_strbuf_addc(sb, '\n');
}

int gp_smi_add_invalid(struct gp_strbuf *sb, const char *names, const char *value)
{
    gp_strbuf_addf(sb, "Option \"%s\" is invalid for \"%.*s\".\n", value, (int)strcspn(names, " "),
                   names);
    return GP_SMI_EXIT_USAGE;
}

void gp_smi_add_option(struct gp_strbuf *sb, const struct gp_smi_option *o)
{
    size_t start = sb->len;
    gp_strbuf_adds(sb, "   ");
    for (const char *name = o->names; *name;) {
        size_t n = strcspn(name, " ");
        gp_strbuf_addf(sb, " %.*s%s", (int)n, name, name[n] ? "," : "");
        name += n + (name[n] == ' ');
    }
    if (o->value)
        gp_strbuf_addf(sb, o->arg == GP_SMI_OPTIONAL ? "[=%s]" : "=%s", o->value);
    add_wrapped(sb, o->help ? o->help : "", sb->len - start);
}

void gp_smi_add_options(struct gp_strbuf *sb, const struct gp_smi_option *options)
{
    const char *section = "";
    for (const struct gp_smi_option *o = options; *o->names; o++) {
        if (o->section && strcmp(section, o->section) != 0) {
            section = o->section;
            gp_strbuf_addf(sb, "\n  %s:\n\n", section);
        }
        gp_smi_add_option(sb, o);
    }
}
