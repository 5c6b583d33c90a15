/* record.h - records: plain data with named fields.
 *
 * The fields are the parameters of the constructor, in order.  A record is a
 * value: `r.f = v` makes another one (in place when nobody else sees it). */
#ifndef TL_INTERP_RECORD_H
#define TL_INTERP_RECORD_H

#include "interp/module.h"

/* Call a record definition.  E0203-E0205, E0210, E0304, E0308, E0312. */
TL_MUST_USE tl_status tl_record_construct(tl_eval *ev, tl_class *cls,
                                          tl_args *args, tl_value *out);

uint32_t tl_record_nfields(const tl_record *r);

/* A record of the class with these fields, which are taken, on failure too
 * (the array is the caller's). */
TL_MUST_USE tl_status tl_record_new_take(tl_eval *ev, tl_class *cls,
                                         tl_value *fields, tl_value *out);

/* r.name; E0211 with the nearest name. */
TL_MUST_USE tl_status tl_record_get_attr(tl_eval *ev, tl_record *r,
                                         const tl_sym *name, tl_value *out);

/* The record with field `name` replaced.  Takes `r` and `v`, on failure too.
 * E0211. */
TL_MUST_USE tl_status tl_record_with_take(tl_eval *ev, tl_value r,
                                          const tl_sym *name, tl_value v,
                                          tl_value *out);

#endif
