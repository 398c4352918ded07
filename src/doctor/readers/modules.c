#include "doctor/readers/modules.h"

#include "doctor/lines.h"

#include <stdio.h>

/* ---- modules.dep ---- */

/* Whether a file's name, without ".ko", is that of the main module: not uvm, modeset or drm. */
static bool is_nvidia(const char *name, size_t length)
{
    static const char *const others[] = {"nvidia-current", "nvidia-current-open"};
    static const char *const kinds[] = {"nvidia-tesla", "nvidia-legacy-"};
    /* "nvidia_361", "nvidia_331_updates" of Ubuntu until 16.04 */
    static const char branch[] = "nvidia_", updates[] = "_updates";
    size_t stem = length > sizeof(updates) && memcmp(name + length - (sizeof(updates) - 1), updates,
                                                     sizeof(updates) - 1) == 0
                      ? length - (sizeof(updates) - 1)
                      : length;
    if (gp_lines_is(name, length, "nvidia") ||
        (stem == sizeof(branch) + 2 && memcmp(name, branch, sizeof(branch) - 1) == 0 &&
         strspn(name + sizeof(branch) - 1, "0123456789") == 3))
        return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (gp_lines_is(name, length, others[i]))
            return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i]);
        /* "nvidia-tesla-470" but not "nvidia-tesla-470-uvm" */
        if (length >= n && memcmp(name, kinds[i], n) == 0)
            return length == n || (name[length - 1] >= '0' && name[length - 1] <= '9') ||
                   (length > 2 && memcmp(name + length - 2, "xx", 2) == 0);
    }
    return false;
}

bool gp_modules_find_nvidia(const char *dep, size_t length, char *ret, size_t size)
{
    struct gp_lines lines = gp_lines_of(dep, length);
    const char *line;
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        const char *colon = memchr(line, ':', n);
        if (!colon)
            continue;
        const char *name = colon;
        while (name > line && name[-1] != '/')
            name--;
        size_t whole = (size_t)(colon - name);
        size_t stem = 0;
        while (stem + 2 < whole && memcmp(name + stem, ".ko", 3) != 0)
            stem++;
        if (stem + 2 < whole && is_nvidia(name, stem)) {
            (void)snprintf(ret, size, "%.*s", (int)(colon - line), line);
            return true;
        }
    }
    return false;
}

void gp_modules_branch(const char *path, char *ret, size_t size)
{
    static const char mark[] = "nvidia-";
    *ret = '\0';
    for (const char *p = strstr(path, mark); p; p = strstr(p + 1, mark)) {
        const char *number = p + sizeof(mark) - 1;
        size_t n = strspn(number, "0123456789");
        if (n == 3 && number[n] && strchr("/-s", number[n])) { /* "nvidia-535srv" too */
            (void)snprintf(ret, size, "%.3s", number);
            return;
        }
    }
}

/* ---- modprobe ---- */

/* Names of modules: a dash is an underscore. */
static bool is_module(const char *name, size_t length, const char *module)
{
    if (length != strlen(module))
        return false;
    for (size_t i = 0; i < length; i++) {
        char a = name[i] == '-' ? '_' : name[i], b = module[i] == '-' ? '_' : module[i];
        if (a != b)
            return false;
    }
    return true;
}

/* A command that loads nothing: "/bin/false", "true", "/bin/:". */
static bool does_nothing(const char *command, size_t length)
{
    static const char *const words[] = {"false", "true", ":", "null", "no"};
    while (memchr(command, '/', length)) {
        command++;
        length--;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (gp_lines_is(command, length, words[i]))
            return true;
    return false;
}

enum gp_block_kind gp_modules_config_line(const char *line, size_t length, const char *module)
{
    const char *end = line + length, *verb, *name, *rest;
    size_t verb_length, name_length, n;
    if (!gp_lines_word(&line, end, &verb, &verb_length) ||
        !gp_lines_word(&line, end, &name, &name_length) || !is_module(name, name_length, module))
        return GP_BLOCK_NONE;
    if (gp_lines_is(verb, verb_length, "blacklist"))
        return GP_BLOCK_BLACKLISTED;
    if (!gp_lines_word(&line, end, &rest, &n))
        return GP_BLOCK_NONE;
    if (gp_lines_is(verb, verb_length, "install") && does_nothing(rest, n))
        return GP_BLOCK_REFUSED;
    if (gp_lines_is(verb, verb_length, "alias") && gp_lines_is(rest, n, "off"))
        return GP_BLOCK_REFUSED;
    return GP_BLOCK_NONE;
}

bool gp_modules_is_renamed(const char *line, size_t length, const char *module)
{
    const char *end = line + length, *verb, *name;
    size_t verb_length, name_length;
    return gp_lines_word(&line, end, &verb, &verb_length) &&
           gp_lines_word(&line, end, &name, &name_length) && is_module(name, name_length, module) &&
           (gp_lines_is(verb, verb_length, "alias") || gp_lines_is(verb, verb_length, "install"));
}

static bool has_module(const char *list, size_t length, const char *module)
{
    for (const char *end = list + length; list < end;) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t n = comma ? (size_t)(comma - list) : (size_t)(end - list);
        if (is_module(list, n, module))
            return true;
        list += n + 1;
    }
    return false;
}

struct key {
    const char *name;
    enum gp_block_kind block;
};

/* The effect of the first word "KEY=…" that names the module. */
static enum gp_block_kind find_word(const char *text, const char *module, const struct key *keys,
                                    size_t count, char *ret, size_t size)
{
    const char *end = text + strcspn(text, "\r\n"), *word;
    size_t n;
    while (gp_lines_word(&text, end, &word, &n))
        for (size_t i = 0; i < count; i++) {
            size_t key = strlen(keys[i].name);
            if (n <= key || memcmp(word, keys[i].name, key) != 0 ||
                !has_module(word + key, n - key, module))
                continue;
            (void)snprintf(ret, size, "%.*s", (int)n, word);
            return keys[i].block;
        }
    return GP_BLOCK_NONE;
}

enum gp_block_kind gp_modules_command_line(const char *text, const char *module, char *ret,
                                           size_t size)
{
    static const struct key keys[] = {{"module_blacklist=", GP_BLOCK_REFUSED},
                                      {"modprobe.blacklist=", GP_BLOCK_BLACKLISTED}};
    return find_word(text, module, keys, GP_ARRAY_LEN(keys), ret, size);
}

bool gp_modules_initramfs_line(const char *text, const char *module, char *ret, size_t size)
{
    static const struct key keys[] = {{"rd.driver.blacklist=", GP_BLOCK_BLACKLISTED},
                                      {"rdblacklist=", GP_BLOCK_BLACKLISTED}};
    return find_word(text, module, keys, GP_ARRAY_LEN(keys), ret, size) != GP_BLOCK_NONE;
}

/* ---- logs of builds ---- */

/* What a compiler, kbuild or a shell prints; make's "Error 2" follows it. */
static bool says_error(const char *line, size_t length)
{
    static const char *const marks[] = {"error:",
                                        "ERROR:",
                                        "Error!",
                                        ": not found",
                                        "command not found",
                                        "No such file or directory"};
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++)
        if (memmem(line, length, marks[i], strlen(marks[i])))
            return true;
    return false;
}

/* How sure it is that a line is the error: make's remark and the older heading of NVIDIA's check of
 * the compiler count only if there is nothing better. The newer heading, "Warning: Compiler version
 * check failed", does not stop a build. */
enum weight { NO_ERROR, HEADING, REMARK, ERROR };

static enum weight weight_of(const char *line, size_t length)
{
    static const char heading[] = "Compiler version check failed";
    bool is_heading =
        length >= sizeof(heading) - 1 && memcmp(line, heading, sizeof(heading) - 1) == 0;
    return says_error(line, length)         ? ERROR
           : memmem(line, length, "***", 3) ? REMARK
           : is_heading                     ? HEADING
                                            : NO_ERROR;
}

size_t gp_modules_first_error(const char *log, size_t length, const char **ret, size_t *ret_length)
{
    struct gp_lines lines = gp_lines_of(log, length);
    enum weight best = NO_ERROR;
    const char *line;
    size_t n, number = 0;
    while (best < ERROR && gp_lines_next(&lines, &line, &n)) {
        enum weight weight = weight_of(line, n);
        if (weight <= best)
            continue;
        *ret = line;
        *ret_length = n;
        best = weight;
        number = lines.number;
    }
    return number;
}

/* "DKMS make.log for nvidia-570.124.06 for kernel 6.8.0-60-generic (x86_64)" */
void gp_modules_log_kernel(const char *log, size_t length, char *ret, size_t size)
{
    static const char mark[] = " for kernel ";
    size_t head = length < 512 ? length : 512;
    const char *found = memmem(log, head, mark, sizeof(mark) - 1);
    *ret = '\0';
    if (!found)
        return;
    const char *at = found + sizeof(mark) - 1, *end = log + head, *word;
    size_t n;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (gp_lines_word(&at, stop ? stop : end, &word, &n))
        (void)snprintf(ret, size, "%.*s", (int)n, word);
}
