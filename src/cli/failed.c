/* failed: see failed.h. */
#include "cli/failed.h"

#include <stdio.h>
#include <string.h>

#include "box/steps.h"
#include "cli/cli.h"
#include "guest/owner.h"
#include "session/sanitise.h"

const char *failed_step(const struct err *e, char *ret, size_t size)
{
    const char *at = strstr(e->text, "step ");
    size_t len = at ? strcspn(at + 5, ": ") : 0;

    if (len == 0 || len >= size || at[5 + len] != ':')
        return NULL;
    memcpy(ret, at + 5, len);
    ret[len] = '\0';
    return ret;
}

/* Line by line, and harmless: a server may have had a say in it. */
static void print_lines(const char *text)
{
    const char *begin = "retort: ";

    for (size_t len; *text; text += len + (text[len] == '\n'), begin = "  ") {
        char line[sizeof(((struct err *)NULL)->text)], plain[sizeof(line)];
        len = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)len, text);
        fprintf(stderr, "%s%s\n", begin, sanitise_name(line, plain, sizeof(plain)));
    }
}

int owner_failed(const struct err *e)
{
    char name[64];
    const char *step = failed_step(e, name, sizeof(name));
    const char *remedy = step ? steps_remedy(step) : NULL;

    print_lines(e->text);
    if (remedy)
        fprintf(stderr, "retort: remedy: %s\n", remedy);
    else if (step)
        fprintf(stderr, "retort: \"retort doctor\" tries every layer and says what helps\n");
    return EXIT_RETORT_FAILED;
}

int turn_status(int turn)
{
    if (turn & TURN_STOP)
        return EXIT_TERMINATED;
    if (turn & TURN_CLOSED)
        return EXIT_PIPE;
    return turn & TURN_SIGINT ? EXIT_INTERRUPTED : 0;
}
