/* cli.h - the command line (UX.md 2). */
#ifndef TL_INTERP_CLI_H
#define TL_INTERP_CLI_H

/* Run the command line; returns the exit code. */
int tl_cli_main(int argc, char **argv);

#endif
