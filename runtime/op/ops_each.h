/* ops_each.h - a template: every row of ops.def as TL_OP_ROW(name), in order.
 *
 * Define TL_OP_ROW, include this file; both are undefined afterwards.  The
 * order is that of ops.def, so that arrays may be indexed by tl_op. */
#define MAP1(name, ...) TL_OP_ROW(name)
#define MAP2(name, ...) TL_OP_ROW(name)
#define MAP3(name, ...) TL_OP_ROW(name)
#define CMP1(name, ...) TL_OP_ROW(name)
#define CMP2(name, ...) TL_OP_ROW(name)
#define RED(name, ...) TL_OP_ROW(name)
#define VIEW(name, ...) TL_OP_ROW(name)
#define MAKE(name, ...) TL_OP_ROW(name)
#define KERN(name, ...) TL_OP_ROW(name)
#include "runtime/op/ops.def"
#undef TL_OP_ROW
