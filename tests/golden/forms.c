/* forms.c - the other forms in which error programs are run.
 *
 * As REPL input places differ and the first error ends the run, so the first
 * expected text without a place must come.  With --message-format=json each
 * line of stderr must be one JSON object, and the expected codes must occur
 * as members. */
#include "tests/golden/golden.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64

static const char *json_value(const char *s, int depth);

static const char *skip_blank(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* Each json_ function returns the end of what it read, or NULL. */
static const char *json_string(const char *s)
{
    if (*s++ != '"') {
        return NULL;
    }
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20) {
            return NULL; // the end of the text included
        }
        if (*s != '\\') {
            continue;
        }
        s++;
        if (*s == 'u') {
            for (int i = 1; i <= 4; i++) {
                if (!isxdigit((unsigned char)s[i])) {
                    return NULL;
                }
            }
            s += 4;
        } else if (!*s || !strchr("\"\\/bfnrt", *s)) {
            return NULL;
        }
    }
    return s + 1;
}

static const char *json_number(const char *s)
{
    char *end;
    size_t len = strspn(s, "+-.0123456789eE");

    // strtod takes hexadecimal, infinities and leading blanks as well.
    if (len == 0 || *s == '+' || *s == '.') {
        return NULL;
    }
    strtod(s, &end);
    return end == s + len ? end : NULL;
}

/* The items of an array or object after its opening bracket. */
static const char *json_items(const char *s, char close, int depth)
{
    s = skip_blank(s);
    if (*s == close) {
        return s + 1;
    }
    for (;;) {
        if (close == '}') {
            s = json_string(skip_blank(s));
            s = s ? skip_blank(s) : NULL;
            if (!s || *s++ != ':') {
                return NULL;
            }
        }
        s = json_value(s, depth);
        s = s ? skip_blank(s) : NULL;
        if (!s || (*s != ',' && *s != close)) {
            return NULL;
        }
        if (*s++ == close) {
            return s;
        }
    }
}

static const char *json_value(const char *s, int depth)
{
    static const char *const words[] = {"true", "false", "null"};

    s = skip_blank(s);
    if (depth > MAX_DEPTH) {
        return NULL;
    }
    if (*s == '{' || *s == '[') {
        return json_items(s + 1, *s == '{' ? '}' : ']', depth + 1);
    }
    if (*s == '"') {
        return json_string(s);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if (!strncmp(s, words[i], len)) {
            return s + len;
        }
    }
    return json_number(s);
}

bool json_is_object(const char *s)
{
    s = skip_blank(s);
    if (*s != '{') {
        return false;
    }
    s = json_value(s, 0);
    return s && !*skip_blank(s);
}

/* The code of "error[E0302]: ...", or "" when `line` has none. */
static char *code_of(const char *line)
{
    const char *open = strchr(line, '[');
    size_t len = open ? strcspn(open + 1, "]") : 0;

    return format("%.*s", len == 5 ? 5 : 0, open ? open + 1 : "");
}

static bool has_code(const char *err, const char *code)
{
    char *tight = format("\"code\":\"%s\"", code);
    char *loose = format("\"code\": \"%s\"", code);
    bool found = strstr(err, tight) || strstr(err, loose);

    free(tight);
    free(loose);
    return found;
}

void compare_json(const run *r, text *why)
{
    lines all = lines_split(r->err);
    const lines *want = &r->test->error;

    for (size_t i = 0; i < all.len; i++) {
        if (!json_is_object(all.items[i])) {
            text_printf(why,
                        "  line %zu of stderr is no JSON object:\n"
                        "   | %s\n",
                        i + 1, all.items[i]);
            break;
        }
    }
    for (size_t i = 0; i < want->len; i++) {
        char *code = code_of(want->items[i]);
        if (*code && !has_code(r->err, code)) {
            text_printf(why, "  no JSON message has code %s\n", code);
        }
        free(code);
    }
    lines_free(&all);
}

void compare_repl(const run *r, text *why)
{
    lines first = {0};
    const lines *want = &r->test->error;

    for (size_t i = 0; i < want->len && first.len == 0; i++) {
        if (!strstr(want->items[i], ".tl:")) {
            lines_add(&first, want->items[i], strlen(want->items[i]));
        }
    }
    compare_errors(&first, r->err, why);
    lines_free(&first);
}
