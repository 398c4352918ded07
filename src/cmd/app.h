/* What the commands share: the common options, the sampler built from them, and the sampling
 * loop. */
#ifndef GP_CMD_APP_H
#define GP_CMD_APP_H

#include "base/cli.h"
#include "model/metric.h"
#include "model/select.h"
#include "sample/observed.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_snapshot;
struct gp_strbuf;

/* Options of every command; they are also accepted before the command. */
struct gp_common {
    const char *id;
    const char *sim;
    bool sim_still;
    const char *root;
    const char *color;
    uint64_t timeout_ns; /* 0: not given */
    const char *tape;    /* a recording to read instead of the driver; NULL: none */
    const char *at;
    bool release_when_idle;
    bool help;
    bool version;
};

extern const struct gp_opt gp_common_options[];

/* The values of the common options, once per process. */
struct gp_common *gp_common(void);

/* Call this first: --help is about a command of this program. Also makes sure that the standard
 * file descriptors are open. */
void gp_app_init(const struct gp_program *program);

/* Likewise in a program that is one command of gpulse. */
void gp_app_init_helper(const struct gp_cmd *command);

/* Parses a command's own options together with the common ones. With --help or
 * --version, prints that and sets *ret_done. */
int gp_app_parse(const struct gp_cmd *cmd, int argc, char **argv, void *values, int *ret_positional,
                 bool *ret_done, struct gp_err *err) GP_MUST_CHECK;

void gp_app_close(struct gp_sampler *sampler);

/* The given --timeout, or the fallback. */
uint64_t gp_app_timeout_ns(uint64_t fallback_ns);

/* The source and the GPU selection from the common options; the selection lives as long as the
 * process. */
int gp_app_source(struct gp_source **ret, struct gp_selection **ret_selection,
                  struct gp_err *err) GP_MUST_CHECK;

/* The machine that the common options name. The first call sets the environment: make it before the
 * first thread starts. */
const struct gp_observed *gp_app_observed(void);

/* The same source, and a selection of the GPU with this index. Callable from any thread, but only
 * one at a time for each purpose. */
enum gp_app_purpose { GP_APP_LOOK, GP_APP_CHANGE };
int gp_app_source_of(unsigned index, enum gp_app_purpose purpose, struct gp_source **ret,
                     struct gp_selection **ret_selection, struct gp_err *err) GP_MUST_CHECK;

/* Exports the common options for the simulated machine and its files to the environment, for a
 * program that must see the same. */
void gp_app_export(void);

/* Records that a thread is stuck in the driver. */
void gp_app_note_stuck(void);

/* Whether a thread is stuck in the driver: the process must then terminate with _exit(), because
 * exit() would unload the driver's library under that thread. */
bool gp_app_is_stuck(void);

/* Whether --columns has the value "help", which prints the columns. */
bool gp_app_wants_columns(const char *columns);
int gp_app_print_columns(void (*add)(struct gp_strbuf *sb), struct gp_err *err) GP_MUST_CHECK;

/* For a command that takes options only: GP_EUSAGE names the first of its positional arguments. */
int gp_app_refuse_words(const struct gp_cmd *cmd, int count, char **argv,
                        struct gp_err *err) GP_MUST_CHECK;

/* Appends "gpulse VERSION" and a newline. */
void gp_app_add_version(struct gp_strbuf *sb);

/* Prints the version, the build, the libraries and the driver. Calls no driver, as it may hang. */
int gp_app_print_version(struct gp_err *err) GP_MUST_CHECK;

/* Prints the error. Without a driver, two lines say how to go on. */
void gp_app_print_error(const struct gp_err *err);

/* Asks on the terminal; only yes returns GP_OK. GP_EUSAGE, suggesting --yes, if there is no
 * terminal; GP_EFAIL after another answer, with the text of `nothing`. */
int gp_app_confirm(const char *question, const char *nothing, struct gp_err *err) GP_MUST_CHECK;

/* Whether to use colors on standard output. */
bool gp_app_wants_color(void);

struct gp_loop {
    uint64_t interval_ns;   /* 0: one sample */
    uint64_t count;         /* 0: no limit */
    uint64_t duration_ns;   /* 0: no limit */
    uint64_t first_look_ns; /* see gp_sampler_goes_on(); not for gp_app_loop() */
    unsigned event_wait_ms; /* see struct gp_sampler_config, like the next */
    bool is_relieved;
    struct gp_metric_set brief; /* likewise */
};

/* Opens the sampler for the common options. Only the first sample of a loop waits for the whole
 * timeout. */
int gp_app_open(const struct gp_want *want, const struct gp_loop *loop, struct gp_sampler **ret,
                struct gp_err *err) GP_MUST_CHECK;

/* The same with the caller's own source and selection; callable from any thread. */
int gp_app_open_source(struct gp_source *source, struct gp_selection *selection,
                       const struct gp_want *want, const struct gp_loop *loop,
                       struct gp_sampler **ret, struct gp_err *err) GP_MUST_CHECK;

/* Samples and passes each snapshot to on_sample, until count, duration, a signal or an error of
 * on_sample stops it. Returns GP_OK, GP_EPARTIAL if the last sample was partial, GP_EINTR after a
 * signal, or the error. Samples are aligned with the clock; missed ones are skipped. SIGUSR1 makes
 * it close the driver, and a second one reopen it. */
int gp_app_loop(struct gp_sampler *sampler, const struct gp_loop *loop,
                int (*on_sample)(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err),
                void *ctx, struct gp_err *err) GP_MUST_CHECK;

/* From here on, SIGINT, SIGTERM and SIGHUP stop a loop instead of the process; a second one
 * terminates the process. */
void gp_app_catch_signals(void);

/* Whether such a signal has arrived. */
bool gp_app_is_stopped(void);

/* Terminates the process with the signal that stopped a loop, as its default action would. Flush
 * the output first. */
_Noreturn void gp_app_end_by_signal(void);

/* Sleeps until this time, or until the descriptor (−1: none) is readable; SIGUSR1 makes the sampler
 * (NULL: none) close or reopen the driver. GP_EINTR after another signal. If `out_fd` (−1: none)
 * loses its reader, the process terminates as a write would terminate it. */
int gp_app_sleep(struct gp_sampler *sampler, uint64_t mono_ns, int fd, int out_fd);

/* Writes the whole buffer to the file descriptor. GP_EIO, or the buffer's own error. */
int gp_app_write(int fd, const struct gp_strbuf *sb, struct gp_err *err) GP_MUST_CHECK;

#endif
