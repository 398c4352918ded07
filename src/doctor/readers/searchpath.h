/* Directory lists such as PATH and LD_LIBRARY_PATH, and where a variable is set. */
#ifndef GP_DOCTOR_READERS_SEARCHPATH_H
#define GP_DOCTOR_READERS_SEARCHPATH_H

#include "base/io.h"

struct gp_elf;
struct gp_exam;

/* The next element of a list, which may be empty; *list moves past it, and is NULL after the last.
 * `marks` are the separators: ":" or, for the loader, ":;". Elements that are too long are skipped.
 * False: no more. */
bool gp_search_path_next(const char **list, const char *marks, char ret[GP_PATH_SIZE]);

/* The program that the user's shell starts by this name: the first in an absolute directory of
 * PATH. NULL: there is none. */
const char *gp_search_path_program(struct gp_exam *exam, const char *name);

/* The i-th directory in which the loader or the linker looks by itself; NULL: no more. */
const char *gp_system_folder(struct gp_exam *exam, size_t i);

/* The place of a library, "libcuda.so.1" or "dri/iHD_drv_video.so", in those directories below a
 * root ("": the machine's own); NULL: it is in none. */
const char *gp_system_library(struct gp_exam *exam, const char *root, const char *name);

/* Whether a library is in those directories, or next to the driver's others, where some packages
 * have all of them. */
bool gp_system_has_driver_library(struct gp_exam *exam, const char *name);

/* The next line of a shell file, or of /etc/environment, that sets a variable, after line *line (0
 * at first): only the assignment, of *ret_length bytes, as the rest of the line may be secret.
 * False: there is none. */
bool gp_assignment_next(const char **text, const char *name, unsigned *line, const char **ret,
                        size_t *ret_length);

/* A line of the user's and the system's files that sets a variable. */
struct gp_assignment {
    const char *path, *place; /* "/etc/environment", "/etc/environment:3" */
    const char *text;         /* only the assignment, as above */
    bool is_at_start;         /* not indented, as in a function or a condition */
};

typedef void gp_assignment_found(struct gp_exam *exam, const struct gp_assignment *found,
                                 void *argument);

/* Visits these lines, of each file at most `lines_max`. */
void gp_assignments_each(struct gp_exam *exam, const char *name, unsigned lines_max,
                         gp_assignment_found *found, void *argument);

/* The value that those files give a variable in every new shell, whatever this one has, and its
 * place; NULL: none. Indented lines are of a function or a condition, and do not count. */
const char *gp_assignment_last(struct gp_exam *exam, const char *name, const char **ret_place);

/* Whether those files add a directory with this file to a list such as PATH. Also if they add one
 * whose name is not known, "$(…)/bin", and the file is somewhere else: it may be there. */
bool gp_assignments_reach(struct gp_exam *exam, const char *name, const char *file,
                          bool is_elsewhere);

/* Whether a program or library in a folder finds this one in the directories that it names itself,
 * "$ORIGIN/../lib". */
bool gp_run_path_has(struct gp_exam *exam, const struct gp_elf *elf, const char *folder,
                     const char *name);

#endif
