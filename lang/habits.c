/* habits.c - what people bring along from Python, PyTorch and C, and the form
 * that tlang has instead.  The tables are the content. */
#include "lang/habits.h"

#include <stddef.h>
#include <string.h>

#include "lang/parse_state.h"

#include "lang/parser.h"

typedef struct row {
    const char *found;
    const char *help;
} row;

#define LOOKUP(table, word) lookup(table, sizeof(table) / sizeof(row), word)

static const char *lookup(const row *rows, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].found, word) == 0) {
            return rows[i].help;
        }
    }
    return NULL;
}

/* ---- names, attributes, packages ----------------------------------------- */

static const row names[] = {
    {"True", "write `true`"},
    {"False", "write `false`"},
    {"None", "write `none`"},
    {"null", "write `none`"},
    {"nil", "write `none`"},
    {"NULL", "write `none`"},
    {"torch", "nothing to import: tensors and their functions are built in"},
    {"np", "nothing to import: tensors and their functions are built in"},
    {"numpy", "nothing to import: tensors and their functions are built in"},
    {"F", "the functions are built in: `relu(x)`, `cross_entropy(x, y)`"},
    {"type", "`x.dtype` and `x.shape` of a tensor; `:type x` at the prompt"},
    {"dir", "`:who` lists names at the prompt, Tab behind `x.` its fields"},
    {"help", "`?name` at the prompt, or `tlang doc NAME`"},
    {"exit", "Ctrl-D ends the prompt; a program ends with its last line"},
    {"quit", "Ctrl-D ends the prompt; a program ends with its last line"},
    {"isinstance", "annotate the parameter instead: `fn f(x: T)`"},
    {"super", "modules have no inheritance: hold the other as a field"},
    {"open", "read files with `files` or `data`"},
    {"input", "parameters of a function marked `@main` become `--flags`"},
    {"set", "use a dict, or `unique` for tensors"},
    {"Exception", "raise a message: `raise \"text\"`"},
    {"ValueError", "raise a message: `raise \"text\"`"},
    {"TypeError", "raise a message: `raise \"text\"`"},
    {"RuntimeError", "raise a message: `raise \"text\"`"},
    {"KeyError", "raise a message: `raise \"text\"`"},
    {"IndexError", "raise a message: `raise \"text\"`"},
    {"NotImplementedError", "raise a message: `raise \"text\"`"},
    {"Tensor", "a tensor's type is dtype and shape: `f32[B, T]`"},
    {"float32", "write `f32`"},
    {"float64", "write `f64`"},
    {"float16", "write `f16`"},
    {"bfloat16", "write `bf16`"},
    {"int64", "write `i64`"},
    {"int32", "write `i32`"},
    {"uint8", "write `u8`"},
    {"string", "write `str`"},
    {"compile", "mark the function: `@compile` on the line before `fn`"},
    {"Parameter", "declare it: `param w: f32[d] = init.normal` in a module"},
    {"Module", "write `module Name(arguments):`"},
    {"ModuleList", "a list of modules is a field like any other"},
    {"Linear", "layers are in `nn`: `import nn`, `nn.Linear(...)`"},
    {"Dataset", "`import data`: `data.dataset(x, y)`"},
    {"DataLoader", "`import data`: `data.loader(d, batch=64)`"},
    {"flatten", "write `x.reshape(n, -1)`; as a layer `nn.Flatten()`"},
    {"view", "write `reshape(x, ...)`"},
    {"transpose", "write `x.T` for the last two axes, or `permute(x, ...)`"},
    {"mm", "write `a @ b`"},
    {"bmm", "write `a @ b`"},
    {"dot", "write `a @ b`"},
    {"concat", "write `cat`"},
    {"concatenate", "write `cat`"},
    {"clip", "write `clamp`"},
    {"amax", "write `max`"},
    {"amin", "write `min`"},
    {"masked_fill", "write `where(mask, value, x)`"},
    {"nll_loss", "write `nll`"},
    {"mse_loss", "write `mse`"},
    {"l1_loss", "write `l1`"},
    {"smooth_l1_loss", "write `huber`"},
    {"binary_cross_entropy", "write `bce_logits`, of the logits"},
    {"binary_cross_entropy_with_logits", "write `bce_logits`"},
    {"full_like", "write `full(x.shape, v, dtype=x.dtype)`"},
    {"rand_like", "write `rand(x.shape, dtype=x.dtype)`"},
    {"randn_like", "write `randn(x.shape, dtype=x.dtype)`"},
    {"empty", "write `zeros`"},
    {"numel", "write `x.size`"},
    {"manual_seed", "write `seed(n)`"},
    {"from_numpy", "write `tensor(xs)`"},
    {"as_tensor", "write `tensor(xs)`"},
    {"array", "write `tensor(xs)`"},
    {"astype", "a dtype is a cast: `f32(x)`"},
    {"allclose", "write `close(a, b)`"},
    {"isclose", "write `close(a, b)`"},
    {"relu6", "write `clamp(x, 0, 6)`"},
    {"hardtanh", "write `clamp(x, -1, 1)`"},
    {"type", "write `typeof(x)`"},
    {"exit", "leave `main` by `return`, or `raise \"text\"`"},
};

const char *tl_habit_name(const char *name)
{
    return LOOKUP(names, name);
}

bool tl_habit_library(const char *name)
{
    static const char *const modules[] = {"nn",      "init", "optim", "data",
                                          "metrics", "plot", "amp"};

    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        if (strcmp(modules[i], name) == 0) {
            return true;
        }
    }
    return false;
}

#define GRAD_FORM "gradients come from a block: `g = grad loss wrt net:`"
#define DEVICE_FORM "devices are ambient: `with device(\"cuda\"):` or --device"
#define MODE_FORM                                                            \
    "a module is in training mode inside `grad ... wrt` of it; "             \
    "`with mode(\"eval\", net):` overrides"

#define IN_PLACE "values do not change in place: "

static const row attributes[] = {
    {"backward", GRAD_FORM},
    {"zero_grad", "gradients are values and need no clearing: " GRAD_FORM},
    {"requires_grad", "`grad loss wrt x:` names what is differentiated"},
    {"requires_grad_", "`grad loss wrt x:` names what is differentiated"},
    {"retain_grad", GRAD_FORM},
    {"grad", GRAD_FORM},
    {"detach", "write `stop(x)`"},
    {"to", DEVICE_FORM "; a dtype is a cast, `f16(x)`"},
    {"cuda", DEVICE_FORM},
    {"cpu", DEVICE_FORM},
    {"train", MODE_FORM},
    {"eval", MODE_FORM},
    {"item", "write `float(x)`, `int(x)` or `bool(x)`"},
    {"numpy", "values print and save as they are; `save(path, {\"x\": x})`"},
    {"tolist", "write `list(x)`"},
    {"view", "write `reshape`"},
    {"contiguous", "layout is not visible: leave it out"},
    {"data", "values are immutable: leave it out"},
    {"clone", "values are immutable: `y = x` is enough"},
    {"double", "write `f64(x)`"},
    {"half", "write `f16(x)`"},
    {"long", "write `i64(x)`"},
    {"state_dict", "`params(net)` is the tree; `save(path, net)` writes it"},
    {"load_state_dict", "write `net.load(path)`"},
    {"parameters", "pass the module itself: `optim.AdamW(net)`"},
    {"named_parameters", "write `params(net).items()`"},
    {"as_strided", "layout is not visible: slices, `reshape` and `permute` "
                   "make views"},
    {"copy_", IN_PLACE "`x[i] = v`"},
    {"fill_", IN_PLACE "`x = full(x.shape, v)`, or `x[i] = v` for a part"},
    {"zero_", IN_PLACE "`x = zeros_like(x)`"},
    {"float", "write `f32(x)`; `float(x)` reads a tensor of one element"},
    {"int", "write `i32(x)`; `int(x)` reads a tensor of one element"},
    {"type", "write `f32(x)`; `x.dtype` is the dtype"},
    {"astype", "write `f32(x)`"},
    {"dim", "write `len(x.shape)`"},
    {"ndim", "write `len(x.shape)`"},
    {"numel", "write `x.size`"},
    {"unsqueeze", "write `x[:, none]`"},
    {"transpose", "write `x.T` for the last two axes, or `permute(x, ...)`"},
    {"t", "write `x.T`"},
    {"register_buffer", "declare it: `buffer name: f32[d] = ...`"},
    {"flatten", "write `x.reshape(n, -1)`; as a layer `nn.Flatten()`"},
    {"masked_fill", "write `where(mask, value, x)`"},
    {"mm", "write `a @ b`"},
    {"bmm", "write `a @ b`"},
    {"matmul", "write `a @ b`"},
    {"dot", "write `a @ b`"},
    {"mul", "write `a * b`"},
    {"add", "write `a + b`"},
    {"sub", "write `a - b`"},
    {"div", "write `a / b`"},
    {"pow", "write `a ** b`"},
    {"eq", "write `a == b`"},
    {"clip", "write `clamp`"},
    {"mT", "write `x.T`: the last two axes"},
    {"device", "devices are ambient: tensors do not name one"},
    {"register_parameter", "declare it: `param name: f32[d] = ...`"},
};

const char *tl_habit_attr(const char *name)
{
    size_t n = strlen(name);
    const char *help = LOOKUP(attributes, name);

    if (!help && n > 1 && name[n - 1] == '_' && name[0] != '_') {
        help = IN_PLACE "write `x = ...` without the `_`";
    }
    return help;
}

bool tl_habit_attr_always(const char *name)
{
    static const char *const always[] = {"zero_grad", "requires_grad",
                                         "requires_grad_", "retain_grad"};

    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        if (strcmp(always[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Names of arguments. */
static const row arguments[] = {
    {"dim", "`axis`"},
    {"dims", "`axis`"},
    {"keepdim", "`keep`"},
    {"keepdims", "`keep`"},
    {"requires_grad", "`grad loss wrt x:` names what is differentiated"},
    {"device", DEVICE_FORM},
    {"inplace", IN_PLACE "leave it out"},
    {"out", IN_PLACE "leave it out"},
    {"weight_decay", "`decay`"},
    {"batch_size", "`batch`"},
};

const char *tl_habit_argument(const char *name)
{
    return LOOKUP(arguments, name);
}

static const row packages[] = {
    {"torch", "tensors and their functions are built in; layers: `import nn`"},
    {"numpy", "arrays and their functions are built in"},
    {"jax", "tensors are built in; gradients: `g = grad loss wrt x:`"},
    {"tensorflow", "tensors are built in; layers: `import nn`"},
    {"math", "`sqrt`, `exp`, `pi` and the others are built in"},
    {"random", "`rand`, `randint`, `seed` and the others are built in"},
    {"os", "use `files` and `env`"},
    {"sys", "parameters of a function marked `@main` become `--flags`"},
    {"typing", "types are built in: `list[T]`, `dict[K, V]`, `T?`"},
    {"matplotlib", "write `import plot`"},
    {"transformers", "write `import hf`"},
    {"torchvision", "write `import data`"},
};

const char *tl_habit_import(const char *name)
{
    return LOOKUP(packages, name);
}

static const row methods[] = {
    {"append", "xs += [v]"},
    {"extend", "xs += ys"},
    {"insert", "xs = xs[:i] + [v] + xs[i:]"},
    {"remove", "xs = [x for x in xs if x != v]"},
    {"pop", "xs = xs[:-1]"},
    {"sort", "xs = sorted(xs)"},
    {"reverse", "xs = xs[::-1]"},
    {"clear", "xs = []"},
    {"update", "d = {**d, **other}"},
    {"setdefault", "if k not in d: d[k] = v"},
    {"replace", "s = s.replace(a, b)"},
    {"strip", "s = s.strip()"},
    {"lower", "s = s.lower()"},
    {"upper", "s = s.upper()"},
};

const char *tl_habit_method(const char *method)
{
    return LOOKUP(methods, method);
}

/* ---- characters ---------------------------------------------------------- */

const char *tl_habit_lookalike(uint32_t cp)
{
    static const struct {
        uint32_t cp;
        const char *ascii;
    } rows[] = {
        /* Cyrillic */
        {0x430, "a"}, {0x435, "e"}, {0x43e, "o"}, {0x440, "p"}, {0x441, "c"},
        {0x443, "y"}, {0x445, "x"}, {0x455, "s"}, {0x456, "i"}, {0x458, "j"},
        {0x410, "A"}, {0x412, "B"}, {0x415, "E"}, {0x41a, "K"}, {0x41c, "M"},
        {0x41d, "H"}, {0x41e, "O"}, {0x420, "P"}, {0x421, "C"}, {0x422, "T"},
        {0x423, "Y"}, {0x425, "X"}, {0x405, "S"}, {0x406, "I"}, {0x408, "J"},
        /* Greek */
        {0x3bf, "o"}, {0x3bd, "v"}, {0x391, "A"}, {0x392, "B"}, {0x395, "E"},
        {0x396, "Z"}, {0x397, "H"}, {0x399, "I"}, {0x39a, "K"}, {0x39c, "M"},
        {0x39d, "N"}, {0x39f, "O"}, {0x3a1, "P"}, {0x3a4, "T"}, {0x3a5, "Y"},
        {0x3a7, "X"}, {0x3c1, "p"},
        /* typography */
        {0x2018, "'"}, {0x2019, "'"}, {0x201c, "\""}, {0x201d, "\""},
        {0xa0, " "}, {0x202f, " "}, {0x2212, "-"}, {0x2013, "-"},
        {0x2014, "-"}, {0xd7, "*"}, {0xb7, "*"}, {0xf7, "/"}, {0x2044, "/"},
        {0x2264, "<="}, {0x2265, ">="}, {0x2260, "!="}, {0x2192, "->"},
        {0x21d2, "=>"}, {0x2026, "..."}, {0xff08, "("}, {0xff09, ")"},
        {0xff0c, ","}, {0xff1a, ":"}, {0xff1b, ";"}, {0xff1d, "="},
        {0x3000, " "},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].cp == cp) {
            return rows[i].ascii;
        }
    }
    return NULL;
}

/* ---- tokens -------------------------------------------------------------- */

static const row tokens[] = {
    {"&&", "write `and`"},
    {"||", "write `or`"},
    {"&", "write `and`, which works elementwise on bool tensors"},
    {"|", "write `or`, which works elementwise on bool tensors"},
    {"~", "write `not`, which works elementwise on bool tensors"},
    {"!", "write `not`"},
    {"^", "write `**` for a power, `!=` for exclusive or of bools"},
    {"<<", "multiply by a power of two"},
    {">>", "divide by a power of two: `x // 2 ** n`"},
    {":=", "assign in a statement of its own: `x = value`"},
    {"++", "write `x += 1`"},
    {"--", "write `x -= 1`"},
    {";", "write one statement a line"},
    {"is", "write `==`"},
    {"is not", "write `!=`"},
    {"else if", "write `elif`"},
};

void tl_habit_token(tl_parser *ps, const char *text, tl_span at)
{
    tl_parse_error(ps, TL_E0117, at, "`%s` is not a form of tlang", text);
    tl_parse_help(ps, "%s", LOOKUP(tokens, text));
}

/* Words that begin a statement in another language. */
static const row words[] = {
    {"def", "write `fn name(parameters):`"},
    {"func", "write `fn name(parameters):`"},
    {"function", "write `fn name(parameters):`"},
    {"fun", "write `fn name(parameters):`"},
    {"class", "layers are a `module Name(parameters):`, plain data a "
              "`record Name:`"},
    {"struct", "plain data is a `record Name:`"},
    {"lambda", "write `fn(x) => ...`"},
    {"async", "tlang has no async; loaders read ahead by themselves"},
    {"await", "tlang has no async; loaders read ahead by themselves"},
    {"yield", "return a list, or write a module with `next() -> T?`"},
    {"except", "write `catch e:`"},
    {"finally", "leave the `try`; what must happen stands behind it"},
    {"del", "memory is freed after the last use: leave it out"},
    {"global", "only the top level rebinds its names: return the value"},
    {"nonlocal", "functions capture values: return the new one"},
    {"match", "write `if` and `elif`"},
    {"switch", "write `if` and `elif`"},
    {"elsif", "write `elif`"},
    {"elseif", "write `elif`"},
    {"let", "write `x = value`"},
    {"var", "write `x = value`"},
    {"const", "write `x = value`"},
    {"new", "call the module: `Name(...)`"},
    {"print", "print is a function: `print(x)`"},
    {"include", "write `import name`"},
    {"using", "write `import name`"},
};

/* Text of a token if it is a plain name, else "". */
static const char *name_of(const tl_token *t)
{
    return t->kind == T_NAME && t->sym ? t->sym->text : "";
}

static bool report_word(tl_parser *ps, const tl_token *t)
{
    const char *help = LOOKUP(words, name_of(t));

    if (!help) {
        return false;
    }
    tl_parse_error(ps, TL_E0117, t->span, "`%s` is not a form of tlang",
                   name_of(t));
    tl_parse_help(ps, "%s", help);
    return true;
}

static bool same_place(const tl_token *a, const tl_token *b)
{
    return a->span.start == b->span.start && a->kind == b->kind;
}

static bool report(tl_parser *ps, tl_span at, const char *found,
                   const char *help)
{
    tl_parse_error(ps, TL_E0117, at, "`%s` is not a form of tlang", found);
    tl_parse_help(ps, "%s", help);
    return true;
}

bool tl_habit_syntax(tl_parser *ps, int found, tl_span at)
{
    const tl_token *before = &ps->prev2;

    if (report_word(ps, before)) {
        return true;
    }
    if (found == T_NAME && same_place(&ps->prev, &ps->first) &&
        report_word(ps, &ps->prev)) {
        return true; /* `except` where `catch` should be */
    }
    if (found == T_NEWLINE && before->kind == ':' &&
        report_word(ps, &ps->first)) {
        return true; /* `finally:` */
    }
    if (found == T_BACKWARD && before->kind == '.') {
        return report(ps, at, ".backward()", GRAD_FORM);
    }
    if (found == '?') {
        return report(ps, at, "c ? a : b", "write `a if c else b`");
    }
    if (found == '*' && ps->first.kind == T_FROM) {
        return report(ps, at, "import *", "name what you need, or "
                                          "`import` the file");
    }
    if (found == '{' && (ps->first.kind == T_IF || ps->first.kind == T_FOR ||
                         ps->first.kind == T_WHILE ||
                         ps->first.kind == T_FN)) {
        return report(ps, at, "{", "a block begins with `:` and is indented");
    }
    return false;
}
