#include "cmd/doctor_verbs.h"

#include "base/err.h"

#include <string.h>

static const struct {
    const char *word;
    int (*run)(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err);
} verbs[] = {
    {"advise", gp_doctor_advise},
    {"explain", gp_doctor_explain},
    {"gpus", gp_doctor_gpus},
};

static const char *verb_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_ARRAY_LEN(verbs) ? verbs[i].word : NULL;
}

int gp_doctor_verb(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].word, words[0]) == 0)
            return verbs[i].run(o, count - 1, words + 1, err);
    return gp_err_set(
        err, GP_EUSAGE,
        "unknown argument '%.60s'%s; use advise, explain (as in: gpulse explain xid 79) or gpus",
        words[0], gp_cli_hint(words[0], verb_at, NULL).text);
}
