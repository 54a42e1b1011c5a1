/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warpsock-helper: the program of the interposer's own processes. All that it does is in the
 * library that LD_PRELOAD names; the interposer executes it (preload/process/helper_program.c), and
 * no user does.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*helper)(int argc, char **argv);

	*(void **)&helper = dlsym(RTLD_DEFAULT, "warpsock_helper");
	if (helper)
		return helper(argc, argv);
	fprintf(stderr, "%s is started by Warpsock's library alone\n", argv[0]);
	return 1;
}
