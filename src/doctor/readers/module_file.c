#include "doctor/readers/module_file.h"

#include "doctor/files.h"

#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <elf.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, OVERLAP = 64, MOST_BYTES = 1 << 29 };

static const char signed_mark[] = "~Module signature appended~\n";
enum { SIGNED_LENGTH = sizeof(signed_mark) - 1 };

/* "version=570.124.06" among the texts of .modinfo, which end with a NUL; "srcversion=" is another
 * one, and a format in the code has no number there. */
static void find_version(const char *text, size_t length, char *ret, size_t size)
{
    static const char mark[] = "version=";
    const char *end = text + length, *p = text;
    while (!*ret && (p = memmem(p, (size_t)(end - p), mark, sizeof(mark) - 1))) {
        bool is_whole_word = p > text && !isalpha((unsigned char)p[-1]);
        p += sizeof(mark) - 1;
        const char *stop = memchr(p, '\0', (size_t)(end - p));
        if (is_whole_word && stop && isdigit((unsigned char)*p) && (size_t)(stop - p) < size)
            memcpy(ret, p, (size_t)(stop - p) + 1);
    }
}

static bool read_content(struct archive *archive, struct gp_module_file *ret)
{
    char buf[OVERLAP + BLOCK];
    size_t kept = 0, total = 0;
    la_ssize_t n = 0;
    while (total < MOST_BYTES && (n = archive_read_data(archive, buf + kept, BLOCK)) > 0) {
        size_t length = kept + (size_t)n;
        if (total == 0 && (length < SELFMAG || memcmp(buf, ELFMAG, SELFMAG) != 0))
            return false;
        total += (size_t)n;
        find_version(buf, length, ret->version, sizeof(ret->version));
        kept = length < OVERLAP ? length : OVERLAP;
        memmove(buf, buf + length - kept, kept);
    }
    ret->is_signed = kept >= SIGNED_LENGTH &&
                     memcmp(buf + kept - SIGNED_LENGTH, signed_mark, SIGNED_LENGTH) == 0;
    return total > 0 && total < MOST_BYTES && n == 0;
}

bool gp_module_file_read(const struct gp_files *files, const char *path, struct gp_module_file *ret)
{
    int fd = gp_files_open_file(files, path);
    struct archive *archive = fd < 0 ? NULL : archive_read_new();
    struct archive_entry *entry;
    struct gp_module_file found = {""};
    bool is_read = archive && archive_read_support_filter_xz(archive) == ARCHIVE_OK &&
                   archive_read_support_filter_zstd(archive) == ARCHIVE_OK &&
                   archive_read_support_filter_gzip(archive) == ARCHIVE_OK &&
                   archive_read_support_format_raw(archive) == ARCHIVE_OK &&
                   archive_read_open_fd(archive, fd, BLOCK) == ARCHIVE_OK &&
                   archive_read_next_header(archive, &entry) == ARCHIVE_OK &&
                   read_content(archive, &found);
    if (archive)
        (void)archive_read_free(archive);
    if (fd >= 0)
        (void)close(fd);
    if (is_read)
        *ret = found;
    return is_read;
}
