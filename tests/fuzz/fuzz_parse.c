/* Numbers that people type. A refused text must leave the result alone.
 * fuzz-sources: src/base/parse.c */
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool (*const parsers[])(const char *, uint64_t *) = {
        gp_parse_duration,
        gp_parse_size,
        gp_parse_u64,
    };
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < GP_ARRAY_LEN(parsers); i++) {
        uint64_t value = 4711;
        if (!parsers[i](text, &value) && value != 4711)
            abort();
    }
    free(text);
    return 0;
}
