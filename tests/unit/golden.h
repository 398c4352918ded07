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

/* Fails with the first line that differs, and the last heading ("==== …") before it. */
static inline void golden_differs(const char *path, const char *expected, const char *text)
{
    const char *heading = "";
    for (;;) {
        size_t n = strcspn(expected, "\n");
        size_t m = strcspn(text, "\n");
        if (strncmp(text, "==== ", 5) == 0)
            heading = text;
        if (n != m || memcmp(expected, text, n) != 0 || !expected[n] || !text[m])
            fail_msg("not what %s says:\n%.*s\nexpected %.*s\n     got %.*s", path,
                     (int)strcspn(heading, "\n"), heading, (int)n, expected, (int)m, text);
        expected += n + 1;
        text += m + 1;
    }
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
    static char expected[1 << 20];
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    size_t n = fread(expected, 1, sizeof(expected) - 1, file);
    (void)fclose(file);
    expected[n] = '\0';
    if (n != len || memcmp(expected, text, n) != 0)
        golden_differs(path, expected, text);
}

#endif
