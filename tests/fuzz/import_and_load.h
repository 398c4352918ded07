/* What the fuzz targets of captures do with one: import it, and load what comes out. */
#ifndef GPULSE_TEST_IMPORT_AND_LOAD_H
#define GPULSE_TEST_IMPORT_AND_LOAD_H

#include "sim/import.h"
#include "sim/machine.h"

#include "base/err.h"
#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in memory with this content; its path is stored in `path`. */
static int memory_file(const void *data, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || gp_io_write_all(fd, data, size) < 0)
        abort();
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void load(json_t *document)
{
    char *text = json_dumps(document, JSON_COMPACT);
    if (!text)
        abort();
    char path[64];
    int fd = memory_file(text, strlen(text), path);
    struct sim_machine *machine = NULL;
    struct gp_err err = {0};
    /* What stood in the capture may be nonsense that the machine file refuses, in words. */
    if (sim_machine_load(path, 0, &machine, &err) != 0 && !err.text[0])
        abort();
    sim_machine_free(machine);
    (void)close(fd);
    free(text);
}

static void import_and_load(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memory_file(data, size, path);
    json_t *document = NULL;
    struct gp_err err = {0};
    int r = sim_import(path, &document, &err);
    if (r == 0 ? !document : document || !err.text[0])
        abort();
    if (document)
        load(document);
    json_decref(document);
    (void)close(fd);
}

#endif
