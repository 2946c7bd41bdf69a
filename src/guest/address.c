/* address: see address.h. */
#include "guest/address.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fd.h"

#define TOKEN_LONGEST 512

static void curl_done(char **text)
{
    curl_free(*text);
}
#define cleanup_curl __attribute__((cleanup(curl_done)))

/* A name may begin with "127." too. */
static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (strncmp(host, "127.", 4) == 0 && !host[strspn(host, "0123456789.")]);
}

/* ---- the token ---- */

/* It goes into a header: printable, and in one piece. */
static int set_token(struct address *a, const char *text, const char *from, struct err *e)
{
    size_t len = strlen(text);

    if (len == 0 || len > TOKEN_LONGEST)
        return err_set(e, 0, "%s holds no token", from);
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return err_set(e, 0, "%s holds something that is not a token", from);
    a->token = xstrdup(text);
    return 0;
}

static int read_token(struct address *a, const char *file, struct err *e)
{
    char text[TOKEN_LONGEST + 2];

    if (fd_get_text(AT_FDCWD, file, text, sizeof(text), e) < 0)
        return err_wrap(e, "cannot read the token's file");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]); n--)
        text[n - 1] = '\0';
    return set_token(a, text, file, e);
}

/* "token=…" is all that a link has. */
static int token_of_query(struct address *a, const char *query, struct err *e)
{
    int len = 0;

    if (strncmp(query, "token=", 6) != 0 || strchr(query, '&'))
        return err_set(e, 0, "the server's address may have \"?token=…\" behind it, and no more");
    cleanup_curl char *text = curl_easy_unescape(NULL, query + 6, 0, &len);
    if (!text || strlen(text) != (size_t)len)
        return err_set(e, 0, "the address holds something that is not a token");
    return set_token(a, text, "the address", e);
}

static int find_token(struct address *a, const char *query, const char *file, struct err *e)
{
    const char *given = getenv("RETORT_TOKEN");

    if (query && file)
        return err_set(e, 0, "there are two tokens: one in the address, one by --token-file");
    if (query)
        return token_of_query(a, query, e);
    if (file)
        return read_token(a, file, e);
    return given && *given ? set_token(a, given, "RETORT_TOKEN", e) : 0;
}

/* ---- the address ---- */

/* The parts that there are; what is not there stays NULL. */
struct parts {
    char *scheme, *host, *path, *query, *user, *password, *fragment;
};

static void parts_done(struct parts *p)
{
    curl_free(p->scheme);
    curl_free(p->host);
    curl_free(p->path);
    curl_free(p->query);
    curl_free(p->user);
    curl_free(p->password);
    curl_free(p->fragment);
}

static void take_apart(CURLU *u, struct parts *ret)
{
    curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0);
    curl_url_get(u, CURLUPART_HOST, &ret->host, 0);
    curl_url_get(u, CURLUPART_PATH, &ret->path, 0);
    curl_url_get(u, CURLUPART_QUERY, &ret->query, 0);
    curl_url_get(u, CURLUPART_USER, &ret->user, 0);
    curl_url_get(u, CURLUPART_PASSWORD, &ret->password, 0);
    curl_url_get(u, CURLUPART_FRAGMENT, &ret->fragment, 0);
}

static int check_parts(const struct parts *p, struct err *e)
{
    if (!p->scheme || !p->host ||
        (strcmp(p->scheme, "http") != 0 && strcmp(p->scheme, "https") != 0))
        return err_set(e, 0, "the server's address begins with http:// or https://");
    if (p->user || p->password || p->fragment)
        return err_set(e, 0, "the server's address has neither a user nor a \"#\" in it");
    return 0;
}

static int set_base(struct address *a, CURLU *u, struct err *e)
{
    cleanup_curl char *text = NULL;

    if (curl_url_set(u, CURLUPART_QUERY, NULL, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_URL, &text, 0) != CURLUE_OK)
        return err_set(e, 0, "the server's address cannot be used");
    a->base = xstrdup(text);
    for (size_t n = strlen(a->base); n > 0 && a->base[n - 1] == '/'; n--)
        a->base[n - 1] = '\0';
    return 0;
}

/* The query is in the parts, and not in the base. */
static int parse_where(struct address *a, CURLU *u, const char *url, struct parts *ret,
                       struct err *e)
{
    if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        return err_set(e, 0, "\"%.*s\" is not a server's address: it is like http://127.0.0.1:8722",
                       (int)strcspn(url, "?"), url);
    take_apart(u, ret);
    if (check_parts(ret, e) < 0 || set_base(a, u, e) < 0)
        return -1;
    a->loopback = is_loopback(ret->host);
    return 0;
}

static int parse(struct address *a, const char *url, struct parts *ret, struct err *e)
{
    CURLU *u = curl_url();

    if (!u)
        bug("out of memory (an address)");
    int r = parse_where(a, u, url, ret, e);
    curl_url_cleanup(u);
    return r;
}

static int parsed(struct address *ret, struct address *a, int r)
{
    if (r < 0)
        address_done(a);
    else
        *ret = *a;
    return r;
}

int address_parse(struct address *ret, char *url, const char *token_file, struct err *e)
{
    __attribute__((cleanup(parts_done))) struct parts p = {0};
    struct address a = {0};
    int r = parse(&a, url, &p, e);

    if (r == 0)
        r = find_token(&a, p.query, token_file, e);
    size_t at = strcspn(url, "?");
    memset(url + at, 0, strlen(url + at));
    return parsed(ret, &a, r);
}

int address_plain(struct address *ret, const char *url, struct err *e)
{
    __attribute__((cleanup(parts_done))) struct parts p = {0};
    struct address a = {0};
    int r = parse(&a, url, &p, e);

    if (r == 0 && p.query)
        r = err_set(e, 0, "the server's address has no \"?\" in it");
    return parsed(ret, &a, r);
}

/* "https://host:port", or NULL. */
static char *origin(const char *url)
{
    cleanup_curl char *scheme = NULL, *host = NULL, *port = NULL;
    CURLU *u = curl_url();

    if (!u)
        bug("out of memory (an address)");
    if (curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK) {
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0);
        curl_url_get(u, CURLUPART_HOST, &host, 0);
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    }
    curl_url_cleanup(u);
    return scheme && host && port ? xasprintf("%s://%s:%s", scheme, host, port) : NULL;
}

bool address_same_origin(const char *url, const char *other)
{
    cleanup_free char *a = origin(url), *b = origin(other);

    return a && b && strcasecmp(a, b) == 0;
}

void address_done(struct address *a)
{
    free(a->base);
    if (a->token)
        explicit_bzero(a->token, strlen(a->token));
    free(a->token);
    *a = (struct address){0};
}
