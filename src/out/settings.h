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

/* Describes what a change destroys, for which gp_settings_loses() is true. */
void gp_settings_add_loss(struct gp_strbuf *sb, const struct gp_target *target,
                          enum gp_control_id id);

/* A line for each requested change: old -> new and, with `results`, how it went. */
void gp_settings_add_changes(struct gp_strbuf *sb, const struct gp_target *targets, size_t count,
                             bool results);

/* A command per target that restores the old values of what was, or may have been, changed. */
void gp_settings_add_undo(struct gp_strbuf *sb, const struct gp_target *targets, size_t count,
                          const char *machine);

/* "gpulse", with the simulated machine unless that is NULL. */
void gp_settings_add_program(struct gp_strbuf *sb, const char *machine);

#endif
