/* doctest.h - the examples in docstrings of a file, as tests. */
#ifndef TL_INTERP_DOCTEST_H
#define TL_INTERP_DOCTEST_H

#include "interp/session.h"

/* Does a docstring (NULL: none) hold an example?  A program behind a line
 * `Example:`, or entries behind `>>> ` with what they show. */
bool tl_doctest_find(const tl_text *doc);

/* Run the examples of a docstring of `file`, in names of their own: what the
 * file defines, the file's name, modules of the library that are mentioned.
 * What they print is not shown.  Any error; E0222 for an entry that shows
 * something else than its docstring says. */
TL_MUST_USE tl_status tl_doctest_run(tl_session *s, tl_namespace *file,
                                     const char *title, const tl_text *doc);

#endif
