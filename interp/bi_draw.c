/* bi_draw.c - files.draw(path, width, height, shapes): the shapes are tuples
 *
 *   ("rect", x, y, w, h, color)
 *   ("line", xs, ys, width, color)            f64[n] each
 *   ("text", x, y, text, size, align, angle, color)
 *   ("image", x, y, scale, pixels)            u8[H, W, 3]
 *
 * with colors as "#rrggbb".  What they mean is in runtime/io/draw.h. */
#include <limits.h>
#include <string.h>

#include "interp/builtin_fns.h"
#include "interp/eval_impl.h"
#include "runtime/base/mem.h"
#include "runtime/io/draw.h"
#include "runtime/io/file.h"

/* One shape while it is read; the first fault stays. */
typedef struct reader {
    tl_eval *ev;
    const tl_seq *items;
    size_t at;
    tl_status st;
} reader;

static void wrong(reader *r, const char *wanted)
{
    if (r->st == TL_OK) {
        r->st = tl_fail(r->ev->diag, TL_E0210,
                        "item %zu of a shape is %s, got %s", r->at, wanted,
                        r->at < r->items->len
                            ? tl_value_type_str(r->items->items[r->at]).s
                            : "nothing");
    }
}

/* The next item, or none where the shape is too short. */
static tl_value next(reader *r)
{
    return r->at < r->items->len ? r->items->items[r->at] : tl_none();
}

static double number(reader *r)
{
    tl_value v = next(r);

    if (!tl_is_number(v)) {
        wrong(r, "a number");
    }
    r->at++;
    return tl_is_number(v) ? tl_number_f(v) : 0;
}

static const char *text(reader *r)
{
    tl_value v = next(r);

    if (v.tag != TL_V_STR) {
        wrong(r, "a str");
    }
    r->at++;
    return v.tag == TL_V_STR ? v.str->data : "";
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static tl_color color(reader *r)
{
    const char *s = text(r);
    int v[6], n = 0;

    while (s[0] == '#' && n < 6 && hex(s[1 + n]) >= 0) {
        v[n] = hex(s[1 + n]);
        n++;
    }
    if (n < 6 || s[7] != '\0') {
        r->at--;
        wrong(r, "a color \"#rrggbb\"");
        r->at++;
        return (tl_color){0, 0, 0};
    }
    return (tl_color){(16 * v[0] + v[1]) / 255.0, (16 * v[2] + v[3]) / 255.0,
                      (16 * v[4] + v[5]) / 255.0};
}

/* The elements of a tensor of this type in row-major order, for tl_free;
 * NULL, with the fault in `r`, for another value. */
static void *elements(reader *r, tl_dtype dtype, int rank, const char *wanted,
                      const tl_tensor **out)
{
    tl_value v = next(r);
    void *copy = NULL;

    if (v.tag != TL_V_TENSOR || v.tensor->dtype != dtype ||
        v.tensor->rank != rank) {
        wrong(r, wanted);
    } else {
        size_t bytes = (size_t)v.tensor->numel * tl_dtype_size(dtype);

        *out = v.tensor;
        copy = tl_malloc(bytes + 1);
        if (copy == NULL) {
            r->st = tl_fail_memory(r->ev->diag, "a shape", bytes);
        } else if (bytes > 0) {
            tl_tensor_read(v.tensor, copy);
        }
    }
    r->at++;
    return copy;
}

static void draw_line(reader *r, tl_page *page)
{
    const tl_tensor *tx = NULL, *ty = NULL;
    double *x = elements(r, TL_f64, 1, "f64[n]", &tx);
    double *y = elements(r, TL_f64, 1, "f64[n]", &ty);
    double width = number(r);
    tl_color c = color(r);

    if (r->st == TL_OK && tx->numel != ty->numel) {
        r->st = tl_fail(r->ev->diag, TL_E0304, "a line has %lld x and %lld y",
                        (long long)tx->numel, (long long)ty->numel);
    }
    if (r->st == TL_OK) {
        tl_page_line(page, x, y, (size_t)tx->numel, width, c);
    }
    tl_free(x);
    tl_free(y);
}

static void draw_image(reader *r, tl_page *page)
{
    double x = number(r), y = number(r), scale = number(r);
    const tl_tensor *t = NULL;
    uint8_t *rgb = elements(r, TL_u8, 3, "u8[H, W, 3]", &t);

    if (r->st == TL_OK &&
        (t->size[2] != 3 || t->numel == 0 || t->size[0] > 8192 ||
         t->size[1] > 8192 || !(scale > 0))) {
        r->st = tl_fail(r->ev->diag, TL_E0304, "an image is u8[H, W, 3] of 1 "
                        "to 8192 rows and columns with a scale above 0");
    }
    if (r->st == TL_OK) {
        r->st = tl_page_image(page, x, y, scale, rgb, (int)t->size[1],
                              (int)t->size[0], r->ev->diag);
    }
    tl_free(rgb);
}

static tl_status draw_shape(tl_eval *ev, tl_value shape, tl_page *page)
{
    reader r = {.ev = ev, .at = 1, .st = TL_OK};

    if (shape.tag != TL_V_TUPLE || shape.seq->len == 0 ||
        shape.seq->items[0].tag != TL_V_STR) {
        return tl_fail(ev->diag, TL_E0210,
                       "a shape is a tuple (\"rect\", ...), got %s",
                       tl_value_type_str(shape).s);
    }
    r.items = shape.seq;
    const char *kind = shape.seq->items[0].str->data;

    if (strcmp(kind, "rect") == 0) {
        double x = number(&r), y = number(&r), w = number(&r), h = number(&r);
        tl_color c = color(&r);

        tl_page_rect(page, x, y, w, h, c);
    } else if (strcmp(kind, "text") == 0) {
        double x = number(&r), y = number(&r);
        const char *s = text(&r);
        double size = number(&r), align = number(&r), angle = number(&r);
        tl_color c = color(&r);

        tl_page_text(page, x, y, s, size, align, angle, c);
    } else if (strcmp(kind, "line") == 0) {
        draw_line(&r, page);
    } else if (strcmp(kind, "image") == 0) {
        draw_image(&r, page);
    } else {
        return tl_fail(ev->diag, TL_E0416,
                       "shapes are rect, line, text and image");
    }
    return r.st;
}

static int side(int64_t n)
{
    return n < INT_MIN ? INT_MIN : n > INT_MAX ? INT_MAX : (int)n;
}

tl_status tl_bi_files_draw(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    const tl_seq *shapes = args[3].seq;
    tl_page *page;
    tl_status st;

    (void)self;
    TL_TRY(tl_path_check(args[0].str->data, args[0].str->len, ev->diag));
    TL_TRY(tl_page_new(&page, args[0].str->data, side(args[1].i),
                       side(args[2].i), ev->diag));
    st = TL_OK;
    for (size_t i = 0; i < shapes->len && st == TL_OK; i++) {
        st = draw_shape(ev, shapes->items[i], page);
    }
    if (st == TL_OK) {
        st = tl_page_write(page, ev->diag);
    }
    tl_page_free(page);
    if (st == TL_OK) {
        *out = tl_none();
    }
    return st;
}
