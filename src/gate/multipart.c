/* multipart: see multipart.h.
 *
 *     PREAMBLE ──┐                    ┌──▶ HEAD ──▶ BODY ──┐
 *                ├─ CRLF--boundary ─▶ LINE                 │
 *     BODY ──────┘     ▲              └─ "--" ─▶ EPILOGUE  │
 *                      └───────────────────────────────────┘
 *
 * A carriage return can only be the first byte of a delimiter. So a match that fails leaves nothing to go
 * back to but the byte at hand, and what a piece of the body ends with needs no buffer: it is the
 * beginning of the delimiter, and its length says it all.
 */
#include "gate/multipart.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "gate/syntax.h"
#include "session/utf8.h"

#define BOUNDARY_MAX 70 /* RFC 2046, 5.1.1 */

enum state { PREAMBLE, LINE, HEAD, BODY, EPILOGUE, FAILED };

struct multipart {
    struct multipart_events events;
    void *ctx;
    enum state state;
    char delimiter[4 + BOUNDARY_MAX]; /* CRLF, "--", the boundary */
    size_t delimiter_len;
    size_t matched; /* how much of the delimiter the last bytes are */
    size_t carried; /* of these, how many came before the piece at hand */
    size_t ahead;   /* of these, how many are not of this body: the CRLF before its first byte */
    char line;      /* the last byte behind a boundary, or 0 */
    bool in_part, paused;
    unsigned parts;
    struct buf head;
};

/* ---- the boundary ---- */

static bool is_boundary(const char *text, size_t len)
{
    if (len == 0 || len > BOUNDARY_MAX || text[len - 1] == ' ')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!syntax_alnum(text[i]) && !memchr("'()+_,-./:=? ", text[i], 13))
            return false;
    }
    return true;
}

static int find_boundary(const char *content_type, struct param *ret, struct err *e)
{
    const char *at = syntax_blanks(content_type);
    size_t len = strcspn(at, "; \t");
    struct param p;
    int r;

    if (!syntax_is(at, len, "multipart/form-data"))
        return err_set(e, 0, "the Content-Type must be multipart/form-data");
    at += len;
    while ((r = syntax_param(&at, &p)) == 1) {
        if (!syntax_is(p.name, p.name_len, "boundary"))
            continue;
        if (ret->name)
            return err_set(e, 0, "the Content-Type names two boundaries");
        *ret = p;
    }
    if (r < 0 || *at)
        return err_set(e, 0, "the Content-Type is malformed");
    if (!ret->name || !is_boundary(ret->value, ret->value_len))
        return err_set(e, 0,
                       "the Content-Type needs a boundary of 1 to %d characters (RFC 2046): let "
                       "the HTTP library write this header",
                       BOUNDARY_MAX);
    return 0;
}

struct multipart *multipart_new(const char *content_type, const struct multipart_events *events,
                                void *ctx, struct err *e)
{
    struct param boundary = {0};

    if (find_boundary(content_type, &boundary, e) < 0)
        return NULL;
    struct multipart *m = xcalloc(1, sizeof(*m));
    m->events = *events;
    m->ctx = ctx;
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.value, boundary.value_len);
    m->delimiter_len = 4 + boundary.value_len;
    m->matched = m->carried = m->ahead = 2;
    return m;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    buf_done(&m->head);
    free(m);
}

/* ---- the header block of a part ---- */

struct names {
    struct buf name, filename;
    bool disposition, has_name, has_filename, has_extended;
};

static void names_done(struct names *n)
{
    buf_done(&n->name);
    buf_done(&n->filename);
}

/* Browsers write %22, %0D and %0A and nothing else so (WHATWG, "multipart/form-data encoding"); older
 * clients escape by backslash, and only what must be: other backslashes are part of the name. */
static void unescape(struct buf *ret, const struct param *p)
{
    for (size_t i = 0; i < p->value_len; i++) {
        const char *at = p->value + i;
        size_t left = p->value_len - i;
        char c = *at;
        if (p->quoted && c == '\\' && left >= 2 && (at[1] == '"' || at[1] == '\\')) {
            c = at[1];
            i++;
        } else if (p->quoted && left >= 3 && c == '%') {
            c = !memcmp(at, "%22", 3)   ? '"'
                : !memcmp(at, "%0D", 3) ? '\r'
                : !memcmp(at, "%0A", 3) ? '\n'
                                        : '%';
            i += c == '%' ? 0 : 2;
        }
        buf_add(ret, &c, 1);
    }
}

/* UTF-8'language'percent-encoded */
static int unescape_extended(struct buf *ret, const struct param *p, struct err *e)
{
    const char *quote = memchr(p->value, '\'', p->value_len);
    const char *end = p->value + p->value_len;
    const char *second = quote ? memchr(quote + 1, '\'', (size_t)(end - quote - 1)) : NULL;

    if (p->quoted || !second || !syntax_is(p->value, (size_t)(quote - p->value), "UTF-8") ||
        syntax_percent_decode(ret, second + 1, (size_t)(end - second - 1)) < 0 ||
        utf8_valid(ret->data, ret->len) != ret->len)
        return err_set(e, 0, "a part's filename* must have the form UTF-8''name, percent-encoded");
    if (ret->len && memchr(ret->data, '\0', ret->len))
        return err_set(e, 0, "a part's filename must not have a NUL in it");
    return 0;
}

static int take_param(struct names *n, const struct param *p, struct err *e)
{
    bool name = syntax_is(p->name, p->name_len, "name");
    bool filename = syntax_is(p->name, p->name_len, "filename");
    bool extended = syntax_is(p->name, p->name_len, "filename*");

    /* Two of a kind would mean one thing to us and another to whoever looked before us. */
    if ((name && n->has_name) || (filename && n->has_filename) || (extended && n->has_extended))
        return err_set(e, 0, "a part of the form has two names");
    n->has_name |= name;
    n->has_filename |= filename;
    n->has_extended |= extended;
    if (name)
        unescape(&n->name, p);
    if (filename && !n->has_extended)
        unescape(&n->filename, p);
    if (extended) {
        n->filename.len = 0;
        return unescape_extended(&n->filename, p, e);
    }
    return 0;
}

static int take_disposition(struct names *n, const char *value, struct err *e)
{
    size_t len = syntax_token(value);
    const char *at = value + len;
    struct param p;
    int r;

    if (n->disposition)
        return err_set(e, 0, "a part of the form has two Content-Disposition headers");
    n->disposition = true;
    if (!syntax_is(value, len, "form-data"))
        return err_set(e, 0, "each part must have \"Content-Disposition: form-data\"");
    while ((r = syntax_param(&at, &p)) == 1) {
        if (take_param(n, &p, e) < 0)
            return -1;
    }
    if (r < 0 || *at)
        return err_set(e, 0, "a part's Content-Disposition is malformed");
    return 0;
}

static int take_line(struct names *n, const char *line, struct err *e)
{
    size_t len = syntax_token(line);

    if (len == 0 || line[len] != ':')
        return err_set(e, 0, "a header of a part is malformed: write \"Name: value\" on one line");
    const char *value = syntax_blanks(line + len + 1);
    if (syntax_is(line, len, "Content-Disposition"))
        return take_disposition(n, value, e);
    /* RFC 7578, 4.7. To keep the encoded text as if it were the file would be worse than to refuse. */
    if (syntax_is(line, len, "Content-Transfer-Encoding")) {
        size_t n_value = syntax_token(value);
        if (!syntax_is(value, n_value, "binary") && !syntax_is(value, n_value, "8bit") &&
            !syntax_is(value, n_value, "7bit"))
            return err_set(e, 0, "parts must come as they are: Content-Transfer-Encoding: binary");
    }
    return 0;
}

static int begin_part(struct multipart *m, struct err *e)
{
    __attribute__((cleanup(names_done))) struct names n = {0};

    if (m->parts++ == MULTIPART_PARTS_MAX)
        return err_set(e, 0, "a form may have at most %d parts", MULTIPART_PARTS_MAX);
    for (char *line = buf_text(&m->head); strcmp(line, "\r\n") != 0;) {
        char *end = strstr(line, "\r\n");
        *end = '\0';
        if (take_line(&n, line, e) < 0)
            return -1;
        line = end + 2;
    }
    if (!n.has_name)
        return err_set(e, 0, "each part must have \"Content-Disposition: form-data; name=...\"");
    m->head.len = 0;
    m->state = BODY;
    m->in_part = true;
    m->matched = m->carried = m->ahead = 2;
    bool file = n.has_filename || n.has_extended;
    return m->events.begin(m->ctx, buf_text(&n.name), file ? buf_text(&n.filename) : NULL);
}

/* ---- bytes: each of these eats some, and says how many; -1 is a failure ---- */

static ssize_t eat_head(struct multipart *m, const char *data, size_t len, struct err *e)
{
    struct buf *h = &m->head;

    for (size_t i = 0; i < len; i++) {
        char last = h->len ? h->data[h->len - 1] : '\0';
        if (data[i] == '\0' || (data[i] == '\n') != (last == '\r'))
            return err_set(e, 0, "the headers of a part are malformed: lines end with CR LF");
        if (h->len == MULTIPART_HEADER_MAX)
            return err_set(e, 0, "the headers of a part are longer than %d bytes",
                           MULTIPART_HEADER_MAX);
        buf_add(h, data + i, 1);
        if (data[i] == '\n' &&
            (h->len == 2 || (h->len >= 4 && memcmp(h->data + h->len - 4, "\r\n\r\n", 4) == 0)))
            return begin_part(m, e) < 0 ? -1 : (ssize_t)i + 1;
    }
    return (ssize_t)len;
}

/* What is behind a boundary: "--", or blanks and the end of the line. A part is over only when this is
 * sound, so that nobody keeps a file that was not whole. */
static ssize_t eat_line(struct multipart *m, const char *data, size_t len, struct err *e)
{
    for (size_t i = 0; i < len; i++) {
        char c = data[i], last = m->line;
        bool blank = c == ' ' || c == '\t', blank_before = last == 0 || last == ' ' || last == '\t';
        bool ends = (last == '\r' && c == '\n') || (last == '-' && c == '-');

        m->line = c;
        if (ends) {
            bool was = m->in_part;
            m->state = c == '-' ? EPILOGUE : HEAD;
            m->in_part = false;
            int r = was ? m->events.end(m->ctx) : 0;
            m->paused = r > 0;
            return r < 0 ? -1 : (ssize_t)i + 1;
        }
        if (!(blank_before && (blank || c == '\r')) && !(last == 0 && c == '-'))
            return err_set(e, 0,
                           "a boundary of the form must be followed by \"--\" or the end of the "
                           "line (CR LF)");
    }
    return (ssize_t)len;
}

static int tell(struct multipart *m, const char *data, size_t len)
{
    return m->in_part && len ? m->events.data(m->ctx, data, len) : 0;
}

/* The match failed: what earlier pieces held back was data. */
static int give_up_match(struct multipart *m)
{
    size_t ahead = m->ahead, carried = m->carried;

    m->matched = m->carried = m->ahead = 0;
    return carried ? tell(m, m->delimiter + ahead, carried - ahead) : 0;
}

/* Up to the end of the next delimiter, telling what is before it. */
static ssize_t eat_body(struct multipart *m, const char *data, size_t len)
{
    size_t at = 0;

    while (at < len && m->matched < m->delimiter_len) {
        if (m->matched == 0) {
            const char *cr = memchr(data + at, '\r', len - at);
            at = cr ? (size_t)(cr - data) : len;
            if (!cr)
                break;
        }
        if (data[at] == m->delimiter[m->matched]) {
            m->matched++;
            at++;
        } else if (give_up_match(m) < 0) {
            return -1;
        }
    }
    if (tell(m, data, at - (m->matched - m->carried)) < 0)
        return -1;
    m->carried = m->matched;
    if (m->matched == m->delimiter_len) {
        m->state = LINE;
        m->line = '\0';
    }
    return (ssize_t)at;
}

static ssize_t eat(struct multipart *m, const char *data, size_t len, struct err *e)
{
    switch (m->state) {
    case PREAMBLE:
    case BODY:
        return eat_body(m, data, len);
    case LINE:
        return eat_line(m, data, len, e);
    case HEAD:
        return eat_head(m, data, len, e);
    case EPILOGUE:
        return (ssize_t)len;
    case FAILED:
        break;
    }
    return -1;
}

ssize_t multipart_feed(struct multipart *m, const char *data, size_t len, struct err *e)
{
    size_t at = 0;

    m->paused = false;
    while (at < len && !m->paused) {
        ssize_t n = eat(m, data + at, len - at, e);
        if (n < 0) {
            m->state = FAILED;
            return -1;
        }
        at += (size_t)n;
    }
    return (ssize_t)at;
}

int multipart_finish(const struct multipart *m, struct err *e)
{
    if (m->state == EPILOGUE)
        return 0;
    if (m->state == PREAMBLE)
        return err_set(e, 0, "the body has no line with the boundary that the Content-Type names");
    return err_set(e, 0, "the form is cut off: its last boundary is missing");
}
