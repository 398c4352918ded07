#include "lib/lib.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

static int code_of(int error)
{
    static const struct {
        int own, public;
    } codes[] = {
        {GP_EUSAGE, GPULSE_EUSAGE},     {GP_EFORMAT, GPULSE_EUSAGE},  {GP_ENODEV, GPULSE_ENODEV},
        {GP_EDRIVER, GPULSE_EDRIVER},   {GP_EPERM, GPULSE_EPERM},     {GP_ENOMEM, GPULSE_ENOMEM},
        {GP_ETIMEOUT, GPULSE_ETIMEOUT}, {GP_EBUSY, GPULSE_EBUSY},     {GP_EEXPIRED, GPULSE_EBUSY},
        {GP_ENEVER, GPULSE_ENEVER},     {GP_EINTR, GPULSE_ECANCELED},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++)
        if (codes[i].own == error)
            return codes[i].public;
    return GPULSE_EFAIL;
}

/* Messages name the options of commands, such as --params; the members here have the same names. An
 * option in a command to type, such as "gpulse pick --explain", stays. */
static void copy_without_dashes(char *ret, size_t size, const char *text)
{
    bool is_command = false;
    size_t n = 0;
    for (const char *p = text; *p && n + 1 < size; p++) {
        const bool is_begin = p == text || strchr(" '\"(", p[-1]);
        is_command = (is_command && !strchr(";,:()", *p)) || strncmp(p, "gpulse ", 7) == 0;
        if (is_begin && !is_command && p[0] == '-' && p[1] == '-' && islower((unsigned char)p[2]))
            p += 2;
        ret[n++] = *p;
    }
    ret[n] = '\0';
}

int gp_lib_fail_with(struct gpulse_error *error, int code, const char *text)
{
    if (error) {
        *error = (struct gpulse_error){.code = code};
        char words[sizeof(error->text)];
        copy_without_dashes(words, sizeof(words), text);
        gp_utf8_copy_safe(error->text, sizeof(error->text), words);
    }
    return code;
}

int gp_lib_fail(struct gpulse_error *error, const struct gp_err *err, int result)
{
    const int code = code_of(result);
    (void)gp_lib_fail_with(error, code, err->text[0] ? err->text : gp_err_text(result));
    if (error)
        error->driver_code = err->driver_code;
    return code;
}

int gp_lib_fail_fork(struct gpulse_error *error)
{
    return gp_lib_fail_with(error, GPULSE_EFORK,
                            "this was opened before fork(); open another one in the child");
}

/* ---- structures of other versions ---- */

void gp_lib_take(void *ret, size_t size, const void *given)
{
    size_t given_size;
    if (!given)
        return;
    memcpy(&given_size, given, sizeof(given_size));
    memcpy(ret, given, given_size < size ? given_size : size);
    memcpy(ret, &given_size, sizeof(given_size)); /* also if it is 0: see gp_lib_check_size() */
}

int gp_lib_check_size(size_t size, const char *what, struct gp_err *err)
{
    return size > sizeof(size)
               ? 0
               : gp_err_set(err, GP_EUSAGE, "the member 'size' of struct %s must be its sizeof",
                            what);
}

void gp_lib_give(void *ret, const void *own, size_t size)
{
    size_t room;
    memcpy(&room, ret, sizeof(room));
    memcpy(ret, own, room < size ? room : size);
    memcpy(ret, &room, sizeof(room));
}

/* ---- the machine ---- */

enum { STUCK_MOST = 64 }; /* each keeps a thread and a session of the driver */

/* Memory that threads which hang may use, and their sampler or changer. */
static struct kept {
    void *memory;
    struct gp_sampler *sampler;
    struct gp_changer *changer;
    struct kept *next;
} * all_kept;

static atomic_uint stuck;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_observed observed;

/* In a child, none of these threads exist. */
static void forget_kept(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    kept_lock = fresh;
    all_kept = NULL;
    atomic_store(&stuck, 0);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_kept);
}

static void keep(const struct kept *new)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct kept *kept = malloc(sizeof(*kept));
    (void)pthread_once(&once, watch_forks);
    (void)atomic_fetch_add(&stuck, 1);
    if (!kept)
        return;
    (void)pthread_mutex_lock(&kept_lock);
    *kept = *new;
    kept->next = all_kept;
    all_kept = kept;
    (void)pthread_mutex_unlock(&kept_lock);
}

void gp_lib_keep(void *memory, struct gp_sampler *sampler)
{
    keep(&(struct kept){.memory = memory, .sampler = sampler});
}

void gp_lib_keep_changer(void *memory, struct gp_changer *changer)
{
    keep(&(struct kept){.memory = memory, .changer = changer});
}

static bool free_one(struct kept *kept)
{
    if (kept->sampler && gp_sampler_is_busy(kept->sampler))
        return false;
    if (!gp_sampler_free(kept->sampler) || !gp_changer_free(kept->changer))
        return false;
    free(kept->memory);
    free(kept);
    return true;
}

/* Frees what is kept of threads that have returned. */
static void free_kept(void)
{
    if (atomic_load(&stuck) == 0 || pthread_mutex_trylock(&kept_lock) != 0)
        return; /* somebody else is at it */
    for (struct kept **at = &all_kept; *at;) {
        struct kept *kept = *at;
        struct kept *next = kept->next;
        if (!free_one(kept)) {
            at = &kept->next;
            continue;
        }
        *at = next;
        (void)atomic_fetch_sub(&stuck, 1);
    }
    (void)pthread_mutex_unlock(&kept_lock);
}

bool gpulse_is_stuck(void)
{
    free_kept();
    return atomic_load(&stuck) > 0;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

int gp_lib_observe(const struct gpulse_options *options, const struct gp_observed **ret,
                   struct gp_err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_chosen;
    int r = gp_lib_check_size(options->size, "gpulse_options", err);
    if (r < 0)
        return r;
    free_kept();
    if (atomic_load(&stuck) >= STUCK_MOST)
        return gp_err_set(err, GP_EFAIL,
                          "%d calls of the driver hang; it is asked again when some have returned",
                          (int)STUCK_MOST);
    (void)pthread_mutex_lock(&lock);
    if (!is_chosen) {
        const char *sim = gp_observed_sim(options->sim);
        const char *root = gp_observed_root(options->root);
        /* never freed: the process uses them to its end */
        observed.sim = sim ? strdup(sim) : NULL;
        observed.root = root ? strdup(root) : NULL;
        observed.sim_still = options->flags & GPULSE_STILL;
        is_chosen = (!sim || observed.sim) && (!root || observed.root);
        if (is_chosen)
            gp_observed_prepare(&observed);
        else
            r = gp_err_set(err, GP_ENOMEM, "out of memory");
    } else if ((options->sim && !is_same(options->sim, observed.sim)) ||
               (options->root && !is_same(options->root, observed.root))) {
        r = gp_err_set(err, GP_EUSAGE, "this process observes another machine already");
    }
    (void)pthread_mutex_unlock(&lock);
    *ret = &observed;
    return r;
}

bool gp_lib_is_reachable(void)
{
    return gp_observed_is_reachable(&observed);
}

/* ---- opening it ---- */

struct gpulse_options gp_lib_options(const struct gpulse_options *given)
{
    struct gpulse_options options = {.size = sizeof(options)};
    gp_lib_take(&options, sizeof(options), given);
    return options;
}

uint64_t gp_lib_time_ns(uint64_t ns)
{
    const uint64_t most_ns = UINT64_C(100) * 365 * 86400 * GP_NS_PER_S;
    return ns < most_ns ? ns : most_ns;
}

uint64_t gp_lib_timeout_ns(const struct gpulse_options *options, unsigned default_s)
{
    return gp_lib_time_ns(options->timeout_ns ? options->timeout_ns : default_s * GP_NS_PER_S);
}

int gp_lib_open(const struct gpulse_options *options, struct gp_selection *selection,
                const struct gp_want *want, struct gp_sampler **ret, struct gp_err *err)
{
    enum { TIMEOUT_S = 3 };
    const struct gp_observed *machine;
    struct gp_sampler_config config = {
        .selection = selection,
        .timeout_ns = gp_lib_timeout_ns(options, TIMEOUT_S),
        .want = *want,
    };
    int r = options->gpus ? gp_selection_parse(options->gpus, selection, err) : 0;
    if (r < 0)
        return r;
    config.want.mig = want->mig || gp_selection_names_mig(selection);
    r = gp_lib_observe(options, &machine, err);
    if (r < 0)
        return r;
    config.root = machine->prefix;
    r = gp_observed_source(machine, &config.source, err);
    return r < 0 ? r : gp_sampler_new(&config, ret, err);
}
