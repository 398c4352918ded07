#include "smi/command.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "source/nvml/nvml.h"

int gp_smi_take_common(const char *const *given, struct gp_smi_common *ret,
                       struct gp_strbuf *message)
{
    enum {
#define X(id, kind, names, value, help) COMMON_##id,
        GP_SMI_COMMON_OPTIONS(X)
#undef X
    };
    *ret = (struct gp_smi_common){
        .id = given[COMMON_ID],
        .sim = given[COMMON_SIM],
        .root = given[COMMON_ROOT],
        .sim_still = given[COMMON_SIM_STILL],
        .native = given[COMMON_NATIVE],
    };
    if (given[COMMON_TIMEOUT] && !gp_parse_duration(given[COMMON_TIMEOUT], &ret->timeout_ns)) {
        gp_strbuf_addf(message, "Invalid value for --timeout: %s\n", given[COMMON_TIMEOUT]);
        return GP_SMI_EXIT_USAGE;
    }
    return 0;
}

int gp_smi_end(struct gp_smi_request *request, int status)
{
    request->is_done = true;
    return status;
}

/* The common options, which are the last ones, only say where. */
static bool asks_for_anything(const struct gp_smi_syntax *syntax, const char *const *given)
{
    for (int i = 0; i < syntax->common; i++)
        if (given[i])
            return true;
    return false;
}

bool gp_smi_begin(const struct gp_smi_syntax *syntax, int argc, char **argv, const char **given,
                  struct gp_smi_request *ret, struct gp_strbuf *sb, int *ret_status)
{
    int status = gp_smi_parse(syntax->options, true, argc, argv, given, sb);
    if (!status)
        status = gp_smi_take_common(&given[syntax->common], &ret->common, sb);
    bool helps = !status && (given[syntax->help] ||
                             (!syntax->has_default && !asks_for_anything(syntax, given)));
    if (helps) {
        gp_strbuf_addf(sb, "%s [options]\n\n    %s\n\n", syntax->tool, syntax->summary);
        gp_smi_add_options(sb, syntax->options);
    }
    ret->is_done = status || helps;
    ret->show.native = ret->common.native;
    *ret_status = status;
    return !ret->is_done;
}

int gp_smi_refuse_value(struct gp_smi_request *request, struct gp_strbuf *sb, const char *option,
                        const char *value)
{
    return gp_smi_end(request, gp_smi_add_invalid(sb, option, value));
}

int gp_smi_refuse(struct gp_smi_request *request, struct gp_strbuf *sb, int status,
                  const char *words)
{
    gp_strbuf_adds(sb, words);
    return gp_smi_end(request, status);
}

int gp_smi_refuse_combination(struct gp_smi_request *request, struct gp_strbuf *sb)
{
    return gp_smi_refuse(request, sb, GP_SMI_EXIT_USAGE, GP_SMI_COMBINATION);
}

int gp_smi_say_unreachable(struct gp_strbuf *sb, const struct gp_smi_form *form,
                           const struct gp_target *target)
{
    int other = target->code == GP_ETIMEOUT ? GP_SMI_EXIT_TIMEOUT : GP_NVML_UNKNOWN;
    int driver_code = target->driver_code ? target->driver_code : other;
    gp_smi_add_unreachable(sb, form, target->index, target->bus[0] ? target->bus : NULL,
                           driver_code);
    if (driver_code == GP_NVML_UNKNOWN && target->words[0])
        gp_strbuf_addf(sb, "gpulse: GPU %u: %s\n", target->index, target->words);
    return gp_smi_exit_of(driver_code);
}
