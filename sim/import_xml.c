/* The format for programs: nvidia-smi -q -x. */
#include "sim/capture.h"

#include "base/err.h"

#include <expat.h>
#include <string.h>

struct reader {
    struct sim_tree *tree;
    XML_Parser parser;
    struct sim_node *stack[SIM_MAX_DEPTH];
    size_t depth;
    struct gp_strbuf text;
};

/* expat 2.9 deprecates the function that returns an unsigned long. */
static long current_line(XML_Parser parser)
{
#if XML_MAJOR_VERSION > 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION >= 9)
    return (long)XML_GetCurrentLineNumber64(parser);
#else
    return (long)XML_GetCurrentLineNumber(parser);
#endif
}

static void stop(struct reader *r, const char *problem)
{
    if (!r->tree->problem)
        r->tree->problem = problem;
    (void)XML_StopParser(r->parser, XML_FALSE);
}

static void XMLCALL on_start(void *ctx, const char *name, const char **attributes)
{
    struct reader *r = ctx;
    struct sim_node *parent = r->depth ? r->stack[r->depth - 1] : &r->tree->root;
    if (r->depth == SIM_MAX_DEPTH) {
        stop(r, "nested too deeply");
        return;
    }
    struct sim_node *node =
        sim_node_add(r->tree, parent, name, strlen(name), current_line(r->parser));
    for (const char **a = attributes; node && a[0]; a += 2)
        if (strcmp(a[0], "id") == 0 && !(node->id = sim_tree_keep(r->tree, a[1])))
            node = NULL;
    if (!node) {
        stop(r, r->tree->problem);
        return;
    }
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
        const char *copy = sim_tree_keep(r->tree, text + start);
        if (copy)
            r->stack[r->depth - 1]->text = copy;
        else
            stop(r, r->tree->problem);
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

/* Captures contain no entities. Files with entities are rejected, so that expansion cannot make
 * them grow. */
static void XMLCALL on_entity(void *ctx, const char *name, int is_parameter, const char *value,
                              int length, const char *base, const char *system_id,
                              const char *public_id, const char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)length;
    (void)base, (void)system_id, (void)public_id, (void)notation;
    stop(ctx, "contains an entity, which nvidia-smi never prints");
}

static int parse(struct reader *r, struct sim_capture *capture, struct gp_err *err)
{
    const struct gp_strbuf *file = &capture->file;
    if (XML_Parse(r->parser, file->buf, (int)file->len, XML_TRUE) == XML_STATUS_OK) {
        if (sim_node_find(&r->tree->root, "nvidia_smi_log"))
            return GP_OK;
        return sim_capture_refuse(
            capture, err,
            "not the output of nvidia-smi -q -x: the root element is not <nvidia_smi_log>");
    }
    capture->line = current_line(r->parser);
    const char *problem = r->tree->problem;
    return sim_capture_refuse(capture, err, "%s",
                              problem ? problem : XML_ErrorString(XML_GetErrorCode(r->parser)));
}

int sim_read_xml(struct sim_capture *capture, char *line, struct gp_err *err)
{
    (void)line;
    struct reader r = {.tree = &capture->tree, .parser = XML_ParserCreate(NULL)};
    if (!r.parser)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    gp_strbuf_init(&r.text, SIM_MAX_TEXT);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetEntityDeclHandler(r.parser, on_entity);
    int result = parse(&r, capture, err);
    XML_ParserFree(r.parser);
    gp_strbuf_fini(&r.text);
    return result;
}
