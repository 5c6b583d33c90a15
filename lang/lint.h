/* lint.h - warnings about programs that are legal but hardly meant. */
#ifndef TL_LANG_LINT_H
#define TL_LANG_LINT_H

#include "lang/parse.h"

/* Let every lint of lint.def see every node of a resolved unit. */
void tl_lint(const tl_unit *unit, tl_diag *diag);

#endif
