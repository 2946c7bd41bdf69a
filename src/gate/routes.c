/* routes: the table of calls. /openapi.json describes the same; tests/unit/test_routes.c compares the two. */
#include <stdlib.h>
#include <string.h>

#include "gate/calls.h"
#include "gate/headers.h"
#include "gate/inside.h"
#include "gate/mcp/server.h"

#define SMALL (64u << 10)
#define QUESTION (512u << 10)
#define CODE (40u << 20)  /* code is at most a frame (32 MiB); JSON escapes take more */
#define WHOLE (64u << 20) /* a run with its files, in base64 */

const struct route routes[] = {
    {"GET", "/", true, BODY_NONE, 0, call_root, NULL},
    {"GET", "/healthz", true, BODY_NONE, 0, call_health, NULL},
    {"GET", "/metrics", false, BODY_NONE, 0, call_metrics, NULL},
    {"GET", "/openapi.json", true, BODY_NONE, 0, call_openapi, NULL},
    {"POST", "/mcp", false, BODY_JSON, CODE, call_mcp_post, NULL, true},
    {"GET", "/mcp", false, BODY_NONE, 0, call_mcp_get, NULL},
    {"DELETE", "/mcp", false, BODY_NONE, 0, call_mcp_delete, NULL},
    {"GET", "/v1/environments", false, BODY_NONE, 0, call_environments, NULL},
    {"POST", "/v1/run", false, BODY_JSON, WHOLE, call_run, NULL},
    {"POST", "/v1/ask", false, BODY_JSON, QUESTION, call_ask, NULL},
    {"POST", "/v1/sessions", false, BODY_JSON, SMALL, call_session_new, NULL},
    {"GET", "/v1/sessions", false, BODY_NONE, 0, call_sessions, NULL},
    {"GET", "/v1/sessions/{sid}", false, BODY_NONE, 0, call_session, NULL},
    {"DELETE", "/v1/sessions/{sid}", false, BODY_NONE, 0, call_session_delete, NULL},
    {"POST", "/v1/sessions/{sid}/cells", false, BODY_JSON, CODE, call_cell_new, NULL},
    {"GET", "/v1/sessions/{sid}/cells", false, BODY_NONE, 0, call_cells, NULL},
    {"GET", "/v1/sessions/{sid}/cells/{n}", false, BODY_NONE, 0, call_cell, NULL},
    {"POST", "/v1/sessions/{sid}/check", false, BODY_JSON, CODE, call_check, NULL},
    {"POST", "/v1/sessions/{sid}/interrupt", false, BODY_JSON, SMALL, call_interrupt, NULL},
    {"GET", "/v1/sessions/{sid}/checkpoints", false, BODY_NONE, 0, call_checkpoints, NULL},
    {"POST", "/v1/sessions/{sid}/rollback", false, BODY_JSON, SMALL, call_rollback, NULL},
    {"POST", "/v1/sessions/{sid}/fork", false, BODY_JSON, SMALL, call_fork, NULL},
    {"POST", "/v1/sessions/{sid}/try", false, BODY_JSON, CODE, call_try, NULL},
    {"GET", "/v1/sessions/{sid}/variables", false, BODY_NONE, 0, call_variables, NULL},
    {"GET", "/v1/sessions/{sid}/notebook", false, BODY_NONE, 0, call_notebook, NULL},
    {"GET", "/v1/sessions/{sid}/files", false, BODY_NONE, 0, call_files, NULL},
    {"POST", "/v1/sessions/{sid}/files", false, BODY_STREAM, 0, NULL, &sink_multipart},
    {"GET", "/v1/sessions/{sid}/files/{path}", false, BODY_NONE, 0, call_file, NULL},
    {"PUT", "/v1/sessions/{sid}/files/{path}", false, BODY_STREAM, 0, NULL, &sink_upload},
    {"DELETE", "/v1/sessions/{sid}/files/{path}", false, BODY_NONE, 0, call_file_delete, NULL},
};
const unsigned n_routes = sizeof(routes) / sizeof(*routes);

static char *copy(const char *from, size_t len)
{
    char *text = xcalloc(1, len + 1);

    memcpy(text, from, len);
    return text;
}

/* Does the path fit the pattern? Parameters are copied as they are. */
static bool matches(const char *pattern, const char *path, char *params[PARAMS])
{
    unsigned n = 0;

    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        bool rest = strncmp(pattern, "{path}", 6) == 0;
        size_t len = rest ? strlen(path) : strcspn(path, "/");
        if (len == 0)
            return false;
        free(params[n]);
        params[n++] = copy(path, len);
        path += len;
        pattern = strchr(pattern, '}') + 1;
    }
    return *path == '\0';
}

const struct route *route_find(const char *method, const char *path, char *ret_params[PARAMS],
                               struct buf *ret_allow)
{
    bool head = strcmp(method, "HEAD") == 0;

    for (unsigned i = 0; i < n_routes; i++) {
        char *params[PARAMS] = {0};
        bool fits = matches(routes[i].path, path, params);
        bool same = strcmp(routes[i].method, head ? "GET" : method) == 0;
        for (unsigned k = 0; k < PARAMS; k++) {
            if (fits && same)
                ret_params[k] = params[k];
            else
                free(params[k]);
        }
        if (fits && same)
            return &routes[i];
        if (fits)
            buf_add_fmt(ret_allow, "%s%s", ret_allow->len ? ", " : "", routes[i].method);
        if (fits && strcmp(routes[i].method, "GET") == 0)
            buf_add_text(ret_allow, ", HEAD");
    }
    return NULL;
}
