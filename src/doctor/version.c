#include "doctor/version.h"

#include <stdlib.h>
#include <string.h>

/* The next number of a version; *text moves past it and its dot; 0 at the end. */
static unsigned long next_number(const char **text)
{
    char *end;
    if (**text < '0' || **text > '9') {
        *text = "";
        return 0;
    }
    unsigned long number = strtoul(*text, &end, 10);
    *text = *end == '.' ? end + 1 : "";
    return number;
}

int gp_version_compare(const char *a, const char *b)
{
    while (*a || *b) {
        unsigned long x = next_number(&a), y = next_number(&b);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

unsigned gp_version_major(const char *version)
{
    return (unsigned)next_number(&version);
}

unsigned gp_version_minor(const char *version)
{
    (void)next_number(&version);
    return (unsigned)next_number(&version);
}

bool gp_version_is_between(const char *version)
{
    const char *end = version + strspn(version, "0123456789.");
    return *end && *end != '+' && strncmp(end, "post", 4) != 0;
}
