/* Sections of containerd's configuration, whose names depend on the version of its format. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/version.h"

#include <ctype.h>
#include <string.h>

/* By version: the section in which Kubernetes' runtimes are. */
static const char *const sections[] = {"cri", "io.containerd.grpc.v1.cri",
                                       "io.containerd.cri.v1.runtime"};

enum { VERSIONS = GP_ARRAY_LEN(sections) };

/* The version that the file names before its first section; 1 if it names none. */
static unsigned version_of(const char *text)
{
    static const char key[] = "version";
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t");
        const char *p = line + sizeof(key) - 1;
        if (*line == '[')
            break;
        if (strncmp(line, key, sizeof(key) - 1) != 0)
            continue;
        p += strspn(p, " \t=");
        if (isdigit((unsigned char)*p))
            return (unsigned)(*p - '0');
    }
    return 1;
}

/* Whether the runtime is in this section: [plugins."SECTION".containerd.runtimes.nvidia]. */
static bool is_in(struct gp_exam *exam, const char *text, const char *section)
{
    static const char *const forms[] = {"[plugins.\"%s\".containerd.runtimes.",
                                        "[plugins.'%s'.containerd.runtimes.",
                                        "[plugins.%s.containerd.runtimes."};
    for (size_t i = 0; i < GP_ARRAY_LEN(forms); i++) {
        char *cut = strstr(forms[i], "%s");
        const char *start =
            gp_exam_text(exam, "%.*s%s%s", (int)(cut - forms[i]), forms[i], section, cut + 2);
        for (const char *p = strstr(text, start); p; p = strstr(p + 1, start))
            if (strncmp(p + strlen(start) + strspn(p + strlen(start), "\"'"), "nvidia", 6) == 0)
                return true;
    }
    return false;
}

/* Toolkits before 1.17.4 do not know the third version, and write what belongs into the second. */
static void fix_section(struct gp_exam *exam, const char *path, unsigned version)
{
    static const char first[] = "1.17.4";
    const char *toolkit = gp_container_engine_version(exam, "nvidia-container-toolkit");
    if (version == 1) {
        gp_exam_command(exam, "the original file is kept next to it",
                        "sudo sed -i.before '1i version = 2' %s", gp_exam_quoted(exam, path));
    } else {
        if (toolkit[0] && gp_version_compare(toolkit, first) < 0)
            gp_exam_advice(exam, "update NVIDIA Container Toolkit to %s or newer; then:", first);
        gp_exam_command(exam, "write it into the right section",
                        "sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default");
    }
    gp_exam_command(exam, "", "sudo systemctl restart containerd");
}

bool gp_container_report_section(struct gp_exam *exam, const char *path, const char *text)
{
    unsigned version = version_of(text);
    const char *found = NULL;
    if (version < 1 || version > VERSIONS || is_in(exam, text, sections[version - 1]))
        return false;
    for (size_t i = 0; i < VERSIONS; i++)
        found = is_in(exam, text, sections[i]) ? sections[i] : found;
    if (!found)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "containerd ignores NVIDIA's runtime: it is in a section for another version of "
                   "the file");
    gp_exam_evidence(exam, path, "version = %u%s", version,
                     version == 1 ? ", as it names none" : "");
    gp_exam_evidence(exam, path,
                     "[plugins.\"%s\".containerd.runtimes.nvidia]; in this version the "
                     "section is called %s",
                     found, sections[version - 1]);
    gp_exam_why(exam,
                "Kubernetes' pods get no GPU: \"no runtime for \\\"nvidia\\\" is configured\", "
                "or the device plugin finds none.");
    fix_section(exam, path, version);
    return true;
}
