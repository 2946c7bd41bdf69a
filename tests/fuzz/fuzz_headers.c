/* Header values and paths, on any text. The first byte chooses the parser. What must hold: a range lies
 * within the file; a path that is taken has nothing in it that leads elsewhere; a name cannot leave its
 * quotes; an origin or a host that is taken has no byte in it that a browser reads in its own way. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "gate/authority.h"
#include "gate/headers.h"
#include "gate/syntax.h"
#include "session/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ranges(const char *text)
{
    static const uint64_t sizes[] = {0, 1, 10, 1 << 20, UINT64_MAX};

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t first, last;
        if (header_range(text, sizes[i], &first, &last) == 1)
            assert_that(first <= last && last < sizes[i]);
    }
}

static void paths(const char *text)
{
    struct err e;
    char *path;

    if (header_file_path(text, &path, &e) < 0)
        return;
    cleanup_free char *around = xasprintf("/%s/", path);
    assert_that(strlen(path) <= 4095 && path[0]);
    assert_that(!strstr(around, "//") && !strstr(around, "/./") && !strstr(around, "/../"));
    assert_that(header_check_path(path, strlen(path), &e) == 0);
    free(path);
}

static void dispositions(const char *text)
{
    cleanup_buf struct buf b = {0}, name = {0}, decoded = {0};
    const char *slash = strrchr(text, '/');
    const char *raw = slash ? slash + 1 : text;

    header_disposition(&b, text);
    const char *at = buf_text(&b);
    for (size_t i = 0; i < b.len; i++)
        assert_that(b.data[i] >= ' ' && b.data[i] <= '~');
    struct param p;
    at += syntax_token(at);
    assert_that(syntax_param(&at, &p) == 1 && p.quoted &&
                syntax_is(p.name, p.name_len, "filename"));
    assert_that(!memchr(p.value, '\\', p.value_len));
    assert_that(syntax_param(&at, &p) == 1);
    if (!*raw)
        return;
    assert_that(syntax_is(p.name, p.name_len, "filename*") && !p.quoted);
    assert_that(syntax_percent_decode(&decoded, p.value + 7, p.value_len - 7) == 0);
    utf8_repair(&name, raw, strlen(raw));
    assert_that(decoded.len == name.len && memcmp(decoded.data, name.data, name.len) == 0);
    assert_that(syntax_param(&at, &p) == 0 && !*at);
}

static void hosts(const char *text)
{
    char *const hosts[] = {"retort.example.org", NULL};
    char *const origins[] = {"https://chat.example.org", NULL};

    if (header_host_ok(text, hosts))
        assert_that(!strpbrk(text, "@/\\?#% \t\r\n,") && strlen(text) < 64);
    if (header_origin_ok(text, "localhost:8722", origins)) {
        const char *at = strstr(text, "://");
        assert_that(at && !strpbrk(at + 3, "@/\\?#% \t\r\n,"));
        assert_that(header_is_origin(text));
    }
    cleanup_free char *own = xasprintf("http://%s", text);
    struct authority a;
    assert_that(header_origin_ok(own, text, origins) == (authority_parse(text, &a) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf b = {0};

    if (size < 1)
        return 0;
    buf_add(&b, data + 1, size - 1);
    const char *text = buf_text(&b);
    switch (data[0] % 6) {
    case 0:
        ranges(text);
        break;
    case 1:
        paths(text);
        break;
    case 2:
        dispositions(text);
        break;
    case 3:
        hosts(text);
        break;
    case 4:
        assert_that(!header_wants_events(text) || strlen(text) >= strlen("text/event-stream"));
        break;
    default:
        assert_that(strchr(header_media_type(text), '/'));
    }
    return 0;
}
