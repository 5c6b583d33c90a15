/* mutate.c - mutations that know what a text is made of.
 *
 * libFuzzer changes bytes, which mostly gives syntax errors.  Half of the
 * mutations here move, copy, drop or join whole lines and words instead, and
 * lines keep the indentation of their place, so that many results parse.
 * Crossing over splices lines, or a word, of another input. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t none,
                                 const uint8_t *two, size_t ntwo,
                                 uint8_t *out, size_t most, unsigned seed);

typedef struct part {
    size_t at, len;
} part;

static uint64_t state;

static size_t below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return n == 0 ? 0 : (size_t)(state >> 33) % n;
}

/* ---- parts of a text --------------------------------------------------- */

/* The line, with its end, that holds byte `i`. */
static part line_at(const uint8_t *s, size_t n, size_t i)
{
    part p;
    const uint8_t *end;

    for (p.at = i; p.at > 0 && s[p.at - 1] != '\n'; p.at--) {
    }
    end = memchr(s + p.at, '\n', n - p.at);
    p.len = end != NULL ? (size_t)(end - s) + 1 - p.at : n - p.at;
    return p;
}

static size_t indent(const uint8_t *s, part line)
{
    size_t n = 0;

    while (n < line.len && s[line.at + n] == ' ') {
        n++;
    }
    return n;
}

/* A line, often with the deeper ones below it: a statement with its block. */
static part some_lines(const uint8_t *s, size_t n)
{
    part p = line_at(s, n, below(n)), next = p;
    size_t depth = indent(s, p);

    if (below(4) == 0) {
        return p;
    }
    while (p.at + p.len < n) {
        next = line_at(s, n, p.at + p.len);
        if (next.len > 1 && indent(s, next) <= depth) {
            break;
        }
        p.len += next.len;
    }
    return p;
}

static bool in_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

/* A name, a number, or one byte between them. */
static part some_word(const uint8_t *s, size_t n)
{
    part p = {below(n), 1};

    if (n == 0) {
        return (part){0, 0};
    }
    if (in_word(s[p.at])) {
        while (p.at > 0 && in_word(s[p.at - 1])) {
            p.at--;
            p.len++;
        }
        while (p.at + p.len < n && in_word(s[p.at + p.len])) {
            p.len++;
        }
    }
    return p;
}

/* What stands between brackets, with them; or a word. */
static part some_group(const uint8_t *s, size_t n)
{
    size_t at = below(n), depth = 0;

    while (at < n && memchr("([{", s[at], 3) == NULL) {
        at++;
    }
    for (size_t i = at; i < n && s[i] != '\n'; i++) {
        depth += memchr("([{", s[i], 3) != NULL;
        depth -= memchr(")]}", s[i], 3) != NULL;
        if (depth == 0) {
            return (part){at, i + 1 - at};
        }
    }
    return some_word(s, n);
}

/* ---- edits ------------------------------------------------------------- */

typedef struct edit {
    uint8_t *out;
    size_t len, most;
} edit;

static void put(edit *e, const uint8_t *s, size_t n)
{
    n = n < e->most - e->len ? n : e->most - e->len;
    memcpy(e->out + e->len, s, n);
    e->len += n;
}

/* Lines of `s`, moved so that the first has `depth` spaces. */
static void put_lines(edit *e, const uint8_t *s, part p, size_t depth)
{
    static const uint8_t space[] = "                                ";
    size_t first = indent(s, p);

    for (size_t at = p.at; at < p.at + p.len;) {
        part line = line_at(s, p.at + p.len, at);
        size_t own = indent(s, line);
        size_t want = own + depth < first ? 0 : own + depth - first;

        want = want < sizeof(space) - 1 ? want : sizeof(space) - 1;
        put(e, space, want);
        put(e, s + at + own, line.len - own);
        at += line.len;
    }
    if (p.len > 0 && s[p.at + p.len - 1] != '\n') {
        put(e, (const uint8_t *)"\n", 1);
    }
}

/* `s` with the bytes at `gap` replaced by `part` of `from`. */
static void splice_word(edit *e, const uint8_t *s, size_t n, part gap,
                        const uint8_t *from, part p)
{
    put(e, s, gap.at);
    put(e, from + p.at, p.len);
    put(e, s + gap.at + gap.len, n - gap.at - gap.len);
}

/* The same with whole lines. */
static void splice_lines(edit *e, const uint8_t *s, size_t n, part gap,
                         const uint8_t *from, part p)
{
    put(e, s, gap.at);
    put_lines(e, from, p, indent(s, line_at(s, n, gap.at)));
    put(e, s + gap.at + gap.len, n - gap.at - gap.len);
}

/* Change `s` by something of `from`. */
static void combine(edit *e, const uint8_t *s, size_t n, const uint8_t *from,
                    size_t nfrom)
{
    part gap;

    switch (below(6)) {
    case 0: /* replace lines */
        splice_lines(e, s, n, some_lines(s, n), from,
                     some_lines(from, nfrom));
        break;
    case 1: /* insert lines */
    case 2:
        gap = line_at(s, n, below(n));
        gap.len = 0;
        splice_lines(e, s, n, gap, from, some_lines(from, nfrom));
        break;
    case 3: /* replace (...), or a word, by another */
        splice_word(e, s, n, some_group(s, n), from, some_group(from, nfrom));
        break;
    default:
        splice_word(e, s, n, some_word(s, n), from, some_word(from, nfrom));
    }
}

/* The first byte chooses how the rest runs. */
static void put_first(edit *e, uint8_t first)
{
    uint8_t any = (uint8_t)below(256);

    put(e, below(8) == 0 ? &any : &first, 1);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t none,
                                 const uint8_t *two, size_t ntwo,
                                 uint8_t *out, size_t most, unsigned seed)
{
    edit e = {.out = out, .most = most};

    state = seed;
    if (none < 2 || ntwo < 2) {
        return 0;
    }
    put_first(&e, one[0]);
    combine(&e, one + 1, none - 1, two + 1, ntwo - 1);
    return e.len;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    static uint8_t copy[1 << 16];
    edit e = {.out = data, .most = most};

    state = seed;
    if (size < 2 || size > sizeof(copy) || below(2) == 0) {
        return LLVMFuzzerMutate(data, size, most);
    }
    memcpy(copy, data, size);
    put_first(&e, copy[0]);
    if (below(8) == 0) { /* drop lines */
        splice_word(&e, copy + 1, size - 1, some_lines(copy + 1, size - 1),
                    copy, (part){0, 0});
    } else {
        combine(&e, copy + 1, size - 1, copy + 1, size - 1);
    }
    return e.len;
}
