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

/* ---- before runtimes had names ---- */

/* The value of a key in the first section whose name ends so; NULL: it is not set. */
static const char *value_in(struct gp_exam *exam, const char *text, const char *section,
                            const char *key)
{
    const char *line = strstr(text, section);
    size_t n = strlen(key);
    for (line = line ? strchr(line, '\n') : NULL; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t");
        if (*line == '[')
            break;
        if (strncmp(line, key, n) != 0 || !strchr("= \t", line[n]))
            continue;
        const char *value = line + n;
        value += strspn(value, "= \t\"'");
        size_t length = strcspn(value, "\"'\r\n");
        return length > 0 ? gp_exam_text(exam, "%.*s", (int)length, value) : NULL;
    }
    return NULL;
}

/* containerd's first shim has its runtime in its own section, by either version's name. */
static const char *shim_value(struct gp_exam *exam, const char *text)
{
    const char *value = value_in(exam, text, "[plugins.linux]", "runtime");
    return value ? value
                 : value_in(exam, text, "[plugins.\"io.containerd.runtime.v1.linux\"]", "runtime");
}

/* Whether Kubernetes' containers run with that shim. */
static bool has_first_shim(struct gp_exam *exam, const char *text)
{
    const char *type = value_in(exam, text, ".containerd.default_runtime]", "runtime_type");
    return type && strcmp(type, "io.containerd.runtime.v1.linux") == 0;
}

const char *gp_container_shim_runtime(struct gp_exam *exam, const char *text)
{
    const char *engine = value_in(exam, text, ".containerd.default_runtime]", "runtime_engine");
    return !has_first_shim(exam, text) ? NULL : engine ? engine : shim_value(exam, text);
}

bool gp_container_set_shim(struct gp_exam *exam, const char *path, const char *text,
                           const char *note)
{
    if (!has_first_shim(exam, text) || !shim_value(exam, text) ||
        value_in(exam, text, ".containerd.default_runtime]", "runtime_engine"))
        return false;
    gp_exam_command(exam, note,
                    "sudo sed -Ei.before '/linux\"?\\]/,/^ *\\[/s/^( *runtime "
                    "*=).*/\\1 \"nvidia-container-runtime\"/' %s",
                    gp_exam_quoted(exam, path));
    return true;
}
