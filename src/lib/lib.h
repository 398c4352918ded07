/* What the files of the public library share. */
#ifndef GP_LIB_LIB_H
#define GP_LIB_LIB_H

#include "gpulse/gpulse.h"

#include "base/err.h"
#include "model/select.h"
#include "sample/changer.h"
#include "sample/observed.h"
#include "sample/sampler.h"

/* Fills an error (NULL: none) and returns its code. */
int gp_lib_fail(struct gpulse_error *error, const struct gp_err *err, int result);
int gp_lib_fail_with(struct gpulse_error *error, int code, const char *text);
/* GPULSE_EFORK. */
int gp_lib_fail_fork(struct gpulse_error *error);

/* A structure of a caller that was compiled with another version of the header: copies what both
 * know. The first member of both is their size; `given` may be NULL. The rest of `ret` stays. */
void gp_lib_take(void *ret, size_t size, const void *given);
/* GP_EUSAGE if that size was forgotten. */
int gp_lib_check_size(size_t size, const char *what, struct gp_err *err) GP_MUST_CHECK;
/* The opposite direction. */
void gp_lib_give(void *ret, const void *own, size_t size);

struct gpulse_options gp_lib_options(const struct gpulse_options *given);
/* Limits a time given by the caller, so that adding it to the current time cannot overflow. */
uint64_t gp_lib_time_ns(uint64_t ns);
uint64_t gp_lib_timeout_ns(const struct gpulse_options *options, unsigned default_s);

/* The machine that the first call chose; GP_EUSAGE if that was another one. */
int gp_lib_observe(const struct gpulse_options *options, const struct gp_observed **ret,
                   struct gp_err *err) GP_MUST_CHECK;
/* Whether the processes that the library lists are those of this machine. */
bool gp_lib_is_reachable(void);

/* Opens a sampler of the GPUs in options.gpus, parsed into `selection`, which must outlive it.
 * Errors as gp_sampler_new(). */
int gp_lib_open(const struct gpulse_options *options, struct gp_selection *selection,
                const struct gp_want *want, struct gp_sampler **ret,
                struct gp_err *err) GP_MUST_CHECK;

/* Keep memory that a thread which hangs in the driver may still use. It is freed, with the sampler
 * or the changer, when that thread has returned. While there are many, gp_lib_observe() fails. */
void gp_lib_keep(void *memory, struct gp_sampler *sampler);
void gp_lib_keep_changer(void *memory, struct gp_changer *changer);

#endif
