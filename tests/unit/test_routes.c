/* The table of calls, and /openapi.json, which describes them: each has what the other has. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gate/inside.h"

extern const char openapi_json[];
extern const size_t openapi_json_len;

static json_t *description;

static int load(void **state)
{
    (void)state;
    description = json_loadb(openapi_json, openapi_json_len, JSON_REJECT_DUPLICATES, NULL);
    return description ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    json_decref(description);
    return 0;
}

static const struct route *find_route(const char *method, const char *path)
{
    for (unsigned i = 0; i < n_routes; i++) {
        if (strcasecmp(routes[i].method, method) == 0 && strcmp(routes[i].path, path) == 0)
            return &routes[i];
    }
    return NULL;
}

static json_t *find_described(const struct route *r)
{
    json_t *item = json_object_get(json_object_get(description, "paths"), r->path);
    char method[16];
    size_t i = 0;

    for (; r->method[i] && i < sizeof(method) - 1; i++)
        method[i] = (char)tolower((unsigned char)r->method[i]);
    method[i] = '\0';
    return json_object_get(item, method);
}

static void every_call_is_described(void **state)
{
    (void)state;
    for (unsigned i = 0; i < n_routes; i++) {
        if (!find_described(&routes[i]))
            fail_msg("%s %s is not described", routes[i].method, routes[i].path);
    }
}

static void what_is_described_can_be_called(void **state)
{
    const char *path, *method;
    json_t *item, *operation;
    unsigned n = 0;
    (void)state;

    json_object_foreach(json_object_get(description, "paths"), path, item)
    {
        json_object_foreach(item, method, operation)
        {
            if (strcmp(method, "parameters") == 0)
                continue;
            if (!find_route(method, path))
                fail_msg("%s %s is described and cannot be called", method, path);
            n++;
        }
    }
    assert_int_equal(n, n_routes);
}

/* "security": [] takes back what is said for all calls at the top. */
static void both_say_who_needs_a_token(void **state)
{
    (void)state;
    assert_true(json_array_size(json_object_get(description, "security")) > 0);
    for (unsigned i = 0; i < n_routes; i++) {
        const json_t *security = json_object_get(find_described(&routes[i]), "security");
        bool open = json_is_array(security) && json_array_size(security) == 0;
        if (open != routes[i].open)
            fail_msg("%s %s: a token is needed, or is not", routes[i].method, routes[i].path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_described),
        cmocka_unit_test(what_is_described_can_be_called),
        cmocka_unit_test(both_say_who_needs_a_token),
    };
    return cmocka_run_group_tests(tests, load, drop);
}
