/* Tables of facts, as a user may have put them there. What is accepted is sorted and keeps to its
 * memory.
 * fuzz-sources: src/doctor/tables_parse.c src/doctor/version.c
 * fuzz-sources: src/base/arena.c src/base/err.c src/base/strbuf.c src/base/utf8.c */
#include "base/arena.h"
#include "doctor/tables.h"
#include "doctor/tables_load.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct row {
    const char *text, *version;
    unsigned number, hex, capability, modules;
    enum gp_verdict verdict;
    double real;
    bool yes;
};

#define COLUMN(name, store, pattern, is_optional, key)                                             \
    {                                                                                              \
#name, GP_STORE_##store, pattern, "bad", is_optional, offsetof(struct row, name), key      \
    }

static const struct gp_table_column columns[] = {
    COLUMN(text, TEXT, NULL, true, 0),
    COLUMN(version, TEXT, "^([0-9]+([.][0-9]+)*)$", false, 1),
    COLUMN(number, NUMBER, "^(0|[1-9][0-9]{0,8})$", true, 2),
    COLUMN(hex, HEX, "^([0-9a-f]{1,8})$", true, 0),
    COLUMN(capability, CAPABILITY, "^([0-9]{1,3}[.][0-9])$", false, 0),
    COLUMN(modules, MODULES, "^(proprietary|open|both)$", false, 0),
    COLUMN(verdict, VERDICT, "^(ok|info|warn|fail)$", false, 0),
    COLUMN(real, REAL, "^([0-9]+([.][0-9]+)?)$", true, 0),
    COLUMN(yes, YES, "^(yes|no)$", false, 0),
};

static const struct gp_table table = {.name = "fuzz",
                                      .columns = columns,
                                      .column_count = GP_ARRAY_LEN(columns),
                                      .row_size = sizeof(struct row)};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char head[] =
        "text,version,number,hex,capability,modules,verdict,real,yes\nt,1,,,8.6,both,ok,,yes\n";
    struct gp_arena arena = {0};
    void *rows = NULL;
    size_t count = 0, length = sizeof(head) - 1;
    char *text = malloc(length + size + 1);
    if (!text)
        return 0;
    memcpy(text, head, length);
    memcpy(text + length, data, size);
    text[length + size] = '\0';
    if (gp_table_parse(&table, "f", text, length + size, &arena, &rows, &count, NULL) == 0) {
        const struct row *row = rows;
        for (size_t i = 0; i < count; i++)
            if (strlen(row[i].text) > length + size || strlen(row[i].version) > length + size ||
                row[i].modules > 3 || row[i].verdict > GP_VERDICT_FAIL)
                abort();
    }
    gp_arena_fini(&arena);
    free(text);
    return 0;
}
