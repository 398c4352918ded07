#include "jobs/pace.h"

#include "base/clock.h"
#include "jobs/ask_doctor.h"
#include "jobs/watch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 2 };

#define SHARE_PLAUSIBLE 0.8 /* of the peak: no training reaches it */

/* ---- counting ---- */

/* Above it, a double cannot count by one: it is an identifier, or a line of garbage. */
static const double number_most = 0x1p53;

/* The decimal digits at a place of a line; below 0: there are none, or too many. */
static double number_at(const char *line, const regmatch_t *place)
{
    double number = 0;
    bool any = false;
    for (regoff_t i = place->rm_so; place->rm_so >= 0 && i < place->rm_eo; i++) {
        if (!isdigit((unsigned char)line[i])) {
            if (any)
                break;
            continue;
        }
        number = number * 10 + (line[i] - '0');
        any = true;
    }
    return any && number <= number_most ? number : -1;
}

static void count(struct gp_pace *pace, double steps, uint64_t now_ns)
{
    pace->steps += steps;
    pace->last_ns = now_ns;
}

/* One lower number may be of another process of the job; two in a row are a new epoch. */
static void count_to(struct gp_pace *pace, double number, uint64_t now_ns)
{
    if (pace->may_restart && number < pace->number) {
        count(pace, pace->restart, now_ns);
        pace->number = pace->restart;
        pace->may_restart = false;
    } else {
        pace->may_restart = number < pace->number / 2;
        pace->restart = number;
    }
    if (number > pace->number) {
        count(pace, number - pace->number, now_ns);
        pace->number = number;
    }
}

void gp_pace_add(struct gp_pace *pace, const regex_t *step, const char *line, uint64_t now_ns)
{
    regmatch_t places[PLACES];
    if (regexec(step, line, PLACES, places, 0) != 0)
        return;
    const double number = step->re_nsub > 0 ? number_at(line, &places[1]) : -1;
    if (pace->reports++ == 0) {
        pace->first_ns = pace->last_ns = now_ns;
        pace->number = number >= 0 ? number : 0;
    } else if (number >= 0) {
        count_to(pace, number, now_ns);
    } else {
        count(pace, 1, now_ns);
    }
}

/* ---- the peak of the GPUs ---- */

/* FLOP/s of a model in this precision, without sparsity; 0: unknown. */
static double peak_of(const char *name, const char *precision)
{
    char program[] = "gpulse-doctor", verb[] = "gpus", json[] = "--json";
    char model[sizeof(((struct gp_watch_gpu *)NULL)->name)];
    char *argv[] = {program, verb, json, model, NULL};
    memcpy(model, name, sizeof(model));
    json_t *document = gp_ask_doctor_document(argv, "", 0);
    const json_t *models = json_object_get(document, "models");
    /* Names that several models have are ambiguous only if their rates differ. */
    double least = 0;
    double most = 0;
    for (size_t i = 0; i < json_array_size(models); i++) {
        const json_t *rates = json_object_get(json_array_get(models, i), "tflops");
        const json_t *with_fp32 =
            strcmp(precision, "fp16") == 0 ? json_object_get(rates, "fp16_fp32") : NULL;
        double rate = json_number_value(
            json_is_number(with_fp32) ? with_fp32 : json_object_get(rates, precision));
        least = i == 0 || rate < least ? rate : least;
        most = rate > most ? rate : most;
    }
    json_decref(document);
    return least < most ? 0 : most * 1e12;
}

/* The GPUs that a job has reserved or used. */
struct gpus {
    size_t count, used;
    double peak;         /* of all of them, FLOP/s; 0: unknown, or none was used */
    const char *unknown; /* the one whose peak is unknown; NULL: none */
};

static struct gpus gpus_of(const struct gp_watch *watch, const char *precision)
{
    struct gpus gpus = {0};
    const char *last = NULL;
    double one = 0;
    for (size_t i = 0; i < watch->gpu_count; i++) {
        const struct gp_watch_gpu *gpu = &watch->gpus[i];
        gpus.count += gpu->is_granted || gpu->use.was_used;
        gpus.used += gpu->use.was_used || gpu->use.busy_sum > 0;
    }
    for (size_t i = 0; gpus.used > 0 && i < watch->gpu_count; i++) {
        const struct gp_watch_gpu *gpu = &watch->gpus[i];
        if (!gpu->is_granted && !gpu->use.was_used)
            continue;
        if (!last || strcmp(last, gpu->name) != 0)
            one = gpu->is_mig ? 0 : peak_of(gpu->name, precision);
        last = gpu->name;
        if (one <= 0)
            gpus.unknown = gpu->is_mig ? "a MIG instance" : gpu->name;
        gpus.peak += one;
    }
    gpus.peak = gpus.unknown ? 0 : gpus.peak;
    return gpus;
}

/* ---- the end ---- */

static json_t *object_of(const struct gp_pace *pace, const struct gp_pace_plan *plan,
                         double seconds, double peak)
{
    const double rate = pace->steps / seconds;
    const bool knows_flops = plan->flops > 0;
    return json_pack("{s:f, s:f, s:f, s:o, s:s, s:o, s:o}", "steps", pace->steps, "seconds",
                     seconds, "steps_per_s", rate, "flops_per_step",
                     knows_flops ? json_real(plan->flops) : json_null(), "precision",
                     plan->precision, "peak_flops", peak > 0 ? json_real(peak) : json_null(), "mfu",
                     knows_flops && peak > 0 ? json_real(plan->flops * rate / peak) : json_null());
}

/* "2.5 steps/s (10 steps in 4.0 s)" */
static void describe(char *ret, size_t size, const struct gp_pace *pace, double seconds)
{
    (void)snprintf(ret, size, "%.3g steps/s (%.0f step%s in %.*f s)", pace->steps / seconds,
                   pace->steps, pace->steps < 1.5 ? "" : "s", seconds < 1 ? 3 : 1, seconds);
}

static const char *judge(double share)
{
    if (share > 1)
        return "this is impossible: check --flops-per-step and --precision";
    if (share >= SHARE_PLAUSIBLE)
        return "this is implausibly high: check --flops-per-step and --precision";
    return "35 to 45 % is typical of a large training";
}

static void tell_mfu(const struct gp_watch *watch, const struct gp_pace_plan *plan,
                     const char *steps, double flops, const struct gpus *gpus)
{
    const double share = flops / gpus->peak;
    char unused[48] = "";
    if (gpus->used < gpus->count)
        (void)snprintf(unused, sizeof(unused), " (%zu of them unused)", gpus->count - gpus->used);
    gp_watch_say(watch,
                 "%s, %.4g TFLOP/s: model FLOPs utilization (MFU) %.1f %% of %zu GPU%s%s "
                 "with %.4g TFLOP/s (%s, dense; --precision); %s",
                 steps, flops / 1e12, 100 * share, gpus->count, gpus->count == 1 ? "" : "s", unused,
                 gpus->peak / (double)gpus->count / 1e12, plan->precision, judge(share));
}

/* Nothing, if nobody has asked for its pace. */
static void tell_too_few(const struct gp_watch *watch, const struct gp_pace_plan *plan,
                         const struct gp_pace *pace)
{
    const uint64_t reports = pace->reports;
    if (plan->step && reports > 1 && pace->steps <= 0)
        gp_watch_warn(watch,
                      "%llu lines of its output matched --step-match, but the numbers in (…) did "
                      "not grow",
                      (unsigned long long)reports);
    else if (plan->step)
        gp_watch_warn(watch,
                      "%llu line%s of its output matched --step-match, too few to measure its pace",
                      (unsigned long long)reports, reports == 1 ? "" : "s");
    else if (plan->flops > 0)
        gp_watch_warn(watch,
                      "no MFU: it reported %llu step%s; call gpulse.step() in each step of the "
                      "program, or count lines of its output with --step-match",
                      (unsigned long long)reports, reports == 1 ? "" : "s");
}

json_t *gp_pace_end(const struct gp_pace *pace, const struct gp_pace_plan *plan,
                    const struct gp_watch *watch)
{
    const double seconds = (double)(pace->last_ns - pace->first_ns) / (double)GP_NS_PER_S;
    struct gpus gpus = {0};
    if (pace->steps <= 0 || pace->last_ns <= pace->first_ns) {
        tell_too_few(watch, plan, pace);
        return NULL;
    }
    char steps[96];
    const double flops = plan->flops * pace->steps / seconds;
    describe(steps, sizeof(steps), pace, seconds);
    if (plan->flops > 0)
        gpus = gpus_of(watch, plan->precision);
    if (gpus.peak > 0)
        tell_mfu(watch, plan, steps, flops, &gpus);
    else if (plan->flops > 0 && gpus.used == 0)
        gp_watch_say(watch, "%s, %.4g TFLOP/s; no MFU: the job was not seen to use a GPU", steps,
                     flops / 1e12);
    else if (plan->flops > 0)
        gp_watch_say(watch,
                     "%s, %.4g TFLOP/s; no MFU: the peak of %s in %s is unknown (gpulse doctor "
                     "gpus)",
                     steps, flops / 1e12, gpus.unknown, plan->precision);
    else
        gp_watch_say(watch, "%s", steps);
    return object_of(pace, plan, seconds, gpus.peak);
}
