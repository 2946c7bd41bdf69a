/* Pictures on a terminal: what is drawn, what is refused, and that the process that draws has no rights. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "term/picture.h"
#include "term/width.h"

static const struct term truecolour = {.tty = true,
                                       .moves = true,
                                       .colours = true,
                                       .depth = DEPTH_TRUE,
                                       .pictures = PICTURES_BLOCKS,
                                       .columns = 80,
                                       .rows = 24,
                                       .cell_width = 10,
                                       .cell_height = 20};

/* ---- pictures ---- */

static void add_u32(struct buf *b, uint32_t n)
{
    uint8_t bytes[] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    buf_add(b, bytes, 4);
}

static void add_chunk(struct buf *b, const char *type, const void *data, size_t len)
{
    add_u32(b, (uint32_t)len);
    size_t from = b->len;
    buf_add(b, type, 4);
    buf_add(b, data, len);
    add_u32(b, (uint32_t)crc32(0, (const Bytef *)b->data + from, (uInt)(b->len - from)));
}

/* Grey, of one shade with its left half, if wanted, black: `rows` of its `height` rows are there. */
static void make_png_of(struct buf *b, uint32_t width, uint32_t height, uint32_t rows,
                        uint8_t shade, bool half)
{
    cleanup_buf struct buf head = {0}, packed = {0};
    z_stream z = {0};
    uint8_t *row = xcalloc(width + 1, 1);

    memset(row + 1, shade, width);
    memset(row + 1, half ? 0 : shade, width / 2);
    buf_add(b, "\x89PNG\r\n\x1a\n", 8);
    add_u32(&head, width);
    add_u32(&head, height);
    buf_add(&head, "\x08\x00\x00\x00\x00", 5);
    add_chunk(b, "IHDR", head.data, head.len);
    deflateInit(&z, 9);
    for (uint32_t i = 0; i <= rows; i++) {
        z.next_in = row;
        z.avail_in = i < rows ? width + 1 : 0;
        do {
            z.next_out = (Bytef *)buf_room(&packed, 65536);
            z.avail_out = 65536;
            deflate(&z, i < rows ? Z_NO_FLUSH : Z_FINISH);
            packed.len += 65536 - z.avail_out;
        } while (z.avail_out == 0);
    }
    deflateEnd(&z);
    add_chunk(b, "IDAT", packed.data, packed.len);
    add_chunk(b, "IEND", "", 0);
    free(row);
}

static void make_png(struct buf *b, uint32_t width, uint32_t height, uint32_t rows, uint8_t shade)
{
    make_png_of(b, width, height, rows, shade, false);
}

static int draw(const struct term *t, const struct buf *png, struct buf *out, struct err *e)
{
    return picture_draw(t, 40, 10, "  ", png->data, png->len, out, e);
}

/* ---- drawn ---- */

static void test_blocks(void **state)
{
    cleanup_buf struct buf png = {0}, out = {0};
    struct err e;
    unsigned lines = 0;

    (void)state;
    make_png(&png, 320, 160, 160, 0x40);
    assert_int_equal(draw(&truecolour, &png, &out, &e), 0);
    for (const char *at = buf_text(&out); *at; at = strchr(at, '\n') + 1) {
        assert_memory_equal(at, "  ", 2);
        lines++;
    }
    assert_int_equal(lines, 10); /* 40 × 10 characters of 10 × 20 pixels: as high as wide is 2:1 */
    assert_non_null(strstr(out.data, "64;64;64"));
    assert_int_equal(out.data[out.len - 1], '\n');
}

/* What is upright stays so, whatever the width: all lines of it are the same, behind the first, which begins
 * with a reset. */
static void test_upright(void **state)
{
    struct err e;

    (void)state;
    for (uint32_t width = 320; width < 324; width++) {
        cleanup_buf struct buf png = {0}, out = {0};
        make_png_of(&png, width, 160, 160, 0xf0, true);
        assert_int_equal(draw(&truecolour, &png, &out, &e), 0);
        const char *second = strchr(buf_text(&out), '\n') + 1;
        size_t len = strcspn(second, "\n") + 1;
        for (const char *at = second; *at; at += len)
            assert_memory_equal(at, second, len);
    }
}

static void test_sixel_and_kitty(void **state)
{
    cleanup_buf struct buf png = {0}, sixel = {0}, kitty = {0};
    struct term t = truecolour;
    struct err e;

    (void)state;
    make_png(&png, 320, 160, 160, 0x40);
    t.pictures = PICTURES_SIXEL;
    assert_int_equal(draw(&t, &png, &sixel, &e), 0);
    assert_memory_equal(sixel.data, "  \033P", 4);
    t.pictures = PICTURES_KITTY;
    t.cell_width = 64; /* on a fine screen it is not larger than on a coarse one */
    t.cell_height = 128;
    assert_int_equal(draw(&t, &png, &kitty, &e), 0);
    assert_memory_equal(kitty.data, "  \033_Ga=T,f=32", 13);
    assert_true(kitty.len < PICTURE_DRAWN_MAX);
}

static void test_garbage(void **state)
{
    static const char *const texts[] = {
        "", "x", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff\xe0 and no more", "GIF89a", "<svg/>"};
    cleanup_buf struct buf out = {0}, png = {0};
    struct err e;

    (void)state;
    for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct buf text = {.data = (char *)texts[i], .len = strlen(texts[i])};
        assert_int_equal(draw(&truecolour, &text, &out, &e), -1);
    }
    make_png(&png, 320, 160, 160, 0x40);
    for (size_t len = png.len - 1; len > 0; len -= len > 40 ? 37 : 1) {
        struct buf cut = {.data = png.data, .len = len};
        draw(&truecolour, &cut, &out,
             &e); /* whatever it says, it ends, and nothing else is drawn */
    }
    for (size_t i = 8; i < 60 && i < png.len; i++) {
        png.data[i] ^= 0x55;
        draw(&truecolour, &png, &out, &e);
        png.data[i] ^= 0x55;
    }
}

static void test_bombs(void **state)
{
    static const uint32_t sides[][2] = {
        {30000, 30000}, {5000, 5000}, {29999, 1000}, {0, 5}, {0x7fffffff, 0x7fffffff}, {1, 30000}};
    struct err e;

    (void)state;
    for (unsigned i = 0; i < sizeof(sides) / sizeof(*sides); i++) {
        cleanup_buf struct buf png = {0}, out = {0};
        uint32_t width = sides[i][0], height = sides[i][1];
        int64_t from = clock_now_ms();
        make_png(&png, width < 30001 ? width : 10, height < 30001 ? height : 10,
                 height < 30001 ? height : 10, 0);
        if (width > 30000) { /* a header that lies; its sum is made right again */
            png.data[16] = png.data[20] = 0x7f;
            uint32_t sum = (uint32_t)crc32(0, (const Bytef *)png.data + 12, 17);
            for (unsigned n = 0; n < 4; n++)
                png.data[29 + n] = (char)(sum >> (24 - 8 * n));
        }
        from = clock_now_ms();
        int r = draw(&truecolour, &png, &out, &e);
        int64_t took_ms = clock_now_ms() - from;
        bool small = (uint64_t)width * height > 0 && (uint64_t)width * height < 32u << 20;
        /* One that takes too long is given up, which a busy machine may make of a small one too. */
        assert_true(took_ms < 30000);
        assert_true(r == (small ? 0 : -1) || (small && took_ms > 2000));
        assert_true(out.len <= PICTURE_DRAWN_MAX);
    }
}

static void test_none_on_a_pipe(void **state)
{
    cleanup_buf struct buf png = {0}, out = {0};
    struct term t;
    struct err e;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    setenv("RETORT_PICTURES", "kitty", 1);
    term_look(&t, ends[1]);
    unsetenv("RETORT_PICTURES");
    assert_int_equal(t.pictures, PICTURES_NONE);
    assert_false(t.colours || t.moves);
    make_png(&png, 10, 10, 10, 0);
    assert_int_equal(draw(&t, &png, &out, &e), -1);
    close(ends[0]);
    close(ends[1]);
}

/* ---- the process ---- */

/* The process whose parent we are, and that is the program already; 0: there is none yet. */
static pid_t only_child(void)
{
    struct dirent *entry;
    pid_t found = 0;
    DIR *proc = opendir("/proc");

    while (proc && !found && (entry = readdir(proc))) {
        char path[300], text[256] = "";
        int parent = 0;
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        FILE *f = atoi(entry->d_name) > 0 ? fopen(path, "r") : NULL;
        if (f && fgets(text, sizeof(text), f) && strstr(text, "(retort-draw)") &&
            sscanf(strrchr(text, ')'), ") %*c %d", &parent) == 1 && parent == (int)getpid())
            found = (pid_t)atoi(entry->d_name);
        if (f)
            fclose(f);
    }
    closedir(proc);
    return found;
}

static void *send_signal(void *arg)
{
    pid_t pid = 0;

    for (int64_t until = clock_now_ms() + 5000; pid == 0 && clock_now_ms() < until;)
        pid = only_child();
    if (pid)
        kill(pid, *(int *)arg);
    return NULL;
}

static void test_killed_or_stuck(void **state)
{
    static int signals[] = {SIGKILL, SIGSTOP};
    cleanup_buf struct buf png = {0};
    struct err e;

    (void)state;
    make_png(&png, 5000, 5000, 5000, 0);
    for (unsigned i = 0; i < 2; i++) {
        cleanup_buf struct buf out = {0};
        pthread_t thread;
        int64_t from = clock_now_ms();
        pthread_create(&thread, NULL, send_signal, &signals[i]);
        assert_int_equal(draw(&truecolour, &png, &out, &e), -1);
        pthread_join(thread, NULL);
        assert_int_equal(out.len, 0);
        assert_true(clock_now_ms() - from < 8000);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    }
}

/* The value behind a name in a file of /proc. */
static void assert_line(pid_t pid, const char *file, const char *begins, const char *has)
{
    char path[64], line[256];
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (!found && fgets(line, sizeof(line), f))
        found = strncmp(line, begins, strlen(begins)) == 0;
    fclose(f);
    assert_true(found);
    if (!strstr(line, has))
        fail_msg("%s: %s, not %s", begins, line, has);
}

static void test_the_drawer_has_no_rights(void **state)
{
    char program[4096];
    int in[2];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 64);

    (void)state;
    assert_true(n > 0);
    program[n] = '\0';
    strcpy(strrchr(program, '/'), "/../../retort-draw");
    assert_int_equal(pipe(in), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        close(in[1]);
        execl(program, "retort-draw", "blocks", "2", "40", "10", "10", "20", (char *)NULL);
        _exit(127);
    }
    char path[64], where[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
    for (int64_t until = clock_now_ms() + 5000; clock_now_ms() < until;) { /* until it reads */
        FILE *f = fopen(path, "r");
        if (f && fgets(where, sizeof(where), f) && strncmp(where, "0 0x0 ", 6) == 0) {
            fclose(f);
            break;
        }
        if (f)
            fclose(f);
        usleep(1000);
    }
    assert_line(pid, "status", "Seccomp:", "2");
    assert_line(pid, "status", "NoNewPrivs:", "1");
    assert_line(pid, "limits", "Max open files", " 3 ");
    assert_line(pid, "limits", "Max cpu time", " 3 ");
    assert_line(pid, "limits", "Max address space", " 536870912 ");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(in[0]);
    close(in[1]);
}

/* ---- what is believed of it ---- */

static bool check(enum term_pictures kind, const char *text)
{
    return drawn_check(kind, text, strlen(text), 4, 2);
}

static void test_checked(void **state)
{
    (void)state;
    assert_true(check(PICTURES_BLOCKS, "\033[0m\033[38;2;1;2;3m▀▄██\033[0m\n▀▄██\n"));
    assert_false(check(PICTURES_BLOCKS, "▀▄███"));
    assert_false(check(PICTURES_BLOCKS, "a\nb\nc"));
    assert_false(check(PICTURES_BLOCKS, "\033[2J"));
    assert_false(check(PICTURES_BLOCKS, "\033[1"));
    assert_false(check(PICTURES_BLOCKS, "\033]0;x\007"));
    assert_false(check(PICTURES_BLOCKS, "\r"));
    assert_false(check(PICTURES_BLOCKS, "\xc2\x9b"
                                        "2J"));
    assert_false(check(PICTURES_BLOCKS, "\xff"));
    assert_false(check(PICTURES_BLOCKS, ""));

    assert_true(check(PICTURES_SIXEL, "\033P0;1;0q\"1;1;30;20#0;2;1;2;3#0!30~-\033\\"));
    assert_false(check(PICTURES_SIXEL, "\033P0;1;0q#0~"
                                       "\033]0;x\007"));
    assert_false(check(PICTURES_SIXEL, "\033P0;1;0q!99999~\033\\"));
    assert_false(check(PICTURES_SIXEL, "\033P+q544e\033\\"));
    assert_false(check(PICTURES_SIXEL, "\033Pq~\033\\\033[2J"));
    assert_false(check(PICTURES_SIXEL, "\033Pq~"));
    assert_false(check(PICTURES_SIXEL, "\033Pq~ls\n\033\\x"));

    assert_true(
        check(PICTURES_KITTY, "\033_Ga=T,f=32,s=1,v=1,c=1,r=1,m=1\033\\\033_Gm=0;AAAA\033\\"));
    assert_false(
        check(PICTURES_KITTY, "\033_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\033\\"));  /* a file of ours */
    assert_false(check(PICTURES_KITTY, "\033_Ga=T,t=t;L3RtcC94\033\\")); /* … and away with it */
    assert_false(check(PICTURES_KITTY, "\033_Ga=q,i=1;AAAA\033\\"));
    assert_false(check(PICTURES_KITTY, "\033_Ga=d\033\\"));
    assert_false(
        check(PICTURES_KITTY, "\033_Gf=100,a=T;AAAA\033\\")); /* a PNG for its own decoder */
    assert_false(check(PICTURES_KITTY, "\033_Gm=0;AA\033]0;x\007\033\\"));
    assert_false(check(PICTURES_KITTY, "\033_Gm=0;AAAA"));
    assert_false(check(PICTURES_KITTY, "\033_Gs=99999999999999999999\033\\"));
    assert_false(check(PICTURES_NONE, "x"));
}

static void test_terminals(void **state)
{
    static const struct {
        const char *name, *value;
        enum term_pictures pictures;
    } cases[] = {{"TERM", "xterm-kitty", PICTURES_KITTY},
                 {"TERM", "foot", PICTURES_SIXEL},
                 {"TERM", "xterm-256color", PICTURES_BLOCKS},
                 {"TERM", "dumb", PICTURES_NONE},
                 {"TMUX", "x", PICTURES_BLOCKS},
                 {"NO_COLOR", "1", PICTURES_NONE},
                 {"TERM_PROGRAM", "WezTerm", PICTURES_SIXEL},
                 {"RETORT_PICTURES", "none", PICTURES_NONE},
                 {"RETORT_PICTURES", "sixel", PICTURES_SIXEL},
                 {"RETORT_PICTURES", "?", PICTURES_BLOCKS}};
    static const char *const names[] = {
        "TERM",     "TMUX",     "STY", "TERM_PROGRAM", "RETORT_PICTURES", "KITTY_WINDOW_ID",
        "NO_COLOR", "COLORTERM"};
    int fd = posix_openpt(O_RDWR | O_NOCTTY);

    (void)state;
    assert_true(fd >= 0);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct term t;
        for (unsigned n = 0; n < sizeof(names) / sizeof(*names); n++)
            unsetenv(names[n]);
        setenv("TERM", "xterm-256color", 1);
        setenv(cases[i].name, cases[i].value, 1);
        term_look(&t, fd);
        assert_int_equal(t.pictures, cases[i].pictures);
        assert_int_equal(t.colours, strcmp(cases[i].value, "dumb") != 0 && !getenv("NO_COLOR"));
        assert_int_equal(t.columns, 80);
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_upright),
        cmocka_unit_test(test_sixel_and_kitty),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_none_on_a_pipe),
        cmocka_unit_test(test_killed_or_stuck),
        cmocka_unit_test(test_checked),
        cmocka_unit_test(test_the_drawer_has_no_rights),
        cmocka_unit_test(test_terminals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
