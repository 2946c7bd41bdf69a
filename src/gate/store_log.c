/* store_log: carries the write-ahead log into the database, in a thread of its own.
 *
 * This is the part of the store that asks the disk to finish (fsync): tens of milliseconds for each 4 MiB
 * that were written. The gate's loop would stand still for each of them, so a thread with a connection of
 * its own does it. A write can still meet a busy disk, only seldom.
 *
 * The thread can work while the loop writes on; but the log begins anew only when a write finds all of it
 * carried over. Where writing never pauses it would grow without end, so from LOG_MOST on the writer
 * carries over what is left.
 *
 * A thread that cannot be had is no failure: then the writer does it all.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/buf.h"
#include "gate/store_inside.h"

#define LOG_PAGES 1000 /* of 4 KiB, between two rounds */
#define LOG_MOST 16000

struct store_log {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    sqlite3 *db; /* the thread's own, once it runs */
    /* under the lock */
    bool wanted, empty, quit;
    /* the writer's own */
    int next_pages; /* length of the log from which the thread is called again */
};

static int carry(sqlite3 *db, int mode)
{
    return sqlite3_wal_checkpoint_v2(db, NULL, mode, NULL, NULL);
}

/* First what takes long and disturbs nobody; what is left to empty the log, which keeps writers out,
 * is short then. Another program that reads can prevent it: the next time, then. */
static void carry_and_empty(sqlite3 *db)
{
    carry(db, SQLITE_CHECKPOINT_PASSIVE);
    carry(db, SQLITE_CHECKPOINT_TRUNCATE);
}

static void *work(void *arg)
{
    struct store_log *l = arg;

    pthread_mutex_lock(&l->lock);
    while (!l->quit) {
        if (!l->wanted && !l->empty) {
            pthread_cond_wait(&l->more, &l->lock);
            continue;
        }
        bool empty = l->empty;
        l->wanted = l->empty = false;
        pthread_mutex_unlock(&l->lock);
        if (empty)
            carry_and_empty(l->db);
        else
            carry(l->db, SQLITE_CHECKPOINT_PASSIVE);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void call(struct store_log *l, bool *what)
{
    pthread_mutex_lock(&l->lock);
    *what = true;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
}

static int open_own(struct store *st, sqlite3 **ret)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int rc = sqlite3_open_v2(sqlite3_db_filename(st->db, "main"), ret, flags, st->vfs);

    /* It must have read once to know that there is a log. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*ret, "PRAGMA synchronous = NORMAL; PRAGMA user_version", NULL, NULL,
                          NULL);
    return rc;
}

static struct store_log *start(struct store *st)
{
    struct store_log *l = xcalloc(1, sizeof(*l));
    sigset_t all, before;

    if (st->log_failed || open_own(st, &l->db) != SQLITE_OK)
        goto failed;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    /* Signals are for the loop. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&l->thread, NULL, work, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0)
        goto failed;
    st->log = l;
    return l;
failed:
    st->log_failed = true;
    sqlite3_close(l->db);
    free(l);
    return NULL;
}

/* After each commit, with the length of the log. */
static int committed(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct store *st = arg;
    struct store_log *l = st->log;

    (void)name;
    if (pages < LOG_PAGES) {
        if (l)
            l->next_pages = LOG_PAGES;
        return SQLITE_OK;
    }
    if (!l)
        l = start(st);
    if (!l || pages >= LOG_MOST) {
        carry(db, SQLITE_CHECKPOINT_PASSIVE);
    } else if (pages >= l->next_pages) {
        l->next_pages = pages + LOG_PAGES;
        call(l, &l->wanted);
    }
    return SQLITE_OK;
}

void store_log_init(struct store *st)
{
    sqlite3_wal_hook(st->db, committed, st);
}

void store_log_empty(struct store *st)
{
    struct store_log *l = st->log ? st->log : start(st);

    if (l)
        call(l, &l->empty);
    else
        carry_and_empty(st->db);
}

void store_log_done(struct store *st)
{
    struct store_log *l = st->log;

    if (!l)
        return;
    call(l, &l->quit);
    pthread_join(l->thread, NULL);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->more);
    sqlite3_close(l->db);
    free(l);
    st->log = NULL;
}
