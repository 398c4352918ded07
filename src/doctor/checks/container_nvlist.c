/* Apptainer's and Singularity's list of the driver's libraries that --nv passes through: those of
 * older releases lack what newer drivers have. */
#include "doctor/checks/container.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/searchpath.h"

#include <string.h>

static const char *const lists[] = {
    "/etc/apptainer/nvliblist.conf", "/usr/local/etc/apptainer/nvliblist.conf",
    "/etc/singularity/nvliblist.conf", "/usr/local/etc/singularity/nvliblist.conf", NULL};

static const struct {
    const char *entry, *library;
    const char *use; /* what fails without it in the container */
    const char *link;
} wanted[] = {
    {"libcudadebugger.so", "libcudadebugger.so.1",
     "cuda-gdb finds no back-end (\"Could not find CUDA Debugger back-end\")",
     "https://github.com/apptainer/apptainer/issues/2261"},
    {"libnvidia-nvvm.so", "libnvidia-nvvm.so.4", "OpenCL builds no kernels",
     "https://github.com/apptainer/apptainer/issues/1752"},
};

/* Whether a line has this name, also with a version: "libcuda.so", "libcuda.so.1". */
static bool lists_entry(const char *text, size_t length, const char *entry)
{
    const char *line;
    size_t n, size = strlen(entry);
    struct gp_lines lines = gp_lines_of(text, length);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *at = line, *word;
        size_t k;
        if (gp_lines_word(&at, line + n, &word, &k) && k >= size &&
            strncmp(word, entry, size) == 0 && (k == size || word[size] == '.'))
            return true;
    }
    return false;
}

bool gp_container_has_nvlist(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->nvidia_count > 0 && !m->container && !m->is_wsl && !m->is_jetson &&
           gp_files_first(&exam->files, lists);
}

/* Few programs need them. */
void gp_container_check_nvlist(struct gp_exam *exam)
{
    const char *list = gp_files_first(&exam->files, lists);
    const char *name = strstr(list, "apptainer") ? "Apptainer" : "Singularity";
    size_t length = 0;
    const char *text = gp_files_text(&exam->files, &exam->arena, list, 1 << 16, &length);
    for (size_t i = 0; text && length > 0 && i < GP_ARRAY_LEN(wanted); i++) {
        const char *library = gp_system_library(exam, "", wanted[i].library);
        if (!library || lists_entry(text, length, wanted[i].entry))
            continue;
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "%s's --nv leaves out a library of the driver, %s: its list lacks it", name,
                       wanted[i].library);
        gp_exam_evidence(exam, list, "no %s", wanted[i].entry);
        gp_exam_evidence(exam, library, "present");
        gp_exam_why(exam, "In its containers %s.", wanted[i].use);
        gp_exam_command(exam, "add it to the list",
                        /* a last line without its end would be joined with it */
                        text[length - 1] == '\n' ? "echo %s | sudo tee -a %s"
                                                 : "printf '\\n%%s\\n' %s | sudo tee -a %s",
                        wanted[i].entry, list);
        gp_exam_advice(exam,
                       "or, without the administrator: --nv --bind %s, and its directory in "
                       "the container's LD_LIBRARY_PATH",
                       library);
        gp_exam_link(exam, wanted[i].link);
    }
}
