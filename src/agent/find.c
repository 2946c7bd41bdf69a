/* find: see find.h. */
#include "agent/find.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/exchange.h"
#include "agent/find_file.h"
#include "agent/protocol.h"
#include "agent/provider.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "guest/address.h"
#include "guest/client.h"
#include "session/sanitise.h"

#define LOOK_MS 1000  /* for a server that may be there */
#define LIST_MS 10000 /* for one that was named */
#define NAME_LONGEST 255

/* ---- the aim: a provider, a server, a name ---- */

struct aim {
    const struct provider *provider;
    const char *name; /* NULL: not said */
    char *base;       /* perhaps without the version of its API */
};

static int unknown(const char *model, struct err *e)
{
    const char *best = NULL;
    unsigned distance = 0;
    char word[64], plain[NAME_LONGEST];

    snprintf(word, sizeof(word), "%.*s", (int)strcspn(model, "/"), model);
    for (const struct provider *p = providers; p->name; p++)
        suggest_offer(word, p->name, &best, &distance);
    sanitise_name(model, plain, sizeof(plain));
    if (best)
        return err_set(e, 0, "nobody knows whose model \"%s\" is; did you mean \"%s/…\"?", plain,
                       best);
    return err_set(
        e, 0, "nobody knows whose model \"%s\" is: say PROVIDER/NAME, as ollama/%s, or --base-url",
        plain, plain);
}

/* The provider that a model's name begins with, and what is behind it. NULL: none. */
static const struct provider *split(const char *model, const char **ret_name)
{
    size_t len = strcspn(model, "/");
    const struct provider *p = provider_named(model, len);

    *ret_name = !p ? model : model[len] && model[len + 1] ? model + len + 1 : NULL;
    return p;
}

/* A name without a provider's is that of a server that was named, or one that everybody knows. */
static const struct provider *guess(const char *model, const char *url)
{
    const struct provider *p;

    if (!url && provider_variable("OPENAI_BASE_URL"))
        return provider_of("openai");
    p = url ? provider_by_host(url) : provider_by_family(model);
    return p || !url ? p : provider_of("openai-chat");
}

static int take_aim(struct aim *ret, const char *model, const char *url, struct err *e)
{
    struct aim a = {0};
    cleanup_free char *there = NULL;

    if (model)
        a.provider = split(model, &a.name);
    if (!a.provider)
        a.provider = guess(model, url);
    if (!a.provider)
        return unknown(model, e);
    if (!url)
        there = provider_url(a.provider);
    if (!url)
        url = there ? there : a.provider->base;
    if (provider_base(&a.base, url, e) < 0)
        return err_wrap(e, "%s", there ? a.provider->base_variable : "base URL");
    *ret = a;
    return 0;
}

/* ---- the key ---- */

/* That of the environment, if it is for this server. */
static int environment_key(const struct aim *a, char **ret, struct err *e)
{
    cleanup_free char *there = provider_url(a->provider);

    if (!address_same_origin(a->base, a->provider->base) &&
        !(there && address_same_origin(a->base, there)))
        return 0;
    for (size_t i = 0; i < 2; i++) {
        const char *key = provider_variable(a->provider->keys[i]);
        if (!key)
            continue;
        if (key_check(key, a->provider->keys[i], e) < 0)
            return -1;
        *ret = xstrdup(key);
        return 0;
    }
    return 0;
}

/* The file's is for the server that the file names, or for the own host of its provider. */
static bool is_for(const struct model_file *f, const struct aim *a)
{
    return f->key && address_same_origin(a->base, f->base_url ? f->base_url : a->provider->base);
}

static int find_key(const struct model_wish *w, const struct model_file *f, const struct aim *a,
                    char **ret, struct buf *notes, struct err *e)
{
    if (w->key_file)
        return key_read(w->key_file, ret, notes, e);
    if (!is_for(f, a))
        return environment_key(a, ret, e);
    *ret = xstrdup(f->key);
    return 0;
}

char *model_key_hint(const struct model *m, char *ret, size_t size)
{
    const struct provider *p = provider_of(m->provider);
    const char *variable = p ? p->keys[0] : NULL;

    if (!variable)
        snprintf(ret, size, "--key-file, or key_file in model.conf, gives it %s key",
                 m->key ? "another" : "a");
    else if (m->key)
        snprintf(ret, size, "its key comes from --key-file, model.conf or %s", variable);
    else
        snprintf(ret, size,
                 "it got no key: %s is for %.60s%s%s alone, --key-file gives one to any server",
                 variable, p->base, p->base_variable ? " and " : "",
                 p->base_variable ? p->base_variable : "");
    return ret;
}

/* ---- looking ---- */

static json_t *wait_for_json(struct client *c, struct call *call, int ms)
{
    int64_t until_ms = clock_now_ms() + ms;

    while (!call->over) {
        int64_t left_ms = until_ms - clock_now_ms();
        struct pollfd p = {.fd = client_fd(c), .events = POLLIN};
        if (left_ms <= 0 || (poll(&p, 1, (int)left_ms) < 0 && errno != EINTR))
            return NULL;
        if (p.revents)
            client_dispatch(c);
    }
    return call->status == 200
               ? json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL)
               : NULL;
}

/* What is there, or NULL. */
static json_t *get(const struct model *m, const char *path, int ms)
{
    struct err ignored;
    struct client *c = model_client(m, &ignored);

    if (!c)
        return NULL;
    struct call *call = exchange_call(c, m, &(struct call_spec){.method = "GET", .path = path});
    json_t *j = wait_for_json(c, call, ms);
    client_free(c);
    return j;
}

/* One that can talk: servers list those that only measure texts too. */
static char *first_name(const json_t *list, const char *member)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(json_object_get(one, member));
        char plain[NAME_LONGEST + 1];
        if (name && *name && !strcasestr(name, "embed") && strlen(name) <= NAME_LONGEST &&
            strcmp(sanitise_name(name, plain, sizeof(plain)), name) == 0)
            return xstrdup(name);
    }
    return NULL;
}

/* The first model of a server, or NULL. */
static char *look(const struct model *m, int ms)
{
    bool ollama = strcmp(m->provider, "ollama") == 0;
    struct model at = *m;
    cleanup_free char *root = xstrdup(m->base);
    char *version = strrchr(root, '/');

    /* Ollama's own list is beside the part that others understand. */
    if (ollama && version)
        *version = '\0';
    if (ollama)
        at.base = root;
    json_t *j = get(&at, ollama ? "/api/tags" : "/models", ms);
    char *name = ollama ? first_name(json_object_get(j, "models"), "name")
                        : first_name(json_object_get(j, "data"), "id");
    json_decref(j);
    return name;
}

/* ---- all of it ---- */

static bool says(enum model_say flag, enum model_say file)
{
    return (flag != AS_USUAL ? flag : file) != SAY_NO;
}

/* "host:port", for people: what is OpenAI's in name only. */
static char *title(const struct aim *a)
{
    const char *host = strstr(a->base, "://") + 3;

    if (strcmp(a->provider->title, "openai") != 0 ||
        address_same_origin(a->base, a->provider->base))
        return xstrdup(a->provider->title);
    return xasprintf("%.*s", (int)strcspn(host, "/"), host);
}

static const struct protocol *spoken(const struct aim *a, const char *wished, struct err *e)
{
    bool own = !a->provider->elsewhere || address_same_origin(a->base, a->provider->base);
    const char *usual = own ? a->provider->protocol : a->provider->elsewhere;
    const char *name = wished ? wished : provider_is_compatible(a->base) ? "chat" : usual;
    const struct protocol *p = protocol_find(name);

    if (!p)
        err_set(e, 0,
                "there is no protocol \"%.40s\": chat, responses, messages and gemini are known",
                name);
    return p;
}

static int check_name(const char *name, struct err *e)
{
    char plain[NAME_LONGEST + 1];

    if (strlen(name) > NAME_LONGEST || strcmp(sanitise_name(name, plain, sizeof(plain)), name) != 0)
        return err_set(e, 0, "\"%.60s\" is no model's name", sanitise_name(name, plain, 61));
    return 0;
}

static int set_name(struct model *m, const struct aim *a, struct err *e)
{
    const char *name = a->name;

    /* At somebody else's server there is hardly OpenAI's. */
    if (!name && strcmp(m->provider, a->provider->title) == 0)
        name = a->provider->usual;
    if (name)
        m->name = xstrdup(name);
    else if (!(m->name = look(m, LIST_MS)))
        return err_set(
            e, 0,
            "%s at %s is not there, or does not say which models it has: --model %s/NAME names one",
            m->provider, m->base, a->provider->name);
    return check_name(m->name, e);
}

/* What the file says of the model holds for that model alone. */
static bool is_same_model(const struct model_file *f, const struct model *m)
{
    const char *name = NULL;

    if (f->model)
        split(f->model, &name);
    return !name || strcmp(name, m->name) == 0;
}

static void set_traits(struct model *m, const struct model_wish *w, const struct model_file *file)
{
    static const struct model_file nothing;
    const struct model_file *f = is_same_model(file, m) ? file : &nothing;

    m->tools = says(w->tools, f->tools);
    m->sees = says(w->sees, f->sees);
    m->streams = says(w->streams, f->streams);
    m->max_tokens = w->max_tokens ? w->max_tokens : f->max_tokens;
    m->price_in = w->price_in > 0 ? w->price_in : f->price_in;
    m->price_out = w->price_out > 0 ? w->price_out : f->price_out;
}

static void warn_of_the_way(const struct model *m, struct buf *notes)
{
    struct address a;
    struct err ignored;

    if (!m->key || strncmp(m->base, "http://", 7) != 0 || address_plain(&a, m->base, &ignored) < 0)
        return;
    if (!a.loopback)
        buf_add_fmt(notes, "whoever is on the way to %s can read the key: it is no https://\n",
                    m->base);
    address_done(&a);
}

static int fill(struct model *m, const struct aim *a, const struct model_wish *w,
                const struct model_file *f, struct buf *notes, struct err *e)
{
    m->protocol = spoken(a, w->protocol ? w->protocol : f->protocol, e);
    if (!m->protocol)
        return -1;
    m->provider = title(a);
    m->base = provider_versioned(a->base, m->protocol);
    if (find_key(w, f, a, &m->key, notes, e) < 0 || set_name(m, a, e) < 0)
        return -1;
    set_traits(m, w, f);
    warn_of_the_way(m, notes);
    return 0;
}

static int make(struct model *ret, struct aim *a, const struct model_wish *w,
                const struct model_file *f, struct buf *notes, struct err *e)
{
    struct model m = {0};
    int r = fill(&m, a, w, f, notes, e);

    free(a->base);
    if (r < 0)
        model_done(&m);
    else
        *ret = m;
    return r;
}

/* Is a server of this kind running here? Nothing but the question is sent. */
static int look_around(const struct provider *p, struct aim *ret, char **ret_name)
{
    struct err ignored;
    struct aim a;

    if (take_aim(&a, p->name, NULL, &ignored) < 0)
        return -1;
    const struct protocol *speaks = protocol_find(p->protocol);
    cleanup_free char *base = provider_versioned(a.base, speaks);
    struct model m = {.protocol = speaks, .provider = (char *)(uintptr_t)p->title, .base = base};
    char *name = look(&m, LOOK_MS);
    if (!name) {
        free(a.base);
        return -1;
    }
    a.name = *ret_name = name;
    *ret = a;
    return 0;
}

static bool is_configured(const struct provider *p)
{
    return provider_variable(p->keys[0]) || provider_variable(p->keys[1]) ||
           (p->keys[0] && strcmp(p->title, "openai") == 0 && provider_variable(p->base_variable));
}

static int nobody(struct err *e)
{
    err_set(
        e, 0,
        "there is no model to ask: none is configured, and neither Ollama nor llama.cpp runs here\n"
        "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or have a model here: ollama "
        "pull NAME\n"
        "--model PROVIDER/NAME and --base-url URL, or ~/.config/retort/model.conf, name any other");
    e->code = ENOENT;
    return -1;
}

/* Nobody was named. */
static int find_some(struct model *ret, const struct model_wish *w, const struct model_file *f,
                     struct buf *notes, struct err *e)
{
    static const char *const here[] = {"ollama", "llamacpp"};
    struct aim a;

    if (w->key_file)
        return err_set(e, 0, "--key-file has a key, but nothing says whose it is: --model does");
    for (const struct provider *p = providers; p->name; p++)
        if (is_configured(p))
            return take_aim(&a, p->name, NULL, e) < 0 ? -1 : make(ret, &a, w, f, notes, e);
    for (size_t i = 0; i < 2; i++) {
        cleanup_free char *name = NULL;
        if (look_around(provider_of(here[i]), &a, &name) < 0)
            continue;
        buf_add_fmt(notes, "no model is configured: %s at %s is asked, with %s\n", here[i], a.base,
                    name);
        return make(ret, &a, w, f, notes, e);
    }
    return nobody(e);
}

/* What the file alone would ask; all 0 where it names nobody. */
static int aim_of_file(const struct model_file *f, struct aim *ret, struct err *e)
{
    *ret = (struct aim){0};
    if (f->model || f->base_url)
        return take_aim(ret, f->model, f->base_url, e) < 0 ? err_wrap(e, "%s", f->path) : 0;
    return f->key ? err_set(e, 0, "%s has a key, but neither model nor base_url say whose it is",
                            f->path)
                  : 0;
}

/* The file's server is meant too where another model was named and no other provider. */
static const char *url_for(const struct model_wish *w, const struct model_file *f,
                           const struct aim *files, const char *given)
{
    const char *name;
    const struct provider *p = given ? split(given, &name) : NULL;

    return w->base_url ? w->base_url : !p || p == files->provider ? f->base_url : NULL;
}

static int find_with(struct model *ret, const struct model_wish *w, const struct model_file *f,
                     const struct aim *files, struct buf *notes, struct err *e)
{
    static const struct model_file nothing;
    const char *given = w->model ? w->model : provider_variable("RETORT_MODEL");
    const char *url = url_for(w, f, files, given);
    const char *model = given ? given : w->base_url ? NULL : f->model;
    struct aim a;

    if (!model && !url)
        return find_some(ret, w, f, notes, e);
    if (take_aim(&a, model, url, e) < 0)
        return -1;
    bool meant = !files->provider ||
                 (files->provider == a.provider && address_same_origin(files->base, a.base));
    return make(ret, &a, w, meant ? f : &nothing, notes, e);
}

int model_find(const struct model_wish *w, struct model *ret, struct buf *notes, struct err *e)
{
    struct model_file f = {0};
    struct aim files = {0};

    if (model_file_read(&f, w->config, notes, e) < 0)
        return -1;
    int r = aim_of_file(&f, &files, e);
    if (r == 0)
        r = find_with(ret, w, &f, &files, notes, e);
    free(files.base);
    model_file_done(&f);
    return r;
}
