/* habits.h - forms of Python, PyTorch and C, and what tlang has instead.
 *
 * The tables are data for whoever meets such a form: the parser, the
 * resolver, and the evaluator, which alone knows what a receiver is. */
#ifndef TL_LANG_HABITS_H
#define TL_LANG_HABITS_H

#include <stdbool.h>
#include <stdint.h>

/* ASCII text that `cp` looks like or stands for ("a" for U+0430, "<=" for
 * U+2264), or NULL. */
const char *tl_habit_lookalike(uint32_t cp);

/* What to write for a name that is not defined ("True": "`true`"), or NULL.
 */
const char *tl_habit_name(const char *name);

/* Is `name` a module of the library, which has to be imported? */
bool tl_habit_library(const char *name);

/* What to write for an attribute that tlang's values and modules do not have
 * ("zero_grad", "item"), or NULL. */
const char *tl_habit_attr(const char *name);

/* Attributes that nothing of tlang ever has (`.backward`, `.zero_grad`):
 * these are errors whatever the receiver is. */
bool tl_habit_attr_always(const char *name);

/* The argument that is meant by the name it has in PyTorch or NumPy ("dim":
 * "`axis`"), or NULL. */
const char *tl_habit_argument(const char *name);

/* What to write for a package of Python that is imported ("torch"), or NULL.
 */
const char *tl_habit_import(const char *name);

/* How a change that a method of list, dict or str only returns is written
 * ("append": "xs += [v]"), or NULL if `method` is no such method.  For E0223.
 */
const char *tl_habit_method(const char *method);

#endif
