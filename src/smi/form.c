#include "smi/form.h"

#include "base/strbuf.h"
#include "model/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct gp_smi_form gp_smi_form_of_driver(const struct gp_value *version, bool native)
{
    struct gp_smi_form form = {GP_SMI_DRIVER(595, 0), native};
    if (!gp_value_is_present(version))
        return form;
    char *end;
    unsigned long branch = strtoul(version->s, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    if (branch > 0 && branch < 10000 && minor < 1000)
        form.driver = GP_SMI_DRIVER(branch, minor);
    return form;
}

struct gp_smi_form gp_smi_form_of(const struct gp_snapshot *snapshot, bool native)
{
    return gp_smi_form_of_driver(gp_snapshot_value(snapshot, NULL, NULL, GP_DRIVER_VERSION),
                                 native);
}

void gp_smi_add_date(struct gp_strbuf *sb, const struct gp_snapshot *snapshot)
{
    time_t seconds = (time_t)(snapshot->wall_ns / GP_NS_PER_S);
    struct tm tm;
    char text[32];
    (void)localtime_r(&seconds, &tm);
    size_t len = strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &tm);
    gp_strbuf_add(sb, text, len);
}

void gp_smi_add_library(struct gp_strbuf *sb, const char *version, unsigned parts)
{
    const char *dot = strchr(version, '.');
    bool has_cuda = dot && strtoul(version, NULL, 10) < 100;
    const char *start = has_cuda ? dot + 1 : version;
    const char *end = start;
    for (unsigned i = 0; i < parts && end; i++)
        end = strchr(end + (i > 0), '.');
    gp_strbuf_add(sb, start, parts && end ? (size_t)(end - start) : strlen(start));
}
