/* gradcheck.h - gradients from a tape against central differences.
 *
 * For a function f of float tensors with one float result y, and a fixed
 * pseudo-random direction u of the type of y, the tape's gradient of
 * sum(u * y) with respect to each element is compared with
 *
 *     D(h) = (f(x + h) - f(x - h)) / 2h,   (4 D(h/2) - D(h)) / 3
 *
 * (Richardson: the error is of fourth order in h).  f64 is meant; f32 needs
 * a wide tolerance and step.  f must be pure: it is called two to four times
 * for each element. */
#ifndef TL_AUTOGRAD_GRADCHECK_H
#define TL_AUTOGRAD_GRADCHECK_H

#include "runtime/autograd/backward.h"

/* Runs on `rt`; *out receives a new reference. */
typedef tl_status tl_gradcheck_fn(void *arg, tl_rt *rt, tl_tensor *const *in,
                                  int n, tl_tensor **out);

typedef struct tl_gradcheck_options {
    double step; /* times max(1, |x|); 0: 2^-10 */
    double rtol; /* of max(|analytic|, |numeric|); 0: 1e-6 */
    double atol; /* 0: 1e-9 */
    uint64_t seed;
    int64_t max_elements; /* of each input, spread evenly; 0: all */
    bool second; /* check the gradient of a directional gradient instead */
} tl_gradcheck_options;

/* Where the two differ most, in units of the tolerance. */
typedef struct tl_gradcheck_result {
    bool ok;
    int input;
    int64_t index; /* row-major */
    double analytic, numeric;
    double excess; /* difference / tolerance; ok: <= 1 */
    int64_t checked; /* elements compared */
} tl_gradcheck_result;

/* Compare.  Inputs that are not floats are passed on as they are.  A gradient
 * that differs is no failure of this function: see `result->ok`. */
TL_MUST_USE tl_status tl_gradcheck(tl_rt *rt, tl_gradcheck_fn *f, void *arg,
                                   tl_tensor *const *in, int n,
                                   const tl_gradcheck_options *options,
                                   tl_gradcheck_result *result);

#endif
