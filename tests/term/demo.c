/* demo: a fixed conversation on the stage, to look at. tools/screenshot makes a picture of it.
 *
 *     demo FIGURE.png [STEP]      with STEP it stops there, with what is waited for on its line
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/stage.h"
#include "session/cell.h"

static struct outlet out;
static struct stage *stage;
static const struct agent_view *view;
static unsigned step, last_step = 1000;

static void pause_ms(unsigned ms)
{
    for (unsigned i = 0; i <= ms / 100; i++) {
        view->tick(view->ctx);
        outlet_flush(&out);
        usleep((ms < 100 ? ms : 100) * 1000);
    }
}

/* A text as models send it: in pieces. */
static void in_pieces(const char *text, bool code)
{
    for (size_t n; *text; text += n) {
        n = strlen(text) < 7 ? strlen(text) : 7;
        if (code)
            view->code(view->ctx, 0, text, n);
        else
            view->text(view->ctx, text, n);
        outlet_flush(&out);
        usleep(2000);
    }
}

static void stop_here(void)
{
    if (++step < last_step)
        return;
    for (;;)
        pause_ms(1000);
}

static void cell(const char *code, const char *text, struct output *shown, struct cell *c,
                 bool undone)
{
    in_pieces(code, true);
    stop_here();
    view->replied(view->ctx);
    view->running(view->ctx, code);
    stop_here();
    if (text)
        view->output(view->ctx, OUTPUT_STDOUT, text, strlen(text));
    if (shown)
        view->display(view->ctx, shown);
    c->undone = undone;
    view->ran(view->ctx, c);
    outlet_flush(&out);
}

static struct output picture_of(const char *path, struct mime_part *part)
{
    FILE *f = fopen(path, "rb");
    static char data[1 << 20];
    size_t n = f ? fread(data, 1, sizeof(data), f) : 0;

    if (f)
        fclose(f);
    *part = (struct mime_part){.type = (char *)"image/png", .data = data, .len = n};
    return (struct output){.kind = OUTPUT_DISPLAY, .parts = part, .n_parts = 1};
}

static void first_cell(void)
{
    static const char traceback[] =
        "---------------------------------------------------------------------------\n"
        "KeyError                                  Traceback (most recent call last)\n"
        "Cell In[1], line 4\n"
        "      1 import pandas as pd\n"
        "      3 sales = pd.read_csv(\"sales.csv\")\n"
        "----> 4 sales.groupby(\"town\")[\"amount\"].sum().nlargest(5)\n\n"
        "File /usr/lib/python3/dist-packages/pandas/core/frame.py:8402, in "
        "DataFrame.groupby(self)\n"
        "   8399     raise TypeError(\"You have to supply one of 'by' and 'level'\")\n"
        "   8400 axis = self._get_axis_number(axis)\n"
        "-> 8402 return DataFrameGroupBy(\n"
        "   8403     obj=self,\n   8404     keys=by,\n\nKeyError: 'town'\n";
    struct cell c = {.status = CELL_FAILED,
                     .error = {(char *)"KeyError", (char *)"'town'", (char *)traceback}};

    view->asking(view->ctx);
    pause_ms(300);
    stop_here();
    in_pieces("I'll load the file and add up the sales of each city.\n\n", false);
    cell("import pandas as pd\n\nsales = pd.read_csv(\"sales.csv\")   # 12,000 rows\n"
         "sales.groupby(\"town\")[\"amount\"].sum().nlargest(5)",
         NULL, NULL, &c, true);
}

static void second_cell(const char *figure)
{
    struct mime_part part;
    struct output shown = picture_of(figure, &part);
    struct file_note files[] = {{.path = (char *)"top5.csv", .size = 181},
                                {.path = (char *)"sales.png", .size = 45512}};
    struct cell c = {.status = CELL_OK, .files = files, .n_files = 2};

    view->asking(view->ctx);
    pause_ms(200);
    in_pieces("The column is called `city`. Once more:\n\n", false);
    cell("by_city = sales.groupby(\"city\")[\"amount\"].agg([\"sum\", \"mean\", \"count\"])\n"
         "top = by_city.nlargest(5, \"sum\")\n\n"
         "def share(x: float) -> str:\n"
         "    \"\"\"As a percentage of all sales.\"\"\"\n"
         "    return f\"{100 * x / by_city['sum'].sum():.1f} %\"\n\n"
         "print(top.assign(share=top[\"sum\"].map(share)).round(2))\n"
         "top.to_csv(\"top5.csv\")\n"
         "top[\"sum\"].plot.bar(title=\"Sales by city\").figure.savefig(\"sales.png\")\n",
         "             sum    mean  count   share\ncity                                   \n"
         "Paris  524310.25  212.70   2465  31.4 %\nLyon   402118.00  198.19   2029  24.1 %\n"
         "Nice   331870.75  187.82   1767  19.9 %\nLille  211040.50  171.30   1232  12.6 %\n"
         "Metz   120775.00  164.77    733   7.2 %\n",
         &shown, &c, false);
}

static void answer(void)
{
    static const char text[] =
        "## Five cities make 95 % of the sales\n\n"
        "**Paris** sells most, with a third of everything; the *average* sale is highest there "
        "too.\n\n"
        "| City | Sales | Average | Share |\n|---|---|---|---|\n"
        "| Paris | 524,310.25 | 212.70 | 31.4 % |\n| Lyon | 402,118.00 | 198.19 | 24.1 % |\n"
        "| Nice | 331,870.75 | 187.82 | 19.9 % |\n| Lille | 211,040.50 | 171.30 | 12.6 % |\n"
        "| Metz | 120,775.00 | 164.77 | 7.2 % |\n\n"
        "1. The order is the same by number of sales.\n"
        "2. Two things to know:\n"
        "   - rows without a city (14) were left out;\n"
        "   - amounts are in euros, as in [the catalogue](https://example.org/catalogue).\n\n"
        "> The figures of December are not complete yet.\n\n"
        "To see the next five:\n\n```python\nby_city.nlargest(10, \"sum\").tail(5)\n```\n";

    view->asking(view->ctx);
    pause_ms(300);
    in_pieces(text, false);
    stop_here();
    view->replied(view->ctx);
    stage_answer(stage, text);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (argc > 2)
        last_step = (unsigned)atoi(argv[2]);
    outlet_init(&out);
    stage = stage_new(&out, false);
    view = stage_view(stage);
    first_cell();
    second_cell(argv[1]);
    answer();
    stage_free(stage);
    outlet_flush(&out);
    outlet_done(&out);
    return 0;
}
