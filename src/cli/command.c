/* command: see command.h. */
#include "cli/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/branch.h"
#include "cli/undo.h"

#define BLANKS " \t"

static const struct command {
    const char *word;
    int (*run)(struct repl *r, const char *rest, struct err *e);
} commands[] = {
    {"%checkpoints", undo_list}, {"%undo", undo_back},   {"%fork", branch_fork},
    {"%branches", branch_list},  {"%branch", branch_go},
};

/* The rest of a line that begins with this word, or NULL. */
static const char *after_word(const char *line, const char *word)
{
    size_t len = strlen(word);

    line += strspn(line, BLANKS);
    if (strncmp(line, word, len) != 0 || (line[len] && !strchr(BLANKS, line[len])))
        return NULL;
    return line + len + strspn(line + len, BLANKS);
}

static const struct command *find(const char *line)
{
    for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (after_word(line, commands[i].word))
            return &commands[i];
    return NULL;
}

bool command_is(const char *line)
{
    return find(line) != NULL;
}

int command_do(struct repl *r, const char *line, struct err *e)
{
    const struct command *c = find(line);
    int turn = c->run(r, after_word(line, c->word), e);

    if (turn >= 0 || r->owner.lost)
        return turn;
    outlet_note(&r->owner.out, "%s", e->text);
    return 0;
}

bool command_number(const char *rest, uint32_t *ret)
{
    char *end;

    errno = 0;
    unsigned long n = strtoul(rest, &end, 10);
    end += strspn(end, BLANKS);
    if (rest[0] < '0' || rest[0] > '9' || *end || errno || n >= UINT32_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}
