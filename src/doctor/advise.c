#include "doctor/advise.h"

#include "doctor/advise_framework.h"
#include "doctor/driver_fix.h"
#include "doctor/toolkit.h"
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
    gp_toolkit_remedy(exam, toolkit->cuda);
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

/* The branch with the longest support; for GPUs that newer branches dropped, their last branch. */
static const struct gp_driver *branch_for(const struct gp_client *client)
{
    const struct gp_driver *best = NULL;
    for (size_t i = 0; i < gp_driver_count; i++) {
        const struct gp_driver *row = &gp_drivers[i];
        if (!serves_all(row->branch, client))
            continue;
        const struct gp_arch *oldest = gp_arch_find(client->count ? client->capabilities[0] : 0);
        bool is_left_behind = oldest && oldest->last_branch > 0;
        if (!best || is_left_behind || strcmp(row->ends, best->ends) >= 0)
            best = row;
    }
    return best;
}

static unsigned variants_for(const struct gp_driver *row, const struct gp_client *client)
{
    unsigned variants = row->modules;
    for (size_t i = 0; i < client->count; i++) {
        const struct gp_arch *arch = gp_arch_find(client->capabilities[i]);
        variants &= arch ? arch->modules : variants;
    }
    return variants;
}

static void explain_driver(struct gp_exam *exam, const struct gp_driver *row,
                           const struct gp_client *client, bool is_open)
{
    unsigned first, last;
    gp_client_branches(client, &first, &last);
    if (last == row->branch)
        gp_exam_why(exam, "Branch %u is the last to support %s: newer ones ignore them.", last,
                    gp_client_gpus(exam, client));
    else if (row->ends[0])
        gp_exam_why(exam, "Branch %u is a %s branch, supported until %s.", row->branch, row->kind,
                    row->ends);
    else
        gp_exam_why(exam, "Branch %u is the newest that supports these GPUs.", row->branch);
    if (row->cuda[0])
        gp_exam_evidence(exam, "CUDA", "%u implements %s, and runs everything built for CUDA %u",
                         row->branch, row->cuda, gp_version_major(row->cuda));
    gp_exam_evidence(exam, "module", "%s",
                     is_open ? "open: it supports these GPUs"
                             : "proprietary: the open module requires Turing or newer");
    if (last > 0)
        gp_exam_evidence(exam, "range", "these GPUs work with any branch from %u to %u", first,
                         last);
    else if (first > 0)
        gp_exam_evidence(exam, "range", "these GPUs work with any branch from %u on", first);
    gp_exam_evidence(exam, "source", "%s", row->source);
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
    const struct gp_driver *row = branch_for(client);
    unsigned variants = row ? variants_for(row, client) : 0;
    if (variants == 0) {
        gp_exam_report(exam, GP_VERDICT_WARN, "no driver supports all of these GPUs: %s",
                       gp_client_gpus(exam, client));
        gp_exam_why(
            exam, "%s",
            row ? "Some need the open kernel module, others the proprietary one."
                : "The last branch for the older GPUs is older than the first for the newer ones.");
        return;
    }
    bool is_open = variants & GP_MODULE_OPEN;
    unsigned have = gp_version_major(client->driver);
    if (have >= row->branch && serves_all(have, client)) {
        gp_exam_report(exam, GP_VERDICT_INFO, "driver %s supports these GPUs: no change needed",
                       client->driver);
        const struct gp_driver *mine = gp_driver_find(client->driver);
        row = mine ? mine : row;
    } else {
        gp_exam_report(exam, GP_VERDICT_INFO, "driver branch %u, with the %s kernel module",
                       row->branch, is_open ? "open" : "proprietary");
        unsigned first, last, own = gp_driver_of_debian(&exam->machine);
        gp_client_branches(client, &first, &last);
        gp_driver_fix_branch(exam, row->branch, first, is_open);
        if (is_open && own >= first && own > 0)
            gp_exam_evidence(exam, "note",
                             "the command installs Debian's own driver: branch %u, with the "
                             "proprietary module, supports these GPUs too",
                             own);
        if (have > 0 && !serves_all(have, client))
            gp_exam_evidence(exam, "note", "driver %s does not support these GPUs", client->driver);
    }
    explain_driver(exam, row, client, is_open);
}

static void note_unknown_gpus(struct gp_exam *exam, const struct gp_client *client)
{
    if (client->count > 0 && client->capabilities[0] == 0)
        gp_exam_evidence(exam, "note",
                         "a GPU in this machine is not in gpulse's tables, which may be older than "
                         "the GPU: its requirements are unknown");
}

void gp_advise(struct gp_exam *exam, enum gp_subject subject, const struct gp_client *client)
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
