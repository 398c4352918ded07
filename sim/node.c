#include "sim/node.h"

#include <string.h>

void sim_tree_fini(struct sim_tree *tree)
{
    gp_arena_fini(&tree->arena);
}

const char *sim_tree_keep(struct sim_tree *tree, const char *text)
{
    const char *copy = *text ? gp_arena_strdup(&tree->arena, text) : "";
    if (!copy)
        tree->problem = "out of memory";
    return copy;
}

struct sim_node *sim_node_add(struct sim_tree *tree, struct sim_node *parent, const char *name,
                              size_t len, long line)
{
    struct sim_node *node = gp_arena_alloc(&tree->arena, 1, sizeof(*node));
    char *copy = gp_arena_alloc(&tree->arena, len + 1, 1);
    if (!node || !copy || tree->count++ == SIM_MAX_NODES) {
        tree->problem = node && copy ? "too many elements" : "out of memory";
        return NULL;
    }
    memcpy(copy, name, len);
    node->name = copy;
    node->text = "";
    node->line = line;
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    return node;
}

static bool is_named(const struct sim_node *node, const char *name, size_t len)
{
    return strlen(node->name) == len && memcmp(node->name, name, len) == 0;
}

/* Usually the last child: lists grow at their end. */
static struct sim_node *last_child(struct sim_node *parent, const char *name, size_t len)
{
    if (parent->last && is_named(parent->last, name, len))
        return parent->last;
    struct sim_node *found = NULL;
    for (struct sim_node *child = parent->first; child; child = child->next)
        if (is_named(child, name, len))
            found = child;
    return found;
}

bool sim_node_put(struct sim_tree *tree, struct sim_node *parent, const char *path,
                  const char *text, long line)
{
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        bool entry = path[0] == '+';
        path += entry;
        size_t len = (size_t)(slash - path);
        struct sim_node *child = last_child(parent, path, len);
        if (!child || (entry && sim_node_find(child, slash + 1)))
            child = sim_node_add(tree, parent, path, len, line);
        if (!child)
            return false;
        parent = child;
    }
    struct sim_node *leaf = sim_node_add(tree, parent, path, strlen(path), line);
    const char *copy = leaf ? sim_tree_keep(tree, text) : NULL;
    if (copy)
        leaf->text = copy;
    return copy != NULL;
}

const struct sim_node *sim_node_find(const struct sim_node *node, const char *path)
{
    while (node && *path) {
        size_t len = strcspn(path, "/");
        const struct sim_node *child = node->first;
        while (child && !is_named(child, path, len))
            child = child->next;
        node = child;
        path += len + (path[len] == '/');
    }
    return node;
}

const char *sim_node_text(const struct sim_node *node, const char *path)
{
    const struct sim_node *found = sim_node_find(node, path);
    return found ? found->text : NULL;
}
