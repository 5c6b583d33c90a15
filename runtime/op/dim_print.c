/* dim_print.c - text of a size: `2*B + n//2`, `768`, `_`.
 *
 * Positive terms come first, so that no text starts with a minus where it
 * need not; operands of `//` are in parentheses unless they are atoms. */
#include "runtime/op/dim_impl.h"

static void print_terms(tl_dim d, tl_buf *out);

static void print_operand(tl_dim d, tl_buf *out)
{
    const tl_atom *x = tl_dim_as_atom(d);
    bool bare = tl_dim_is_num(d) || (x && x->kind != TL_ATOM_DIV);

    tl_buf_puts(out, bare ? "" : "(");
    print_terms(d, out);
    tl_buf_puts(out, bare ? "" : ")");
}

static void print_atom(const tl_atom *x, bool alone, tl_buf *out)
{
    if (x->kind != TL_ATOM_DIV) {
        tl_buf_puts(out, x->kind == TL_ATOM_NAME ? x->name : "_");
        return;
    }
    tl_buf_puts(out, alone ? "" : "(");
    print_operand(x->p, out);
    tl_buf_puts(out, "//");
    print_operand(x->q, out);
    tl_buf_puts(out, alone ? "" : ")");
}

/* The term without its sign. */
static void print_term(const tl_term *t, tl_buf *out)
{
    int64_t c = t->coef < 0 ? -t->coef : t->coef;
    bool alone = c == 1 && t->mono && t->mono->degree == 1;

    if (c != 1 || !t->mono) {
        tl_buf_printf(out, "%lld%s", (long long)c, t->mono ? "*" : "");
    }
    for (uint32_t k = 0; t->mono && k < t->mono->degree; k++) {
        tl_buf_puts(out, k ? "*" : "");
        print_atom(t->mono->atom[k], alone, out);
    }
}

static void print_terms(tl_dim d, tl_buf *out)
{
    bool first = true;
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int negative = 0; negative < 2; negative++) {
        for (int i = 0; i < t.n; i++) {
            if ((t.term[i].coef < 0) != negative) {
                continue;
            }
            tl_buf_puts(out, negative ? (first ? "-" : " - ")
                                      : (first ? "" : " + "));
            print_term(&t.term[i], out);
            first = false;
        }
    }
    if (first) {
        tl_buf_putc(out, '0');
    }
}

void tl_dim_print(tl_dim d, tl_buf *out)
{
    print_terms(d, out);
}
