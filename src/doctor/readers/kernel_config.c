#include "doctor/readers/kernel_config.h"

#include "doctor/exam.h"
#include "doctor/readers/install.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 20 };

/* The text of a file, compressed or not; NULL: it cannot be read, or is longer than a
 * configuration.
 */
static const char *read_config(struct gp_exam *exam, const char *path)
{
    int fd = gp_files_open_file(&exam->files, path);
    struct archive *archive = fd < 0 ? NULL : archive_read_new();
    struct archive_entry *entry;
    char *text = archive ? gp_arena_alloc(&exam->arena, 1, MOST) : NULL;
    la_ssize_t n = -1;
    if (text && archive_read_support_filter_gzip(archive) == ARCHIVE_OK &&
        archive_read_support_format_raw(archive) == ARCHIVE_OK &&
        archive_read_open_fd(archive, fd, 1 << 16) == ARCHIVE_OK &&
        archive_read_next_header(archive, &entry) == ARCHIVE_OK)
        n = archive_read_data(archive, text, MOST);
    if (archive)
        (void)archive_read_free(archive);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0 || n == MOST)
        return NULL;
    text[n] = '\0';
    return text;
}

static bool is_set(struct gp_exam *exam, const char *text, const char *option)
{
    return strstr(text, gp_exam_text(exam, "\n%s=", option)) ||
           strncmp(text, gp_exam_text(exam, "%s=", option), strlen(option) + 1) == 0;
}

bool gp_kernel_lacks(struct gp_exam *exam, const char *option, const char *parent,
                     const char **ret_where)
{
    const char *kernel = exam->machine.kernel, *modules = gp_install_of(exam)->modules;
    const char *const paths[] = {"/proc/config.gz", gp_exam_text(exam, "/boot/config-%s", kernel),
                                 gp_exam_text(exam, "%s/%s/config", modules, kernel),
                                 gp_exam_text(exam, "%s/%s/build/.config", modules, kernel)};
    for (size_t i = 0; i < (kernel[0] ? GP_ARRAY_LEN(paths) : 1); i++) {
        const char *text = read_config(exam, paths[i]);
        if (!text)
            continue;
        *ret_where = paths[i];
        return !is_set(exam, text, option) &&
               (is_set(exam, text, parent) ||
                strstr(text, gp_exam_text(exam, "# %s is not set\n", option)));
    }
    return false;
}
