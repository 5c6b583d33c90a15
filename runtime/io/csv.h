/* csv.h - tables of numbers in text files.
 *
 * RFC 4180 cells, quoted or not; CRLF or LF; a byte-order mark, blank lines
 * and lines that start with `#` are passed over.  Every cell is a decimal
 * number, nan or inf.  A first line of which no cell is a number is a header
 * of names.  Files may be gzipped (file.h). */
#ifndef TL_IO_CSV_H
#define TL_IO_CSV_H

#include "runtime/base/arena.h"
#include "runtime/tensor/tensor.h"

typedef struct tl_csv_options {
    tl_dtype dtype; /* TL_f32 or TL_f64 */
    char delimiter; /* 0: the first of , ; tab that the first line has */
} tl_csv_options;

typedef struct tl_csv {
    tl_tensor *values;  /* [rows, columns] */
    const char **names; /* of the columns, or NULL: no header */
    int64_t columns;
    tl_arena arena; /* the names */
} tl_csv;

/* Read a table.  E0701, E0711 (gzip), E0712 with line and column. */
TL_MUST_USE tl_status tl_csv_read(tl_csv *out, const char *path,
                                  const tl_csv_options *options,
                                  tl_pool *pool, tl_diag *diag);
void tl_csv_fini(tl_csv *csv);

/* A decimal number, nan or inf, with blanks around it, in s[0 .. len): the
 * nearest double.  False if it is none.  s[len] must be readable and no part
 * of a number. */
bool tl_parse_number(const char *s, size_t len, double *out);

#endif
