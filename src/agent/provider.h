/* provider: who has models, where, and which variables of the environment speak of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/protocol.h"
#include "base/err.h"

struct provider {
    const char *name;      /* for --model */
    const char *title;     /* for people */
    const char *protocol;  /* at its own host */
    const char *elsewhere; /* at another; NULL: the same */
    const char *base;      /* with the version of its API */
    const char *keys[2];   /* variables with a key for its host, and for that of: */
    const char *base_variable;
    const char *usual;  /* the model where none was named; NULL: the first that it has */
    const char *family; /* how its models' names begin */
};

/* All of them, up to one without a name. Their order is that of who is asked where nobody was named. */
extern const struct provider providers[];

/* These return NULL where there is none. */
const struct provider *provider_named(const char *name, size_t len);
const struct provider *provider_of(const char *name);
/* Whose a model is that came without a provider's name. */
const struct provider *provider_by_family(const char *model);
/* Whose own host this is. */
const struct provider *provider_by_host(const char *url);

/* A variable's value, or NULL where it is not set, empty, or itself NULL. */
const char *provider_variable(const char *name);
/* The URL that the environment has for it; NULL: none. */
char *provider_url(const struct provider *p);
/* A base URL as people write it, checked. */
int provider_base(char **ret, const char *url, struct err *e);
/* The same with the version of an API in it. */
char *provider_versioned(const char *base, const struct protocol *speaks);
/* Does a provider with an API of its own speak OpenAI's here, as Google does at …/v1beta/openai? */
bool provider_is_compatible(const char *base);
