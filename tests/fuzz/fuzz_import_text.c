/* Captures that are not XML (nvidia-smi -q, --query-gpu): told apart, read, imported, loaded.
 * fuzz-sources: sim/capture_read.c
 * fuzz-sources: sim/capture.c sim/import.c sim/import_csv.c sim/import_gpu.c sim/import_text.c
 * fuzz-sources: sim/import_value.c sim/import_xml.c sim/node.c sim/machine.c sim/fault.c
 * fuzz-sources: sim/machine_answers.c sim/machine_devices.c sim/machine_document.c
 * fuzz-sources: sim/machine_names.c sim/host.c
 * fuzz-sources: src/base/arena.c src/base/cli.c
 * fuzz-sources: src/base/err.c src/base/io.c src/base/parse.c src/base/strbuf.c src/base/utf8.c
 * fuzz-sources: sim/branch.c sim/import_lists.c sim/lists.c sim/topology.c
 * fuzz-libs: jansson expat */
#include "import_and_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    import_and_load(data, size);
    return 0;
}
