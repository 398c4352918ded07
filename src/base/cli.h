/* The command line as data: commands and options are tables, from which parsing, help, manual pages
 * and completion all come. Knows nothing about GPUs: gpulse and its helper programs share it. */
#ifndef GP_BASE_CLI_H
#define GP_BASE_CLI_H

#include "base/util.h"

struct gp_err;
struct gp_strbuf;

enum gp_opt_type {
    GP_OPT_FLAG,     /* bool: set to true */
    GP_OPT_STRING,   /* const char *: points into argv */
    GP_OPT_CHOICE,   /* const char *: one of `choices`, or a comma list of them */
    GP_OPT_DURATION, /* uint64_t: nanoseconds, more than 0 */
    GP_OPT_U64,      /* uint64_t */
    GP_OPT_SIZE,     /* uint64_t: bytes */
};

/* What kind of value it is, for completion. */
enum gp_complete {
    GP_COMPLETE_NONE,
    GP_COMPLETE_FILE,
    GP_COMPLETE_METRICS,  /* comma list of metric names */
    GP_COMPLETE_EVENTS,   /* comma list of event kinds */
    GP_COMPLETE_MACHINE,  /* names of simulated machines */
    GP_COMPLETE_CONTROLS, /* NAME= of a control */
    GP_COMPLETE_THEMES,   /* files of the user, besides the choices */
    GP_COMPLETE_COMMAND,  /* a program and its arguments */
};

/* Without gaps where the order of the first six allows it: hundreds of these are relocated whenever
 * the program starts. */
struct gp_opt {
    char letter;         /* 0: none */
    const char *name;    /* long name, without the dashes */
    const char *aliases; /* further long names, space separated, or NULL */
    enum gp_opt_type type;
    const char *arg;      /* name of the value in the help; NULL for flags */
    const char *fallback; /* value if given without one ("--watch"); NULL: a value is required */
    const char *choices;  /* space separated, for GP_OPT_CHOICE; for others, to complete */
    const char *help;     /* NULL: accepted, but not listed */
    const char *group;    /* the heading in front of this option; NULL: the same group as before */
    const char *tails;    /* space separated, may follow one of `choices` and a comma; not listed */
    /* Long names, space separated, of options in the same table, which have no default. It is an
     * error to give this option with one of `excludes`, or without any of `needs`. */
    const char *excludes, *needs;
    uint64_t least;  /* the smallest accepted number, or duration in nanoseconds */
    uint32_t offset; /* of the field in the options struct */
    enum gp_complete complete : 8;
    bool once : 1;         /* may be given only once */
    bool in_mib : 1;       /* a size without a unit is in MiB, as nvidia-smi prints memory */
    bool for_loops : 1;    /* has no effect on a command that runs once */
    bool for_tapes : 1;    /* only for commands that also show recordings */
    bool takes_dash : 1;   /* its value may begin with a dash, as in --sort -memory */
    bool before_words : 1; /* with `fallback`: the word after it may be a positional argument, even
                              where a number is expected */
};
_Static_assert(sizeof(struct gp_opt) <= 112, "see above");

/* A table ends with an entry whose name is NULL. */
#define GP_OPT_END {0}

struct gp_cmd {
    const char *name;
    const char *group;       /* the heading in front of this command in the list; NULL: the same
                                group as before */
    const char *summary;     /* one line, lower case, no full stop */
    const char *usage;       /* what follows the name: "[FIELDS] [options]" */
    const char *description; /* paragraphs separated by an empty line, for the manual page */
    const char *examples;    /* lines "command\texplanation" */
    const char *keys;        /* lines "keys\twhat they do", for the manual page */
    const char *columns;     /* lines "column\twhat it shows", likewise */
    const struct gp_opt *options;
    bool no_loop;              /* runs once: options for loops are neither listed nor completed */
    bool takes_tape;           /* shows recordings, too: likewise if it does not */
    enum gp_complete complete; /* of its positional arguments */
    bool raw_rest;             /* arguments after the first positional one are not parsed */
    const char *exit_codes;    /* NULL: the program's, without those of other commands */
    bool no_common;            /* does not take the common options after its name */
    /* argv[0] is the command's name. Returns a GP_E* code with err filled, GP_OK, or an exit status
     * of its own above 0. */
    int (*run)(int argc, char **argv, struct gp_err *err);
};

/* Where parsed values go: one table and its struct. */
struct gp_opt_target {
    const struct gp_opt *options;
    void *values;
};

/* An option that the parser does not know. */
struct gp_cli_unknown {
    int at;             /* its index in argv; 0: parsing failed for another reason, or did not */
    const char *letter; /* the one in argv[at] that is not known; NULL: it is a long name */
};

/* Parses argv[1..argc) against `count` targets. Moves the positional arguments to the front of
 * argv[1..] and stores their number in *ret_positional. "--" ends the options; a quoted text such
 * as "-- not found" is none. With `stop_at_positional` the first positional argument ends them
 * too; *ret_positional then counts it and everything after it. GP_EUSAGE names the bad argument
 * and suggests the nearest known one; *ret_unknown (may be NULL) says whether it is an unknown
 * option. */
int gp_cli_parse(int argc, char **argv, const struct gp_opt_target *targets, size_t count,
                 bool stop_at_positional, int *ret_positional, struct gp_cli_unknown *ret_unknown,
                 struct gp_err *err) GP_MUST_CHECK;

/* The option with this letter or, if `letter` is 0, with this long name or alias (n bytes); NULL if
 * there is none. */
const struct gp_opt *gp_cli_option(const struct gp_opt *options, const char *name, size_t n,
                                   char letter);

/* Whether a space-separated list (NULL: empty) contains this word of n bytes. */
bool gp_cli_list_has(const char *list, const char *word, size_t n);

/* The candidate nearest to `word` by edit distance, or the first that begins with it, or the first
 * that contains it; NULL: none.
 * `next(ctx, i)` gives the i-th candidate, NULL at the end. */
const char *gp_cli_nearest(const char *word, const char *(*next)(const void *ctx, size_t i),
                           const void *ctx);

/* " (did you mean 'status'?)" for an error message, or "" if no candidate is near. */
struct gp_cli_hint {
    char text[160];
};
struct gp_cli_hint gp_cli_hint(const char *word, const char *(*next)(const void *ctx, size_t i),
                               const void *ctx);

/* Finds a command by name in a NULL-terminated table; GP_EUSAGE suggests the nearest. */
int gp_cli_find(const struct gp_cmd *const *commands, const char *name, const struct gp_cmd **ret,
                struct gp_err *err) GP_MUST_CHECK;

/* A program, as described in its help and manual page. */
struct gp_program {
    const char *name; /* "gpulse", "gpulse sim" */
    const char *summary;
    const char *description;
    const char *version;
    const struct gp_cmd *const *commands; /* NULL-terminated */
    const struct gp_opt *common;          /* options of every command */
    const char *exit_codes;               /* lines "code\tmeaning"; if it applies only to some
                                             commands, it begins with their names: "run, pick: " */
    const char *environment;              /* lines "NAME\tmeaning" */
    const char *signals;                  /* lines "NAME\tmeaning" */
};

/* Appends the text of "gpulse --help" and "gpulse COMMAND --help": usage, options and examples,
 * short enough for one screen. Longer explanations belong in the manual pages. */
void gp_cli_help(struct gp_strbuf *sb, const struct gp_program *program);
void gp_cli_help_command(struct gp_strbuf *sb, const struct gp_program *program,
                         const struct gp_cmd *cmd);

/* Appends the scdoc source of the program's or one command's manual page (section 1). */
void gp_cli_man(struct gp_strbuf *sb, const struct gp_program *program);
void gp_cli_man_command(struct gp_strbuf *sb, const struct gp_program *program,
                        const struct gp_cmd *cmd);

/* Completion: appends the candidates for the last of `words` (the ones before it, without the
 * program's name, are already typed), one per line: the whole word, optionally followed by a tab
 * and its meaning. A line "FILES" or "COMMANDS" asks the shell to complete file names or programs.
 * `expand` (may be NULL) lists the names of a kind in the same form, or appends nothing. */
void gp_cli_complete(struct gp_strbuf *sb, const struct gp_program *program, int count,
                     char *const *words,
                     void (*expand)(struct gp_strbuf *sb, enum gp_complete kind));

#endif
