#include "jobs/mem_model.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/json.h"

#include <stdio.h>
#include <string.h>

#define SIZE_MOST UINT64_C(1000000000)
#define TOTAL_MOST 9e18 /* bytes: the largest number in gpulse's JSON */

/* ---- the model ---- */

enum size { BATCH, SEQ, LAYERS, HIDDEN, VOCAB, HEADS, SIZE__COUNT };

static const char *const size_names[SIZE__COUNT] = {
    [BATCH] = "batch",   [SEQ] = "seq",     [LAYERS] = "layers",
    [HIDDEN] = "hidden", [VOCAB] = "vocab", [HEADS] = "heads",
};

/* An option that has an effect only together with another one. */
static const struct {
    enum size given, needed;
} needs[] = {
    {SEQ, BATCH},     {BATCH, SEQ},   {LAYERS, BATCH}, {LAYERS, HIDDEN}, {HIDDEN, BATCH},
    {HIDDEN, LAYERS}, {VOCAB, BATCH}, {HEADS, BATCH},  {HEADS, LAYERS},
};

static int check_sizes(const uint64_t sizes[SIZE__COUNT], struct gp_err *err)
{
    for (size_t i = 0; i < SIZE__COUNT; i++)
        if (sizes[i] > SIZE_MOST)
            return gp_err_set(err, GP_EUSAGE, "--%s takes at most 1000000000", size_names[i]);
    for (size_t i = 0; i < GP_ARRAY_LEN(needs); i++)
        if (sizes[needs[i].given] && !sizes[needs[i].needed])
            return gp_err_set(err, GP_EUSAGE,
                              "--%s needs --%s: activations are batch x seq x hidden x layers, "
                              "logits batch x seq x vocab",
                              size_names[needs[i].given], size_names[needs[i].needed]);
    if (sizes[BATCH] && !sizes[LAYERS] && !sizes[VOCAB])
        return gp_err_set(err, GP_EUSAGE,
                          "--batch and --seq count only with --layers and --hidden (for "
                          "activations), or with --vocab (for logits)");
    return 0;
}

static int check_training(const struct gp_mem_model *o, const struct gp_model *model,
                          struct gp_err *err)
{
    if (!o->inference && !model->dtype->can_train)
        return gp_err_set(err, GP_EUSAGE,
                          "%s weights cannot be trained; add --inference, or use another --dtype",
                          model->dtype->name);
    return 0;
}

/* One word from a table, or the default. */
static int find_words(const struct gp_mem_model *o, struct gp_model *ret, struct gp_err *err)
{
    ret->dtype = gp_dtype(o->dtype ? o->dtype : "bf16");
    if (!ret->dtype)
        return gp_err_set(err, GP_EUSAGE, "--dtype takes one of: " GP_DTYPE_WORDS);
    if (o->optimizer || !o->inference)
        ret->optimizer = gp_optimizer(o->optimizer ? o->optimizer : "adamw");
    if (!ret->optimizer && !o->inference)
        return gp_err_set(err, GP_EUSAGE, "--optimizer takes one of: " GP_OPTIMIZER_WORDS);
    return 0;
}

/* The first option about a model, NULL if there is none. */
static const char *first_option(const struct gp_mem_model *o, const uint64_t sizes[SIZE__COUNT])
{
    if (o->dtype)
        return "dtype";
    if (o->optimizer)
        return "optimizer";
    for (size_t i = 0; i < SIZE__COUNT; i++)
        if (sizes[i])
            return size_names[i];
    return o->inference ? "inference" : NULL;
}

int gp_mem_model_read(const struct gp_mem_model *o, struct gp_model *ret, bool *ret_asked,
                      struct gp_err *err)
{
    const uint64_t sizes[SIZE__COUNT] = {o->batch,  o->seq,   o->layers,
                                         o->hidden, o->vocab, o->heads};
    const char *option = first_option(o, sizes);
    struct gp_model m = {.batch = (double)o->batch,
                         .seq = (double)o->seq,
                         .layers = (double)o->layers,
                         .hidden = (double)o->hidden,
                         .vocab = (double)o->vocab,
                         .heads = (double)o->heads};
    const uint64_t params_least = 1000;
    uint64_t params;
    *ret_asked = o->params != NULL;
    if (!o->params && option)
        return gp_err_set(err, GP_EUSAGE,
                          "--%s needs a model; give its size, for example --params 7B", option);
    if (!o->params)
        return 0;
    if (!gp_parse_count(o->params, &params) || params == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "bad value '%.80s' for --params; expected a number of parameters, such "
                          "as 7B, 350M or 1.3e9",
                          o->params);
    if (params < params_least)
        return gp_err_set(err, GP_EUSAGE,
                          "--params %.40s is a model with %llu parameters; %lluB is %llu billion",
                          o->params, (unsigned long long)params, (unsigned long long)params,
                          (unsigned long long)params);
    m.params = (double)params;
    int r = find_words(o, &m, err);
    if (r == 0)
        r = check_training(o, &m, err);
    if (r == 0)
        r = check_sizes(sizes, err);
    if (r == 0 && gp_estimate(&m).total > TOTAL_MOST)
        r = gp_err_set(err, GP_EUSAGE,
                       "such a model needs more than 8 EiB; check --params and the sizes");
    if (r == 0)
        *ret = m;
    return r;
}

struct gp_want gp_mem_model_want(void)
{
    struct gp_want want = {.mig = true};
    static const enum gp_metric wanted[] = {GP_NAME,        GP_UUID,     GP_MEMORY_TOTAL,
                                            GP_MEMORY_FREE, GP_MIG_MODE, GP_MEMORY_RESERVED};
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        gp_metric_set_add(&want.metrics, wanted[i]);
    return want;
}

/* ---- the GPUs of this machine ---- */

/* A GPU or a MIG instance; of a partitioned GPU only the instances can run programs. */
struct place {
    double room, free; /* below 0: unknown */
    bool is_divided;
    struct gp_placement placement;
};

static const char *const fit_words[] = {
    [GP_ROOM_UNKNOWN] = "unknown",
    [GP_ROOM_NOW] = "now",
    [GP_ROOM_EMPTY] = "if empty",
    [GP_ROOM_NOT] = "no",
};

static struct place place_on(const struct gp_device *device, const struct gp_estimate *e)
{
    struct place p = {.room = -1, .free = -1};
    double total;
    double reserved;
    p.is_divided =
        !device->is_mig && strcmp(gp_device_text(device, GP_MIG_MODE, ""), "Enabled") == 0;
    if (gp_device_number_now(device, GP_MEMORY_TOTAL, &total))
        p.room = gp_device_number_now(device, GP_MEMORY_RESERVED, &reserved) && reserved < total
                     ? total - reserved
                     : total;
    if (!gp_device_number_now(device, GP_MEMORY_FREE, &p.free))
        p.free = -1;
    if (!p.is_divided)
        p.placement = gp_estimate_place(e, p.room, p.free);
    if (device->is_mig && p.placement.gpus > 1)
        p.placement.gpus = 0; /* a program uses one instance only */
    return p;
}

static const char *const not_counted[][2] = {
    {"activations", "--batch, --seq, --layers and --hidden"},
    {"logits", "--batch, --seq and --vocab"},
};

/* Whether the terms in that row are missing because dimensions are not given. */
static bool is_missing(const struct gp_model *m, size_t row)
{
    return row == 0 ? m->layers <= 0 : m->vocab <= 0;
}

/* ---- text ---- */

/* "7B", "1.3B", "6.738415616B", "350M", "12". */
static void add_params(struct gp_strbuf *sb, double params)
{
    static const struct {
        double factor;
        const char *name;
    } units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}};
    size_t i = 0;
    while (i < GP_ARRAY_LEN(units) && params < units[i].factor)
        i++;
    if (i < GP_ARRAY_LEN(units))
        gp_strbuf_addf(sb, "%.4g%s", params / units[i].factor, units[i].name);
    else
        gp_strbuf_addf(sb, "%.0f", params);
}

static void add_title(struct gp_strbuf *sb, const struct gp_model *m)
{
    gp_strbuf_adds(sb, "Estimate, not a measurement: a model of ");
    add_params(sb, m->params);
    gp_strbuf_addf(sb, " parameters in %s, ", m->dtype->name);
    if (m->optimizer)
        gp_strbuf_addf(sb, "trained with %s:\n", m->optimizer->name);
    else
        gp_strbuf_adds(sb, "for inference:\n");
}

static void add_terms(struct gp_strbuf *sb, const struct gp_model *m, const struct gp_estimate *e)
{
    for (size_t i = 0; i < e->count; i++) {
        const struct gp_estimate_term *t = &e->terms[i];
        gp_strbuf_addf(sb, "  %-15s  %9.2f GiB  = %s%s%s%s\n", gp_term_label(t->kind),
                       t->bytes / 0x1p30, t->formula, *t->about ? " (" : "", t->about,
                       *t->about ? ")" : "");
    }
    gp_strbuf_addf(sb, "  %-15s  %9.2f GiB  including %.2f GiB for the parameters, %g bytes each\n",
                   "total", e->total / 0x1p30, e->states / 0x1p30, e->states / m->params);
    for (size_t i = 0; i < GP_ARRAY_LEN(not_counted); i++)
        if (is_missing(m, i))
            gp_strbuf_addf(sb, "Not counted: %s; add %s\n", not_counted[i][0], not_counted[i][1]);
    gp_strbuf_adds(sb,
                   "Never counted: NCCL buffers (1 to 2 GiB with several GPUs), cuDNN and cuBLAS "
                   "workspaces, and the allocator's cache. What a job really uses: gpulse ps\n\n");
}

static void add_gib(struct gp_strbuf *sb, double bytes)
{
    if (bytes < 0)
        gp_strbuf_addf(sb, "  %8s", "-");
    else
        gp_strbuf_addf(sb, "  %8.2f", bytes / 0x1p30);
}

static void add_fit(struct gp_strbuf *sb, const struct gp_device *device, const struct place *p,
                    const struct gp_estimate *e)
{
    double gib = p->placement.short_by / 0x1p30;
    if (p->is_divided)
        gp_strbuf_adds(sb, "in MIG mode: programs run only on its instances");
    else if (p->placement.fit == GP_ROOM_NOW)
        gp_strbuf_addf(sb, "fits now, leaves %.2f GiB", (p->free - e->total) / 0x1p30);
    else if (p->placement.fit == GP_ROOM_EMPTY)
        gp_strbuf_addf(sb, "would fit if the GPU were empty; %.2f GiB short now", gib);
    else if (p->placement.fit == GP_ROOM_NOT)
        gp_strbuf_addf(sb, "too big by %.2f GiB", gib);
    else if (device->status != GP_STATUS_OK)
        gp_strbuf_adds(sb, gp_device_trouble(device));
    else
        gp_strbuf_adds(sb, "does not report its memory; it may be part of host memory");
}

static void add_place(struct gp_strbuf *sb, const struct gp_device *device, size_t width,
                      const struct gp_estimate *e)
{
    char label[GP_DEVICE_LABEL_SIZE];
    const struct place p = place_on(device, e);
    gp_device_label(device, label);
    gp_strbuf_addf(sb, "%5s  ", label);
    gp_utf8_add_padded(sb, gp_device_text(device, GP_NAME, "?"), width, false);
    add_gib(sb, p.room);
    add_gib(sb, p.free);
    if (p.placement.gpus > 0)
        gp_strbuf_addf(sb, "  %6u  ", p.placement.gpus);
    else
        gp_strbuf_addf(sb, "  %6s  ", "-");
    add_fit(sb, device, &p, e);
    gp_strbuf_addc(sb, '\n');
}

static void add_places(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_model *m, const struct gp_estimate *e)
{
    size_t width = strlen("NAME");
    for (size_t i = 0; i < snapshot->device_count; i++) {
        size_t n = gp_utf8_width(gp_device_text(&snapshot->devices[i], GP_NAME, "?"));
        width = n > width ? n : width;
    }
    gp_strbuf_adds(sb, "  GPU  ");
    gp_utf8_add_padded(sb, "NAME", width, false);
    gp_strbuf_addf(sb, "  %8s  %8s  %6s  %s\n", "ROOM-GiB", "FREE-GiB", "NEEDED", "FITS");
    for (size_t i = 0; i < snapshot->device_count; i++)
        add_place(sb, &snapshot->devices[i], width, e);
    gp_strbuf_addf(sb,
                   "NEEDED: minimum number of such GPUs, empty, with %s split evenly over them "
                   "(%s); -: no number is enough\n",
                   m->optimizer ? "weights, gradients and optimizer state" : "weights and KV cache",
                   m->optimizer ? "ZeRO-3, FSDP" : "tensor parallel");
}

void gp_mem_model_add(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_model *model, const char *why)
{
    const struct gp_estimate e = gp_estimate(model);
    add_title(sb, model);
    add_terms(sb, model, &e);
    if (why)
        gp_strbuf_addf(sb, "No GPU to compare with: %s\n", why);
    else
        add_places(sb, snapshot, model, &e);
}

/* ---- JSON ---- */

static json_t *bytes(double n)
{
    return n < 0 ? json_null() : json_integer((json_int_t)(n + 0.5));
}

static json_t *estimate_object(const struct gp_model *m, const struct gp_estimate *e)
{
    json_t *terms = json_array();
    json_t *missing = json_array();
    for (size_t i = 0; i < e->count; i++)
        (void)json_array_append_new(
            terms, json_pack("{s:s, s:o, s:s, s:s}", "name", gp_term_word(e->terms[i].kind),
                             "bytes", bytes(e->terms[i].bytes), "formula", e->terms[i].formula,
                             "about", e->terms[i].about));
    for (size_t i = 0; i < GP_ARRAY_LEN(not_counted); i++)
        if (is_missing(m, i))
            (void)json_array_append_new(missing, json_string(not_counted[i][0]));
    return json_pack("{s:o, s:s, s:s?, s:o, s:o, s:o, s:o, s:o}", "params", bytes(m->params),
                     "dtype", m->dtype->name, "optimizer", m->optimizer ? m->optimizer->name : NULL,
                     "terms", terms, "not_counted", missing, "states", bytes(e->states), "split",
                     bytes(e->split), "total", bytes(e->total));
}

static json_t *place_object(const struct gp_device *device, const struct gp_estimate *e)
{
    const struct place p = place_on(device, e);
    bool short_by = p.placement.fit == GP_ROOM_EMPTY || p.placement.fit == GP_ROOM_NOT;
    return json_pack("{s:i, s:o, s:s?, s:s?, s:o, s:o, s:s, s:o, s:o}", "gpu", (int)device->index,
                     "instance", device->is_mig ? json_integer(device->mig_index) : json_null(),
                     "uuid", gp_device_text(device, GP_UUID, NULL), "name",
                     gp_device_text(device, GP_NAME, NULL), "room", bytes(p.room), "free",
                     bytes(p.free), "fits", p.is_divided ? "divided" : fit_words[p.placement.fit],
                     "short_by", short_by ? bytes(p.placement.short_by) : json_null(), "needed",
                     p.placement.gpus > 0 ? json_integer(p.placement.gpus) : json_null());
}

void gp_mem_model_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                       const struct gp_model *model, const char *why)
{
    const struct gp_estimate e = gp_estimate(model);
    json_t *document = gp_json_document(snapshot, "gpulse.mem/1");
    json_t *places = json_array();
    for (size_t i = 0; !why && i < snapshot->device_count; i++)
        (void)json_array_append_new(places, place_object(&snapshot->devices[i], &e));
    (void)json_object_set_new(document, "estimate", estimate_object(model, &e));
    (void)json_object_set_new(document, "places", places);
    (void)json_object_set_new(document, "reason", why ? json_string(why) : json_null());
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
