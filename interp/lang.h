/* lang.h - the front end as the evaluator includes it. */
#ifndef TL_INTERP_LANG_H
#define TL_INTERP_LANG_H

#include "lang/ast.h"
#include "lang/parse.h"
#include "lang/scope.h"

#endif
