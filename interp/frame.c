/* frame.c - activations and their slots.
 *
 * Slots live in chunks that never move, so pointers into a running frame stay
 * valid while deeper calls push theirs.  A chunk is kept for the next call
 * once it is empty; at most one empty chunk is kept. */
#include "interp/call.h"
#include "runtime/base/mem.h"

#define CHUNK_SLOTS 1024

typedef struct tl_slot_chunk {
    struct tl_slot_chunk *below;
    struct tl_slot_chunk *spare; /* an empty chunk above, or NULL */
    size_t cap, used;
    tl_value slots[];
} tl_slot_chunk;

static tl_slot_chunk *chunk_new(size_t need)
{
    size_t cap = need > CHUNK_SLOTS ? need : CHUNK_SLOTS;
    tl_slot_chunk *c = tl_malloc(sizeof(*c) + cap * sizeof(tl_value));

    if (c != NULL) {
        c->below = NULL;
        c->spare = NULL;
        c->cap = cap;
        c->used = 0;
    }
    return c;
}

/* Room for `n` slots on the stack, or NULL. */
static tl_value *slots_push(tl_eval *ev, size_t n)
{
    tl_slot_chunk *top = ev->slots;

    if (top == NULL || top->cap - top->used < n) {
        tl_slot_chunk *c = top != NULL ? top->spare : NULL;

        if (c != NULL && c->cap >= n) {
            top->spare = NULL;
        } else {
            c = chunk_new(n);
            if (c == NULL) {
                return NULL;
            }
        }
        c->below = top;
        ev->slots = c;
        top = c;
    }
    tl_value *slots = top->slots + top->used;

    top->used += n;
    for (size_t i = 0; i < n; i++) {
        slots[i] = tl_empty();
    }
    return slots;
}

static void slots_pop(tl_eval *ev, tl_value *slots, size_t n)
{
    tl_slot_chunk *top = ev->slots;

    for (size_t i = n; i-- > 0;) {
        tl_unref(slots[i]);
    }
    top->used -= n;
    if (top->used == 0 && top->below != NULL) {
        tl_slot_chunk *below = top->below;

        tl_free(below->spare);
        tl_free(top->spare);
        top->spare = NULL;
        below->spare = top;
        ev->slots = below;
    }
}

void tl_slots_fini(tl_eval *ev);
void tl_slots_fini(tl_eval *ev)
{
    while (ev->slots != NULL) {
        tl_slot_chunk *c = ev->slots;

        ev->slots = c->below;
        tl_free(c->spare);
        tl_free(c);
    }
}

tl_status tl_frame_push(tl_eval *ev, tl_frame *frame, const tl_funcdef *fn,
                        tl_namespace *ns, tl_fn *closure, tl_module *self,
                        tl_span call)
{
    if (ev->call_depth >= TL_MAX_CALL_DEPTH) {
        return tl_fail_at(ev->diag, TL_E0215, call,
                          "call depth %d reached", TL_MAX_CALL_DEPTH);
    }
    TL_TRY(tl_check_stack(ev, call));
    *frame = (tl_frame){.caller = ev->frame, .fn = fn, .closure = closure,
                        .self = self, .ns = ns, .call = call, .real = -1,
                        .partial = tl_empty()};
    frame->slots = slots_push(ev, fn->nslots);
    if (frame->slots == NULL && fn->nslots > 0) {
        return tl_fail_memory(ev->diag, "the slots of a call",
                              fn->nslots * sizeof(tl_value));
    }
    if (self != NULL &&
        (fn->kind == TL_FUNC_METHOD || fn->kind == TL_FUNC_MODULE)) {
        frame->slots[0] =
            tl_ref((tl_value){.tag = TL_V_MODULE, .module = self});
    }
    ev->call_depth++;
    ev->frame = frame;
    return TL_OK;
}

void tl_frame_pop(tl_eval *ev, tl_frame *frame)
{
    ev->frame = frame->caller;
    ev->call_depth--;
    if (frame->fn->nslots > 0) {
        slots_pop(ev, frame->slots, frame->fn->nslots);
    }
}

tl_status tl_check_stack(tl_eval *ev, tl_span span)
{
    // Not the address of a local: the address sanitizer may keep those apart.
    const char *here = __builtin_frame_address(0);

    if (here < ev->stack_limit) {
        return tl_fail_at(ev->diag, TL_E0215, span,
                          "evaluation is nested too deeply (%d calls)",
                          ev->call_depth);
    }
    return TL_OK;
}
