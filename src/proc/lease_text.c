#include "proc/lease_text.h"

#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* By state; "new.ID" is being written. The file of one state exists until that of the next one
 * does. Listing a folder is one system call, so a reader sees a request in at least one state. */
static const char *const prefixes[] = {
    [GP_LEASE_WAITING] = "wait.", [GP_LEASE_CLAIMED] = "claim.", [GP_LEASE_HELD] = "held."};
static const char fresh_prefix[] = "new.";

static bool parse_id(const char *digits, uint64_t *ret)
{
    char *end;
    *ret = strtoull(digits, &end, 16);
    return strspn(digits, "0123456789abcdef") == 16 && *end == '\0';
}

static void put_name(char ret[GP_LEASE_NAME_SIZE], const char *prefix, uint64_t id)
{
    (void)snprintf(ret, GP_LEASE_NAME_SIZE, "%s%016" PRIx64, prefix, id);
}

void gp_lease_make_name(char ret[GP_LEASE_NAME_SIZE], enum gp_lease_state state, uint64_t id)
{
    put_name(ret, prefixes[state], id);
}

void gp_lease_make_fresh_name(char ret[GP_LEASE_NAME_SIZE], uint64_t id)
{
    put_name(ret, fresh_prefix, id);
}

bool gp_lease_is_fresh_name(const char *name)
{
    return strncmp(name, fresh_prefix, strlen(fresh_prefix)) == 0;
}

bool gp_lease_parse_name(const char *name, struct gp_lease *ret)
{
    for (int i = GP_LEASE_WAITING; i <= GP_LEASE_HELD; i++) {
        size_t n = strlen(prefixes[i]);
        ret->state = (enum gp_lease_state)i;
        if (strncmp(name, prefixes[i], n) == 0)
            return parse_id(name + n, &ret->id);
    }
    return false;
}

/* ---- the content ---- */

/* Lines "key value"; a value is one line of safe text. */
void gp_lease_add_text(struct gp_strbuf *sb, const struct gp_lease *lease)
{
    gp_strbuf_addf(sb, "gpulse-lease 2\nsince %" PRIu64 "\npid %" PRIu32 "\nns %" PRIu64,
                   lease->since_wall_ns, lease->pid, lease->ns);
    gp_strbuf_addf(sb, "\nshared %d\nbytes %" PRIu64 "\nlimit %" PRIu64 "\nwanted %u\nname ",
                   (int)lease->is_shared, lease->bytes, lease->limit_ns, lease->wanted);
    gp_utf8_add_safe(sb, lease->name, strlen(lease->name), sizeof(lease->name) - 1);
    gp_strbuf_adds(sb, "\ncommand ");
    gp_utf8_add_safe(sb, lease->command, strlen(lease->command), sizeof(lease->command) - 1);
    for (size_t i = 0; i < lease->gpu_count; i++)
        gp_strbuf_addf(sb, "\ngpu %s", lease->gpus[i]);
    gp_strbuf_addc(sb, '\n');
}

/* Unknown keys of a later version are ignored. */
static bool parse_line(const char *key, const char *value, struct gp_lease *lease)
{
    uint64_t pid = lease->pid;
    uint64_t shared = lease->is_shared;
    uint64_t wanted = lease->wanted;
    const struct {
        const char *key;
        uint64_t most, *ret;
    } numbers[] = {
        {"since", UINT64_MAX, &lease->since_wall_ns},
        {"ns", UINT64_MAX, &lease->ns},
        {"bytes", INT64_MAX, &lease->bytes},
        {"limit", UINT64_MAX, &lease->limit_ns},
        {"pid", INT32_MAX, &pid},
        {"shared", 1, &shared},
        {"wanted", GP_LEASE_GPUS, &wanted},
    };
    const struct {
        const char *key;
        char *ret;
        size_t size;
    } texts[] = {{"name", lease->name, sizeof(lease->name)},
                 {"command", lease->command, sizeof(lease->command)}};
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        if (strcmp(key, numbers[i].key) == 0) {
            bool ok = gp_parse_u64(value, numbers[i].ret) && *numbers[i].ret <= numbers[i].most;
            lease->pid = ok ? (uint32_t)pid : lease->pid;
            lease->is_shared = ok ? shared != 0 : lease->is_shared;
            lease->wanted = ok ? (unsigned)wanted : lease->wanted;
            return ok;
        }
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (strcmp(key, texts[i].key) == 0)
            gp_utf8_copy_safe(texts[i].ret, texts[i].size, value);
    if (strcmp(key, "gpu") != 0)
        return true;
    if (lease->gpu_count == GP_LEASE_GPUS || strlen(value) >= GP_LEASE_UUID_SIZE)
        return false;
    gp_utf8_copy_safe(lease->gpus[lease->gpu_count++], GP_LEASE_UUID_SIZE, value);
    return true;
}

bool gp_lease_parse_text(char *text, struct gp_lease *lease)
{
    char *rest = text;
    char *line = strsep(&rest, "\n");
    bool ok = strcmp(line, "gpulse-lease 2") == 0;
    while ((line = strsep(&rest, "\n"))) {
        char *value = line;
        const char *key = strsep(&value, " ");
        if (*line)
            ok = value && parse_line(key, value, lease) && ok;
    }
    if (ok)
        return lease->pid > 0;
    lease->is_shared = false;
    return lease->gpu_count > 0;
}
