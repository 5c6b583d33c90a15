/* live.c - last reads: backward liveness of a function's slots.
 *
 * Sets of slots are bit sets.  A statement is processed from its end to its
 * beginning: `live` is what may still be read behind this point.  A read of a
 * slot that is not live is a last read.
 *
 * Loops.  With E the set behind a loop and G the slots that its body reads
 * before writing them, the set at the head is E + G (a loop may run no
 * times, so writes in the body take nothing away).  The first pass, with
 * everything outside empty, finds G of every loop; the second marks.  So each
 * node is visited twice, however deep loops are nested.
 *
 * Exceptions.  Any expression of a `try` body may jump to the handler: what
 * the handler needs is `pinned` during the body, that is, live whatever is
 * written.  Slots that must never be marked are pinned from the start. */
#include "lang/live_impl.h"

#include "runtime/base/mem.h"

static bool pin_names(void *arg, tl_ast *node)
{
    tl_live *l = arg;

    if (node->kind == TL_AST_NAME &&
        TL_AST(name, node)->ref.kind == TL_REF_LOCAL) {
        tl_live_put(l->pinned, TL_AST(name, node)->ref.index);
    } else if (node->kind == TL_AST_DIM_PACK) {
        tl_live_put(l->pinned, TL_AST(dim_pack, node)->ref.index);
    }
    return tl_ast_children(node, pin_names, l);
}

/* Names of grad targets, here but not in nested functions. */
static bool pin_grad_targets(void *arg, tl_ast *node)
{
    tl_live *l = arg;

    switch (node->kind) {
    case TL_AST_FN:
    case TL_AST_LAMBDA:
    case TL_AST_MODULE:
    case TL_AST_RECORD:
    case TL_AST_TEST:
        return true;
    case TL_AST_GRAD:
        for (uint32_t i = 0; i < TL_AST(grad, node)->targets.len; i++) {
            pin_names(l, TL_AST(grad, node)->targets.items[i]);
        }
        break;
    default:
        break;
    }
    return tl_ast_children(node, pin_grad_targets, l);
}

static void pin_always(tl_live *l, const tl_funcdef *func)
{
    if (func->kind == TL_FUNC_METHOD || func->kind == TL_FUNC_MODULE) {
        tl_live_put(l->pinned, 0);
    }
    for (uint32_t i = 0; func->kind == TL_FUNC_MODULE && i < func->params.len;
         i++) {
        tl_live_put(l->pinned,
                    TL_AST(param, func->params.items[i])->ref.index);
    }
    for (uint32_t i = 0; i < func->ndims; i++) {
        tl_live_put(l->pinned, func->dims[i]);
    }
    if (func->ret) {
        pin_names(l, (tl_ast *)func->ret);
    }
    if (func->has_grad) {
        pin_grad_targets(l, (tl_ast *)func->body);
    }
}

static tl_status keep_saved(tl_funcdef *func, const tl_live_word *set,
                            tl_arena *arena, tl_diag *diag)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < func->nslots; i++) {
        n += tl_live_has(set, i);
    }
    if (n == 0) {
        return TL_OK;
    }
    func->saved = tl_arena_array(arena, n, sizeof(*func->saved));
    if (!func->saved) {
        return tl_fail_memory(diag, "a function", n * sizeof(*func->saved));
    }
    for (uint32_t i = 0; i < func->nslots; i++) {
        if (tl_live_has(set, i)) {
            func->saved[func->nsaved++] = i;
        }
    }
    return TL_OK;
}

/* Both passes over `body`, behind which `behind` is live; afterwards `now` is
 * what is live before it. */
static void two_passes(tl_live *l, tl_ast *body, const tl_live_word *behind)
{
    for (int pass = 0; pass < 2; pass++) {
        l->marking = pass == 1;
        l->at_exit = behind;
        tl_live_copy(l, l->now, behind);
        tl_live_visit(l, body);
    }
}

/* The clause `backward dy:`; stores what it needs of the forward part. */
static tl_status backward(tl_live *l, tl_funcdef *func, tl_live_word *saved,
                          tl_arena *arena, tl_diag *diag)
{
    tl_ast_backward *clause = TL_AST(backward, func->backward);
    tl_live_word *none = tl_live_set(l, NULL);

    if (!none) {
        return tl_fail_memory(diag, "a function",
                              l->nwords * sizeof(tl_live_word));
    }
    two_passes(l, clause->body, none);
    tl_live_copy(l, saved, l->now);
    for (uint32_t i = 0; i < clause->names.len; i++) {
        tl_live_drop(saved, TL_AST(name, clause->names.items[i])->ref.index);
    }
    TL_TRY(keep_saved(func, saved, arena, diag));
    tl_live_join(l, l->pinned,
                 saved); /* the clause may run again: mark no more */
    two_passes(l, clause->body, none);
    return TL_OK;
}

static tl_status mark(tl_live *l, tl_funcdef *func, tl_arena *arena,
                      tl_diag *diag)
{
    tl_live_word *behind;

    l->nwords = (func->nslots + TL_LIVE_BITS - 1) / TL_LIVE_BITS;
    l->now = tl_live_set(l, NULL);
    l->pinned = tl_live_set(l, NULL);
    behind = tl_live_set(l, NULL);
    if (l->failed) {
        return tl_fail_memory(diag, "a function",
                              l->nwords * sizeof(tl_live_word));
    }
    l->at_break = l->at_continue = behind;
    pin_always(l, func);
    if (func->backward) {
        TL_TRY(backward(l, func, behind, arena, diag));
    }
    if (!func->has_breakpoint) {
        two_passes(l, (tl_ast *)func->body, behind);
    }
    return l->failed
               ? tl_fail_memory(diag, "a function", tl_mem_failed_size())
               : TL_OK;
}

tl_status tl_live_mark(tl_funcdef *func, tl_arena *arena, tl_diag *diag)
{
    tl_live l = {.failed = false};
    tl_status status;

    if (func->nslots == 0 || !func->body) {
        return TL_OK;
    }
    tl_arena_init(&l.arena);
    tl_map_init(&l.loops);
    l.kept = arena;
    status = mark(&l, func, arena, diag);
    func->may_return = l.may_return;
    tl_map_fini(&l.loops);
    tl_arena_fini(&l.arena);
    return status;
}
