/* test_paste.c - what was pasted, as code. */
#include <criterion/criterion.h>

#include "interp/paste.h"

static void expect(const char *pasted, const char *code)
{
    tl_buf out;

    tl_buf_init(&out);
    tl_paste_clean(pasted, strlen(pasted), &out);
    cr_expect_str_eq(tl_buf_str(&out), code);
    tl_buf_fini(&out);
}

Test(paste, code_stays_as_it_is)
{
    expect("x = 1\nfn f():\n    return 1\n", "x = 1\nfn f():\n    return 1");
    expect("a\n\n    b", "a\n\n    b");
    expect("...", "...");
    expect("x > y", "x > y");
}

Test(paste, prompts_and_outputs_go)
{
    expect("tl> x = 1\ntl> x\n1\n", "x = 1\nx");
    expect(">>> def f():\n...     pass\n... \n>>> f()\n",
           "def f():\n    pass\n\nf()");
    expect("In [1]: x = 1\n\nIn [22]: for i in x:\n"
           "    ...:     i\n\nOut[22]: 3",
           "x = 1\nfor i in x:\n    i");
    expect(">>>\n>>> a", "a");
}

Test(paste, a_selection_may_begin_behind_a_prompt)
{
    expect("x = 1\n>>> y = 2\n", "x = 1\ny = 2");
    expect("out\nout\n>>> y = 2\n", "y = 2");
}

Test(paste, common_indentation_goes)
{
    expect("    a = 1\n      b\n\n    c", "a = 1\n  b\n\nc");
    expect("  >>> a\n  1\n", "a");
}

Test(paste, line_ends_tabs_and_controls)
{
    expect("a\r\nb\rc", "a\nb\nc");
    expect("if x:\n\ty", "if x:\n    y");
    expect("a\033[31m\001b", "a[31mb");
    expect("", "");
    expect("\n\n  \n", "");
}
