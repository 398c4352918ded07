/* The text of /proc/PID/cgroup. Users may make cgroups, and call them as they like. What comes out
 * has an end, obeys no terminal, and is empty exactly if nothing was found.
 * fuzz-sources: src/proc/container.c src/base/utf8.c src/base/strbuf.c */
#include "proc/container.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char container[GP_PROC_CONTAINER_SIZE];
    const char *path;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    bool found = gp_proc_container(text, container);
    size_t len = strnlen(container, sizeof(container));
    if (len == sizeof(container) || found != (len > 0))
        abort();
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)container[i] < ' ' || container[i] == 0x7f)
            abort();
    len = gp_proc_cgroup_path(text, &path);
    if (path < text || len > strlen(path))
        abort();
    free(text);
    return 0;
}
