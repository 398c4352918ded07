/* What every unit test includes: cmocka with what it wants before it, and allocation failures. */
#ifndef GP_TESTS_UNIT_H
#define GP_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Ends the test as one that cannot run here, and says why. */
#define skip_because(why)                                                                          \
    do {                                                                                           \
        print_message("# skipped: %s\n", why);                                                     \
        skip();                                                                                    \
    } while (0)

/* For mkdtemp() and mkstemp(): a place below $TMPDIR, which tests/run empties even if the test is
 * killed. What does not fit is cut, and they refuse it. */
static inline void temporary_name(char *path, size_t size, const char *name)
{
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, size, "%s/gpulse-%s-XXXXXX", folder ? folder : "/tmp", name);
}

/* Lets the n-th allocation from now (0: the next) and all after it fail; -1: none does. */
void alloc_fail_from(long n);
/* Lets only the n-th fail. */
void alloc_fail_at(long n);
/* Allocations since the last of these. */
long alloc_count(void);

/* How many files this process has open. */
size_t open_file_count(void);

#endif
