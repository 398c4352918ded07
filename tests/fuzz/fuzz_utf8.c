/* Hostile text through the escaper: what comes out is valid UTF-8 without anything that a terminal
 * obeys, and keeps to its columns.
 * fuzz-sources: src/base/utf8.c src/base/strbuf.c */
#include "base/strbuf.h"
#include "base/utf8.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gp_strbuf *sb)
{
    for (size_t i = 0; i < sb->len;) {
        uint32_t cp;
        size_t len = gp_utf8_decode(sb->buf + i, sb->len - i, &cp);
        bool control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
        bool direction = (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
        if (control || direction || (cp == 0xfffd && len == 1))
            abort();
        i += len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t cols = data[0] < 200 ? data[0] : SIZE_MAX;
    const char *text = (const char *)data + 1;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_utf8_add_safe(&sb, text, size - 1, cols);
    check(&sb);
    if (gp_utf8_width(sb.buf) > cols)
        abort();

    struct gp_strbuf padded = GP_STRBUF_INIT(1 << 20);
    size_t width = cols % 64;
    gp_utf8_add_padded(&padded, sb.buf, width, true);
    check(&padded);
    if (gp_utf8_width(padded.buf) != width)
        abort();
    gp_strbuf_fini(&padded);
    gp_strbuf_fini(&sb);
    return 0;
}
