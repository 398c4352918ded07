#include "jobs/label.h"

#include <string.h>

/* Writes the first bytes of the buffer. */
static int send(struct gp_label *label, size_t size)
{
    int r = size > 0 ? label->write(label->context, label->held, size) : 0;
    label->size -= size;
    label->whole -= label->whole < size ? label->whole : size;
    memmove(label->held, label->held + size, label->size);
    return r;
}

/* If the buffer is full, complete lines are written first; a longer line is written in pieces. */
static int hold(struct gp_label *label, const char *bytes, size_t size)
{
    int r = 0;
    while (r == 0 && size > 0) {
        size_t room = sizeof(label->held) - label->size;
        size_t taken = size < room ? size : room;
        memcpy(label->held + label->size, bytes, taken);
        label->size += taken;
        bytes += taken;
        size -= taken;
        if (size > 0)
            r = send(label, label->whole > 0 ? label->whole : label->size);
    }
    return r;
}

static size_t line_size(const char *bytes, size_t size)
{
    size_t n = 0;
    while (n < size && bytes[n] != '\n' && bytes[n] != '\r')
        n++;
    return n < size ? n + 1 : n;
}

/* A line feed after a carriage return belongs to the same line. */
static bool begins_line(const struct gp_label *label, char next)
{
    return label->last == '\0' || label->last == '\n' || (label->last == '\r' && next != '\n');
}

int gp_label_add(struct gp_label *label, const char *bytes, size_t size)
{
    int r = 0;
    while (r == 0 && size > 0) {
        size_t n = line_size(bytes, size);
        bool begins = begins_line(label, *bytes);
        if (begins)
            r = hold(label, label->text, strlen(label->text));
        if (r == 0 && begins)
            r = hold(label, "| ", 2);
        if (r == 0)
            r = hold(label, bytes, n);
        label->last = bytes[n - 1];
        if (label->last == '\n' || label->last == '\r')
            label->whole = label->size;
        bytes += n;
        size -= n;
    }
    return r < 0 ? r : send(label, label->whole);
}

int gp_label_flush(struct gp_label *label)
{
    return send(label, label->size);
}

int gp_label_finish(struct gp_label *label)
{
    bool is_in_line = label->last && label->last != '\n' && label->last != '\r';
    return is_in_line ? gp_label_add(label, "\n", 1) : gp_label_flush(label);
}
