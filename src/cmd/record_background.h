/* Recording in the background: start, stop and status. */
#ifndef GP_CMD_RECORD_BACKGROUND_H
#define GP_CMD_RECORD_BACKGROUND_H

#include "base/io.h"
#include "cmd/record.h"

/* This user's own recording; creates nothing. GP_EIO without a home directory. */
int gp_record_own_file(char ret[GP_PATH_SIZE], struct gp_err *err) GP_MUST_CHECK;
/* The same, for writing it: creates its directory. GP_EIO. */
int gp_record_make_own_folder(char ret[GP_PATH_SIZE], struct gp_err *err) GP_MUST_CHECK;

/* The recording that this user means without naming one: its own, or otherwise the machine's.
 * False: there is neither. Creates nothing. */
bool gp_record_find_file(char ret[GP_PATH_SIZE]) GP_MUST_CHECK;

/* Starts a process that records, and returns when it does. GP_EBUSY: one does already. */
int gp_record_start(const struct gp_record_options *o, struct gp_err *err) GP_MUST_CHECK;

/* Ends the process that records to the file, and waits for that. GP_EFAIL: there is none. */
int gp_record_stop(const char *file, struct gp_err *err) GP_MUST_CHECK;

/* Prints what is recorded. */
int gp_record_status(const char *file, struct gp_err *err) GP_MUST_CHECK;

#endif
