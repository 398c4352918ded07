#include "doctor/advise/question.h"

#include "base/cli.h"
#include "base/err.h"
#include "doctor/advise/cards.h"
#include "doctor/compat.h"
#include "doctor/readers/nvidia.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD_SIZE = 128 };

/* ---- the subject ---- */

const char *gp_subject_word(enum gp_subject subject)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_SUBJECTS(X)
#undef X
    };
    return words[subject];
}

static const char *subject_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < GP_SUBJECT__COUNT ? gp_subject_word((enum gp_subject)i) : NULL;
}

int gp_subject_parse(int count, char *const *words, enum gp_subject *ret, const char **ret_version,
                     struct gp_err *err)
{
    if (count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "advise takes one of: torch, tensorflow, jax, cuda, driver");
    char word[WORD_SIZE];
    const char *equals = strpbrk(words[0], "= ");
    const char *version = equals ? equals + 1 + (equals[1] == '=') : count > 1 ? words[1] : NULL;
    if (count > 2 || (equals && count > 1))
        return gp_err_set(err, GP_EUSAGE,
                          "advise takes one of torch, tensorflow, jax, cuda, driver, optionally "
                          "with a version, as in torch==2.8");
    if (version && (!isdigit((unsigned char)version[0]) || version[strspn(version, "0123456789.")]))
        return gp_err_set(err, GP_EUSAGE, "'%.60s' is not a version; use one like torch==2.8",
                          version);
    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(words[0], "= "), words[0]);
    const char *subject = strcasecmp(word, "pytorch") == 0 ? "torch" : word;
    unsigned i = 0;
    while (i < GP_SUBJECT__COUNT && strcmp(subject, gp_subject_word((enum gp_subject)i)) != 0)
        i++;
    if (i == GP_SUBJECT__COUNT)
        return gp_err_set(err, GP_EUSAGE,
                          "unknown subject '%.60s'%s; use torch, tensorflow, jax, cuda or driver",
                          word, gp_cli_hint(word, subject_at, NULL).text);
    if (version && i >= GP_SUBJECT_CUDA)
        return gp_err_set(err, GP_EUSAGE, "only torch, tensorflow and jax take a version");
    *ret = (enum gp_subject)i;
    *ret_version = version;
    return 0;
}

/* ---- the client ---- */

void gp_client_add(struct gp_client *client, unsigned capability)
{
    size_t place = 0;
    while (place < client->count && client->capabilities[place] < capability)
        place++;
    if ((place < client->count && client->capabilities[place] == capability) ||
        client->count == GP_ARRAY_LEN(client->capabilities))
        return;
    memmove(&client->capabilities[place + 1], &client->capabilities[place],
            (client->count - place) * sizeof(client->capabilities[0]));
    client->capabilities[place] = capability;
    client->count++;
}

static void read_examined(struct gp_client *ret, struct gp_exam *exam)
{
    struct gp_nvidia nv;
    gp_nvidia_read(&nv, exam);
    *ret = (struct gp_client){.driver = gp_exam_text(exam, "%s", nv.driver), .is_here = true};
    for (size_t i = 0; i < nv.count; i++)
        gp_client_add(ret, nv.capabilities[i]);
}

bool gp_capability_parse(const char *text, unsigned *ret)
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
    const struct gp_card *cards[GP_CARDS_MAX] = {NULL};
    unsigned capability = 0;
    if (gp_capability_parse(name, &capability)) {
        if (!gp_arch_find(capability))
            return gp_err_set(err, GP_EUSAGE, "unknown compute capability '%s'", name);
        gp_client_add(client, capability);
        return 0;
    }
    size_t count = gp_cards_find(name, cards, GP_CARDS_MAX);
    if (count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "unknown GPU model '%.60s'%s; gpulse doctor gpus lists them", name,
                          gp_cards_hint(name).text);
    capability = cards[0]->compute_capability;
    for (size_t i = 1; i < count && i < GP_CARDS_MAX; i++)
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

int gp_client_read(struct gp_client *ret, struct gp_exam *exam, const char *models,
                   const char *driver, const char *version, struct gp_err *err)
{
    struct gp_client client = {.driver = "", .models = models};
    int r = 0;
    if (models)
        r = add_models(&client, models, err);
    else
        read_examined(&client, exam);
    if (r < 0)
        return r;
    if (driver && (!isdigit((unsigned char)driver[0]) || !gp_driver_find(driver)))
        return gp_err_set(err, GP_EUSAGE, "'%.60s' is not a driver version; use one like 550.54.15",
                          driver);
    if ((driver || version) && client.count == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "%sthis machine has no NVIDIA GPU; name one: --gpu \"RTX 4090\"",
                          driver ? "--driver: " : "");
    if (driver) {
        client.driver = driver;
        client.is_here = false;
    }
    client.version = version;
    *ret = client;
    return 0;
}

/* ---- the machine in words ---- */

const char *gp_client_gpus(struct gp_exam *exam, const struct gp_client *client)
{
    const char *words = "";
    for (size_t i = 0; i < client->count; i++) {
        unsigned capability = client->capabilities[i];
        const char *between = i == 0 ? "" : i + 1 < client->count ? ", " : " and ";
        words = capability > 0 ? gp_exam_text(exam, "%s%s%u.%u", words, between, capability / 10,
                                              capability % 10)
                               : gp_exam_text(exam, "%s%san unknown GPU", words, between);
    }
    return gp_exam_text(exam, "GPUs of compute capability %s", words);
}

const char *gp_client_driver(struct gp_exam *exam, const struct gp_client *client)
{
    return client->driver[0] ? gp_exam_text(exam, "driver %s", client->driver) : "any driver";
}

const char *gp_client_options(struct gp_exam *exam, const struct gp_client *client,
                              bool with_driver)
{
    const char *words = "";
    if (client->is_here)
        return words;
    if (client->models)
        words = gp_exam_text(exam, strchr(client->models, ' ') ? " --gpu \"%s\"" : " --gpu %s",
                             client->models);
    for (size_t i = 0; !client->models && i < client->count; i++)
        words = gp_exam_text(exam, "%s%s%u.%u", words, i == 0 ? " --gpu " : ",",
                             client->capabilities[i] / 10, client->capabilities[i] % 10);
    return with_driver && client->driver[0]
               ? gp_exam_text(exam, "%s --driver %s", words, client->driver)
               : words;
}

void gp_client_branches(const struct gp_client *client, unsigned *first, unsigned *last)
{
    *first = *last = 0;
    for (size_t i = 0; i < client->count; i++) {
        const struct gp_arch *arch = gp_arch_find(client->capabilities[i]);
        if (arch && arch->first_branch > *first)
            *first = arch->first_branch;
        if (arch && arch->last_branch > 0 && (*last == 0 || arch->last_branch < *last))
            *last = arch->last_branch;
    }
}
