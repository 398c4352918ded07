#include "tape/import_file.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/when.h"

#include <errno.h>
#include <string.h>

int gp_import_next_line(struct gp_import_file *file, struct gp_err *err)
{
    int c;
    gp_strbuf_reset(&file->text);
    while ((c = getc_unlocked(file->stream)) != EOF && c != '\n' && !file->text.error)
        gp_strbuf_addc(&file->text, (char)c);
    file->line = file->text.buf;
    if (ferror(file->stream))
        return gp_err_system(err, errno, GP_EIO, "cannot read '%.200s'", file->rows->config->from);
    if (c == EOF && file->text.len == 0)
        return 0;
    file->rows->line++;
    if (file->text.error || memchr(file->text.buf, '\0', file->text.len))
        return gp_import_fail(file->rows, "not a text", err);
    file->text.buf[strcspn(file->text.buf, "\r")] = '\0';
    return 1;
}

/* nvidia-smi's date has slashes; the rest is as people type it. */
bool gp_import_time(const char *text, int64_t *ret_wall_us)
{
    char plain[40];
    char fraction[8] = "0.";
    double part = 0;
    uint64_t ns;
    const size_t len = strlen(text);
    if (len < 19 || len >= sizeof(plain))
        return false;
    memcpy(plain, text, len + 1);
    if (plain[4] == '/' && plain[7] == '/') {
        plain[4] = plain[7] = '-';
        if (plain[19] == '.') {
            (void)snprintf(fraction, sizeof(fraction), "0.%.3s", plain + 20);
            plain[19] = '\0';
            if (!gp_parse_number(fraction, &part))
                return false;
        }
    }
    if (!gp_parse_time(plain, UINT64_MAX, &ns) || ns / GP_NS_PER_S > UINT64_C(1) << 36)
        return false;
    *ret_wall_us = (int64_t)(ns / GP_NS_PER_US) + (int64_t)(part * 1e6);
    return true;
}

int gp_import_index(const char *text)
{
    uint64_t n;
    return gp_parse_u64(text, &n) && n < 1024 ? (int)n : -1;
}
