/* test_scope.c - what names resolve to, and what may stand where. */
#include <criterion/criterion.h>

#include <string.h>

#include "lang/habits.h"
#include "tests/unit/lang/front.h"

typedef struct form {
    const char *text;
    const char *part; /* of the resolved tree */
} form;

static void check(const form *forms, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *tree;
        front f;

        front_init(&f);
        front_resolve(&f, forms[i].text);
        tree = front_tree(&f, true);
        cr_expect_not_null(strstr(tree, forms[i].part),
                           "`%s` is\n%s\nnot\n%s", forms[i].text, tree,
                           forms[i].part);
        front_fini(&f);
    }
}

#define CHECK(forms) check(forms, sizeof(forms) / sizeof((forms)[0]))
#define CHECK_ERRORS(cases)                                                  \
    front_check(cases, sizeof(cases) / sizeof((cases)[0]), true)

Test(scope, kinds_of_names)
{
    static const form forms[] = {
        {"x = 1\nprint(x)",
         "(assign [(name x global:0)] (int 1)) (expr_stmt (call (name print "
         "builtin) [(name x global:0)]))"},
        {"fn h(a, b):\n    c = a\n    return b + c\n",
         "(block [(assign [(name c local:2)] (name a local:0 last)) (return "
         "(binary + (name b local:1 last) (name c local:2 last)))])"},
        {"fn h(): return y\ny = 1\n", "(return (name y global:1))"},
        {"fn h(a) = fn(b) => a + b",
         "(lambda [(param b 0 - - local:0)] (binary + (name a capture:0) "
         "(name b local:0 last)))"},
        {"fn h(n):\n    fn k(m) = k(m + n)\n    return k\n",
         "(fn [] k [(param m 0 - - local:0)] - [] (call (name k self_fn) "
         "[(binary + (name m local:0 last) (name n capture:0))]) - local:1)"},
        {"fn h() = h()", "(call (name h global:0) [])"},
        {"sum = 1\nx = sum", "(name sum global:0))"},
    };

    CHECK(forms);
}

Test(scope, captures_pass_through_every_function_between)
{
    front f;
    const tl_funcdef *outer, *middle, *inner;

    front_init(&f);
    front_resolve(&f,
                  "fn outer(a):\n"
                  "    fn middle(b):\n"
                  "        fn inner(c): return a + b + c + outer(middle)\n"
                  "        return inner\n"
                  "    return middle\n");
    outer = front_func(&f, "outer");
    middle = front_func(&f, "middle");
    inner = front_func(&f, "inner");
    cr_expect_eq(outer->ncaptures, 0);
    cr_assert_eq(middle->ncaptures, 1);
    cr_expect_str_eq(middle->captures[0].name->text, "a");
    cr_expect_eq(middle->captures[0].outer.kind, TL_REF_LOCAL);
    cr_expect_eq(middle->captures[0].outer.index, 0);
    cr_assert_eq(inner->ncaptures, 3);
    cr_expect_eq(inner->captures[0].outer.kind, TL_REF_CAPTURE);
    cr_expect_eq(inner->captures[1].outer.kind, TL_REF_LOCAL);
    cr_expect_eq(inner->captures[2].outer.kind, TL_REF_SELF_FN);
    cr_expect_eq(inner->outer, middle);
    cr_expect_eq(middle->outer, outer);
    front_fini(&f);
}

Test(scope, loop_variables_of_the_top_level_are_captured)
{
    static const form forms[] = {
        {"for i in xs: f(fn() => i)", "(lambda [] (name i capture:0))"},
        {"for i in xs: pass\nx = fn() => i", "(lambda [] (name i global:0))"},
        {"y = [fn() => i for i in xs]",
         "(comp_for (name xs builtin) (name i local:0))] (lambda [] (name i "
         "capture:0))"},
    };

    CHECK(forms);
}

Test(scope, comprehension_variables_stay_inside)
{
    static const front_case outside[] = {
        {"y = [i for i in xs]\nz = i", "E0201 2:5 `i` is not defined", NULL},
        {"y = [i for i in i]", "E0201 1:17 `i` is not defined", NULL},
    };
    front f;

    CHECK_ERRORS(outside);
    front_init(&f);
    front_resolve(&f, "fn h(i): return [i for i in [i for j in i]] + [i]");
    cr_expect_not_null(
        strstr(front_tree(&f, true),
               "(binary + (list_comp [(comp_for (list_comp [(comp_for (name "
               "i local:0) (name j local:1))] (name i local:0)) (name i "
               "local:2))] (name i local:2 last)) (list [(name i local:0 "
               "last)]))"),
        "%s", front_tree(&f, true));
    front_fini(&f);
}

static const char *const module =
    "module M(d: int, lr: float = 1.0):\n"
    "    param w: f32[d] = f\n"
    "    buffer b: i64[]\n"
    "    lr: float = lr\n"
    "    n: int? = none\n"
    "    k = d + n\n"
    "    sub = [f(i) for i in range(d)]\n"
    "    fn forward(x: f32[B, d]) -> f32[B]:\n"
    "        self.n = k\n"
    "        return fn(y) => x @ w + helper(y)\n"
    "    fn helper(x) = x * lr\n";

Test(scope, fields_of_a_module)
{
    static const struct {
        const char *name;
        tl_field_class class_;
        bool header;
    } want[] = {{"d", TL_FIELD_HEADER, true},
                {"w", TL_FIELD_PARAM, false},
                {"b", TL_FIELD_BUFFER, false},
                {"lr", TL_FIELD_HOST, true},
                {"n", TL_FIELD_HOST, false},
                {"k", TL_FIELD_CONSTANT, false},
                {"sub", TL_FIELD_CONSTANT, false},
                {"forward", TL_FIELD_METHOD, false},
                {"helper", TL_FIELD_METHOD, false}};
    const tl_moddef *m;
    front f;

    front_init(&f);
    front_resolve(&f, module);
    m = front_func(&f, "M")->module;
    cr_assert_eq(m->nfields, sizeof(want) / sizeof(want[0]));
    for (uint32_t i = 0; i < m->nfields; i++) {
        cr_expect_str_eq(m->fields[i].name->text, want[i].name);
        cr_expect_eq(m->fields[i].class_, want[i].class_, "%s", want[i].name);
        cr_expect_eq(m->fields[i].header, want[i].header, "%s", want[i].name);
        cr_expect_not_null(m->fields[i].decl);
    }
    front_fini(&f);
}

Test(scope, names_in_a_module)
{
    front f;
    const char *tree;
    static const char *const parts[] = {
        /* the argument, until the field takes its name */
        "(decl (name lr field:3:host) (type_name (name float builtin) []) "
        "(name lr local:2))",
        "(assign [(name k field:5:constant)] (binary + (name d local:1) "
        "(name n field:4:host)))",
        "(type_tensor f32 [(name B local:2) (name d field:0:header)])",
        "(assign [(attr (name self local:0) n)] (name k field:5:constant))",
        /* a nested function captures self */
        "(binary + (binary @ (name x capture:0) (name w field:1:param:via1)) "
        "(call (name helper field:8:method:via1) [(name y local:0 last)]))",
        "(binary * (name x local:1 last) (name lr field:3:host))",
    };

    front_init(&f);
    front_resolve(&f, module);
    tree = front_tree(&f, true);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        cr_expect_not_null(strstr(tree, parts[i]), "%s\nnot in\n%s", parts[i],
                           tree);
    }
    front_fini(&f);
}

Test(scope, dimension_names_are_locals_of_the_signature)
{
    front f;
    const tl_funcdef *h, *k;

    front_init(&f);
    front_resolve(&f, "fn h(x: f32[B, *S, n], n: int) -> f32[C, 2 * B]:\n"
                      "    fn k(y: f32[B]) = y\n"
                      "    z = fn() => B\n"
                      "    return x as f32[B, D]\n");
    h = front_func(&f, "h");
    k = front_func(&f, "k");
    cr_assert_eq(h->ndims, 3);
    cr_expect_str_eq(h->slot_names[h->dims[0]]->text, "B");
    cr_expect_str_eq(h->slot_names[h->dims[1]]->text, "S");
    cr_expect_str_eq(h->slot_names[h->dims[2]]->text, "C");
    cr_expect_eq(k->ndims, 1);
    cr_expect_eq(k->ncaptures, 0);
    cr_expect_not_null(
        strstr(front_tree(&f, true), "(lambda [] (name B capture:0))"));
    cr_expect_not_null(
        strstr(front_tree(&f, true), "[(name B local:2) (name D local:7)]"),
        "%s", front_tree(&f, true));
    front_fini(&f);
}

Test(scope, a_method_sees_upper_case_fields_in_shapes)
{
    static const form forms[] = {
        {"module M(C: int):\n    fn forward(x: f32[B, C]) = x\n",
         "[(name B local:2) (name C field:0:header)]"},
        {"x: f32[B] = zeros(3)\ny = B",
         "(assign [(name y global:1)] (name B local:0 last))"},
        {"fn h(N: int, x: f32[N]) = N",
         "(type_tensor f32 [(name N local:0)])"},
    };

    CHECK(forms);
}

Test(scope, entries_share_globals)
{
    front f;

    front_init(&f);
    cr_assert_eq(front_resolve_entry(&f, "x = 1"), TL_OK);
    cr_assert_eq(front_resolve_entry(&f, "y = x\nx += 1"), TL_OK);
    cr_expect_str_eq(front_tree(&f, true),
                     "(assign [(name y global:1)] (name x global:0)) (aug + "
                     "(name x global:0) (int 1))");
    cr_expect_eq(f.unit->nglobals, 2);
    /* what fails leaves no names behind */
    cr_assert_eq(front_resolve_entry(&f, "z = undefined_name"),
                 TL_ERR_REJECTED);
    cr_expect_eq(f.globals.names.len, 2);
    cr_expect_eq(tl_globals_find(&f.globals, tl_intern_get(&f.names, "z", 1)),
                 -1);
    f.status = TL_OK;
    tl_diag_clear(&f.diag);
    cr_assert_eq(front_resolve_entry(&f, "z = x + y"), TL_OK);
    cr_expect_str_eq(front_tree(&f, true),
                     "(assign [(name z global:2)] (binary + (name x "
                     "global:0) (name y global:1)))");
    front_fini(&f);
}

Test(scope, imports_bind_the_last_name_or_the_alias)
{
    static const form forms[] = {
        {"import a.b, c as d\nx = b, d",
         "(import [(import_name a.b - global:0) (import_name c d "
         "global:1)])"},
        {"from a import b as c\nx = c",
         "(from a [(from_name b c global:0)])"},
    };

    CHECK(forms);
}

Test(scope, tests_and_main_are_collected)
{
    front f;

    front_init(&f);
    front_resolve(&f, "test \"a\": pass\n"
                      "module M:\n"
                      "    test \"b\": x = M()\n"
                      "@main\n"
                      "fn run(n: int = 1):\n"
                      "    \"\"\"Doc.\"\"\"\n"
                      "    pass\n");
    cr_assert_eq(f.status, TL_OK, "%s", front_errors(&f));
    cr_assert_eq(f.unit->ntests, 2);
    cr_expect_str_eq(TL_AST(test, f.unit->tests[1])->title.s, "b");
    cr_assert_not_null(f.unit->main);
    cr_expect_str_eq(f.unit->main->name->text, "run");
    cr_assert_not_null(f.unit->main->func->doc);
    cr_expect_str_eq(f.unit->main->func->doc->s, "Doc.");
    front_fini(&f);
}

/* ---- errors -------------------------------------------------------------- */

Test(scope, undefined_names)
{
    static const front_case cases[] = {
        {"x = lenght(1)", "E0201 1:5 `lenght` is not defined", "`length`"},
        {"weights = 1\nx = weihgts", "E0201 2:5", "`weights`"},
        {"x = True", "E0117 1:5", "`true`"},
        {"x = None", "E0117 1:5", "`none`"},
        {"raise ValueError(\"x\")", "E0117 1:7", "raise \"text\""},
        {"x = self", "E0201 1:5 `self` is not defined here", "module"},
        {"fn h(): x += 1", "E0201 1:9 `x` is not defined", NULL},
        {"x += 1", "E0201 1:1 `x` is not defined", NULL},
        {"x = \xce\xb1", "E0201 1:5 `\xce\xb1` is not defined", NULL},
        {"x = s\xcf\x81"
         "am",
         "E0113 1:5", "U+03C1, which looks like `p`"},
        {"x = undefined_a + undefined_a", "E0201 1:5", NULL},
        {"x: Foo = 1", "E0201 1:4 `Foo` is not defined", NULL},
        {"g = grad loss wrt x: y = 1\nx = 1", "E0201 1:10 `loss`", NULL},
    };

    CHECK_ERRORS(cases);
}

Test(scope, what_may_stand_where)
{
    static const front_case cases[] = {
        {"return 1", "E0116 1:1 `return` stands outside a function", NULL},
        {"test \"t\": return", "E0116 1:11", NULL},
        {"break", "E0116 1:1 `break` stands outside a loop", "`for` or"},
        {"fn h():\n    continue\n", "E0116 2:5 `continue`", NULL},
        {"for x in xs:\n    fn h(): break\n", "E0116 2:13", NULL},
        {"param w: f32[] = 1", "E0116 1:1 `param` stands in the body", NULL},
        {"fn h(): import nn", "E0116 1:9 `import`", NULL},
        {"fn h():\n    test \"t\": pass\n", "E0116 2:5", NULL},
        {"module M:\n    if true: pass\n", "E0116 2:5 `if` cannot stand",
         "f = a if c else b"},
        {"module M:\n    for i in xs: pass\n", "E0116 2:5 `for`",
         "[... for _ in range(n)]"},
        {"module M:\n    while x: pass\n", "E0116 2:5 `while`", NULL},
        {"module M:\n    with x: pass\n", "E0116 2:5 `with`", NULL},
        {"module M:\n    try: pass\n    catch e: pass\n", "E0116 2:5 `try`",
         NULL},
        {"module M:\n    module N: pass\n", "E0116 2:5 `module`", NULL},
        {"module M:\n    g = grad l wrt x: l = 1\n", "E0116 2:5 `grad`",
         NULL},
        {"module M:\n    record R:\n        a: int\n", "E0116 2:5", NULL},
        {"x: int", "E0100 1:1 a variable is declared with its value", NULL},
        {"x = 9223372036854775808", "E0108 1:5", "1e20"},
    };

    CHECK_ERRORS(cases);
}

Test(scope, jumps_cannot_leave_a_grad_block)
{
    static const front_case cases[] = {
        {"fn h(x):\n    l = x\n    g = grad l wrt x:\n        return x\n",
         "E0503 4:9 `return` cannot leave a `grad` block", "behind it"},
        {"for x in xs:\n    l = x\n    g = grad l wrt x:\n        break\n",
         "E0503 4:9 `break` cannot leave", NULL},
    };
    front f;

    CHECK_ERRORS(cases);
    front_init(&f);
    front_resolve(&f, "fn h(x):\n"
                      "    g = grad l wrt x:\n"
                      "        l = x\n"
                      "        for y in xs: break\n"
                      "        k = fn(z) => z\n"
                      "    return g\n");
    cr_expect_eq(f.status, TL_OK, "%s", front_errors(&f));
    front_fini(&f);
}

Test(scope, what_can_be_written)
{
    static const front_case cases[] = {
        {"module M:\n    param w: f32[] = f\n    fn h(v): w = v\n",
         "E0114 3:14 `w` is a cell of `M`", "`self.w = ...`"},
        {"module M:\n    n: int = 0\n    fn h(): n += 1\n", "E0114 3:13",
         "`self.n = ...`"},
        {"module M:\n    param w: f32[] = f\n    fn h(v): w[0] = v\n",
         "E0114 3:14 `w` is a cell", "self.w[...] = ..."},
        {"module M:\n    t = [1]\n    fn h(v): t[0] = v\n",
         "E0212 3:14 `t` is a constant", "buffer t"},
        {"n = 0\nfn h(): n += 1\n", "E0212 2:9 `n` belongs to the top level",
         "return the new value"},
        {"fn h(n):\n    fn k(): n += 1\n    return k\n",
         "E0212 2:13 `n` is captured by value", NULL},
        {"ys = [1]\nfn h(): ys[0] = 2\n", "E0212 2:9 `ys[...] = ...` rebinds",
         "copy it first"},
        {"print[0] = 1", "E0212 1:1", NULL},
        {"fn h(a, a): pass", "E0216 1:9 `a` is declared twice", NULL},
        {"x = fn(a, a) => a", "E0216 1:11", NULL},
        {"record R:\n    a: int\n    a: int\n", "E0216 3:5", NULL},
        {"module M:\n    param w: f32[] = f\n    w = 1\n", "E0216 3:5", NULL},
        {"module M(d: int):\n    fn forward(self, x) = x\n",
         "E0117 2:16 `self` is not a parameter", "leave it out"},
        {"fn h():\n    ys = [1]\n    ys.append(2)\n    return ys\n",
         "E0223 3:5 `ys.append(...)` returns a new value", "`xs += [v]`"},
        {"d = {}\nd.update(d)\n", "E0223 2:1", "{**d, **other}"},
        {"fn h(s: str): s.upper()", "E0223 1:15", "s = s.upper()"},
        {"x = 1\nx.zero_grad()", "E0117 2:3 `.zero_grad`", "grad loss wrt"},
    };

    CHECK_ERRORS(cases);
}

Test(scope, what_may_be_written)
{
    static const char *const texts[] = {
        "fn h(net, v): net.lr = v",
        "net = 1\nfn h(v): net.fc.weight[0] = v",
        "module M:\n    param w: f32[] = f\n    fn h(v): self.w = v\n",
        "module M:\n    t = [1]\n    t[0] = 2\n    t += [3]\n",
        "fn h(cache): cache.append(1)",
        "fn h():\n    ys = [1]\n    ys = f(ys)\n    ys.step(1)\n",
        "fn h(xs):\n    n = 0\n    for x in xs: n += x\n    return n\n",
        "module M:\n    w = 1\n    fn h(w): return w\n",
        "module M:\n    a = 1\n    fn h():\n        a = 2\n        return a\n",
        "fn h(x, *ys, k=x, **kw) = f(*ys, **kw)",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        front f;

        front_init(&f);
        cr_expect_eq(front_resolve(&f, texts[i]), TL_OK, "`%s`: %s", texts[i],
                     front_errors(&f));
        front_fini(&f);
    }
}

Test(scope, a_definition_that_is_lost_draws_a_warning)
{
    front f;

    front_init(&f);
    cr_expect_eq(front_resolve(&f, "fn h(): pass\nfn h(): pass\n"), TL_OK);
    cr_expect_str_eq(front_errors(&f), "W0230 2:4 `h` is defined twice");
    front_fini(&f);
}

Test(habits, tables_answer)
{
    cr_expect_not_null(tl_habit_import("torch"));
    cr_expect_null(tl_habit_import("nn"));
    cr_expect_not_null(tl_habit_attr("item"));
    cr_expect_null(tl_habit_attr("weight"));
    cr_expect(!tl_habit_attr_always("item"));
    cr_expect_str_eq(tl_habit_method("append"), "xs += [v]");
    cr_expect_null(tl_habit_method("split"));
}

/* ---- decorators ---------------------------------------------------------- */

Test(marks, options_are_decoded)
{
    const tl_marks *m;
    front f;

    front_init(&f);
    front_resolve(&f, "@compile(mode=\"max-autotune\", static=[T, n], "
                      "fallback=true)\n@checkpoint\n@no_grad\n"
                      "fn h(x: f32[T], n: int) = x\n");
    m = &front_func(&f, "h")->marks;
    cr_expect(m->compile && m->checkpoint && m->no_grad && !m->main);
    cr_expect(m->fallback);
    cr_expect_str_eq(m->mode, "max-autotune");
    cr_assert_eq(m->nstatic, 2);
    cr_expect_str_eq(m->static_[0]->text, "T");
    cr_expect_str_eq(m->static_[1]->text, "n");
    front_fini(&f);
}

Test(marks, mistakes)
{
    static const front_case cases[] = {
        {"@compil\nfn h(): pass",
         "E0111 1:1 there is no annotation `@compil`", "`compile`"},
        {"@compile(mod=\"default\")\nfn h(): pass", "E0111 1:10", "`mode`"},
        {"@compile(mode=\"max-autotun\")\nfn h(): pass", "E0111 1:15",
         "`max-autotune`"},
        {"@compile(mode=3)\nfn h(): pass", "E0111 1:15", NULL},
        {"@compile(static=[q])\nfn h(): pass", "E0111 1:18", NULL},
        {"@compile(static=3)\nfn h(): pass", "E0111 1:17", NULL},
        {"@compile(fallback=1)\nfn h(): pass", "E0111 1:19", NULL},
        {"@compile(1)\nfn h(): pass", "E0111 1:10", NULL},
        {"@checkpoint(1)\nfn h(): pass", "E0111 1:13", NULL},
        {"@compile\n@compile\nfn h(): pass", "E0216 2:1", NULL},
        {"@compile\nmodule M: pass", "E0217 1:1 `@compile` needs a function",
         "`forward`"},
        {"@compile\nrecord R: pass", "E0217 1:1", NULL},
        {"@main\nfn a(): pass\n@main\nfn b(): pass", "E0216 3:1", NULL},
        {"module M:\n    @main\n    fn a(): pass\n", "E0111 2:5", NULL},
    };

    CHECK_ERRORS(cases);
}

/* ---- effects ------------------------------------------------------------- */

Test(effects, flow_through_calls)
{
    static const struct {
        const char *name;
        unsigned effects;
    } want[] = {
        {"pure", 0},
        {"noise", TL_EFFECT_RNG},
        {"log", TL_EFFECT_HOST},
        {"both", TL_EFFECT_RNG | TL_EFFECT_HOST},
        {"even", TL_EFFECT_HOST},
        {"odd", TL_EFFECT_HOST},
        {"write", TL_EFFECT_STATE},
        {"any", TL_EFFECT_UNKNOWN},
        {"nested", TL_EFFECT_RNG},
        {"piped", TL_EFFECT_RNG},
        {"forward", TL_EFFECT_STATE | TL_EFFECT_RNG},
        {"deflt", TL_EFFECT_RNG},
        {"ruled", TL_EFFECT_HOST},
    };
    front f;

    front_init(&f);
    front_resolve(
        &f, "fn pure(x) = relu(x) + 1\n"
            "fn noise(x) = x + rand()\n"
            "fn log(x): print(x)\n"
            "fn both(x): log(noise(x))\n"
            "fn even(n): return odd(n - 1)\n"
            "fn odd(n):\n    log(n)\n    return even(n - 1)\n"
            "fn write(m, v): m.w[0] = v\n"
            "fn any(m, x) = m(x)\n"
            "fn nested(x):\n    fn inner(y) = noise(y)\n"
            "    return inner(x)\n"
            "fn piped(x) = x |> noise |> (fn(y) => y)\n"
            "module M:\n    n: int = 0\n    fn forward(x):\n"
            "        self.n = x\n        return draw()\n"
            "    fn draw() = rand()\n"
            "fn deflt(x=rand()) = x\n"
            "fn ruled(x) = x\nbackward dy:\n    print(dy)\n    return dy\n");
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        cr_expect_eq(front_func(&f, want[i].name)->effects, want[i].effects,
                     "%s has %u", want[i].name,
                     front_func(&f, want[i].name)->effects);
    }
    front_fini(&f);
}
