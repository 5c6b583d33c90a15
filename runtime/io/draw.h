/* draw.h - pictures: shapes on a page, written as SVG or PNG by cairo.
 *
 * Coordinates are points (pixels of a PNG) from the top left corner.  A page
 * is kept in memory and replaces its file at once, or not at all. */
#ifndef TL_IO_DRAW_H
#define TL_IO_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/diag.h"

typedef struct tl_page tl_page;

typedef struct tl_color {
    double r, g, b; /* 0 .. 1 */
} tl_color;

/* A white page; the name's end, .svg or .png, says which.  Sizes 1 .. 8192.
 * E0701 without cairo, in the build or at the run; E0416 for another end or
 * size, E0607. */
TL_MUST_USE tl_status tl_page_new(tl_page **out, const char *path, int width,
                                  int height, tl_diag *diag);
void tl_page_free(tl_page *page); /* NULL is allowed */

/* Shapes; what fails is reported by tl_page_write. */
void tl_page_rect(tl_page *page, double x, double y, double w, double h,
                  tl_color color);

/* A line through n points, of which those that are not finite leave a gap. */
void tl_page_line(tl_page *page, const double *x, const double *y, size_t n,
                  double width, tl_color color);

/* One line of text whose baseline starts at (x, y); `align` 0, 0.5, 1: its
 * start, middle or end is there; turned by `angle` degrees to the left. */
void tl_page_text(tl_page *page, double x, double y, const char *text,
                  double size, double align, double angle, tl_color color);

/* Pixels rgb[3 * width * height], rows from the top, each a square of
 * `scale`. */
TL_MUST_USE tl_status tl_page_image(tl_page *page, double x, double y,
                                    double scale, const uint8_t *rgb,
                                    int width, int height, tl_diag *diag);

/* Replace the file.  E0707, E0607. */
TL_MUST_USE tl_status tl_page_write(tl_page *page, tl_diag *diag);

#endif
