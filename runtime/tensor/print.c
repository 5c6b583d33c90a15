/* print.c - text of tensors and shortest text of numbers.
 *
 * A tensor is walked twice: once over the elements that will be shown, for
 * their format and width, and once to write them. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/tensor/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 80, FULL_UP_TO = 100, MAX_TEXT = 40 };

/* ---- shortest numbers --------------------------------------------------- */

/* Does the decimal text read back to the value, in its dtype? */
static bool reads_back(const char *s, double value, tl_dtype dtype)
{
    switch (dtype) {
    case TL_f64:
        return strtod(s, NULL) == value;
    case TL_f16:
        return (double)tl_f16_to_f32(tl_f32_to_f16(strtof(s, NULL))) == value;
    case TL_bf16:
        return (double)tl_bf16_to_f32(tl_f32_to_bf16(strtof(s, NULL))) ==
               value;
    default:
        return (double)strtof(s, NULL) == value;
    }
}

/* The digits of a finite value != 0: no point, no trailing zeros; its decimal
 * exponent (of the first digit). */
static int shortest_digits(double value, tl_dtype dtype, char digits[24])
{
    char text[MAX_TEXT];
    size_t n = 0;

    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, fabs(value));
        if (reads_back(text, fabs(value), dtype)) {
            break;
        }
    }
    for (const char *p = text; *p != 'e'; p++) {
        if (*p != '.') {
            digits[n++] = *p;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    digits[n] = '\0';
    return (int)strtol(strchr(text, 'e') + 1, NULL, 10);
}

/* nan, inf and -inf; false for finite values. */
static bool put_special(double value, tl_buf *out)
{
    if (isnan(value)) {
        tl_buf_puts(out, "nan");
    } else if (isinf(value)) {
        tl_buf_puts(out, value > 0 ? "inf" : "-inf");
    } else {
        return false;
    }
    return true;
}

/* Digits with a point after the first `whole` of them, zeros where needed. */
static void put_positional(const char *digits, int whole, tl_buf *out)
{
    int n = (int)strlen(digits);

    if (whole <= 0) {
        tl_buf_puts(out, "0.");
        for (int i = whole; i < 0; i++) {
            tl_buf_putc(out, '0');
        }
        tl_buf_puts(out, digits);
        return;
    }
    for (int i = 0; i < whole || i < n; i++) {
        if (i == whole) {
            tl_buf_putc(out, '.');
        }
        tl_buf_putc(out, i < n ? digits[i] : '0');
    }
    if (n <= whole) {
        tl_buf_puts(out, ".0");
    }
}

/* As Python's repr: an exponent below 1e-4 and from 1e16 on. */
static void print_shortest(double value, tl_dtype dtype, tl_buf *out)
{
    char digits[24] = "0";
    int exponent = 0;

    if (put_special(value, out)) {
        return;
    }
    if (signbit(value)) {
        tl_buf_putc(out, '-');
    }
    if (value != 0) {
        exponent = shortest_digits(value, dtype, digits);
    }
    if (exponent >= -4 && exponent < 16) {
        put_positional(digits, exponent + 1, out);
        return;
    }
    tl_buf_putc(out, digits[0]);
    if (digits[1] != '\0') {
        tl_buf_printf(out, ".%s", digits + 1);
    }
    tl_buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

void tl_print_f64(double value, tl_buf *out)
{
    print_shortest(value, TL_f64, out);
}

void tl_print_f32(float value, tl_buf *out)
{
    print_shortest((double)value, TL_f32, out);
}

/* ---- one format for a tensor -------------------------------------------- */

typedef enum style { WHOLE, FIXED, EXPONENT } style;

typedef struct printer {
    const tl_tensor *t;
    tl_buf *out; /* NULL: measuring */
    bool summary;
    style style;
    int width;
    /* of the elements shown, while measuring */
    double largest, smallest; /* of finite |x| != 0 */
    bool whole;
} printer;

/* Text of element `index` in the printer's style; its length. */
static int element_text(const printer *p, int64_t index, char text[MAX_TEXT])
{
    double v;

    if (p->t->dtype == TL_bool) {
        return snprintf(text, MAX_TEXT, "%s",
                        tl_tensor_get_i(p->t, index) ? "true" : "false");
    }
    if (!tl_dtype_is_float(p->t->dtype)) {
        return snprintf(text, MAX_TEXT, "%" PRId64,
                        tl_tensor_get_i(p->t, index));
    }
    v = tl_tensor_get_f(p->t, index);
    if (isnan(v)) {
        return snprintf(text, MAX_TEXT, "nan");
    }
    if (isinf(v)) {
        return snprintf(text, MAX_TEXT, v > 0 ? "inf" : "-inf");
    }
    switch (p->style) {
    case WHOLE:
        return snprintf(text, MAX_TEXT, "%.1f", v);
    case FIXED:
        return snprintf(text, MAX_TEXT, "%.4f", v);
    default:
        return snprintf(text, MAX_TEXT, "%.4e", v);
    }
}

/* First pass: range of what is shown. */
static void note_range(printer *p, int64_t index)
{
    double v;

    if (!tl_dtype_is_float(p->t->dtype)) {
        return;
    }
    v = fabs(tl_tensor_get_f(p->t, index));
    if (!isfinite(v)) {
        return;
    }
    p->whole = p->whole && v == floor(v);
    if (v != 0) {
        p->largest = v > p->largest ? v : p->largest;
        p->smallest = v < p->smallest ? v : p->smallest;
    }
}

/* Second pass: the width of the widest. */
static void note_width(printer *p, int64_t index)
{
    char text[MAX_TEXT];
    int n = element_text(p, index, text);

    p->width = n > p->width ? n : p->width;
}

/* Elements shown at each end of `axis`; false when all are. */
static bool shortened(const printer *p, int axis, int64_t *front,
                      int64_t *back)
{
    int64_t edge = p->t->rank <= 2 ? 3 : 2;

    *front = edge;
    *back = edge;
    if (axis < p->t->rank - 4) {
        *front = 1;
        *back = 0;
    }
    return p->summary && p->t->size[axis] > *front + *back;
}

/* Call `fn` for each shown element below (axis, first), in order. */
static void each_shown(printer *p, int axis, int64_t first,
                       void (*fn)(printer *, int64_t))
{
    int64_t front, back, step = 1;
    bool cut;

    if (axis == p->t->rank) {
        fn(p, first);
        return;
    }
    for (int i = axis + 1; i < p->t->rank; i++) {
        step *= p->t->size[i];
    }
    cut = shortened(p, axis, &front, &back);
    for (int64_t i = 0; i < p->t->size[axis]; i++) {
        if (cut && i == front) {
            i = p->t->size[axis] - back;
        }
        if (i < p->t->size[axis]) {
            each_shown(p, axis + 1, first + i * step, fn);
        }
    }
}

static void choose_style(printer *p)
{
    p->largest = 0;
    p->smallest = HUGE_VAL;
    p->whole = true;
    each_shown(p, 0, 0, note_range);
    if (p->largest == 0) {
        p->style = WHOLE;
    } else if (p->whole) {
        p->style = p->largest > 1e8 ? EXPONENT : WHOLE;
    } else {
        p->style = p->largest / p->smallest > 1000 || p->largest > 1e8 ||
                           p->smallest < 1e-4
                       ? EXPONENT
                       : FIXED;
    }
    each_shown(p, 0, 0, note_width);
}

/* ---- layout ------------------------------------------------------------- */

static void newline(const printer *p, int breaks, int indent)
{
    for (int i = 0; i < breaks; i++) {
        tl_buf_putc(p->out, '\n');
    }
    tl_buf_printf(p->out, "%*s", indent, "");
}

static void put_element(const printer *p, int64_t index)
{
    char text[MAX_TEXT];

    element_text(p, index, text);
    tl_buf_printf(p->out, "%*s", p->width, text);
}

/* A row along the last axis, wrapped; the cursor is behind its bracket. */
static void put_row(const printer *p, int64_t first)
{
    int axis = p->t->rank - 1;
    int64_t n = p->t->size[axis], front, back;
    bool cut = shortened(p, axis, &front, &back);
    int column = axis + 1;

    for (int64_t i = 0; i < n; i++) {
        bool dots = cut && i == front;
        int width = dots ? 3 : p->width;

        if (i > 0) {
            tl_buf_putc(p->out, ',');
            if (column + 1 + width + 1 >= LINE_WIDTH) {
                newline(p, 1, axis + 1);
                column = axis + 1;
            } else {
                tl_buf_putc(p->out, ' ');
                column += 2;
            }
        }
        if (dots) {
            tl_buf_puts(p->out, "...");
            i = n - back - 1;
        } else {
            put_element(p, first + i);
        }
        column += width;
    }
}

static void put_axis(const printer *p, int axis, int64_t first)
{
    int64_t front, back, step = 1;
    bool cut;

    if (axis == p->t->rank - 1) {
        tl_buf_putc(p->out, '[');
        put_row(p, first);
        tl_buf_putc(p->out, ']');
        return;
    }
    for (int i = axis + 1; i < p->t->rank; i++) {
        step *= p->t->size[i];
    }
    cut = shortened(p, axis, &front, &back);
    tl_buf_putc(p->out, '[');
    for (int64_t i = 0; i < p->t->size[axis]; i++) {
        if (i > 0) {
            tl_buf_putc(p->out, ',');
            newline(p, p->t->rank - 1 - axis, axis + 1);
        }
        if (cut && i == front) {
            tl_buf_puts(p->out, "...");
            i = p->t->size[axis] - back - 1;
        } else {
            put_axis(p, axis + 1, first + i * step);
        }
    }
    tl_buf_putc(p->out, ']');
}

/* ---- the line under a summary ------------------------------------------- */

static void put_stat(const char *name, double value, tl_buf *out)
{
    tl_buf_printf(out, "%s ", name);
    if (!put_special(value, out)) {
        tl_buf_printf(out, "%.6g", value);
    }
    tl_buf_puts(out, ", ");
}

static void put_float_stats(const tl_tensor *t, tl_buf *out)
{
    double min = (double)NAN, max = (double)NAN, sum = 0;
    int64_t nans = 0;

    for (int64_t i = 0; i < t->numel; i++) {
        double v = tl_tensor_get_f(t, i);

        if (isnan(v)) {
            nans++;
            continue;
        }
        min = v >= min ? min : v;
        max = v <= max ? max : v;
        sum += v;
    }
    put_stat("min", min, out);
    put_stat("mean", sum / (double)(t->numel - nans), out);
    put_stat("max", max, out);
    tl_buf_printf(out, "nan %" PRId64, nans);
}

static void put_int_stats(const tl_tensor *t, tl_buf *out)
{
    int64_t min = INT64_MAX, max = INT64_MIN;
    double sum = 0;

    for (int64_t i = 0; i < t->numel; i++) {
        int64_t v = tl_tensor_get_i(t, i);

        min = v < min ? v : min;
        max = v > max ? v : max;
        sum += (double)v;
    }
    tl_buf_printf(out, "min %" PRId64 ", mean %.6g, max %" PRId64, min,
                  sum / (double)t->numel, max);
}

static void put_stats(const tl_tensor *t, tl_buf *out)
{
    tl_ttype type;
    int64_t count = 0;

    tl_tensor_shown_type(t, &type);
    tl_buf_putc(out, '\n');
    tl_ttype_print(&type, out);
    tl_buf_puts(out, ": ");
    if (tl_dtype_is_float(t->dtype)) {
        put_float_stats(t, out);
    } else if (t->dtype != TL_bool) {
        put_int_stats(t, out);
    } else {
        for (int64_t i = 0; i < t->numel; i++) {
            count += tl_tensor_get_i(t, i);
        }
        tl_buf_printf(out, "%" PRId64 " of %" PRId64 " true", count,
                      t->numel);
    }
}

/* ---- whole tensors ------------------------------------------------------ */

static void print_scalar(const tl_tensor *t, tl_buf *out)
{
    char text[MAX_TEXT];
    printer p = {.t = t};

    if (tl_dtype_is_float(t->dtype)) {
        print_shortest(tl_tensor_get_f(t, 0), tl_tensor_shown(t), out);
    } else {
        element_text(&p, 0, text);
        tl_buf_puts(out, text);
    }
}

void tl_tensor_print(const tl_tensor *t, bool full, tl_buf *out)
{
    printer p = {.t = t,
                 .out = out,
                 .summary = !full && t->numel > FULL_UP_TO};
    tl_ttype type;

    if (t->rank == 0) {
        print_scalar(t, out);
    } else if (t->numel == 0) {
        tl_buf_puts(out, "[]");
        if (t->rank > 1) {
            tl_tensor_type(t, &type);
            tl_buf_putc(out, ' ');
            tl_ttype_print(&type, out);
        }
    } else {
        choose_style(&p);
        put_axis(&p, 0, 0);
        if (p.summary) {
            put_stats(t, out);
        }
    }
}
