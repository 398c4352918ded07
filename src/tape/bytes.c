#include "tape/bytes.h"

#include <string.h>

void gp_bytes_add(struct gp_strbuf *sb, uint64_t n)
{
    char room[10];
    size_t len = 0;
    for (; n >= 0x80; n >>= 7)
        room[len++] = (char)(n | 0x80);
    room[len++] = (char)n;
    gp_strbuf_add(sb, room, len);
}

void gp_bytes_add_text(struct gp_strbuf *sb, const char *text)
{
    size_t len = strlen(text);
    gp_bytes_add(sb, len);
    gp_strbuf_add(sb, text, len);
}

uint64_t gp_bytes_read(struct gp_bytes *bytes)
{
    uint64_t n = 0;
    unsigned shift = 0;
    while (bytes->at < bytes->end && shift < 64) {
        uint8_t byte = *bytes->at++;
        if (shift == 63 && byte > 1)
            break;
        n |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            return n;
    }
    bytes->at = bytes->end;
    bytes->failed = true;
    return 0;
}

uint64_t gp_bytes_read_upto(struct gp_bytes *bytes, uint64_t most)
{
    uint64_t n = gp_bytes_read(bytes);
    if (n <= most)
        return n;
    bytes->at = bytes->end;
    bytes->failed = true;
    return 0;
}

size_t gp_bytes_read_text(struct gp_bytes *bytes, const char **ret)
{
    uint64_t len = gp_bytes_read(bytes);
    if (len > (uint64_t)(bytes->end - bytes->at)) {
        bytes->at = bytes->end;
        bytes->failed = true;
        len = 0;
    }
    *ret = (const char *)bytes->at;
    bytes->at += len;
    return (size_t)len;
}
