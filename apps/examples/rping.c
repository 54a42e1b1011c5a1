/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-rping: RDMA pings between two hosts, in the protocol of rping from librdmacm's examples.
 * The options and what travels are the same, so that either side may be the other program.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "rping.h"

static const char usage[] =
	"usage: warp-rping -s [-PvVd] [-a ADDRESS] [-p PORT] [-S SIZE]\n"
	"       warp-rping -c -a ADDRESS [-vVd] [-I SOURCE] [-p PORT] [-C COUNT] [-S SIZE]\n"
	"  -s, -c        server, client\n"
	"  -a ADDRESS    server: where to listen (all IPv4 addresses); client: the server\n"
	"  -p PORT       TCP port (7174); server: 0 takes a free one and prints it\n"
	"  -I SOURCE     client: the address to come from\n"
	"  -C COUNT      client: end after so many pings (without end)\n"
	"  -S SIZE       bytes of a ping, 26 to 65535 (64); server: of the largest (65535)\n"
	"  -P            server: serve many clients, until a signal\n"
	"  -v, -V, -d    show the data, compare the data, tell more\n"
	"  -q            accepted and without effect\n"
	"  -t SECONDS    how long to wait for the peer (10)\n"
	"  --provider NAME    who does RDMA\n"
	"  --no-crc, --markers, --rev1, --no-p2p    what to ask for in MPA\n"
	"  --rtr FORM    send, write or read, may be given several times\n"
	"  --port-mapper      client: ask the peer's port mapper for the port\n"
	"  -h, --help    this text;  --version\n";

enum long_option { OPT_PROVIDER = 256, OPT_RTR, OPT_VERSION, OPT_FLAG };

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "provider", required_argument, NULL, OPT_PROVIDER },
	{ "rtr", required_argument, NULL, OPT_RTR },
	{ "no-crc", no_argument, NULL, OPT_FLAG + WARP_CONN_NO_CRC },
	{ "markers", no_argument, NULL, OPT_FLAG + WARP_CONN_MARKERS },
	{ "rev1", no_argument, NULL, OPT_FLAG + WARP_CONN_REV1 },
	{ "no-p2p", no_argument, NULL, OPT_FLAG + WARP_CONN_NO_P2P },
	{ "port-mapper", no_argument, NULL, OPT_FLAG + WARP_CONN_PORT_MAPPER },
	{ 0 },
};

static int bad(const char *option, const char *value)
{
	fprintf(stderr, "warp-rping: %s is no value for %s\n", value, option);
	return -EINVAL;
}

static int parse_rtr(struct rping_options *opt, const char *form)
{
	if (!strcmp(form, "send"))
		opt->conn_flags |= WARP_CONN_RTR_SEND;
	else if (!strcmp(form, "write"))
		opt->conn_flags |= WARP_CONN_RTR_WRITE;
	else if (!strcmp(form, "read"))
		opt->conn_flags |= WARP_CONN_RTR_READ;
	else
		return bad("--rtr", form);
	return 0;
}

static int parse_number(struct rping_options *opt, int c, const char *text)
{
	static const struct {
		char option;
		const char *name;
		unsigned long min, max;
	} rows[] = {
		{ 'p', "-p", 0, 65535 },
		{ 'C', "-C", 0, UINT32_MAX },
		{ 'S', "-S", RPING_SIZE_MIN, RPING_SIZE_MAX },
		{ 't', "-t", 1, 86400 },
	};
	unsigned long value = 0;
	size_t i = 0;

	while (rows[i].option != c)
		i++;
	if (endpoint_number(text, rows[i].min, rows[i].max, &value))
		return bad(rows[i].name, text);
	if (c == 'p')
		opt->port = (uint16_t)value;
	else if (c == 'C')
		opt->count = (uint32_t)value;
	else if (c == 'S')
		opt->size = (uint32_t)value;
	else
		opt->timeout_ms = (int)value * 1000;
	return 0;
}

static int parse_one(struct rping_options *opt, int c)
{
	switch (c) {
	case 's':
		opt->server = true;
		return 0;
	case 'c':
		opt->client = true;
		return 0;
	case 'P':
		opt->persistent = true;
		return 0;
	case 'v':
		opt->verbose++;
		return 0;
	case 'V':
		opt->validate++;
		return 0;
	case 'd':
		opt->debug++;
		return 0;
	case 'q':
		return 0;
	case 'a':
		opt->host = optarg;
		return 0;
	case 'I':
		opt->source_host = optarg;
		return 0;
	case OPT_PROVIDER:
		opt->provider = optarg;
		return 0;
	case OPT_RTR:
		return parse_rtr(opt, optarg);
	case '?':
		return -EINVAL;
	default:
		break;
	}
	if (c < OPT_FLAG)
		return parse_number(opt, c, optarg);
	opt->conn_flags |= (unsigned int)(c - OPT_FLAG);
	return 0;
}

static int resolve(const char *host, uint16_t port, struct sockaddr_storage *addr)
{
	int ret = endpoint_resolve(host, port, addr);

	if (ret)
		fprintf(stderr, "warp-rping: %s: %s\n", host, gai_strerror(ret));
	return ret ? -EINVAL : 0;
}

static int check(struct rping_options *opt)
{
	const char *wrong = NULL;

	if (opt->server == opt->client)
		wrong = "one of -s and -c is needed";
	else if (opt->client && !opt->host)
		wrong = "-c needs -a";
	else if (opt->client && opt->persistent)
		wrong = "-P is for -s";
	else if (opt->server && opt->source_host)
		wrong = "-I is for -c";
	if (wrong) {
		fprintf(stderr, "warp-rping: %s\n%s", wrong, usage);
		return -EINVAL;
	}
	if (resolve(opt->host ? opt->host : "0.0.0.0", opt->port, &opt->addr))
		return -EINVAL;
	if (opt->source_host && resolve(opt->source_host, 0, &opt->source))
		return -EINVAL;
	return 0;
}

int rping_options_parse(struct rping_options *opt, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "a:I:Pp:C:S:t:scvVdqh", long_options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (c == OPT_VERSION) {
			printf("warp-rping %s\n", warp_version());
			return 1;
		}
		if (parse_one(opt, c))
			return 3;
	}
	if (optind < argc) {
		fprintf(stderr, "warp-rping: what is %s?\n%s", argv[optind], usage);
		return 3;
	}
	return check(opt) ? 3 : 0;
}

int main(int argc, char **argv)
{
	struct rping_options opt = { .port = RPING_PORT, .timeout_ms = 10000 };
	struct warp_device *dev;
	int ret = rping_options_parse(&opt, argc, argv);

	if (ret)
		return ret - 1;
	endpoint_catch_signals();
	ret = warp_device_open(opt.provider, &dev);
	if (ret) {
		endpoint_complain(NULL, opt.provider ? opt.provider : "no provider", ret);
		return 1;
	}
	ret = opt.server ? rping_server_run(&opt, dev) : rping_client_run(&opt, dev);
	warp_device_close(dev);
	return ret;
}
