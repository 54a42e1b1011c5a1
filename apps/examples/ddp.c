/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-ddp: extended sockets through libc's calls alone. Nothing of Warpsock's is linked in; it
 * runs where the interposer or the kernel serves DDP, and says so where neither does.
 */
#include "ddp.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char usage[] = "usage: warp-ddp serve [-a ADDRESS] [-p PORT]\n"
			    "       warp-ddp use [-a ADDRESS] [-p PORT] TEXT\n"
			    "  -a ADDRESS   where to listen, or the server (127.0.0.1)\n"
			    "  -p PORT      TCP port (" DDP_PORT "); serve: 0 takes a free one\n"
			    "  -h, --help   this text;  --version\n"
			    "exit status: 0 done, 2 usage, 3 failed, 4 no DDP here\n";

enum long_option { OPT_VERSION = 256 };

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

int ddp_failed(const char *call)
{
	fprintf(stderr, "warp-ddp: %s: %s\n", call, strerror(errno));
	return 3;
}

int ddp_mode_set(int fd)
{
	int on = DDP_MODE_ON;

	if (!setsockopt(fd, SOL_DDP, DDP_MODE, &on, sizeof(on)))
		return 0;
	if (errno != ENOPROTOOPT)
		return ddp_failed("DDP_MODE");
	fprintf(stderr, "warp-ddp: sockets know no DDP here; run it as: "
			"warpsock run -- warp-ddp ...\n");
	return 4;
}

int ddp_info_print(int fd, const char *who)
{
	struct ddp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_DDP, DDP_INFO, &info, &len))
		return ddp_failed("DDP_INFO");
	printf("%s: provider %s, MPA revision %u, CRC %s, markers%s%s, MULPDU %u, ring %u, "
	       "features %#x\n",
	       who, info.provider, info.mpa_rev, info.crc ? "on" : "off",
	       info.rx_markers ? " in" : "", info.tx_markers ? " out" : "", info.mulpdu, info.ring,
	       info.features);
	return 0;
}

static int run(int argc, char **argv, const char *host, const char *port)
{
	if (argc == 1 && !strcmp(argv[0], "serve"))
		return ddp_server(host, port);
	if (argc == 2 && !strcmp(argv[0], "use"))
		return ddp_client(host, port, argv[1]);
	fputs(usage, stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *host = "127.0.0.1", *port = DDP_PORT;
	int c;

	while ((c = getopt_long(argc, argv, "a:p:h", long_options, NULL)) != -1) {
		if (c == 'a')
			host = optarg;
		else if (c == 'p')
			port = optarg;
		else if (c == 'h')
			return fputs(usage, stdout) < 0;
		else if (c == OPT_VERSION)
			return puts("warp-ddp " WARPSOCK_VERSION) < 0;
		else
			return fputs(usage, stderr) < 0 ? 3 : 2;
	}
	return run(argc - optind, argv + optind, host, port);
}
