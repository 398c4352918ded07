/* How readings become the rows of a snapshot: what is asked of the source, what each value becomes
 * where a GPU is silent, which rows are chosen, sums, lists, the host. */
#include "assemble_bench.h"

#include "sample/assemble_internal.h"

/* ---- what is asked of the source ---- */

static size_t metrics_of(const struct gp_metric_set *set)
{
    size_t count = 0;
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        count += gp_metric_set_has(set, (enum gp_metric)m);
    return count;
}

static void only_what_is_needed_is_asked_of_the_source(void **state)
{
    static const struct {
        enum gp_metric metric, more;
        bool processes;
    } needs[] = {
        {GP_STATUS, GP_TEMPERATURE_GPU, false},      {GP_STATUS_TEXT, GP_TEMPERATURE_GPU, false},
        {GP_MIG_GPU_UUID, GP_UUID, false},           {GP_RESERVATION_USER, GP_UUID, false},
        {GP_RESERVATION_NAME, GP_UUID, false},       {GP_RESERVATION_SINCE, GP_UUID, false},
        {GP_PROCESS_IDLE, GP_PROCESS_SM, false},     {GP_PROCESS_LAST_ACTIVE, GP_PROCESS_SM, false},
        {GP_MEMORY_PROCESSES, GP_MEMORY_USED, true}, {GP_MEMORY_UNATTRIBUTED, GP_MEMORY_USED, true},
    };
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        size_t k = 0;
        begin(NULL);
        want((enum gp_metric)m);
        make();
        const struct gp_want *asked = gp_assembler_want(&bench.a);
        while (k < GP_ARRAY_LEN(needs) && needs[k].metric != (enum gp_metric)m)
            k++;
        bool known = k < GP_ARRAY_LEN(needs);
        assert_true(gp_metric_set_has(&asked->metrics, (enum gp_metric)m));
        assert_int_equal(metrics_of(&asked->metrics), known ? 2 : 1);
        if (known)
            assert_true(gp_metric_set_has(&asked->metrics, needs[k].more));
        assert_int_equal(asked->processes, known && needs[k].processes);
        assert_int_equal(asked->process_names,
                         m == GP_PROCESS_NAME || m == GP_PROCESS_PATH || m == GP_PROCESS_COMMAND);
        end();
    }
}

/* What a choice needs to know of every GPU. */
static void a_choice_asks_who_the_gpus_are(void **state)
{
    static const struct {
        const char *choice;
        bool identity, serial;
    } cases[] = {
        {NULL, false, false},  {"0,2", false, false},           {"GPU-a", true, false},
        {"4090", true, false}, {"00:01:00.0", true, false},     {"1650522003820", true, true},
        {"0,b", true, false},  {"0,1650522003820", true, true},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        begin(cases[i].choice);
        make();
        const struct gp_metric_set *asked = &gp_assembler_want(&bench.a)->metrics;
        assert_int_equal(gp_metric_set_has(asked, GP_UUID), cases[i].identity);
        assert_int_equal(gp_metric_set_has(asked, GP_NAME), cases[i].identity);
        assert_int_equal(gp_metric_set_has(asked, GP_PCI_BUS_ID), cases[i].identity);
        assert_int_equal(gp_metric_set_has(asked, GP_SERIAL), cases[i].serial);
        end();
    }
}

static void more_is_asked_for_instances_activity_and_what_comes_later(void **state)
{
    (void)state;
    begin(NULL);
    bench.want.mig = true;
    gp_metric_set_add(&bench.want.more, GP_POWER_DRAW);
    make();
    const struct gp_want *asked = gp_assembler_want(&bench.a);
    assert_true(gp_metric_set_has(&asked->metrics, GP_MIG_GPU_INSTANCE));
    assert_true(gp_metric_set_has(&asked->metrics, GP_MIG_COMPUTE_INSTANCE));
    assert_true(gp_metric_set_has(&asked->metrics, GP_POWER_DRAW));
    assert_int_equal(metrics_of(&asked->metrics), 3);
    assert_false(asked->processes);
    gp_assembler_add_activity(&bench.a);
    assert_true(gp_metric_set_has(&asked->metrics, GP_UTILIZATION_GPU));
    assert_int_equal(metrics_of(&asked->metrics), 4);
    assert_true(asked->processes);
    end();
    begin(NULL);
    bench.want.ancestors = bench.want.process_names = true;
    make();
    assert_true(gp_assembler_want(&bench.a)->processes);
    assert_true(gp_assembler_want(&bench.a)->process_names);
    end();
}

static void without_rows_of_gpus_the_driver_is_needed_for_what_it_alone_knows(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        begin(NULL);
        want((enum gp_metric)m);
        make();
        assert_true(gp_assembler_needs_source(&bench.a));
        end();
        begin(NULL);
        bench.want.host_only = true;
        want((enum gp_metric)m);
        make();
        assert_int_equal(gp_assembler_needs_source(&bench.a),
                         m >= GP_DRIVER_VERSION && m <= GP_CC_READY);
        end();
    }
}

/* ---- values ---- */

/* What the readings of a GPU say of its name and its temperature, how it stands, and what is shown.
 */
struct value_case {
    const char *name;
    enum gp_status status;               /* that it is taken with */
    enum gp_status latest, latest_value; /* of the latest reading, and of its values */
    enum gp_status good_value;           /* of the last good one; NONE: there is none */
    enum gp_status shown_name, shown_temperature;
    bool from_good; /* else from the latest */
    enum gp_status processes;
};

#define S(id) GP_STATUS_##id

static struct value_case value_cases[] = {
    {"it has answered", S(OK), S(OK), S(OK), S(OK), S(OK), S(OK), false, S(OK)},
    {"it has answered that it cannot tell", S(OK), S(OK), S(UNSUPPORTED), S(OK), S(UNSUPPORTED),
     S(UNSUPPORTED), false, S(OK)},
    {"it is asleep, and has a name", S(OK), S(ASLEEP), S(OK), S(NONE), S(OK), S(ASLEEP), false,
     S(ASLEEP)},
    {"it is asleep, and had a name", S(OK), S(ASLEEP), S(NONE), S(OK), S(OK), S(ASLEEP), true,
     S(ASLEEP)},
    {"it is lost", S(OK), S(LOST), S(NONE), S(OK), S(OK), S(LOST), true, S(LOST)},
    {"it was always lost", S(OK), S(LOST), S(NONE), S(NONE), S(LOST), S(LOST), true, S(LOST)},
    {"it fails", S(OK), S(ERROR), S(NONE), S(NONE), S(ERROR), S(ERROR), true, S(ERROR)},
    {"it is silent", S(TIMEOUT), S(NONE), S(NONE), S(OK), S(OK), S(STALE), true, S(TIMEOUT)},
    {"it was always silent", S(TIMEOUT), S(NONE), S(NONE), S(NONE), S(TIMEOUT), S(TIMEOUT), true,
     S(TIMEOUT)},
    {"it is silent, and could not tell", S(TIMEOUT), S(NONE), S(NONE), S(UNSUPPORTED), S(TIMEOUT),
     S(TIMEOUT), true, S(TIMEOUT)},
    {"it is silent, and its last name counts", S(TIMEOUT), S(ASLEEP), S(OK), S(OK), S(OK), S(STALE),
     false, S(TIMEOUT)},
    {"it is let go", S(RELEASED), S(NONE), S(NONE), S(OK), S(OK), S(RELEASED), true, S(RELEASED)},
    {"it is out of memory", S(ERROR), S(NONE), S(NONE), S(OK), S(OK), S(ERROR), true, S(ERROR)},
};

static void set_both(struct gp_reading *reading, enum gp_status status, const char *name,
                     int64_t temperature)
{
    if (status == GP_STATUS_OK) {
        set_text(reading->values, GP_NAME, name);
        set_int(reading->values, GP_TEMPERATURE_GPU, temperature);
    } else {
        set_absent(reading->values, GP_NAME, status, "cannot");
        set_absent(reading->values, GP_TEMPERATURE_GPU, status, "cannot");
    }
}

static void check_shown(const struct value_case *c)
{
    const struct gp_value *name = value(0, GP_NAME);
    const struct gp_value *temperature = value(0, GP_TEMPERATURE_GPU);
    const char *why = c->status == GP_STATUS_OK ? "the latest says so" : "the taker says so";
    assert_int_equal(name->status, c->shown_name);
    assert_int_equal(temperature->status, c->shown_temperature);
    if (c->shown_name == GP_STATUS_OK)
        assert_string_equal(name->s, c->from_good ? "good" : "latest");
    if (gp_value_is_present(temperature)) {
        assert_int_equal(temperature->i, c->shown_temperature == GP_STATUS_OK ? 1 : 2);
        assert_true(gp_value_time_ns(temperature) == BENCH_READ_NS);
    } else if (c->shown_temperature == GP_STATUS_UNSUPPORTED) {
        assert_string_equal(temperature->s, "cannot");
    } else {
        check_absent(temperature, c->shown_temperature,
                     c->shown_temperature == GP_STATUS_ERROR ? why : NULL);
    }
}

static void a_value_becomes_what_is_known(void **state)
{
    const struct value_case *c = *state;
    begin(NULL);
    want(GP_NAME);
    want(GP_TEMPERATURE_GPU);
    make();
    if (c->latest != GP_STATUS_NONE) {
        bench.slots[0].latest = new_reading(c->latest);
        set_both(bench.slots[0].latest, c->latest_value, "latest", 1);
        (void)snprintf(bench.slots[0].latest->status_text,
                       sizeof(bench.slots[0].latest->status_text), "the latest says so");
        bench.slots[0].latest->driver_code = 15;
        bench.slots[0].latest->refused = true;
    }
    if (c->good_value != GP_STATUS_NONE) {
        bench.slots[0].good = new_reading(GP_STATUS_OK);
        set_both(bench.slots[0].good, c->good_value, "good", 2);
    }
    if (c->latest == GP_STATUS_OK)
        bench.slots[0].latest->processes_status = GP_STATUS_OK;
    tick_one(c->status, "the taker says so");
    check_shown(c);
    const struct gp_device *device = &bench.snapshot->devices[0];
    bool heard = c->status == GP_STATUS_OK;
    assert_int_equal(device->status, heard ? c->latest : c->status);
    assert_string_equal(device->status_text, heard ? "the latest says so" : "the taker says so");
    assert_int_equal(device->driver_code, heard ? 15 : 0);
    assert_int_equal(device->refused, heard);
    assert_true(heard ? device->silent_s < 1 : device->silent_s > 2);
    assert_int_equal(device->processes_status, c->processes);
    end();
}

static void a_gpu_says_how_it_stands_where_that_is_asked(void **state)
{
    (void)state;
    for (int asked = 0; asked < 4; asked++) {
        begin(NULL);
        if (asked & 1)
            want(GP_STATUS);
        if (asked & 2)
            want(GP_STATUS_TEXT);
        make();
        (void)answer(0);
        bench.slots[2].index = 7;
        open_tick(3);
        take(0, GP_STATUS_OK, "");
        take(1, GP_STATUS_LOST, "fell off");
        take(2, GP_STATUS_TIMEOUT, "no answer");
        assert_int_equal(close_tick(), 0);
        static const char *const words[] = {"ok", "lost", "timeout"};
        static const char *const texts[] = {"ok", "fell off", "no answer"};
        for (size_t i = 0; i < 3; i++) {
            check_int(value(i, GP_INDEX), GP_STATUS_OK, i == 2 ? 7 : (int64_t)i);
            assert_true(gp_value_time_ns(value(i, GP_INDEX)) == BENCH_MONO_NS);
            if (asked & 1)
                check_text(value(i, GP_STATUS), GP_STATUS_OK, words[i]);
            else
                assert_int_equal(value(i, GP_STATUS)->status, GP_STATUS_NONE);
            if (asked & 2)
                check_text(value(i, GP_STATUS_TEXT), GP_STATUS_OK, texts[i]);
            else
                assert_int_equal(value(i, GP_STATUS_TEXT)->status, GP_STATUS_NONE);
        }
        end();
    }
}

static void who_does_not_answer_says_where_it_is(void **state)
{
    (void)state;
    begin(NULL);
    make();
    for (unsigned i = 0; i < 2; i++)
        set_text(answer(i)->values, GP_PCI_BUS_ID, i ? "bus 1" : "bus 0");
    open_tick(2);
    take(0, GP_STATUS_OK, "");
    take(1, GP_STATUS_TIMEOUT, "no answer");
    assert_int_equal(close_tick(), 0);
    assert_int_equal(value(0, GP_PCI_BUS_ID)->status, GP_STATUS_NONE); /* nobody asked */
    check_text(value(1, GP_PCI_BUS_ID), GP_STATUS_OK, "bus 1");
    end();
}

static void words_that_come_from_outside_are_made_safe(void **state)
{
    (void)state;
    begin(NULL);
    make();
    tick_one(GP_STATUS_ERROR, "a\x1b[31mb");
    assert_string_equal(bench.snapshot->devices[0].status_text, "a\\x1b[31mb");
    end();
}

/* ---- instances ---- */

static void fill_instances(void)
{
    struct gp_reading *reading = answer(0);
    set_text(reading->values, GP_PCI_BUS_ID, "bus 0");
    set_text(reading->values, GP_UUID, "GPU-a");
    set_text(reading->values, GP_NAME, "the GPU");
    struct gp_mig_reading *mig = add_instances(reading, 2);
    for (int i = 0; i < 2; i++) {
        set_text(mig[i].values, GP_UUID, i ? "MIG-1" : "MIG-0");
        set_text(mig[i].values, GP_NAME, i ? "part 1" : "part 0");
        set_int(mig[i].values, GP_MEMORY_USED, 100 + i);
        set_absent(mig[i].values, GP_FAN_SPEED, GP_STATUS_UNSUPPORTED, NULL);
    }
}

static void check_instances(enum gp_status status)
{
    assert_int_equal(bench.snapshot->device_count, 3);
    assert_false(bench.snapshot->devices[0].is_mig);
    assert_int_equal(value(0, GP_MIG_GPU_UUID)->status,
                     status == GP_STATUS_OK ? GP_STATUS_NONE : status);
    for (size_t row = 1; row < 3; row++) {
        const struct gp_device *device = &bench.snapshot->devices[row];
        assert_true(device->is_mig);
        assert_int_equal(device->index, 0);
        assert_int_equal(device->mig_index, 9 + row);
        assert_int_equal(device->status, status);
        check_text(value(row, GP_NAME), GP_STATUS_OK, row == 1 ? "part 0" : "part 1");
        check_int(value(row, GP_MEMORY_USED), status == GP_STATUS_OK ? status : GP_STATUS_STALE,
                  99 + (int64_t)row);
        assert_int_equal(value(row, GP_FAN_SPEED)->status, GP_STATUS_UNSUPPORTED);
        check_text(value(row, GP_PCI_BUS_ID), GP_STATUS_OK, "bus 0");
        check_text(value(row, GP_MIG_GPU_UUID), GP_STATUS_OK, "GPU-a");
        check_text(value(row, GP_UUID), GP_STATUS_OK, row == 1 ? "MIG-0" : "MIG-1");
        check_text(value(row, GP_STATUS), GP_STATUS_OK, status == GP_STATUS_OK ? "ok" : "timeout");
        check_int(value(row, GP_INDEX), GP_STATUS_OK, 0);
    }
}

static void instances_stand_below_their_gpu(void **state)
{
    static const enum gp_metric metrics[] = {
        GP_NAME, GP_UUID, GP_PCI_BUS_ID, GP_MEMORY_USED, GP_FAN_SPEED, GP_MIG_GPU_UUID, GP_STATUS};
    (void)state;
    begin(NULL);
    bench.want.mig = true;
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        want(metrics[i]);
    make();
    fill_instances();
    tick_one(GP_STATUS_OK, "");
    check_instances(GP_STATUS_OK);
    tick_one(GP_STATUS_TIMEOUT, "no answer");
    check_instances(GP_STATUS_TIMEOUT);
    tick_one(GP_STATUS_RELEASED, "let go"); /* the last ones may be gone */
    assert_int_equal(bench.snapshot->device_count, 1);
    end();
}

static void whose_gpu_it_is_stands_only_where_that_is_asked(void **state)
{
    (void)state;
    begin(NULL);
    bench.want.mig = true;
    make();
    fill_instances();
    tick_one(GP_STATUS_OK, "");
    assert_int_equal(bench.snapshot->device_count, 3);
    assert_int_equal(value(1, GP_MIG_GPU_UUID)->status, GP_STATUS_NONE);
    end();
    begin(NULL); /* nobody asked for instances */
    make();
    fill_instances();
    tick_one(GP_STATUS_OK, "");
    assert_int_equal(bench.snapshot->device_count, 1);
    end();
}

/* ---- which rows ---- */

/* A GPU with the identity of fill_instances(), and which of its rows are chosen. */
struct choice_case {
    const char *choice;
    enum gp_status status;
    unsigned rows; /* bits: 1 the GPU, 2 and 4 its instances */
};

static struct choice_case choice_cases[] = {
    {"GPU-a", S(OK), 7},       {"MIG-1", S(OK), 4},      {"MIG-0", S(OK), 2},
    {"MIG-0,MIG-1", S(OK), 6}, {"0", S(OK), 7},          {"the GPU", S(OK), 7},
    {"GPU-a,MIG-1", S(OK), 7}, {"MIG-1", S(TIMEOUT), 4}, {"part,GPU-a", S(TIMEOUT), 7},
};

static void rows_are_chosen_by_who_they_are(void **state)
{
    const struct choice_case *c = *state;
    unsigned rows = 0;
    begin(c->choice);
    bench.want.mig = true;
    make();
    fill_instances();
    open_tick(1);
    take(0, c->status, c->status == GP_STATUS_OK ? "" : "no answer");
    /* An instance has no name that a choice could be about. */
    assert_int_equal(close_tick(), strstr(c->choice, "part") ? GP_ENODEV : 0);
    for (size_t i = 0; bench.snapshot && i < bench.snapshot->device_count; i++) {
        const struct gp_device *device = &bench.snapshot->devices[i];
        rows |= device->is_mig ? 2u << (device->mig_index - 10) : 1u;
    }
    if (bench.snapshot)
        assert_int_equal(rows, c->rows);
    end();
}

static void whether_a_gpu_is_chosen_is_known_once_it_has_said_who_it_is(void **state)
{
    static const struct {
        const char *choice;
        bool chosen;
    } cases[] = {{"GPU-a", true},  {"GPU-b", false}, {"MIG-0", true},   {"MIG-1", true},
                 {"MIG-2", false}, {"part", false},  {"the gpu", true}, {"1", false}};
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        begin(cases[i].choice);
        make();
        fill_instances();
        assert_int_equal(gp_assembler_chooses(&bench.a, &bench.slots[0]), cases[i].chosen);
        end();
    }
}

/* GPU 0 is well and the one that is meant; how GPU 1 stands, and whether it stays. */
struct stay_case {
    const char *choice;
    const char *name; /* of GPU 1; NULL: it has never said it */
    enum gp_status status;
    size_t instances; /* that it had */
    bool stays;
};

static struct stay_case stay_cases[] = {
    {"fine", NULL, S(LOST), 0, true},         {"fine", "other", S(LOST), 0, false},
    {"fine", "finest", S(LOST), 0, true},     {"GPU-fine", NULL, S(LOST), 0, false},
    {"MIG-0", NULL, S(LOST), 0, true},        {"MIG-0", "other", S(TIMEOUT), 0, true},
    {"MIG-0", "other", S(TIMEOUT), 2, false}, {"MIG-0", "other", S(LOST), 2, false},
    {"0", NULL, S(LOST), 0, false},           {"MIG-0", "other", S(OK), 0, false},
};

static void who_cannot_say_who_it_is_may_be_meant(void **state)
{
    const struct stay_case *c = *state;
    begin(c->choice);
    bench.want.mig = true;
    make();
    struct gp_reading *reading = answer(0);
    set_text(reading->values, GP_NAME, "fine");
    set_text(reading->values, GP_UUID, "GPU-fine");
    set_text(add_instances(reading, 1)->values, GP_UUID, "MIG-0");
    if (c->name) {
        reading = answer(1);
        set_text(reading->values, GP_NAME, c->name);
        set_text(reading->values, GP_UUID, "GPU-other");
        (void)add_instances(reading, c->instances);
    }
    open_tick(2);
    take(0, GP_STATUS_OK, "");
    take(1, c->status, c->status == GP_STATUS_OK ? "" : "fell off");
    assert_int_equal(close_tick(), 0);
    bool there = false;
    for (size_t i = 0; i < bench.snapshot->device_count; i++)
        there = there || bench.snapshot->devices[i].index == 1;
    assert_int_equal(there, c->stays);
    assert_int_equal(bench.snapshot->partial, c->stays);
    end();
}

/* Nobody matches, and GPU 1 stands so: may it be the one? */
static void a_term_that_nobody_matches(void **state)
{
    static const struct {
        const char *choice;
        enum gp_status status;
        bool known;
        int code;
        const char *words;
    } cases[] = {
        {"GPU-x", S(OK), true, GP_ENODEV, "no GPU matches 'GPU-x'; this machine has 2 (0 to 1)"},
        {"GPU-x", S(TIMEOUT), true, GP_ENODEV,
         "no GPU matches 'GPU-x'; this machine has 2 (0 to 1)"},
        {"GPU-x", S(TIMEOUT), false, GP_EPARTIAL,
         "cannot resolve --id: GPU 1 has not been identified: silent"},
        {"MIG-x", S(TIMEOUT), true, GP_EPARTIAL,
         "cannot resolve --id: GPU 1 has not been identified: silent"},
        {"MIG-x", S(OK), true, GP_ENODEV, "no GPU matches 'MIG-x'; this machine has 2 (0 to 1)"},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        begin(cases[i].choice);
        make();
        for (unsigned slot = 0; slot < (cases[i].known ? 2 : 1); slot++)
            set_text(answer(slot)->values, GP_UUID, slot ? "GPU-b" : "GPU-a");
        open_tick(2);
        take(0, GP_STATUS_OK, "");
        take(1, cases[i].status, cases[i].status == GP_STATUS_OK ? "" : "silent");
        assert_int_equal(close_tick(), cases[i].code);
        assert_string_equal(bench.err.text, cases[i].words);
        end();
    }
}

/* ---- what is missing ---- */

/* What a GPU says of itself, its processes and its list of fans; what was asked for: bits, 1
 * processes, 2 fans, 4 fans later on; and whether the sample is partial. */
struct partial_case {
    enum gp_status status, processes, fans;
    unsigned asked;
    bool partial;
};

static struct partial_case partial_cases[] = {
    {S(OK), S(OK), S(OK), 7, false},           {S(OK), S(ERROR), S(ERROR), 0, false},
    {S(OK), S(ERROR), S(OK), 1, true},         {S(OK), S(ERROR), S(OK), 6, false},
    {S(OK), S(NO_PERMISSION), S(OK), 1, true}, {S(OK), S(UNSUPPORTED), S(OK), 1, false},
    {S(OK), S(OK), S(ERROR), 1, false},        {S(OK), S(OK), S(ERROR), 2, true},
    {S(OK), S(OK), S(ERROR), 4, true},         {S(OK), S(OK), S(NO_PERMISSION), 2, true},
    {S(OK), S(OK), S(UNSUPPORTED), 6, false},  {S(TIMEOUT), S(OK), S(OK), 0, true},
    {S(LOST), S(OK), S(OK), 0, true},          {S(ERROR), S(OK), S(OK), 0, true},
    {S(NO_PERMISSION), S(OK), S(OK), 0, true}, {S(ASLEEP), S(OK), S(OK), 7, false},
    {S(RELEASED), S(OK), S(OK), 7, false},
};

static void what_is_missing_makes_a_sample_partial(void **state)
{
    const struct partial_case *c = *state;
    const uint32_t fans = UINT32_C(1) << gp_list_index(GP_SCOPE_FAN);
    begin(NULL);
    bench.want.processes = c->asked & 1;
    bench.want.lists = c->asked & 2 ? fans : 0;
    make();
    gp_assembler_set_lists(&bench.a, c->asked & 4 ? fans : 0);
    for (unsigned i = 0; i < 2; i++) {
        struct gp_reading *reading = answer(i);
        reading->processes_status = i ? GP_STATUS_OK : c->processes;
        reading->lists[gp_list_index(GP_SCOPE_FAN)].status = i ? GP_STATUS_OK : c->fans;
    }
    open_tick(2);
    take(0, c->status, "why");
    take(1, GP_STATUS_OK, "");
    assert_int_equal(close_tick(), 0);
    assert_int_equal(bench.snapshot->partial, c->partial);
    const struct gp_device *device = &bench.snapshot->devices[0];
    assert_int_equal(device->processes_status,
                     c->status == GP_STATUS_OK ? c->processes : c->status);
    assert_int_equal(device->list_status[gp_list_index(GP_SCOPE_FAN)],
                     c->status == GP_STATUS_OK ? c->fans : c->status);
    end();
}

static void what_is_missing_of_a_gpu_that_is_not_chosen_does_not_matter(void **state)
{
    (void)state;
    begin("0");
    make();
    (void)answer(0);
    open_tick(2);
    take(0, GP_STATUS_OK, "");
    take(1, GP_STATUS_LOST, "fell off");
    assert_int_equal(close_tick(), 0);
    assert_int_equal(bench.snapshot->device_count, 1);
    assert_false(bench.snapshot->partial);
    end();
}

/* ---- lists ---- */

static const struct gp_value *entry(size_t row, enum gp_metric m)
{
    const struct gp_entries *fans = &bench.snapshot->lists[gp_list_index(GP_SCOPE_FAN)];
    assert_true(row < fans->count);
    return &fans->entries[row].values[m - GP_FAN_NUMBER];
}

static void fill_fans(struct gp_reading *reading, size_t count)
{
    struct gp_list *fans = &reading->lists[gp_list_index(GP_SCOPE_FAN)];
    size_t width = gp_scope_width(GP_SCOPE_FAN);
    *fans = (struct gp_list){.status = GP_STATUS_OK, .count = count};
    fans->values = gp_arena_alloc(&reading->arena, count * width + 1, sizeof(*fans->values));
    assert_non_null(fans->values);
    for (size_t i = 0; i < count; i++) {
        struct gp_value *row = &fans->values[i * width];
        gp_value_set_int(&row[0], (int64_t)i, BENCH_READ_NS);
        gp_value_set_text(&row[GP_FAN_POLICY - GP_FAN_NUMBER], i ? "Manual" : "Automatic",
                          BENCH_READ_NS);
        gp_value_set_int(&row[GP_FAN_MAX - GP_FAN_NUMBER], 90 + (int64_t)i, BENCH_READ_NS);
        gp_value_set_absent(&row[GP_FAN_RPM - GP_FAN_NUMBER], GP_STATUS_UNSUPPORTED, "no sensor",
                            BENCH_READ_NS);
    }
}

static void check_fans(size_t first, size_t count, enum gp_status status)
{
    for (size_t i = 0; i < count; i++) {
        check_int(entry(first + i, GP_FAN_NUMBER), status, (int64_t)i);
        check_text(entry(first + i, GP_FAN_POLICY), status, i ? "Manual" : "Automatic");
        check_int(entry(first + i, GP_FAN_MAX), GP_STATUS_OK, 90 + (int64_t)i);
        check_absent(entry(first + i, GP_FAN_RPM), GP_STATUS_UNSUPPORTED, "no sensor");
    }
}

static void lists_have_the_rows_of_each_gpu(void **state)
{
    (void)state;
    begin(NULL);
    bench.want.mig = true;
    make();
    gp_assembler_set_lists(&bench.a, UINT32_C(1) << gp_list_index(GP_SCOPE_FAN));
    fill_fans(answer(0), 2);
    (void)add_instances(bench.slots[0].latest, 1); /* no rows of their own */
    fill_fans(answer(1), 1);
    fill_fans(answer(2), 3);
    open_tick(3);
    take(0, GP_STATUS_OK, "");
    take(1, GP_STATUS_TIMEOUT, "no answer");
    take(2, GP_STATUS_OK, "");
    assert_int_equal(close_tick(), 0);
    const struct gp_entries *fans = &bench.snapshot->lists[gp_list_index(GP_SCOPE_FAN)];
    static const size_t devices[] = {0, 0, 2, 3, 3, 3};
    assert_int_equal(fans->count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(fans->entries[i].device, devices[i]);
    check_fans(0, 2, GP_STATUS_OK);
    check_fans(2, 1, GP_STATUS_STALE);
    check_fans(3, 3, GP_STATUS_OK);
    /* it outlives the reading */
    const struct gp_list *read = &bench.slots[0].latest->lists[gp_list_index(GP_SCOPE_FAN)];
    assert_ptr_not_equal(entry(0, GP_FAN_POLICY)->s, read->values[GP_FAN_POLICY - GP_FAN_NUMBER].s);
    for (size_t i = 0; i < GP_LIST__COUNT; i++)
        assert_true(i == gp_list_index(GP_SCOPE_FAN) || bench.snapshot->lists[i].count == 0);
    end();
}

static void a_list_that_is_not_known_says_why(void **state)
{
    (void)state;
    begin(NULL);
    bench.want.lists = UINT32_C(1) << gp_list_index(GP_SCOPE_FAN);
    make();
    answer(0)->lists[gp_list_index(GP_SCOPE_FAN)] =
        (struct gp_list){.status = GP_STATUS_NO_PERMISSION, .words = "only for root"};
    open_tick(3);
    take(0, GP_STATUS_OK, "");
    take(1, GP_STATUS_ERROR, "broken");
    take(2, GP_STATUS_LOST, "fell off");
    assert_int_equal(close_tick(), 0);
    assert_int_equal(bench.snapshot->lists[gp_list_index(GP_SCOPE_FAN)].count, 3);
    for (int m = GP_FAN_NUMBER; m <= GP_FAN_MAX; m++) {
        check_absent(entry(0, (enum gp_metric)m), GP_STATUS_NO_PERMISSION, "only for root");
        check_absent(entry(1, (enum gp_metric)m), GP_STATUS_ERROR, "broken");
        check_absent(entry(2, (enum gp_metric)m), GP_STATUS_LOST, NULL);
    }
    end();
    /* one that was known, of a GPU that is silent about it now */
    begin(NULL);
    bench.want.lists = UINT32_C(1) << gp_list_index(GP_SCOPE_FAN);
    make();
    answer(0)->lists[gp_list_index(GP_SCOPE_FAN)] =
        (struct gp_list){.status = GP_STATUS_UNSUPPORTED, .words = "no fans"};
    tick_one(GP_STATUS_TIMEOUT, "no answer");
    check_absent(entry(0, GP_FAN_NUMBER), GP_STATUS_TIMEOUT, NULL);
    end();
}

/* ---- the host ---- */

struct host_case {
    enum gp_metric metric;
    unsigned part;
    int64_t number;
};

static struct host_case host_cases[] = {
    {GP_HOST_CPU, GP_PROC_HOST_CPU, 11},
    {GP_HOST_CPU_COUNT, GP_PROC_HOST_CPU_COUNT, 12},
    {GP_HOST_LOAD, GP_PROC_HOST_LOAD, 13},
    {GP_HOST_MEMORY_TOTAL, GP_PROC_HOST_MEMORY, 14},
    {GP_HOST_MEMORY_AVAILABLE, GP_PROC_HOST_MEMORY, 15},
    {GP_HOST_SWAP_TOTAL, GP_PROC_HOST_SWAP, 16},
    {GP_HOST_SWAP_USED, GP_PROC_HOST_SWAP, 17},
    {GP_HOST_UPTIME, GP_PROC_HOST_UPTIME, 18},
};

static void begin_host(const struct host_case *c, unsigned known)
{
    begin(NULL);
    bench.want.host_only = true;
    bench.want.host_every_ns = BENCH_READ_NS;
    bench.host = (struct gp_proc_host){known, {0}, 11, 12, 13, 14, 15, 16, 17, 18};
    for (size_t i = 0; i < GP_PROC_HOST_PARTS; i++)
        bench.host.read_ns[i] = BENCH_MONO_NS - (i + 1) * GP_NS_PER_US;
    want(c->metric);
    make();
    open_tick(0);
    assert_int_equal(close_tick(), 0);
    assert_int_equal(bench.host_reads, 1);
    assert_int_equal(bench.host_want, c->part);
    assert_int_equal(bench.host_every_ns, BENCH_READ_NS);
}

static void the_host_is_asked_for_its_part(void **state)
{
    const struct host_case *c = *state;
    begin_host(c, c->part);
    for (size_t i = 0; i < GP_ARRAY_LEN(host_cases); i++) {
        enum gp_metric m = host_cases[i].metric;
        const struct gp_value *v = &bench.snapshot->host[m];
        if (host_cases[i].part != c->part)
            assert_int_equal(v->status, GP_STATUS_NONE);
        else if (gp_metric_table[m].type == GP_TYPE_REAL)
            assert_true(v->status == GP_STATUS_OK && (int64_t)v->f == host_cases[i].number);
        else
            check_int(v, GP_STATUS_OK, host_cases[i].number);
        if (host_cases[i].part == c->part) /* it was read before this sample */
            assert_int_equal(gp_value_time_ns(v), bench.host.read_ns[__builtin_ctz(c->part)]);
    }
    end();
    begin_host(c, ~c->part);
    check_absent(&bench.snapshot->host[c->metric], GP_STATUS_UNSUPPORTED, NULL);
    end();
}

static void the_host_has_a_name_a_time_and_what_the_driver_says(void **state)
{
    struct gp_value host[GP_HOST__COUNT] = {{{0}, 0, 0}};
    char version[] = "550.1";
    (void)state;
    begin(NULL);
    bench.host_name = "a\x1b[1mb";
    make();
    gp_value_set_text(&host[GP_DRIVER_VERSION], version, BENCH_READ_NS);
    gp_value_set_int(&host[GP_COUNT], 77, BENCH_READ_NS);
    gp_value_set_absent(&host[GP_CUDA_VERSION], GP_STATUS_ERROR, "broken", BENCH_READ_NS);
    gp_assembler_set_driver(&bench.a, host);
    memset(version, 'x', sizeof(version) - 1); /* a later session */
    (void)answer(0);
    (void)answer(1);
    tick_all(2);
    assert_int_equal(bench.host_reads, 0);
    assert_true(bench.snapshot->mono_ns == BENCH_MONO_NS);
    assert_true(bench.snapshot->wall_ns == BENCH_WALL_NS);
    char time[GP_RFC3339_SIZE];
    gp_clock_rfc3339(BENCH_WALL_NS, time);
    check_text(&bench.snapshot->host[GP_TIMESTAMP], GP_STATUS_OK, time);
    check_text(&bench.snapshot->host[GP_HOST_NAME], GP_STATUS_OK, "a\\x1b[1mb");
    check_text(&bench.snapshot->host[GP_DRIVER_VERSION], GP_STATUS_OK, "550.1");
    check_absent(&bench.snapshot->host[GP_CUDA_VERSION], GP_STATUS_ERROR, "broken");
    check_int(&bench.snapshot->host[GP_COUNT], GP_STATUS_OK, 2);
    end();
}

/* What the driver says cannot be kept: that it is missing is said where it would stand. */
static void a_version_for_which_there_is_no_memory(void **state)
{
    struct gp_value host[GP_HOST__COUNT] = {{{0}, 0, 0}};
    (void)state;
    begin(NULL);
    make();
    gp_value_set_text(&host[GP_DRIVER_VERSION], "550.1", BENCH_READ_NS);
    gp_value_set_int(&host[GP_COUNT], 77, BENCH_READ_NS);
    alloc_fail_from(0);
    gp_assembler_set_driver(&bench.a, host);
    alloc_fail_from(-1);
    (void)answer(0);
    tick_all(1);
    check_absent(&bench.snapshot->host[GP_DRIVER_VERSION], GP_STATUS_ERROR, "out of memory");
    end();
}

/* Whichever allocation fails, there is a whole sample or none. */
static void a_tick_without_memory(void **state)
{
    struct gp_value host[GP_HOST__COUNT] = {{{0}, 0, 0}};
    (void)state;
    begin(NULL);
    want(GP_NAME);
    want(GP_UUID);
    want(GP_PROCESS_SUSPENDED);
    make();
    gp_value_set_text(&host[GP_DRIVER_VERSION], "550.1", BENCH_READ_NS);
    gp_assembler_set_driver(&bench.a, host);
    set_text(answer(0)->values, GP_NAME, "a GPU");
    bool whole = false;
    for (long n = 0; n < 200 && !whole; n++) {
        bench.err = (struct gp_err){0};
        alloc_fail_at(n);
        int r = gp_assembler_prepare(&bench.a, &bench.err);
        if (r == 0)
            r = gp_assembler_start(&bench.a, 1, 1, &bench.err);
        if (r == 0) {
            take(0, GP_STATUS_OK, "");
            r = close_tick();
        }
        whole = alloc_count() <= n;
        alloc_fail_from(-1);
        if (r < 0) {
            assert_int_equal(r, GP_ENOMEM);
            assert_ptr_equal(strstr(bench.err.text, "out of memory"), bench.err.text);
            assert_null(bench.snapshot);
            continue;
        }
        assert_true(whole);
        check_text(&bench.snapshot->host[GP_DRIVER_VERSION], GP_STATUS_OK, "550.1");
        check_text(value(0, GP_NAME), GP_STATUS_OK, "a GPU");
    }
    assert_true(whole);
    end();
}

static void the_name_of_a_host_is_cut_or_unknown(void **state)
{
    char name[300];
    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    begin(NULL);
    bench.host_name = name;
    make();
    tick_all(0);
    name[255] = '\0';
    check_text(&bench.snapshot->host[GP_HOST_NAME], GP_STATUS_OK, name);
    bench.host_name = NULL;
    tick_all(0);
    check_text(&bench.snapshot->host[GP_HOST_NAME], GP_STATUS_OK, "unknown");
    end();
}

/* ---- whether there is work ---- */

static void work_is_a_busy_gpu_or_one_who_computes(void **state)
{
    static const struct {
        enum gp_status status;
        int64_t busy;
        const char *type; /* of a process; NULL: there is none */
        bool works;
    } cases[] = {
        {S(OK), 0, NULL, false},          {S(OK), 1, NULL, true}, {S(STALE), 1, NULL, true},
        {S(UNSUPPORTED), 1, NULL, false}, {S(OK), 0, "C", true},  {S(OK), 0, "G", false},
        {S(OK), 0, "C+G", true},          {S(OK), 0, "S", false}, {S(UNSUPPORTED), 0, "M", true},
        {S(LOST), 100, "G", false},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_device devices[2] = {{.index = 0}, {.index = 1}};
        struct gp_value values[2][GP_PROCESS__COUNT] = {{{{0}, 0, 0}}};
        struct gp_process processes[] = {{.cells = values[0]}, {.cells = values[1]}};
        struct gp_value *busy = gp_device_value(devices[1].values, GP_UTILIZATION_GPU);
        *busy = (struct gp_value){.i = cases[i].busy, .status = cases[i].status};
        values[0][GP_PROCESS_TYPE - GP_PROCESS__FIRST].status = GP_STATUS_UNSUPPORTED;
        gp_value_set_text(&values[1][GP_PROCESS_TYPE - GP_PROCESS__FIRST], cases[i].type, 1);
        const struct gp_snapshot snapshot = {.devices = devices,
                                             .device_count = 2,
                                             .processes = processes,
                                             .process_count = cases[i].type ? 2 : 1};
        assert_int_equal(gp_snapshot_has_work(&snapshot), cases[i].works);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_needed_is_asked_of_the_source),
        cmocka_unit_test(a_choice_asks_who_the_gpus_are),
        cmocka_unit_test(more_is_asked_for_instances_activity_and_what_comes_later),
        cmocka_unit_test(without_rows_of_gpus_the_driver_is_needed_for_what_it_alone_knows),
        cmocka_unit_test(a_gpu_says_how_it_stands_where_that_is_asked),
        cmocka_unit_test(who_does_not_answer_says_where_it_is),
        cmocka_unit_test(words_that_come_from_outside_are_made_safe),
        cmocka_unit_test(instances_stand_below_their_gpu),
        cmocka_unit_test(whose_gpu_it_is_stands_only_where_that_is_asked),
        cmocka_unit_test(whether_a_gpu_is_chosen_is_known_once_it_has_said_who_it_is),
        cmocka_unit_test(a_term_that_nobody_matches),
        cmocka_unit_test(what_is_missing_of_a_gpu_that_is_not_chosen_does_not_matter),
        cmocka_unit_test(lists_have_the_rows_of_each_gpu),
        cmocka_unit_test(a_list_that_is_not_known_says_why),
        cmocka_unit_test(the_host_has_a_name_a_time_and_what_the_driver_says),
        cmocka_unit_test(a_version_for_which_there_is_no_memory),
        cmocka_unit_test(a_tick_without_memory),
        cmocka_unit_test(the_name_of_a_host_is_cut_or_unknown),
        cmocka_unit_test(work_is_a_busy_gpu_or_one_who_computes),
    };
    struct rows rows = {0};
    static char names[64][32];
    size_t n = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(value_cases); i++)
        rows_add(&rows, value_cases[i].name, a_value_becomes_what_is_known, &value_cases[i]);
    for (size_t i = 0; i < GP_ARRAY_LEN(choice_cases); i++, n++) {
        (void)snprintf(names[n], sizeof(names[n]), "choice %zu: %s", i, choice_cases[i].choice);
        rows_add(&rows, names[n], rows_are_chosen_by_who_they_are, &choice_cases[i]);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(stay_cases); i++, n++) {
        (void)snprintf(names[n], sizeof(names[n]), "stay %zu: %s", i, stay_cases[i].choice);
        rows_add(&rows, names[n], who_cannot_say_who_it_is_may_be_meant, &stay_cases[i]);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(partial_cases); i++, n++) {
        (void)snprintf(names[n], sizeof(names[n]), "partial %zu", i);
        rows_add(&rows, names[n], what_is_missing_makes_a_sample_partial, &partial_cases[i]);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(host_cases); i++)
        rows_add(&rows, GP_METRIC_NAME(host_cases[i].metric), the_host_is_asked_for_its_part,
                 &host_cases[i]);
    return rows_run(&rows, tests, GP_ARRAY_LEN(tests), NULL);
}
