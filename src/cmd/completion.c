/* gpulse completion: the completion script of a shell, for those that a package has not set up. */
#include "cmd/app.h"
#include "cmd/commands.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"

#include <string.h>
#include <unistd.h>

enum { SCRIPT_BYTES = 64 << 10 };

static const struct {
    const char *shell, *file;
} scripts[] = {
    {"bash", "gpulse.bash"},
    {"zsh", "_gpulse"},
    {"fish", "gpulse.fish"},
};

static int print(const char *file, struct gp_err *err)
{
    static char text[SCRIPT_BYTES];
    char path[GP_PATH_SIZE];
    struct gp_strbuf sb = GP_STRBUF_INIT(SCRIPT_BYTES);
    int r = gp_io_find_companion("data", file, path, err);
    if (r < 0)
        return r;
    long n = gp_io_read(path, text, sizeof(text));
    if (n < 0)
        return gp_err_system(err, (int)-n, GP_EIO, "cannot read '%s'", path);
    gp_strbuf_add(&sb, text, (size_t)n);
    r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int completion_main(int argc, char **argv, struct gp_err *err)
{
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_completion, argc, argv, NULL, &positional, &done, err);
    if (r < 0 || done)
        return r;
    for (size_t i = 0; positional == 1 && i < GP_ARRAY_LEN(scripts); i++)
        if (strcmp(argv[1], scripts[i].shell) == 0)
            return print(scripts[i].file, err);
    return gp_err_set(err, GP_EUSAGE, "expected one of: bash, zsh, fish");
}

const struct gp_cmd gp_cmd_completion = {
    .name = "completion",
    .summary = "print a shell completion script",
    .usage = "{bash|zsh|fish}",
    .description =
        "Packages and make install set up completion. Otherwise, load the output of this command "
        "when the shell starts.",
    .examples = "source <(gpulse completion bash)\tin ~/.bashrc\n"
                "gpulse completion fish | source\tin ~/.config/fish/config.fish\n"
                "gpulse completion zsh > ~/.zfunc/_gpulse\tin a directory of $fpath\n",
    .no_loop = true,
    .run = completion_main,
};
