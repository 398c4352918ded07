#include "bench/library.h"

#include "base/io.h"
#include "base/strbuf.h"

#include <dlfcn.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NSS_BYTES = 4096 }; /* a group that does not fit has many members */

void *gp_bench_library_open(const char *const *names)
{
    void *library = NULL;
    for (size_t i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    return library;
}

/* Whether a group is this user's alone: many systems give each user one, with the user's name. The
 * primary group of a cluster often has many users, whom it does not list. */
static bool is_private(gid_t gid)
{
    struct passwd user;
    struct group group;
    struct passwd *found_user = NULL;
    struct group *found_group = NULL;
    char user_room[NSS_BYTES];
    char group_room[NSS_BYTES];
    (void)getpwuid_r(geteuid(), &user, user_room, sizeof(user_room), &found_user);
    (void)getgrgid_r(gid, &group, group_room, sizeof(group_room), &found_group);
    if (!found_user || !found_group || strcmp(user.pw_name, group.gr_name) != 0)
        return false;
    for (char **member = group.gr_mem; *member; member++)
        if (strcmp(*member, user.pw_name) != 0)
            return false;
    return true;
}

/* Whether only root and this user can change a file or directory. */
static bool is_ours(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           !(st.st_mode & S_IWOTH) &&
           (!(st.st_mode & S_IWGRP) || st.st_gid == 0 || is_private(st.st_gid));
}

/* Nobody else may decide what this process executes: neither by the file nor by what is above it.
 */
static bool is_trusted(char path[GP_PATH_SIZE])
{
    bool is_good = is_ours(path);
    for (char *slash = strrchr(path, '/'); is_good && slash && slash > path;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        struct stat st;
        is_good = is_ours(path) || (stat(path, &st) == 0 && st.st_uid == 0 && st.st_mode & S_ISVTX);
    }
    return is_good;
}

struct search {
    bool (*try)(void *library, void *context);
    void *context;
};

static bool try_file(const struct search *search, const char *path)
{
    char real[GP_PATH_SIZE];
    char parts[GP_PATH_SIZE];
    if (!realpath(path, real))
        return false;
    memcpy(parts, real, sizeof(parts));
    void *library = is_trusted(parts) ? dlopen(real, RTLD_LAZY | RTLD_LOCAL) : NULL;
    return library && search->try(library, search->context);
}

static bool try_prefix(const struct search *search, const char *prefix, const char *site)
{
    char pattern[GP_PATH_SIZE];
    glob_t found;
    bool is_found = false;
    int n = snprintf(pattern, sizeof(pattern), "%s/lib*/python3*/{site,dist}-packages/%s", prefix,
                     site);
    if (n < 0 || (size_t)n >= sizeof(pattern) || glob(pattern, GLOB_BRACE, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !is_found; i++)
        is_found = try_file(search, found.gl_pathv[i]);
    globfree(&found);
    return is_found;
}

/* Conda's own packages have their libraries outside of site-packages. */
static bool try_conda(const struct search *search, const char *prefix, const char *name)
{
    char path[GP_PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/lib/%s", prefix, name);
    return name[0] != '/' && n > 0 && (size_t)n < sizeof(path) && try_file(search, path);
}

/* The prefix of the first python3 in $PATH: "/usr/local" for /usr/local/bin/python3. */
static bool python_prefix(char prefix[GP_PATH_SIZE])
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        int n = snprintf(prefix, GP_PATH_SIZE, "%.*s/python3", (int)length, path);
        if (length > 4 && n > 0 && n < GP_PATH_SIZE && access(prefix, X_OK) == 0) {
            prefix[length - 4] = '\0';
            return strncmp(path + length - 4, "/bin", 4) == 0;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

bool gp_bench_library_try(const char *const *sites, const char *const *names,
                          bool (*try)(void *library, void *context), void *context)
{
    const struct search search = {try, context};
    char python[GP_PATH_SIZE] = "";
    const char *home = getenv("HOME");
    char user[GP_PATH_SIZE] = "";
    if (home && home[0] == '/')
        (void)snprintf(user, sizeof(user), "%s/.local", home);
    const char *conda = getenv("CONDA_PREFIX");
    const char *prefixes[] = {getenv("VIRTUAL_ENV"), conda, python_prefix(python) ? python : NULL,
                              user};
    for (size_t i = 0; i < GP_ARRAY_LEN(prefixes); i++)
        for (size_t s = 0; prefixes[i] && prefixes[i][0] == '/' && sites[s]; s++)
            if (try_prefix(&search, prefixes[i], sites[s]))
                return true;
    for (size_t i = 0; conda && conda[0] == '/' && names[i]; i++)
        if (try_conda(&search, conda, names[i]))
            return true;
    for (size_t i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (library && try(library, context))
            return true;
    }
    return false;
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
