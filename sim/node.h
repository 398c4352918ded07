/* A capture as a tree of named texts, which all readers produce for the import. Names and nesting
 * are those of nvidia-smi's XML. */
#ifndef GPULSE_SIM_NODE_H
#define GPULSE_SIM_NODE_H

#include "base/arena.h"
#include "base/util.h"

/* Limits: the largest real capture (8 GPUs with all their clocks) has 12000 elements in 350 kB. */
enum { SIM_MAX_DEPTH = 24, SIM_MAX_NODES = 200000, SIM_MAX_TEXT = 4096 };

struct sim_node {
    const char *name;
    const char *id;   /* attribute "id", or NULL */
    const char *text; /* trimmed, "" if none */
    long line;
    struct sim_node *first, *last, *next;
};

struct sim_tree {
    struct gp_arena arena;
    size_t count;
    struct sim_node root; /* its child is the outermost element */
    const char *problem;  /* the error that stopped reading, or NULL */
};

void sim_tree_fini(struct sim_tree *tree);

/* Copies a text into the tree; on failure returns NULL and sets tree->problem. */
const char *sim_tree_keep(struct sim_tree *tree, const char *text) GP_MUST_CHECK;

/* Appends a child whose name is the first `len` bytes; on failure returns NULL and sets
 * tree->problem. */
struct sim_node *sim_node_add(struct sim_tree *tree, struct sim_node *parent, const char *name,
                              size_t len, long line) GP_MUST_CHECK;

/* Stores a text below `parent` at "a/b/c". Uses the last nodes of these names, and creates missing
 * ones; "+b" starts a new node if the last one already has that child. On failure returns false and
 * sets tree->problem. */
bool sim_node_put(struct sim_tree *tree, struct sim_node *parent, const char *path,
                  const char *text, long line) GP_MUST_CHECK;

/* The first descendant at "a/b/c", or NULL; the second function returns its text. */
const struct sim_node *sim_node_find(const struct sim_node *node, const char *path);
const char *sim_node_text(const struct sim_node *node, const char *path);

#endif
