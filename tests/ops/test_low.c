/* test_low.c - elementwise rows and reductions in bf16 and f16: results are
 * those of f32 rounded once, gradients are stored so too. */
#include "tests/ops/low.h"
#include "tests/ops/rows.h"

TestSuite(low_rows, .init = rt_setup, .fini = rt_teardown);

static const tl_dtype low[] = {TL_bf16, TL_f16};

Test(low_rows, elementwise)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        const tl_op_info *row = tl_op_get((tl_op)op);

        if (!is_elementwise((tl_op)op) || row->types == TL_TYPES_BOOL) {
            continue;
        }
        for (int d = 0; d < 2; d++) {
            tl_attrs at = usual_attrs((tl_op)op);
            tl_tensor *in[3];

            for (int i = 0; i < row->nin; i++) {
                bool cond = ((row->bool_in >> i) & 1) != 0;

                in[i] = points(cond ? TL_bool : low[d], 2, DIMS(5, 7),
                               row->domain, (uint64_t)(op * 3 + i));
            }
            check_low((tl_op)op, &at, in, row->nin);
            for (int i = 0; i < row->nin; i++) {
                tl_tensor_unref(in[i]);
            }
        }
    }
}

Test(low_rows, reductions)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        const tl_op_info *row = tl_op_get((tl_op)op);

        if (row->cls != TL_CLASS_RED || row->types == TL_TYPES_BOOL) {
            continue;
        }
        for (int d = 0; d < 2; d++) {
            for (int axes = 1; axes < 4; axes++) {
                tl_attrs at = usual_attrs((tl_op)op);
                tl_tensor *in = points(low[d], 2, DIMS(5, 7), row->domain,
                                       (uint64_t)op);

                at.axes = (uint16_t)axes;
                at.flag = axes == 3;
                check_low((tl_op)op, &at, &in, 1);
                tl_tensor_unref(in);
            }
        }
    }
}
