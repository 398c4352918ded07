#include "proc/inspect.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/container.h"
#include "proc/files.h"
#include "proc/holders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, STATUS_BYTES = 16384, CGROUP_BYTES = 8192 };

/* A look at one process. The descriptor of its directory always refers to that process: after it
 * exits, reads fail, and never return data of a process with a recycled pid. */
struct look {
    struct gp_inspect *in;
    int proc; /* /proc */
    int dir;  /* the directory of the process; −1: the reason is in in->error */
    bool is_this_machine;
};

/* The reason for a failed call. A file may be missing because the process is gone. */
static int reason(const struct look *look, int error)
{
    if (look->in->error)
        return look->in->error;
    if (error == EPERM)
        return EACCES;
    if (error != ENOENT)
        return error;
    bool is_gone =
        faccessat(look->dir, "stat", F_OK, 0) != 0 && (errno == ENOENT || errno == ESRCH);
    return is_gone ? ESRCH : ENODATA;
}

/* ---- small files ---- */

/* Returns 0 or the reason; text is NUL-terminated. */
static int read_file(const struct look *look, const char *name, char *text, size_t size)
{
    long n = gp_io_read_at(look->dir, name, text, size);
    return n < 0 ? reason(look, (int)-n) : 0;
}

static struct gp_inspect_text make_text(const struct look *look, const char *s, size_t n)
{
    const char *copy = gp_proc_safe_copy(&look->in->arena, s, n, PATH_BYTES);
    return (struct gp_inspect_text){.error = copy ? 0 : ENOMEM, .text = copy};
}

static struct gp_inspect_number find_number(const char *text, const char *label, uint64_t factor)
{
    uint64_t value;
    if (!gp_proc_find_number(text, label, &value))
        return (struct gp_inspect_number){.error = ENODATA};
    return (struct gp_inspect_number){.value = value * factor};
}

static void read_stat(const struct look *look)
{
    char text[1024];
    struct gp_proc_stat stat;
    struct gp_inspect *in = look->in;
    in->stat_error = read_file(look, "stat", text, sizeof(text));
    if (!in->stat_error && !gp_proc_parse_stat(text, &stat))
        in->stat_error = ENODATA;
    if (in->stat_error)
        return;
    in->state = stat.state;
    in->ppid = stat.ppid;
    in->nice = stat.nice;
    in->threads = stat.threads;
    in->start_ticks = stat.start_ticks;
    in->start_ns = gp_proc_boot_wall_ns(look->proc, look->is_this_machine ||
                                                        gp_proc_is_linked(look->proc, in->pid)) +
                   gp_proc_ticks_to_ns(stat.start_ticks);
    in->user_ns = gp_proc_ticks_to_ns(stat.user_ticks);
    in->system_ns = gp_proc_ticks_to_ns(stat.system_ticks);
}

/* "\nCpus_allowed:\tff,ffffffff": one bit for each CPU. */
static struct gp_inspect_number count_bits(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    uint64_t count = 0;
    if (!at)
        return (struct gp_inspect_number){.error = ENODATA};
    for (at += strlen(label); isxdigit((unsigned char)*at) || *at == ','; at++) {
        const char digit[] = {*at, '\0'};
        count += (uint64_t)__builtin_popcountl(strtoul(digit, NULL, 16));
    }
    return (struct gp_inspect_number){.error = count > 0 ? 0 : ENODATA, .value = count};
}

static void read_status(const struct look *look)
{
    char text[STATUS_BYTES];
    struct gp_inspect *in = look->in;
    const struct {
        const char *label;
        struct gp_inspect_number *number;
        uint64_t factor;
    } rows[] = {
        {"\nVmSize:", &in->virtual_bytes, 1024},
        {"\nVmRSS:", &in->resident_bytes, 1024},
        {"\nRssShmem:", &in->shared_bytes, 1024},
        {"\nVmLck:", &in->locked_bytes, 1024},
        {"\nVmSwap:", &in->swapped_bytes, 1024},
        {"\nvoluntary_ctxt_switches:", &in->voluntary_switches, 1},
        {"\nnonvoluntary_ctxt_switches:", &in->involuntary_switches, 1},
        {NULL, &in->ns_pid, 0},
        {NULL, &in->cpus, 0},
    };
    int error = read_file(look, "status", text, sizeof(text));
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        if (error)
            *rows[i].number = (struct gp_inspect_number){.error = error};
        else if (rows[i].label)
            *rows[i].number = find_number(text, rows[i].label, rows[i].factor);
    }
    if (error)
        return;
    in->ns_pid.error = gp_proc_find_ns_pid(text, &in->ns_pid.value) ? 0 : ENODATA;
    in->cpus = count_bits(text, "\nCpus_allowed:\t");
}

static void read_io(const struct look *look)
{
    char text[1024];
    int error = read_file(look, "io", text, sizeof(text));
    struct gp_inspect_number none = {.error = error};
    look->in->read_bytes = error ? none : find_number(text, "\nread_bytes:", 1);
    look->in->written_bytes = error ? none : find_number(text, "\nwrite_bytes:", 1);
}

static void read_oom_score(const struct look *look)
{
    char text[64];
    int error = read_file(look, "oom_score", text, sizeof(text));
    struct gp_inspect_number none = {.error = error};
    look->in->oom_score = error ? none : find_number(text, "", 1);
}

/* ---- texts ---- */

static void read_name(const struct look *look)
{
    char text[64];
    int error = read_file(look, "comm", text, sizeof(text));
    struct gp_inspect_text none = {.error = error};
    look->in->name = error ? none : make_text(look, text, strcspn(text, "\n"));
}

static struct gp_inspect_text read_link(const struct look *look, const char *name)
{
    char path[PATH_BYTES];
    ssize_t n = readlinkat(look->dir, name, path, sizeof(path));
    if (n < 0)
        return (struct gp_inspect_text){.error = reason(look, errno)};
    return make_text(look, path, (size_t)n);
}

static void read_cgroup(const struct look *look)
{
    char text[CGROUP_BYTES];
    char container[GP_PROC_CONTAINER_SIZE];
    struct gp_inspect *in = look->in;
    int error = read_file(look, "cgroup", text, sizeof(text));
    in->cgroup.error = in->container.error = error ? error : ENODATA;
    if (error)
        return;
    const char *path;
    size_t n = gp_proc_cgroup_path(text, &path);
    if (n > 0)
        in->cgroup = make_text(look, path, n);
    if (gp_proc_container(text, container))
        in->container = make_text(look, container, strlen(container));
}

/* ---- lists ---- */

/* Splits NUL-terminated texts and sanitizes each. Programs that write a title over their arguments
 * leave many empty ones at the end; an empty argument between others is a real one. */
static int split(struct gp_arena *arena, const char *text, size_t n, bool keeps_empty,
                 struct gp_inspect_list *list)
{
    /* No escape is longer than four times the original. */
    struct gp_strbuf words = GP_STRBUF_INIT(5 * (size_t)GP_INSPECT_LIST_BYTES);
    size_t count = 0;
    while (n > 0 && text[n - 1] == '\0')
        n--;
    for (size_t i = 0, len; i < n; i += len + 1) {
        len = strnlen(text + i, n - i);
        if (len == 0 && !keeps_empty)
            continue;
        gp_utf8_add_safe(&words, text + i, len, words.max);
        gp_strbuf_addc(&words, '\0');
        count++;
    }
    const char **items = gp_arena_alloc(arena, count + 1, sizeof(*items));
    char *copy = gp_arena_alloc(arena, words.len + 1, 1);
    int error = words.error || !items || !copy ? ENOMEM : 0;
    if (!error)
        memcpy(copy, words.buf, words.len);
    for (size_t i = 0; !error && i < count; i++) {
        items[i] = copy;
        copy += strlen(copy) + 1;
    }
    gp_strbuf_fini(&words);
    if (!error) {
        list->items = items;
        list->count = count;
    }
    return error;
}

static void read_list(const struct look *look, const char *name, bool keeps_empty,
                      struct gp_inspect_list *list)
{
    char *text = malloc((size_t)GP_INSPECT_LIST_BYTES + 1);
    long n =
        text ? gp_io_read_at(look->dir, name, text, (size_t)GP_INSPECT_LIST_BYTES + 1) : -ENOMEM;
    if (n < 0) {
        list->error = text ? reason(look, (int)-n) : ENOMEM;
    } else {
        list->is_cut = n == GP_INSPECT_LIST_BYTES;
        list->error = split(&look->in->arena, text, (size_t)n, keeps_empty, list);
    }
    free(text);
}

/* ---- open devices ---- */

static int add_device(struct gp_arena *arena, struct gp_inspect_devices *devices, const char *path,
                      unsigned fd)
{
    const char *copy = gp_proc_safe_copy(arena, path, strlen(path), PATH_BYTES);
    if (!copy)
        return ENOMEM;
    for (size_t i = 0; i < devices->count; i++) {
        struct gp_inspect_device *d = &devices->items[i];
        if (strcmp(d->path, copy) != 0)
            continue;
        d->opens++;
        d->first_fd = fd < d->first_fd ? fd : d->first_fd;
        return 0;
    }
    if (devices->count < GP_INSPECT_DEVICES)
        devices->items[devices->count++] =
            (struct gp_inspect_device){.path = copy, .first_fd = fd, .opens = 1};
    else
        devices->is_cut = true;
    return 0;
}

/* Even with permission to list the descriptors, reading their links may be denied. */
static int read_descriptors(DIR *dir, struct gp_arena *arena, struct gp_inspect_devices *devices)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    bool any = false;
    int error = 0;
    while ((errno = 0, entry = readdir(dir)) && !devices->is_cut) {
        char *end;
        unsigned long fd = strtoul(entry->d_name, &end, 10);
        if (end == entry->d_name || *end)
            continue;
        devices->open_files++;
        devices->is_cut = devices->open_files == GP_INSPECT_FILES;
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1);
        if (n < 0) {
            error = errno; /* ENOENT: it was closed a moment ago */
            continue;
        }
        any = true;
        path[n] = '\0';
        if (gp_proc_is_gpu_device(path) && add_device(arena, devices, path, (unsigned)fd) != 0)
            return ENOMEM;
    }
    return errno ? errno : any || error == ENOENT ? 0 : error;
}

static int compare_devices(const void *a, const void *b)
{
    const struct gp_inspect_device *x = a;
    const struct gp_inspect_device *y = b;
    return strverscmp(x->path, y->path);
}

static void read_devices(const struct look *look)
{
    struct gp_inspect_devices devices = {0};
    struct gp_arena *arena = &look->in->arena;
    int fd = openat(look->dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    int error = dir ? 0 : errno;
    if (!dir && fd >= 0)
        (void)close(fd);
    devices.items = gp_arena_alloc(arena, GP_INSPECT_DEVICES, sizeof(*devices.items));
    if (!devices.items)
        error = ENOMEM;
    if (!error)
        error = read_descriptors(dir, arena, &devices);
    if (dir)
        (void)closedir(dir);
    if (devices.count > 0)
        qsort(devices.items, devices.count, sizeof(*devices.items), compare_devices);
    look->in->devices = devices;
    if (error)
        look->in->devices = (struct gp_inspect_devices){.error = reason(look, error)};
}

/* ---- ancestors ---- */

static bool is_known(const struct gp_inspect *in, uint32_t pid)
{
    bool known = pid == in->pid;
    for (size_t i = 0; i < in->ancestor_count; i++)
        known = known || in->ancestors[i].pid == pid;
    return known;
}

/* Reads the ancestors up to init, or to the first that is not visible. A parent that started after
 * its child is a process with a recycled pid. */
static void read_ancestors(const struct look *look)
{
    struct gp_inspect *in = look->in;
    uint32_t pid = in->ppid;
    uint64_t start_ticks = in->start_ticks;
    if (pid > 0)
        in->ancestors = gp_arena_alloc(&in->arena, GP_INSPECT_ANCESTORS, sizeof(*in->ancestors));
    while (in->ancestors && pid > 0 && in->ancestor_count < GP_INSPECT_ANCESTORS &&
           !is_known(in, pid)) {
        struct gp_proc_stat stat;
        struct gp_proc_command command = {0};
        if (!gp_proc_read_stat(look->proc, pid, &stat) || stat.start_ticks > start_ticks)
            return;
        (void)gp_proc_read_command(look->proc, pid, &in->arena, &command);
        in->ancestors[in->ancestor_count++] =
            (struct gp_inspect_ancestor){.pid = pid, .command = command.line ? command.line : "?"};
        pid = stat.ppid;
        start_ticks = stat.start_ticks;
    }
}

/* ---- reading ---- */

static void open_folders(struct look *look, const char *root)
{
    char path[GP_PATH_SIZE];
    char name[16];
    const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    look->dir = -1;
    look->proc = -1;
    errno = ENAMETOOLONG;
    if (gp_io_path(path, root, "/proc"))
        look->proc = open(path, flags);
    if (look->proc < 0) {
        look->in->error = errno;
        return;
    }
    (void)snprintf(name, sizeof(name), "%u", look->in->pid);
    look->dir = openat(look->proc, name, flags);
    if (look->dir < 0)
        look->in->error = errno == ENOENT ? ESRCH : errno;
}

struct gp_inspect *gp_proc_inspect(const char *root, uint32_t pid)
{
    struct gp_inspect *in = calloc(1, sizeof(*in));
    if (!in)
        return NULL;
    struct look look = {.in = in, .is_this_machine = !root};
    in->pid = pid;
    open_folders(&look, root);
    read_stat(&look);
    read_status(&look);
    read_io(&look);
    read_oom_score(&look);
    read_name(&look);
    in->program = read_link(&look, "exe");
    in->directory = read_link(&look, "cwd");
    read_cgroup(&look);
    read_devices(&look);
    read_ancestors(&look);
    read_list(&look, "cmdline", true, &in->arguments);
    read_list(&look, "environ", false, &in->environment);
    if (look.dir >= 0)
        (void)close(look.dir);
    if (look.proc >= 0)
        (void)close(look.proc);
    return in;
}

void gp_inspect_free(struct gp_inspect *in)
{
    if (!in)
        return;
    gp_arena_fini(&in->arena);
    free(in);
}
