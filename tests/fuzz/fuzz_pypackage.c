/* Files of Python packages and libraries, from wherever they were installed.
 * fuzz-sources: src/doctor/readers/pypackage.c src/doctor/readers/archlist.c src/doctor/files.c
 * fuzz-sources: src/doctor/stall.c src/proc/mount.c src/base/arena.c src/base/err.c
 * fuzz-sources: src/base/clock.c src/doctor/version.c */
#include "doctor/files.h"
#include "doctor/readers/archlist.h"
#include "doctor/readers/pypackage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_text(const char *text)
{
    char name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION], build[GP_PYPACKAGE_VERSION];
    char value[64];
    struct gp_requirement requirement;
    (void)gp_pypackage_split(text, name, version);
    (void)gp_pypackage_split_conda(text, name, version, build);
    (void)gp_python_value(text, "cuda", value, sizeof(value));
    for (const char *p = text; (p = gp_requirement_next(p, &requirement));) {
        if (strlen(requirement.name) == 0)
            abort();
        (void)gp_requirement_is_for(&requirement, "3.12.4");
        (void)gp_requirement_allows(&requirement, "2.6.0+cu124");
    }
}

/* As a library, which may be an ELF file with any headers. */
static void read_library(const uint8_t *data, size_t size)
{
    static const struct gp_files here = {.fd = -1, .is_here = true};
    char path[64], archs[GP_ARCHLIST_SIZE];
    uint64_t budget = 4 << 20;
    int fd = memfd_create("library", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, data, size) == (ssize_t)size) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        (void)gp_archlist_read(&here, path, &budget, archs);
    }
    if (fd >= 0)
        (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char archs[GP_ARCHLIST_SIZE];
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    read_text(text);
    free(text);
    (void)gp_archlist_find((const char *)data, size, size % 2, archs);
    read_library(data, size);
    return 0;
}
