/* gpulse doctor explain: what an error means, whose fault it is, and what to do. */
#include "cmd/app.h"
#include "cmd/doctor_verbs.h"
#include "cmd/explain_record.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "doctor/explanation.h"
#include "doctor/log_errors.h"
#include "jobs/failure.h"
#include "out/json.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { EXIT_UNKNOWN = 1 };

struct collection {
    struct gp_known_errors errors;
    size_t lines; /* lines read */
};

static void collect_text(struct collection *c, char *text)
{
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (line[strspn(line, " \t\r")] != '\0')
            gp_known_errors_take(&c->errors, line, ++c->lines);
}

/* ---- the verb ---- */

static void add_text(struct gp_strbuf *sb, const struct collection *c, bool has_sources)
{
    for (size_t i = 0; i < c->errors.count; i++) {
        const struct gp_known_error *known = &c->errors.all[i];
        if (i > 0)
            gp_strbuf_addc(sb, '\n');
        if (c->lines > 1 && known->line)
            gp_doctor_add_line(sb, known->line);
        if (known->repeats > 0)
            gp_strbuf_addf(sb, "      and %" PRIu64 " more like it\n", known->repeats);
        gp_doctor_add_explanation(sb, &known->explanation, has_sources);
    }
    if (c->errors.count == 0)
        gp_strbuf_adds(sb, c->lines > 1
                               ? "no known error in these lines\n"
                               : "unknown error; gpulse knows messages of CUDA, NCCL, PyTorch and "
                                 "other\nframeworks, of the driver and the kernel, and codes: xid "
                                 "79, cuda 802, nvml 18, exit 137\n");
}

static void add_json(struct gp_strbuf *sb, const struct collection *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->errors.count; i++) {
        const struct gp_known_error *known = &c->errors.all[i];
        json_t *one = gp_doctor_explanation_json(&known->explanation, known->line);
        (void)json_object_set_new(one, "count", json_integer((json_int_t)known->repeats + 1));
        (void)json_array_append_new(list, one);
    }
    gp_json_add(sb, json_pack("{s:s, s:o}", "schema", "gpulse.doctor.explain/1", "known", list), 2);
    gp_strbuf_addc(sb, '\n');
}

/* "xid79", "Xid: 79", "SIGKILL" */
static bool split_number(const char *text, const char **ret_topic, const char **ret_what)
{
    static const char *const topics[] = {"xid", "sxid", "exit", "signal"};
    for (size_t i = 0; i < GP_ARRAY_LEN(topics); i++) {
        size_t n = strlen(topics[i]);
        if (strncasecmp(text, topics[i], n) != 0)
            continue;
        const char *number = text + n + strspn(text + n, " :#");
        *ret_topic = topics[i];
        *ret_what = number;
        return *number && !number[strspn(number, "0123456789")];
    }
    static const char status[] = "status ";
    if (strncasecmp(text, status, strlen(status)) == 0) {
        uint64_t number;
        *ret_topic = "exit";
        *ret_what = text + strlen(status);
        return gp_parse_u64(*ret_what, &number) && number < 256;
    }
    *ret_topic = "signal";
    *ret_what = text;
    return strncasecmp(text, "SIG", 3) == 0 && gp_explain_is_signal(text);
}

/* "xid 79", "cuda error 802": true for a topic and one entry of it. */
static bool split_topic(char *text, const char **ret_topic, const char **ret_what)
{
    char *words[4] = {NULL};
    size_t count = 0, n = strcspn(text, " ");
    char topic[16];
    if (n == 0 || n >= sizeof(topic) || !text[n])
        return false;
    memcpy(topic, text, n);
    topic[n] = '\0';
    if (!gp_explain_is_topic(topic))
        return false;
    size_t blanks = 0;
    for (const char *p = text; *p; p++)
        blanks += *p == ' ';
    static const char *const fillers[] = {" error ", " status ", " code "};
    bool has_error = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(fillers); i++)
        has_error = has_error || strncmp(text + n, fillers[i], strlen(fillers[i])) == 0;
    if (blanks != (has_error ? 2u : 1u) || strchr(text, '\n'))
        return false;
    for (char *rest = text, *word; count < GP_ARRAY_LEN(words) && (word = strsep(&rest, " "));)
        words[count++] = word;
    *ret_topic = words[0];
    *ret_what = words[count - 1];
    return true;
}

/* A word for several errors. */
static const char *lines_of(const char *text)
{
    return strcasecmp(text, "oom") == 0 ? "CUDA out of memory\nKilled" : NULL;
}

static int fill(struct collection *c, int count, char **words, struct gp_err *err)
{
    struct gp_strbuf line = GP_STRBUF_INIT(1 << 20);
    const char *topic, *what;
    int r = 0;
    for (int i = 0; i < count; i++)
        gp_strbuf_addf(&line, "%s%s", i > 0 ? " " : "", words[i]);
    if (line.error) {
        r = gp_err_set(err, line.error, "the text is too long: pass it on standard input");
    } else if (split_number(line.buf, &topic, &what) || split_topic(line.buf, &topic, &what)) {
        r = gp_explain_topic(&c->errors.arena, topic, what, &c->errors.all[0].explanation, err);
        c->errors.count = r == 0;
        c->lines = 1;
    } else {
        const char *lines = lines_of(line.buf);
        if (lines) {
            gp_strbuf_reset(&line);
            gp_strbuf_adds(&line, lines);
        }
        collect_text(c, line.buf);
    }
    gp_strbuf_fini(&line);
    return r;
}

int gp_doctor_explain(const struct gp_doctor_options *o, int count, char **words,
                      struct gp_err *err)
{
    static struct collection c; /* large */
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    static char topic[] = "exit";
    char *as_exit[] = {topic, count == 1 ? words[0] : NULL};
    bool is_number = count == 1 && !words[0][strspn(words[0], "0123456789")] && *words[0];
    if (is_number && gp_explain_is_exit(words[0])) {
        words = as_exit;
        count = 2;
    } else if (is_number) {
        return gp_err_set(
            err, GP_EUSAGE,
            "%.20s of what? try xid %.20s, cuda %.20s, nvml %.20s, exit %.20s or last %.20s",
            words[0], words[0], words[0], words[0], words[0], words[0]);
    }
    if (count == 0 || (count == 1 && gp_explain_is_topic(words[0])))
        return gp_err_set(err, GP_EUSAGE,
                          "missing ERROR; give xid 79, sxid 20034, cuda 802, nvml 18, exit 137, "
                          "throttle sw_power_cap, a line in quotes, a log, last for "
                          "your last gpulse run, list for all of them, or - for standard input");
    if (count > 0 && strcmp(words[0], "list") == 0 && access("list", F_OK) != 0)
        return count == 1
                   ? gp_explain_list(o, err)
                   : gp_err_set(err, GP_EUSAGE,
                                "list takes no argument '%.60s'; for one job: last N", words[1]);
    gp_failure_prepare();
    for (int i = 0; i < count; i++)
        if (gp_explain_is_log(words[i], count == 1))
            return gp_explain_logs(o, count, words, err);
    int r = fill(&c, count, words, err);
    if (r == 0) {
        if (o->json)
            add_json(&sb, &c);
        else
            add_text(&sb, &c, o->sources);
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    }
    gp_strbuf_fini(&sb);
    size_t known = c.errors.count;
    gp_known_errors_fini(&c.errors);
    return r < 0 ? r : known > 0 ? 0 : EXIT_UNKNOWN;
}
