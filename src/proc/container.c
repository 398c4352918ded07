#include "proc/container.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>

/* A piece of the file's text. */
struct piece {
    const char *at;
    size_t len;
};

/* The most specific answer comes first: a job that runs in a container of a service is a job. */
enum rank { RANK_JOB, RANK_POD, RANK_CONTAINER, RANK_MACHINE, RANK_UNIT, RANK_NONE };

enum {
    ID_DIGITS = 12, /* shown digits of a container id, like in Docker */
    UID_DIGITS = 8, /* of a pod UID */
    ID_FULL = 64,
    COLUMNS = 80,
};

struct found {
    enum rank rank;
    const char *kind;
    struct piece id;
    struct piece more;     /* the step of a job, or the container of a pod */
    struct piece path;     /* the path that it was found in */
    const char *scheduler; /* the scheduler whose part of the path this is */
};

/* ---- pieces ---- */

static bool is_text(struct piece p, const char *text)
{
    return p.len == strlen(text) && memcmp(p.at, text, p.len) == 0;
}

static bool cut_head(struct piece *p, const char *head)
{
    size_t n = strlen(head);
    if (p->len < n || memcmp(p->at, head, n) != 0)
        return false;
    p->at += n;
    p->len -= n;
    return true;
}

static bool cut_tail(struct piece *p, const char *tail)
{
    size_t n = strlen(tail);
    if (p->len < n || memcmp(p->at + p->len - n, tail, n) != 0)
        return false;
    p->len -= n;
    return true;
}

static struct piece first_of(struct piece p, size_t len)
{
    return (struct piece){p.at, p.len < len ? p.len : len};
}

/* The length of the prefix that consists of these bytes. */
static size_t span(struct piece p, const char *bytes)
{
    size_t n = 0;
    while (n < p.len && strchr(bytes, p.at[n]))
        n++;
    return n;
}

static const char digits[] = "0123456789";
static const char hex_digits[] = "0123456789abcdef";

/* "121157b5-c67d-4c3e-9052-cb27bbb711fb", also with '_', or only its 32 digits, which is how a
 * kubelet names static pods. */
static bool is_uuid(struct piece p)
{
    if (p.len == 32)
        return span(p, hex_digits) == p.len;
    if (p.len != 36)
        return false;
    for (size_t i = 0; i < p.len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (!strchr(dash ? "-_" : hex_digits, p.at[i]))
            return false;
    }
    return true;
}

/* The piece before the next byte of `ends`; removes both from *rest. */
static struct piece next_piece(struct piece *rest, const char *ends)
{
    size_t n = 0;
    while (n < rest->len && !strchr(ends, rest->at[n]))
        n++;
    struct piece p = {rest->at, n};
    n += n < rest->len;
    rest->at += n;
    rest->len -= n;
    return p;
}

/* ---- containers and machines ---- */

/* A part of a path that is named after what runs in it. The first match wins. */
struct form {
    const char *before; /* the preceding part; "": any */
    const char *head;
    const char *tail;
    enum rank rank; /* CONTAINER: a hexadecimal id between head and tail; MACHINE: a name */
    const char *kind;
};

/* clang-format off */
static const struct form forms[] = {
    {"",               "docker-",         ".scope",   RANK_CONTAINER, "docker"},
    {"docker",         "",                "",         RANK_CONTAINER, "docker"},
    {"",               "cri-containerd-", ".scope",   RANK_CONTAINER, "containerd"},
    {"cri-containerd", "",                "",         RANK_CONTAINER, "containerd"},
    {"",               "crio-",           ".scope",   RANK_CONTAINER, "crio"},
    {"",               "crio-",           "",         RANK_CONTAINER, "crio"},
    {"crio",           "",                "",         RANK_CONTAINER, "crio"},
    {"",               "libpod-",         ".scope",   RANK_CONTAINER, "podman"},
    {"",               "libpod-",         "",         RANK_CONTAINER, "podman"},
    {"",               "libpod-payload-", "",         RANK_CONTAINER, "podman"}, /* split */
    {"",               "nerdctl-",        ".scope",   RANK_CONTAINER, "nerdctl"},
    {"",               "",                "",         RANK_CONTAINER, "container"},
    {"",               "lxc.payload.",    "",         RANK_MACHINE,   "lxc"}, /* LXC 4 */
    {"lxc.payload",    "",                "",         RANK_MACHINE,   "lxc"}, /* LXC 3.1 */
    {"lxc",            "",                "",         RANK_MACHINE,   "lxc"},
    {"incus.payload",  "",                "",         RANK_MACHINE,   "incus"},
    {"",               "machine-",        ".scope",   RANK_MACHINE,   "machine"},
    {"",               "systemd-nspawn@", ".service", RANK_MACHINE,   "machine"},
};
/* clang-format on */

static bool fits(const struct form *form, struct piece before, struct piece *part)
{
    if (*form->before && !is_text(before, form->before))
        return false;
    if (!cut_head(part, form->head) || !cut_tail(part, form->tail))
        return false;
    if (form->rank == RANK_MACHINE)
        return part->len > 0;
    /* Digits alone are only an id in full length. */
    bool named = *form->before || *form->head;
    return span(*part, hex_digits) == part->len && part->len <= ID_FULL &&
           part->len >= (named ? ID_DIGITS : ID_FULL);
}

/* For nested containers the innermost one, which is last, wins. */
static void look_for_container(struct found *f, struct piece before, struct piece part)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(forms); i++) {
        const struct form *form = &forms[i];
        struct piece id = part;
        if (form->rank > f->rank && f->rank != RANK_POD)
            continue;
        if (!fits(form, before, &id))
            continue;
        if (form->rank == RANK_CONTAINER)
            id = first_of(id, ID_DIGITS);
        if (f->rank != RANK_POD)
            *f = (struct found){.rank = form->rank, .kind = form->kind, .id = id};
        else if (form->rank == RANK_CONTAINER)
            f->more = id;
        return;
    }
}

/* "kubepods-burstable-podUID.slice", "podUID"; the word kubepods may be missing in another cgroup
 * namespace. A task of Amazon ECS is treated the same. */
static bool look_for_pod(struct found *f, struct piece before, struct piece part)
{
    (void)cut_tail(&part, ".slice");
    bool is_task = is_text(before, "ecs");
    struct piece uid = part;
    for (size_t i = 0; !is_task && i + 3 < part.len; i++) {
        uid = (struct piece){part.at + i, part.len - i};
        if ((i == 0 || part.at[i - 1] == '-') && cut_head(&uid, "pod") && is_uuid(uid))
            break;
        uid.len = 0;
    }
    if (!is_uuid(uid))
        return false;
    *f = (struct found){.rank = RANK_POD,
                        .kind = is_task ? "ecs" : "pod",
                        .id = first_of(uid, is_task ? ID_DIGITS : UID_DIGITS)};
    return true;
}

/* ---- jobs ---- */

/* Since version 26.05, Slurm's paths have their own job ids: a letter and 13 digits in Crockford's
 * base 32. */
static bool is_sluid(struct piece p)
{
    return p.len == 14 && (p.at[0] == 's' || p.at[0] == 'S') &&
           span((struct piece){p.at + 1, p.len - 1}, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == 13;
}

/* "slurm/uid_1000/job_211/step_0/task_0", "slurmstepd.scope/job_4/step_0/user/task_0"; with several
 * daemons on a machine "slurm_node0" and "node0_slurmstepd.scope". */
static void look_for_slurm(struct found *f, struct piece part)
{
    struct piece job = part;
    if (f->rank == RANK_JOB) {
        if (f->more.len == 0 && cut_head(&job, "step_"))
            f->more = job;
        return;
    }
    bool is_job =
        cut_head(&job, "job_") ? job.len > 0 && span(job, digits) == job.len : is_sluid(part);
    if (is_job)
        *f = (struct found){.rank = RANK_JOB, .kind = "slurm", .id = job, .scheduler = "slurm"};
}

/* "pbs_jobs.service/jobid/2404743.opbs" */
static void look_for_pbs(struct found *f, struct piece before, struct piece part)
{
    size_t n = span(part, digits);
    if (f->rank == RANK_JOB || n == 0 || !(is_text(before, "jobid") || is_text(before, "jobs")))
        return;
    *f = (struct found){
        .rank = RANK_JOB, .kind = "pbs", .id = first_of(part, n), .scheduler = "pbs"};
}

static bool look_for_job(struct found *f, struct piece before, struct piece part)
{
    struct piece p = part;
    if (f->scheduler && strcmp(f->scheduler, "slurm") == 0)
        look_for_slurm(f, part);
    else if (f->scheduler)
        look_for_pbs(f, before, part);
    else if (is_text(part, "slurm") || cut_head(&p, "slurm_") ||
             is_text(part, "slurmstepd.scope") || cut_tail(&p, "_slurmstepd.scope"))
        f->scheduler = "slurm";
    else if (is_text(part, "pbs_jobs.service"))
        f->scheduler = "pbs";
    return f->rank == RANK_JOB;
}

/* ---- paths and lines ---- */

/* The last part that is a unit, except in a user's session. Podman's container monitor is not a
 * service either. */
static void look_for_unit(struct found *f, struct piece path)
{
    struct piece rest = path;
    struct piece unit = {.len = 0};
    while (rest.len > 0) {
        struct piece part = next_piece(&rest, "/");
        struct piece p = part;
        if (is_text(part, "user.slice") || is_text(part, "init.scope") ||
            cut_head(&p, "libpod-conmon-"))
            return;
        if (cut_tail(&p, ".service") || cut_tail(&p, ".scope"))
            unit = part;
    }
    if (unit.len > 0)
        *f = (struct found){.rank = RANK_UNIT, .kind = "unit", .id = unit};
}

static struct found look_at_path(struct piece path)
{
    struct found f = {.rank = RANK_NONE};
    struct piece rest = path;
    struct piece before = {.len = 0};
    /* containerd writes "….slice:cri-containerd:ID" if its cgroup driver differs from the
     * kubelet's. */
    while (rest.len > 0) {
        struct piece part = next_piece(&rest, "/:");
        if (!look_for_job(&f, before, part) && !look_for_pod(&f, before, part))
            look_for_container(&f, before, part);
        before = part;
    }
    return f;
}

/* "0::/path" of version 2, "4:memory:/path" or "1:name=systemd:/path" of version 1. Only systemd's
 * hierarchy is searched for services; the other hierarchies of version 1 may be out of date. */
static struct found look_at_line(struct piece line)
{
    (void)next_piece(&line, ":");
    struct piece controllers = next_piece(&line, ":");
    (void)cut_tail(&line, " (deleted)");
    struct piece path = line;
    struct found f = look_at_path(path);
    bool is_systemd = controllers.len == 0 || is_text(controllers, "name=systemd");
    if (f.rank == RANK_NONE && is_systemd)
        look_for_unit(&f, path);
    f.path = path;
    return f;
}

/* On machines with both versions, one may be empty ("/") while the other has the path. */
static struct found look(const char *text)
{
    struct found best = {.rank = RANK_NONE};
    struct piece rest = {text, strlen(text)};
    while (rest.len > 0) {
        struct found f = look_at_line(next_piece(&rest, "\n"));
        bool says_more = best.rank == RANK_NONE && f.path.len > best.path.len;
        if (f.rank < best.rank || (f.rank == RANK_NONE && says_more))
            best = f;
    }
    return best;
}

/* ---- the text ---- */

/* systemd escapes special characters in unit names as "\x2d". */
static void add_unescaped(struct gp_strbuf *sb, struct piece p)
{
    for (size_t i = 0; i < p.len; i++) {
        struct piece code = {p.at + i, p.len - i};
        const char *high;
        const char *low;
        if (cut_head(&code, "\\x") && code.len >= 2 && (high = strchr(hex_digits, code.at[0])) &&
            (low = strchr(hex_digits, code.at[1]))) {
            gp_strbuf_addc(sb, (char)((high - hex_digits) * 16 + (low - hex_digits)));
            i += 3;
        } else {
            gp_strbuf_addc(sb, p.at[i]);
        }
    }
}

/* A text of at most size − 1 bytes in the caller's buffer. */
static struct gp_strbuf in_room(char *room, size_t size)
{
    room[0] = '\0';
    return (struct gp_strbuf){.buf = room, .cap = size, .max = size - 1};
}

bool gp_proc_container(const char *cgroup_text, char ret[GP_PROC_CONTAINER_SIZE])
{
    char raw[512];
    struct found f = look(cgroup_text);
    struct gp_strbuf words = in_room(raw, sizeof(raw));
    struct gp_strbuf safe = in_room(ret, GP_PROC_CONTAINER_SIZE);
    if (f.rank == RANK_NONE)
        return false;
    gp_strbuf_adds(&words, f.kind);
    gp_strbuf_addc(&words, ':');
    add_unescaped(&words, f.id);
    if (f.more.len > 0) {
        gp_strbuf_addc(&words, f.rank == RANK_JOB ? '.' : '/');
        add_unescaped(&words, f.more);
    }
    gp_utf8_add_safe(&safe, raw, words.len, COLUMNS);
    return true;
}

size_t gp_proc_cgroup_path(const char *cgroup_text, const char **ret_start)
{
    struct found f = look(cgroup_text);
    *ret_start = f.path.len > 0 ? f.path.at : cgroup_text;
    return f.path.len;
}
