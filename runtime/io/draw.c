/* draw.c - pictures by cairo; without it, an error that says so. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/io/draw.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "runtime/io/file.h"

#ifdef HAVE_CAIRO
#include <cairo/cairo-svg.h>
#include <cairo/cairo.h>
#include <dlfcn.h>

#include "runtime/base/buf.h"
#include "runtime/base/mem.h"

#define MAX_SIDE 8192

/* Looked up in the library at each page: linked, it and the thirty libraries
 * behind it would be loaded at each start of the program. */
#define CALLS(X)                                                             \
    X(create)                                                                \
    X(destroy)                                                               \
    X(fill)                                                                  \
    X(get_source)                                                            \
    X(image_surface_create)                                                  \
    X(image_surface_get_data)                                                \
    X(image_surface_get_stride)                                              \
    X(line_to)                                                               \
    X(move_to)                                                               \
    X(paint)                                                                 \
    X(pattern_set_filter)                                                    \
    X(rectangle)                                                             \
    X(restore)                                                               \
    X(rotate)                                                                \
    X(save)                                                                  \
    X(scale)                                                                 \
    X(select_font_face)                                                      \
    X(set_font_size)                                                         \
    X(set_line_join)                                                         \
    X(set_line_width)                                                        \
    X(set_source_rgb)                                                        \
    X(set_source_surface)                                                    \
    X(show_text)                                                             \
    X(status)                                                                \
    X(status_to_string)                                                      \
    X(stroke)                                                                \
    X(surface_destroy)                                                       \
    X(surface_finish)                                                        \
    X(surface_flush)                                                         \
    X(surface_mark_dirty)                                                    \
    X(surface_status)                                                        \
    X(surface_write_to_png_stream)                                           \
    X(svg_surface_create_for_stream)                                         \
    X(text_extents)                                                          \
    X(translate)

typedef struct cairo_calls {
#define MEMBER(name) __typeof__(cairo_##name) *name;
    CALLS(MEMBER)
} cairo_calls;

struct tl_page {
    void *library;
    cairo_calls c;
    cairo_surface_t *surface;
    cairo_t *cr;
    tl_buf bytes; /* the file */
    const char *path;
    bool svg;
};

static cairo_status_t collect(void *closure, const unsigned char *data,
                              unsigned int n)
{
    tl_buf *bytes = closure;

    tl_buf_add(bytes, (const char *)data, n);
    return bytes->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

static tl_status load(tl_page *page, tl_diag *diag)
{
    static const struct {
        const char *name;
        size_t at;
    } calls[] = {
#define ROW(name) {"cairo_" #name, offsetof(cairo_calls, name)},
        CALLS(ROW)};

    /* Its configuration of fonts stays in memory, so it stays as well. */
    page->library =
        dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        void *call =
            page->library ? dlsym(page->library, calls[i].name) : NULL;

        if (call == NULL) {
            tl_status st = tl_fail(diag, TL_E0701,
                                   "`%s`: cairo cannot be "
                                   "loaded: %s",
                                   tl_path_str(page->path).s, dlerror());

            tl_diag_help(diag, "install libcairo2; plot.show draws in the "
                               "terminal");
            return st;
        }
        memcpy((char *)&page->c + calls[i].at, &call, sizeof(call));
    }
    return TL_OK;
}

static void unload(tl_page *page)
{
    if (page->library != NULL) {
        dlclose(page->library);
    }
    tl_buf_fini(&page->bytes);
    tl_free(page);
}

tl_status tl_page_new(tl_page **out, const char *path, int width, int height,
                      tl_diag *diag)
{
    bool svg = tl_path_ends_with(path, ".svg");
    tl_page *page;
    tl_status st;

    if (!svg && !tl_path_ends_with(path, ".png")) {
        return tl_fail(diag, TL_E0416,
                       "a picture is a .svg or a .png, got %s",
                       tl_path_str(path).s);
    }
    if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) {
        return tl_fail(diag, TL_E0416,
                       "a picture has sides of 1 to %d, got "
                       "%d and %d",
                       MAX_SIDE, width, height);
    }
    page = tl_calloc(1, sizeof(*page));
    if (page == NULL) {
        return tl_fail_memory(diag, "a picture", sizeof(*page));
    }
    tl_buf_init(&page->bytes);
    page->path = path;
    page->svg = svg;
    st = load(page, diag);
    if (st != TL_OK) {
        unload(page);
        return st;
    }
    page->surface =
        svg ? page->c.svg_surface_create_for_stream(collect, &page->bytes,
                                                    width, height)
            : page->c.image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    page->cr = page->c.create(page->surface);
    tl_page_rect(page, 0, 0, width, height, (tl_color){1, 1, 1});
    *out = page;
    return TL_OK;
}

void tl_page_free(tl_page *page)
{
    if (page != NULL) {
        page->c.destroy(page->cr);
        page->c.surface_destroy(page->surface); /* may still write to bytes */
        unload(page);
    }
}

static void set_color(tl_page *page, tl_color c)
{
    page->c.set_source_rgb(page->cr, c.r, c.g, c.b);
}

void tl_page_rect(tl_page *page, double x, double y, double w, double h,
                  tl_color color)
{
    set_color(page, color);
    page->c.rectangle(page->cr, x, y, w, h);
    page->c.fill(page->cr);
}

void tl_page_line(tl_page *page, const double *x, const double *y, size_t n,
                  double width, tl_color color)
{
    bool pen_down = false;

    set_color(page, color);
    page->c.set_line_width(page->cr, width);
    page->c.set_line_join(page->cr, CAIRO_LINE_JOIN_ROUND);
    for (size_t i = 0; i < n; i++) {
        bool seen = isfinite(x[i]) && isfinite(y[i]) && fabs(x[i]) < 1e6 &&
                    fabs(y[i]) < 1e6;

        if (seen && pen_down) {
            page->c.line_to(page->cr, x[i], y[i]);
        } else if (seen) {
            page->c.move_to(page->cr, x[i], y[i]);
        }
        pen_down = seen;
    }
    page->c.stroke(page->cr);
}

void tl_page_text(tl_page *page, double x, double y, const char *text,
                  double size, double align, double angle, tl_color color)
{
    cairo_text_extents_t e;

    set_color(page, color);
    page->c.select_font_face(page->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                             CAIRO_FONT_WEIGHT_NORMAL);
    page->c.set_font_size(page->cr, size);
    page->c.text_extents(page->cr, text, &e);
    page->c.save(page->cr);
    page->c.translate(page->cr, x, y);
    page->c.rotate(page->cr, -angle * 3.14159265358979323846 / 180);
    page->c.move_to(page->cr, -align * e.x_advance, 0);
    page->c.show_text(page->cr, text);
    page->c.restore(page->cr);
}

/* rgb to the pixels of an image surface. */
static void fill_pixels(const cairo_calls *c, cairo_surface_t *image,
                        const uint8_t *rgb, int width, int height)
{
    unsigned char *to = c->image_surface_get_data(image);
    int stride = c->image_surface_get_stride(image);

    for (int i = 0; i < height; i++) {
        for (int j = 0; j < width; j++, rgb += 3) {
            uint32_t v =
                (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];

            memcpy(to + (size_t)i * (size_t)stride + 4 * (size_t)j, &v, 4);
        }
    }
    c->surface_mark_dirty(image);
}

tl_status tl_page_image(tl_page *page, double x, double y, double scale,
                        const uint8_t *rgb, int width, int height,
                        tl_diag *diag)
{
    cairo_surface_t *image =
        page->c.image_surface_create(CAIRO_FORMAT_RGB24, width, height);

    if (page->c.surface_status(image) != CAIRO_STATUS_SUCCESS) {
        page->c.surface_destroy(image);
        return tl_fail_memory(diag, "an image",
                              (size_t)width * (size_t)height * 4);
    }
    page->c.surface_flush(image);
    fill_pixels(&page->c, image, rgb, width, height);
    page->c.save(page->cr);
    page->c.translate(page->cr, x, y);
    page->c.scale(page->cr, scale, scale);
    page->c.set_source_surface(page->cr, image, 0, 0);
    page->c.pattern_set_filter(page->c.get_source(page->cr),
                               CAIRO_FILTER_NEAREST);
    page->c.paint(page->cr);
    page->c.restore(page->cr);
    page->c.surface_destroy(image);
    return TL_OK;
}

static cairo_status_t finish(tl_page *page)
{
    cairo_status_t st = page->c.status(page->cr);

    if (st == CAIRO_STATUS_SUCCESS && !page->svg) {
        st = page->c.surface_write_to_png_stream(page->surface, collect,
                                                 &page->bytes);
    }
    page->c.surface_finish(page->surface);
    return st != CAIRO_STATUS_SUCCESS ? st
                                      : page->c.surface_status(page->surface);
}

tl_status tl_page_write(tl_page *page, tl_diag *diag)
{
    cairo_status_t done = finish(page);
    tl_file_out file;
    tl_status st;

    if (done == CAIRO_STATUS_NO_MEMORY || page->bytes.failed) {
        return tl_fail_memory(diag, "a picture", page->bytes.len);
    }
    if (done != CAIRO_STATUS_SUCCESS) {
        return tl_fail(diag, TL_E0707, "`%s`: cairo says: %s",
                       tl_path_str(page->path).s,
                       page->c.status_to_string(done));
    }
    TL_TRY(tl_file_create(&file, page->path, diag));
    st =
        tl_file_write(&file, tl_buf_str(&page->bytes), page->bytes.len, diag);
    if (st != TL_OK) {
        tl_file_abort(&file);
        return st;
    }
    return tl_file_commit(&file, diag);
}

#else

tl_status tl_page_new(tl_page **out, const char *path, int width, int height,
                      tl_diag *diag)
{
    (void)out;
    (void)width;
    (void)height;
    tl_status st = tl_fail(diag, TL_E0701,
                           "`%s`: this build of tlang draws "
                           "no files: it has no cairo",
                           tl_path_str(path).s);

    tl_diag_help(diag, "install libcairo2-dev and configure with "
                       "--with-cairo; plot.show draws in the terminal");
    return st;
}

void tl_page_free(tl_page *page)
{
    (void)page;
}

void tl_page_rect(tl_page *page, double x, double y, double w, double h,
                  tl_color color)
{
    (void)page;
    (void)x;
    (void)y;
    (void)w;
    (void)h;
    (void)color;
}

void tl_page_line(tl_page *page, const double *x, const double *y, size_t n,
                  double width, tl_color color)
{
    (void)page;
    (void)x;
    (void)y;
    (void)n;
    (void)width;
    (void)color;
}

void tl_page_text(tl_page *page, double x, double y, const char *text,
                  double size, double align, double angle, tl_color color)
{
    (void)page;
    (void)x;
    (void)y;
    (void)text;
    (void)size;
    (void)align;
    (void)angle;
    (void)color;
}

tl_status tl_page_image(tl_page *page, double x, double y, double scale,
                        const uint8_t *rgb, int width, int height,
                        tl_diag *diag)
{
    (void)page;
    (void)x;
    (void)y;
    (void)scale;
    (void)rgb;
    (void)width;
    (void)height;
    (void)diag;
    return TL_OK;
}

tl_status tl_page_write(tl_page *page, tl_diag *diag)
{
    (void)page;
    (void)diag;
    return TL_OK;
}

#endif
