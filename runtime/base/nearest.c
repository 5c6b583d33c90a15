/* nearest.c - did you mean: the optimal string alignment distance
 * (Damerau-Levenshtein with each part edited at most once). */
#include <string.h>

#include "runtime/base/diag.h"

enum {
    LONGEST = 64 /* names beyond this are not guessed */
};

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours from a to b. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][LONGEST + 1];
    size_t *prev2 = rows[0], *prev = rows[1], *row = rows[2];

    for (size_t j = 0; j <= nb; j++) {
        prev[j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t *free_row = prev2;

        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t d = prev[j - 1] + (a[i - 1] != b[j - 1]);

            d = min(d, min(prev[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1]) {
                d = min(d, prev2[j - 2] + 1);
            }
            row[j] = d;
        }
        prev2 = prev;
        prev = row;
        row = free_row;
    }
    return prev[nb];
}

const char *tl_nearest(const char *word, const char *const *candidates,
                       size_t n)
{
    size_t len = strlen(word);
    size_t best = len / 3 > 0 ? len / 3 : 1;
    const char *res = NULL;

    if (len == 0 || len > LONGEST) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        size_t m = strlen(candidates[i]);
        size_t d;

        if (m > LONGEST || m > len + best || len > m + best) {
            continue;
        }
        d = distance(word, len, candidates[i], m);
        /* something must remain: `x` does not suggest `y` */
        if (d < (len > m ? len : m) && (d < best || (d == best && !res))) {
            best = d;
            res = candidates[i];
        }
    }
    return res;
}
