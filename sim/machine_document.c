#include "sim/machine_document.h"

#include "base/cli.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sim_doc_fail(struct sim_loader *l, const char *fmt, ...)
{
    char text[240];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return gp_err_set(l->err, GP_EFORMAT, "%s: %s: %s", l->file, l->path[0] ? l->path : "document",
                      text);
}

size_t sim_doc_enter(struct sim_loader *l, const char *key)
{
    size_t len = strlen(l->path);
    (void)snprintf(l->path + len, sizeof(l->path) - len, "%s%s", len ? "." : "", key);
    return len;
}

size_t sim_doc_enter_index(struct sim_loader *l, size_t index)
{
    size_t len = strlen(l->path);
    (void)snprintf(l->path + len, sizeof(l->path) - len, "[%zu]", index);
    return len;
}

void sim_doc_leave(struct sim_loader *l, size_t len)
{
    l->path[len] = '\0';
}

const char *sim_doc_next_name(const void *ctx, size_t i)
{
    return ((const char *const *)ctx)[i];
}

int sim_doc_check_keys(struct sim_loader *l, json_t *object, const char *const *known)
{
    if (!json_is_object(object))
        return sim_doc_fail(l, "expected an object");
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (known[i])
            continue;
        const char *near = gp_cli_nearest(key, sim_doc_next_name, known);
        return sim_doc_fail(l, "unknown key '%.60s'%s%s%s", key, near ? " (did you mean '" : "",
                            near ? near : "", near ? "'?)" : "");
    }
    return GP_OK;
}

int sim_doc_text(struct sim_loader *l, json_t *object, const char *key, bool required,
                 const char **ret)
{
    json_t *value = json_object_get(object, key);
    if (!value && !required)
        return GP_OK;
    size_t at = sim_doc_enter(l, key);
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return sim_doc_fail(l, value ? "expected a string" : "is missing; expected a string");
    *ret = gp_arena_strdup(&l->machine->arena, json_string_value(value));
    sim_doc_leave(l, at);
    return *ret ? GP_OK : gp_err_set(l->err, GP_ENOMEM, "out of memory");
}

int sim_doc_number(struct sim_loader *l, json_t *object, const char *key, uint64_t max,
                   bool required, uint64_t *ret)
{
    json_t *value = json_object_get(object, key);
    if (!value && !required)
        return GP_OK;
    size_t at = sim_doc_enter(l, key);
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number > max)
        return sim_doc_fail(l, "%sexpected a number from 0 to %" PRIu64,
                            value ? "" : "is missing; ", max);
    *ret = (uint64_t)number;
    sim_doc_leave(l, at);
    return GP_OK;
}

int sim_doc_array(struct sim_loader *l, json_t *object, const char *key, size_t max, json_t **ret)
{
    *ret = json_object_get(object, key);
    size_t at = sim_doc_enter(l, key);
    if (*ret && (!json_is_array(*ret) || json_array_size(*ret) > max))
        return sim_doc_fail(l, "expected an array of at most %zu entries", max);
    sim_doc_leave(l, at);
    return GP_OK;
}

void *sim_doc_alloc(struct sim_loader *l, size_t count, size_t size)
{
    return gp_arena_alloc(&l->machine->arena, count ? count : 1, size);
}

int sim_doc_no_memory(struct sim_loader *l)
{
    return gp_err_set(l->err, GP_ENOMEM, "out of memory");
}
