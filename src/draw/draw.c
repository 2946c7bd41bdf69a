/* retort-draw: a picture in, what makes a terminal show it out. A process of its own, started for one picture by
 * src/term/picture.c.
 *
 *     retort-draw blocks|sixel|kitty DEPTH COLUMNS ROWS CELL_WIDTH CELL_HEIGHT <picture >drawing
 *
 * The picture is hostile and the decoders are C. Before it reads its first byte of it, this process gives up
 * everything but its memory, its stdin and its stdout: no file can be opened and no process, socket or thread
 * made; any other call kills it. Memory and CPU time are limited. Its parent checks what it writes.
 */
#include <chafa.h>
#include <errno.h>
#include <stdio.h> /* which jpeglib.h forgets */
#include <jpeglib.h>
#include <png.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define MEMORY_MAX (512ul << 20)
#define CPU_S 3
#define BYTES_MAX (32ul << 20) /* of the picture; as in term/picture.h */
#define PIXELS_MAX (32ul << 20)
#define SIDE_MAX 30000u
#define KITTY_PIXELS 700000u /* that are sent: four bytes each, and a third more for base64 */

struct wish {
    enum { BLOCKS, SIXEL, KITTY } kind;
    unsigned depth, columns, rows, cell_width, cell_height;
};

struct pixels {
    unsigned width, height;
    size_t
        stride; /* bytes of a row: a multiple of four, or chafa takes the rows to be shorter than they are */
    uint8_t *rgb;
};

/* ---- to be nobody ---- */

static int limit(void)
{
    const struct {
        int resource;
        rlim_t max;
    } limits[] = {{RLIMIT_AS, MEMORY_MAX},
                  {RLIMIT_CPU, CPU_S},
                  {RLIMIT_CORE, 0},
                  {RLIMIT_FSIZE, 0},
                  {RLIMIT_NOFILE, 3}};

    for (unsigned i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct rlimit r = {limits[i].max, limits[i].max};
        if (setrlimit((__rlimit_resource_t)limits[i].resource, &r) < 0)
            return -1;
    }
    return 0;
}

static int confine(void)
{
    static const char *const calls[] = {"munmap", "mremap",     "brk",          "madvise",
                                        "futex",  "exit_group", "rt_sigreturn", "clock_gettime",
                                        "sysinfo" /* qsort asks how much it may take */};
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int r = f ? 0 : -ENOMEM;

    for (unsigned i = 0; r == 0 && i < sizeof(calls) / sizeof(*calls); i++)
        r = seccomp_rule_add(f, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(calls[i]), 0);
    if (r == 0)
        r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(read), 1, SCMP_A0(SCMP_CMP_EQ, 0));
    if (r == 0)
        r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, 1));
    /* Memory that is no file's, and never code. */
    if (r == 0)
        r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                             SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
    if (r == 0)
        r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (r == 0)
        r = seccomp_load(f);
    return r;
}

/* ---- decoding ---- */

static uint8_t *make_room(struct pixels *p)
{
    p->stride = ((size_t)p->width * 3 + 3) & ~(size_t)3;
    p->rgb = calloc(p->height, p->stride);
    return p->rgb;
}

static int fits(unsigned width, unsigned height)
{
    return width > 0 && height > 0 && width <= SIDE_MAX && height <= SIDE_MAX &&
           (uint64_t)width * height <= PIXELS_MAX;
}

static int decode_png(const uint8_t *data, size_t len, struct pixels *ret)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    /* Figures are drawn for paper: what is transparent is white, whatever the terminal's ground. */
    const png_color white = {255, 255, 255};

    if (!png_image_begin_read_from_memory(&image, data, len))
        return -1;
    ret->width = image.width;
    ret->height = image.height;
    image.format = PNG_FORMAT_RGB;
    int good = fits(ret->width, ret->height) && make_room(ret) &&
               png_image_finish_read(&image, &white, ret->rgb, (png_int_32)ret->stride, NULL);
    png_image_free(&image);
    return good ? 0 : -1;
}

struct jpeg_fault {
    struct jpeg_error_mgr manager;
    jmp_buf back;
};

static void on_jpeg_error(j_common_ptr info)
{
    longjmp(((struct jpeg_fault *)info->err)->back, 1);
}

static void on_jpeg_message(j_common_ptr info)
{
    (void)info;
}

static int read_jpeg(struct jpeg_decompress_struct *d, struct pixels *ret)
{
    jpeg_read_header(d, TRUE);
    d->out_color_space = JCS_RGB;
    /* The decoder can leave detail out: nobody sees more than this of it. */
    while (d->scale_denom < 8 &&
           (d->image_width / d->scale_denom > 3000 || d->image_height / d->scale_denom > 3000))
        d->scale_denom *= 2;
    jpeg_calc_output_dimensions(d);
    ret->width = d->output_width;
    ret->height = d->output_height;
    if (!fits(ret->width, ret->height) || !make_room(ret))
        return -1;
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = ret->rgb + d->output_scanline * ret->stride;
        jpeg_read_scanlines(d, &row, 1);
    }
    return 0;
}

static int decode_jpeg(const uint8_t *data, size_t len, struct pixels *ret)
{
    struct jpeg_decompress_struct d = {0};
    struct jpeg_fault fault = {0};

    d.err = jpeg_std_error(&fault.manager);
    fault.manager.error_exit = on_jpeg_error;
    fault.manager.output_message = on_jpeg_message;
    if (setjmp(fault.back))
        return -1; /* the process ends with this: nothing is freed */
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, data, len);
    return read_jpeg(&d, ret);
}

static int decode(const uint8_t *data, size_t len, struct pixels *ret)
{
    if (len > 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
        return decode_png(data, len, ret);
    if (len > 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
        return decode_jpeg(data, len, ret);
    return -1;
}

/* ---- drawing ---- */

/* As large as it is, or as there is room for. With blocks a pixel is half of a character wide at most. */
static void measure(const struct wish *w, const struct pixels *p, int *ret_columns, int *ret_rows)
{
    double across = (double)w->columns * w->cell_width / p->width;
    double down = (double)w->rows * w->cell_height / p->height;
    double scale = across < down ? across : down,
           most = w->kind == BLOCKS ? w->cell_width / 2.0 : 1.0;

    if (scale > most)
        scale = most;
    *ret_columns = (int)(p->width * scale / w->cell_width + 0.5);
    *ret_rows = (int)(p->height * scale / w->cell_height + 0.5);
    *ret_columns = *ret_columns < 1                 ? 1
                   : *ret_columns > (int)w->columns ? (int)w->columns
                                                    : *ret_columns;
    *ret_rows = *ret_rows < 1 ? 1 : *ret_rows > (int)w->rows ? (int)w->rows : *ret_rows;
}

static ChafaCanvasMode mode_of(const struct wish *w)
{
    if (w->kind != BLOCKS || w->depth == 2)
        return CHAFA_CANVAS_MODE_TRUECOLOR;
    return w->depth == 1 ? CHAFA_CANVAS_MODE_INDEXED_240 : CHAFA_CANVAS_MODE_INDEXED_16;
}

/* Half and quarter blocks are in every font. */
static void choose_symbols(ChafaCanvasConfig *config)
{
    ChafaSymbolMap *symbols = chafa_symbol_map_new();

    chafa_symbol_map_add_by_tags(symbols, CHAFA_SYMBOL_TAG_SPACE | CHAFA_SYMBOL_TAG_SOLID |
                                              CHAFA_SYMBOL_TAG_HALF | CHAFA_SYMBOL_TAG_QUAD);
    chafa_canvas_config_set_symbol_map(config, symbols);
    chafa_symbol_map_unref(symbols);
}

static ChafaCanvasConfig *configure(const struct wish *w, const struct pixels *p)
{
    static const ChafaPixelMode modes[] = {[BLOCKS] = CHAFA_PIXEL_MODE_SYMBOLS,
                                           [SIXEL] = CHAFA_PIXEL_MODE_SIXELS,
                                           [KITTY] = CHAFA_PIXEL_MODE_KITTY};
    ChafaCanvasConfig *config = chafa_canvas_config_new();
    unsigned width = w->cell_width, height = w->cell_height;
    int columns, rows;

    measure(w, p, &columns, &rows);
    /* kitty is told the columns and rows, and enlarges what it gets to them. */
    while (w->kind == KITTY && (unsigned)(columns * rows) * width * height > KITTY_PIXELS) {
        width = width * 7 / 8;
        height = height * 7 / 8;
    }
    chafa_canvas_config_set_geometry(config, columns, rows);
    chafa_canvas_config_set_cell_geometry(config, (int)(width ? width : 1),
                                          (int)(height ? height : 1));
    chafa_canvas_config_set_pixel_mode(config, modes[w->kind]);
    chafa_canvas_config_set_canvas_mode(config, mode_of(w));
    chafa_canvas_config_set_dither_mode(config, CHAFA_DITHER_MODE_NONE);
    chafa_canvas_config_set_preprocessing_enabled(config, FALSE);
    chafa_canvas_config_set_optimizations(config, CHAFA_OPTIMIZATION_REUSE_ATTRIBUTES);
    chafa_canvas_config_set_work_factor(config, 0.8f);
    choose_symbols(config);
    return config;
}

/* The sequences of a terminal that has them all. */
static ChafaTermInfo *sequences(const struct wish *w)
{
    char *terms[] = {
        [BLOCKS] = "TERM=xterm-256color", [SIXEL] = "TERM=foot", [KITTY] = "TERM=xterm-kitty"};
    char *environment[] = {terms[w->kind], "COLORTERM=truecolor", NULL};

    return chafa_term_db_detect(chafa_term_db_get_default(), environment);
}

static int write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(1, data, len);
        if (n <= 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int draw(const struct wish *w, const struct pixels *p)
{
    ChafaCanvas *canvas = chafa_canvas_new(configure(w, p));

    chafa_canvas_draw_all_pixels(canvas, CHAFA_PIXEL_RGB8, p->rgb, (int)p->width, (int)p->height,
                                 (int)p->stride);
    GString *drawing = chafa_canvas_print(canvas, sequences(w));
    return write_all(drawing->str, drawing->len);
}

/* ---- */

static int read_wish(char **argv, struct wish *ret)
{
    static const char *const kinds[] = {"blocks", "sixel", "kitty"};
    unsigned *const numbers[] = {&ret->depth, &ret->columns, &ret->rows, &ret->cell_width,
                                 &ret->cell_height};

    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(argv[1], kinds[i]) == 0)
            ret->kind = i;
    }
    for (unsigned i = 0; i < 5; i++) {
        unsigned long n = strtoul(argv[2 + i], NULL, 10);
        if (n > 1000 || (i > 0 && n == 0))
            return -1;
        *numbers[i] = (unsigned)n;
    }
    return 0;
}

static size_t read_all(uint8_t *data, size_t max)
{
    size_t len = 0;

    for (ssize_t n; len < max && (n = read(0, data + len, max - len)) > 0;)
        len += (size_t)n;
    return len;
}

int main(int argc, char **argv)
{
    struct wish wish = {0};
    struct pixels pixels = {0};
    static uint8_t data[BYTES_MAX];

    if (argc != 7 || read_wish(argv, &wish) < 0) {
        fprintf(stderr, "retort-draw is started by retort, for pictures\n");
        return 2;
    }
    chafa_set_n_threads(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || limit() < 0 || confine() < 0)
        return 3;
    if (decode(data, read_all(data, BYTES_MAX), &pixels) < 0 || draw(&wish, &pixels) < 0)
        _exit(1);
    _exit(0);
}
