#include "rows.h"

#include "base/io.h"

enum { LINE_SIZE = 4096, NAME_SIZE = 128 };

void rows_add(struct rows *r, const char *name, CMUnitTestFunction f, void *row)
{
    r->tests = realloc(r->tests, (r->count + 1) * sizeof(*r->tests));
    if (!r->tests)
        abort();
    r->tests[r->count++] = (struct CMUnitTest){.name = name, .test_func = f, .initial_state = row};
}

static char *copy_of(struct gp_arena *arena, const char *text)
{
    char *copy = gp_arena_strdup(arena, text);
    if (!copy)
        abort();
    return copy;
}

/* TAP takes what follows a "#" for a directive. */
static const char *name_of(struct gp_arena *arena, const char *file, size_t number,
                           const char *line)
{
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof(name), "%.20s:%zu %.60s", file, number, line);
    for (char *c = name; *c; c++)
        if (*c == '#' || *c == '\\' || (unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '.';
    return copy_of(arena, name);
}

static char **columns_of(struct gp_arena *arena, const char *line, size_t columns)
{
    char **found = gp_arena_alloc(arena, columns, sizeof(*found));
    char *rest = copy_of(arena, line);
    if (!found)
        abort();
    for (size_t i = 0; i < columns; i++)
        found[i] = i + 1 < columns ? strsep(&rest, "\t") : rest;
    return found;
}

size_t rows_add_file(struct rows *r, const char *file, size_t columns, CMUnitTestFunction f)
{
    char line[LINE_SIZE], path[GP_PATH_SIZE];
    const char *source = getenv("GPULSE_SOURCE");
    (void)snprintf(path, sizeof(path), "%s/tests/unit/%s", source ? source : ".", file);
    FILE *stream = fopen(path, "re");
    size_t before = r->count, number = 0;
    if (!stream) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof(line), stream)) {
        number++;
        if (!strchr(line, '\n') && !feof(stream)) {
            (void)fprintf(stderr, "%s:%zu: too long\n", path, number);
            exit(1);
        }
        line[strcspn(line, "\n")] = '\0';
        if (*line && *line != '#')
            rows_add(r, name_of(&r->arena, file, number, line), f,
                     columns_of(&r->arena, line, columns));
    }
    (void)fclose(stream);
    return r->count - before;
}

int rows_run(struct rows *r, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup)
{
    for (size_t i = 0; i < count; i++) {
        rows_add(r, tests[i].name, tests[i].test_func, NULL);
        r->tests[r->count - 1] = tests[i];
    }
    int failed = _cmocka_run_group_tests("tests", r->tests, r->count, setup, NULL);
    free(r->tests);
    gp_arena_fini(&r->arena);
    return failed;
}
