#include "jobs/profilers.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>
#include <unistd.h>

static void add_command(struct gp_strbuf *sb, const char *what, const char *profiler,
                        char *const *argv)
{
    gp_strbuf_addf(sb, "    %s: %s", what, profiler);
    for (; *argv; argv++) {
        gp_strbuf_addc(sb, ' ');
        gp_utf8_add_shell_word(sb, *argv);
    }
    gp_strbuf_addc(sb, '\n');
}

/* Whether the driver lets only root read the performance counters, which is its default. */
static bool is_for_root(void)
{
    static const char refused[] = "RmProfilingAdminOnly: 1\n";
    char text[8192];
    return geteuid() != 0 && gp_io_read("/proc/driver/nvidia/params", text, sizeof(text)) > 0 &&
           strstr(text, refused) != NULL;
}

static bool is_python(char *const *argv)
{
    for (int i = 0; i < 4 && argv[i]; i++) {
        const char *slash = strrchr(argv[i], '/');
        const char *name = slash ? slash + 1 : argv[i];
        if (strncmp(name, "python", strlen("python")) == 0 || strcmp(name, "torchrun") == 0)
            return true;
    }
    return false;
}

void gp_profilers_add(struct gp_strbuf *sb, char *const *argv)
{
    gp_strbuf_adds(sb, "  to look deeper, with the profilers of the CUDA toolkit:\n");
    add_command(sb, "each kernel and copy, on one time axis", "nsys profile --trace=cuda,nvtx,osrt",
                argv);
    add_command(sb, "why one kernel is slow", "ncu --set basic --launch-skip 100 --launch-count 10",
                argv);
    if (is_python(argv))
        gp_strbuf_adds(sb, "    which line of PyTorch code: with torch.profiler.profile() as p: …; "
                           "p.export_chrome_trace(\"trace.json\")\n");
    if (is_for_root())
        gp_strbuf_adds(sb, "    ncu needs root here (RmProfilingAdminOnly: 1), or from the next "
                           "boot on: echo 'options nvidia "
                           "NVreg_RestrictProfilingToAdminUsers=0' | sudo tee "
                           "/etc/modprobe.d/nvidia-profiling.conf\n");
}
