#include "doctor/readers/gfxlist.h"

#include "doctor/files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, QUIET = 64 << 20 };

static const char code_mark[] = "amdgcn-amd-amdhsa--";

bool gp_gfxlist_has(const struct gp_gfxlist *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

/* The length of "gfx1030" or "gfx90a" at p; 0: there is none. */
static size_t name_length(const char *p, size_t size)
{
    size_t n = 3;
    if (size < 3 || memcmp(p, "gfx", 3) != 0)
        return 0;
    while (n < size && n < GP_GFX_NAME - 1 &&
           (isdigit((unsigned char)p[n]) || (p[n] >= 'a' && p[n] <= 'f')))
        n++;
    return n >= 6 ? n : 0;
}

static void add(struct gp_gfxlist *list, const char *name, size_t length)
{
    char text[GP_GFX_NAME] = "";
    memcpy(text, name, length);
    if (length > 0 && list->count < GP_GFX_NAMES && !gp_gfxlist_has(list, text))
        memcpy(list->names[list->count++], text, sizeof(text));
}

void gp_gfxlist_find(struct gp_gfxlist *list, const char *data, size_t size, const char *mark)
{
    const char *end = data + size;
    size_t n = strlen(mark);
    for (const char *p = data; (p = memmem(p, (size_t)(end - p), mark, n));) {
        p += n;
        add(list, p, name_length(p, (size_t)(end - p)));
    }
}

void gp_gfxlist_of_folder(struct gp_gfxlist *list, const struct gp_files *files,
                          struct gp_arena *arena, const char *path)
{
    char **names;
    long n = gp_files_list(files, arena, path, &names);
    for (long i = 0; i < n; i++) {
        const char *found = strstr(names[i], "gfx");
        if (found)
            add(list, found, name_length(found, strlen(found)));
    }
}

/* The code objects of one source file stand together and name all GPUs of the build, so that what
 * follows a long stretch without a new name adds none. */
void gp_gfxlist_of_library(struct gp_gfxlist *list, const struct gp_files *files, const char *path,
                           uint64_t *budget)
{
    const size_t overlap = sizeof(code_mark) + GP_GFX_NAME;
    int fd = gp_files_open_file(files, path);
    char *block = fd >= 0 ? malloc(BLOCK) : NULL;
    size_t kept = 0, quiet = 0;
    while (block && *budget > 0 && quiet < QUIET) {
        ssize_t n = read(fd, block + kept, BLOCK - kept);
        if (n <= 0)
            break;
        size_t count = list->count, size = kept + (size_t)n;
        *budget -= (uint64_t)n < *budget ? (uint64_t)n : *budget;
        gp_gfxlist_find(list, block, size, code_mark);
        quiet = list->count > count || list->count == 0 ? 0 : quiet + (size_t)n;
        kept = size < overlap ? size : overlap;
        memmove(block, block + size - kept, kept);
    }
    free(block);
    if (fd >= 0)
        (void)close(fd);
}
