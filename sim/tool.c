#include "sim/tool.h"

#include "base/err.h"
#include "base/outfile.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int sim_tool_home(char home[GP_PATH_SIZE], struct gp_err *err)
{
    int r = gp_io_own_program(home, err);
    if (r < 0)
        return r;
    *strrchr(home, '/') = '\0';
    return GP_OK;
}

int sim_tool_open(const char *machine_option, const char **ret_spec,
                  struct sim_machine **ret_machine, struct sim_state **ret_state,
                  struct gp_err *err)
{
    char home[GP_PATH_SIZE];
    const char *spec = machine_option ? machine_option : getenv("GPULSE_SIM");
    if (!spec || !*spec)
        return gp_err_set(err, GP_EUSAGE, "no machine given; use -m, for example -m h100x8");
    int result = sim_tool_home(home, err);
    if (result == GP_OK)
        result = sim_machine_open(spec, home, ret_machine, err);
    if (result == GP_OK && ret_state) {
        result = sim_state_open(spec, ret_state, err);
        if (result < 0) {
            sim_machine_free(*ret_machine);
            *ret_machine = NULL;
        }
    }
    if (result == GP_OK)
        *ret_spec = spec;
    return result;
}

static int write_text(const char *path, const char *text, struct gp_err *err)
{
    struct gp_err why = {0};
    struct stat st;
    int fd = path ? gp_outfile_create(path, 0, 0644, &why) : STDOUT_FILENO;
    if (fd < 0)
        return gp_err_set(err, why.code, "cannot create '%s': %s", path, why.text);
    bool is_file = path && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    int r = is_file && ftruncate(fd, 0) != 0 ? -errno : 0;
    if (r == 0)
        r = gp_io_write_all(fd, text, strlen(text));
    if (r == 0)
        r = gp_io_write_all(fd, "\n", 1);
    if (path && close(fd) < 0 && r == 0)
        r = -errno;
    if (r < 0)
        return gp_err_system(err, -r, GP_EIO, "cannot write %s", path ? path : "the machine");
    return GP_OK;
}

int sim_tool_write_json(const char *path, const json_t *json, struct gp_err *err)
{
    char *text = json_dumps(json, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    int result = text ? write_text(path, text, err) : gp_err_set(err, GP_ENOMEM, "out of memory");
    free(text);
    return result;
}

int sim_tool_print(struct gp_strbuf *sb, struct gp_err *err)
{
    int r = sb->error ? -ENOMEM : gp_io_write_all(STDOUT_FILENO, sb->buf, sb->len);
    gp_strbuf_fini(sb);
    return r < 0 ? gp_err_system(err, -r, GP_EIO, "cannot write the output") : GP_OK;
}
