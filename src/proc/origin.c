#include "proc/origin.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>

enum { VALUE_COLUMNS = 60 };

/* The value of a variable, "" if it is not set; the first one wins, like in getenv(). */
static const char *find(const char *environment, size_t n, const char *key)
{
    size_t length = strlen(key);
    for (const char *p = environment; p < environment + n;) {
        size_t left = (size_t)(environment + n - p);
        size_t size = strnlen(p, left);
        if (size == left)
            return ""; /* cut in the middle */
        if (size > length && p[length] == '=' && memcmp(p, key, length) == 0)
            return p + length + 1;
        p += size + 1;
    }
    return "";
}

static bool is_number(const char *text)
{
    return *text && strlen(text) < 10 && text[strspn(text, "0123456789")] == '\0';
}

static void add_part(struct gp_strbuf *sb, const char *what, const char *value, size_t n)
{
    gp_strbuf_addf(sb, "%s%s", sb->len > 0 ? ", " : "", what);
    if (n > 0)
        gp_strbuf_addc(sb, ' ');
    gp_utf8_add_safe(sb, value, n, VALUE_COLUMNS);
}

static void add_rank(struct gp_strbuf *sb, const char *environment, size_t n)
{
    static const struct {
        const char *rank, *size;
    } launchers[] = {
        {"RANK", "WORLD_SIZE"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(launchers); i++) {
        const char *rank = find(environment, n, launchers[i].rank);
        const char *size = find(environment, n, launchers[i].size);
        if (!is_number(rank) || !is_number(size) || strcmp(size, "1") == 0)
            continue;
        add_part(sb, "rank", rank, strlen(rank));
        gp_strbuf_addf(sb, "/%s", size);
        return;
    }
}

static void add_notebook(struct gp_strbuf *sb, const char *environment, size_t n)
{
    const char *path = find(environment, n, "JPY_SESSION_NAME");
    const char *name = strrchr(path, '/');
    if (*path)
        add_part(sb, "notebook", name ? name + 1 : path, strlen(name ? name + 1 : path));
    else if (*find(environment, n, "JPY_PARENT_PID"))
        add_part(sb, "notebook", "", 0);
}

void gp_proc_origin(const char *environment, size_t n, char ret[GP_PROC_ORIGIN_SIZE])
{
    static const struct {
        const char *key, *what;
    } others[] = {
        {"RAY_JOB_ID", "ray"},
        {"TMUX_PANE", "tmux"},
        {"STY", "screen"},
        {"SSH_CONNECTION", "ssh"}, /* "address port address port" */
    };
    struct gp_strbuf sb = {.buf = ret, .cap = GP_PROC_ORIGIN_SIZE, .max = GP_PROC_ORIGIN_SIZE - 1};
    ret[0] = '\0';
    add_rank(&sb, environment, n);
    add_notebook(&sb, environment, n);
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++) {
        const char *value = find(environment, n, others[i].key);
        size_t length = strcspn(value, " ");
        if (length > 0)
            add_part(&sb, others[i].what, value, length);
    }
}
