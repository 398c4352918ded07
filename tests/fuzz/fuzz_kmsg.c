/* Lines of the kernel's log. What was found lies inside of the line, and the line may end anywhere.
 * fuzz-sources: src/doctor/readers/kmsg.c */
#include "doctor/readers/kmsg.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gp_kmsg *k, const char *line, size_t size)
{
    struct gp_kmsg_nvlink nvlink;
    unsigned was, now;
    if (k->body < line || k->body > line + size || k->message < k->body || k->message > line + size)
        abort();
    if (k->stamp_length > 0 && (k->stamp < line || k->stamp + k->stamp_length > line + size))
        abort();
    if (strnlen(k->process, sizeof(k->process)) == sizeof(k->process) ||
        strnlen(k->bus_id, sizeof(k->bus_id)) == sizeof(k->bus_id))
        abort();
    (void)gp_kmsg_nvlink(k->message, &nvlink);
    (void)gp_kmsg_recovery(k->message, &was, &now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gp_kmsg k;
    char *line = malloc(size + 1);
    if (!line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    if (gp_kmsg_parse(line, &k))
        check(&k, line, size);
    if (gp_kmsg_parse_copied(line, &k))
        check(&k, line, size);
    free(line);
    return 0;
}
