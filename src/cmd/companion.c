#include "cmd/companion.h"
#include "cmd/app.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The companion's arguments: those of the command, and the common options before it. */
struct words {
    char path[GP_PATH_SIZE];
    struct gp_strbuf texts[6];
    char *argv[];
};

static void add_option(struct words *words, int *count, size_t at, const char *name,
                       const char *value)
{
    if (!value)
        return;
    gp_strbuf_addf(&words->texts[at], "--%s=%s", name, value);
    words->argv[(*count)++] = words->texts[at].buf;
}

static void collect(struct words *words, const struct gp_common *before, int argc, char **argv)
{
    char timeout[32];
    int count = 1;
    for (size_t i = 0; i < GP_ARRAY_LEN(words->texts); i++)
        gp_strbuf_init(&words->texts[i], 1 << 20);
    (void)snprintf(timeout, sizeof(timeout), "%lluns", (unsigned long long)before->timeout_ns);
    add_option(words, &count, 0, "id", before->id);
    add_option(words, &count, 1, "timeout", before->timeout_ns ? timeout : NULL);
    add_option(words, &count, 2, "color", before->color);
    add_option(words, &count, 3, "tape", before->tape);
    add_option(words, &count, 4, "at", before->at);
    if (before->release_when_idle) {
        gp_strbuf_adds(&words->texts[5], "--release-when-idle");
        words->argv[count++] = words->texts[5].buf;
    }
    for (int i = 1; i < argc; i++)
        words->argv[count++] = argv[i];
}

int gp_companion_run(const struct gp_cmd *cmd, const char *program, void *values, bool takes_words,
                     int argc, char **argv, struct gp_err *err)
{
    struct words *words = calloc(1, sizeof(*words) + ((size_t)argc + 8) * sizeof(char *));
    int positional;
    bool done = false;
    if (!words)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    /* copied before parsing them together with the arguments after the command */
    collect(words, gp_common(), argc, argv);
    int r = gp_app_parse(cmd, argc, argv, values, &positional, &done, err);
    if (r == 0 && !done && !takes_words)
        r = gp_app_refuse_words(cmd, positional, argv, err);
    if (r == 0 && !done)
        r = gp_io_find_companion("", program, words->path, err);
    if (r == 0 && !done) {
        words->argv[0] = words->path;
        gp_app_export();
        (void)execv(words->path, words->argv);
        r = gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", words->path, strerror(errno));
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(words->texts); i++)
        gp_strbuf_fini(&words->texts[i]);
    free(words);
    return r;
}
