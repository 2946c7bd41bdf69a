/* turns: see turns.h. */
#include "agent/turns.h"

#include <stdbool.h>
#include <string.h>

/* How such words begin, behind a "<" or "[". Most models have the first kind, with any name between the bars; the others
 * are those of templates that are in use, whole. What begins like a tag of HTML is left as it is, but for these. */
static const char *const angular[] = {"|",
                                      "\xef\xbd\x9c", /* DeepSeek's bar is this wide one */
                                      "<SYS>>",
                                      "</SYS>>",
                                      "s>",
                                      "/s>",
                                      "bos>",
                                      "eos>",
                                      "sop>",
                                      "eop>",
                                      "start_of_turn>",
                                      "end_of_turn>",
                                      "start_of_image>",
                                      "tool_call>",
                                      "/tool_call>",
                                      "tool_response>",
                                      "/tool_response>",
                                      "think>",
                                      "/think>",
                                      NULL};
static const char *const square[] = {"|",
                                     "INST]",
                                     "/INST]",
                                     "SYSTEM_PROMPT]",
                                     "/SYSTEM_PROMPT]",
                                     "AVAILABLE_TOOLS]",
                                     "/AVAILABLE_TOOLS]",
                                     "TOOL_CALLS]",
                                     "TOOL_RESULTS]",
                                     "/TOOL_RESULTS]",
                                     "TOOL_CONTENT]",
                                     "THINK]",
                                     "/THINK]",
                                     "gMASK]",
                                     NULL};

static bool begins_with_any(const char *text, size_t len, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);
        if (n <= len && memcmp(text, *words, n) == 0)
            return true;
    }
    return false;
}

void turns_break(const char *text, size_t len, struct buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < len; i++) {
        const char *const *words = text[i] == '<' ? angular : text[i] == '[' ? square : NULL;
        if (!words || !begins_with_any(text + i + 1, len - i - 1, words))
            continue;
        buf_add(out, text + from, i + 1 - from);
        buf_add_text(out, " ");
        from = i + 1;
    }
    buf_add(out, text + from, len - from);
}
