#include "sample/settings_file.h"

#include "base/err.h"
#include "base/outfile.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { GPUS_MAX = 1024, FILE_BYTES_MAX = 16 << 20 };

#define SCHEMA "gpulse.settings/1"

static int load(const char *path, json_t **ret, struct gp_err *err)
{
    json_error_t where;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    struct stat st;
    if (!file)
        return gp_err_system(err, errno, GP_EIO, "cannot read '%s'", path);
    int r = 0;
    if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > FILE_BYTES_MAX)
        r = gp_err_set(err, GP_EFORMAT, "'%s' is too large for a settings file", path);
    *ret = r == 0 ? json_loadf(file, JSON_REJECT_DUPLICATES, &where) : NULL;
    if (r == 0 && !*ret)
        r = gp_err_set(err, GP_EFORMAT, "%s:%d: %s", path, where.line, where.text);
    if (file != stdin)
        (void)fclose(file);
    return r;
}

/* The value in the form in which it is typed. */
static const char *word_of(const json_t *value, char word[32])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        (void)snprintf(word, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        (void)snprintf(word, 32, "%.12g", json_real_value(value)); /* 100 of 100.0 */
    return word;
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
        char word[32];
        if (gp_control_find(name, strlen(name), &id, &why) < 0)
            return gp_err_set(err, GP_EFORMAT, "%s: %s: %s", path, gpu->uuid, why.text);
        if (gp_control_table[id].kind == GP_CONTROL_CLEAR)
            return gp_err_set(err, GP_EFORMAT, "%s: %s: %s is not a setting", path, gpu->uuid,
                              name);
        if (!json_is_string(value) && !json_is_number(value))
            return gp_err_set(err, GP_EFORMAT, "%s: %s: %s: expected a text or a number", path,
                              gpu->uuid, name);
        if (gp_control_parse(id, word_of(value, word), &gpu->values[id], &why) < 0)
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
                          "'%s' is not a settings file; gpulse set --save FILE writes one", path);
    if (strcmp(schema, SCHEMA) != 0)
        return gp_err_set(err, GP_EFORMAT, "'%s' was written by a newer gpulse (%.40s)", path,
                          schema);
    if (!json_is_array(gpus))
        return gp_err_set(err, GP_EFORMAT, "%s: expected an array \"gpus\"", path);
    if (json_array_size(gpus) > GPUS_MAX)
        return gp_err_set(err, GP_EFORMAT, "%s: at most %d GPUs", path, GPUS_MAX);
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

/* Whether it is a regular file to be replaced as a whole, or does not exist. A device is written
 * directly, and so is a link to a file that does not exist: there is nothing to keep intact. */
static bool is_replaced(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? S_ISREG(st.st_mode) : lstat(path, &st) != 0;
}

/* A link leads to the file that is replaced. */
int gp_saved_write(const char *path, const struct gp_strbuf *text, struct gp_err *err)
{
    char real[GP_PATH_SIZE];
    const struct gp_outfile_config config = {.path = real};
    int r = gp_outfile_resolve(path, real, err);
    if (r < 0)
        return r;
    if (is_replaced(config.path)) {
        r = gp_outfile_replace(config.path, 0666, text->buf, text->len, true, err);
    } else {
        struct gp_outfile f;
        r = gp_outfile_open(&f, &config, err);
        if (r == 0)
            r = gp_outfile_write(&f, text->buf, text->len, err);
        int c = gp_outfile_close(&f, r < 0 ? NULL : err);
        r = r < 0 ? r : c;
    }
    return r;
}
