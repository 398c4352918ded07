#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The loader's words begin with the file that is meant. A library that is there but cannot be
 * loaded, perhaps because of one that it needs, gives a better reason than one that is not. */
static void keep_reason(const char *place, bool is_given, char reason[GP_LIBRARY_REASON])
{
    const char *words = dlerror();
    size_t n = strlen(place);
    bool own = words && strncmp(words, place, n) == 0 && strncmp(words + n, ": ", 2) == 0;
    bool is_there = !own || !strstr(words, "No such file");
    if (words && is_there)
        (void)snprintf(reason, GP_LIBRARY_REASON, "%s", own && is_given ? words + n + 2 : words);
    else if (is_given)
        (void)snprintf(reason, GP_LIBRARY_REASON, "not found");
}

void *gp_library_open(const char *path, const char *const *places, size_t count,
                      char reason[GP_LIBRARY_REASON])
{
    reason[0] = '\0';
    for (size_t i = 0; i < (path ? 1 : count); i++) {
        const char *place = path ? path : places[i];
        if (!path && place[0] == '/' && access(place, F_OK) != 0)
            continue;
        void *library = dlopen(place, RTLD_LAZY | RTLD_LOCAL);
        if (library)
            return library;
        keep_reason(place, path != NULL, reason);
    }
    return NULL;
}
