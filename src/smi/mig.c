#include "smi/mig.h"

#include "base/strbuf.h"
#include "smi/entries.h"
#include "smi/message.h"
#include "source/control.h"
#include "source/nvml/nvml.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>

struct printer {
    struct gp_strbuf *sb;
    int wider; /* extra columns for names */
};

/* ---- numbers ---- */

bool gp_smi_mig_parse_ids(const char *text, struct gp_smi_mig_ids *ret)
{
    ret->count = 0;
    for (;;) {
        char *end;
        unsigned long id = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || id > 1000000 || ret->count == GP_SMI_MIG_IDS_MAX)
            return false;
        ret->ids[ret->count++] = (unsigned)id;
        if (*end != ',')
            return *end == '\0';
        text = end + 1;
    }
}

bool gp_smi_mig_has_id(const struct gp_smi_mig_ids *ids, int64_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == id)
            return true;
    return ids->count == 0;
}

/* ---- entries ---- */

static int64_t number(const struct gp_entry *e, enum gp_metric m)
{
    const struct gp_value *v = gp_smi_entry_value(e, m);
    return gp_value_is_present(v) ? v->i : 0;
}

static const char *text(const struct gp_entry *e, enum gp_metric m)
{
    const struct gp_value *v = gp_smi_entry_value(e, m);
    return gp_value_is_present(v) ? v->s : "";
}

/* Compares by slices, then by memory, then by id. */
static int compare_profiles(const struct gp_entry *a, const struct gp_entry *b)
{
    static const enum gp_metric keys[] = {GP_PROFILE_SLICES, GP_PROFILE_MEMORY, GP_PROFILE_ID};
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++) {
        int64_t x = number(a, keys[i]);
        int64_t y = number(b, keys[i]);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* The profile of this GPU after `last` in that order; NULL at the end. */
static const struct gp_entry *next_profile(const struct gp_snapshot *snapshot,
                                           const struct gp_device *gpu, const struct gp_entry *last)
{
    const struct gp_entry *next = NULL;
    const struct gp_entry *e = NULL;
    while ((e = gp_smi_next_entry(snapshot, gpu, GP_SCOPE_PROFILE, e)))
        if ((!last || compare_profiles(e, last) > 0) && (!next || compare_profiles(e, next) < 0))
            next = e;
    return next;
}

/* ---- tables ---- */

static void add_rule(struct gp_strbuf *sb, size_t width, char c)
{
    char end = c == '-' ? '+' : '|';
    gp_strbuf_addc(sb, end);
    gp_strbuf_fill(sb, c, width - 2);
    gp_strbuf_addc(sb, end);
    gp_strbuf_addc(sb, '\n');
}

static void add_title(struct gp_strbuf *sb, size_t width, const char *title)
{
    add_rule(sb, width, '-');
    gp_strbuf_addf(sb, "| %-*s|\n", (int)width - 3, title);
}

/* "4/7", padded to this width. */
static void add_counts(struct gp_strbuf *sb, int64_t free, int64_t total, size_t columns)
{
    size_t start = sb->len;
    gp_strbuf_addf(sb, "%lld/%lld", (long long)free, (long long)total);
    size_t used = sb->len - start;
    gp_strbuf_fill(sb, ' ', used < columns ? columns - used : 0);
}

static void begin_profiles(const struct printer *p)
{
    add_title(p->sb, 79 + (size_t)p->wider, "GPU instance profiles:");
    gp_strbuf_addf(p->sb,
                   "| GPU   Name             %*sID    Instances   Memory     P2P    SM    DEC   "
                   "ENC  |\n"
                   "|                              %*sFree/Total   GiB              CE    JPEG  "
                   "OFA  |\n",
                   p->wider, "", p->wider, "");
    add_rule(p->sb, 79 + (size_t)p->wider, '=');
}

static void print_profile(const struct printer *p, const struct gp_device *gpu,
                          const struct gp_entry *e)
{
    int64_t total = number(e, GP_PROFILE_INSTANCES);
    int64_t memory = number(e, GP_PROFILE_MEMORY);
    /* All instances fit while MIG mode is off. */
    const struct gp_value *left = gp_smi_entry_value(e, GP_PROFILE_REMAINING);
    gp_strbuf_addf(p->sb, "|%4u  MIG %-*s%2lld     ", gpu->index, 14 + p->wider,
                   text(e, GP_PROFILE_NAME), (long long)number(e, GP_PROFILE_ID));
    add_counts(p->sb, gp_value_is_present(left) ? left->i : total, total, 11);
    gp_strbuf_addf(p->sb, "%-11.2f%-7s%-7lld%-6lld%-4lld|\n", (double)memory / (1 << 30),
                   text(e, GP_PROFILE_P2P), (long long)number(e, GP_PROFILE_SM),
                   (long long)number(e, GP_PROFILE_DECODERS),
                   (long long)number(e, GP_PROFILE_ENCODERS));
    gp_strbuf_addf(p->sb, "|%*s%-6lld%-6lld%-4lld|\n", 61 + p->wider, "",
                   (long long)number(e, GP_PROFILE_COPY), (long long)number(e, GP_PROFILE_JPEG),
                   (long long)number(e, GP_PROFILE_OFA));
    add_rule(p->sb, 79 + (size_t)p->wider, '-');
}

static void print_placements(const struct printer *p, const struct gp_device *gpu,
                             const struct gp_entry *e)
{
    const char *places = text(e, GP_PROFILE_PLACEMENTS);
    gp_strbuf_addf(p->sb, "GPU %2u Profile ID %2lld %s: %s\n", gpu->index,
                   (long long)number(e, GP_PROFILE_ID),
                   strchr(places, ',') ? "Placements" : "Placement ", places);
}

static void begin_instances(const struct printer *p)
{
    add_title(p->sb, 57 + (size_t)p->wider, "GPU instances:");
    gp_strbuf_addf(p->sb,
                   "| GPU   Name             %*sProfile  Instance   Placement  |\n"
                   "|                          %*sID       ID       Start:Size |\n",
                   p->wider, "", p->wider, "");
    add_rule(p->sb, 57 + (size_t)p->wider, '=');
}

static void print_instance(const struct printer *p, const struct gp_device *gpu,
                           const struct gp_entry *e)
{
    gp_strbuf_addf(p->sb, "|%4u  MIG %-*s%2lld%9lld%11lld:%-6lld|\n", gpu->index, 16 + p->wider,
                   text(e, GP_GI_PROFILE), (long long)number(e, GP_GI_PROFILE_ID),
                   (long long)number(e, GP_GI_ID), (long long)number(e, GP_GI_START),
                   (long long)number(e, GP_GI_SIZE));
    add_rule(p->sb, 57 + (size_t)p->wider, '-');
}

static void begin_compute_profiles(const struct printer *p)
{
    add_title(p->sb, 88, "Compute instance profiles:");
    gp_strbuf_adds(p->sb, "| GPU     GPU       Name             Profile  Instances   Exclusive     "
                          "  Shared       |\n"
                          "|       Instance                       ID     Free/Total     SM       "
                          "DEC   ENC   OFA  |\n"
                          "|         ID                                                          "
                          "CE    JPEG       |\n");
    add_rule(p->sb, 88, '=');
}

static void print_compute_profile(const struct printer *p, const struct gp_device *gpu,
                                  const struct gp_entry *e)
{
    bool is_default = strcmp(text(e, GP_CIP_IS_DEFAULT), "Yes") == 0;
    gp_strbuf_addf(p->sb, "|%4u%7lld       MIG %-16s%2lld%c     ", gpu->index,
                   (long long)number(e, GP_CIP_GI), text(e, GP_CIP_NAME),
                   (long long)number(e, GP_CIP_ID), is_default ? '*' : ' ');
    add_counts(p->sb, number(e, GP_CIP_REMAINING), number(e, GP_CIP_INSTANCES), 14);
    gp_strbuf_addf(p->sb, "%-10lld%-6lld%-6lld%-4lld|\n", (long long)number(e, GP_CIP_SM),
                   (long long)number(e, GP_CIP_DECODERS), (long long)number(e, GP_CIP_ENCODERS),
                   (long long)number(e, GP_CIP_OFA));
    gp_strbuf_addf(p->sb, "|%70s%-6lld%-10lld|\n", "", (long long)number(e, GP_CIP_COPY),
                   (long long)number(e, GP_CIP_JPEG));
    add_rule(p->sb, 88, '-');
}

static void begin_compute_instances(const struct printer *p)
{
    add_title(p->sb, 70, "Compute instances:");
    gp_strbuf_adds(p->sb,
                   "| GPU     GPU       Name             Profile   Instance   Placement  |\n"
                   "|       Instance                       ID        ID       Start:Size |\n"
                   "|         ID                                                         |\n");
    add_rule(p->sb, 70, '=');
}

static void print_compute_instance(const struct printer *p, const struct gp_device *gpu,
                                   const struct gp_entry *e)
{
    gp_strbuf_addf(p->sb, "|%4u%7lld       MIG %-16s%2lld%10lld%11lld:%-6lld|\n", gpu->index,
                   (long long)number(e, GP_CI_GI), text(e, GP_CI_PROFILE),
                   (long long)number(e, GP_CI_PROFILE_ID), (long long)number(e, GP_CI_ID),
                   (long long)number(e, GP_CI_START), (long long)number(e, GP_CI_SIZE));
    add_rule(p->sb, 70, '-');
}

/* ---- the lists ---- */

static const struct list {
    enum gp_scope scope;
    enum gp_metric wanted[15];
    enum gp_metric gpu_instance, compute_instance; /* metrics to which -gi and -ci apply; 0: none */
    enum gp_metric for_root; /* metric that only root can read; 0: the list itself */
    const char *plural;
    const char *empty; /* message if the list is empty */
    void (*begin)(const struct printer *p);
    void (*print)(const struct printer *p, const struct gp_device *gpu, const struct gp_entry *e);
} lists[] = {
    [GP_SMI_MIG_PROFILES] = {.scope = GP_SCOPE_PROFILE,
                             .wanted = {GP_PROFILE_ID, GP_PROFILE_NAME, GP_PROFILE_SLICES,
                                        GP_PROFILE_INSTANCES, GP_PROFILE_REMAINING, GP_PROFILE_P2P,
                                        GP_PROFILE_SM, GP_PROFILE_COPY, GP_PROFILE_DECODERS,
                                        GP_PROFILE_ENCODERS, GP_PROFILE_JPEG, GP_PROFILE_OFA,
                                        GP_PROFILE_MEMORY},
                             .for_root = GP_PROFILE_REMAINING,
                             .plural = "GPU instance profiles",
                             .begin = begin_profiles,
                             .print = print_profile},
    [GP_SMI_MIG_PLACEMENTS] = {.scope = GP_SCOPE_PROFILE,
                               .wanted = {GP_PROFILE_ID, GP_PROFILE_SLICES, GP_PROFILE_MEMORY,
                                          GP_PROFILE_PLACEMENTS},
                               .for_root = GP_PROFILE_PLACEMENTS,
                               .plural = "GPU instance possible placements",
                               .print = print_placements},
    [GP_SMI_MIG_INSTANCES] = {.scope = GP_SCOPE_GI,
                              .wanted = {GP_GI_ID, GP_GI_PROFILE, GP_GI_PROFILE_ID, GP_GI_START,
                                         GP_GI_SIZE},
                              .gpu_instance = GP_GI_ID,
                              .plural = "GPU instances",
                              .empty = "GPU instances",
                              .begin = begin_instances,
                              .print = print_instance},
    [GP_SMI_MIG_COMPUTE_PROFILES] = {.scope = GP_SCOPE_CIP,
                                     .wanted = {GP_CIP_ID, GP_CIP_GI, GP_CIP_NAME,
                                                GP_CIP_IS_DEFAULT, GP_CIP_INSTANCES,
                                                GP_CIP_REMAINING, GP_CIP_SM, GP_CIP_COPY,
                                                GP_CIP_DECODERS, GP_CIP_ENCODERS, GP_CIP_JPEG,
                                                GP_CIP_OFA},
                                     .gpu_instance = GP_CIP_GI,
                                     .plural = "compute instance profiles",
                                     .empty = "GPU instances",
                                     .begin = begin_compute_profiles,
                                     .print = print_compute_profile},
    [GP_SMI_MIG_COMPUTE_INSTANCES] = {.scope = GP_SCOPE_CI,
                                      .wanted = {GP_CI_ID, GP_CI_GI, GP_CI_PROFILE,
                                                 GP_CI_PROFILE_ID, GP_CI_START, GP_CI_SIZE},
                                      .gpu_instance = GP_CI_GI,
                                      .compute_instance = GP_CI_ID,
                                      .plural = "compute instances",
                                      .empty = "compute instances",
                                      .begin = begin_compute_instances,
                                      .print = print_compute_instance},
};

void gp_smi_mig_want(const struct gp_smi_mig *mig, struct gp_want *want)
{
    gp_metric_set_add(&want->metrics, GP_MIG_MODE);
    gp_smi_want_all(want, lists[mig->list].wanted);
}

static bool is_enabled(const struct gp_snapshot *snapshot, const struct gp_device *gpu)
{
    const struct gp_value *mode = gp_snapshot_value(snapshot, gpu, NULL, GP_MIG_MODE);
    return gp_value_is_present(mode) && strcmp(mode->s, "Enabled") == 0;
}

/* The next matching entry. An unknown list has a single entry without values. */
static const struct gp_entry *next(const struct gp_smi_mig *mig, const struct gp_snapshot *snapshot,
                                   const struct gp_device *gpu, const struct gp_entry *e)
{
    const struct list *list = &lists[mig->list];
    if (list->scope == GP_SCOPE_PROFILE) {
        bool known = gp_smi_list_status(gpu, list->scope) == GP_STATUS_OK;
        e = known ? next_profile(snapshot, gpu, e) : NULL;
        while (e && mig->list == GP_SMI_MIG_PLACEMENTS && !*text(e, GP_PROFILE_PLACEMENTS))
            e = next_profile(snapshot, gpu, e);
        return e;
    }
    while ((e = gp_smi_next_entry(snapshot, gpu, list->scope, e))) {
        const struct gp_value *gi = gp_smi_entry_value(e, list->gpu_instance);
        if (gp_value_is_present(gi) && gp_smi_mig_has_id(&mig->gpu_instances, gi->i) &&
            (!list->compute_instance ||
             gp_smi_mig_has_id(&mig->compute_instances, number(e, list->compute_instance))))
            break;
    }
    return e;
}

/* Why the list of a GPU is unknown; OK if it is known. */
static enum gp_status trouble(const struct gp_smi_mig *mig, const struct gp_snapshot *snapshot,
                              const struct gp_device *gpu)
{
    const struct list *list = &lists[mig->list];
    enum gp_status status = gp_smi_list_status(gpu, list->scope);
    const struct gp_entry *e = gp_smi_next_entry(snapshot, gpu, list->scope, NULL);
    if (status == GP_STATUS_OK && list->for_root && e &&
        gp_smi_entry_value(e, list->for_root)->status == GP_STATUS_NO_PERMISSION)
        return GP_STATUS_NO_PERMISSION;
    return status;
}

/* Whether the GPU can have such a list. */
static bool is_concerned(const struct gp_smi_mig *mig, const struct gp_snapshot *snapshot,
                         const struct gp_device *gpu)
{
    if (gpu->is_mig)
        return false;
    enum gp_status status = trouble(mig, snapshot, gpu);
    return lists[mig->list].scope == GP_SCOPE_PROFILE
               ? status == GP_STATUS_OK || status == GP_STATUS_NO_PERMISSION
               : is_enabled(snapshot, gpu);
}

static bool is_any_concerned(const struct gp_smi_mig *mig, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (is_concerned(mig, snapshot, &snapshot->devices[i]))
            return true;
    return false;
}

int gp_smi_mig_refuse(const struct gp_smi_mig *mig, struct gp_strbuf *message,
                      const struct gp_snapshot *snapshot)
{
    const struct list *list = &lists[mig->list];
    int code = GP_SMI_EXIT_NOT_FOUND;
    if (!is_any_concerned(mig, snapshot))
        return gp_smi_exit_status(snapshot);
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *gpu = &snapshot->devices[i];
        if (!is_concerned(mig, snapshot, gpu))
            continue;
        if (trouble(mig, snapshot, gpu) == GP_STATUS_NO_PERMISSION)
            code = GP_SMI_EXIT_NO_PERMISSION;
        else if (next(mig, snapshot, gpu, NULL))
            return 0;
    }
    const char *words = gp_nvml_return_text(code);
    if (code != GP_SMI_EXIT_NOT_FOUND)
        gp_strbuf_addf(message, "Failed to display %s: %s\n", list->plural, words);
    if (list->empty)
        gp_strbuf_addf(message, "No %s found: %s\n", list->empty, words);
    else if (code == GP_SMI_EXIT_NOT_FOUND)
        gp_strbuf_adds(message, GP_SMI_NO_MIG);
    return code;
}

void gp_smi_mig_print(struct gp_strbuf *sb, const struct gp_smi_mig *mig,
                      const struct gp_smi_form *form, const struct gp_snapshot *snapshot)
{
    const struct list *list = &lists[mig->list];
    /* wide enough for "1g.24gb+me.all" */
    const struct printer p = {sb, form->driver >= GP_SMI_DRIVER(570, 0) ? 2 : 0};
    if (!is_any_concerned(mig, snapshot)) {
        gp_strbuf_adds(sb, GP_SMI_NO_MIG);
        return;
    }
    if (list->begin)
        list->begin(&p);
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *gpu = &snapshot->devices[i];
        const struct gp_entry *e = NULL;
        while (!gpu->is_mig && (e = next(mig, snapshot, gpu, e)))
            list->print(&p, gpu, e);
    }
}

/* ---- changes ---- */

void gp_smi_mig_say(struct gp_strbuf *sb, unsigned gpu, const struct gp_part *part,
                    const char *error)
{
    static const struct {
        const char *verb, *noun, *from, *failed;
        bool creates, computes;
    } steps[] = {
        [GP_PART_CREATE_GPU] = {"create", "GPU instance", "on", "create GPU instances", true,
                                false},
        [GP_PART_CREATE_COMPUTE] = {"create", "compute instance", "on", "create compute instances",
                                    true, true},
        [GP_PART_DESTROY_COMPUTE] = {"destroy", "compute instance", "from",
                                     "destroy compute instances", false, true},
        [GP_PART_DESTROY_GPU] = {"destroy", "GPU instance", "from", "destroy GPU instances", false,
                                 false},
    };
    bool creates = steps[part->step].creates;
    bool computes = steps[part->step].computes;
    if (error)
        gp_strbuf_addf(sb, "Unable to %s %s%s", steps[part->step].verb, creates ? "a " : "",
                       steps[part->step].noun);
    else
        gp_strbuf_addf(sb, "Successfully %s%s %s", steps[part->step].verb, creates ? "d" : "ed",
                       steps[part->step].noun);
    if (!error || !creates)
        gp_strbuf_addf(sb, " ID %2u", computes ? part->compute_instance : part->gpu_instance);
    gp_strbuf_addf(sb, " %s GPU %2u", steps[part->step].from, gpu);
    if (computes)
        gp_strbuf_addf(sb, " GPU instance ID %2u", part->gpu_instance);
    if (creates && error && !*part->profile)
        gp_strbuf_addf(sb, " using profile %u", part->profile_id);
    else if (creates && error)
        gp_strbuf_addf(sb, " using profile %s", part->profile);
    else if (creates)
        gp_strbuf_addf(sb, " using profile MIG %s (ID %2u)", part->profile_name, part->profile_id);
    if (error)
        gp_strbuf_addf(sb, ": %s\nFailed to %s: %s", error, steps[part->step].failed, error);
    gp_strbuf_addc(sb, '\n');
}
