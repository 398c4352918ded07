#include "doctor/readers/initramfs.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <ctype.h>
#include <string.h>

/* The file, the directory whose *.conf are read after it, and the keys that name modules. */
static const struct program {
    const char *file, *folder, *keys[2];
} programs[] = {
    {"/etc/mkinitcpio.conf", "/etc/mkinitcpio.conf.d", {"MODULES"}},
    {"/etc/dracut.conf", "/etc/dracut.conf.d", {"add_drivers", "force_drivers"}},
    {"/etc/initramfs-tools/modules", NULL, {NULL}},
};

struct found {
    struct gp_initramfs_line *lines;
    size_t count;
};

/* Whether a word in the line begins with this module's name. */
static bool has_word(const char *line, size_t n, const char *module)
{
    size_t length = strlen(module);
    const char *end = line + n;
    for (const char *at = line; (at = memmem(at, (size_t)(end - at), module, length)); at++)
        if (at == line || (!isalnum((unsigned char)at[-1]) && !strchr("_-/.", at[-1])))
            return true;
    return false;
}

/* The length of the key that the line begins with; 0: none. */
static size_t key_of(const struct program *program, const char *line, size_t n)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(program->keys) && program->keys[i]; i++) {
        size_t length = strlen(program->keys[i]);
        if (n > length && memcmp(line, program->keys[i], length) == 0 && strchr("+=", line[length]))
            return length;
    }
    return 0;
}

/* Whether the line names the module. `is_open`: it is inside an array that began on a line before;
 * set to whether the next line is. */
static bool names_module(const struct program *program, const char *line, size_t n,
                         const char *module, bool *is_open)
{
    size_t blank = 0;
    while (blank < n && isspace((unsigned char)line[blank]))
        blank++;
    line += blank;
    n -= blank;
    if (!program->keys[0])
        return n >= strlen(module) && memcmp(line, module, strlen(module)) == 0;
    const char *comment = memchr(line, '#', n);
    n = comment ? (size_t)(comment - line) : n;
    size_t key = key_of(program, line, n);
    if (key == 0 && !*is_open)
        return false;
    *is_open = (*is_open || memchr(line, '(', n)) && !memchr(line, ')', n);
    return has_word(line + key, n - key, module);
}

static void read_file(struct gp_exam *exam, const struct program *program, const char *path,
                      const char *module, struct found *found)
{
    size_t size = 0, n;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size), *line;
    struct gp_initramfs_line first = {.path = NULL};
    bool is_open = false;
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        bool was_open = is_open;
        if (!names_module(program, line, n, module, &is_open))
            continue;
        if (!first.path)
            first = (struct gp_initramfs_line){path, gp_exam_text(exam, "%.*s", (int)n, line),
                                               (unsigned)lines.number, !program->keys[0], false};
        first.is_array = first.is_array || was_open || is_open;
    }
    if (first.path && found->count < GP_INITRAMFS_LINES)
        found->lines[found->count++] = first;
}

size_t gp_initramfs_lines(struct gp_exam *exam, const char *module,
                          struct gp_initramfs_line ret[GP_INITRAMFS_LINES])
{
    struct found found = {ret, 0};
    for (size_t p = 0; p < GP_ARRAY_LEN(programs); p++) {
        const struct program *program = &programs[p];
        read_file(exam, program, program->file, module, &found);
        char **names;
        long n = program->folder
                     ? gp_files_list(&exam->files, &exam->arena, program->folder, &names)
                     : 0;
        for (long i = 0; i < n; i++) {
            const char *end = strrchr(names[i], '.');
            if (end && strcmp(end, ".conf") == 0)
                read_file(exam, program, gp_exam_text(exam, "%s/%s", program->folder, names[i]),
                          module, &found);
        }
    }
    return found.count;
}
