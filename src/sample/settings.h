/* A change of settings on several GPUs: what is requested, typed or from a file, whether each GPU
 * accepts it, what it would cost, and how it went. gp_changer_apply() makes the change. */
#ifndef GP_SAMPLE_SETTINGS_H
#define GP_SAMPLE_SETTINGS_H

#include "sample/changer.h"
#include "sample/settings_file.h"

struct gp_err;
struct gp_strbuf;

struct gp_settings_request {
    uint32_t controls; /* bit 1 << id: in `values`, which all selected GPUs get */
    struct gp_control_value values[GP_CONTROL__COUNT];
    struct gp_saved *saved; /* instead: each GPU gets the values that the file has for it */
    const char *path;       /* of that file, for messages */
    bool is_selection;      /* not all GPUs of the machine are selected */
    /* Called with each message that is not an error: one line. NULL: not called. */
    void (*warn)(const char *text);
};

struct gp_settings {
    const struct gp_settings_request *request;
    struct gp_changer *changer;
    struct gp_target *targets; /* of the changer */
    size_t count;
    bool is_incomplete; /* a part of the file was skipped */
};

/* Adds NAME=VALUE to the request. GP_EUSAGE. */
int gp_settings_assign(struct gp_settings_request *request, const char *word,
                       struct gp_err *err) GP_MUST_CHECK;

/* Enters the request into the changer's targets, and reads the settings that it depends on. The
 * request and the changer must outlive it. GP_ENODEV: no GPU of the file is in this machine; the
 * error of a GPU that may be one of them. */
int gp_settings_begin(struct gp_settings *settings, const struct gp_settings_request *request,
                      struct gp_changer *changer, struct gp_err *err) GP_MUST_CHECK;

/* Instead: reads all settings, and requests no change. */
void gp_settings_look(struct gp_settings *settings, const struct gp_settings_request *request,
                      struct gp_changer *changer);

/* Whether a GPU that the request is about responds. */
bool gp_settings_can_be_reached(const struct gp_settings *settings);

/* Whether every GPU would accept its changes; nothing is changed. Those of a file that a GPU does
 * not accept, or already has, are left out instead. GP_EUSAGE, GP_EPERM, GP_EFAIL, GP_EDRIVER: the
 * first change that is refused. */
int gp_settings_check(struct gp_settings *settings, struct gp_err *err) GP_MUST_CHECK;

/* Whether any requested change is made, because a GPU that responds has another value. */
bool gp_settings_any_change(const struct gp_settings *settings);

/* Whether a requested change destroys something that no other change restores. */
bool gp_settings_loses(const struct gp_target *target, enum gp_control_id id);

/* Warns of settings that do not last, or that need attention. */
void gp_settings_warn(const struct gp_settings *settings);

/* How the changes went: the code of the first failure, which is in err, GP_EPARTIAL if GPUs differ,
 * or 0. err has the failure's own code. */
int gp_settings_result(const struct gp_settings *settings, struct gp_err *err) GP_MUST_CHECK;

/* Whether all GPUs could be read, besides those that are asleep if `or_asleep`. GP_EPARTIAL names
 * the first one that was not. */
int gp_settings_check_read(const struct gp_settings *settings, bool or_asleep,
                           struct gp_err *err) GP_MUST_CHECK;

/* Whether there is anything to save. GP_EUSAGE, or the reason why a GPU cannot be read. */
int gp_settings_check_save(const struct gp_settings *settings, struct gp_err *err) GP_MUST_CHECK;

/* Warns of settings that the driver accepts but does not report, such as locked clocks: they are
 * not saved. */
void gp_settings_warn_unsaved(const struct gp_settings *settings);

/* Appends "GPU 3", or "GPU 3 instance 1". */
void gp_settings_add_target(struct gp_strbuf *sb, const struct gp_target *target);

#endif
