/* test_csv.c - tables of numbers, and where they are wrong. */
#include "runtime/io/csv.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/mem.h"

static tl_diag diag;
static tl_pool *pool;
static char path[256];

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");
    int fd;

    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
    snprintf(path, sizeof(path), "%s/tl-csv-XXXXXX", tmp ? tmp : "/tmp");
    fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
    tl_tensor_trim();
    cr_assert_eq(tl_tensor_live(), 0);
    cr_assert_eq(tl_pool_free(pool), 0);
    tl_diag_fini(&diag);
    cr_assert_eq(tl_mem_live_blocks(), 0);
}

TestSuite(csv, .init = setup, .fini = teardown);

static tl_status parse(const char *text, tl_csv *out)
{
    tl_csv_options options = {.dtype = TL_f64};
    FILE *f = fopen(path, "wb");

    fputs(text, f);
    fclose(f);
    return tl_csv_read(out, path, &options, pool, &diag);
}

/* The table must be [rows, columns] with these values. */
static void expect(const char *text, int64_t rows, int64_t columns,
                   const double *v)
{
    tl_csv csv;

    cr_assert_eq(parse(text, &csv), TL_OK, "%s",
                 diag.last ? diag.last->message : "");
    cr_assert_eq(csv.values->size[0], rows);
    cr_assert_eq(csv.values->size[1], columns);
    for (int64_t i = 0; i < rows * columns; i++) {
        cr_expect_eq(tl_tensor_get_f(csv.values, i), v[i]);
    }
    tl_csv_fini(&csv);
}

/* The text must be refused with this part of a message. */
static void refuse(const char *text, const char *part)
{
    tl_csv csv;

    cr_assert_eq(parse(text, &csv), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0712);
    cr_expect_not_null(strstr(diag.last->message, part), "`%s` has no `%s`",
                       diag.last->message, part);
}

Test(csv, rows_of_numbers)
{
    expect("1,2\n3,4.5\n", 2, 2, (double[]){1, 2, 3, 4.5});
    expect("1,2\n3,4", 2, 2, (double[]){1, 2, 3, 4});
    expect("-1e3, +.5 ,5.\n", 1, 3, (double[]){-1000, .5, 5});
}

Test(csv, line_ends_marks_blanks_and_comments)
{
    expect("\xef\xbb\xbf" "1,2\r\n\r\n# note\r\n3,4\r\n\n", 2, 2,
           (double[]){1, 2, 3, 4});
}

Test(csv, other_delimiters_are_found)
{
    expect("1;2\n3;4\n", 2, 2, (double[]){1, 2, 3, 4});
    expect("1\t2\n3\t4\n", 2, 2, (double[]){1, 2, 3, 4});
    expect("7\n8\n", 2, 1, (double[]){7, 8});
}

Test(csv, quoted_numbers)
{
    expect("\"1\",\"2\"\n3,\"4\"\n", 2, 2, (double[]){1, 2, 3, 4});
}

Test(csv, header_gives_names)
{
    tl_csv csv;

    cr_assert_eq(parse("x,\"say \"\"y\"\"\"\n1,2\n", &csv), TL_OK);
    cr_expect_str_eq(csv.names[0], "x");
    cr_expect_str_eq(csv.names[1], "say \"y\"");
    cr_expect_eq(csv.values->size[0], 1);
    tl_csv_fini(&csv);
}

Test(csv, words_for_special_values)
{
    tl_csv csv;

    cr_assert_eq(parse("1,nan\n-inf,Infinity\n", &csv), TL_OK);
    cr_expect(isnan(tl_tensor_get_f(csv.values, 1)));
    cr_expect_eq(tl_tensor_get_f(csv.values, 2), -HUGE_VAL);
    cr_expect_eq(tl_tensor_get_f(csv.values, 3), HUGE_VAL);
    tl_csv_fini(&csv);
}

Test(csv, faults_name_line_and_column)
{
    refuse("1,2\n3,x\n", "line 2, column 2: `x` is not a number");
    refuse("1,2\n\n3\n", "line 3: 1 cells");
    refuse("1,2\n3,4,5\n", "line 2: 3 cells");
    refuse("1,2\n,4\n", "line 2, column 1: the cell is empty");
    refuse("1,2\n3,0x10\n", "`0x10` is not a number");
    refuse("1,2\n3,1e\n", "`1e` is not a number");
    refuse("1,2\n3,\"4\n", "not closed");
    refuse("1,2\n3,\"4\"5\n", "behind the closing quote");
    refuse("1,two\n3,4\n", "line 1, column 2: `two`");
    refuse("", "no rows");
    refuse("# only\n\n", "no rows");
}

Test(csv, hostile_cells_are_escaped)
{
    tl_csv csv;

    cr_assert_eq(parse("1\n\033[2J\n", &csv), TL_ERR_FILE);
    cr_expect_null(strchr(diag.last->message, '\033'));
}

Test(csv, every_failing_allocation_is_survived)
{
    for (uint64_t n = 1;; n++) {
        tl_csv_options options = {.dtype = TL_f32};
        tl_csv csv;
        tl_status st;

        if (n == 1) {
            cr_assert_eq(parse("a,b\n1,2\n3,4\n", &csv), TL_OK);
            tl_csv_fini(&csv);
        }
        tl_tensor_trim();
        tl_diag_clear(&diag);
        tl_mem_fail_at(n, false);
        st = tl_csv_read(&csv, path, &options, pool, &diag);
        tl_mem_fail_at(0, false);
        if (st == TL_OK) {
            cr_assert_gt(n, 3);
            tl_csv_fini(&csv);
            break;
        }
        cr_assert_eq(st, TL_ERR_MEMORY);
    }
}
