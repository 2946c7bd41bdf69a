/* provider: see provider.h. */
#include "agent/provider.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "guest/address.h"

#define OPENAI                                                                                     \
    .title = "openai", .base = "https://api.openai.com/v1", .keys = {"OPENAI_API_KEY"},            \
    .base_variable = "OPENAI_BASE_URL", .usual = "gpt-6-sol"
#define LOCAL(provider, port)                                                                      \
    .name = provider, .title = provider, .protocol = "chat", .base = "http://127.0.0.1:" port "/v1"

const struct provider providers[] = {
    {.name = "anthropic",
     .title = "anthropic",
     .protocol = "messages",
     .base = "https://api.anthropic.com/v1",
     .keys = {"ANTHROPIC_API_KEY"},
     .base_variable = "ANTHROPIC_BASE_URL",
     .usual = "claude-sonnet-5-5",
     .family = "claude-"},
    {.name = "openai", .protocol = "responses", .elsewhere = "chat", .family = "gpt-", OPENAI},
    {.name = "gemini",
     .title = "gemini",
     .protocol = "gemini",
     .base = "https://generativelanguage.googleapis.com/v1beta",
     .keys = {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
     .usual = "gemini-flash-latest",
     .family = "gemini-"},
    {LOCAL("ollama", "11434"), .base_variable = "OLLAMA_HOST"},
    {LOCAL("llamacpp", "8080")},
    {LOCAL("lmstudio", "1234")},
    {LOCAL("vllm", "8000")},
    {.name = "openai-chat", .protocol = "chat", OPENAI},
    {.name = "openai-responses", .protocol = "responses", OPENAI},
    {0},
};

const struct provider *provider_named(const char *name, size_t len)
{
    for (const struct provider *p = providers; p->name; p++)
        if (strlen(p->name) == len && memcmp(p->name, name, len) == 0)
            return p;
    return NULL;
}

const struct provider *provider_of(const char *name)
{
    return provider_named(name, strlen(name));
}

const struct provider *provider_by_family(const char *model)
{
    for (const struct provider *p = providers; p->name; p++)
        if (p->family && strncmp(model, p->family, strlen(p->family)) == 0)
            return p;
    return NULL;
}

const struct provider *provider_by_host(const char *url)
{
    for (const struct provider *p = providers; p->name; p++)
        if (address_same_origin(url, p->base))
            return p;
    return NULL;
}

const char *provider_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    return value && *value ? value : NULL;
}

bool provider_is_compatible(const char *base)
{
    const char *host = strstr(base, "://"), *last = strrchr(base, '/');

    return host && last > host + 2 && strcmp(last, "/openai") == 0; /* and no host of that name */
}

/* "v1", "v1beta", "v4". */
static bool has_version(const char *base)
{
    const char *path = strstr(base, "://");

    for (path = path ? strchr(path + 3, '/') : NULL; path; path = strchr(path + 1, '/'))
        if (path[1] == 'v' && path[2] >= '0' && path[2] <= '9')
            return true;
    return false;
}

int provider_base(char **ret, const char *url, struct err *e)
{
    struct address a;

    if (address_plain(&a, url, e) < 0)
        return -1;
    *ret = xstrdup(a.base);
    address_done(&a);
    return 0;
}

/* People write base URLs with the version behind it or without, as each API's own documentation has it: it is
 * added where no part of the path is one. */
char *provider_versioned(const char *base, const struct protocol *speaks)
{
    return xasprintf("%s%s", base, has_version(base) ? "" : speaks->version);
}

/* What Ollama's own programs understand: a host, one with a port, or a URL. It is also where a server is to
 * listen, so that it may be no address that can be called. */
static char *ollama_url(const char *host)
{
    const char *bare = strstr(host, "://") ? NULL : host;
    const char *name_end = bare && bare[0] == '[' ? strchr(bare, ']') : bare;
    bool port = name_end && strchr(name_end, ':');

    if (!bare)
        return xstrdup(host);
    if (bare[0] == ':')
        return xasprintf("http://127.0.0.1%s", bare);
    if (strncmp(bare, "0.0.0.0", 7) == 0)
        return xasprintf("http://127.0.0.1%s%s", bare + 7, port ? "" : ":11434");
    if (strncmp(bare, "[::]", 4) == 0)
        return xasprintf("http://[::1]%s%s", bare + 4, port ? "" : ":11434");
    return xasprintf("http://%s%s", bare, port ? "" : ":11434");
}

char *provider_url(const struct provider *p)
{
    const char *value = provider_variable(p->base_variable);

    if (!value)
        return NULL;
    return strcmp(p->base_variable, "OLLAMA_HOST") == 0 ? ollama_url(value) : xstrdup(value);
}
