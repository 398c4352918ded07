/* Tests that are made at run time: one for each row of a table, so that each row fails alone and by
 * name. */
#ifndef GP_TESTS_ROWS_H
#define GP_TESTS_ROWS_H

#include "unit.h"

#include "base/arena.h"

struct rows {
    struct CMUnitTest *tests;
    size_t count;
    struct gp_arena arena; /* names and columns of what comes from a file */
};

/* Adds a test of that name; f finds `row` in *state. Both have to last. */
void rows_add(struct rows *r, const char *name, CMUnitTestFunction f, void *row);

/* Adds a test for each line of tests/unit/FILE that is no comment: f finds its tab-separated
 * columns, the last of which may contain tabs, in *state as a char **. Returns how many. Exits if
 * the file cannot be read: the program then has no test that could pass. */
size_t rows_add_file(struct rows *r, const char *file, size_t columns, CMUnitTestFunction f);

/* Runs these and the `count` of `tests`, and frees the rows; the exit status of the program. */
int rows_run(struct rows *r, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup);

#endif
