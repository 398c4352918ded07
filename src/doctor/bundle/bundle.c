#include "doctor/bundle/bundle.h"

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

/* ---- contents ---- */

static bool has_file(const struct gp_bundle *bundle, const char *name)
{
    for (size_t i = 0; i < bundle->count; i++)
        if (strcmp(bundle->files[i].name, name) == 0)
            return true;
    return false;
}

/* Redacts the name; if the result is already taken, appends a number. */
static void set_name(struct gp_bundle *bundle, struct gp_bundle_file *file, const char *name)
{
    enum { ENDING = 24 };
    struct gp_strbuf shown = GP_STRBUF_INIT(2 * GP_BUNDLE_NAME_SIZE);
    gp_redact_add(&bundle->redactor, &shown, name, strlen(name));
    size_t length =
        shown.len < GP_BUNDLE_NAME_SIZE - ENDING ? shown.len : GP_BUNDLE_NAME_SIZE - ENDING;
    (void)snprintf(file->name, sizeof(file->name), "%.*s", (int)length, shown.buf);
    for (size_t n = 2; has_file(bundle, file->name); n++)
        (void)snprintf(file->name, sizeof(file->name), "%.*s-%zu", (int)length, shown.buf, n);
    gp_strbuf_fini(&shown);
}

/* NULL: out of memory. */
static struct gp_strbuf *new_file(struct gp_bundle *bundle, const char *name)
{
    struct gp_bundle_file *grown =
        realloc(bundle->files, (bundle->count + 1) * sizeof(*bundle->files));
    if (!grown) {
        bundle->error = GP_ENOMEM;
        return NULL;
    }
    bundle->files = grown;
    set_name(bundle, &grown[bundle->count], name);
    struct gp_strbuf *text = &grown[bundle->count++].text;
    gp_strbuf_init(text, FILE_MAX);
    return text;
}

void gp_bundle_add(struct gp_bundle *bundle, const char *name, const char *text, size_t length)
{
    struct gp_strbuf *to = length > 0 ? new_file(bundle, name) : NULL;
    if (length == 0)
        gp_bundle_miss(bundle, name, "it is empty");
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
    struct gp_strbuf safe = GP_STRBUF_INIT(4096);
    gp_utf8_add_safe(&safe, name, strlen(name), SIZE_MAX);
    gp_strbuf_adds(&safe, ": ");
    gp_utf8_add_safe(&safe, why, strlen(why), SIZE_MAX);
    gp_strbuf_adds(&bundle->missing, "  ");
    gp_redact_add(&bundle->redactor, &bundle->missing, safe.buf, safe.len);
    gp_strbuf_addc(&bundle->missing, '\n');
    gp_strbuf_fini(&safe);
}

static void add_count(struct gp_strbuf *sb, const char *kind, size_t count)
{
    if (count > 0)
        gp_strbuf_addf(sb, "  %zu × %s\n", count, kind);
}

void gp_bundle_add_list(const struct gp_bundle *bundle, struct gp_strbuf *sb)
{
    static const char *const kinds[GP_BUNDLE__KINDS] = {
        [GP_BUNDLE_VARIABLES] = "environment variables, values, and directories in them",
        [GP_BUNDLE_PARAMETERS] = "kernel parameters and values",
        [GP_BUNDLE_SETTINGS] = "comments in settings",
        [GP_BUNDLE_LOG_LINES] = "lines, quotations and names in logs",
        [GP_BUNDLE_PACKAGES] = "packages",
    };
    gp_strbuf_adds(sb, "Files:\n");
    for (size_t i = 0; i < bundle->count; i++) {
        const char *name = bundle->files[i].name;
        gp_strbuf_adds(sb, "  ");
        gp_utf8_add_safe(sb, name, strlen(name), SIZE_MAX);
        gp_strbuf_addf(sb, " (%zu bytes)\n", bundle->files[i].text.len);
    }
    if (bundle->missing.len > 0)
        gp_strbuf_addf(sb,
                       "\n"
                       "Not included:\n"
                       "%s",
                       bundle->missing.buf);
    gp_strbuf_adds(sb, "\n"
                       "Removed:\n");
    for (size_t i = 0; i <= GP_REDACT_RULES; i++)
        add_count(sb, gp_redact_kind(i), bundle->redactor.counts[i]);
    for (size_t i = 0; i < GP_BUNDLE__KINDS; i++)
        add_count(sb, kinds[i], bundle->left_out[i]);
}

/* The first file that a reader of the archive sees. */
static void add_contents(struct gp_bundle *bundle)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_strbuf_adds(&sb, "Written by gpulse " GPULSE_VERSION " (gpulse doctor --bundle).\n"
                        "\n"
                        "Names, passwords, addresses, serial numbers and UUIDs were removed. Read "
                        "it before you publish it.\n"
                        "\n");
    gp_bundle_add_list(bundle, &sb);
    gp_bundle_add_as_is(bundle, "contents.txt", sb.buf);
    bundle->error = sb.error ? sb.error : bundle->error;
    gp_strbuf_fini(&sb);
}

int gp_bundle_new(struct gp_bundle **ret, struct gp_err *err)
{
    struct gp_bundle *bundle = calloc(1, sizeof(*bundle));
    if (!bundle)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    gp_strbuf_init(&bundle->missing, 1 << 20);
    *ret = bundle;
    return 0;
}

int gp_bundle_finish(struct gp_bundle *bundle, struct gp_err *err)
{
    add_contents(bundle);
    int r = bundle->error;
    for (size_t i = 0; r == 0 && i < bundle->count; i++)
        r = bundle->files[i].text.error;
    return r < 0 ? gp_err_set(err, r, "cannot create a bundle: %s", gp_err_text(r)) : 0;
}

void gp_bundle_free(struct gp_bundle *bundle)
{
    for (size_t i = 0; i < bundle->count; i++)
        gp_strbuf_fini(&bundle->files[i].text);
    gp_strbuf_fini(&bundle->missing);
    free(bundle->files);
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
                          "--bundle '%.200s': the name must end in .tar.gz or .tar.zst", path);
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

/* Without the library for a filter, libarchive would run a program: only ARCHIVE_OK is acceptable.
 */
static int begin_archive(struct archive *archive, const char *path, struct gp_strbuf *sb)
{
    if (archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
        filter_of(path)(archive) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
#if ARCHIVE_VERSION_NUMBER >= 3006000 /* its header marks the older function as deprecated */
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

/* The contents, added last, come first. */
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
        (void)gp_err_set(err, GP_EIO, "cannot create '%s': %s", path,
                         words ? words : "this libarchive does not support the compression");
    (void)archive_write_free(archive);
    return r == ARCHIVE_OK ? 0 : GP_EIO;
}

/* ---- the file ---- */

static int put(const char *path, const struct gp_strbuf *sb, struct gp_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return gp_err_set(err, GP_EIO, "cannot write '%s': not a regular file", path);
    return gp_outfile_replace(path, 0600, sb->buf, sb->len, true, err);
}

int gp_bundle_write(const struct gp_bundle *bundle, const char *path, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(ARCHIVE_MAX);
    int r = pack(bundle, path, &sb, err);
    if (r == 0)
        r = put(path, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}
