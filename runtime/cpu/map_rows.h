/* map_rows.h - the loops of one dtype, pasted from ops.def.
 *
 * Not an ordinary header: a file defines the macros below, includes this, and
 * has `const tl_map_loops`.  It may be included again for another dtype.
 *   ROW_TYPE       C type of elements, ROW_NAME its name in symbols
 *   ROW_FN(fn)     what M(fn) means
 *   ROW_P(v)       a double attribute as ROW_TYPE
 *   ROW_GRADIENTS  defined: with gradients
 *   QUICK_<row>    `, 1` for a row whose loop is vector code where ROW_QUICK
 *                  (row, n, in) is true of its inputs; `quick` in what M(fn)
 *                  means is a constant then, which tells the two apart
 *   ROW_FLOAT, ROW_NUM, ROW_ANY, ROW_BOOL(code)  code, or nothing, for rows
 *                  of that column `types` */
#define PASTE_(a, b, c) a##_##b##_##c
#define PASTE(a, b, c) PASTE_(a, b, c)
#define FN(kind, row) PASTE(kind, row, ROW_NAME)

#define M(fn) ROW_FN(fn)
#define K(value) ((ROW_TYPE)(value))
#define zmul(u, v) M(zmul)(u, v)
#define inf ((ROW_TYPE)INFINITY)

/* Pointers are read before the loop: bytes that are written might be them. */
#define FROM(at) const ROW_TYPE *const from##at = in[at];
#define OPERAND(name, at)                                                    \
    const ROW_TYPE name = from##at[i];                                       \
                                                                             \
    (void)name;

#define SECOND(a, b, ...) b
#define SECOND_OF(...) SECOND(__VA_ARGS__)
#define BODY_OF(row) PASTE2(BODY_, SECOND_OF(QUICK_##row, 0, ~))
#define PASTE2(a, b) PASTE2_(a, b)
#define PASTE2_(a, b) a##b

#define EACH(to_type, operands, formula)                                     \
    TL_INDEPENDENT                                                           \
    for (int64_t i = 0; i < n; i++) {                                        \
        operands res[i] = (to_type)(formula);                                \
    }
#define BODY_0(row, to_type, operands, formula)                              \
    EACH(to_type, operands, formula)
#define BODY_1(row, to_type, operands, formula)                              \
    if (ROW_QUICK(row, n, in)) {                                             \
        enum { quick = 1 };                                                  \
        EACH(to_type, operands, formula)                                     \
    } else {                                                                 \
        enum { quick = 0 };                                                  \
        EACH(to_type, operands, formula)                                     \
    }

#define LOOP(name, row, to_type, from, operands, formula)                    \
    static void name(int64_t n, const void *const *in, void *to,             \
                     const double *p)                                        \
    {                                                                        \
        const ROW_TYPE p0 = ROW_P(p[0]), p1 = ROW_P(p[1]);                   \
        to_type *res = to;                                                   \
        from                                                                 \
                                                                             \
        (void)p0;                                                            \
        (void)p1;                                                            \
        BODY_OF(row)(row, to_type, operands, formula)                        \
    }

#define FROM1 FROM(0)
#define FROM2 FROM(0) FROM(1)
#define FROM3 FROM(0) FROM(1) FROM(2)
#define FROM_YG FROM(3) FROM(4)
#define IN1 OPERAND(x, 0)
#define IN2 OPERAND(a, 0) OPERAND(b, 1)
#define IN3 OPERAND(a, 0) OPERAND(b, 1) OPERAND(c, 2)
#define YG OPERAND(y, 3) OPERAND(g, 4)
#define VALUE(row, n, formula)                                               \
    LOOP(FN(value, row), row, ROW_TYPE, FROM##n, IN##n, formula)
#define COMPARE(row, n, formula)                                             \
    LOOP(FN(value, row), row, uint8_t, FROM##n, IN##n, formula)
#ifdef ROW_GRADIENTS
#define GRAD(which, row, n, formula)                                         \
    LOOP(FN(which, row), row, ROW_TYPE, FROM##n FROM_YG, IN##n YG, formula)
#else
#define GRAD(which, row, n, formula)
#endif

#define MAP1(row, value, gx, amp, types, ...)                                \
    ROW_##types(VALUE(row, 1, value) GRAD(grad0, row, 1, gx))
#define MAP2(row, value, ga, gb, amp, types, ...)                            \
    ROW_##types(VALUE(row, 2, value) GRAD(grad0, row, 2, ga)             \
                    GRAD(grad1, row, 2, gb))
#define MAP3(row, value, ga, gb, gc, amp, types, ...)                        \
    ROW_##types(VALUE(row, 3, value) GRAD(grad0, row, 3, ga)             \
                    GRAD(grad1, row, 3, gb) GRAD(grad2, row, 3, gc))
#define CMP1(row, value, types, ...) ROW_##types(COMPARE(row, 1, value))
#define CMP2(row, value, types, ...) ROW_##types(COMPARE(row, 2, value))
#include "runtime/op/ops.def"

#ifdef ROW_GRADIENTS
#define GRADS1(row) .grad[TL_OP_##row] = {FN(grad0, row)},
#define GRADS2(row)                                                          \
    .grad[TL_OP_##row] = {FN(grad0, row), FN(grad1, row)},
#define GRADS3(row)                                                          \
    .grad[TL_OP_##row] = {FN(grad0, row), FN(grad1, row), FN(grad2, row)},
#else
#define GRADS1(row)
#define GRADS2(row)
#define GRADS3(row)
#endif
#define ENTRY(row) .value[TL_OP_##row] = FN(value, row),
#define MAP1(row, value, gx, amp, types, ...)                                \
    ROW_##types(ENTRY(row) GRADS1(row))
#define MAP2(row, value, ga, gb, amp, types, ...)                            \
    ROW_##types(ENTRY(row) GRADS2(row))
#define MAP3(row, value, ga, gb, gc, amp, types, ...)                        \
    ROW_##types(ENTRY(row) GRADS3(row))
#define CMP1(row, value, types, ...) ROW_##types(ENTRY(row))
#define CMP2(row, value, types, ...) ROW_##types(ENTRY(row))

#define TABLE_(name) TL_ISA(tl_map_##name)
#define TABLE(name) TABLE_(name)

const tl_map_loops TABLE(ROW_NAME) = {
#include "runtime/op/ops.def"
};

#undef PASTE_
#undef PASTE
#undef FN
#undef M
#undef K
#undef zmul
#undef inf
#undef FROM
#undef OPERAND
#undef SECOND
#undef SECOND_OF
#undef BODY_OF
#undef PASTE2
#undef PASTE2_
#undef EACH
#undef BODY_0
#undef BODY_1
#undef LOOP
#undef FROM1
#undef FROM2
#undef FROM3
#undef FROM_YG
#undef IN1
#undef IN2
#undef IN3
#undef YG
#undef VALUE
#undef COMPARE
#undef GRAD
#undef GRADS1
#undef GRADS2
#undef GRADS3
#undef ENTRY
#undef TABLE_
#undef TABLE
#undef ROW_TYPE
#undef ROW_NAME
#undef ROW_P
