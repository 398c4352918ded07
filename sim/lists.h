/* The lists of a simulated GPU as tables of values; lists.def defines them. */
#ifndef GPULSE_SIM_LISTS_H
#define GPULSE_SIM_LISTS_H

#include "abi/nvml.h"
#include "base/arena.h"

#include <jansson.h>

struct gp_err;
struct sim_value;

enum sim_list {
#define SIM_LIST(list, key) SIM_LIST_##list,
#define SIM_CELL(list, cell, key, kind)
#include "sim/lists.def"
    SIM_LIST_COUNT
};

/* The members of all lists; those of a list start with its _FIRST. */
enum sim_cell {
    SIM_CELL_NONE,
#define SIM_LIST(list, key) SIM_##list##_FIRST, SIM_##list##_BEFORE = SIM_##list##_FIRST - 1,
#define SIM_CELL(list, cell, key, kind) SIM_##cell,
#include "sim/lists.def"
    SIM_CELL_COUNT
};

enum { SIM_MAX_ROWS = 100000 };

struct sim_rows {
    nvmlReturn_t code; /* returned by the calls that read them */
    size_t count;
    size_t width;
    enum sim_cell first;
    struct sim_value *cells;
};

struct sim_lists {
    struct sim_rows rows[SIM_LIST_COUNT];
};

/* Loads the member "lists" of a device; json may be NULL. GP_EFORMAT describes the error and its
 * place. */
int sim_lists_load(json_t *json, struct gp_arena *arena, struct sim_lists *ret, struct gp_err *err);

const struct sim_value *sim_cell(const struct sim_rows *rows, size_t row, enum sim_cell cell);

/* The number of a cell, or a fallback if it is a return code. */
uint64_t sim_cell_number(const struct sim_rows *rows, size_t row, enum sim_cell cell,
                         uint64_t fallback);

/* The text of a cell, "" if there is none. */
const char *sim_cell_text(const struct sim_rows *rows, size_t row, enum sim_cell cell);

#endif
