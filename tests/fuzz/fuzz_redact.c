/* Texts of a bundle: names and numbers of the machine are not in what comes out.
 * fuzz-sources: src/doctor/bundle/redact.c src/base/strbuf.c src/base/utf8.c */
#include "base/strbuf.h"
#include "doctor/bundle/redact.h"

#include <stdlib.h>
#include <string.h>

/* A list of words in which the lengths of words stand. */
static size_t some(const char *text, size_t n, bool is_fraction)
{
    (void)text;
    return is_fraction ? n : n % 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gp_redactor redactor = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    redactor.known = size % 2 ? some : NULL;
    gp_redact_host(&redactor, "zeus7");
    gp_redact_user(&redactor, "grace");
    gp_redact_serial(&redactor, "1650124014249");
    gp_redact_add(&redactor, &sb, (const char *)data, size);
    if (sb.error || (sb.len > 0 && memmem(sb.buf, sb.len, " zeus7 ", strlen(" zeus7 "))))
        abort();
    gp_strbuf_fini(&sb);
    return 0;
}
