/* Libraries that /etc/ld.so.preload loads into every program of a host, and so into the helper with
 * which the container toolkit asks the driver. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/readers/packages.h"

#include <string.h>

static const char list_path[] = "/etc/ld.so.preload";

/* Programs with which the helper is known to fail: NVIDIA/nvidia-container-toolkit#556. */
static const struct {
    const char *mark, *name;
    const char *packages[2]; /* the same with other names */
    const char *without;     /* what is lost without the library */
} known[] = {
    {"AppProtection",
     "Citrix Workspace's App Protection",
     {"icaclient", "ICAClient"},
     "sessions that require App Protection then refuse to start"},
};

static const char failed[] = "container.driver-rpc";

/* The first library in the list of ld.so(8) that is there and whose path has a word ("": any); ""
 * otherwise. Spaces and colons separate them, and comments begin at '#'. One that is missing is
 * left out by the loader. */
static const char *find_library(struct gp_exam *exam, const char *word)
{
    static const char between[] = " \t\n:", around[] = " \t\n:#";
    const char *text = gp_files_text(&exam->files, &exam->arena, list_path, 1 << 12, NULL);
    const char *at = text ? text : "";
    for (at += strspn(at, between); *at; at += strspn(at, between)) {
        const size_t n = strcspn(at, around);
        const char *path = gp_exam_text(exam, "%.*s", (int)n, at);
        if (path[0] == '/' && strstr(path, word) && gp_files_exist(&exam->files, path))
            return path;
        at += at[n] == '#' ? strcspn(at, "\n") : n;
    }
    return "";
}

bool gp_container_has_preload(struct gp_exam *exam)
{
    return gp_container_is_host(exam) && gp_container_has_toolkit(exam) &&
           find_library(exam, "")[0];
}

static void propose_removal(struct gp_exam *exam, size_t i, bool is_logged)
{
    const bool is_apt = gp_machine_has_apt(&exam->machine);
    gp_exam_command(
        exam,
        gp_exam_text(exam, "%swithout %s; %s; the original file is kept next to it",
                     is_logged ? "" : "if containers fail with that error: ", known[i].name,
                     known[i].without),
        "sudo sed -i.before 's/[^[:space:]:]*%s[^[:space:]:]*//g' %s", known[i].mark, list_path);
    for (size_t p = 0; p < GP_ARRAY_LEN(known[i].packages) && is_apt; p++)
        if (gp_packages_installed(&exam->files, &exam->arena, known[i].packages[p]))
            gp_exam_command(exam, "or without the whole program, if that is not enough",
                            "sudo apt purge %s", known[i].packages[p]);
    if (!is_apt)
        gp_exam_advice(exam, "or, if that is not enough, remove the package %s",
                       known[i].packages[0]);
}

/* Other libraries are only suspected: most do no harm. */
void gp_container_check_preload(struct gp_exam *exam)
{
    const char *path = "";
    const bool is_logged = gp_log_find_known(exam, failed);
    size_t i = 0;
    while (i < GP_ARRAY_LEN(known) && !(path = find_library(exam, known[i].mark))[0])
        i++;
    const bool is_known = i < GP_ARRAY_LEN(known);
    if (!is_known)
        path = find_library(exam, "");
    if (!is_known && !is_logged)
        return;
    gp_exam_report(exam, is_known && is_logged ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s is loaded into every program, also into the container toolkit's, which %s",
                   is_known ? known[i].name : path,
                   is_logged ? "cannot ask the driver" : "may then be unable to ask the driver");
    if (is_known && is_logged)
        gp_log_show_known(exam, gp_log_known_of(exam, failed));
    gp_exam_evidence(exam, list_path, "%s", path);
    gp_exam_why(exam, "A library that hooks calls can break the helper process with which "
                      "nvidia-container-cli asks the driver: \"driver rpc error: failed to process "
                      "request\", though nvidia-smi works.");
    if (is_known) {
        propose_removal(exam, i, is_logged);
        gp_exam_link(exam, "https://github.com/NVIDIA/nvidia-container-toolkit/issues/556");
    } else {
        gp_exam_advice(exam, "if the host's nvidia-smi works: find out what has added the library, "
                             "and start a container without it");
    }
}
