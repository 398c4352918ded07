/* Advice as text and JSON. */
#include "doctor/advise/advise.h"

#include "base/strbuf.h"
#include "doctor/compat.h"
#include "doctor/readers/gpuset.h"
#include "doctor/report.h"
#include "out/json.h"

#include <string.h>

enum { LABEL = 7 };

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

/* The machine that the advice is for. */
static void add_head(struct gp_strbuf *sb, const struct gp_client *client,
                     const struct gp_exam *exam)
{
    const struct gp_machine *machine = &exam->machine;
    const char *names = client->models;
    unsigned capability;
    bool is_name = names && client->count == 1 && !gp_capability_parse(names, &capability);
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

void gp_advice_add_text(struct gp_strbuf *sb, const struct gp_exam *exam,
                        const struct gp_client *client, bool has_sources)
{
    add_head(sb, client, exam);
    for (const struct gp_finding *f = exam->findings; f; f = f->next) {
        if (f != exam->findings)
            gp_strbuf_addc(sb, '\n');
        add_finding(sb, f, has_sources);
    }
    gp_doctor_add_tables(sb);
}

/* ---- JSON ---- */

static json_t *finding_of(const struct gp_finding *finding)
{
    return json_pack("{s:b, s:o, s:o, s:o, s:o}", "fits", finding->verdict != GP_VERDICT_WARN,
                     "summary", gp_doctor_json_text(finding->summary), "why",
                     gp_doctor_json_text(finding->why), "commands", gp_doctor_json_fixes(finding),
                     "facts", gp_doctor_json_evidence(finding, "about"));
}

void gp_advice_add_json(struct gp_strbuf *sb, const struct gp_exam *exam,
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
    json_t *document = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o}", "schema", "gpulse.advice/1", "subject",
        gp_subject_word(subject), "driver", gp_doctor_json_text_or_null(client->driver),
        "compute_capabilities", capabilities, "tables", gp_doctor_json_tables(), "advice", advice);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
