/* dim_code.c - sizes as words in postfix: encoding, decoding, evaluation.
 *
 * A sum is its terms added from left to right; a term is its coefficient, if
 * that is not 1 or stands alone, multiplied by its atoms.  The stack of an
 * evaluation has a fixed depth, which every encoded size keeps: a level of
 * division holds a sum, a product and a dividend. */
#include "runtime/op/dim_code.h"

#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/base/vec.h"
#include "runtime/op/dim_impl.h"

/* ---- encoding ----------------------------------------------------------- */

typedef tl_status number_fn(void *arg, tl_dim atom, int64_t *n);

typedef struct encoder {
    tl_dim_words words;
    number_fn *number;
    void *arg;
    tl_diag *diag;
} encoder;

static tl_status put(encoder *e, int64_t word)
{
    if (e->words.len == TL_DC_MAX_WORDS) {
        return tl_fail(e->diag, TL_E0307, "a size expression is too long");
    }
    return TL_VEC_PUSH(&e->words, word, e->diag);
}

static tl_status put_number(encoder *e, int64_t n)
{
    TL_TRY(put(e, TL_DC_NUM));
    return put(e, n);
}

static tl_status put_dim(encoder *e, tl_dim d);

/* Divisions nest at most TL_DIM_MAX_DEPTH deep, so the recursion ends. */
static tl_status put_atom(encoder *e, const tl_atom *x)
{
    int64_t n = 0;

    if (x->kind == TL_ATOM_DIV) {
        TL_TRY(put_dim(e, x->p));
        TL_TRY(put_dim(e, x->q));
        return put(e, TL_DC_FLOORDIV);
    }
    TL_TRY(e->number(e->arg, x->self, &n));
    TL_TRY(put(e, TL_DC_ATOM));
    return put(e, n);
}

static tl_status put_term(encoder *e, const tl_term *t)
{
    bool started = t->coef != 1 || !t->mono;

    if (started) {
        TL_TRY(put_number(e, t->coef));
    }
    for (uint32_t k = 0; t->mono && k < t->mono->degree; k++) {
        TL_TRY(put_atom(e, t->mono->atom[k]));
        if (started) {
            TL_TRY(put(e, TL_DC_MUL));
        }
        started = true;
    }
    return TL_OK;
}

static tl_status put_dim(encoder *e, tl_dim d)
{
    tl_terms t;

    tl_dim_terms(d, &t);
    if (t.n == 0) {
        return put_number(e, 0);
    }
    for (int i = 0; i < t.n; i++) {
        TL_TRY(put_term(e, &t.term[i]));
        if (i > 0) {
            TL_TRY(put(e, TL_DC_ADD));
        }
    }
    return TL_OK;
}

tl_status tl_dim_encode(tl_dim d, number_fn *number, void *arg,
                        int64_t **code, size_t *len, tl_diag *diag)
{
    encoder e = {.number = number, .arg = arg, .diag = diag};
    tl_status st = put_dim(&e, d);

    if (st != TL_OK) {
        tl_free(e.words.items);
        return st;
    }
    *code = e.words.items;
    *len = e.words.len;
    return TL_OK;
}

/* ---- validity ----------------------------------------------------------- */

bool tl_dim_code_valid(const int64_t *code, size_t len, size_t natoms)
{
    size_t depth = 0;

    if (len > TL_DC_MAX_WORDS) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        switch (code[i]) {
        case TL_DC_NUM:
        case TL_DC_ATOM:
            if (++i == len || depth == TL_DC_MAX_DEPTH) {
                return false;
            }
            if (code[i - 1] == TL_DC_ATOM &&
                (code[i] < 0 || (uint64_t)code[i] >= natoms)) {
                return false;
            }
            depth++;
            break;
        case TL_DC_ADD:
        case TL_DC_MUL:
        case TL_DC_FLOORDIV:
            if (depth < 2) {
                return false;
            }
            depth--;
            break;
        default:
            return false;
        }
    }
    return depth == 1;
}

/* ---- evaluation --------------------------------------------------------- */

static tl_status overflow(tl_diag *diag)
{
    return tl_fail(diag, TL_E0307, "a size overflows 64 bits");
}

static tl_status combine(int64_t word, int64_t a, int64_t b, int64_t *out,
                         tl_diag *diag)
{
    if (word == TL_DC_ADD) {
        return tl_add_i64(out, a, b) ? TL_OK : overflow(diag);
    }
    if (word == TL_DC_MUL) {
        return tl_mul_i64(out, a, b) ? TL_OK : overflow(diag);
    }
    if (b == 0) {
        return tl_fail(diag, TL_E0401, "a size is divided by zero");
    }
    if (a == INT64_MIN && b == -1) {
        return overflow(diag);
    }
    *out = tl_floor_div(a, b);
    return TL_OK;
}

tl_status tl_dim_code_eval(const int64_t *code, size_t len,
                           const int64_t *atoms, size_t natoms, int64_t *out,
                           tl_diag *diag)
{
    int64_t stack[TL_DC_MAX_DEPTH];
    size_t depth = 0;

    if (!tl_dim_code_valid(code, len, natoms)) {
        return tl_fail(diag, TL_E0699, "not the code of a size");
    }
    for (size_t i = 0; i < len; i++) {
        if (code[i] == TL_DC_NUM) {
            stack[depth++] = code[++i];
        } else if (code[i] == TL_DC_ATOM) {
            stack[depth++] = atoms[code[++i]];
        } else {
            depth--;
            TL_TRY(combine(code[i], stack[depth - 1], stack[depth],
                           &stack[depth - 1], diag));
        }
    }
    *out = stack[0];
    return TL_OK;
}

/* ---- decoding ----------------------------------------------------------- */

static tl_status number_dim(int64_t n, tl_dim *out, tl_diag *diag)
{
    if (!tl_dim_fits(n)) {
        return tl_dim_overflow(diag);
    }
    *out = tl_dim_num(n);
    return TL_OK;
}

tl_status tl_dim_decode(tl_dims *dims, const int64_t *code, size_t len,
                        const tl_dim *atoms, tl_dim *out, tl_diag *diag)
{
    tl_dim stack[TL_DC_MAX_DEPTH];
    size_t depth = 0;

    for (size_t i = 0; i < len; i++) {
        tl_dim *top = &stack[depth > 0 ? depth - 1 : 0];

        switch (code[i]) {
        case TL_DC_NUM:
            TL_TRY(number_dim(code[++i], &stack[depth++], diag));
            break;
        case TL_DC_ATOM:
            stack[depth++] = atoms[code[++i]];
            break;
        case TL_DC_ADD:
            TL_TRY(tl_dim_add(dims, top[-1], top[0], &top[-1], diag));
            depth--;
            break;
        case TL_DC_MUL:
            TL_TRY(tl_dim_mul(dims, top[-1], top[0], &top[-1], diag));
            depth--;
            break;
        default:
            TL_TRY(tl_dim_div(dims, top[-1], top[0], &top[-1], diag));
            depth--;
        }
    }
    *out = stack[0];
    return TL_OK;
}
