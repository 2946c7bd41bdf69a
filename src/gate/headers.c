/* headers: see headers.h. */
#include "gate/headers.h"

#include <string.h>

#include "base/path.h"
#include "gate/authority.h"
#include "gate/syntax.h"
#include "session/utf8.h"

#define PATH_DEEPEST 64

/* ---- Range ---- */

/* Digits at *at; what does not fit is as large as can be, which lies behind every file's end. */
static bool take_number(const char **at, uint64_t *ret)
{
    const char *start = *at;
    uint64_t n = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(**at - '0'), &n))
            n = UINT64_MAX;
    }
    *ret = n;
    return *at > start;
}

int header_range(const char *value, uint64_t size, uint64_t *ret_first, uint64_t *ret_last)
{
    const char *at = syntax_blanks(value);
    uint64_t first = 0, last = UINT64_MAX;

    if (!syntax_is(at, 6, "bytes="))
        return 0;
    at = syntax_blanks(at + 6);
    bool has_first = take_number(&at, &first);
    if (*at++ != '-')
        return 0;
    bool has_last = take_number(&at, &last);
    if (*syntax_blanks(at) || (!has_first && !has_last))
        return 0;
    if (!has_last)
        last = UINT64_MAX;
    if (has_first && last < first)
        return 0;
    if (size == 0)
        return 0;
    if (!has_first) { /* the last so many bytes */
        if (last == 0)
            return -1;
        first = last < size ? size - last : 0;
        last = size - 1;
    }
    if (first >= size)
        return -1;
    *ret_first = first;
    *ret_last = last < size ? last : size - 1;
    return 1;
}

/* ---- paths ---- */

int header_check_path(const char *path, size_t len, struct err *e)
{
    enum path_fault fault = path_check(path, len);
    unsigned depth = 1;

    if (fault)
        return err_set(e, 0, "%s", path_fault_text(fault));
    for (size_t i = 0; i < len; i++)
        depth += path[i] == '/';
    if (depth > PATH_DEEPEST)
        return err_set(e, 0, "a path must not have more than %d parts", PATH_DEEPEST);
    return 0;
}

int header_file_path(const char *raw, char **ret, struct err *e)
{
    cleanup_buf struct buf path = {0};
    size_t len = strlen(raw);

    if (len > 3 * PATH_LONGEST)
        return err_set(e, 0, "%s", path_fault_text(PATH_LONG));
    if (syntax_percent_decode(&path, raw, len) < 0)
        return err_set(e, 0, "a %% in a path must be followed by two hexadecimal digits");
    if (header_check_path(buf_text(&path), path.len, e) < 0)
        return -1;
    *ret = buf_steal(&path);
    return 0;
}

/* ---- Content-Disposition ---- */

/* The fallback for clients that know no filename*. '%' is left out too: some decode it (RFC 6266, D). */
static void add_ascii(struct buf *ret, const char *name, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        utf8_next(name + i, len - i, &n);
        bool plain = name[i] >= ' ' && name[i] <= '~' && !strchr("\"\\%", name[i]);
        buf_add(ret, plain ? name + i : "_", 1);
    }
}

static void add_extended(struct buf *ret, const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (syntax_alnum(name[i]) || (name[i] && strchr("!#$&+-.^_`|~", name[i])))
            buf_add(ret, name + i, 1);
        else
            buf_add_fmt(ret, "%%%02X", (unsigned char)name[i]);
    }
}

void header_disposition(struct buf *ret, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *raw = slash ? slash + 1 : path;
    cleanup_buf struct buf name = {0};

    utf8_repair(&name, raw, strlen(raw));
    buf_add_text(ret, "attachment; filename=\"");
    add_ascii(ret, name.data, name.len);
    buf_add_text(ret, "\"; filename*=UTF-8''");
    add_extended(ret, name.data, name.len);
}

/* ---- Host, Origin ---- */

bool header_host_ok(const char *host, char *const *hosts)
{
    struct authority a, b;

    if (!host || authority_parse(host, &a) < 0)
        return false;
    if (a.literal || syntax_is(a.host, a.host_len, "localhost"))
        return true;
    for (; *hosts; hosts++) {
        if (authority_parse(*hosts, &b) == 0 && authority_same_host(&a, &b))
            return true;
    }
    return false;
}

struct origin {
    const char *scheme;
    size_t scheme_len;
    struct authority at;
};

static int default_port(const struct origin *o)
{
    if (syntax_is(o->scheme, o->scheme_len, "http"))
        return 80;
    return syntax_is(o->scheme, o->scheme_len, "https") ? 443 : -1;
}

static int parse_origin(const char *text, struct origin *ret)
{
    struct origin o = {.scheme = text, .scheme_len = syntax_token(text)};

    if (o.scheme_len == 0 || strncmp(text + o.scheme_len, "://", 3) != 0 ||
        authority_parse(text + o.scheme_len + 3, &o.at) < 0)
        return -1;
    if (o.at.port < 0)
        o.at.port = default_port(&o);
    *ret = o;
    return 0;
}

bool header_is_origin(const char *text)
{
    struct origin o;

    return parse_origin(text, &o) == 0;
}

bool header_origin_ok(const char *origin, const char *host, char *const *origins)
{
    struct origin o, known;
    struct authority own;

    if (!origin || parse_origin(origin, &o) < 0)
        return false;
    if (host && default_port(&o) > 0 && authority_parse(host, &own) == 0 &&
        authority_same_host(&o.at, &own) &&
        o.at.port == (own.port < 0 ? default_port(&o) : own.port))
        return true;
    for (; *origins; origins++) {
        if (parse_origin(*origins, &known) == 0 && o.scheme_len == known.scheme_len &&
            syntax_same(o.scheme, known.scheme, o.scheme_len) &&
            authority_same_host(&o.at, &known.at) && o.at.port == known.at.port)
            return true;
    }
    return false;
}

/* ---- Accept ---- */

/* Is this weight more than 0? 0, 0.0, 0.000 are not, nor is what is no weight. */
static bool weighs(const struct param *q)
{
    bool some = false;

    for (size_t i = 0; i < q->value_len; i++) {
        char c = q->value[i];
        if (c != '.' && (c < '0' || c > '9'))
            return false;
        some |= c >= '1' && c <= '9';
    }
    return some && !q->quoted;
}

bool header_wants_events(const char *accept)
{
    const char *at = accept ? accept : "";
    struct param p;
    int r;

    for (;;) {
        at = at + strspn(at, ", \t");
        size_t len = strcspn(at, ";, \t");
        if (len == 0)
            return false;
        bool wanted = syntax_is(at, len, "text/event-stream");
        at += len;
        while ((r = syntax_param(&at, &p)) == 1) {
            if (syntax_is(p.name, p.name_len, "q"))
                wanted = wanted && weighs(&p);
        }
        if (r < 0)
            return false;
        if (wanted)
            return true;
    }
}
