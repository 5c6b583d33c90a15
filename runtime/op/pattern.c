/* pattern.c - parsing patterns of axis names. */
#include "runtime/op/pattern.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct parser {
    tl_pattern *p;
    const char *text;
    size_t at, len;
    tl_pattern_place *place;
    tl_diag *diag;
} parser;

tl_status tl_pattern_fail(const tl_pattern_item *item,
                          tl_pattern_place *place, tl_diag *diag,
                          const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    *place = (tl_pattern_place){item->start, item->end};
    return tl_fail(diag, TL_E0323, "%s", text);
}

tl_label_text tl_pattern_label(const tl_pattern *p, int label)
{
    tl_label_text text = {"..."};

    if (label == TL_LABEL_ONE) {
        memcpy(text.s, "1", 2);
    } else if (label >= 0) {
        snprintf(text.s, sizeof(text.s), "%.*s", (int)p->label[label].len,
                 p->text + p->label[label].start);
    }
    return text;
}

static tl_status fail_here(parser *ps, size_t width, const char *what)
{
    tl_pattern_item here = {.start = (uint16_t)ps->at,
                            .end = (uint16_t)(ps->at + width)};

    return tl_pattern_fail(&here, ps->place, ps->diag, "%s", what);
}

static void skip_blanks(parser *ps)
{
    while (ps->at < ps->len && ps->text[ps->at] == ' ') {
        ps->at++;
    }
}

static bool looking_at(const parser *ps, const char *word)
{
    size_t n = strlen(word);

    return ps->len - ps->at >= n && memcmp(ps->text + ps->at, word, n) == 0;
}

/* ---- labels ------------------------------------------------------------ */

/* The number of a name, a new one if it was not seen before. */
static tl_status find_label(parser *ps, size_t start, size_t len, int *out)
{
    tl_pattern *p = ps->p;

    for (int i = 0; i < p->nlabels; i++) {
        if (p->label[i].len == len &&
            memcmp(ps->text + p->label[i].start, ps->text + start, len) == 0) {
            *out = i;
            return TL_OK;
        }
    }
    if (p->nlabels == TL_PATTERN_LABELS) {
        return fail_here(ps, 1, "a pattern has at most 48 axis names");
    }
    p->label[p->nlabels].start = (uint16_t)start;
    p->label[p->nlabels].len = (uint16_t)len;
    *out = p->nlabels++;
    return TL_OK;
}

static tl_status parse_axis(parser *ps, bool grouped, tl_pattern_side *side)
{
    tl_pattern_item item = {.group = side->groups, .grouped = grouped,
                            .start = (uint16_t)ps->at};
    size_t start = ps->at;

    if (side->n == TL_PATTERN_ITEMS) {
        return fail_here(ps, 1, "a side of a pattern has at most 32 axes");
    }
    if (looking_at(ps, "...")) {
        if (side->rest >= 0) {
            return fail_here(ps, 3, "`...` stands twice on one side");
        }
        side->rest = side->n;
        item.label = TL_LABEL_REST;
        ps->at += 3;
    } else if (ps->text[start] == '1' &&
               (start + 1 == ps->len ||
                !isalnum((unsigned char)ps->text[start + 1]))) {
        item.label = TL_LABEL_ONE;
        ps->at++;
    } else if (isalpha((unsigned char)ps->text[start]) ||
               ps->text[start] == '_') {
        while (ps->at < ps->len &&
               (isalnum((unsigned char)ps->text[ps->at]) ||
                ps->text[ps->at] == '_')) {
            ps->at++;
        }
        TL_TRY(find_label(ps, start, ps->at - start, &item.label));
    } else {
        return fail_here(ps, 1, "a pattern has axis names, `1`, `...`, "
                                "groups in parentheses and one `->`");
    }
    item.end = (uint16_t)ps->at;
    side->item[side->n++] = item;
    return TL_OK;
}

/* ---- sides ------------------------------------------------------------- */

static tl_status parse_group(parser *ps, tl_pattern_side *side)
{
    size_t open = ps->at;
    int before = side->n;

    if (ps->p->kind == TL_PATTERN_EINSUM) {
        return fail_here(ps, 1, "einsum has no groups; rearrange its result");
    }
    ps->at++;
    for (skip_blanks(ps); ps->at < ps->len && ps->text[ps->at] != ')' &&
                          !looking_at(ps, "->");
         skip_blanks(ps)) {
        if (ps->text[ps->at] == '(') {
            return fail_here(ps, 1, "groups do not nest");
        }
        TL_TRY(parse_axis(ps, true, side));
    }
    if (ps->at == ps->len || ps->text[ps->at] != ')') {
        ps->at = open;
        return fail_here(ps, 1, "this `(` is never closed");
    }
    ps->at++;
    if (side->n == before) { // `()` is an axis of size 1
        if (side->n == TL_PATTERN_ITEMS) {
            return fail_here(ps, 1, "a side of a pattern has at most 32 axes");
        }
        side->item[side->n++] = (tl_pattern_item){
            .label = TL_LABEL_ONE, .group = side->groups, .grouped = true,
            .start = (uint16_t)open, .end = (uint16_t)ps->at};
    }
    side->groups++;
    return TL_OK;
}

/* Items up to the end, `,` or `->`. */
static tl_status parse_side(parser *ps, tl_pattern_side *side)
{
    *side = (tl_pattern_side){.rest = -1};
    for (skip_blanks(ps);
         ps->at < ps->len && ps->text[ps->at] != ',' && !looking_at(ps, "->");
         skip_blanks(ps)) {
        if (ps->text[ps->at] == '(') {
            TL_TRY(parse_group(ps, side));
        } else {
            TL_TRY(parse_axis(ps, false, side));
            side->groups++;
        }
    }
    return TL_OK;
}

static tl_status parse_operands(parser *ps)
{
    tl_pattern *p = ps->p;

    for (;;) {
        if (p->noperands == TL_PATTERN_OPERANDS) {
            return fail_here(ps, 1, "einsum takes at most 8 operands");
        }
        TL_TRY(parse_side(ps, &p->in[p->noperands++]));
        if (ps->at == ps->len || ps->text[ps->at] != ',') {
            break;
        }
        if (p->kind != TL_PATTERN_EINSUM) {
            return fail_here(ps, 1, "this pattern has one operand");
        }
        ps->at++;
    }
    if (!looking_at(ps, "->")) {
        return fail_here(ps, 1, "a pattern has `->` between its sides");
    }
    ps->at += 2;
    return TL_OK;
}

/* ---- what both sides must agree on ------------------------------------- */

static const tl_pattern_item *find_item(const tl_pattern_side *side,
                                        int label, int from)
{
    for (int i = from; i < side->n; i++) {
        if (side->item[i].label == label) {
            return &side->item[i];
        }
    }
    return NULL;
}

static bool on_the_left(const tl_pattern *p, int label)
{
    for (int i = 0; i < p->noperands; i++) {
        if (find_item(&p->in[i], label, 0)) {
            return true;
        }
    }
    return false;
}

static tl_status check_repeats(parser *ps, const tl_pattern_side *side)
{
    for (int i = 0; i < side->n; i++) {
        int label = side->item[i].label;
        const tl_pattern_item *again =
            label >= 0 ? find_item(side, label, i + 1) : NULL;

        if (again) {
            return tl_pattern_fail(again, ps->place, ps->diag,
                                   "`%s` stands twice on one side",
                                   tl_pattern_label(ps->p, label).s);
        }
    }
    return TL_OK;
}

static tl_status check_sides(parser *ps)
{
    const tl_pattern *p = ps->p;

    TL_TRY(check_repeats(ps, &p->out));
    for (int i = 0; i < p->out.n; i++) {
        const tl_pattern_item *item = &p->out.item[i];

        if (item->label != TL_LABEL_ONE && !on_the_left(p, item->label)) {
            return tl_pattern_fail(item, ps->place, ps->diag,
                                   "`%s` is not in any input",
                                   tl_pattern_label(p, item->label).s);
        }
    }
    if (p->kind == TL_PATTERN_EINSUM) {
        return TL_OK;
    }
    TL_TRY(check_repeats(ps, &p->in[0]));
    for (int i = 0; p->kind == TL_PATTERN_REARRANGE && i < p->in[0].n; i++) {
        const tl_pattern_item *item = &p->in[0].item[i];

        if (item->label != TL_LABEL_ONE &&
            !find_item(&p->out, item->label, 0)) {
            return tl_pattern_fail(item, ps->place, ps->diag,
                                   "`%s` is lost: the right side of "
                                   "rearrange has every axis",
                                   tl_pattern_label(p, item->label).s);
        }
    }
    return TL_OK;
}

tl_status tl_pattern_parse(tl_pattern *p, tl_pattern_kind kind,
                           const char *text, size_t len,
                           tl_pattern_place *place, tl_diag *diag)
{
    parser ps = {.p = p, .text = text, .len = len, .place = place,
                 .diag = diag};

    *p = (tl_pattern){.text = text, .kind = kind};
    *place = (tl_pattern_place){0, len};
    if (len >= UINT16_MAX) {
        return tl_fail(diag, TL_E0323, "a pattern has at most 65,534 bytes");
    }
    TL_TRY(parse_operands(&ps));
    TL_TRY(parse_side(&ps, &p->out));
    if (ps.at < len) {
        return fail_here(&ps, 1, "the right side of a pattern is one list "
                                 "of axes");
    }
    return check_sides(&ps);
}
