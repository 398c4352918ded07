#include "sim/xml.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <string.h>

/* Ceilings: the largest real capture (8 GPUs with all their clocks) has 12000 elements in 350 kB.
 */
enum { MAX_DEPTH = 24, MAX_NODES = 200000, MAX_TEXT = 4096, MAX_FILE = 64 << 20 };

struct reader {
    struct sim_xml *xml;
    XML_Parser parser;
    struct sim_node *stack[MAX_DEPTH];
    size_t depth, count;
    struct gp_strbuf text;
    const char *problem; /* what stopped it */
};

static void stop(struct reader *r, const char *problem)
{
    if (!r->problem)
        r->problem = problem;
    (void)XML_StopParser(r->parser, XML_FALSE);
}

static void XMLCALL on_start(void *ctx, const char *name, const char **attributes)
{
    struct reader *r = ctx;
    struct sim_node *node = gp_arena_alloc(&r->xml->arena, 1, sizeof(*node));
    char *copy = gp_arena_strdup(&r->xml->arena, name);
    if (!node || !copy) {
        stop(r, "out of memory");
        return;
    }
    if (r->depth == MAX_DEPTH || r->count++ == MAX_NODES) {
        stop(r, r->depth == MAX_DEPTH ? "nested too deeply" : "too many elements");
        return;
    }
    node->name = copy;
    node->text = "";
    node->line = (long)XML_GetCurrentLineNumber(r->parser);
    for (const char **a = attributes; a[0]; a += 2)
        if (strcmp(a[0], "id") == 0 && !(node->id = gp_arena_strdup(&r->xml->arena, a[1])))
            stop(r, "out of memory");
    struct sim_node *parent = r->depth ? r->stack[r->depth - 1] : &r->xml->root;
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    r->stack[r->depth++] = node;
    gp_strbuf_reset(&r->text);
}

static void XMLCALL on_end(void *ctx, const char *name)
{
    struct reader *r = ctx;
    (void)name;
    char *text = r->text.buf;
    size_t start = strspn(text, " \t\r\n");
    size_t len = r->text.len;
    while (len > start && strchr(" \t\r\n", text[len - 1]))
        len--;
    if (len > start) {
        text[len] = '\0';
        const char *copy = gp_arena_strdup(&r->xml->arena, text + start);
        if (copy)
            r->stack[r->depth - 1]->text = copy;
        else
            stop(r, "out of memory");
    }
    r->depth--;
    gp_strbuf_reset(&r->text);
}

static void XMLCALL on_text(void *ctx, const char *text, int len)
{
    struct reader *r = ctx;
    gp_strbuf_add(&r->text, text, (size_t)len);
    if (r->text.error)
        stop(r, "a text is too long");
}

/* A capture declares no entities; a file that does is refused, so that it cannot grow by them. */
static void XMLCALL on_entity(void *ctx, const char *name, int is_parameter, const char *value,
                              int length, const char *base, const char *system_id,
                              const char *public_id, const char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)length;
    (void)base, (void)system_id, (void)public_id, (void)notation;
    stop(ctx, "declares an entity, which nvidia-smi never does");
}

static int parse_failed(const struct reader *r, const char *path, struct gp_err *err)
{
    return gp_err_set(err, GP_EFORMAT, "%s:%lu: %s", path, XML_GetCurrentLineNumber(r->parser),
                      r->problem ? r->problem : XML_ErrorString(XML_GetErrorCode(r->parser)));
}

static int parse_file(struct reader *r, const char *path, struct gp_err *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return gp_err_set(err, GP_EIO, "cannot open '%s': %s", path, strerror(errno));
    char chunk[16384];
    size_t total = 0;
    int result = GP_OK;
    bool last = false;
    while (result == GP_OK && !last) {
        size_t n = fread(chunk, 1, sizeof(chunk), file);
        total += n;
        last = n < sizeof(chunk);
        if (ferror(file))
            result = gp_err_set(err, GP_EIO, "cannot read '%s': %s", path, strerror(errno));
        else if (total > MAX_FILE)
            result = gp_err_set(err, GP_EFORMAT, "%s: larger than %d MiB", path, MAX_FILE >> 20);
        else if (XML_Parse(r->parser, chunk, (int)n, last) != XML_STATUS_OK)
            result = parse_failed(r, path, err);
    }
    (void)fclose(file);
    return result;
}

int sim_xml_read(struct sim_xml *xml, const char *path, struct gp_err *err)
{
    struct reader reader = {.xml = xml};
    struct reader *r = &reader;
    gp_strbuf_init(&r->text, MAX_TEXT);
    r->parser = XML_ParserCreate(NULL);
    if (!r->parser)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetEntityDeclHandler(r->parser, on_entity);
    int result = parse_file(r, path, err);
    XML_ParserFree(r->parser);
    gp_strbuf_fini(&r->text);
    return result;
}

const struct sim_node *sim_xml_find(const struct sim_node *node, const char *path)
{
    while (node && *path) {
        size_t len = strcspn(path, "/");
        const struct sim_node *child = node->first;
        while (child && (strlen(child->name) != len || memcmp(child->name, path, len) != 0))
            child = child->next;
        node = child;
        path += len + (path[len] == '/');
    }
    return node;
}

const char *sim_xml_text(const struct sim_node *node, const char *path)
{
    const struct sim_node *found = sim_xml_find(node, path);
    return found ? found->text : NULL;
}

void sim_xml_fini(struct sim_xml *xml)
{
    gp_arena_fini(&xml->arena);
}
