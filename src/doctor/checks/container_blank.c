/* Variables of docker's containers that are not what their user meant, as their name has a blank at
 * an end, or their value is in quotes: docker changes neither. Web forms, such as those of Unraid
 * and Portainer, and lists in compose files take both over. */
#include "doctor/checks/container.h"

#include "doctor/exam.h"
#include "doctor/readers/docker.h"

#include <string.h>

struct part {
    const char *at;
    size_t n;
};

/* Also those of texts that were copied from web pages: no-break, of no width, a byte order mark. */
static const char *const blanks[] = {" ", "\t", "\r", "\xc2\xa0", "\xe2\x80\x8b", "\xef\xbb\xbf"};

static struct part without_blanks(struct part text)
{
    size_t before;
    do {
        before = text.n;
        for (size_t i = 0; i < GP_ARRAY_LEN(blanks); i++) {
            size_t n = strlen(blanks[i]);
            if (text.n >= n && memcmp(text.at, blanks[i], n) == 0)
                text = (struct part){text.at + n, text.n - n};
            if (text.n >= n && memcmp(text.at + text.n - n, blanks[i], n) == 0)
                text.n -= n;
        }
    } while (text.n < before);
    return text;
}

static struct part without_quotes(struct part text)
{
    bool is_quoted = text.n > 1 && (text.at[0] == '"' || text.at[0] == '\'') &&
                     text.at[text.n - 1] == text.at[0];
    return is_quoted ? without_blanks((struct part){text.at + 1, text.n - 2}) : text;
}

static struct part meant_by(const char *value)
{
    return without_quotes(without_blanks((struct part){value, strlen(value)}));
}

/* The variable whose name is this one but for blanks, " NAME=value"; NULL: none. */
static const char *spaced_entry(const struct gp_docker_container *c, const char *name)
{
    const json_t *variables = json_object_get(json_object_get(c->config, "Config"), "Env");
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const char *entry = json_string_value(json_array_get(variables, i));
        const char *end = entry ? strchr(entry, '=') : NULL;
        struct part whole = {entry, end ? (size_t)(end - entry) : 0};
        struct part part = end ? without_blanks(whole) : whole;
        if (end && part.n < whole.n && part.n == strlen(name) && memcmp(part.at, name, part.n) == 0)
            return entry;
    }
    return NULL;
}

/* Whether a value asks for no GPU, as the missing variable does. */
static bool is_none(struct part value)
{
    static const char *const words[] = {"", "void", "none"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (value.n == strlen(words[i]) && memcmp(value.at, words[i], value.n) == 0)
            return true;
    return false;
}

/* Whether CUDA would find GPUs in a value: it has numbers or identifiers of them. */
static bool has_devices(struct part value)
{
    static const char *const starts[] = {"GPU-", "MIG-"};
    for (size_t i = 0; i < GP_ARRAY_LEN(starts); i++)
        if (value.n > strlen(starts[i]) && memcmp(value.at, starts[i], strlen(starts[i])) == 0)
            return true;
    return value.n > 0 && value.at[0] >= '0' && value.at[0] <= '9';
}

static void fix(struct gp_exam *exam, const char *name, struct part value)
{
    const char *right = gp_exam_text(exam, "%s=%.*s", name, (int)value.n, value.at);
    if (gp_exam_quoted(exam, right) != right) { /* text of an image: no part of a command */
        gp_exam_advice(exam,
                       "create the container again with the variable %s, without blanks or quotes "
                       "around its name and its value",
                       name);
        return;
    }
    if (strcmp(exam->machine.distro_id, "unraid") == 0) {
        gp_exam_advice(exam,
                       "in the web interface, edit the container, and then this variable: its Key "
                       "is %s and its Value %.*s, without blanks or quotes; then Apply",
                       name, (int)value.n, value.at);
        return;
    }
    gp_exam_advice(exam,
                   "create the container again with -e %s; with docker compose, write the line "
                   "\"- %s\" without blanks around = and without quotes behind it, then docker "
                   "compose up -d",
                   right, right);
}

/* ---- blanks in a name ---- */

static bool is_any(const struct gp_error_entry *unused, const char *text)
{
    (void)unused;
    (void)text;
    return true;
}

/* What its program says, so that it is not reported once more. */
static void show_failure(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char errors[] = "cuda.none,cuda.35,cuda.100,ld.libcuda,ld.nvml,numba.nocuda,"
                                 "torch.no-driver,video.libcuda,nvenc.library,nvdec.library";
    const char *line = gp_docker_printed_error(exam, c, errors, is_any);
    if (line)
        gp_exam_evidence(exam, gp_docker_log_of(exam, c, line), "%s", line);
}

static void report_spaced(struct gp_exam *exam, const struct gp_docker_container *c,
                          const char *name, const char *entry, bool is_missed)
{
    gp_exam_report(exam, is_missed ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "container %s has a blank in the name of its variable %s: it is not set",
                   c->name, name);
    gp_exam_evidence(exam, c->config_path, "\"%s\"", entry);
    if (is_missed)
        show_failure(exam, c);
    gp_exam_why(exam, "The blank is part of the name, so nothing finds the variable%s.",
                !is_missed                                    ? ""
                : strcmp(name, "NVIDIA_VISIBLE_DEVICES") == 0 ? ": NVIDIA's runtime adds no GPU, "
                                                                "and no driver"
                                                              : ": NVIDIA's toolkit passes in only "
                                                                "the driver's default parts");
    fix(exam, name, meant_by(strchr(entry, '=') + 1));
}

/* Whether the container goes without what the variable asks for. */
static bool is_missed(const struct gp_exam *exam, const struct gp_docker_container *c,
                      const char *name)
{
    if (exam->machine.nvidia_count == 0 || !exam->machine.is_driver_loaded)
        return false;
    if (strcmp(name, "NVIDIA_VISIBLE_DEVICES") == 0)
        return gp_docker_has_runtime(c) && !gp_docker_asked(c) && !gp_docker_has_gpus(c);
    return strcmp(name, "NVIDIA_DRIVER_CAPABILITIES") == 0 && gp_docker_has_gpus(c) &&
           !gp_docker_variable(c, name);
}

/* ---- quotes around a value ---- */

/* What the toolkit says of a value that it does not know: the container does not start. */
static const struct {
    const char *name, *error;
} refusals[] = {
    {"NVIDIA_VISIBLE_DEVICES", "unknown device"},
    {"NVIDIA_VISIBLE_DEVICES", "unresolvable CDI devices"},
    {"NVIDIA_DRIVER_CAPABILITIES", "unsupported capabilities"},
};

static void report_quoted(struct gp_exam *exam, const struct gp_docker_container *c,
                          const char *name, const char *value, const char *error)
{
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "container %s %s: the value of its variable %s has quotes or blanks around it",
                   c->name, error ? "does not start" : "finds no GPU", name);
    gp_exam_evidence(exam, c->config_path, "%s=%s", name, value);
    if (error)
        gp_exam_evidence(exam, c->config_path, "%s", error);
    gp_exam_why(exam, "They are part of the value, which %s does not know like this.",
                error ? "NVIDIA's toolkit" : "CUDA");
    fix(exam, name, meant_by(value));
}

static bool is_wrapped(const char *value)
{
    return value && meant_by(value).n < strlen(value);
}

static bool check_refused(struct gp_exam *exam, const struct gp_docker_container *c)
{
    const char *error = gp_docker_text(json_object_get(c->config, "State"), "Error");
    for (size_t i = 0; error && i < GP_ARRAY_LEN(refusals); i++) {
        const char *value = gp_docker_variable(c, refusals[i].name);
        const char *found = strstr(error, refusals[i].error);
        if (!found || !is_wrapped(value))
            continue;
        report_quoted(exam, c, refusals[i].name, value, error);
        return true;
    }
    return false;
}

/* CUDA ends its list at the first character that is no number: a quote hides all GPUs. It skips
 * blanks. */
static bool check_hidden(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES";
    const char *value = gp_docker_variable(c, name);
    if (!gp_docker_has_gpus(c) || !is_wrapped(value) || !strpbrk(value, "\"'") ||
        !has_devices(meant_by(value))) /* "none", "-1": to hide them */
        return false;
    report_quoted(exam, c, name, value, NULL);
    return true;
}

/* ---- */

bool gp_container_check_blanks(struct gp_exam *exam, const struct gp_docker_container *c)
{
    static const char *const names[] = {
        "NVIDIA_VISIBLE_DEVICES",   "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES",
        "HSA_OVERRIDE_GFX_VERSION", "HIP_VISIBLE_DEVICES",        "ROCR_VISIBLE_DEVICES",
        "LIBVA_DRIVER_NAME",
    };
    if (!c->is_running)
        return check_refused(exam, c);
    if (!gp_docker_has_runtime(c) && !gp_docker_has_gpus(c) && !gp_docker_has_other_gpu(c))
        return false;
    bool is_found = check_hidden(exam, c);
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *entry = spaced_entry(c, names[i]);
        if (entry && strcmp(names[i], "NVIDIA_VISIBLE_DEVICES") == 0 &&
            is_none(meant_by(strchr(entry, '=') + 1))) {
            is_found = true; /* it has what was meant */
            continue;
        }
        bool is_reason = entry && is_missed(exam, c, names[i]);
        if (entry && (is_reason || !gp_docker_variable(c, names[i])))
            report_spaced(exam, c, names[i], entry, is_reason);
        is_found = is_found || is_reason;
    }
    return is_found;
}
