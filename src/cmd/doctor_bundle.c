#include "cmd/doctor_bundle.h"

#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "base/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20, ARCHIVE_MAX = 256 << 20 };

/* ---- what is in it ---- */

static struct gp_strbuf *new_file(struct gp_bundle *bundle, const char *name)
{
    if (bundle->count == GP_BUNDLE_FILES)
        return NULL;
    struct gp_strbuf shown = GP_STRBUF_INIT(GP_BUNDLE_NAME_SIZE);
    gp_redact_add(&bundle->redactor, &shown, name, strlen(name));
    (void)snprintf(bundle->files[bundle->count].name, GP_BUNDLE_NAME_SIZE, "%s", shown.buf);
    gp_strbuf_fini(&shown);
    struct gp_strbuf *text = &bundle->files[bundle->count++].text;
    gp_strbuf_init(text, FILE_MAX);
    return text;
}

void gp_bundle_add(struct gp_bundle *bundle, const char *name, const char *text, size_t length)
{
    struct gp_strbuf *to = new_file(bundle, name);
    if (to)
        gp_redact_add(&bundle->redactor, to, text, length);
}

void gp_bundle_add_as_is(struct gp_bundle *bundle, const char *name, const char *text)
{
    struct gp_strbuf *to = new_file(bundle, name);
    if (to)
        gp_strbuf_adds(to, text);
}

void gp_bundle_miss(struct gp_bundle *bundle, const char *name, const char *why)
{
    gp_strbuf_adds(&bundle->missing, "  ");
    gp_utf8_add_safe(&bundle->missing, name, strlen(name), SIZE_MAX);
    gp_strbuf_adds(&bundle->missing, ": ");
    gp_redact_add(&bundle->redactor, &bundle->missing, why, strlen(why));
    gp_strbuf_addc(&bundle->missing, '\n');
}

/* What somebody who opens the archive reads first. */
static void add_contents(struct gp_bundle *bundle)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_strbuf_adds(&sb, "gpulse " GPULSE_VERSION ": what gpulse doctor --bundle has written.\n\n"
                        "Names of users and hosts, home folders, serial numbers, UUIDs and network "
                        "addresses\nwere replaced. Look through it all the same before you publish "
                        "it.\n\n"
                        "What is here:\n");
    for (size_t i = 0; i < bundle->count; i++) {
        const char *name = bundle->files[i].name;
        gp_strbuf_adds(&sb, "  ");
        gp_utf8_add_safe(&sb, name, strlen(name), SIZE_MAX);
        gp_strbuf_addf(&sb, " (%zu bytes)\n", bundle->files[i].text.len);
    }
    if (bundle->missing.len > 0)
        gp_strbuf_addf(&sb, "\nWhat is not:\n%s", bundle->missing.buf);
    gp_bundle_add_as_is(bundle, "contents.txt", sb.buf);
    if (sb.error && bundle->count > 0)
        bundle->files[bundle->count - 1].text.error = sb.error;
    gp_strbuf_fini(&sb);
}

static void free_bundle(struct gp_bundle *bundle)
{
    for (size_t i = 0; i < bundle->count; i++)
        gp_strbuf_fini(&bundle->files[i].text);
    gp_strbuf_fini(&bundle->missing);
    free(bundle);
}

/* ---- the archive ---- */

static const struct {
    const char *ending;
    int (*add_filter)(struct archive *archive);
} kinds[] = {
    {".tar.gz", archive_write_add_filter_gzip},
    {".tgz", archive_write_add_filter_gzip},
    {".tar.zst", archive_write_add_filter_zstd},
    {".tzst", archive_write_add_filter_zstd},
};

static int (*filter_of(const char *path))(struct archive *)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        size_t ending = strlen(kinds[i].ending);
        if (n > ending && strcmp(path + n - ending, kinds[i].ending) == 0)
            return kinds[i].add_filter;
    }
    return NULL;
}

int gp_bundle_check(const char *path, struct gp_err *err)
{
    if (!filter_of(path))
        return gp_err_set(err, GP_EUSAGE,
                          "--bundle '%.200s': the name has to end in .tar.gz or .tar.zst", path);
    return 0;
}

static la_ssize_t keep(struct archive *archive, void *ctx, const void *data, size_t length)
{
    struct gp_strbuf *sb = ctx;
    gp_strbuf_add(sb, data, length);
    if (!sb->error)
        return (la_ssize_t)length;
    archive_set_error(archive, ENOMEM, "%s", gp_err_text(sb->error));
    return -1;
}

/* Without the library for a filter, libarchive would call a program: only ARCHIVE_OK is well. */
static int begin_archive(struct archive *archive, const char *path, struct gp_strbuf *sb)
{
    if (archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
        filter_of(path)(archive) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
#if ARCHIVE_VERSION_NUMBER >= 3006000 /* its header calls the older function deprecated */
    return archive_write_open2(archive, sb, NULL, keep, NULL, NULL);
#else
    return archive_write_open(archive, sb, NULL, keep, NULL);
#endif
}

static int add_entry(struct archive *archive, const struct gp_bundle *bundle, size_t i)
{
    const struct gp_strbuf *text = &bundle->files[i].text;
    char name[GP_BUNDLE_NAME_SIZE + 32];
    struct archive_entry *entry = archive_entry_new();
    if (!entry)
        return ARCHIVE_FATAL;
    (void)snprintf(name, sizeof(name), "gpulse-doctor/%s", bundle->files[i].name);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_mtime(entry, time(NULL), 0);
    archive_entry_set_size(entry, (la_int64_t)text->len);
    int r = archive_write_header(archive, entry);
    if (r == ARCHIVE_OK && text->len > 0 &&
        archive_write_data(archive, text->buf, text->len) != (la_ssize_t)text->len)
        r = ARCHIVE_FATAL;
    archive_entry_free(entry);
    return r;
}

/* The contents, which were added last, come first. */
static int pack(const struct gp_bundle *bundle, const char *path, struct gp_strbuf *sb,
                struct gp_err *err)
{
    struct archive *archive = archive_write_new();
    int r = archive ? begin_archive(archive, path, sb) : ARCHIVE_FATAL;
    for (size_t i = 0; r == ARCHIVE_OK && i < bundle->count; i++)
        r = add_entry(archive, bundle, (i + bundle->count - 1) % bundle->count);
    if (r == ARCHIVE_OK)
        r = archive_write_close(archive);
    const char *words = archive ? archive_error_string(archive) : NULL;
    if (r != ARCHIVE_OK)
        (void)gp_err_set(err, GP_EIO, "cannot make '%s': %s", path,
                         words ? words : "this libarchive cannot compress so");
    (void)archive_write_free(archive);
    return r == ARCHIVE_OK ? 0 : GP_EIO;
}

/* ---- the file ---- */

static int put(const char *path, const struct gp_strbuf *sb, struct gp_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return gp_err_set(err, GP_EIO, "cannot write '%s': it is no regular file", path);
    return gp_outfile_replace(path, 0600, sb->buf, sb->len, true, err);
}

int gp_bundle_write(const char *path, struct gp_exam *exam, size_t *ret_count, struct gp_err *err)
{
    struct gp_bundle *bundle = calloc(1, sizeof(*bundle));
    struct gp_strbuf sb = GP_STRBUF_INIT(ARCHIVE_MAX);
    if (!bundle)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    gp_strbuf_init(&bundle->missing, 1 << 20);
    gp_bundle_collect(bundle, exam);
    add_contents(bundle);
    int r = 0;
    for (size_t i = 0; r == 0 && i < bundle->count; i++)
        if (bundle->files[i].text.error)
            r = gp_err_set(err, bundle->files[i].text.error, "cannot make '%s': %s: %s", path,
                           bundle->files[i].name, gp_err_text(bundle->files[i].text.error));
    if (r == 0)
        r = pack(bundle, path, &sb, err);
    if (r == 0)
        r = put(path, &sb, err);
    *ret_count = bundle->count;
    gp_strbuf_fini(&sb);
    free_bundle(bundle);
    return r;
}
