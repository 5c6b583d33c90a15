/* free.h - what an object releases when its last reference is gone.
 *
 * tl_obj_free calls the function of the object's tag.  Each releases what the
 * object *holds* (references, arrays, tables); the object's own memory is
 * released by tl_obj_free afterwards.  References given back meanwhile only
 * queue their objects, so structures of any depth are freed without deep
 * recursion. */
#ifndef TL_INTERP_FREE_H
#define TL_INTERP_FREE_H

#include "interp/value.h"

/* the evaluator's objects */
void tl_fn_free(tl_obj *obj);
void tl_method_free(tl_obj *obj);
void tl_class_free(tl_obj *obj);
void tl_context_free(tl_obj *obj);
void tl_namespace_free(tl_obj *obj);

/* modules and what belongs to them */
void tl_module_free(tl_obj *obj);
void tl_cell_free(tl_obj *obj);
void tl_tree_free(tl_obj *obj);
void tl_select_free(tl_obj *obj);
void tl_record_free(tl_obj *obj);

/* dict.c */
void tl_dict_free(tl_obj *obj);

#endif
