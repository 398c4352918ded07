/* An XML document as a tree: reading captures. */
#ifndef GPULSE_SIM_XML_H
#define GPULSE_SIM_XML_H

#include "base/arena.h"
#include "base/util.h"

struct gp_err;

struct sim_node {
    const char *name;
    const char *id;   /* attribute "id", or NULL */
    const char *text; /* trimmed, "" if none */
    long line;
    struct sim_node *first, *last, *next;
};

struct sim_xml {
    struct gp_arena arena; /* owns the tree */
    struct sim_node root;  /* its child is the outermost element */
};

/* Reads a file into a zeroed document. GP_EIO, GP_EFORMAT with file and line; free it with
 * sim_xml_fini also after a failure. */
int sim_xml_read(struct sim_xml *xml, const char *path, struct gp_err *err) GP_MUST_CHECK;
void sim_xml_fini(struct sim_xml *xml);

/* The first descendant at "a/b/c", or NULL; the second form gives its text. */
const struct sim_node *sim_xml_find(const struct sim_node *node, const char *path);
const char *sim_xml_text(const struct sim_node *node, const char *path);

#endif
