/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies standard input to standard output; linked statically, so that nothing can be loaded
 * into it. With an argument: says that first.
 */
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char buf[4096];
	ssize_t n;

	if (argc > 1 && write(1, argv[1], strlen(argv[1])) < 0)
		return 2;
	while ((n = read(0, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0, sent; at < n; at += sent) {
			sent = write(1, buf + at, (size_t)(n - at));
			if (sent < 0)
				return 3;
		}
	return n < 0;
}
