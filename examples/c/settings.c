/* The settings of a GPU, or changes of them and how to undo these:
 * settings GPU [CHANGES], for example settings 0 "power-limit=300 persistence-mode=on" */
#include <gpulse/gpulse.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    const struct gpulse_options options = {.size = sizeof(options),
                                           .gpus = argc > 1 ? argv[1] : "0"};
    gpulse_settings *settings;
    struct gpulse_error error;
    const int r = argc > 2 ? gpulse_settings_change(&options, argv[2], 0, &settings, &error)
                           : gpulse_settings_read(&options, &settings, &error);
    if (r < 0)
        fprintf(stderr, "settings: %s\n", error.text);
    if (!settings)
        return 1;
    for (size_t row = 0; row < gpulse_settings_count(settings); row++) {
        struct gpulse_setting s = {.size = sizeof(s)};
        gpulse_settings_get(settings, row, &s);
        printf("GPU %d: %s: %s", s.gpu, s.name, *s.value ? s.value : "unknown");
        if (s.has_range)
            printf(" (%g to %g %s)", s.least, s.most, s.unit);
        if (*s.wanted)
            printf(", changed to %s; to undo it: %s", *s.after ? s.after : "unknown",
                   gpulse_settings_undo(settings, row));
        printf("%s%s\n", *s.reason ? ": " : "", s.reason);
    }
    gpulse_settings_free(settings);
    return r < 0;
}
