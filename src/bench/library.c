#include "bench/library.h"

#include "base/io.h"
#include "base/strbuf.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *gp_bench_library_open(const char *const *names)
{
    void *library = NULL;
    for (size_t i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* Nobody else may decide what this process executes. */
static bool is_trusted(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & S_IWOTH) &&
           (st.st_uid == 0 || st.st_uid == geteuid());
}

static void *open_matching(const char *prefix, const char *site)
{
    char pattern[GP_PATH_SIZE];
    glob_t found;
    void *library = NULL;
    int n = snprintf(pattern, sizeof(pattern), "%s/lib/python3*/site-packages/%s", prefix, site);
    if (n < 0 || (size_t)n >= sizeof(pattern) || glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && !library; i++)
        if (is_trusted(found.gl_pathv[i]))
            library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return library;
}

/* The prefix of the first python3 in $PATH: "/usr/local" for /usr/local/bin/python3. */
static bool python_prefix(char prefix[GP_PATH_SIZE])
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        int n = snprintf(prefix, GP_PATH_SIZE, "%.*s/python3", (int)length, path);
        if (length > 0 && n > 0 && n < GP_PATH_SIZE && access(prefix, X_OK) == 0) {
            char *bin = length > 4 ? prefix + length - 4 : prefix;
            *bin = '\0';
            return bin > prefix && strncmp(path + length - 4, "/bin", 4) == 0;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

void *gp_bench_library_in_python(const char *const *sites)
{
    char python[GP_PATH_SIZE] = "";
    const char *home = getenv("HOME");
    char user[GP_PATH_SIZE] = "";
    if (home && home[0] == '/')
        (void)snprintf(user, sizeof(user), "%s/.local", home);
    const char *prefixes[] = {getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"),
                              python_prefix(python) ? python : NULL, user};
    void *library = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(prefixes); i++)
        for (size_t s = 0; prefixes[i] && prefixes[i][0] == '/' && sites[s] && !library; s++)
            library = open_matching(prefixes[i], sites[s]);
    return library;
}

const char *gp_bench_library_find(void *library, const struct gp_bench_symbol *symbols,
                                  size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return symbols[i].name;
        memcpy((char *)table + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return NULL;
}
