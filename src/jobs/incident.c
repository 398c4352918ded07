#include "jobs/incident.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "jobs/pick.h"
#include "model/snapshot.h"

#include <stdio.h>

/* ---- what the GPU shows ---- */

static void add_number(struct gp_failure *f, enum gp_failure_field field,
                       const struct gp_device *device, enum gp_metric metric)
{
    double number;
    if (!gp_failure_knows(f, field) && gp_device_number_now(device, metric, &number))
        gp_failure_set(f, field, (uint64_t)number);
}

/* The memory that was free while the job still held the bytes that it has freed since. */
static void add_free(struct gp_failure *f, const struct gp_device *device, double given_back)
{
    double bytes;
    if (gp_failure_knows(f, GP_FAILURE_FREE) ||
        !gp_device_number_now(device, GP_MEMORY_FREE, &bytes))
        return;
    bytes -= given_back > 0 ? given_back : 0;
    gp_failure_set(f, GP_FAILURE_FREE, bytes > 0 ? (uint64_t)bytes : 0);
}

/* Describes a process: "ann: python train.py". */
static void describe(const struct gp_process *p, char who[160])
{
    const struct gp_value *user = gp_process_value(p, GP_PROCESS_USER);
    const struct gp_value *command = gp_process_value(p, GP_PROCESS_COMMAND);
    char text[512];
    (void)snprintf(text, sizeof(text), "%s: %s", gp_value_is_present(user) ? user->s : "(unknown)",
                   gp_value_is_present(command) ? command->s : "(unknown)");
    gp_utf8_copy_safe(who, 160, text);
}

static struct gp_failure_other *find_other(struct gp_failure *f, int64_t pid)
{
    for (size_t i = 0; i < f->other_count; i++)
        if (f->others[i].pid == pid)
            return &f->others[i];
    return NULL;
}

void gp_incident_add_scene(struct gp_incident *incident, const struct gp_snapshot *snapshot,
                           const struct gp_device *device, int64_t from, double job_bytes)
{
    struct gp_failure *f = &incident->failure;
    bool names_others = f->other_count > 0 || gp_failure_knows(f, GP_FAILURE_SELF);
    double own = 0;
    add_number(f, GP_FAILURE_TOTAL, device, GP_MEMORY_TOTAL);
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const struct gp_value *memory = gp_process_value(p, GP_PROCESS_MEMORY);
        int64_t pid = gp_process_value(p, GP_PID)->i;
        bool is_of_job = gp_pick_comes_from(snapshot, pid, from);
        struct gp_failure_other *other = find_other(f, pid);
        if (!names_others && is_of_job) {
            own += gp_value_is_present(memory) ? (double)memory->i : 0;
            continue;
        }
        if (!other && !names_others && gp_value_is_present(memory) &&
            f->other_count < GP_FAILURE_OTHERS) {
            other = &f->others[f->other_count++];
            *other = (struct gp_failure_other){.pid = pid, .bytes = (uint64_t)memory->i};
        }
        if (other) {
            other->is_of_job = is_of_job;
            describe(p, other->who);
        }
    }
    add_free(f, device, names_others ? 0 : job_bytes - own);
    own = own > job_bytes ? own : job_bytes;
    if (!names_others && own > 0)
        gp_failure_set(f, GP_FAILURE_SELF, (uint64_t)own);
}

/* ---- the causes ---- */

void gp_incident_judge(struct gp_incident *incident)
{
    incident->causes = gp_causes_of(&incident->failure);
}

void gp_incident_add_causes(struct gp_strbuf *sb, const struct gp_incident *incident)
{
    const struct gp_failure *f = &incident->failure;
    if (incident->causes.count == 0)
        gp_strbuf_addf(sb, "    no failure: %s continues\n", f->framework);
    for (size_t i = 0; i < incident->causes.count; i++) {
        enum gp_cause cause = incident->causes.items[i];
        gp_strbuf_addf(sb, "    %s: ", gp_cause_word(cause));
        gp_cause_add_why(sb, cause, f);
        size_t why_end = sb->len;
        gp_strbuf_adds(sb, "\n      -> ");
        size_t begin = sb->len;
        gp_cause_add_next(sb, cause, f);
        if (sb->len == begin)
            gp_strbuf_truncate(sb, why_end);
        gp_strbuf_addc(sb, '\n');
    }
}

/* ---- JSON ---- */

static json_t *numbers_object(const struct gp_failure *f)
{
    static const char *const words[] = {
#define X(id, word) [GP_FAILURE_##id] = word,
        GP_FAILURE_FIELDS(X)
#undef X
    };
    json_t *object = json_object();
    for (int i = 0; i < GP_FAILURE_FIELD__COUNT; i++)
        if (gp_failure_knows(f, (enum gp_failure_field)i))
            (void)json_object_set_new(object, words[i], json_integer((json_int_t)f->values[i]));
    return object;
}

static json_t *others_array(const struct gp_failure *f)
{
    json_t *array = json_array();
    for (size_t i = 0; i < f->other_count; i++) {
        const struct gp_failure_other *o = &f->others[i];
        (void)json_array_append_new(
            array, json_pack("{s:I, s:I, s:b, s:s}", "pid", (json_int_t)o->pid, "bytes",
                             (json_int_t)o->bytes, "of_job", (int)o->is_of_job, "who", o->who));
    }
    return array;
}

static json_t *causes_array(const struct gp_incident *incident)
{
    json_t *array = json_array();
    struct gp_strbuf why = GP_STRBUF_INIT(8192);
    struct gp_strbuf next = GP_STRBUF_INIT(8192);
    for (size_t i = 0; i < incident->causes.count; i++) {
        enum gp_cause cause = incident->causes.items[i];
        gp_strbuf_reset(&why);
        gp_strbuf_reset(&next);
        gp_cause_add_why(&why, cause, &incident->failure);
        gp_cause_add_next(&next, cause, &incident->failure);
        (void)json_array_append_new(array,
                                    json_pack("{s:s, s:s, s:s}", "cause", gp_cause_word(cause),
                                              "why", why.buf, "next", next.buf));
    }
    gp_strbuf_fini(&why);
    gp_strbuf_fini(&next);
    return array;
}

json_t *gp_incident_json(const struct gp_incident *incident)
{
    const struct gp_failure *f = &incident->failure;
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "id", f->id, "class",
                     gp_failure_class_word(f->class), "framework", f->framework, "line",
                     (json_int_t)incident->line_number, "text", json_string(incident->line),
                     "numbers", numbers_object(f), "others", others_array(f), "causes",
                     causes_array(incident));
}
