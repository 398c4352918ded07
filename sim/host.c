#include "sim/host.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    USERS_MAX = 256,
    PROCESSES_MAX = 4096,
    FILES_MAX = 1024,
    LEASES_MAX = 64,
    TEXT_MAX = 1 << 20,
};

/* The state of loading; `place` is the current key, for errors. */
struct loader {
    struct sim_host *host;
    struct gp_arena *arena;
    struct gp_err *err;
    char place[96];
};

static int fail(const struct loader *l, const char *fmt, ...) GP_PRINTF(2, 3);

static int fail(const struct loader *l, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return gp_err_set(l->err, GP_EFORMAT, "%s%s%s", l->place, l->place[0] ? ": " : "", text);
}

static int no_memory(const struct loader *l)
{
    return gp_err_set(l->err, GP_ENOMEM, "out of memory");
}

/* ------------------------------------------------------------------------- values */

static bool is_plain(const json_t *json)
{
    const char *text = json_string_value(json);
    return text && strlen(text) == json_string_length(json);
}

static int take_text(const struct loader *l, const char *key, json_t *json, const char **ret)
{
    if (!is_plain(json))
        return fail(l, "%s: expected a string", key);
    *ret = gp_arena_strdup(l->arena, json_string_value(json));
    return *ret ? GP_OK : no_memory(l);
}

static int take_number(const struct loader *l, const char *key, json_t *json, uint64_t *ret)
{
    json_int_t number = json_integer_value(json);
    if (!json_is_integer(json) || number < 0)
        return fail(l, "%s: expected a number from 0 on", key);
    *ret = (uint64_t)number;
    return GP_OK;
}

static int take_words(const struct loader *l, struct gp_strbuf *sb, struct sim_words *ret)
{
    char *text = sb->error ? NULL : gp_arena_alloc(l->arena, sb->len + 1, 1);
    if (text)
        memcpy(text, sb->buf, sb->len);
    *ret = (struct sim_words){text, sb->len};
    gp_strbuf_fini(sb);
    return text ? GP_OK : no_memory(l);
}

/* An array of strings, each followed by `end` in *ret. */
static int take_list(const struct loader *l, const char *key, json_t *json, char end,
                     struct sim_words *ret)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    size_t i;
    json_t *entry;
    bool ok = json_array_size(json) > 0;
    json_array_foreach(json, i, entry)
    {
        ok = ok && is_plain(entry);
        if (ok)
            gp_strbuf_adds(&sb, json_string_value(entry));
        gp_strbuf_addc(&sb, end);
    }
    if (ok)
        return take_words(l, &sb, ret);
    gp_strbuf_fini(&sb);
    return fail(l, "%s: expected an array of strings", key);
}

static int take_environment(const struct loader *l, const char *key, json_t *json,
                            struct sim_words *ret)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    const char *name;
    json_t *value;
    bool ok = json_is_object(json);
    json_object_foreach(json, name, value)
    {
        ok = ok && is_plain(value);
        if (ok)
            gp_strbuf_addf(&sb, "%s=%s", name, json_string_value(value));
        gp_strbuf_addc(&sb, '\0');
    }
    if (ok)
        return take_words(l, &sb, ret);
    gp_strbuf_fini(&sb);
    return fail(l, "%s: expected an object of strings", key);
}

static int take_user(const struct loader *l, const char *key, json_t *json, uint64_t *ret)
{
    const char *name = json_string_value(json);
    for (size_t i = 0; name && i < l->host->user_count; i++)
        if (strcmp(l->host->users[i].name, name) == 0) {
            *ret = l->host->users[i].uid;
            return GP_OK;
        }
    return fail(l, "%s: expected the name of one of the users", key);
}

static int take_gpus(const struct loader *l, const char *key, json_t *json, uint64_t *ret)
{
    size_t i;
    json_t *entry;
    bool ok = json_array_size(json) > 0;
    json_array_foreach(json, i, entry)
    {
        json_int_t gpu = json_is_integer(entry) ? json_integer_value(entry) : SIM_HOST_GPUS;
        ok = ok && gpu >= 0 && gpu < SIM_HOST_GPUS;
        *ret |= ok ? UINT64_C(1) << gpu : 0;
    }
    return ok ? GP_OK : fail(l, "%s: expected numbers from 0 to %d", key, SIM_HOST_GPUS - 1);
}

/* ------------------------------------------------------------------------- objects */

enum kind { TEXT, NUMBER, COMMAND, ENVIRONMENT, USER, GPUS };

struct member {
    const char *key;
    enum kind kind;
    void *ret; /* of the type that the kind has */
    bool required;
};

static int take_member(const struct loader *l, const struct member *member, json_t *json)
{
    switch (member->kind) {
    case TEXT:
        return take_text(l, member->key, json, member->ret);
    case NUMBER:
        return take_number(l, member->key, json, member->ret);
    case COMMAND:
        return take_list(l, member->key, json, '\0', member->ret);
    case ENVIRONMENT:
        return take_environment(l, member->key, json, member->ret);
    case USER:
        return take_user(l, member->key, json, member->ret);
    case GPUS:
        return take_gpus(l, member->key, json, member->ret);
    }
    return GP_OK;
}

/* Takes the members of an object; `lists` are keys that the caller takes (NULL-terminated). */
static int take_object(const struct loader *l, json_t *json, const struct member *members,
                       size_t count, const char *const *lists)
{
    const char *key;
    json_t *value;
    if (!json_is_object(json))
        return fail(l, "expected an object");
    json_object_foreach(json, key, value)
    {
        size_t i = 0, k = 0;
        while (i < count && strcmp(members[i].key, key) != 0)
            i++;
        while (lists[k] && strcmp(lists[k], key) != 0)
            k++;
        if (i == count && !lists[k])
            return fail(l, "unknown key '%.60s'", key);
        int r = i < count ? take_member(l, &members[i], value) : GP_OK;
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++)
        if (members[i].required && !json_object_get(json, members[i].key))
            return fail(l, "%s: is missing", members[i].key);
    return GP_OK;
}

static const char *const no_lists[] = {NULL};

/* The name of the program in its first argument. */
static const char *program_of(const struct sim_words *command)
{
    const char *slash = command->size ? strrchr(command->text, '/') : NULL;
    return slash ? slash + 1 : command->text;
}

static int load_process(struct loader *l, size_t index, json_t *json)
{
    struct sim_host_process *p = &l->host->processes[index];
    *p =
        (struct sim_host_process){.ppid = 1, .cwd = "/", .cgroup = "/", .state = "S", .threads = 1};
    const struct member members[] = {
        {"pid", NUMBER, &p->pid, true},
        {"ppid", NUMBER, &p->ppid, false},
        {"group", NUMBER, &p->group, false},
        {"ns_pid", NUMBER, &p->ns_pid, false},
        {"user", USER, &p->uid, true},
        {"command", COMMAND, &p->command, true},
        {"environment", ENVIRONMENT, &p->environment, false},
        {"cwd", TEXT, &p->cwd, false},
        {"cgroup", TEXT, &p->cgroup, false},
        {"state", TEXT, &p->state, false},
        {"age_s", NUMBER, &p->age_s, false},
        {"cpu", NUMBER, &p->cpu_pct, false},
        {"rss_bytes", NUMBER, &p->rss_bytes, false},
        {"threads", NUMBER, &p->threads, false},
    };
    int r = take_object(l, json, members, GP_ARRAY_LEN(members), no_lists);
    if (r < 0)
        return r;
    if (p->pid == 0 || p->pid > INT32_MAX || p->ppid > INT32_MAX)
        return fail(l, "pid: expected a number from 1 to %d", INT32_MAX);
    if (!strchr("RSDZTtI", p->state[0]) || strlen(p->state) != 1)
        return fail(l, "state: expected R, S, D, Z, T, t or I");
    p->group = p->group ? p->group : p->pid;
    p->ns_pid = p->ns_pid ? p->ns_pid : p->pid;
    p->name = program_of(&p->command);
    return GP_OK;
}

static int load_lease(struct loader *l, size_t index, json_t *json)
{
    struct sim_host_lease *lease = &l->host->leases[index];
    *lease = (struct sim_host_lease){.name = "", .command = ""};
    const struct member members[] = {
        {"user", USER, &lease->uid, true},        {"pid", NUMBER, &lease->pid, true},
        {"gpus", GPUS, &lease->gpus, true},       {"age_s", NUMBER, &lease->age_s, false},
        {"limit_s", NUMBER, &lease->limit_s, false},
        {"bytes", NUMBER, &lease->bytes, false},  {"waits_for", NUMBER, &lease->waits_for, false},
        {"command", TEXT, &lease->command, true}, {"name", TEXT, &lease->name, false},
    };
    return take_object(l, json, members, GP_ARRAY_LEN(members), no_lists);
}

static int load_array(struct loader *l, json_t *root, const char *key, size_t max, size_t size,
                      void *ret, size_t *ret_count,
                      int (*load)(struct loader *l, size_t index, json_t *json))
{
    json_t *array = json_object_get(root, key);
    size_t count = json_array_size(array);
    if (array && (!json_is_array(array) || count > max))
        return fail(l, "%s: expected an array of at most %zu entries", key, max);
    void *items = gp_arena_alloc(l->arena, count + 1, size);
    if (!items)
        return no_memory(l);
    memcpy(ret, &items, sizeof(items));
    for (*ret_count = 0; *ret_count < count; ++*ret_count) {
        (void)snprintf(l->place, sizeof(l->place), "%s[%zu]", key, *ret_count);
        int r = load(l, *ret_count, json_array_get(array, *ret_count));
        if (r < 0)
            return r;
    }
    l->place[0] = '\0';
    return GP_OK;
}

static int load_users(struct loader *l, json_t *json)
{
    const char *name;
    json_t *uid;
    int r = GP_OK;
    if (json && (!json_is_object(json) || json_object_size(json) > USERS_MAX))
        return fail(l, "users: expected an object of at most %d numbers", USERS_MAX);
    l->host->users = gp_arena_alloc(l->arena, json_object_size(json) + 1, sizeof(*l->host->users));
    if (!l->host->users)
        return no_memory(l);
    l->host->users[l->host->user_count++] = (struct sim_host_user){"root", 0};
    (void)snprintf(l->place, sizeof(l->place), "users");
    json_object_foreach(json, name, uid)
    {
        struct sim_host_user *user = &l->host->users[l->host->user_count++];
        user->name = gp_arena_strdup(l->arena, name);
        r = user->name ? take_number(l, name, uid, &user->uid) : no_memory(l);
        if (r < 0)
            return r;
    }
    l->place[0] = '\0';
    return GP_OK;
}

static int load_files(struct loader *l, json_t *json)
{
    const char *path;
    json_t *text;
    if (json && (!json_is_object(json) || json_object_size(json) > FILES_MAX))
        return fail(l, "files: expected an object of at most %d texts", FILES_MAX);
    l->host->files = gp_arena_alloc(l->arena, json_object_size(json) + 1, sizeof(*l->host->files));
    if (!l->host->files)
        return no_memory(l);
    (void)snprintf(l->place, sizeof(l->place), "files");
    json_object_foreach(json, path, text)
    {
        struct sim_host_file *file = &l->host->files[l->host->file_count++];
        struct sim_words lines = {NULL, 0};
        int r = json_is_array(text) ? take_list(l, path, text, '\n', &lines)
                                    : take_text(l, path, text, &lines.text);
        if (r == GP_OK && (path[0] != '/' || strstr(path, "..")))
            r = fail(l, "'%.60s': expected an absolute path", path);
        if (r < 0)
            return r;
        *file = (struct sim_host_file){gp_arena_strdup(l->arena, path), lines.text};
        if (!file->path)
            return no_memory(l);
    }
    l->place[0] = '\0';
    return GP_OK;
}

int sim_host_load(json_t *json, struct gp_arena *arena, struct sim_host *ret, struct gp_err *err)
{
    static const char *const lists[] = {"users", "processes", "files", "leases", NULL};
    struct loader l = {.host = ret, .arena = arena, .err = err};
    const struct member members[] = {
        {"name", TEXT, &ret->name, true},
        {"cpus", NUMBER, &ret->cpus, true},
        {"cpu", NUMBER, &ret->cpu_pct, false},
        {"memory_bytes", NUMBER, &ret->memory_bytes, true},
        {"memory_used_bytes", NUMBER, &ret->memory_used_bytes, false},
        {"swap_bytes", NUMBER, &ret->swap_bytes, false},
        {"uptime_s", NUMBER, &ret->uptime_s, true},
    };
    if (!json)
        return GP_OK;
    int r = take_object(&l, json, members, GP_ARRAY_LEN(members), lists);
    if (r == GP_OK && (ret->cpus == 0 || ret->cpus > 4096))
        r = fail(&l, "cpus: expected a number from 1 to 4096");
    if (r == GP_OK)
        r = load_users(&l, json_object_get(json, "users"));
    if (r == GP_OK)
        r = load_array(&l, json, "processes", PROCESSES_MAX, sizeof(*ret->processes),
                       &ret->processes, &ret->process_count, load_process);
    if (r == GP_OK)
        r = load_array(&l, json, "leases", LEASES_MAX, sizeof(*ret->leases), &ret->leases,
                       &ret->lease_count, load_lease);
    if (r == GP_OK)
        r = load_files(&l, json_object_get(json, "files"));
    return r;
}

const struct sim_host_process *sim_host_find(const struct sim_host *host, unsigned int pid)
{
    for (size_t i = 0; i < host->process_count; i++)
        if (host->processes[i].pid == pid)
            return &host->processes[i];
    return NULL;
}
