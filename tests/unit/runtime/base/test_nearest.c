/* test_nearest.c - did you mean. */
#include <criterion/criterion.h>

#include <string.h>

#include "runtime/base/diag.h"

static const char *const names[] = {"length", "mean", "matmul", "reshape",
                                    "softmax", "y"};

static const char *nearest(const char *word)
{
    return tl_nearest(word, names, sizeof(names) / sizeof(*names));
}

Test(nearest, finds_the_intended_name)
{
    cr_expect_str_eq(nearest("lenght"), "length");
    cr_expect_str_eq(nearest("maen"), "mean");
    cr_expect_str_eq(nearest("matmull"), "matmul");
    cr_expect_str_eq(nearest("sofmax"), "softmax");
}

Test(nearest, too_far_is_nothing)
{
    cr_expect_null(nearest("convolve"));
    cr_expect_null(nearest("men2x"));
    cr_expect_null(nearest(""));
}

Test(nearest, a_letter_does_not_suggest_another)
{
    cr_expect_null(nearest("x"));
    cr_expect_str_eq(nearest("yy"), "y");
}

Test(nearest, the_closer_one_wins_then_the_first)
{
    static const char *const c[] = {"abcdeX", "abcdef", "abcdeY"};

    cr_expect_str_eq(tl_nearest("abcdef", c, 3), "abcdef");
    cr_expect_str_eq(tl_nearest("abcdeZ", c, 3), "abcdeX");
}

Test(nearest, very_long_names_are_not_guessed)
{
    char word[200];
    const char *c[] = {word};

    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    cr_expect_null(tl_nearest(word, c, 1));
    cr_expect_null(tl_nearest("a", c, 1));
}
