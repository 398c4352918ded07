/* Command lines: the input is the words, separated by newlines. They are parsed, suggested for and
 * completed.
 * fuzz-sources: src/base/cli.c src/base/cli_complete.c src/base/cli_doc.c src/base/parse.c
 * fuzz-sources: src/base/strbuf.c src/base/err.c src/base/utf8.c */
#include "tests/unit/cli_fixture.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct gp_cmd show = {
    .name = "show", .summary = "show", .options = show_options, .complete = GP_COMPLETE_METRICS};
static const struct gp_cmd run = {
    .name = "run", .summary = "run", .raw_rest = true, .complete = GP_COMPLETE_COMMAND};
static const struct gp_cmd *const commands[] = {&show, &run, NULL};
static const struct gp_program program = {
    .name = "prog", .summary = "does things", .commands = commands, .common = common_options};

static void expand(struct gp_strbuf *sb, enum gp_complete kind)
{
    (void)kind;
    gp_strbuf_adds(sb, "memory.used\ttext\nmemory.total\n\nlast");
}

static int split(char *text, char **words)
{
    int count = 0;
    char *p = text;
    while (p && count < MAX_WORDS) {
        words[count++] = p;
        p = strchr(p, '\n');
        if (p)
            *p++ = '\0';
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char *words[MAX_WORDS + 1] = {NULL};
    int count = split(text, words);

    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_cli_complete(&sb, &program, count, words, expand);
    gp_strbuf_fini(&sb);

    const struct gp_cmd *found;
    struct gp_err err = {0};
    if (gp_cli_find(commands, words[0], &found, &err) < 0 && !err.text[0])
        abort();
    struct values values = {0};
    struct common_values common = {0};
    const struct gp_opt_target targets[] = {{show_options, &values}, {common_options, &common}};
    int positional = -1;
    int r = gp_cli_parse(count, words, targets, 2, size % 2 == 0, &positional, NULL, &err);
    if (r == 0 ? positional < 0 || positional >= (count ? count : 1) : r != GP_EUSAGE)
        abort();
    free(text);
    return 0;
}
