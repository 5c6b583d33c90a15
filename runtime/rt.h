/* rt.h - the runtime as compiled programs see it: tensors, storages and
 * pool, the device's kernels, threads, and tl_apply.  The compiler includes
 * nothing else of runtime/ above op. */
#ifndef TL_RT_H
#define TL_RT_H

#include "runtime/apply.h"
#include "runtime/base/threads.h"
#include "runtime/cpu/tile.h"
#include "runtime/mem/pool.h"
#include "runtime/op/view.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

#endif
