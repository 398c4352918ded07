/* Why a program failed, as JSON: explain LOG, or explain last */
#include <gpulse/gpulse.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    struct gpulse_error error;
    char *json;
    if (gpulse_explain_log(argc > 1 ? argv[1] : "last", &json, &error) < 0)
        return fprintf(stderr, "explain: %s\n", error.text), 1;
    printf("%s\n", json);
    gpulse_text_free(json);
    return 0;
}
