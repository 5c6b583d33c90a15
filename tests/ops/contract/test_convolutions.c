/* The contract of convolutions (research/contract.md 5 and 6): bits depend on
 * shapes and operands alone, for 1 to 16 threads, any layout and address, and
 * whatever number of threads the process has told OpenMP. */
#include <pthread.h>

#include "runtime/base/threads.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/cpu.h"
#include "runtime/op/conv.h"
#include "tests/unit/runtime/helper.h"

TestSuite(convolutions, .init = rt_setup, .fini = rt_teardown);

#pragma GCC diagnostic ignored "-Wredundant-decls"
extern void omp_set_num_threads(int n) __attribute__((weak));

/* batch, groups, c, o of a group, size, kernel, stride, padding, dilation:
 * layers of ResNet-20 and -50 in small, what is cut into channels, odd ones. */
static const int64_t shapes[][9] = {
    {32, 1, 16, 16, 8, 3, 1, 1, 1}, {8, 1, 3, 16, 12, 3, 1, 1, 1},
    {4, 1, 64, 64, 14, 3, 1, 1, 1}, {1, 1, 128, 256, 28, 3, 1, 1, 1},
    {1, 1, 256, 512, 28, 1, 2, 0, 1}, {2, 1, 64, 256, 28, 1, 1, 0, 1},
    {4, 1, 3, 64, 40, 7, 2, 3, 1},  {7, 1, 32, 48, 9, 3, 2, 1, 1},
    {5, 1, 13, 21, 10, 3, 1, 2, 2}, {6, 32, 1, 1, 15, 3, 1, 1, 1},
    {3, 4, 16, 16, 9, 3, 1, 1, 1},  {1, 1, 1, 1, 3, 3, 1, 0, 1},
    {13, 1, 20, 40, 6, 5, 1, 2, 1},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), KINDS = 3 };

typedef struct problem {
    tl_attrs at;
    tl_tensor *x, *w, *y;
} problem;

static tl_tensor *random_f32(const int64_t *size, uint64_t seed)
{
    tl_tensor *t = make(TL_f32, 4, size, NULL);
    float *x = tl_tensor_data(t);

    for (int64_t i = 0; i < t->numel; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(seed >> 40) * 0x1p-23f - 1;
    }
    return t;
}

static problem make_problem(const int64_t *s, int kind)
{
    int64_t n = s[4], k = s[5];
    int64_t out = (n + 2 * s[7] - s[8] * (k - 1) - 1) / s[6] + 1;
    problem p;

    tl_conv_attrs(&p.at, 2);
    p.at.i[0] = s[1];
    for (int i = 0; i < 2; i++) {
        tl_conv_dims(&p.at, TL_CONV_STRIDE)[i] = tl_dim_num(s[6]);
        tl_conv_dims(&p.at, TL_CONV_BEFORE)[i] = tl_dim_num(s[7]);
        tl_conv_dims(&p.at, TL_CONV_AFTER)[i] = tl_dim_num(s[7]);
        tl_conv_dims(&p.at, TL_CONV_DILATION)[i] = tl_dim_num(s[8]);
        tl_conv_dims(&p.at, TL_CONV_SIZE)[i] = tl_dim_num(kind == 1 ? n : k);
    }
    p.x = random_f32(DIMS(s[0], s[1] * s[2], n, n), 1);
    p.w = random_f32(DIMS(s[1] * s[3], s[2], k, k), 2);
    p.y = random_f32(DIMS(s[0], s[1] * s[3], out, out), 3);
    return p;
}

static void drop(problem *p)
{
    tl_tensor_unref(p->x);
    tl_tensor_unref(p->w);
    tl_tensor_unref(p->y);
}

/* The kernel itself, with a context of so many threads. */
static tl_tensor *run(const problem *p, int kind, int threads)
{
    static tl_kernel_fn *const kernel[] = {tl_cpu_conv, tl_cpu_conv_transpose,
                                           tl_cpu_conv_weight};
    tl_tensor *of[] = {p->y, p->x, p->w};
    tl_tensor *in[2] = {kind == 1 ? p->y : p->x, kind == 2 ? p->y : p->w};
    tl_tensor *res = make(TL_f32, 4, of[kind]->size, NULL);
    tl_kernel_ctx k = rt.kctx;

    OK(tl_threads_new(&k.threads, threads, &diag));
    OK(kernel[kind](&k, TL_OP_conv, in, 2, &res, 1, &p->at));
    tl_threads_free(k.threads);
    return res;
}

static bool same_bits(const tl_tensor *a, const tl_tensor *b)
{
    return memcmp(tl_tensor_data(a), tl_tensor_data(b),
                  (size_t)a->numel * sizeof(float)) == 0;
}

Test(convolutions, have_the_bits_of_one_thread, .timeout = 60)
{
    static const int counts[] = {2, 3, 4, 8, 16};

    for (int s = 0; s < SHAPES; s++) {
        for (int kind = 0; kind < KINDS; kind++) {
            problem p = make_problem(shapes[s], kind);
            tl_tensor *one = run(&p, kind, 1);

            for (int i = 0; i < 5; i++) {
                tl_tensor *many = run(&p, kind, counts[i]);

                cr_expect(same_bits(one, many), "shape %d, kind %d, %d "
                          "threads", s, kind, counts[i]);
                tl_tensor_unref(many);
            }
            tl_tensor_unref(one);
            drop(&p);
        }
    }
}

/* Elements of `t` in a tensor of other strides, at an odd address. */
static tl_tensor *elsewhere(tl_tensor *t)
{
    const int64_t *n = t->size;
    int64_t stride[4] = {n[1] * n[2] * n[3], 1, n[3] * n[1], n[1]};
    tl_tensor *room = make(TL_f32, 1, DIMS(t->numel + 1), NULL), *view;

    OK(tl_tensor_view(&view, room, 4, n, stride, room->offset + 1, &diag));
    for (int64_t i = 0; i < t->numel; i++) {
        tl_tensor_set_f(view, i, tl_tensor_get_f(t, i));
    }
    tl_tensor_unref(room);
    return view;
}

Test(convolutions, do_not_depend_on_the_layout)
{
    for (int s = 0; s < SHAPES; s++) {
        for (int kind = 0; kind < KINDS; kind++) {
            problem p = make_problem(shapes[s], kind);
            problem q = {.at = p.at, .x = elsewhere(p.x),
                         .w = elsewhere(p.w), .y = elsewhere(p.y)};
            tl_tensor *a = run(&p, kind, 2), *b = run(&q, kind, 2);

            cr_expect(same_bits(a, b), "shape %d, kind %d", s, kind);
            tl_tensor_unref(a);
            tl_tensor_unref(b);
            drop(&p);
            drop(&q);
        }
    }
}

/* A primitive remembers the number of threads of its creation, and hangs or
 * leaves results unwritten with another: ours are created at one. */
Test(convolutions, are_created_at_one_thread, .timeout = 60)
{
    for (int s = 0; s < SHAPES; s++) {
        for (int kind = 0; kind < KINDS; kind++) {
            problem p = make_problem(shapes[s], kind);
            tl_tensor *a, *b;

            a = run(&p, kind, 2);
            tl_cpu_device_fini(rt.device); // forget the primitives
            if (omp_set_num_threads) {
                omp_set_num_threads(2);
            }
            b = run(&p, kind, 2);
            cr_expect(same_bits(a, b), "shape %d, kind %d", s, kind);
            tl_tensor_unref(a);
            tl_tensor_unref(b);
            drop(&p);
        }
    }
}

/* More shapes than are kept, each twice. */
Test(convolutions, of_many_shapes, .timeout = 60)
{
    for (int64_t n = 0; n < 420; n++) {
        problem p = make_problem(DIMS(1, 1, 2, 2, 4 + n % 210, 3, 1, 1, 1),
                                 0);
        tl_tensor *a = run(&p, 0, 1), *b = run(&p, 0, 2);

        cr_expect(same_bits(a, b));
        tl_tensor_unref(a);
        tl_tensor_unref(b);
        drop(&p);
    }
}

typedef struct user {
    const problem *p;
    const tl_tensor *want;
    bool same;
} user;

static void *use(void *arg)
{
    user *u = arg;
    tl_diag mine;
    tl_rt worker;

    tl_diag_init(&mine, NULL);
    u->same = tl_rt_init_worker(&worker, &rt, &mine) == TL_OK;
    for (int i = 0; i < 20 && u->same; i++) {
        tl_tensor *in[2] = {u->p->x, u->p->y}, *out[TL_MAX_OUTPUTS];

        u->same = tl_apply_borrowed(&worker, TL_OP_conv_weight, in, 2,
                                    &u->p->at, out) == TL_OK;
        if (u->same) {
            u->same = same_bits(out[0], u->want);
            tl_tensor_unref(out[0]);
        }
    }
    tl_rt_fini(&worker);
    tl_diag_fini(&mine);
    return NULL;
}

Test(convolutions, run_in_several_threads_at_once, .timeout = 60)
{
    problem p = make_problem(shapes[2], 2);
    tl_tensor *want = run(&p, 2, 1);
    pthread_t thread[4];
    user users[4];

    tl_cpu_device_fini(rt.device);
    for (int i = 0; i < 4; i++) {
        users[i] = (user){.p = &p, .want = want};
        cr_assert_eq(pthread_create(&thread[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(pthread_join(thread[i], NULL), 0);
        cr_expect(users[i].same, "thread %d", i);
    }
    tl_tensor_unref(want);
    drop(&p);
}
