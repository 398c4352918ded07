#include "doctor/explain/explain_words.h"

#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "doctor/explain/log_errors.h"

#include <string.h>
#include <strings.h>

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

int gp_explain_check_words(int count, char *const *words, struct gp_err *err)
{
    const char *word = count == 1 ? words[0] : "";
    if (is_number(word) && !gp_explain_is_exit(word))
        return gp_err_set(
            err, GP_EUSAGE,
            "%.20s of what? try xid %.20s, cuda %.20s, nvml %.20s, exit %.20s or last %.20s", word,
            word, word, word, word, word);
    if (count == 0 || (count == 1 && gp_explain_is_topic(word)))
        return gp_err_set(err, GP_EUSAGE,
                          "missing ERROR; give xid 79, sxid 20034, cuda 802, nvml 18, exit 137, "
                          "throttle sw_power_cap, a line in quotes, a log, last for "
                          "your last gpulse run, list for all of them, or - for standard input");
    return 0;
}

/* "xid79", "Xid: 79", "SIGKILL", "137" */
static bool split_number(const char *text, const char **ret_topic, const char **ret_what)
{
    static const char *const topics[] = {"xid", "sxid", "exit", "signal"};
    *ret_topic = "exit";
    *ret_what = text;
    if (is_number(text))
        return gp_explain_is_exit(text);
    for (size_t i = 0; i < GP_ARRAY_LEN(topics); i++) {
        size_t n = strlen(topics[i]);
        if (strncasecmp(text, topics[i], n) != 0)
            continue;
        const char *number = text + n + strspn(text + n, " :#");
        *ret_topic = topics[i];
        *ret_what = number;
        return is_number(number);
    }
    static const char status[] = "status ";
    if (strncasecmp(text, status, strlen(status)) == 0) {
        uint64_t number;
        *ret_what = text + strlen(status);
        return gp_parse_u64(*ret_what, &number) && number < 256;
    }
    *ret_topic = "signal";
    *ret_what = text;
    return strncasecmp(text, "SIG", 3) == 0 && gp_explain_is_signal(text);
}

/* "xid 79", "cuda error 802": true for a topic and one entry of it, and splits the text. */
static bool split_topic(char *text, const char **ret_topic, const char **ret_what)
{
    static const char *const fillers[] = {"error ", "status ", "code "};
    char *blank = strchr(text, ' ');
    const char *what = blank ? blank + 1 : "";
    size_t filler = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(fillers); i++)
        if (strncmp(what, fillers[i], strlen(fillers[i])) == 0)
            filler = strlen(fillers[i]);
    what += filler;
    if (!blank || strpbrk(what, " \n"))
        return false;
    *blank = '\0';
    *ret_topic = text;
    *ret_what = what;
    if (gp_explain_is_topic(text))
        return true;
    *blank = ' ';
    return false;
}

static void take_lines(struct gp_known_errors *errors, char *text)
{
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (line[strspn(line, " \t\r")] != '\0')
            gp_known_errors_take(errors, line, ++errors->lines);
}

int gp_explain_words(struct gp_known_errors *errors, int count, char *const *words,
                     struct gp_err *err)
{
    char oom[] = "CUDA out of memory\nKilled"; /* a word for several errors */
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 20);
    const char *topic, *what;
    int r = 0;
    for (int i = 0; i < count; i++)
        gp_strbuf_addf(&text, "%s%s", i > 0 ? " " : "", words[i]);
    if (text.error) {
        r = gp_err_set(err, text.error, "the text is too long: pass it on standard input");
    } else if (split_number(text.buf, &topic, &what) || split_topic(text.buf, &topic, &what)) {
        r = gp_explain_topic(&errors->arena, topic, what, &errors->all[0].explanation, err);
        errors->count = r == 0;
        errors->lines = 1;
    } else {
        take_lines(errors, strcasecmp(text.buf, "oom") == 0 ? oom : text.buf);
    }
    gp_strbuf_fini(&text);
    return r;
}
