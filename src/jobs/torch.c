#include "jobs/torch.h"

#include "base/io.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 512, TEXT_SIZE = 4096 };

/* Where the shell would find it. */
static bool find_program(const char *program, char path[GP_PATH_SIZE])
{
    const char *folders = getenv("PATH");
    if (strchr(program, '/'))
        return snprintf(path, GP_PATH_SIZE, "%s", program) < GP_PATH_SIZE &&
               access(path, X_OK) == 0;
    while (folders && *folders) {
        size_t n = strcspn(folders, ":");
        if (n > 0 &&
            snprintf(path, GP_PATH_SIZE, "%.*s/%s", (int)n, folders, program) < GP_PATH_SIZE &&
            access(path, X_OK) == 0)
            return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

static bool is_python(const char *path)
{
    const char *name = strrchr(path, '/');
    return strncmp(name ? name + 1 : path, "python", 6) == 0;
}

/* The interpreter from the first line of a script: "#!/venv/bin/python", "#!/usr/bin/env
 * python3". */
static bool find_interpreter(const char *script, char path[GP_PATH_SIZE])
{
    char line[LINE_SIZE];
    if (gp_io_read(script, line, sizeof(line)) < 3 || strncmp(line, "#!", 2) != 0)
        return false;
    line[strcspn(line, "\n")] = '\0';
    char *word = line + 2 + strspn(line + 2, " ");
    char *rest = word + strcspn(word, " ");
    bool is_env = rest - word >= 4 && strncmp(rest - 4, "/env", 4) == 0;
    if (is_env && *rest)
        word = rest + strspn(rest, " ");
    word[strcspn(word, " ")] = '\0';
    return find_program(word, path);
}

static bool read_version(const char *path, struct gp_torch *ret)
{
    char text[TEXT_SIZE];
    if (gp_io_read(path, text, sizeof(text)) < 0)
        return false;
    const char *at = strstr(text, "__version__");
    at = at ? at + strcspn(at, "'\"\n") : NULL;
    if (!at || (*at != '\'' && *at != '"'))
        return false;
    char *end;
    ret->major = (unsigned)strtoul(at + 1, &end, 10);
    ret->is_found = *end == '.';
    ret->minor = ret->is_found ? (unsigned)strtoul(end + 1, NULL, 10) : 0;
    return ret->is_found;
}

struct gp_torch gp_torch_of(const char *program)
{
    static const char *const places[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages",
                                         "lib64/python3*/site-packages"};
    struct gp_torch torch = {.is_found = false};
    char path[GP_PATH_SIZE];
    char python[GP_PATH_SIZE];
    if (!find_program(program, path) ||
        !(is_python(path) ? snprintf(python, sizeof(python), "%s", path) > 0
                          : find_interpreter(path, python) && is_python(python)))
        return torch;
    char *slash = strrchr(python, '/');
    for (size_t i = 0; slash && i < GP_ARRAY_LEN(places) && !torch.is_found; i++) {
        char pattern[GP_PATH_SIZE + 64];
        glob_t found;
        (void)snprintf(pattern, sizeof(pattern), "%.*s/../%s/torch/version.py",
                       (int)(slash - python), python, places[i]);
        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc && !torch.is_found; k++)
                (void)read_version(found.gl_pathv[k], &torch);
        globfree(&found);
    }
    return torch;
}
