#include "doctor/advise/advise.h"

#include "doctor/advise/advise_framework.h"
#include "doctor/checks/cuda.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/readers/toolkit.h"
#include "doctor/tables_load.h"
#include "doctor/version.h"

#include <stdio.h>
#include <string.h>

static bool serves_all(unsigned branch, const struct gp_client *client)
{
    unsigned first, last;
    gp_client_branches(client, &first, &last);
    return branch >= first && (last == 0 || branch <= last);
}

/* ---- the CUDA toolkit ---- */

static bool compiles_for(const char *cuda, const struct gp_client *client)
{
    for (size_t i = 0; i < client->count; i++) {
        const struct gp_arch *arch = gp_arch_find(client->capabilities[i]);
        char ceiling[32];
        if (!arch)
            continue;
        /* 12.9 is the last, so 12.9.1 is included. */
        (void)snprintf(ceiling, sizeof(ceiling), "%s.9999", arch->last_cuda);
        if (gp_version_compare(cuda, arch->first_cuda) < 0 ||
            (arch->last_cuda[0] && gp_version_compare(cuda, ceiling) > 0))
            return false;
    }
    return true;
}

/* The newest toolkit that compiles for all these GPUs and whose PTX this driver accepts. */
static const struct gp_toolkit *toolkit_for(const struct gp_client *client, const char *driver)
{
    for (size_t i = gp_toolkit_count; i-- > 0;)
        if ((!driver[0] || gp_driver_reaches(driver, gp_toolkits[i].driver)) &&
            compiles_for(gp_toolkits[i].cuda, client))
            return &gp_toolkits[i];
    return NULL;
}

static void command_toolkit(struct gp_exam *exam, const struct gp_toolkit *toolkit)
{
    unsigned major = gp_version_major(toolkit->cuda);
    gp_cuda_fix_toolkit(exam, toolkit->cuda);
    if (major >= 12)
        gp_exam_command(exam, "or in a conda environment",
                        "conda install -c conda-forge cuda-toolkit=%u.%u", major,
                        gp_version_minor(toolkit->cuda));
}

static void advise_cuda(struct gp_exam *exam, const struct gp_client *client)
{
    unsigned first, last;
    gp_client_branches(client, &first, &last);
    const char *newest_driver = last > 0 ? gp_exam_text(exam, "%u", last) : "";
    const struct gp_toolkit *newest = toolkit_for(client, newest_driver);
    const struct gp_toolkit *toolkit =
        client->driver[0] ? toolkit_for(client, client->driver) : newest;
    if (client->driver[0] && !serves_all(gp_version_major(client->driver), client)) {
        gp_exam_report(exam, GP_VERDICT_WARN, "driver %s does not support all of these GPUs: %s",
                       client->driver, gp_client_gpus(exam, client));
        return;
    }
    if (client->is_here && exam->machine.is_jetson) {
        gp_exam_report(exam, GP_VERDICT_INFO, "JetPack includes CUDA");
        gp_exam_why(exam, "Toolkits for other machines have no libraries for Jetson.");
        return;
    }
    if (!toolkit || !newest) {
        gp_exam_report(exam, GP_VERDICT_WARN, "no known CUDA toolkit fits %s and %s",
                       gp_client_gpus(exam, client), gp_client_driver(exam, client));
        return;
    }
    gp_exam_report(exam, GP_VERDICT_INFO, "CUDA Toolkit %s", toolkit->cuda);
    const char *newest_words = client->count > 0 ? " that compiles for these GPUs" : "";
    if (newest != toolkit)
        gp_exam_why(exam,
                    "This is the newest toolkit that driver %s supports in full; it also runs "
                    "programs built with a newer CUDA %u, but not their PTX.",
                    client->driver, gp_version_major(toolkit->cuda));
    else if (client->driver[0])
        gp_exam_why(exam, "This is the newest toolkit%s, and driver %s supports all of it.",
                    newest_words, client->driver);
    else
        gp_exam_why(exam, "This is the newest toolkit%s; full support needs driver %s or newer.",
                    newest_words, toolkit->driver);
    command_toolkit(exam, toolkit);
    if (client->count == 0)
        gp_exam_evidence(exam, "note", "%s",
                         exam->machine.is_wsl
                             ? "under WSL no file identifies the GPU; use --gpu"
                             : "this machine has no NVIDIA GPU; use --gpu to name one");
    gp_exam_evidence(exam, "note",
                     "needed only to compile: the wheels of PyTorch, TensorFlow and JAX include "
                     "the libraries they use");
    if (newest != toolkit)
        gp_exam_evidence(exam, "newer", "with driver %s or newer: CUDA Toolkit %s", newest->driver,
                         newest->cuda);
    gp_exam_evidence(exam, "source", "%s", toolkit->source);
}

/* ---- the driver ---- */

static struct gp_wish wish_of(const struct gp_client *client)
{
    struct gp_wish wish = {0};
    for (size_t i = 0; i < client->count; i++)
        gp_wish_add(&wish, client->capabilities[i]);
    return wish;
}

/* A branch of the table; NULL: it is not in there. */
static const struct gp_driver *branch_row(unsigned branch)
{
    for (size_t i = 0; i < gp_driver_count; i++)
        if (gp_drivers[i].branch == branch)
            return &gp_drivers[i];
    return NULL;
}

/* "Branch 580 is a long-term branch; NVIDIA supports it until 2028-06." The date of the tables says
 * whether that is over. */
static const char *support_words(struct gp_exam *exam, const struct gp_driver *row)
{
    const char *kind =
        row->kind[0] ? gp_exam_text(exam, "Branch %u is a %s branch", row->branch, row->kind) : "";
    if (kind[0] && row->ends[0])
        return gp_exam_text(exam, "%s; NVIDIA support%s it until %s.", kind,
                            strcmp(gp_tables_state()->date, row->ends) > 0 &&
                                    strncmp(gp_tables_state()->date, row->ends, 7) != 0
                                ? "ed"
                                : "s",
                            row->ends);
    return kind[0] ? gp_exam_text(exam, "%s.", kind) : "";
}

/* What the branch can do, and what else these GPUs work with. */
static void show_branch(struct gp_exam *exam, const struct gp_driver *row, const char *module,
                        const struct gp_wish *wish)
{
    if (row && row->cuda[0])
        gp_exam_evidence(exam, "CUDA", "%u implements %s, and runs everything built for CUDA %u",
                         row->branch, row->cuda, gp_version_major(row->cuda));
    if (module)
        gp_exam_evidence(exam, "module", "%s", module);
    if (wish->last > 0)
        gp_exam_evidence(exam, "range", "these GPUs work with any branch from %u to %u",
                         wish->first, wish->last);
    else if (wish->first > 0)
        gp_exam_evidence(exam, "range", "these GPUs work with any branch from %u on", wish->first);
    if (row)
        gp_exam_evidence(exam, "source", "%s", row->source);
}

static void keep_driver(struct gp_exam *exam, const struct gp_client *client,
                        const struct gp_wish *wish)
{
    const struct gp_machine *m = &exam->machine;
    const struct gp_driver *row = branch_row(gp_version_major(client->driver));
    gp_exam_report(exam, GP_VERDICT_INFO, "driver %s supports these GPUs: no change needed",
                   client->driver);
    if (row)
        gp_exam_why(exam, "%s", support_words(exam, row));
    show_branch(exam, row,
                client->is_here && m->is_flavour_known
                    ? (m->is_driver_open ? "open, as loaded" : "proprietary, as loaded")
                    : NULL,
                wish);
}

/* The branch that is installed in the distribution's own way may not be the one that runs programs
 * for the newest CUDA. */
static void note_newer(struct gp_exam *exam, const struct gp_driver *row,
                       const struct gp_wish *wish)
{
    const struct gp_driver *usual = gp_driver_long_term();
    if (row && usual && row->cuda[0] && gp_wish_fits(wish, usual->branch) &&
        gp_version_major(row->cuda) < gp_version_major(usual->cuda))
        gp_exam_evidence(exam, "newer",
                         "programs built for CUDA %u need branch %u or newer, from NVIDIA's own "
                         "repository",
                         gp_version_major(usual->cuda), usual->branch);
}

static const char *module_words(const struct gp_offer_choice *choice, const struct gp_wish *wish)
{
    if (choice->is_open)
        return "open: it supports these GPUs";
    return wish->needs_proprietary ? "proprietary: the open module requires Turing or newer"
                                   : "proprietary: it supports these GPUs";
}

/* What "the newest" is at least: the newest branch of the table whose CUDA is known. */
static void show_newest(struct gp_exam *exam)
{
    const struct gp_driver *newest = NULL;
    for (size_t i = 0; i < gp_driver_count; i++)
        if (gp_drivers[i].cuda[0])
            newest = &gp_drivers[i];
    if (newest)
        gp_exam_evidence(exam, "CUDA", "the newest branch known to gpulse, %u, implements %s",
                         newest->branch, newest->cuda);
}

static void explain_choice(struct gp_exam *exam, const struct gp_client *client,
                           const struct gp_offer_choice *choice, const struct gp_wish *wish)
{
    const struct gp_driver *row = branch_row(choice->branch);
    const char *support = row ? support_words(exam, row) : "";
    const char *release = exam->machine.distro_name;
    if (choice->branch > 0 && wish->last == choice->branch)
        gp_exam_why(exam, "Branch %u is the last to support %s: newer ones ignore them.",
                    wish->last, gp_client_gpus(exam, client));
    else if (choice->branch == 0)
        gp_exam_why(exam, "%s installs the newest branch.",
                    choice->from == GP_OFFER_NVIDIA ? "NVIDIA's repository" : release);
    else if (choice->from == GP_OFFER_DISTRO)
        gp_exam_why(exam, "It is the newest in %s that supports these GPUs. %s", release, support);
    else
        gp_exam_why(exam, "%s", support);
    if (choice->from == GP_OFFER_DISTRO)
        note_newer(exam, row, wish);
    if (choice->branch == 0)
        show_newest(exam);
    show_branch(exam, row, module_words(choice, wish), wish);
}

static void change_driver(struct gp_exam *exam, const struct gp_client *client,
                          const struct gp_wish *wish)
{
    struct gp_offer_choice choice = gp_offer_choose(&exam->machine, wish);
    unsigned have = gp_version_major(client->driver);
    if (have > 0 && gp_wish_fits(wish, have) && choice.branch <= have &&
        (choice.branch > 0 || have >= gp_driver_long_term()->branch)) {
        keep_driver(exam, client, wish);
        return;
    }
    const char *module = choice.is_open ? "open" : "proprietary";
    gp_exam_report(exam, choice.from == GP_OFFER_NONE ? GP_VERDICT_WARN : GP_VERDICT_INFO, "%s%s",
                   choice.branch > 0
                       ? gp_exam_text(exam, "driver branch %u, with the %s kernel module",
                                      choice.branch, module)
                       : gp_exam_text(exam, "the newest driver, with the %s kernel module", module),
                   choice.from == GP_OFFER_NONE ? ", which this distribution does not have" : "");
    gp_driver_fix_choice(exam, &choice);
    if (have > 0 && !gp_wish_fits(wish, have))
        gp_exam_evidence(exam, "note", "driver %s does not support these GPUs", client->driver);
    explain_choice(exam, client, &choice, wish);
}

static void advise_driver(struct gp_exam *exam, const struct gp_client *client)
{
    if (client->is_here && (exam->machine.is_jetson || exam->machine.is_wsl)) {
        gp_exam_report(exam, GP_VERDICT_INFO, "the driver comes with %s",
                       exam->machine.is_jetson ? "JetPack" : "Windows");
        gp_exam_why(exam, "Do not replace it with a driver from this distribution.");
        if (exam->machine.is_wsl)
            gp_exam_advice(exam,
                           "update it in Windows, then restart Linux from there: wsl --shutdown");
        return;
    }
    if (client->count == 0) {
        gp_exam_report(exam, GP_VERDICT_INFO,
                       "this machine has no NVIDIA GPU, so it needs no NVIDIA driver");
        gp_exam_why(exam, "Use --gpu to ask about another machine: gpulse doctor advise driver "
                          "--gpu \"RTX 4090\".");
        return;
    }
    struct gp_wish wish = wish_of(client);
    if (gp_wish_is_possible(&wish)) {
        change_driver(exam, client, &wish);
        return;
    }
    gp_exam_report(exam, GP_VERDICT_WARN, "no driver supports all of these GPUs: %s",
                   gp_client_gpus(exam, client));
    gp_exam_why(exam, "%s",
                wish.first <= wish.last
                    ? "Some need the open kernel module, others the proprietary one."
                    : "The last branch for the older GPUs is older than the first for the newer "
                      "ones.");
}

static void note_unknown_gpus(struct gp_exam *exam, const struct gp_client *client)
{
    if (client->count > 0 && client->capabilities[0] == 0)
        gp_exam_evidence(
            exam, "note",
            "a GPU in this machine is not in gpulse's tables of %s, which may be older "
            "than the GPU: its requirements are unknown",
            gp_tables_state()->date);
}

void gp_exam_advise(struct gp_exam *exam, enum gp_subject subject, const struct gp_client *client)
{
    switch (subject) {
    case GP_SUBJECT_TORCH:
        gp_advise_framework(exam, GP_FRAMEWORK_TORCH, client);
        break;
    case GP_SUBJECT_TENSORFLOW:
        gp_advise_framework(exam, GP_FRAMEWORK_TENSORFLOW, client);
        break;
    case GP_SUBJECT_JAX:
        gp_advise_framework(exam, GP_FRAMEWORK_JAX, client);
        break;
    case GP_SUBJECT_CUDA:
        advise_cuda(exam, client);
        break;
    case GP_SUBJECT_DRIVER:
        advise_driver(exam, client);
        break;
    case GP_SUBJECT__COUNT:
        break;
    }
    note_unknown_gpus(exam, client);
}
