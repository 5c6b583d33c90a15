# tl.m4 - the macros of configure.ac.

# TL_CC_FLAGS(VARIABLE, FLAG...)
# Append to VARIABLE each flag of the blank-separated list that the compiler
# takes without a warning.
AC_DEFUN([TL_CC_FLAGS], [
for tl_flag in m4_normalize([$2]); do
  AS_VAR_PUSHDEF([tl_cache], [tl_cv_cc_$tl_flag])
  AC_CACHE_CHECK([whether $CC takes $tl_flag], [tl_cache],
    [tl_save_CFLAGS=$CFLAGS
     # An unknown -Wno-x is reported next to other warnings only: try -Wx.
     tl_try=$(echo "$tl_flag" | sed 's/^-Wno-/-W/')
     CFLAGS="$CFLAGS -Werror $tl_try"
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
       [AS_VAR_SET([tl_cache], [yes])], [AS_VAR_SET([tl_cache], [no])])
     CFLAGS=$tl_save_CFLAGS])
  AS_VAR_IF([tl_cache], [yes], [$1="$$1 $tl_flag"])
  AS_VAR_POPDEF([tl_cache])
done
])

# TL_LD_FLAGS(VARIABLE, FLAG...)
# The same for flags of the linker, each tried by linking a program.
AC_DEFUN([TL_LD_FLAGS], [
for tl_flag in m4_normalize([$2]); do
  AS_VAR_PUSHDEF([tl_cache], [tl_cv_ld_$tl_flag])
  AC_CACHE_CHECK([whether the linker takes $tl_flag], [tl_cache],
    [tl_save_LDFLAGS=$LDFLAGS
     LDFLAGS="$LDFLAGS $tl_flag"
     AC_LINK_IFELSE([AC_LANG_PROGRAM()],
       [AS_VAR_SET([tl_cache], [yes])], [AS_VAR_SET([tl_cache], [no])])
     LDFLAGS=$tl_save_LDFLAGS])
  AS_VAR_IF([tl_cache], [yes], [$1="$$1 $tl_flag"])
  AS_VAR_POPDEF([tl_cache])
done
])

# TL_FEATURE(NAME, STATE, PACKAGE, PURPOSE)
# One row of the table that configure prints last.  STATE is yes or no.
AC_DEFUN([TL_FEATURE], [
AS_IF([test "x$2" = xyes],
  [tl_table="$tl_table
$(printf '  %-12s %-4s %-20s %s' '$1' on '' '$4')"],
  [tl_table="$tl_table
$(printf '  %-12s %-4s %-20s %s' '$1' off '$3' '$4')"])
])

# TL_LIBRARY(NAME, PACKAGE, HEADER, FUNCTION, LIBRARY, PURPOSE)
# An optional library behind --with-NAME (auto by default).  When found:
# HAVE_NAME is defined, NAME_LIBS substituted, and the conditional HAVE_NAME
# set.  A --with-NAME that fails is an error.  HEADER may be empty.
AC_DEFUN([TL_LIBRARY], [
AS_VAR_PUSHDEF([tl_with], [with_]m4_translit([$1], [-], [_]))
m4_pushdef([TL_NAME], [m4_toupper(m4_translit([$1], [-], [_]))])
AC_ARG_WITH([$1],
  [AS_HELP_STRING([--with-$1], [$6 ($2) @<:@auto@:>@])],
  [], [tl_with=$tl_default])
tl_found=no
TL_NAME[]_LIBS=
AS_IF([test "x$tl_with" != xno], [
  tl_found=yes
  m4_ifval([$3], [AC_CHECK_HEADER([$3], [], [tl_found=no])])
  AS_IF([test $tl_found = yes],
    [AC_CHECK_LIB([$5], [$4], [TL_NAME[]_LIBS="-l$5"], [tl_found=no])])
  AS_IF([test $tl_found = no && test "x$tl_with" != xauto],
    [AC_MSG_ERROR([--with-$1 was given, but $1 was not found (Debian: apt-get install $2)])])
])
AS_IF([test $tl_found = yes],
  [AC_DEFINE(HAVE_[]TL_NAME, [1], [$6])])
AM_CONDITIONAL(HAVE_[]TL_NAME, [test $tl_found = yes])
AC_SUBST(TL_NAME[]_LIBS)
TL_FEATURE([$1], [$tl_found], [$2], [$6])
m4_popdef([TL_NAME])
AS_VAR_POPDEF([tl_with])
])

# TL_LINE_EDITOR
# --with-line-editor=readline|libedit|none|auto: LINE_EDITOR_LIBS, and one of
# HAVE_READLINE and HAVE_LIBEDIT defined.
AC_DEFUN([TL_LINE_EDITOR], [
AC_ARG_WITH([line-editor],
  [AS_HELP_STRING([--with-line-editor=LIB],
     [readline, libedit or none, for the REPL @<:@auto@:>@])],
  [], [with_line_editor=$tl_default])
AS_CASE([$with_line_editor],
  [yes], [with_line_editor=auto],
  [no], [with_line_editor=none],
  [auto|readline|libedit|none], [],
  [AC_MSG_ERROR([--with-line-editor takes readline, libedit or none, not $with_line_editor])])
line_editor=none
LINE_EDITOR_LIBS=
AS_CASE([$with_line_editor], [auto|readline],
  [AC_CHECK_HEADER([readline/readline.h],
     [AC_CHECK_LIB([readline], [rl_on_new_line],
        [line_editor=readline LINE_EDITOR_LIBS=-lreadline])],
     [], [@%:@include <stdio.h>])])
AS_IF([test $line_editor = none], [AS_CASE([$with_line_editor], [auto|libedit],
  [AC_CHECK_HEADER([editline/readline.h],
     [AC_CHECK_LIB([edit], [rl_initialize],
        [line_editor=libedit LINE_EDITOR_LIBS=-ledit])],
     [], [@%:@include <stdio.h>])])])
AS_CASE([$with_line_editor:$line_editor],
  [readline:none], [AC_MSG_ERROR([readline was not found (Debian: apt-get install libreadline-dev)])],
  [libedit:none], [AC_MSG_ERROR([libedit was not found (Debian: apt-get install libedit-dev)])])
AS_CASE([$line_editor],
  [readline], [AC_DEFINE([HAVE_READLINE], [1], [line editing by GNU readline])],
  [libedit], [AC_DEFINE([HAVE_LIBEDIT], [1], [line editing by libedit])])
AC_SUBST([LINE_EDITOR_LIBS])
AS_IF([test $line_editor = none], [tl_found=no], [tl_found=yes])
TL_FEATURE([line-editor], [$tl_found], [libreadline-dev],
  [line editing and history in the REPL])
])
