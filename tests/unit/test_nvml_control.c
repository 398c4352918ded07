/* Controls of the NVIDIA source on simulated machines, each row of control_lines.tsv in a session
 * of its own: what is read, what is refused and why, what is there afterwards.
 *
 * Columns: the machine, perhaps with /N for its N-th MIG instance; answers that are put in the
 * place of its own (a JSON object, perhaps with faults, or -); the control; values, separated by
 * blanks ("user:" before one: by somebody who is not root); and after each of them what is read:
 * the value or why there is none, what waits for a reset, the range, the default, words, the
 * driver's number. */
#include "rows.h"

#include "abi/nvml.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "source/control.h"
#include "source/nvml/nvml.h"

#include <dlfcn.h>
#include <jansson.h>
#include <unistd.h>

enum { COLUMNS = 5, LINE_SIZE = 2048 };

static char root[128];

static struct {
    struct gp_source *source;
    struct gp_source_device *gpu;
    struct gp_source_device *device; /* the GPU, or an instance */
    struct gp_reading *reading;
    gp_call_name call;
} rig;

/* ---- a machine of one GPU ---- */

static json_t *load_machine(const char *name)
{
    const char *library = getenv("GPULSE_SIM_LIBRARY");
    char path[4096];
    json_error_t why;
    assert_non_null(library);
    (void)snprintf(path, sizeof(path), "%.*s/machines/%.*s.json",
                   (int)(strrchr(library, '/') - library), library, (int)strcspn(name, "/"), name);
    json_t *machine = json_load_file(path, 0, &why);
    if (!machine)
        fail_msg("%s: %s", path, why.text);
    return machine;
}

static void put_machine(const char *name, const char *answers)
{
    char path[256];
    json_t *machine = load_machine(name);
    json_t *devices = json_object_get(machine, "devices");
    json_t *device = json_array_get(devices, 0);
    while (json_array_size(devices) > 1)
        (void)json_array_remove(devices, 1);
    (void)json_object_del(machine, "workload");
    (void)json_object_del(machine, "topology");
    (void)json_object_del(device, "processes");
    if (strcmp(answers, "-") != 0) {
        json_t *own = json_loads(answers, 0, NULL);
        assert_non_null(own);
        if (json_object_get(own, "faults"))
            (void)json_object_set(machine, "faults", json_object_get(own, "faults"));
        (void)json_object_del(own, "faults");
        assert_int_equal(json_object_update(json_object_get(device, "answers"), own), 0);
        json_decref(own);
    }
    (void)snprintf(path, sizeof(path), "%s/machine.json", root);
    assert_int_equal(json_dump_file(machine, path, 0), 0);
    json_decref(machine);
    assert_int_equal(setenv("GPULSE_SIM", path, 1), 0);
}

static void set_up(const char *name, const char *answers)
{
    struct gp_err err = {0};
    unsigned count = 0;
    const struct gp_nvml_config config = {.library = getenv("GPULSE_SIM_LIBRARY"),
                                          .simulated = true};
    const struct gp_want want = {.mig = true};
    temporary_name(root, sizeof(root), "control");
    assert_non_null(mkdtemp(root));
    assert_int_equal(setenv("GPULSE_SIM_STATE", root, 1), 0);
    assert_int_equal(setenv("GPULSE_SIM_STILL", "1", 1), 0);
    assert_int_equal(setenv("GPULSE_SIM_ROOT", "1", 1), 0);
    put_machine(name, answers);
    memset(&rig, 0, sizeof(rig));
    rig.source = gp_nvml_new(&config);
    rig.reading = gp_reading_new();
    assert_non_null(rig.source);
    assert_non_null(rig.reading);
    if (rig.source->ops->open(rig.source, &count, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(rig.source->ops->attach(rig.source, 0, &rig.call, &rig.gpu, rig.reading), 0);
    const char *instance = strchr(name, '/');
    rig.device = rig.gpu;
    if (instance)
        rig.source->ops->read(rig.gpu, &want, rig.reading);
    if (instance)
        rig.device = rig.source->ops->controls->instance(rig.gpu, (size_t)atoi(instance + 1));
    assert_non_null(rig.device);
}

static void tear_down(void)
{
    char command[192];
    rig.source->ops->detach(rig.gpu);
    rig.source->ops->close(rig.source);
    rig.source->ops->free(rig.source);
    gp_reading_unref(rig.reading);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
    /* With the session goes the library: a driver that is loaded anew comes with another one. */
    assert_null(dlopen(getenv("GPULSE_SIM_LIBRARY"), RTLD_NOW | RTLD_NOLOAD));
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a path of our own */
}

/* ---- a setting as a line ---- */

static void add_setting(struct gp_strbuf *sb, enum gp_control_id id, const struct gp_setting *s)
{
    static const char *const statuses[] = {"none", "ok",      "stale",  "unsupported", "denied",
                                           "lost", "timeout", "asleep", "released",    "error"};
    if (s->status != GP_STATUS_OK)
        gp_strbuf_adds(sb, statuses[s->status]);
    else if (!s->known)
        gp_strbuf_adds(sb, "?");
    else
        gp_control_format(sb, id, &s->value, false);
    if (s->has_pending) {
        gp_strbuf_adds(sb, " pending ");
        gp_control_format(sb, id, &s->pending, false);
    }
    if (s->has_range)
        gp_strbuf_addf(sb, " %lld..%lld", (long long)s->min, (long long)s->max);
    if (s->has_fallback) {
        gp_strbuf_adds(sb, " default ");
        gp_control_format(sb, id, &s->fallback, false);
    }
    if (s->words[0])
        gp_strbuf_addf(sb, " (%s)", s->words);
    if (s->driver_code)
        gp_strbuf_addf(sb, " #%d", s->driver_code);
}

static void add_step(struct gp_strbuf *sb, enum gp_control_id id, struct gp_setting *now,
                     const char *text)
{
    const struct gp_control_ops *ops = rig.source->ops->controls;
    struct gp_control_value value;
    struct gp_err err = {0};
    bool is_user = strncmp(text, "user:", 5) == 0;
    assert_int_equal(setenv("GPULSE_SIM_ROOT", is_user ? "0" : "1", 1), 0);
    int r = gp_control_parse(id, text + (is_user ? 5 : 0), &value, &err);
    if (r == 0)
        r = gp_control_check(id, now, &value, &err);
    if (r == 0)
        r = ops->check(rig.device, id, &value, &err);
    if (r == 0)
        r = ops->apply(rig.device, id, &value, &err);
    gp_strbuf_addf(sb, " -> ");
    if (r < 0)
        gp_strbuf_addf(sb, "%d ", r);
    if (err.text[0])
        gp_strbuf_addf(sb, "[%s", err.text);
    if (err.text[0])
        gp_strbuf_addf(sb, err.driver_code ? " #%d] " : "] ", err.driver_code);
    ops->read(rig.device, id, now);
    add_setting(sb, id, now);
}

static void check_line(void **state)
{
    char **column = *state;
    char values[LINE_SIZE];
    char *rest = values;
    struct gp_strbuf sb = GP_STRBUF_INIT(LINE_SIZE);
    struct gp_setting setting;
    struct gp_err err = {0};
    enum gp_control_id id = GP_CONTROL__COUNT;
    for (int i = 0; i < COLUMNS; i++)
        assert_non_null(column[i]);
    assert_int_equal(gp_control_find(column[2], strlen(column[2]), &id, &err), 0);
    (void)snprintf(values, sizeof(values), "%s", column[3]);
    set_up(column[0], column[1]);
    memset(&setting, 0xff, sizeof(setting)); /* all of it is filled in */
    rig.source->ops->controls->read(rig.device, id, &setting);
    add_setting(&sb, id, &setting);
    for (char *value = strsep(&rest, " "); value; value = strsep(&rest, " "))
        if (strcmp(value, "-") != 0)
            add_step(&sb, id, &setting, value);
    tear_down();
    assert_int_equal(sb.error, 0);
    if (strcmp(sb.buf, column[4]) != 0)
        fail_msg("\n%s\n%s", sb.buf, column[4]);
    gp_strbuf_fini(&sb);
}

/* ---- parting ---- */

static int part(enum gp_part_step step, const char *profile, unsigned gi, unsigned ci,
                struct gp_part *ret, struct gp_err *err)
{
    *ret = (struct gp_part){.step = step, .gpu_instance = gi, .compute_instance = ci};
    (void)snprintf(ret->profile, sizeof(ret->profile), "%s", profile);
    *err = (struct gp_err){0};
    return rig.source->ops->controls->part(rig.gpu, ret, err);
}

static void check_made(const struct gp_part *p, unsigned id, const char *name)
{
    assert_int_equal(p->profile_id, id);
    assert_string_equal(p->profile_name, name);
}

static void a_gpu_is_parted_step_by_step(void **state)
{
    struct gp_part p, q;
    struct gp_err err;
    (void)state;
    set_up("h100", "{\"MigMode\": {\"current\": 1, \"pending\": 1}}");
    /* by name, by number, at a place */
    assert_int_equal(part(GP_PART_CREATE_GPU, "3g.40gb", 0, 0, &p, &err), 0);
    check_made(&p, 9, "3g.40gb");
    assert_int_equal(part(GP_PART_CREATE_GPU, "19:2", 0, 0, &q, &err), 0);
    check_made(&q, 19, "1g.10gb");
    assert_int_not_equal(p.gpu_instance, q.gpu_instance);
    unsigned gi = p.gpu_instance;
    unsigned small = q.gpu_instance;
    static const struct {
        const char *profile;
        int code;
    } wrong[] = {{"3g", GP_EFAIL},   {"33", GP_EFAIL},    {"9x", GP_EFAIL},
                 {"", GP_EFAIL},     {"19:", GP_EFAIL},   {"19:9", GP_EFAIL},
                 {"19:x", GP_EFAIL}, {"19:2x", GP_EFAIL}, {"7g.80gb", GP_EFAIL}};
    for (size_t i = 0; i < GP_ARRAY_LEN(wrong); i++) {
        assert_int_equal(part(GP_PART_CREATE_GPU, wrong[i].profile, 0, 0, &q, &err), wrong[i].code);
        assert_true(err.text[0] && err.driver_code);
    }
    /* a part of it, the whole of it, and what has no room any more */
    assert_int_equal(part(GP_PART_CREATE_COMPUTE, "1c.3g.40gb", gi, 0, &p, &err), 0);
    check_made(&p, 0, "1c.3g.40gb");
    assert_int_equal(p.compute_instance, 0);
    assert_int_equal(part(GP_PART_CREATE_COMPUTE, "1", gi, 0, &q, &err), 0);
    check_made(&q, 1, "2c.3g.40gb");
    assert_int_equal(q.compute_instance, 1);
    assert_int_equal(part(GP_PART_CREATE_COMPUTE, "", gi, 0, &q, &err), GP_EFAIL);
    assert_int_equal(part(GP_PART_CREATE_COMPUTE, "7c.7g.80gb", gi, 0, &q, &err), GP_EFAIL);
    assert_int_equal(part(GP_PART_CREATE_COMPUTE, "", 99, 0, &q, &err), GP_EFAIL);
    assert_int_equal(part(GP_PART_CREATE_COMPUTE, "", small, 0, &q, &err), 0);
    check_made(&q, 0, "1g.10gb");
    /* the other way round */
    assert_int_equal(part(GP_PART_DESTROY_GPU, "", gi, 0, &q, &err), GP_EFAIL);
    assert_int_equal(part(GP_PART_DESTROY_COMPUTE, "", gi, 7, &q, &err), GP_EFAIL);
    assert_int_equal(part(GP_PART_DESTROY_COMPUTE, "", gi, 0, &q, &err), 0);
    assert_int_equal(part(GP_PART_DESTROY_COMPUTE, "", gi, 0, &q, &err), GP_EFAIL);
    assert_int_equal(part(GP_PART_DESTROY_COMPUTE, "", gi, 1, &q, &err), 0);
    assert_int_equal(part(GP_PART_CREATE_COMPUTE, "", gi, 0, &q, &err), 0);
    check_made(&q, 2, "3g.40gb");
    assert_int_equal(part(GP_PART_DESTROY_COMPUTE, "", gi, q.compute_instance, &q, &err), 0);
    assert_int_equal(part(GP_PART_DESTROY_GPU, "", gi, 0, &q, &err), 0);
    assert_int_equal(part(GP_PART_DESTROY_GPU, "", gi, 0, &q, &err), GP_EFAIL);
    assert_int_equal(part(GP_PART_DESTROY_GPU, "", 99, 0, &q, &err), GP_EFAIL);
    tear_down();
}

static void a_gpu_that_is_not_in_mig_mode_is_not_parted(void **state)
{
    struct gp_part p;
    struct gp_err err;
    (void)state;
    set_up("h100", "-");
    for (int step = GP_PART_CREATE_GPU; step <= GP_PART_DESTROY_GPU; step++) {
        assert_int_equal(part((enum gp_part_step)step, "3g.40gb", 0, 0, &p, &err), GP_EFAIL);
        assert_true(err.text[0] && err.driver_code);
    }
    tear_down();
}

/* The only one has the first place. */
static void a_single_instance_is_found(void **state)
{
    const struct gp_want want = {.mig = true};
    const struct gp_control_ops *ops;
    struct gp_control_value value;
    struct gp_setting setting;
    struct gp_err err = {0};
    (void)state;
    set_up("h100", "{\"MigMode\": {\"current\": 1, \"pending\": 1}}");
    ops = rig.source->ops->controls;
    assert_null(ops->instance(rig.gpu, 0));
    assert_int_equal(gp_control_parse(GP_CONTROL_MIG_INSTANCES, "1g.10gb", &value, &err), 0);
    assert_int_equal(ops->apply(rig.gpu, GP_CONTROL_MIG_INSTANCES, &value, &err), 0);
    gp_reading_unref(rig.reading);
    rig.reading = gp_reading_new();
    assert_non_null(rig.reading);
    rig.source->ops->read(rig.gpu, &want, rig.reading);
    assert_int_equal(rig.reading->mig_count, 1);
    assert_null(ops->instance(rig.gpu, 1));
    rig.device = ops->instance(rig.gpu, 0);
    assert_non_null(rig.device);
    ops->read(rig.device, GP_CONTROL_MIG_INSTANCES, &setting);
    assert_int_equal(setting.status, GP_STATUS_OK);
    assert_string_equal(setting.value.text, "1g.10gb");
    tear_down();
}

static unsigned long calls_of(const char *function)
{
    char path[256], line[256];
    unsigned long count = 0;
    (void)snprintf(path, sizeof(path), "%s.count", root);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, function, strlen(function)) == 0 && line[strlen(function)] == ' ')
            count = strtoul(line + strlen(function), NULL, 10);
    (void)fclose(file);
    (void)unlink(path);
    return count;
}

/* A driver may fail badly at a number of a profile that nobody has. */
static void no_profile_is_asked_for_that_cannot_be(void **state)
{
    struct gp_setting setting;
    char path[256];
    (void)state;
    set_up("h100", "{\"MigMode\": {\"current\": 1, \"pending\": 1}}");
    (void)snprintf(path, sizeof(path), "%s.count", root);
    assert_int_equal(setenv("GPULSE_SIM_COUNT", path, 1), 0);
    rig.source->ops->controls->read(rig.device, GP_CONTROL_MIG_INSTANCES, &setting);
    assert_int_equal(setting.status, GP_STATUS_OK);
    tear_down();
    assert_int_equal(unsetenv("GPULSE_SIM_COUNT"), 0);
    assert_int_equal(calls_of("nvmlDeviceGetGpuInstanceProfileInfoV"),
                     NVML_GPU_INSTANCE_PROFILE_COUNT);
}

static void each_control_has_a_line(void **state)
{
    (void)state;
    struct rows rows = {0};
    bool has_line[GP_CONTROL__COUNT] = {false};
    struct gp_err err = {0};
    size_t count = rows_add_file(&rows, "control_lines.tsv", COLUMNS, check_line);
    for (size_t i = 0; i < count; i++) {
        char **column = rows.tests[i].initial_state;
        enum gp_control_id id = GP_CONTROL__COUNT;
        assert_int_equal(gp_control_find(column[2], strlen(column[2]), &id, &err), 0);
        has_line[id] = true;
    }
    for (size_t id = 0; id < GP_CONTROL__COUNT; id++)
        if (!has_line[id])
            fail_msg("control_lines.tsv has no line about %s", gp_control_table[id].name);
    free(rows.tests);
    gp_arena_fini(&rows.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_parted_step_by_step),
        cmocka_unit_test(a_gpu_that_is_not_in_mig_mode_is_not_parted),
        cmocka_unit_test(a_single_instance_is_found),
        cmocka_unit_test(no_profile_is_asked_for_that_cannot_be),
        cmocka_unit_test(each_control_has_a_line),
    };
    struct rows rows = {0};
    (void)rows_add_file(&rows, "control_lines.tsv", COLUMNS, check_line);
    return rows_run(&rows, tests, GP_ARRAY_LEN(tests), NULL);
}
