/* onednn.h - what the files that call oneDNN share. */
#ifndef TL_CPU_ONEDNN_H
#define TL_CPU_ONEDNN_H

#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>

/* Convolutions are written for the interface of version 2. */
#if DNNL_VERSION_MAJOR == 2
#define TL_HAVE_ONEDNN_CONV 1
#endif

/* The OpenMP team of the calling thread becomes one thread: a plain thread
 * that calls oneDNN otherwise starts a team of its own.  Before every call
 * that executes. */
void tl_onednn_one_thread(void);

/* The same, whatever anybody has set since: before a primitive is created,
 * because it remembers the number of threads of its creation and does not
 * work with another (research/contract.md 6). */
void tl_onednn_one_thread_now(void);

#endif
#endif
