#include "jobs/fit_cache.h"

#include "base/outfile.h"
#include "base/strbuf.h"
#include "out/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "gpulse.fit-cache/1"

/* A script that was changed counts as another command. */
static void add_word(struct gp_strbuf *sb, const char *word)
{
    struct stat st;
    gp_strbuf_addf(sb, "%s\n", word);
    if (stat(word, &st) == 0 && S_ISREG(st.st_mode))
        gp_strbuf_addf(sb, " file of %lld bytes, %lld.%09ld\n", (long long)st.st_size,
                       (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

void gp_fit_cache_open(struct gp_fit_cache *cache, const struct gp_fit *fit, char *const *words,
                       size_t count, const char *more, const char *confirm)
{
    const struct gp_fit_request *r = &fit->request;
    char folder[GP_PATH_SIZE];
    struct gp_strbuf sb = GP_STRBUF_INIT(sizeof(cache->key) - 1);
    cache->path[0] = '\0';
    (void)snprintf(cache->confirm, sizeof(cache->confirm), "%s", confirm);
    for (size_t i = 0; i < count; i++)
        add_word(&sb, words[i]);
    gp_strbuf_addf(&sb, "in %s\nwith %s\n", getcwd(folder, sizeof(folder)) ? folder : "?", more);
    gp_strbuf_addf(&sb, "min %llu start %llu max %llu multiple %llu total %llu margin %.4f\n",
                   (unsigned long long)r->min, (unsigned long long)r->start,
                   (unsigned long long)r->max, (unsigned long long)r->multiple,
                   (unsigned long long)r->total_bytes, r->margin);
    if (!sb.error && gp_io_user_folder(folder, "XDG_CACHE_HOME", ".cache", "fit") &&
        gp_io_make_folders(folder) == 0) {
        (void)snprintf(cache->key, sizeof(cache->key), "%s", sb.buf);
        (void)snprintf(cache->path, sizeof(cache->path), "%.4000s/%016llx.json", folder,
                       (unsigned long long)gp_hash(GP_HASH_INIT, cache->key));
    }
    gp_strbuf_fini(&sb);
}

static bool parse_verdict(const char *word, enum gp_fit_verdict *ret)
{
    for (int i = 0; word && i < GP_FIT_VERDICT__COUNT; i++)
        if (strcmp(word, gp_fit_verdict_word((enum gp_fit_verdict)i)) == 0) {
            *ret = (enum gp_fit_verdict)i;
            return true;
        }
    return false;
}

static uint64_t time_of(const json_t *trial, const char *key)
{
    json_int_t ns = json_integer_value(json_object_get(trial, key));
    return ns > 0 ? (uint64_t)ns : 0;
}

static bool is_same_run(const struct gp_fit_cache *cache, const struct gp_fit_trial *next,
                        const json_t *trial)
{
    const char *confirm = json_string_value(json_object_get(trial, "confirm"));
    return next->is_confirming ? confirm && strcmp(confirm, cache->confirm) == 0 : !confirm;
}

static bool is_certain(const struct gp_fit_trial *t)
{
    return t->verdict == GP_FIT_OK || t->verdict == GP_FIT_TIGHT || t->verdict == GP_FIT_OOM;
}

size_t gp_fit_cache_replay(const struct gp_fit_cache *cache, struct gp_fit *fit)
{
    struct gp_fit_trial next;
    size_t count = 0;
    json_t *document = cache->path[0] ? json_load_file(cache->path, 0, NULL) : NULL;
    const char *key = json_string_value(json_object_get(document, "key"));
    const json_t *trials = json_object_get(document, "trials");
    while (key && strcmp(key, cache->key) == 0 && gp_fit_next(fit, &next)) {
        const json_t *trial = json_array_get(trials, count);
        const char *word = json_string_value(json_object_get(trial, "verdict"));
        json_int_t peak = json_integer_value(json_object_get(trial, "peak"));
        json_int_t batch = json_integer_value(json_object_get(trial, "batch"));
        enum gp_fit_verdict verdict;
        if (batch < 0 || (uint64_t)batch != next.batch || peak < 0 ||
            !parse_verdict(word, &verdict) || !is_same_run(cache, &next, trial))
            break;
        gp_fit_take(fit, verdict, (uint64_t)peak, 0);
        fit->trials[count].took_ns = time_of(trial, "took_ns");
        fit->trials[count].settled_ns = time_of(trial, "settled_ns");
        count++;
    }
    json_decref(document);
    return count;
}

void gp_fit_cache_write(const struct gp_fit_cache *cache, const struct gp_fit *fit)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    json_t *trials = json_array();
    if (!cache->path[0]) {
        json_decref(trials);
        return;
    }
    for (size_t i = 0; i < fit->trial_count && is_certain(&fit->trials[i]); i++) {
        const struct gp_fit_trial *t = &fit->trials[i];
        (void)json_array_append_new(
            trials,
            json_pack("{s:I, s:s, s:I, s:I, s:I, s:s*}", "batch", (json_int_t)t->batch, "verdict",
                      gp_fit_verdict_word(t->verdict), "peak", (json_int_t)t->peak_bytes, "took_ns",
                      (json_int_t)t->took_ns, "settled_ns", (json_int_t)t->settled_ns, "confirm",
                      t->is_confirming ? cache->confirm : NULL));
    }
    gp_json_add(&sb,
                json_pack("{s:s, s:s, s:o}", "schema", SCHEMA, "key", cache->key, "trials", trials),
                2);
    gp_strbuf_addc(&sb, '\n');
    (void)!gp_outfile_replace(cache->path, 0600, sb.buf, sb.len, false, NULL);
    gp_strbuf_fini(&sb);
}
