/* gpulse doctor advise: which version fits these GPUs and this driver, and how to install it. */
#include "cmd/app.h"
#include "cmd/doctor_verbs.h"
#include "doctor/report.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "doctor/advise.h"
#include "doctor/cards.h"
#include "doctor/gpuset.h"
#include "model/snapshot.h"
#include "out/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { EXIT_NOTHING_FITS = 1, LABEL = 7, MOST_CARDS = 512 };

/* ---- the client ---- */

static const char *card_name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < gp_card_count ? gp_card_short_name(&gp_cards[i]) : NULL;
}

/* "8.9": a compute capability; false: a name. */
static bool read_capability(const char *text, unsigned *ret)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '.' || !isdigit((unsigned char)end[1]) ||
        end[2] || major > 99)
        return false;
    *ret = (unsigned)major * 10 + (unsigned)(end[1] - '0');
    return true;
}

static int add_model(struct gp_client *client, const char *name, struct gp_err *err)
{
    const struct gp_card *cards[MOST_CARDS] = {NULL};
    unsigned capability = 0;
    if (read_capability(name, &capability)) {
        if (!gp_arch_find(capability))
            return gp_err_set(err, GP_EUSAGE, "unknown compute capability '%s'", name);
        gp_client_add(client, capability);
        return 0;
    }
    size_t count = gp_cards_find(name, cards, MOST_CARDS);
    if (count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "unknown GPU model '%.60s'%s; gpulse doctor gpus lists them", name,
                          gp_cli_hint(name, card_name_at, NULL).text);
    capability = cards[0]->compute_capability;
    for (size_t i = 1; i < count && i < MOST_CARDS; i++)
        if (cards[i]->compute_capability != capability)
            return gp_err_set(err, GP_EUSAGE, "'%.60s' is ambiguous: %s or %s", name,
                              cards[0]->model, cards[i]->model);
    gp_client_add(client, capability);
    return 0;
}

static int add_models(struct gp_client *client, const char *list, struct gp_err *err)
{
    char name[128];
    for (const char *p = list; *p;) {
        p += strspn(p, " ");
        size_t n = strcspn(p, ",");
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, p);
        int r = n > 0 ? add_model(client, name, err) : 0;
        if (r < 0)
            return r;
        p += n + (p[n] == ',');
    }
    return client->count ? 0 : gp_err_set(err, GP_EUSAGE, "--gpu names no model");
}

static int client_of(struct gp_client *ret, const struct gp_doctor_options *o, struct gp_exam *exam,
                     struct gp_err *err)
{
    gp_client_of(ret, exam);
    if (o->gpu) {
        *ret = (struct gp_client){.driver = ""};
        ret->models = o->gpu;
        int r = add_models(ret, o->gpu, err);
        if (r < 0)
            return r;
    }
    if (!o->driver)
        return 0;
    if (!isdigit((unsigned char)o->driver[0]) || !gp_driver_find(o->driver))
        return gp_err_set(err, GP_EUSAGE, "'%.60s' is not a driver version; use one like 550.54.15",
                          o->driver);
    if (ret->count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "--driver: this machine has no NVIDIA GPU; name one: --gpu \"RTX 4090\"");
    ret->driver = o->driver;
    ret->is_here = false;
    return 0;
}

/* ---- text ---- */

/* `count` equal ones, of which this is the first. */
static void add_gpus(struct gp_strbuf *sb, const struct gp_exam *exam, const struct gp_pci_gpu *gpu,
                     size_t count)
{
    const struct gp_chip *chip = gpu->chip;
    const struct gp_device *listed = gp_gpuset_device_at(exam, gpu->bus_id);
    if (count > 1)
        gp_strbuf_addf(sb, "%zu GPUs", count);
    else if (listed)
        gp_strbuf_addf(sb, "GPU %u", listed->index);
    else
        gp_strbuf_addf(sb, "GPU %s", gpu->bus_id);
    gp_strbuf_adds(sb, ": ");
    if (chip)
        gp_strbuf_addf(sb, "%s, compute capability %u.%u\n", chip->name,
                       chip->compute_capability / 10, chip->compute_capability % 10);
    else
        gp_strbuf_addf(sb, "unknown (10de:%04x)\n", gpu->device);
}

/* The machine that the advice is for. `names`: the GPUs as they were asked for, or NULL. */
static void add_head(struct gp_strbuf *sb, const struct gp_client *client,
                     const struct gp_exam *exam, const char *names)
{
    const struct gp_machine *machine = &exam->machine;
    unsigned capability;
    bool is_name = names && client->count == 1 && !read_capability(names, &capability);
    const char *cuda = gp_cuda_ceiling(client->driver);
    gp_strbuf_adds(sb, client->is_here ? "" : "not this machine: commands for ");
    gp_doctor_add_safe(sb,
                       machine->distro_name[0] ? machine->distro_name : "an unknown distribution");
    gp_strbuf_adds(sb, client->driver[0] ? ", driver "
                       : client->is_here ? ", no driver"
                                         : ", driver not given");
    gp_doctor_add_safe(sb, client->driver);
    gp_strbuf_addf(sb, "%s%s\n", cuda[0] ? ", which implements CUDA " : "", cuda);
    bool has_files = client->is_here && machine->nvidia_count > 0;
    for (size_t i = 0, next; has_files && i < machine->gpu_count; i = next) {
        const struct gp_pci_gpu *gpu = &machine->gpus[i];
        for (next = i + 1; next < machine->gpu_count && machine->gpus[next].device == gpu->device &&
                           machine->gpus[next].vendor == gpu->vendor;)
            next++;
        if (gpu->vendor == GP_PCI_NVIDIA)
            add_gpus(sb, exam, gpu, next - i);
    }
    for (size_t i = 0; !has_files && i < client->count; i++) {
        const struct gp_arch *arch = gp_arch_find(client->capabilities[i]);
        gp_strbuf_adds(sb, "GPU: ");
        gp_doctor_add_safe(sb, is_name ? names : "");
        gp_strbuf_addf(sb, "%s%s, compute capability %u.%u\n", is_name ? ", " : "",
                       arch ? arch->architecture : "unknown", client->capabilities[i] / 10,
                       client->capabilities[i] % 10);
    }
    gp_strbuf_addc(sb, '\n');
}

static void add_finding(struct gp_strbuf *sb, const struct gp_finding *finding, bool has_sources)
{
    gp_doctor_add_prose(sb, finding->summary, 0);
    if (finding->why[0])
        gp_doctor_add_labeled(sb, "why", LABEL, finding->why);
    gp_doctor_add_fixes(sb, finding, "run", LABEL);
    for (const struct gp_evidence *e = finding->evidence; e; e = e->next)
        if (has_sources || strcmp(e->where, "source") != 0)
            gp_doctor_add_labeled(sb, e->where, LABEL, e->text);
}

/* ---- JSON ---- */

static json_t *finding_of(const struct gp_finding *finding)
{
    json_t *commands = json_array(), *facts = json_array();
    for (const struct gp_fix *fix = finding->fixes; fix; fix = fix->next)
        (void)json_array_append_new(commands, json_pack("{s:o, s:o}", "command",
                                                        gp_doctor_json_text_or_null(fix->command),
                                                        "note", gp_doctor_json_text(fix->note)));
    for (const struct gp_evidence *e = finding->evidence; e; e = e->next)
        (void)json_array_append_new(facts, json_pack("{s:s, s:o}", "about", e->where, "text",
                                                     gp_doctor_json_text(e->text)));
    return json_pack("{s:b, s:o, s:o, s:o, s:o}", "fits", finding->verdict != GP_VERDICT_WARN,
                     "summary", gp_doctor_json_text(finding->summary), "why",
                     gp_doctor_json_text(finding->why), "commands", commands, "facts", facts);
}

static void add_json(struct gp_strbuf *sb, const struct gp_exam *exam,
                     const struct gp_client *client, enum gp_subject subject)
{
    json_t *capabilities = json_array(), *advice = json_array();
    for (size_t i = 0; i < client->count; i++) {
        unsigned capability = client->capabilities[i];
        (void)json_array_append_new(
            capabilities,
            capability ? json_sprintf("%u.%u", capability / 10, capability % 10) : json_null());
    }
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        (void)json_array_append_new(advice, finding_of(f));
    json_t *document =
        json_pack("{s:s, s:s, s:o, s:o, s:o}", "schema", "gpulse.advice/1", "subject",
                  gp_subject_word(subject), "driver", gp_doctor_json_text_or_null(client->driver),
                  "compute_capabilities", capabilities, "advice", advice);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}

/* ---- the verb ---- */

static int advise(const struct gp_doctor_options *o, struct gp_exam *exam, enum gp_subject subject,
                  const char *version, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_client client;
    int r = client_of(&client, o, exam, err);
    if (r < 0)
        return r;
    client.version = version;
    if (version && client.count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "this machine has no NVIDIA GPU; name one: --gpu \"RTX 4090\"");
    gp_advise(exam, subject, &client);
    if (o->json) {
        add_json(&sb, exam, &client, subject);
    } else {
        add_head(&sb, &client, exam, o->gpu);
        for (const struct gp_finding *f = exam->findings; f; f = f->next) {
            if (f != exam->findings)
                gp_strbuf_addc(&sb, '\n');
            add_finding(&sb, f, o->sources);
        }
    }
    r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    const struct gp_finding *first = gp_exam_first(exam);
    return r == 0 && first ? EXIT_NOTHING_FITS : r;
}

static const char *subject_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_SUBJECT__COUNT ? gp_subject_word((enum gp_subject)i) : NULL;
}

/* "torch==2.8", or "torch" and "2.8". *ret_version: NULL if none is asked for. */
static int split_version(int count, char **words, const char **ret_version, struct gp_err *err)
{
    char *equals = strpbrk(words[0], "= ");
    const char *version = equals ? equals + 1 + (equals[1] == '=') : count > 1 ? words[1] : NULL;
    if (count > 2 || (equals && count > 1))
        return gp_err_set(err, GP_EUSAGE,
                          "advise takes one of torch, tensorflow, jax, cuda, driver, optionally "
                          "with a version, as in torch==2.8");
    if (version && (!isdigit((unsigned char)version[0]) || version[strspn(version, "0123456789.")]))
        return gp_err_set(err, GP_EUSAGE, "'%.60s' is not a version; use one like torch==2.8",
                          version);
    if (equals)
        *equals = '\0';
    *ret_version = version;
    return 0;
}

int gp_doctor_advise(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err)
{
    static struct gp_exam exam; /* large */
    const char *version = NULL;
    if (count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "advise takes one of: torch, tensorflow, jax, cuda, driver");
    int r = split_version(count, words, &version, err);
    if (r < 0)
        return r;
    const char *subject = strcasecmp(words[0], "pytorch") == 0 ? "torch" : words[0];
    for (unsigned i = 0; i < GP_SUBJECT__COUNT; i++) {
        if (strcmp(subject, gp_subject_word((enum gp_subject)i)) != 0)
            continue;
        if (version && i >= GP_SUBJECT_CUDA)
            return gp_err_set(err, GP_EUSAGE, "only torch, tensorflow and jax take a version");
        r = gp_exam_open(&exam, gp_app_prefix(), err);
        if (r < 0)
            return r;
        /* files say enough of a real machine, and a hanging driver holds nothing up */
        struct gp_snapshot *snapshot =
            gp_app_machine() && !o->gpu ? gp_doctor_ask_driver(&exam) : NULL;
        exam.snapshot = snapshot;
        r = advise(o, &exam, (enum gp_subject)i, version, err);
        gp_snapshot_free(snapshot);
        gp_exam_close(&exam);
        return r;
    }
    return gp_err_set(err, GP_EUSAGE,
                      "unknown subject '%.60s'%s; use torch, tensorflow, jax, cuda or driver",
                      words[0], gp_cli_hint(words[0], subject_at, NULL).text);
}
