/* Captures (nvidia-smi -q -x) that somebody sends: what the import makes of one goes through
 * the loader too.
 * fuzz-sources: sim/capture.c sim/import.c sim/import_csv.c sim/import_gpu.c sim/import_text.c
 * fuzz-sources: sim/import_value.c sim/import_xml.c sim/node.c sim/machine.c sim/fault.c
 * fuzz-sources: src/base/arena.c src/base/cli.c
 * fuzz-sources: src/base/err.c src/base/io.c src/base/parse.c src/base/strbuf.c src/base/utf8.c
 * fuzz-libs: jansson expat */
#include "sim/import.h"
#include "sim/machine.h"

#include "base/err.h"
#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
    return 0;
}
