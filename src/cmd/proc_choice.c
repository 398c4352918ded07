#include "cmd/proc_choice.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

/* A list of words that all are of these characters. */
static int check_list(const char *option, const char *list, const char *characters,
                      const char *expected, struct gp_err *err)
{
    size_t n = list ? strspn(list, characters) : 0;
    if (!list || (*list && !list[n]))
        return 0;
    return gp_err_set(err, GP_EUSAGE, "%s takes %s with commas between, not '%.60s'", option,
                      expected, list);
}

int gp_proc_choice_add(const struct gp_proc_choice *choice, char *filter, size_t size,
                       struct gp_err *err)
{
    const struct {
        const char *field, *values;
    } parts[] = {
        {"user=", choice->user},
        {"pid=", choice->pid},
        {"type:", choice->type}, /* C is also in C+G */
        {"container:", choice->container},
    };
    int r = check_list("--pid", choice->pid, "0123456789,", "process ids", err);
    if (r == 0)
        r = check_list("--type", choice->type, "CGMcgm+,", "C, G and M", err);
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(parts); i++) {
        size_t n = strlen(filter);
        if (!parts[i].values)
            continue;
        int more =
            snprintf(filter + n, size - n, "%s%s%s", n ? " " : "", parts[i].field, parts[i].values);
        if (more < 0 || (size_t)more >= size - n)
            r = gp_err_set(err, GP_EUSAGE, "too many users, processes or containers to choose");
    }
    return r;
}
