/* serve: the server. Starts a keeper, opens the port and the state, and becomes the gate. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "asker/asker.h"
#include "base/buf.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/failed.h"
#include "cli/keeping.h"
#include "cli/options.h"
#include "gate/authority.h"
#include "gate/config.h"
#include "gate/confine.h"
#include "gate/gate.h"
#include "gate/state_dir.h"
#include "gate/store.h"

const char serve_help[] =
    "usage: retort serve [OPTION]…\n"
    "\n"
    "The server: sessions, cells and files over HTTP, and /mcp for agents. When it is\n"
    "ready it prints a line with its address, and on loopback a token to begin with.\n"
    "\n"
    "  --listen ADDR:PORT  where; port 0 takes a free one   [127.0.0.1:8722]\n"
    "  --state DIR         tokens and the journal [/var/lib/retort; for others than\n"
    "                      root ~/.local/state/retort]\n"
    "  --config FILE       settings; see retort.conf(5)     [/etc/retort/retort.conf]\n"
    "  --set KEY=VALUE     one setting, over those of the file\n"
    "  --environment E     the Python of sessions; --wheels DIR for pip [default]\n"
    "\n" OPTIONS_LIMITS_HELP "They are for sessions that do not ask for others.\n"
    "\n"
    "Another address than loopback needs a token first: retort token new NAME\n";

#define DEFAULT_CONFIG "/etc/retort/retort.conf"

struct server {
    struct config config;
    struct options options;
    char *state;
    int listen_fd;
    bool loopback;
    char address[128];          /* as in a URL */
    char token[TOKEN_TEXT_MAX]; /* "": people have their own */
    struct keeping keeping;
    int asker_fd; /* -1: there is no model */
};

/* ---- settings ---- */

/* The file comes first, wherever it stands on the command line: options are over it. */
static int load_config(struct server *s, int argc, char **argv)
{
    const char *path = NULL;
    struct err e;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            path = argv[i + 1];
        else if (strncmp(argv[i], "--config=", 9) == 0)
            path = argv[i] + 9;
    }
    config_default(&s->config);
    if (!path && access(DEFAULT_CONFIG, F_OK) == 0)
        path = DEFAULT_CONFIG;
    if (path && config_load(&s->config, path, &e) < 0)
        return usage_error("serve", "%s", e.text);
    return 0;
}

static int set(struct server *s, const char *key, const char *value)
{
    struct err e;

    return config_set(&s->config, key, value, &e) < 0 ? usage_error("serve", "%s", e.text) : 0;
}

static int set_pair(struct server *s, char *pair)
{
    char *equals = strchr(pair, '=');

    if (!equals)
        return usage_error("serve", "--set takes KEY=VALUE");
    *equals = '\0';
    return set(s, pair, equals + 1);
}

static int parse(struct server *s, int argc, char **argv)
{
    static const struct option own[] = {
        {"listen", required_argument, NULL, 'l'},
        {"state", required_argument, NULL, 's'},
        {"config", required_argument, NULL, 'c'},
        {"set", required_argument, NULL, 'e'},
        {0},
    };
    int c, wrong = load_config(s, argc, argv);

    if (wrong)
        return wrong;
    options_init(&s->options, "serve");
    s->options.takes_environment = s->options.takes_limits = true;
    s->options.limits = s->config.limits;
    s->options.environment = NULL;
    while ((c = options_next(&s->options, argc, argv, "", own)) != -1) {
        if (c == OPTIONS_WRONG)
            return EXIT_USAGE;
        s->config.limits = s->options.limits; /* given as flags up to here */
        wrong = c == 'l'   ? set(s, "listen", optarg)
                : c == 's' ? set(s, "state", optarg)
                : c == 'e' ? set_pair(s, optarg)
                           : 0;
        if (wrong)
            return wrong;
        s->options.limits = s->config.limits; /* --set may have changed one */
    }
    s->config.limits = s->options.limits;
    if (optind < argc && !s->options.help)
        return usage_error("serve", "what is \"%s\"?", argv[optind]);
    if (s->options.environment && (wrong = set(s, "environments", s->options.environment)))
        return wrong;
    if (s->options.wheels && (wrong = set(s, "wheels", s->options.wheels)))
        return wrong;
    struct err e;
    return config_check(&s->config, &e) < 0 ? usage_error("serve", "%s", e.text) : 0;
}

/* ---- the port ---- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int bind_to(struct server *s, const struct addrinfo *a, struct err *e)
{
    const int one = 1;
    struct sockaddr_storage name;
    socklen_t len = sizeof(name);
    char host[64], port[16];
    cleanup_fd int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_set(e, errno, "cannot make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 1024) < 0)
        return err_set(e, errno, "cannot listen on %s", s->config.listen);
    if (getsockname(fd, (struct sockaddr *)&name, &len) < 0 ||
        getnameinfo((struct sockaddr *)&name, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return err_set(e, errno, "cannot learn the address of %s", s->config.listen);
    s->loopback = is_loopback((struct sockaddr *)&name);
    snprintf(s->address, sizeof(s->address), name.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
             port);
    s->listen_fd = fd_steal(&fd);
    return 0;
}

/* Where our own processes reach us: an address that means all of them is none to connect to. */
static char *client_address(const struct server *s)
{
    static const char *const any[][2] = {{"0.0.0.0:", "127.0.0.1:"}, {"[::]:", "[::1]:"}};

    for (size_t i = 0; i < sizeof(any) / sizeof(*any); i++)
        if (strncmp(s->address, any[i][0], strlen(any[i][0])) == 0)
            return xasprintf("%s%s", any[i][1], s->address + strlen(any[i][0]));
    return xstrdup(s->address);
}

static int open_port(struct server *s, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct authority at;
    struct addrinfo *found;
    char host[64], port[16];

    assert_that(authority_parse(s->config.listen, &at) == 0); /* as config_set has seen */
    snprintf(host, sizeof(host), "%.*s", (int)at.host_len, at.host);
    snprintf(port, sizeof(port), "%d", at.port);
    int r = getaddrinfo(host, port, &hints, &found);
    if (r != 0)
        return err_set(e, 0, "cannot listen on %s: %s", s->config.listen, gai_strerror(r));
    r = bind_to(s, found, e);
    freeaddrinfo(found);
    return r;
}

/* ---- the state and its tokens ---- */

static void count_token(void *ctx, const struct token *t)
{
    *(unsigned *)ctx += strcmp(t->name, TOKEN_LOCAL) != 0;
}

/* Nobody but the person at this machine may come in without a token that somebody made on purpose. As the
 * gate already: what is in its directory is in its hands, and root would follow a link there. */
static int look_for_tokens(struct server *s, struct err *e)
{
    struct store *store;
    unsigned tokens = 0;

    if (store_open(NULL, &store, e) < 0)
        return -1;
    int r = store_tokens(store, count_token, &tokens, e);
    if (r == 0 && tokens == 0 && !s->loopback)
        r = err_set(e, 0,
                    "%s is not a loopback address, and there is no token yet: make one first with "
                    "\"retort token new NAME --state %s\"",
                    s->config.listen, s->state);
    else if (r == 0 && tokens == 0)
        r = store_token_local(store, s->token, e);
    store_close(store);
    return r;
}

/* ---- starting ---- */

/* Only where a model is named on purpose: each question costs its owner. It is a client of ours, by loopback where
 * we listen everywhere. */
static int start_asker(struct server *s, struct err *e)
{
    cleanup_free char *address = client_address(s);
    const struct asker_options options = {.address = address,
                                          .model = s->config.model,
                                          .model_config = s->config.model_config,
                                          .cells = s->config.ask_cells,
                                          .tokens = s->config.ask_tokens,
                                          .time_s = s->config.ask_time_s,
                                          .root = s->keeping.keeper.facts.root};

    return s->config.model || s->config.model_config ? asker_start(&options, &s->asker_fd, e) : 0;
}

static int confine(struct server *s, struct err *e)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (s->keeping.keeper.facts.root && (confine_user(s->config.user, &uid, &gid, e) < 0 ||
                                         state_dir_give(s->state, uid, gid, e) < 0))
        return -1;
    return confine_gate(s->state, uid, gid, e);
}

/* Tell systemd (Type=notify); its socket was connected before we gave sockets up. */
static int notify_fd = -1;

static void open_notify(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(name.sun_path))
        return;
    strcpy(name.sun_path, path);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        name.sun_path[0] = '\0';
    notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify_fd >= 0 && connect(notify_fd, (struct sockaddr *)&name, len) < 0)
        fd_close(&notify_fd);
}

static void notify(const char *state)
{
    if (notify_fd >= 0)
        send(notify_fd, state, strlen(state), MSG_NOSIGNAL);
}

static void on_ready(void *ctx)
{
    const struct server *s = ctx;

    if (s->token[0])
        printf("retort: ready at http://%s/?token=%s\n", s->address, s->token);
    else
        printf("retort: ready at http://%s/\n", s->address);
    fflush(stdout);
    notify("READY=1");
}

static int serve(struct server *s, struct err *e)
{
    struct gate_start start = {
        .config = &s->config, .vessel = s->keeping.vessel, .ready = on_ready, .ctx = s};

    keeping_name(&s->keeping, start.environments);
    start.listen_fd = fd_steal(&s->listen_fd);
    start.asker_fd = fd_steal(&s->asker_fd);
    int r = gate_serve(&start, e);
    notify("STOPPING=1");
    return r;
}

static void stop(struct server *s)
{
    keeping_stop(&s->keeping);
    fd_close(&s->listen_fd);
    fd_close(&s->asker_fd);
    keeping_done(&s->keeping);
    free(s->state);
    config_done(&s->config);
}

int verb_serve(int argc, char **argv)
{
    static struct server s = {.listen_fd = -1, .asker_fd = -1};
    struct err e = {0};
    int wrong = parse(&s, argc, argv);

    if (wrong)
        return wrong;
    if (s.options.help) {
        fputs(serve_help, stdout);
        return 0;
    }
    open_notify();
    int r = keeping_load(&s.keeping, &s.config, &e);
    if (r == 0)
        r = open_port(&s, &e);
    if (r == 0)
        r = state_dir(s.config.state, true, &s.state, &e);
    if (r == 0)
        r = keeping_start(&s.keeping, &s.config, &e);
    if (r == 0)
        r = start_asker(&s, &e);
    if (r == 0)
        r = confine(&s, &e);
    if (r == 0)
        r = look_for_tokens(&s, &e);
    if (r == 0)
        r = serve(&s, &e);
    stop(&s);
    return r < 0 ? owner_failed(&e) : 0;
}
