/* authority: see authority.h. */
#include "gate/authority.h"

#include <arpa/inet.h>
#include <string.h>

#include "gate/syntax.h"

#define NAME_LONGEST 253

static bool is_address(int family, const char *text, size_t len)
{
    char copy[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return inet_pton(family, copy, &address) == 1;
}

/* Labels of letters, digits, '-' and '_', with single dots between them. */
static bool is_name(const char *text, size_t len)
{
    if (len == 0 || len > NAME_LONGEST)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool dot = text[i] == '.';
        if (dot && (i == 0 || i + 1 == len || text[i - 1] == '.'))
            return false;
        if (!dot && !syntax_alnum(text[i]) && text[i] != '-' && text[i] != '_')
            return false;
    }
    return true;
}

static int parse_port(const char *text)
{
    int port = 0;
    size_t n = strspn(text, "0123456789");

    if (n == 0 || n > 5 || text[n])
        return -1;
    for (size_t i = 0; i < n; i++)
        port = port * 10 + (text[i] - '0');
    return port <= 65535 ? port : -1;
}

int authority_parse(const char *text, struct authority *ret)
{
    struct authority a = {.host = text, .port = -1};
    bool bracket = text[0] == '[';

    a.host += bracket;
    a.host_len = strcspn(a.host, bracket ? "]" : ":");
    const char *rest = a.host + a.host_len;
    if (bracket && *rest++ != ']')
        return -1;
    if (*rest && (*rest != ':' || (a.port = parse_port(rest + 1)) < 0))
        return -1;
    a.literal = is_address(bracket ? AF_INET6 : AF_INET, a.host, a.host_len);
    if (bracket && !a.literal)
        return -1;
    if (!a.literal && a.host_len > 1 && a.host[a.host_len - 1] == '.')
        a.host_len--;
    if (!a.literal && !is_name(a.host, a.host_len))
        return -1;
    *ret = a;
    return 0;
}

bool authority_same_host(const struct authority *a, const struct authority *b)
{
    return a->host_len == b->host_len && syntax_same(a->host, b->host, a->host_len);
}
