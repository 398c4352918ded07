/* Settings of GPUs as text and JSON: controls, values, changes and their results. Pure: everything
 * is appended to a buffer. */
#ifndef GP_OUT_SETTINGS_H
#define GP_OUT_SETTINGS_H

#include "sample/settings.h"

struct gp_strbuf;

/* The descriptions of all controls. */
void gp_settings_add_list(struct gp_strbuf *sb);
void gp_settings_add_list_json(struct gp_strbuf *sb);

/* The values of the controls of each target. */
void gp_settings_add_values(struct gp_strbuf *sb, const struct gp_target *targets, size_t count);
void gp_settings_add_values_json(struct gp_strbuf *sb, const struct gp_target *targets,
                                 size_t count, const struct gp_value *host);

/* The settings of the GPUs as a document that --restore reads. */
void gp_settings_add_settings(struct gp_strbuf *sb, const struct gp_target *targets, size_t count,
                              const struct gp_value *host);

/* What a change destroys, if gp_settings_loses(). */
void gp_settings_add_loss(struct gp_strbuf *sb, const struct gp_target *target,
                          enum gp_control_id id);

/* A line for each requested change: old -> new and, with `results`, how it went. */
void gp_settings_add_changes(struct gp_strbuf *sb, const struct gp_target *targets, size_t count,
                             bool results);

/* The same, and with `results` the commands that undo the changes; without, that nothing was
 * changed. `machine` is the simulated one, or NULL. */
void gp_settings_add_summary(struct gp_strbuf *sb, const struct gp_settings *settings, bool results,
                             const char *machine);

/* Appends what undoes the changes of a GPU: " NAME=OLD NAME=OLD"; nothing if none was made, or none
 * can be undone. */
void gp_settings_add_undo(struct gp_strbuf *sb, const struct gp_target *target);

/* "gpulse set NAME=VALUE…": the command that makes this request again. `ids` is its -i, or NULL. */
void gp_settings_add_command(struct gp_strbuf *sb, const struct gp_settings_request *request,
                             const char *ids, const char *machine);

#endif
