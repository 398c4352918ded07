/* The state of a machine at a moment, as a recording has it: rows of cells.
 *
 * The recorder keeps the scene of the last sample and records what differs from it; a reader
 * applies these differences to a scene of its own, which is then the same. */
#ifndef GP_TAPE_SCENE_H
#define GP_TAPE_SCENE_H

#include "model/value.h"
#include "tape/columns.h"

/* A value, its number scaled as the column says. */
struct gp_tape_cell {
    int64_t number; /* kept while there is no value: what follows is a difference */
    char *text; /* of a text, or the words of the reason why there is none; owned; may be NULL */
    enum gp_status status;
};

/* What the numbers of a cell were during some time: count 0 if there were none. */
struct gp_range {
    int64_t min, max;
    double sum;
    uint64_t count;
};

struct gp_tape_row {
    uint64_t id;     /* of the GPU or process in the file */
    uint32_t device; /* of a process: its place among the devices */
    struct gp_tape_cell *cells;
    struct gp_range *ranges; /* of each cell; NULL unless the scene has them */
};

struct gp_tape_rows {
    struct gp_tape_row *rows;
    size_t count;
    unsigned width; /* cells of each */
};

struct gp_scene {
    const struct gp_tape_columns *columns;
    bool has_ranges;
    struct gp_tape_rows scopes[GP_TAPE_SCOPE__COUNT];
};

/* An empty scene with the row of the host; false without memory. The columns must outlive it, and
 * not change. */
bool gp_scene_init(struct gp_scene *scene, const struct gp_tape_columns *columns,
                   bool has_ranges) GP_MUST_CHECK;
void gp_scene_fini(struct gp_scene *scene);

/* Makes all values unknown, and keeps the rows. */
void gp_scene_forget(struct gp_scene *scene);

/* An entry of a list of rows. */
struct gp_tape_key {
    uint64_t id;
    uint32_t device; /* of a process; otherwise 0 */
};

/* Replaces the list of rows. Those that stay keep their cells; a process on several GPUs has a row
 * for each. False without memory: the scene can then only be freed. */
bool gp_scene_list(struct gp_scene *scene, enum gp_tape_scope scope, const struct gp_tape_key *keys,
                   size_t count) GP_MUST_CHECK;
bool gp_scene_is_listed(const struct gp_scene *scene, enum gp_tape_scope scope,
                        const struct gp_tape_key *keys, size_t count);

/* A new text of a cell, or NULL; copied. False without memory. */
bool gp_tape_cell_set_text(struct gp_tape_cell *cell, const char *text, size_t len) GP_MUST_CHECK;

/* The cell of a column; NULL: the file does not have it. */
const struct gp_tape_cell *gp_scene_cell(const struct gp_scene *scene,
                                         const struct gp_tape_row *row, int column);

/* A present value as a number in its unit; false: there is none. */
bool gp_scene_number(const struct gp_scene *scene, const struct gp_tape_row *row, int column,
                     double *ret) GP_MUST_CHECK;

#endif
