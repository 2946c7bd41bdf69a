/* mcp: a server for one agent, on standard input and output. Starts a keeper and becomes a gate without HTTP.
 *
 * Nothing but the protocol may come out at standard output, whatever a library has to say: it is moved away at once,
 * and what was standard output leads to standard error. No process below the keeper ever has it.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/failed.h"
#include "cli/folder.h"
#include "cli/keeping.h"
#include "cli/options.h"
#include "gate/confine.h"
#include "gate/gate.h"

const char mcp_help[] =
    "usage: retort mcp [OPTION]…\n"
    "\n"
    "A code interpreter for an agent: a server of the Model Context Protocol on\n"
    "standard input and output. Sessions end with the program that started it.\n"
    "\n"
    "  --files DIR         copy the files of this folder into each new session; they\n"
    "                      are read once, and never written to\n"
    "  --environment E     the Python of sessions; --wheels DIR for pip [default]\n"
    "  --checkpoints N     states of a session that are kept [8]\n"
    "  --summary SIZE      text of a cell that a model sees  [8k]\n"
    "\n" OPTIONS_LIMITS_HELP_WITH(
        "") "They are for every session.\n"
            "\n"
            "For example, in the settings of a client:\n"
            "  {\"mcpServers\": {\"retort\": {\"command\": \"retort\", \"args\": [\"mcp\"]}}}\n";

/* One person's agent: what it leaves behind is kept nowhere, and its sessions are few. */
#define SESSIONS_MAX 32
#define JOURNAL_CELL (64u << 10)
#define JOURNAL_SESSION (1u << 20)
#define RETENTION_S 60

struct one {
    struct config config;
    struct options options;
    struct folder folder;
    struct keeping keeping;
    int in_fd, out_fd;
};

static void settle_config(struct one *s)
{
    struct config *c = &s->config;

    config_default(c);
    c->idle_timeout_s = INFINITY;
    c->retention_s = RETENTION_S;
    c->max_sessions = SESSIONS_MAX;
    c->max_runs = 1;
    c->pool = c->blanks = 1;
    c->journal_outputs = JOURNAL_CELL;
    c->journal_session = JOURNAL_SESSION;
    c->log_requests = false;
}

static int set(struct one *s, const char *key, const char *value)
{
    struct err e;

    return config_set(&s->config, key, value, &e) < 0 ? usage_error("mcp", "%s", e.text) : 0;
}

static int parse(struct one *s, int argc, char **argv, const char **ret_dir)
{
    static const struct option own[] = {{"files", required_argument, NULL, 'f'}, {0}};
    struct options *o = &s->options;
    struct err e;
    int c, wrong = 0;

    options_init(o, "mcp");
    o->takes_environment = o->takes_limits = o->takes_checkpoints = o->takes_summary = true;
    while ((c = options_next(o, argc, argv, "", own)) != -1) {
        if (c == OPTIONS_WRONG)
            return EXIT_USAGE;
        *ret_dir = optarg;
    }
    if (optind < argc && !o->help)
        return usage_error("mcp", "what is \"%s\"?", argv[optind]);
    if (o->environment_given && (wrong = set(s, "environments", o->environment)))
        return wrong;
    if (o->wheels && (wrong = set(s, "wheels", o->wheels)))
        return wrong;
    s->config.limits = o->limits;
    s->config.summary = o->summary;
    if (o->checkpoints >= 0)
        s->config.checkpoints = (unsigned)o->checkpoints;
    return config_check(&s->config, &e) < 0 ? usage_error("mcp", "%s", e.text) : 0;
}

static int take_stdio(struct one *s, struct err *e)
{
    s->in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    s->out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (s->in_fd < 0 || s->out_fd < 0)
        return err_set(e, errno, "standard input and output must be open");
    cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return err_set(e, errno, "cannot move standard input and output");
    return 0;
}

/* Who started this by hand would wait for something to happen. */
static void tell_person(const struct one *s)
{
    if (isatty(s->in_fd))
        fputs("retort: mcp: this speaks JSON-RPC with a program that starts it, a message a line; "
              "Ctrl-D ends it\n"
              "  docs/MCP.md has the settings of the usual clients\n",
              stderr);
}

static int open_folder(struct one *s, const char *dir, struct err *e)
{
    if (!dir)
        return 0;
    if (folder_open(&s->folder, dir, e) < 0)
        return -1;
    if (s->folder.left_out > 0)
        fprintf(
            stderr,
            "retort: --files: %u files are offered, and %u entries are not: hidden ones, links, "
            "what cannot be read, and files beyond %d\n",
            s->folder.n, s->folder.left_out, FOLDER_FILES_MAX);
    return 0;
}

static int confine(const struct one *s, struct err *e)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (s->keeping.keeper.facts.root && confine_user(NULL, &uid, &gid, e) < 0)
        return -1;
    return confine_gate(NULL, uid, gid, e);
}

static int serve(struct one *s, struct err *e)
{
    struct gate_start start = {.config = &s->config,
                               .vessel = s->keeping.vessel,
                               .listen_fd = -1,
                               .asker_fd = -1,
                               .in_fd = s->in_fd,
                               .out_fd = s->out_fd,
                               .files = s->folder.files,
                               .n_files = s->folder.n};

    keeping_name(&s->keeping, start.environments);
    return gate_serve(&start, e);
}

/* The other side hears that we are gone when everything else is. */
static void stop(struct one *s)
{
    keeping_stop(&s->keeping);
    folder_done(&s->folder);
    fd_close(&s->in_fd);
    fd_close(&s->out_fd);
    keeping_done(&s->keeping);
    config_done(&s->config);
}

int verb_mcp(int argc, char **argv)
{
    static struct one s = {.in_fd = -1, .out_fd = -1};
    const char *dir = NULL;
    struct err e = {0};

    settle_config(&s);
    int wrong = parse(&s, argc, argv, &dir);
    if (wrong)
        return wrong;
    if (s.options.help) {
        fputs(mcp_help, stdout);
        return 0;
    }
    int r = take_stdio(&s, &e);
    if (r == 0)
        tell_person(&s);
    if (r == 0)
        r = open_folder(&s, dir, &e);
    if (r == 0)
        r = keeping_load(&s.keeping, &s.config, &e);
    if (r == 0)
        r = keeping_start(&s.keeping, &s.config, &e);
    if (r == 0)
        r = confine(&s, &e);
    if (r == 0)
        r = serve(&s, &e);
    stop(&s);
    return r < 0 ? owner_failed(&e) : 0;
}
