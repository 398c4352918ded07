/* What a GPU's values say about its health, and what to do about it: for gpulse doctor and gpulse
 * why. */
#ifndef GP_WHY_HEALTH_RULES_H
#define GP_WHY_HEALTH_RULES_H

#include "model/snapshot.h"

enum gp_health_grade { GP_HEALTH_FAIL, GP_HEALTH_WARN, GP_HEALTH_INFO };

/* What to do about GPUs, by the kind of problem. */
enum gp_cure {
    GP_CURE_NONE,
    GP_CURE_RESET,
    GP_CURE_REBOOT,
    GP_CURE_DRAIN,
    GP_CURE_REPLACE,
    GP_CURE_COOL,
    GP_CURE_SUPPLY,
    GP_CURE_FLASH,
    GP_CURE_POWER_LIMIT,
    GP_CURE_ECC_ON,
    GP_CURE_COMPUTE,
    GP_CURE_LOOK,
    GP_CURE_IMEX,
    GP_CURE_FABRIC,
};

struct gp_health_rule {
    const char *check; /* the doctor's */
    bool (*holds)(const struct gp_device *gpu, const struct gp_health_rule *rule);
    enum gp_metric metric, other; /* TIMESTAMP, which no GPU has: no other metric */
    const char *word;
    double number;
    enum gp_health_grade grade;
    bool is_fault; /* of the GPU, which needs a repair, a reset or a reboot */
    enum gp_cure cure;
    const char *summary; /* after "GPU 3: " */
    const char *why;
};

/* Those of a check stand together. */
extern const struct gp_health_rule gp_health_rules[];
extern const size_t gp_health_rule_count;

/* The rule of a check that counts for a GPU, the first that holds; NULL: none does. */
const struct gp_health_rule *gp_health_rule_of(const struct gp_device *gpu, const char *check);

/* Adds the metrics that the rules read, or only those of the rules about faults. */
void gp_health_want_rules(struct gp_metric_set *metrics, bool only_faults);

/* A GPU without values. */
struct gp_health_silence {
    enum gp_status status;
    enum gp_health_grade grade;
    enum gp_cure cure;
    const char *summary, *why;
};

extern const struct gp_health_silence gp_health_silences[];
extern const size_t gp_health_silence_count;

/* What to do about a GPU of this kind. */
enum gp_cure gp_health_silence_cure(const struct gp_health_silence *silence,
                                    const struct gp_device *gpu);

/* A step of a cure: a command with %s for the list of GPUs, or only a note. */
struct gp_health_cure {
    enum gp_cure cure;
    const char *command; /* NULL: the note is advice */
    const char *note;
};

/* The steps of a cure, in order; `at` starts at 0. NULL: no more. */
const struct gp_health_cure *gp_health_cure_next(enum gp_cure cure, size_t *at);

#endif
