/* Machine files of the simulated driver, as somebody may send them.
 * fuzz-sources: sim/machine_answers.c sim/machine_devices.c sim/machine_document.c
 * fuzz-sources: sim/machine_names.c sim/host.c
 * fuzz-sources: sim/machine.c sim/fault.c src/base/arena.c src/base/cli.c src/base/err.c
 * fuzz-sources: src/base/io.c src/base/parse.c src/base/strbuf.c src/base/utf8.c
 * fuzz-sources: sim/branch.c sim/lists.c sim/topology.c
 * fuzz-libs: jansson */
#include "sim/machine.h"

#include "base/err.h"
#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("machine", MFD_CLOEXEC);
    if (fd < 0 || gp_io_write_all(fd, data, size) < 0)
        abort();
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct sim_machine *machine = NULL;
    struct gp_err err = {0};
    int r = sim_machine_load(path, size % 4 == 3 ? 8 : 0, &machine, &err);
    if (r == 0 ? !machine : machine || !err.text[0])
        abort();
    sim_machine_free(machine);
    (void)close(fd);
    return 0;
}
