/* cmd_new.c - `tlang new NAME`: a folder with a small project that trains.
 *
 * tests/project makes one and runs all that its README names. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/session.h"

static const char model_text[] =
    "\"\"\"A classifier of points in the plane.\"\"\"\n"
    "import nn\n"
    "\n"
    "module Net(d_in: int, d_hid: int, n_cls: int):\n"
    "    \"\"\"Two linear layers with a gelu between.\n"
    "\n"
    "    Shapes: x f32[B, d_in] -> f32[B, n_cls].\n"
    "\n"
    "    Example:\n"
    "        net = Net(2, 8, 2)\n"
    "        assert net(randn(5, 2)).shape == (5, 2)\"\"\"\n"
    "    fc1, fc2 = nn.Linear(d_in, d_hid), nn.Linear(d_hid, n_cls)\n"
    "\n"
    "    fn forward(x: real[B, d_in]) -> real[B, n_cls] = x |> fc1 |> "
    "gelu |> fc2\n"
    "\n"
    "fn accuracy(net: Net, x: f32[B, net.d_in], y: i64[B]) -> float:\n"
    "    \"\"\"The share of x that is put into its class.\"\"\"\n"
    "    return float((net(x).argmax(axis=-1) == y).mean())\n";

static const char train_text[] =
    "\"\"\"Train the classifier of model.tl on data/points.csv.\n"
    "\n"
    "    tlang train.tl [--epochs=40] [--lr=1e-2] "
    "[--out=model.safetensors]\"\"\"\n"
    "import data, optim\n"
    "from model import Net, accuracy\n"
    "\n"
    "@compile\n"
    "fn step(net: Net, opt: optim.AdamW, x: f32[B, net.d_in], y: "
    "i64[B]) -> f32[]:\n"
    "    g = grad loss wrt net:\n"
    "        loss = cross_entropy(net(x), y)\n"
    "    opt.step(g)\n"
    "    return loss\n"
    "\n"
    "@main\n"
    "fn main(epochs: int = 40, lr: float = 1e-2, out: str = "
    "\"model.safetensors\"):\n"
    "    seed(0)\n"
    "    train, test = "
    "data.split(data.csv(files.find(\"points.csv\")), 0.8)\n"
    "    net = Net(2, 32, 2)\n"
    "    opt = optim.AdamW(net, lr=lr)\n"
    "    for epoch in range(epochs):\n"
    "        total, n = 0.0, 0\n"
    "        for b in data.loader(train, batch=32, shuffle=true):\n"
    "            total, n = total + step(net, opt, b.x, b.y), n + 1\n"
    "        if (epoch + 1) % 10 == 0:\n"
    "            print(f\"epoch {epoch + 1:3d}  loss {total / n:.4f}\")\n"
    "    save(out, net)\n"
    "    print(f\"accuracy {accuracy(net, test.x, test.y):.3f}, saved "
    "to {out}\")\n";

static const char test_text[] =
    "\"\"\"Tests of model.tl: `tlang test` runs them.\"\"\"\n"
    "import optim\n"
    "from model import Net, accuracy\n"
    "\n"
    "test \"shapes\":\n"
    "    assert Net(2, 8, 3)(randn(4, 2)).shape == (4, 3)\n"
    "\n"
    "test \"gradients agree with finite differences\":\n"
    "    assert gradcheck(Net(2, 4, 3), randn(3, 2, dtype=f64))\n"
    "\n"
    "test \"a few steps lower the loss\":\n"
    "    net = Net(2, 16, 2)\n"
    "    opt = optim.AdamW(net, lr=1e-2)\n"
    "    x = randn(64, 2)\n"
    "    y = i64(x[:, 0] > 0)\n"
    "    first = cross_entropy(net(x), y)\n"
    "    for i in range(20):\n"
    "        g = grad loss wrt net:\n"
    "            loss = cross_entropy(net(x), y)\n"
    "        opt.step(g)\n"
    "    assert cross_entropy(net(x), y) < first\n";

static const char readme_text[] =
    "# %s\n"
    "\n"
    "A classifier of points in the plane, in tlang.\n"
    "\n"
    "    tlang train.tl                train; writes model.safetensors\n"
    "    tlang train.tl --epochs=100   parameters of @main are flags\n"
    "    tlang test                    run the tests and the examples "
    "in docstrings\n"
    "    tlang check *.tl              names, types and shapes, "
    "without running\n"
    "    tlang repl model.tl           try things: net = Net(2, 8, 2)\n";

static const char ignore_text[] = "*.safetensors\n";

/* ---- the data ------------------------------------------------------------ */

#define NOISE 0.3
#define PI 3.14159265358979323846

enum { PAIRS = 200 };

/* The next of a linear congruential generator, in [-1/2, 1/2). */
static double next_noise(uint32_t *state)
{
    *state = (*state * 1103515245u + 12345u) & 0x7fffffffu;
    return *state / 2147483648.0 - 0.5;
}

/* Two half circles that interlock, with noise: x, y, class. */
static void put_points(tl_buf *out)
{
    uint32_t state = 12345;

    tl_buf_puts(out, "x,y,class\n");
    for (int i = 0; i < PAIRS; i++) {
        double t = PI * i / (PAIRS - 1), n[4];

        for (int k = 0; k < 4; k++) {
            n[k] = NOISE * next_noise(&state);
        }
        tl_buf_printf(out, "%.3f,%.3f,0\n%.3f,%.3f,1\n", cos(t) + n[0],
                      sin(t) + n[1], 1 - cos(t) + n[2], 0.5 - sin(t) + n[3]);
    }
}

/* ---- files --------------------------------------------------------------- */

static tl_status make_folder(tl_session *s, const char *path)
{
    if (mkdir(path, 0777) == 0) {
        return TL_OK;
    }
    tl_status st = tl_fail(&s->diag, TL_E0707, "%s: %s", path,
                           strerror(errno));

    if (errno == EEXIST) {
        tl_diag_help(&s->diag, "nothing is overwritten: take another name");
    }
    return st;
}

static tl_status put_file(tl_session *s, const char *folder,
                          const char *name, const char *text)
{
    tl_buf path;

    tl_buf_init(&path);
    tl_buf_printf(&path, "%s/%s", folder, name);
    FILE *f = path.failed ? NULL : fopen(tl_buf_str(&path), "wx");
    bool good = f != NULL && fputs(text, f) != EOF;

    good = f != NULL && fclose(f) == 0 && good;
    tl_status st = good ? TL_OK
                        : tl_fail(&s->diag, TL_E0707, "%s: %s",
                                  tl_buf_str(&path), strerror(errno));

    tl_buf_fini(&path);
    return st;
}

/* The project's name: the last part of its path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static tl_status make_project(tl_session *s, const char *path)
{
    tl_buf text, data;

    tl_buf_init(&text);
    tl_buf_init(&data);
    tl_buf_printf(&data, "%s/data", path);
    tl_status st = make_folder(s, path);

    if (st == TL_OK) {
        st = make_folder(s, tl_buf_str(&data));
    }
    put_points(&text);
    if (st == TL_OK && (text.failed || data.failed)) {
        st = tl_fail_memory(&s->diag, "a file", text.len);
    }
    if (st == TL_OK) {
        st = put_file(s, path, "data/points.csv", tl_buf_str(&text));
    }
    tl_buf_clear(&text);
    tl_buf_printf(&text, readme_text, base_name(path));
    const char *const files[][2] = {{"model.tl", model_text},
                                    {"train.tl", train_text},
                                    {"test_model.tl", test_text},
                                    {".gitignore", ignore_text},
                                    {"README.md", tl_buf_str(&text)}};

    for (size_t i = 0; i < 5 && st == TL_OK; i++) {
        st = put_file(s, path, files[i][0], files[i][1]);
    }
    tl_buf_fini(&text);
    tl_buf_fini(&data);
    return st;
}

int tl_cmd_new(tl_session *s, const char *path)
{
    tl_status st = make_project(s, path);

    if (st == TL_OK) {
        printf("%s: model.tl, train.tl, test_model.tl, data/points.csv, "
               "README.md\n"
               "next: cd %s && tlang train.tl && tlang test\n",
               path, path);
    }
    return tl_session_report(s, st);
}
