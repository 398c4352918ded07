#include "smi/dtd.h"

#include "base/strbuf.h"
#include "smi/report.h"

#include <string.h>

enum {
    NODES_MAX = 1024,
    DEPTH_MAX = 12,
    NAME_WIDTH = 21,
    LINE_WIDTH = 100,
    INDENT = sizeof("<!ELEMENT ") - 1 + NAME_WIDTH + 2,
};

/* An element at its place in the document. */
struct node {
    const char *tag;
    int parent; /* -1: none */
    bool has_text;
    bool optional;
    bool repeated;
};

struct tree {
    struct node nodes[NODES_MAX];
    int count;
    int open[DEPTH_MAX];      /* the node to which rows of this level belong */
    bool optional[DEPTH_MAX]; /* what was merged into it is optional */
};

/* ---- elements without a row in the report ---- */

/* Occurrence as in a DTD: '?' and '*'; 't' marks branches that may contain text instead. */
struct fixed {
    unsigned level;
    const char *tag;
    bool is_leaf;
    const char *occurrence;
};

static const struct fixed head[] = {
    {0, "nvidia_smi_log", false, ""},
    {1, "timestamp", true, ""},
    {1, "driver_version", true, ""},
    {1, "cuda_version", true, ""},
    {1, "vgpu_driver_capability", false, "*"},
    {2, "heterogenous_multivGPU", true, ""},
    {1, "attached_gpus", true, ""},
    {1, "error_string", true, "?"},
    {1, "gpu", false, "*"},
};

static const struct fixed unit_head[] = {
    {0, "nvidia_smi_log", false, ""}, {1, "timestamp", true, ""}, {1, "driver_version", true, ""},
    {1, "cuda_version", true, ""},    {1, "hic_info", true, ""},  {1, "attached_units", true, ""},
    {1, "error_string", true, "?"},
};

static const struct fixed pages[] = {{1, "retired_page_address", true, "*"}};
static const struct fixed clocks[] = {
    {1, "supported_mem_clock", false, "*"},
    {2, "value", true, ""},
    {2, "supported_graphics_clock", true, "*"},
};
static const struct fixed processes[] = {
    {1, "process_info", false, "*"},
    {2, "gpu_instance_id", true, ""},
    {2, "compute_instance_id", true, ""},
    {2, "pid", true, ""},
    {2, "type", true, ""},
    {2, "process_name", true, ""},
    {2, "used_memory", true, ""},
};
static const struct fixed accounted[] = {
    {1, "accounted_process_info", false, "*"},
    {2, "pid", true, ""},
    {2, "gpu_util", true, ""},
    {2, "memory_util", true, ""},
    {2, "max_memory_usage", true, ""},
    {2, "time", true, ""},
    {2, "is_running", true, ""},
};
static const struct fixed mig_device[] = {{1, "mig_device", false, "*"}};

/* The elements of lists, and whether a text may replace them. */
static const struct {
    enum gp_scope scope;
    bool has_text;
    const struct fixed *rows;
    size_t count;
} parts[] = {
    {GP_SCOPE_PAGE, true, pages, GP_ARRAY_LEN(pages)},
    {GP_SCOPE_CLOCK, true, clocks, GP_ARRAY_LEN(clocks)},
    {GP_SCOPE_PROCESS, false, processes, GP_ARRAY_LEN(processes)},
    {GP_SCOPE_APP, false, accounted, GP_ARRAY_LEN(accounted)},
    {GP_SCOPE_DEVICE, true, mig_device, GP_ARRAY_LEN(mig_device)},
};

/* ---- the tree ---- */

/* Adds a node at this depth. Without a tag, deeper rows belong to the node above. */
static void add_node(struct tree *t, unsigned depth, const struct node *node)
{
    int parent = depth > 0 ? t->open[depth - 1] : -1;
    bool optional = node->optional || (depth > 0 && t->optional[depth - 1]);
    if (depth >= DEPTH_MAX || t->count == NODES_MAX)
        return;
    t->open[depth] = node->tag ? t->count : parent;
    t->optional[depth] = !node->tag && optional;
    if (!node->tag)
        return;
    t->nodes[t->count] = *node;
    t->nodes[t->count].parent = parent;
    t->nodes[t->count].optional = optional;
    t->count++;
}

static void add_fixed(struct tree *t, unsigned depth, const struct fixed *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct node node = {
            .tag = rows[i].tag,
            .has_text = rows[i].is_leaf,
            .optional = *rows[i].occurrence == '?',
            .repeated = *rows[i].occurrence == '*',
        };
        add_node(t, depth + rows[i].level, &node);
    }
}

static void add_elements(struct tree *t, const struct gp_smi_form *form, bool mig, unsigned depth);

static void add_part(struct tree *t, const struct gp_smi_form *form, enum gp_scope scope,
                     unsigned depth)
{
    size_t i = 0;
    while (parts[i].scope != scope)
        i++;
    t->nodes[t->count - 1].has_text = parts[i].has_text;
    add_fixed(t, depth, parts[i].rows, parts[i].count);
    if (scope == GP_SCOPE_DEVICE)
        add_elements(t, form, true, depth + 1);
}

/* If a driver omits an element, it also omits all elements below it. */
static void add_elements(struct tree *t, const struct gp_smi_form *form, bool mig, unsigned depth)
{
    struct gp_smi_element e;
    unsigned left_out = UINT_MAX;
    for (size_t i = 0; gp_smi_report_element(mig, i, &e); i++) {
        if (e.level > left_out)
            continue;
        bool shown = gp_smi_in(form, e.drivers) && (e.tag || e.kind == GP_SMI_BRANCH);
        left_out = shown ? UINT_MAX : e.level;
        if (!shown)
            continue;
        const struct node node = {
            .tag = e.tag, .has_text = e.kind == GP_SMI_LEAF, .optional = e.conditional};
        add_node(t, depth + e.level, &node);
        if (e.kind == GP_SMI_PART)
            add_part(t, form, e.scope, depth + e.level);
    }
}

/* ---- the declarations ---- */

/* An element may occur at several places; one declaration covers all of them. */
struct declaration {
    const struct tree *tree;
    const char *tag;
    bool has_text;
    int children[NODES_MAX];
    int count;
};

static bool is_of(const struct declaration *d, int node)
{
    int parent = d->tree->nodes[node].parent;
    return parent >= 0 && strcmp(d->tree->nodes[parent].tag, d->tag) == 0;
}

static bool is_listed(const struct declaration *d, const char *tag)
{
    for (int i = 0; i < d->count; i++)
        if (strcmp(d->tree->nodes[d->children[i]].tag, tag) == 0)
            return true;
    return false;
}

static void collect(struct declaration *d, const struct tree *tree, const char *tag)
{
    d->tree = tree;
    d->tag = tag;
    d->has_text = false;
    d->count = 0;
    for (int i = 0; i < tree->count; i++) {
        if (strcmp(tree->nodes[i].tag, tag) == 0)
            d->has_text = d->has_text || tree->nodes[i].has_text;
        if (is_of(d, i) && !is_listed(d, tree->nodes[i].tag))
            d->children[d->count++] = i;
    }
}

/* A child is optional if it is optional or missing at one of the places. */
static char occurrence(const struct declaration *d, const char *child)
{
    const struct node *nodes = d->tree->nodes;
    int places = 0;
    int found = 0;
    bool optional = false;
    for (int i = 0; i < d->tree->count; i++) {
        places += strcmp(nodes[i].tag, d->tag) == 0;
        if (!is_of(d, i) || strcmp(nodes[i].tag, child) != 0)
            continue;
        if (nodes[i].repeated)
            return '*';
        optional = optional || nodes[i].optional;
        found++;
    }
    return optional || found < places ? '?' : '\0';
}

static void add_declaration(struct gp_strbuf *sb, const struct declaration *d)
{
    bool mixed = d->has_text && d->count > 0;
    size_t start = sb->len;
    gp_strbuf_addf(sb, "<!ELEMENT %-*s (%s", NAME_WIDTH, d->tag, d->has_text ? "#PCDATA" : "");
    for (int i = 0; i < d->count; i++) {
        const char *tag = d->tree->nodes[d->children[i]].tag;
        char mark = mixed ? '\0' : occurrence(d, tag);
        if (i > 0 || d->has_text)
            gp_strbuf_adds(sb, mixed ? " |" : ",");
        if (sb->len - start + strlen(tag) + 5 > LINE_WIDTH) {
            gp_strbuf_addc(sb, '\n');
            start = sb->len;
            gp_strbuf_fill(sb, ' ', INDENT);
        } else if (i > 0 || d->has_text) {
            gp_strbuf_addc(sb, ' ');
        }
        gp_strbuf_adds(sb, tag);
        if (mark)
            gp_strbuf_addc(sb, mark);
    }
    gp_strbuf_adds(sb, mixed ? ")*>\n" : ")>\n");
    if (d->count > 1)
        gp_strbuf_addc(sb, '\n');
}

static bool is_first(const struct tree *t, int node)
{
    for (int i = 0; i < node; i++)
        if (strcmp(t->nodes[i].tag, t->nodes[node].tag) == 0)
            return false;
    return true;
}

void gp_smi_add_dtd(struct gp_strbuf *sb, const struct gp_smi_form *form, bool units)
{
    struct tree tree = {.count = 0};
    struct declaration d;
    if (units)
        add_fixed(&tree, 0, unit_head, GP_ARRAY_LEN(unit_head));
    else
        add_fixed(&tree, 0, head, GP_ARRAY_LEN(head));
    if (!units)
        add_elements(&tree, form, false, 1);
    gp_strbuf_addf(sb, "<!-- nvsmi_%s_v%u.dtd -->\n", units ? "unit" : "device",
                   gp_smi_dtd_version(form));
    for (int i = 0; i < tree.count; i++) {
        if (!is_first(&tree, i))
            continue;
        collect(&d, &tree, tree.nodes[i].tag);
        add_declaration(sb, &d);
        if (strcmp(d.tag, "gpu") == 0)
            gp_strbuf_adds(sb, "<!ATTLIST gpu id CDATA #REQUIRED>\n\n");
    }
}
