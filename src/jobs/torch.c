#include "jobs/torch.h"

#include "base/io.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 512, TEXT_SIZE = 4096 };

struct torch {
    bool is_found;
    unsigned major, minor;
};

static bool is_at_least(const struct torch *torch, unsigned major, unsigned minor)
{
    return torch->is_found &&
           (torch->major > major || (torch->major == major && torch->minor >= minor));
}

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

static bool read_version(const char *path, struct torch *ret)
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

/* Starts from argv[0]: a Python, or a script that names one in its first line, such as torchrun.
 * Searches next to that Python, as in a virtual environment. */
static struct torch torch_of(const char *program)
{
    static const char *const places[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages",
                                         "lib64/python3*/site-packages"};
    struct torch torch = {.is_found = false};
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

/* Adds an option to one of the variables of its allocator. NULL if out of memory. */
static char *with_option(const char *variable, const char *option)
{
    const char *now = getenv(variable);
    char *text = NULL;
    int n = now && *now ? asprintf(&text, "%s=%s,%s", variable, now, option)
                        : asprintf(&text, "%s=%s", variable, option);
    return n < 0 ? NULL : text;
}

/* Versions before 2.1 fail on the unknown option; 2.10 and newer use another variable. */
bool gp_torch_expandable(const char *program, char *variables[GP_TORCH_VARIABLES],
                         char why[GP_TORCH_WHY_SIZE])
{
    static const char option[] = "expandable_segments:True";
    const struct torch torch = torch_of(program);
    if (is_at_least(&torch, 2, 1)) {
        variables[0] = with_option("PYTORCH_CUDA_ALLOC_CONF", option);
        variables[1] =
            is_at_least(&torch, 2, 10) ? with_option("PYTORCH_ALLOC_CONF", option) : NULL;
        return true;
    }
    if (torch.is_found)
        (void)snprintf(
            why, GP_TORCH_WHY_SIZE,
            "%s is not set: PyTorch %u.%u of '%.80s' would fail with it; it needs 2.1 or "
            "newer",
            option, torch.major, torch.minor, program);
    else
        (void)snprintf(why, GP_TORCH_WHY_SIZE, "%s is not set: no PyTorch found next to '%.80s'",
                       option, program);
    return false;
}
