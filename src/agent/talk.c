/* talk: see talk.h. */
#include "agent/talk.h"

#include <nettle/base64.h>
#include <string.h>

#include "base/buf.h"
#include "session/utf8.h"

static json_t *valid_text(const char *text, size_t len)
{
    cleanup_free char *valid = utf8_repaired(text, len);

    return json_string(valid);
}

json_t *talk_user(const char *text, size_t len)
{
    return json_pack("{s:s, s:o}", "role", "user", "text", valid_text(text, len));
}

json_t *talk_results(void)
{
    return json_pack("{s:s, s:[]}", "role", "results", "results");
}

void talk_add_result(json_t *results, const char *id, const char *text, bool failed,
                     json_t *pictures)
{
    json_t *result = json_pack("{s:o, s:s, s:o}", "id", valid_text(id, strlen(id)), "name",
                               TOOL_NAME, "text", valid_text(text, strlen(text)));

    if (failed)
        json_object_set_new(result, "failed", json_true());
    if (json_array_size(pictures) > 0)
        json_object_set(result, "pictures", pictures);
    json_decref(pictures);
    json_array_append_new(json_object_get(results, "results"), result);
}

json_t *talk_picture(const char *type, const void *data, size_t len)
{
    size_t n = BASE64_ENCODE_RAW_LENGTH(len);
    cleanup_free char *text = xcalloc(1, n + 1);

    base64_encode_raw(text, len, data);
    return json_pack("{s:s, s:s#}", "type", type, "data", text, (int)n);
}
