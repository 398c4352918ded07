/* What the commands share: the common options, the sampler they lead to, and the sampling loop. */
#ifndef GP_CMD_APP_H
#define GP_CMD_APP_H

#include "base/cli.h"
#include "model/metric.h"
#include "model/select.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_snapshot;
struct gp_strbuf;

/* Options of every command; they may stand before the command too. */
struct gp_common {
    const char *id;
    const char *sim;
    bool sim_still;
    const char *root;
    const char *color;
    uint64_t timeout_ns; /* 0: not given */
    bool release_when_idle;
    bool help;
    bool version;
};

extern const struct gp_opt gp_common_options[];
extern const struct gp_program gp_program;

/* The values of the common options, once per process. */
struct gp_common *gp_common(void);

/* Parses a command's own options together with the common ones. With --help or
 * --version, prints that and sets *ret_done. */
int gp_app_parse(const struct gp_cmd *cmd, int argc, char **argv, void *values, int *ret_positional,
                 bool *ret_done, struct gp_err *err) GP_MUST_CHECK;

void gp_app_close(struct gp_sampler *sampler);

/* The given --timeout, or this one. */
uint64_t gp_app_timeout_ns(uint64_t fallback_ns);

/* The source that the common options ask for, and which GPUs they choose; the latter lives as long
 * as the process. */
int gp_app_source(struct gp_source **ret, struct gp_selection **ret_selection,
                  struct gp_err *err) GP_MUST_CHECK;

/* To be called before the first thread: the environment is not changed behind it. */
void gp_app_prepare(void);

/* The same source, and the GPU with this index; callable by any thread, one at a time to look and
 * one to change. */
enum gp_app_purpose { GP_APP_LOOK, GP_APP_CHANGE };
int gp_app_source_of(unsigned index, enum gp_app_purpose purpose, struct gp_source **ret,
                     struct gp_selection **ret_selection, struct gp_err *err) GP_MUST_CHECK;

/* Puts what the common options say of the simulated machine and its files into the environment, for
 * a program that is to see the same. */
void gp_app_export(void);

/* Notes that a thread is stuck inside the driver. */
void gp_app_note_stuck(void);

/* Whether a thread is stuck inside the driver: then the process must end with _exit(), because what
 * exit() runs would pull the driver's library from under that thread. */
bool gp_app_is_stuck(void);

/* The simulated machine that is shown, NULL for the real one. */
const char *gp_app_machine(void);

/* The prefix below which the files of the machine that is shown lie, "" for the real one; NULL for
 * a simulated one without files. */
const char *gp_app_root(void);

/* The prefix of --root, below which processes are read; NULL: none. */
const char *gp_app_prefix(void);

/* Whether the processes that are listed are those of this machine. */
bool gp_app_is_reachable(void);

/* The libnvidia-ml.so.1 to load, in the same manner. */
int gp_app_driver_library(const char **ret, struct gp_err *err) GP_MUST_CHECK;

/* The libcuda.so.1 to load: the simulated one, what GPULSE_CUDA names, or NULL: a search. */
int gp_app_cuda_library(const char **ret, struct gp_err *err) GP_MUST_CHECK;

/* Appends "gpulse VERSION" and a line end. */
void gp_app_add_version(struct gp_strbuf *sb);

/* Asks on the terminal, and goes on only with a yes. GP_EUSAGE, with what --yes is for, if there is
 * nobody to ask; GP_EFAIL after another answer. `nothing` says what has happened then. */
int gp_app_confirm(const char *question, const char *nothing, struct gp_err *err) GP_MUST_CHECK;

/* Whether to colour what goes to standard output. */
bool gp_app_wants_color(void);

/* Columns of the terminal behind standard output; 0: there is none. */
size_t gp_app_columns(void);

/* Fills err with what is missing in a partial snapshot, for the message on standard error. */
void gp_app_explain_partial(const struct gp_snapshot *snapshot, struct gp_err *err);

struct gp_loop {
    uint64_t interval_ns;   /* 0: one sample */
    uint64_t count;         /* 0: no limit */
    uint64_t duration_ns;   /* 0: no limit */
    uint64_t first_look_ns; /* see gp_sampler_goes_on(); not for gp_app_loop() */
};

/* Opens the sampler that the common options ask for. Only the first sample of a loop waits
 * for the whole timeout. */
int gp_app_open(const struct gp_want *want, const struct gp_loop *loop, struct gp_sampler **ret,
                struct gp_err *err) GP_MUST_CHECK;

/* The same with a source and a selection of one's own; callable by any thread. */
int gp_app_open_source(struct gp_source *source, struct gp_selection *selection,
                       const struct gp_want *want, const struct gp_loop *loop,
                       struct gp_sampler **ret, struct gp_err *err) GP_MUST_CHECK;

/* Samples and hands each snapshot to on_sample, until count, duration or a signal ends it; an error
 * of on_sample ends it too. Returns GP_OK, GP_EPARTIAL if the last sample was partial, GP_EINTR
 * after a signal, or the error. The samples stay in step with the clock; missed ones are left out.
 * SIGUSR1 has it let go of the driver, and the next one take hold again. */
int gp_app_loop(struct gp_sampler *sampler, const struct gp_loop *loop,
                int (*on_sample)(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err),
                void *ctx, struct gp_err *err) GP_MUST_CHECK;

/* SIGINT, SIGTERM and SIGHUP end a loop from here on, not the process; the second one does. */
void gp_app_catch_signals(void);

/* Ends the process by the signal that has ended a loop, as it would without gpulse's own ending;
 * what is to be written is written. */
_Noreturn void gp_app_end_by_signal(void);

/* Sleeps until this moment, or until the descriptor (−1: none) is readable; SIGUSR1 has the sampler
 * (NULL: none) let go of the driver or take hold again. GP_EINTR after another signal. When nobody
 * reads `out_fd` (−1: none) any more, the process ends as a write would end it. */
int gp_app_sleep(struct gp_sampler *sampler, uint64_t mono_ns, int fd, int out_fd);

/* Writes the whole buffer to the file descriptor. GP_EIO, or the buffer's own error. */
int gp_app_write(int fd, const struct gp_strbuf *sb, struct gp_err *err) GP_MUST_CHECK;

#endif
