#include "cmd/set_file.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "cmd/app.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GPUS_MAX = 1024, FILE_BYTES_MAX = 16 << 20 };

#define SCHEMA "gpulse.settings/1"

static int load(const char *path, json_t **ret, struct gp_err *err)
{
    json_error_t where;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    struct stat st;
    if (!file)
        return gp_err_set(err, GP_EIO, "cannot read '%s': %s", path, strerror(errno));
    int r = 0;
    if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > FILE_BYTES_MAX)
        r = gp_err_set(err, GP_EFORMAT, "'%s' is too large for a file of settings", path);
    *ret = r == 0 ? json_loadf(file, JSON_REJECT_DUPLICATES, &where) : NULL;
    if (r == 0 && !*ret)
        r = gp_err_set(err, GP_EFORMAT, "%s:%d: %s", path, where.line, where.text);
    if (file != stdin)
        (void)fclose(file);
    return r;
}

static int read_settings(const char *path, json_t *settings, struct gp_saved_gpu *gpu,
                         struct gp_err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(settings, name, value)
    {
        enum gp_control_id id;
        struct gp_err why = {0};
        if (gp_control_find(name, strlen(name), &id, &why) < 0)
            return gp_err_set(err, GP_EFORMAT, "%s: %s: %s", path, gpu->uuid, why.text);
        if (gp_control_table[id].kind == GP_CONTROL_CLEAR)
            return gp_err_set(err, GP_EFORMAT, "%s: %s: %s is no setting", path, gpu->uuid, name);
        if (!json_is_string(value))
            return gp_err_set(err, GP_EFORMAT, "%s: %s: %s: expected a string", path, gpu->uuid,
                              name);
        if (gp_control_parse(id, json_string_value(value), &gpu->values[id], &why) < 0)
            return gp_err_set(err, GP_EFORMAT, "%s: %s: %s", path, gpu->uuid, why.text);
        gpu->has[id] = true;
    }
    return 0;
}

static int read_gpu(const char *path, json_t *json, struct gp_saved_gpu *gpu, struct gp_err *err)
{
    const char *uuid = json_string_value(json_object_get(json, "uuid"));
    const char *name = json_string_value(json_object_get(json, "name"));
    json_t *settings = json_object_get(json, "settings");
    if (!uuid || !*uuid || strlen(uuid) >= sizeof(gpu->uuid) || !json_is_object(settings))
        return gp_err_set(err, GP_EFORMAT, "%s: a GPU needs a \"uuid\" and \"settings\"", path);
    struct gp_strbuf safe = GP_STRBUF_INIT(sizeof(gpu->name) - 1);
    gp_utf8_add_safe(&safe, uuid, strlen(uuid), sizeof(gpu->uuid) - 1);
    (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", safe.buf);
    gp_strbuf_reset(&safe);
    if (name)
        gp_utf8_add_safe(&safe, name, strlen(name), sizeof(gpu->name) - 1);
    (void)snprintf(gpu->name, sizeof(gpu->name), "%s", safe.buf);
    gp_strbuf_fini(&safe);
    return read_settings(path, settings, gpu, err);
}

static int read_document(const char *path, json_t *document, struct gp_saved *ret,
                         struct gp_err *err)
{
    const char *schema = json_string_value(json_object_get(document, "schema"));
    json_t *gpus = json_object_get(document, "gpus");
    if (!schema || strncmp(schema, "gpulse.settings/", 16) != 0)
        return gp_err_set(err, GP_EFORMAT,
                          "'%s' is no file of settings; gpulse set --save FILE writes one", path);
    if (strcmp(schema, SCHEMA) != 0)
        return gp_err_set(err, GP_EFORMAT, "'%s' was written by a newer gpulse (%.40s)", path,
                          schema);
    if (!json_is_array(gpus) || json_array_size(gpus) > GPUS_MAX)
        return gp_err_set(err, GP_EFORMAT, "%s: expected an array \"gpus\"", path);
    ret->gpus = calloc(json_array_size(gpus) + 1, sizeof(*ret->gpus));
    if (!ret->gpus)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = 0;
    for (; r == 0 && ret->count < json_array_size(gpus); ret->count++)
        r = read_gpu(path, json_array_get(gpus, ret->count), &ret->gpus[ret->count], err);
    return r;
}

int gp_saved_read(const char *path, struct gp_saved *ret, struct gp_err *err)
{
    struct gp_saved saved = {0};
    json_t *document = NULL;
    int r = load(path, &document, err);
    if (r == 0)
        r = read_document(path, document, &saved, err);
    json_decref(document);
    if (r == 0)
        *ret = saved;
    else
        gp_saved_fini(&saved);
    return r;
}

void gp_saved_fini(struct gp_saved *saved)
{
    free(saved->gpus);
    *saved = (struct gp_saved){0};
}

static int cannot_write(const char *path, int error, struct gp_err *err)
{
    return gp_err_set(err, GP_EIO, "cannot write '%s': %s", path, strerror(error));
}

/* 0 or −errno. */
static int write_file(const char *path, const struct gp_strbuf *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int r = gp_io_write_all(fd, text->buf, text->len);
    if (r == 0 && fsync(fd) != 0 && errno != EINVAL)
        r = -errno;
    if (close(fd) != 0 && r == 0)
        r = -errno;
    return r;
}

int gp_saved_write(const char *path, const struct gp_strbuf *text, struct gp_err *err)
{
    char temporary[GP_PATH_SIZE];
    struct stat st;
    if (strcmp(path, "-") == 0 || text->error)
        return gp_app_write(STDOUT_FILENO, text, err);
    int n = snprintf(temporary, sizeof(temporary), "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return cannot_write(path, ENAMETOOLONG, err);
    /* What is there and no plain file (a device, a link) is not put in the place of. */
    bool in_place = lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
    int r = write_file(in_place ? path : temporary, text);
    if (r == 0 && !in_place && rename(temporary, path) != 0)
        r = -errno;
    if (r < 0 && !in_place)
        (void)unlink(temporary);
    return r < 0 ? cannot_write(path, -r, err) : 0;
}
