/* eval_impl.h - what the files of the evaluator share among themselves. */
#ifndef TL_INTERP_EVAL_IMPL_H
#define TL_INTERP_EVAL_IMPL_H

#include "interp/call.h"
#include "interp/grad.h"

#define TL_MAX_SUBSCRIPTS (2 * TL_MAX_RANK)
#define TL_INLINE_ARGS 8 /* arguments of a call kept on the C stack */

/* The type of an operand, kept for the message of an operator that fails
 * after it has eaten the operand.  Costs a few stores. */
typedef struct tl_type_note {
    tl_tag tag;
    tl_dtype dtype;
    int rank;
    int64_t size[6];
    const char *name; /* of modules and classes */
} tl_type_note;

void tl_type_note_take(tl_type_note *note, tl_value v);
tl_shape_text tl_type_note_str(const tl_type_note *note);

/* The place of operator `op` inside the gap between its operands. */
tl_span tl_operator_span(tl_eval *ev, tl_oper op, tl_span gap);

/* Apply an operator to evaluated operands of two nodes; on failure adds the
 * place and labels with the operands' types. */
TL_MUST_USE tl_status tl_eval_binary_nodes(tl_eval *ev, tl_oper op,
                                           const tl_ast *left, tl_value a,
                                           const tl_ast *right, tl_value b,
                                           tl_span span, tl_value *out);

TL_MUST_USE tl_status tl_eval_call_node(tl_eval *ev, const tl_ast_call *n,
                                        tl_value *out);

/* The subscripts of an INDEX node, at most TL_MAX_SUBSCRIPTS. */
TL_MUST_USE tl_status tl_eval_subscripts(tl_eval *ev, const tl_ast_index *n,
                                         tl_value *subs);

/* The value of an assignment's right side: an expression or a grad block. */
TL_MUST_USE tl_status tl_eval_rhs(tl_eval *ev, const tl_ast *e, tl_value *out,
                                  tl_flow *flow);

/* What print(args) writes, and one of its values (bi_host.c). */
TL_MUST_USE tl_status tl_print_text(tl_eval *ev, const tl_value *args,
                                    tl_buf *out);
TL_MUST_USE tl_status tl_print_item(tl_eval *ev, tl_value v, bool full,
                                    tl_buf *out);

/* f"..." (fstring.c). */
TL_MUST_USE tl_status tl_eval_fstring(tl_eval *ev, const tl_ast_fstring *n,
                                      tl_value *out);

TL_MUST_USE tl_status tl_eval_stmt(tl_eval *ev, const tl_ast *s,
                                   tl_flow *flow);

/* x[i] = v, r.f = v, and longer paths; `target` is an INDEX or ATTR node.
 * Takes `v`. */
TL_MUST_USE tl_status tl_eval_path_assign_take(tl_eval *ev,
                                               const tl_ast *target,
                                               tl_value v);
/* The same for `path op= b`.  Takes `b`. */
TL_MUST_USE tl_status tl_eval_path_aug_take(tl_eval *ev, const tl_ast_aug *n,
                                            tl_value b);

/* target op= value. */
TL_MUST_USE tl_status tl_eval_aug(tl_eval *ev, const tl_ast_aug *n,
                                  tl_flow *flow);

/* An `if` from its arm number `arm` on. */
TL_MUST_USE tl_status tl_eval_if_from(tl_eval *ev, const tl_ast_if *n,
                                      uint32_t arm, tl_flow *flow);

/* Run the body of `fn` in the running frame and check its result. */
TL_MUST_USE tl_status tl_run_function(tl_eval *ev, const tl_funcdef *fn,
                                      tl_value *out);

/* What decides sizes in the running domain: numbers, or symbols. */
tl_infer *tl_eval_infer(tl_eval *ev);

/* W0318 if a finite number becomes infinite in `dtype`. */
void tl_eval_warn_inf(tl_eval *ev, double v, tl_dtype dtype);

/* A host number as a scalar tensor of `dtype`. */
TL_MUST_USE tl_status tl_eval_scalar(tl_eval *ev, tl_value v, tl_dtype dtype,
                                     tl_value *out);

/* The class value of a MODULE or RECORD node. */
TL_MUST_USE tl_status tl_make_class(tl_eval *ev, const tl_funcdef *code,
                                    tl_value *out);

/* import a.b as c, from a.b import x: bind in the running frame. */
TL_MUST_USE tl_status tl_eval_import(tl_eval *ev, const tl_ast_import *n);
TL_MUST_USE tl_status tl_eval_from(tl_eval *ev, const tl_ast_from *n);

/* Bind a resolved name in the running frame.  Takes `v`. */
TL_MUST_USE tl_status tl_bind_ref_take(tl_eval *ev, const tl_ref_info *ref,
                                       tl_span span, tl_value v);

/* with items: enter and leave a context value. */
TL_MUST_USE tl_status tl_context_enter(tl_eval *ev, tl_value context,
                                       tl_value *state);
void tl_context_leave(tl_eval *ev, tl_value context, tl_value state);

/* Can the error that was just reported be caught by the program? */
bool tl_status_catchable(tl_status st);

/* The newest diagnostic as a value for `catch e`; removes it. */
TL_MUST_USE tl_status tl_error_take(tl_eval *ev, tl_value *out);

/* The method called `name` (may be NULL) of a module definition, or NULL. */
const tl_funcdef *tl_class_method(const tl_class *cls, const tl_sym *name);

/* A record with one field replaced.  Eats both.  E0211. */
TL_MUST_USE tl_status tl_record_with_take(tl_eval *ev, tl_value record,
                                          const tl_sym *name, tl_value v,
                                          tl_value *out);

/* Frames that a failing call adds to its diagnostic. */
void tl_note_frame(tl_eval *ev, const tl_frame *frame);

void tl_slots_fini(tl_eval *ev);

#endif
