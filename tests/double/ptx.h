/* Executes PTX on the CPU: the instructions that gpulse's kernels use, and no others. Every access
 * to memory is checked: global memory must have been registered, shared memory declared. */
#ifndef GP_TESTS_PTX_H
#define GP_TESTS_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_function;

/* NULL: `log` says what is wrong with it. */
struct ptx_module *ptx_load(const char *text, char *log, size_t size);
void ptx_free(struct ptx_module *module);
struct ptx_function *ptx_find(struct ptx_module *module,
                              const char *name); /* NULL: there is none */

/* Whether [address, address + size) may be accessed. */
typedef bool ptx_may_access(uint64_t address, size_t size);

/* False: an access is not allowed, or threads of a block end at different barriers. */
bool ptx_run(const struct ptx_function *function, unsigned grid_x, unsigned grid_y,
             unsigned threads, void **parameters, ptx_may_access *may_access);

#endif
