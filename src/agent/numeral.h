/* numeral: how numbers are written, by people and by programs.
 *
 * What is written can often be read in two ways ("1.234" is a bit more than one, or more than a thousand), so
 * the scanners give all of them. Text is any bytes between two pointers, and each scanner takes time in
 * proportion to what it consumes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NUMERAL_GROUPS 16

struct numeral {
    const char *end; /* behind it */
    struct {
        double value;
        int decimals; /* digits behind the point; with an exponent, less of them or more */
        int zeros;    /* at its end, before the point, where it has no decimals */
    } readings[2];
    unsigned n_readings; /* 0: digits with dots that are no number, as a version */
    bool whole;          /* nothing but digits */
    struct {
        const char *at;
        size_t len;
    } groups[NUMERAL_GROUPS]; /* its runs of digits */
    unsigned n_groups;
};

/* What begins with the digit at `at`, or with its point (".5"). */
void numeral_scan(const char *at, const char *end, struct numeral *ret);

/* What stands behind a number and says how large it is. */
struct suffix {
    const char *end;
    enum {
        SUFFIX_NONE,
        SUFFIX_PERCENT,
        SUFFIX_SCALE,   /* "million", "k", "MB" */
        SUFFIX_TIMES,   /* "2.5x" */
        SUFFIX_ORDINAL, /* "3rd" */
    } kind;
    double scale, other_scale; /* of SUFFIX_SCALE; the other is 1024 for 1000, or the same */
};
void suffix_scan(const char *at, const char *end, struct suffix *ret);

/* What stands before it. */
struct before {
    const char *at; /* where the sign or the currency begins, or the number itself */
    bool negative, currency;
};
void before_scan(const char *begin, const char *at, struct before *ret);
/* Behind it: "5 €", "5 EUR". */
bool is_currency(const char *at, const char *end);

/* ---- characters ---- */

bool is_digit(char c);
size_t digits_len(const char *at, const char *end);
bool starts_number(const char *at, const char *end); /* also with its point */
bool is_ascii_letter(char c);
/* ASCII, or Latin, Greek or Cyrillic: of what words and identifiers are made. *ret_len: its bytes. Others are not:
 * in Chinese, numbers stand between the characters. */
bool is_letter(const char *at, const char *end, size_t *ret_len);
bool has_word(const char *at, const char *end, const char *word); /* here, in any case, and whole */
/* Does the text go on with these bytes? */
bool has_text(const char *at, const char *end, const char *text);
/* Bytes of the blank here that does not end a line: also those that Unicode has. */
size_t blank_len(const char *at, const char *end);
size_t dash_len(const char *at, const char *end);
/* Where the first of these texts (NULL ends them) begins that stands right before `at`; or `at`. */
const char *before_any(const char *begin, const char *at, const char *const *list);
