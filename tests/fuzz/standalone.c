/* Runs a fuzz target over files, without libFuzzer: so that seeds and old finds are part of the
 * ordinary tests, with any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_file(const char *path)
{
    cleanup_buf struct buf b = {0};
    size_t n;

    FILE *f = fopen(path, "rb");
    if (!f)
        bug("cannot open %s", path);
    while ((n = fread(buf_room(&b, 4096), 1, 4096, f)) > 0)
        b.len += n;
    fclose(f);
    LLVMFuzzerTestOneInput((const uint8_t *)b.data, b.len);
}

int main(int argc, char **argv)
{
    unsigned files = 0;

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        struct dirent *entry;
        if (!dir)
            bug("cannot open %s", argv[i]);
        while ((entry = readdir(dir))) {
            if (entry->d_name[0] == '.')
                continue;
            cleanup_free char *path = xasprintf("%s/%s", argv[i], entry->d_name);
            run_file(path);
            files++;
        }
        closedir(dir);
    }
    printf("%u inputs\n", files);
    return files ? 0 : 1;
}
