/* Apps of TrueNAS: whether their settings name the GPUs as its templates need it. A part of
 * container.given. */
#include "doctor/checks/container.h"

#include "doctor/lines.h"
#include "doctor/readers/docker.h"

#include <stdlib.h>
#include <string.h>

static const char settings[] = "/mnt/.ix-apps/user_config.yaml";

/* ---- the settings of all apps ---- */

struct choice {
    const char *app, *slot; /* of a GPU that it is to use, without its UUID; NULL: none */
    size_t line;
    size_t count;              /* of the GPUs that it is to use */
    bool is_all;               /* "use_all_gpus", the GPUs that are not NVIDIA's */
    const char *cpus, *memory; /* its limits; NULL: not found */
};

struct reading {
    struct gp_exam *exam;
    const char *app, *slot;
    size_t selection, slot_indent,
        slot_line; /* the first: the indent of the GPUs' key; 0: not in it */
    size_t limits; /* the indent of their key; 0: not in it */
    bool is_used, has_uuid;
    struct choice current; /* of this app */
};

/* "key: value" without quotes; "": the key has no value of its own. */
static bool split(struct gp_exam *exam, const char *line, size_t n, const char **ret_key,
                  const char **ret_value)
{
    const char *colon = n > 0 ? memmem(line, n, ": ", 2) : NULL;
    if (!colon && n > 1 && line[n - 1] == ':')
        colon = line + n - 1;
    if (!colon)
        return false;
    const char *key = line + strspn(line, "'\""), *value = colon + 1;
    const char *end = line + n;
    while (value < end && strchr(" '\"", *value))
        value++;
    while (end > value && strchr(" '\"", end[-1]))
        end--;
    const char *stop = colon;
    while (stop > key && strchr("'\"", stop[-1]))
        stop--;
    *ret_key = gp_exam_text(exam, "%.*s", (int)(stop - key), key);
    *ret_value = gp_exam_text(exam, "%.*s", (int)(end - value), value);
    return true;
}

/* Whether an NVIDIA GPU is in this slot: one that is gone has no UUID. */
static bool is_present(const struct gp_exam *exam, const char *slot)
{
    for (size_t i = 0; i < exam->machine.gpu_count; i++)
        if (exam->machine.gpus[i].vendor == GP_PCI_NVIDIA &&
            strcmp(exam->machine.gpus[i].bus_id, slot) == 0)
            return true;
    return false;
}

static void end_slot(struct reading *r)
{
    r->current.count += r->slot && r->is_used;
    if (r->slot && r->is_used && !r->has_uuid && !r->current.slot && is_present(r->exam, r->slot)) {
        r->current.app = r->app;
        r->current.slot = r->slot;
        r->current.line = r->slot_line;
    }
    r->slot = NULL;
    r->is_used = r->has_uuid = false;
}

static void take(struct reading *r, size_t indent, size_t number, const char *key,
                 const char *value)
{
    if (r->selection > 0 && indent <= r->selection) {
        end_slot(r);
        r->selection = 0;
    }
    if (indent <= r->limits)
        r->limits = 0;
    if (strcmp(key, "nvidia_gpu_selection") == 0 && !value[0])
        r->selection = indent;
    else if (strcmp(key, "use_all_gpus") == 0)
        r->current.is_all = strcmp(value, "true") == 0;
    else if (strcmp(key, "limits") == 0 && !value[0])
        r->limits = indent;
    else if (r->limits > 0 && strcmp(key, "cpus") == 0)
        r->current.cpus = value;
    else if (r->limits > 0 && strcmp(key, "memory") == 0)
        r->current.memory = value;
    else if (r->selection > 0 && (!r->slot || indent <= r->slot_indent)) {
        end_slot(r);
        r->slot = key;
        r->slot_indent = indent;
        r->slot_line = number;
    } else if (r->slot && strcmp(key, "use_gpu") == 0)
        r->is_used = strcmp(value, "true") == 0;
    else if (r->slot && strcmp(key, "uuid") == 0)
        r->has_uuid = value[0] && strcmp(value, "null") != 0;
}

enum { MOST = 32 };

static void end_app(struct reading *r, struct choice ret[MOST], size_t *count)
{
    end_slot(r);
    if (r->app && r->current.slot && *count < MOST) /* not before the first app */
        ret[(*count)++] = r->current;
}

/* The apps with such a GPU. Python writes the file, with an app at the start of a line, and a key
 * in each line. */
static size_t find_choices(struct gp_exam *exam, struct choice ret[MOST])
{
    size_t length = 0, count = 0, n;
    const char *text = gp_files_text(&exam->files, &exam->arena, settings, 1 << 20, &length), *line;
    struct reading r = {.exam = exam};
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *key, *value;
        size_t indent = strspn(line, " ");
        if (indent >= n || !split(exam, line + indent, n - indent, &key, &value))
            continue;
        if (indent == 0) {
            end_app(&r, ret, &count);
            r = (struct reading){.exam = exam, .app = key};
        } else {
            take(&r, indent, lines.number, key, value);
        }
    }
    end_app(&r, ret, &count);
    return count;
}

/* ---- what shows that it matters ---- */

/* The last line by which TrueNAS refuses the app's settings; NULL: there is none. */
static const char *refusal(struct gp_exam *exam, const char *slot, const char **ret_path)
{
    static const char *const paths[] = {"/var/log/app_lifecycle.log", "/var/log/middlewared.log"};
    static const char mark[] = "Expected [uuid] to be set for GPU";
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        size_t length = 0, n;
        const char *text = gp_files_tail(&exam->files, &exam->arena, paths[i], 1 << 18, &length);
        const char *line, *found = NULL;
        struct gp_lines lines = gp_lines_of(text, text ? length : 0);
        while (gp_lines_next(&lines, &line, &n))
            if (memmem(line, n, mark, sizeof(mark) - 1) && memmem(line, n, slot, strlen(slot)))
                found = gp_exam_text(exam, "%.*s", n < 400 ? (int)n : 400, line);
        if (found) {
            *ret_path = paths[i];
            return found;
        }
    }
    return NULL;
}

/* The first of the apps that runs. */
struct search {
    const struct choice *apps;
    size_t place; /* their number: none runs */
    const char *name, *path;
};

static void look_at(struct gp_exam *exam, const struct gp_docker_container *container,
                    void *argument)
{
    static const char start[] = "ix-"; /* "ix-immich-server-1" */
    struct search *s = argument;
    if (!container->is_running || strncmp(container->name, start, sizeof(start) - 1) != 0)
        return;
    const char *name = container->name + sizeof(start) - 1;
    for (size_t i = 0; i < s->place; i++) {
        size_t n = strlen(s->apps[i].app);
        if (strncmp(name, s->apps[i].app, n) != 0 || name[n] != '-')
            continue;
        s->place = i;
        s->name = gp_exam_text(exam, "%s", container->name);
        s->path = container->config_path;
    }
}

/* ---- how to write it ---- */

/* By the driver, "GPU-…"; NULL: it has not read it yet, or is not loaded. */
static const char *uuid_of(struct gp_exam *exam, const char *slot)
{
    static const char key[] = "GPU UUID:";
    const char *path = gp_exam_text(exam, "/proc/driver/nvidia/gpus/%s/information", slot);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 12, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    if (!found)
        return NULL;
    found += sizeof(key) - 1;
    found += strspn(found, " \t");
    const char *uuid = gp_exam_text(exam, "%.*s", (int)strcspn(found, " \t\r\n"), found);
    return strncmp(uuid, "GPU-", 4) == 0 && !strchr(uuid, '?') ? uuid : NULL;
}

/* A number, as it is in JSON. */
static bool is_number(const char *value)
{
    return value && value[0] && !value[strspn(value, "0123456789")];
}

/* What is not named below "resources" gets its default again: the limits are named, too. */
static void fix(struct gp_exam *exam, const struct choice *c)
{
    const char *uuid = uuid_of(exam, c->slot), *limits = "";
    if (is_number(c->cpus) && is_number(c->memory))
        limits =
            gp_exam_text(exam, ", \"limits\": {\"cpus\": %s, \"memory\": %s}", c->cpus, c->memory);
    if (c->count > 1) { /* all of them must be named together */
        gp_exam_advice(exam, "in the web interface: edit the app, take its GPUs out and save, then "
                             "choose them again");
        return;
    }
    const char *values = gp_exam_text(
        exam,
        "{\"values\": {\"resources\": {\"gpus\": {\"use_all_gpus\": %s, \"nvidia_gpu_selection\": "
        "{\"%s\": {\"use_gpu\": true, \"uuid\": \"%s\"}}}%s}}}",
        c->is_all ? "true" : "false", c->slot, uuid ? uuid : "GPU-…", limits);
    if (!uuid)
        gp_exam_command(exam, "the UUID of the GPU, for the next command", "nvidia-smi -L");
    gp_exam_command(exam, "write it into the app's settings; it is started again",
                    "sudo midclt call -j app.update %s %s", gp_exam_quoted(exam, c->app),
                    gp_exam_quoted(exam, values));
    gp_exam_advice(exam, "or in the web interface: edit the app, take the GPU out and save, then "
                         "choose it again; likewise other apps with a GPU");
}

/* One that runs is missed; others may be stopped on purpose. */
static const struct choice *choose(struct gp_exam *exam, const struct choice *all, size_t count,
                                   struct search *ret)
{
    *ret = (struct search){.apps = all, .place = count};
    if (count == 0)
        return NULL;
    (void)gp_docker_each(exam, look_at, ret);
    return &all[ret->name ? ret->place : 0];
}

void gp_container_check_truenas(struct gp_exam *exam)
{
    struct choice all[MOST];
    struct search running;
    const char *log = NULL;
    if (strcmp(exam->machine.distro_id, "truenas") != 0)
        return;
    const struct choice *c = choose(exam, all, find_choices(exam, all), &running);
    if (!c)
        return;
    const char *line = refusal(exam, c->slot, &log);
    gp_exam_report(exam, line || running.name ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "the app %s gets no GPU: its settings name the GPU without its UUID", c->app);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%zu", settings, c->line),
                     "%s: use_gpu: true, and no uuid", c->slot);
    if (line)
        gp_exam_evidence(exam, log, "%s", line);
    if (running.name)
        gp_exam_evidence(exam, running.path, "%s runs", running.name);
    gp_exam_why(exam, "TrueNAS gives an app the GPUs with these UUIDs. Settings from before 24.10 "
                      "have none: the app keeps running without a GPU, and cannot be updated.");
    fix(exam, c);
}
