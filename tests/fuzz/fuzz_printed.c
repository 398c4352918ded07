/* What a program in nvidia-smi's place prints, in every form, against another output.
 * fuzz-sources: src/verify/printed.c src/verify/compare.c src/model/metric.c
 * fuzz-sources: src/base/arena.c src/base/cli.c src/base/err.c src/base/parse.c
 * fuzz-sources: src/base/strbuf.c src/base/utf8.c
 * fuzz-libs: jansson */
#include "verify/compare.h"

#include "base/util.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void found(void *ctx, const struct gp_compared *compared,
                  const struct gp_compared_value *value)
{
    (void)ctx;
    (void)compared;
    if (!value->name || (!value->theirs && !value->ours))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char fields[] = "name,memory.total,clocks_event_reasons.active";
    struct gp_compared c = {.samples = 1};
    if (size < 2)
        return 0;
    c.form = (enum gp_printed_form)(data[0] % GP_PRINTED__FORMS);
    size_t half = 2 + (size - 2) * data[1] / 256;
    char *theirs = strndup((const char *)data + 2, half - 2);
    char *ours = strndup((const char *)data + half, size - half);
    if (!theirs || !ours)
        abort();
    int r = gp_printed_read(&c.theirs[0], c.form, theirs, fields, NULL);
    int s = gp_printed_read(&c.ours[0], c.form, ours, fields, NULL);
    if (r == 0 && s == 0 && gp_compare(&c, found, NULL) < 0)
        abort();
    gp_compared_fini(&c);
    free(theirs);
    free(ours);
    return 0;
}
