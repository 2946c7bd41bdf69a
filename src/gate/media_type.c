/* media_type: which type a file has by its name, as an analyst's workspace has them. See headers.h.
 *
 * Never by its contents: a guest writes them. Whoever serves them says "nosniff", and as attachments or
 * in a sandbox: a page or an SVG of a guest must not run as ours.
 */
#include <stdlib.h>
#include <string.h>

#include "gate/headers.h"
#include "gate/syntax.h"

#define EXTENSION_LONGEST 7
#define TEXT(type) "text/" type "; charset=utf-8"
#define OFFICE "application/vnd.openxmlformats-officedocument."
#define OPEN_DOCUMENT "application/vnd.oasis.opendocument."

/* Sorted: it is searched by halves. XML and JSON say themselves which characters they are in. */
static const struct {
    const char *extension, *type;
} table[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"arrow", "application/vnd.apache.arrow.file"},
    {"arrows", "application/vnd.apache.arrow.stream"},
    {"avi", "video/x-msvideo"},
    {"avif", "image/avif"},
    {"avro", "application/avro"},
    {"bib", TEXT("x-bibtex")},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"c", TEXT("x-c")},
    {"cfg", TEXT("plain")},
    {"conf", TEXT("plain")},
    {"cpp", TEXT("x-c")},
    {"css", TEXT("css")},
    {"csv", TEXT("csv")},
    {"db", "application/vnd.sqlite3"},
    {"diff", TEXT("x-diff")},
    {"doc", "application/msword"},
    {"docx", OFFICE "wordprocessingml.document"},
    {"eml", "message/rfc822"},
    {"eps", "application/postscript"},
    {"epub", "application/epub+zip"},
    {"feather", "application/vnd.apache.arrow.file"},
    {"flac", "audio/flac"},
    {"geojson", "application/geo+json"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h", TEXT("x-c")},
    {"h5", "application/x-hdf5"},
    {"hdf", "application/x-hdf5"},
    {"hdf5", "application/x-hdf5"},
    {"htm", TEXT("html")},
    {"html", TEXT("html")},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", TEXT("calendar")},
    {"ini", TEXT("plain")},
    {"ipynb", "application/x-ipynb+json"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", TEXT("javascript")},
    {"json", "application/json"},
    {"jsonl", "application/x-ndjson"},
    {"kml", "application/vnd.google-earth.kml+xml"},
    {"log", TEXT("plain")},
    {"m4a", "audio/mp4"},
    {"md", TEXT("markdown")},
    {"mjs", TEXT("javascript")},
    {"mkv", "video/x-matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"nc", "application/netcdf"},
    {"ndjson", "application/x-ndjson"},
    {"npy", "application/x-npy"},
    {"npz", "application/x-npz"},
    {"odp", OPEN_DOCUMENT "presentation"},
    {"ods", OPEN_DOCUMENT "spreadsheet"},
    {"odt", OPEN_DOCUMENT "text"},
    {"ogg", "audio/ogg"},
    {"opus", "audio/ogg"},
    {"orc", "application/vnd.apache.orc"},
    {"otf", "font/otf"},
    {"parquet", "application/vnd.apache.parquet"},
    {"patch", TEXT("x-diff")},
    {"pdf", "application/pdf"},
    {"pickle", "application/x-python-pickle"},
    {"pkl", "application/x-python-pickle"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", OFFICE "presentationml.presentation"},
    {"ps", "application/postscript"},
    {"py", TEXT("x-python")},
    {"r", TEXT("x-r-source")},
    {"rar", "application/vnd.rar"},
    {"rst", TEXT("x-rst")},
    {"rtf", "application/rtf"},
    {"sh", TEXT("x-shellscript")},
    {"sql", TEXT("x-sql")},
    {"sqlite", "application/vnd.sqlite3"},
    {"sqlite3", "application/vnd.sqlite3"},
    {"svg", "image/svg+xml"},
    {"tab", TEXT("tab-separated-values")},
    {"tar", "application/x-tar"},
    {"tex", TEXT("x-tex")},
    {"tgz", "application/gzip"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"tsv", TEXT("tab-separated-values")},
    {"ttf", "font/ttf"},
    {"txt", TEXT("plain")},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsm", "application/vnd.ms-excel.sheet.macroEnabled.12"},
    {"xlsx", OFFICE "spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xsd", "application/xml"},
    {"xsl", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

static int compare(const void *extension, const void *row)
{
    return strcmp(extension, *(const char *const *)row);
}

const char *header_media_type(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const char *const *row = NULL;
    char extension[EXTENSION_LONGEST + 1];

    if (dot && dot != name && strlen(dot + 1) <= EXTENSION_LONGEST) { /* ".csv" is a hidden file */
        for (size_t i = 0; i <= strlen(dot + 1); i++)
            extension[i] = syntax_lower(dot[1 + i]);
        row =
            bsearch(extension, table, sizeof(table) / sizeof(table[0]), sizeof(table[0]), compare);
    }
    return row ? row[1] : "application/octet-stream";
}
