/* Texts that are compared with a file of tests/golden. After a wanted change, GPULSE_GOLDEN=write
 * makes the files anew; the diff is then read before it is committed. */
#ifndef GP_TESTS_GOLDEN_H
#define GP_TESTS_GOLDEN_H

#include "unit.h"

static inline void golden_path(char path[1024], const char *name)
{
    const char *root = getenv("GPULSE_SOURCE");
    (void)snprintf(path, 1024, "%s/tests/golden/%s", root ? root : ".", name);
}

static inline void golden_check(const char *name, const char *text, size_t len)
{
    char path[1024];
    const char *mode = getenv("GPULSE_GOLDEN");
    golden_path(path, name);
    if (mode && strcmp(mode, "write") == 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, len, file), len);
        assert_int_equal(fclose(file), 0);
        return;
    }
    static char expected[1 << 18];
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    size_t n = fread(expected, 1, sizeof(expected) - 1, file);
    (void)fclose(file);
    expected[n] = '\0';
    if (n != len || memcmp(expected, text, n) != 0)
        fail_msg("not what %s says:\n%s", path, text);
}

#endif
