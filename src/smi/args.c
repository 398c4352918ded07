#include "smi/args.h"

#include "base/cli.h"
#include "base/strbuf.h"

#include <string.h>

enum { EXIT_OTHER = 255 };

static const struct gp_smi_option *find(const struct gp_smi_option *options, const char *word,
                                        size_t n)
{
    for (; *options->names; options++)
        if (gp_cli_list_has(options->names, word, n))
            return options;
    return NULL;
}

static int refuse(struct gp_strbuf *message, const char *word, const char *what, const char *tool)
{
    gp_strbuf_addf(message, "ERROR: Option %s is %s. Please run '%s -h' for help.\n\n", word, what,
                   tool);
    return EXIT_OTHER;
}

int gp_smi_parse(const struct gp_smi_option *options, const char *tool, int argc, char **argv,
                 const char **given, struct gp_strbuf *message)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word, "=") : strlen(word);
        const struct gp_smi_option *o = find(options, word, n);
        bool next = i + 1 < argc && (argv[i + 1][0] != '-' || argv[i + 1][1] == '\0');
        if (!o || (word[n] && o->arg == GP_SMI_FLAG))
            return refuse(message, word, "not recognized", tool);
        const char **value = &given[o - options];
        if (word[n])
            *value = word + n + 1;
        else if (o->arg != GP_SMI_FLAG && next)
            *value = argv[++i];
        else
            *value = "";
        if (o->arg == GP_SMI_VALUE && !**value)
            return refuse(message, word, "missing its value", tool);
    }
    return 0;
}
