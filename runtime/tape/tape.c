/* tape.c - recording of operations, node numbers and saved values.
 *
 * The arrays of an entry live in the tape's arena; what is counted (tensors,
 * the data of custom entries) is released by tl_tape_entry_release, when the
 * backward pass is through with the entry or when the tape is freed. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/tape/tape.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

tl_status tl_tape_new(tl_tape **out, tl_tape *outer, uint64_t serial,
                      tl_diag *diag)
{
    tl_tape *tape = tl_calloc(1, sizeof(*tape));

    if (!tape) {
        return tl_fail_memory(diag, "a tape", sizeof(*tape));
    }
    tape->serial = serial;
    tape->outer = outer;
    tl_arena_init(&tape->arena);
    *out = tape;
    return TL_OK;
}

void tl_tape_entry_release(tl_tape_entry *entry)
{
    for (int i = 0; i < entry->nin; i++) {
        tl_tensor_unref(entry->in[i]);
    }
    for (int i = 0; i < entry->nout; i++) {
        tl_tensor_unref(entry->out[i]);
    }
    if (entry->free_data) {
        entry->free_data(entry->data);
    }
    entry->nin = 0;
    entry->nout = 0;
    entry->free_data = NULL;
    entry->data = NULL;
}

void tl_tape_free(tl_tape *tape)
{
    if (!tape) {
        return;
    }
    while (tape->len > 0) {
        tl_tape_entry_release(&tape->entries[--tape->len]);
    }
    tl_free(tape->entries);
    tl_arena_fini(&tape->arena);
    tl_free(tape);
}

/* ---- nodes -------------------------------------------------------------- */

bool tl_tape_sees(const tl_tape *tape, tl_tensor *const *in, int nin)
{
    for (int i = 0; i < nin; i++) {
        if (!in[i] || (in[i]->link.tape == 0 && !in[i]->link.next)) {
            continue;
        }
        for (const tl_tape *t = tape; t; t = t->outer) {
            if (tl_tape_node(t, in[i]) != 0) {
                return true;
            }
        }
    }
    return false;
}

/* Store node `node` of tape `serial` with `t`.  Links of closed tapes are not
 * reused: a header gets its links when it is made, once for each tape. */
static tl_status link_set(tl_tensor *t, uint64_t serial, uint32_t node,
                          tl_diag *diag)
{
    tl_tape_link *link;

    for (link = &t->link; link; link = link->next) {
        if (link->tape == serial || link->tape == 0) {
            link->tape = serial;
            link->node = node;
            return TL_OK;
        }
    }
    link = tl_malloc(sizeof(*link));
    if (!link) {
        return tl_fail_memory(diag, "a node of a tape", sizeof(*link));
    }
    *link = (tl_tape_link){serial, node, t->link.next};
    t->link.next = link;
    return TL_OK;
}

tl_status tl_tape_share(const tl_tape *tape, tl_tensor *to,
                        const tl_tensor *from, tl_diag *diag)
{
    for (const tl_tape *t = tape; t; t = t->outer) {
        uint32_t node = tl_tape_node(t, from);

        if (node != 0) {
            TL_TRY(link_set(to, t->serial, node, diag));
        }
    }
    return TL_OK;
}

tl_status tl_tape_watch(tl_tape *tape, tl_tensor *t, uint32_t *node,
                        tl_diag *diag)
{
    TL_TRY(link_set(t, tape->serial, tape->nodes + 1, diag));
    *node = ++tape->nodes;
    return TL_OK;
}

/* ---- entries ------------------------------------------------------------ */

/* Does `tape` watch an input, and is there a result to differentiate? */
static bool wanted(const tl_tape *tape, tl_tensor *const *in, int nin,
                   tl_tensor *const *out, int nout)
{
    bool watched = false, real = false;

    for (int i = 0; i < nin && !watched; i++) {
        watched = tl_tape_node(tape, in[i]) != 0;
    }
    for (int i = 0; i < nout; i++) {
        real = real || tl_dtype_is_float(out[i]->dtype);
    }
    return watched && real;
}

/* A reference to `t` if its value is kept, else a stub of it. */
static tl_status keep(tl_tensor **out, tl_tensor *t, bool value,
                      tl_diag *diag)
{
    if (value || !t->storage) {
        *out = tl_tensor_ref(t);
        return TL_OK;
    }
    return tl_tensor_stub(out, t, diag);
}

static bool has_bit(uint32_t set, int i)
{
    return i < 32 && ((set >> i) & 1) != 0;
}

/* The arrays of an entry with room for nin inputs and nout results. */
static tl_status entry_init(tl_tape *tape, tl_tape_entry *e, int nin,
                            int nout, tl_diag *diag)
{
    size_t n = (size_t)nin + (size_t)nout;
    size_t bytes = n * (sizeof(tl_tensor *) + sizeof(uint32_t));
    char *block = tl_arena_alloc(&tape->arena, bytes);

    if (!block) {
        return tl_fail_memory(diag, "an entry of a tape", bytes);
    }
    e->in = (tl_tensor **)(void *)block;
    e->out = e->in + nin;
    e->in_node = (uint32_t *)(void *)(e->in + n);
    e->out_node = e->in_node + nin;
    return TL_OK;
}

/* Fill the entry with values, stubs and nodes; what it holds is counted in
 * nin and nout at each moment, so that it can be released. */
static tl_status entry_fill(const tl_tape *tape, tl_tape_entry *e,
                            tl_tensor *const *in, int nin,
                            tl_tensor *const *out, int nout,
                            const uint32_t saves[2], tl_diag *diag)
{
    for (int i = 0; i < nin; i++) {
        TL_TRY(keep(&e->in[i], in[i], has_bit(saves[0], i), diag));
        e->in_node[i] = tl_tape_node(tape, in[i]);
        e->nin++;
    }
    for (int i = 0; i < nout; i++) {
        TL_TRY(keep(&e->out[i], out[i], has_bit(saves[1], i), diag));
        e->nout++;
    }
    return TL_OK;
}

/* Number the float results. */
static tl_status number_results(tl_tape *tape, tl_tape_entry *e,
                                tl_tensor *const *out, int nout,
                                tl_diag *diag)
{
    for (int i = 0; i < nout; i++) {
        if (tl_dtype_is_float(out[i]->dtype)) {
            TL_TRY(tl_tape_watch(tape, out[i], &e->out_node[i], diag));
        }
    }
    return TL_OK;
}

/* Copy of attributes in the arena, no longer than its sizes need. */
static tl_status copy_attrs(tl_tape *tape, tl_tape_entry *e,
                            const tl_attrs *at, tl_diag *diag)
{
    size_t bytes = offsetof(tl_attrs, dims);

    if (!at) {
        return TL_OK;
    }
    bytes += at->ndims * sizeof(at->dims[0]);
    e->at = tl_arena_alloc(&tape->arena, bytes);
    if (!e->at) {
        return tl_fail_memory(diag, "attributes on a tape", bytes);
    }
    memcpy(e->at, at, bytes);
    return TL_OK;
}

/* Finish `e` and append it; releases it on failure, its data included. */
static tl_status append(tl_tape *tape, tl_tape_entry *e,
                        tl_tensor *const *in, int nin, tl_tensor *const *out,
                        int nout, const uint32_t saves[2], tl_diag *diag)
{
    tl_status st = entry_init(tape, e, nin, nout, diag);

    if (st == TL_OK) {
        st = entry_fill(tape, e, in, nin, out, nout, saves, diag);
    }
    if (st == TL_OK && tape->len == tape->cap) {
        st = tl_vec_grow((void **)&tape->entries, tape->len, &tape->cap,
                         sizeof(*tape->entries), diag);
    }
    if (st == TL_OK) {
        st = number_results(tape, e, out, nout, diag);
    }
    if (st != TL_OK) {
        tl_tape_entry_release(e);
        return st;
    }
    tape->entries[tape->len++] = *e;
    return TL_OK;
}

tl_status tl_tape_record(tl_tape *tape, tl_op op, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *at, tl_span span, tl_diag *diag)
{
    const tl_op_info *info = tl_op_get(op);
    const uint32_t saves[2] = {info->saves_in, info->saves_out};
    tl_tape_entry e = {.op = op, .span = span};

    if (!info->differentiable || !wanted(tape, in, nin, out, nout)) {
        return TL_OK;
    }
    TL_TRY(copy_attrs(tape, &e, at, diag));
    return append(tape, &e, in, nin, out, nout, saves, diag);
}

tl_status tl_tape_record_custom(tl_tape *tape, tl_tensor *const *in, int nin,
                                tl_tensor *const *out, int nout,
                                tl_custom_grad_fn *fn, void *data,
                                void (*free_data)(void *), tl_span span,
                                tl_diag *diag)
{
    const uint32_t saves[2] = {0, 0};
    tl_tape_entry e = {.op = TL_OP_COUNT, .custom = fn, .data = data,
                       .free_data = free_data, .span = span};

    if (!wanted(tape, in, nin, out, nout)) {
        if (free_data) {
            free_data(data);
        }
        return TL_OK;
    }
    return append(tape, &e, in, nin, out, nout, saves, diag);
}
