#include "cmd/proc_choice.h"

#include "base/err.h"
#include "out/procs.h"
#include "proc/files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A comma-separated list of words, containing only these characters if they are not NULL. */
static int check_list(const char *option, const char *list, const char *characters,
                      const char *expected, struct gp_err *err)
{
    if (!list || (list[strspn(list, ",")] && !strchr(list, ' ') &&
                  (!characters || !list[strspn(list, characters)])))
        return 0;
    return gp_err_set(err, GP_EUSAGE, "%s takes %s separated by commas, not '%.60s'", option,
                      expected, list);
}

int gp_proc_choice_add_words(const char *words, char *filter, size_t size, struct gp_err *err)
{
    for (const char *p = words ? words : ""; *p;) {
        size_t length = strlen(filter);
        size_t n = strcspn(p, " ");
        int more = n == 0 ? 0
                          : snprintf(filter + length, size - length, "%s%.*s", length ? " " : "",
                                     (int)n, p);
        if (more < 0 || (size_t)more >= size - length)
            return gp_err_set(err, GP_EUSAGE, "too many words to select processes");
        p += n + (p[n] == ' ');
    }
    return 0;
}

bool gp_proc_choice_any(const struct gp_proc_choice *choice)
{
    return choice->mine || choice->user || choice->pid || choice->ns_pid || choice->type ||
           choice->job || choice->container;
}

int gp_proc_choice_add(const struct gp_proc_choice *choice, char *filter, size_t size,
                       struct gp_err *err)
{
    char own[64]; /* who runs this, as lists show it */
    (void)gp_proc_user_name(NULL, getuid(), own, sizeof(own));
    const struct {
        const char *option, *field, *values, *characters, *expected;
    } parts[] = {
        {"--user", "user=", choice->mine ? own : choice->user, NULL, "names"},
        {"--pid", "pid=", choice->pid, "0123456789,", "process ids"},
        {"--ns-pid", "ns_pid=", choice->ns_pid, "0123456789,", "process ids"},
        {"--type", "type:", choice->type, "CGMScgms+,", "C, G, M and S"}, /* C also matches C+G */
        {"--job", "job:", choice->job, NULL, "job ids"},
        {"--container", "container:", choice->container, NULL, "names"},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(parts); i++) {
        size_t n = strlen(filter);
        r = check_list(parts[i].option, parts[i].values, parts[i].characters, parts[i].expected,
                       err);
        if (r < 0 || !parts[i].values)
            continue;
        int more =
            snprintf(filter + n, size - n, "%s%s%s", n ? " " : "", parts[i].field, parts[i].values);
        if (more < 0 || (size_t)more >= size - n)
            r = gp_err_set(err, GP_EUSAGE, "too many users, processes or containers selected");
    }
    return r < 0 ? r : gp_procs_check_filter(filter, err);
}
