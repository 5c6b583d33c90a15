/* rows.c - prints the built-in names, one a line: name, tab, signature.
 *
 * For check-names.  Methods of tensors are among them, as they have to be
 * names of functions too; members of a name (json.parse) and methods of host
 * types are not: they are Python's. */
#include "interp/builtin.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    for (size_t i = 0; i < tl_builtin_nrows; i++) {
        const tl_builtin *b = &tl_builtin_rows[i];

        if (strchr(b->name, '.') == NULL &&
            (b->tag == TL_V_NONE || b->tag == TL_V_TENSOR)) {
            printf("%s\t%s\n", b->name, b->signature);
        }
    }
    return 0;
}
