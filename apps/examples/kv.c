/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-kv: a table of keys and values that clients read with RDMA Reads alone.
 */
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "kv.h"

static const char usage[] = "usage: warp-kv serve [-a ADDRESS] [-p PORT] [-n SLOTS] [--tear MS]\n"
			    "       warp-kv get -a ADDRESS [-p PORT] [-q] [-r TIMES] KEY...\n"
			    "       warp-kv put -a ADDRESS [-p PORT] [-q] [-r TIMES] KEY VALUE\n"
			    "       warp-kv delete -a ADDRESS [-p PORT] [-q] KEY\n"
			    "  -a ADDRESS   serve: where to listen (all IPv4 addresses); else: the "
			    "server\n"
			    "  -p PORT      TCP port (7175); serve: 0 takes a free one\n"
			    "  -n SLOTS     size of the table (1024)\n"
			    "  --tear MS    stop so long half-way through each change, to see what "
			    "readers do\n"
			    "  -r TIMES     do it so often over one connection, and count\n"
			    "  -q           only the exit status says how it went\n"
			    "  -t SECONDS   how long to wait for the peer (10)\n"
			    "  --provider NAME   who does RDMA\n"
			    "  -h, --help   this text;  --version\n"
			    "exit status: 0 done, 1 no such key, 2 usage, 3 failed\n";

enum long_option { OPT_TEAR = 256, OPT_PROVIDER, OPT_VERSION };

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "tear", required_argument, NULL, OPT_TEAR },
	{ "provider", required_argument, NULL, OPT_PROVIDER },
	{ 0 },
};

static int number(const char *name, unsigned long min, unsigned long max, unsigned long *out)
{
	if (!endpoint_number(optarg, min, max, out))
		return 0;
	fprintf(stderr, "warp-kv: %s is no value for %s\n", optarg, name);
	return -1;
}

static int parse_one(struct kv_options *opt, int c)
{
	unsigned long value = 0;
	int ret = 0;

	if (c == 'a')
		opt->host = optarg;
	else if (c == 'q')
		opt->quiet = true;
	else if (c == OPT_PROVIDER)
		opt->provider = optarg;
	else if (c == 'p' && !(ret = number("-p", 0, 65535, &value)))
		opt->port = (uint16_t)value;
	else if (c == 'n' && !(ret = number("-n", 1, KV_SLOTS_MAX, &value)))
		opt->slots = (uint32_t)value;
	else if (c == 'r' && !(ret = number("-r", 1, UINT32_MAX, &value)))
		opt->repeat = (uint32_t)value;
	else if (c == 't' && !(ret = number("-t", 1, 86400, &value)))
		opt->timeout_ms = (int)value * 1000;
	else if (c == OPT_TEAR && !(ret = number("--tear", 0, 10000, &value)))
		opt->tear_ms = (unsigned int)value;
	else if (c == '?')
		ret = -1;
	return ret;
}

/* 0, or the status to exit with plus one */
static int parse(struct kv_options *opt, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "a:p:n:r:t:qh", long_options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return KV_OK + 1;
		}
		if (c == OPT_VERSION) {
			printf("warp-kv %s\n", warp_version());
			return KV_OK + 1;
		}
		if (parse_one(opt, c))
			return KV_USAGE + 1;
	}
	return 0;
}

static int wrong(const char *what)
{
	fprintf(stderr, "warp-kv: %s\n%s", what, usage);
	return -1;
}

static int check_words(const char *verb, const struct kv_options *opt, char **words, int n)
{
	bool serve = !strcmp(verb, "serve"), put = !strcmp(verb, "put");

	if (!serve && !put && strcmp(verb, "get") && strcmp(verb, "delete"))
		return wrong("one of serve, get, put, delete is needed");
	if (!serve && !opt->host)
		return wrong("-a is needed");
	if (serve ? n : put ? n != 2 : strcmp(verb, "get") ? n != 1 : !n)
		return wrong("too many words, or too few");
	for (int i = 0; i < n - put; i++)
		if (!*words[i] || strlen(words[i]) > KV_KEY_MAX)
			return wrong("a key has 1 to 62 bytes");
	if (put && strlen(words[1]) > KV_VALUE_MAX)
		return wrong("a value has up to 176 bytes");
	return 0;
}

static int resolve(struct kv_options *opt)
{
	const char *host = opt->host ? opt->host : "0.0.0.0";
	int ret = endpoint_resolve(host, opt->port, &opt->addr);

	if (ret)
		fprintf(stderr, "warp-kv: %s: %s\n", host, gai_strerror(ret));
	return ret;
}

static enum kv_status run(const char *verb, const struct kv_options *opt, struct warp_device *dev,
			  char **words, int n)
{
	if (!strcmp(verb, "serve"))
		return kv_server_run(opt, dev);
	if (!strcmp(verb, "get"))
		return kv_client_get(opt, dev, words, n);
	return kv_client_change(opt, dev, words[0], n == 2 ? words[1] : NULL);
}

int main(int argc, char **argv)
{
	struct kv_options opt = {
		.port = KV_PORT,
		.slots = 1024,
		.repeat = 1,
		.timeout_ms = 10000,
	};
	enum kv_status status;
	struct warp_device *dev;
	const char *verb;
	int ret = parse(&opt, argc, argv);

	if (ret)
		return ret - 1;
	verb = optind < argc ? argv[optind++] : "";
	if (check_words(verb, &opt, argv + optind, argc - optind) || resolve(&opt))
		return KV_USAGE;
	endpoint_catch_signals();
	ret = warp_device_open(opt.provider, &dev);
	if (ret) {
		endpoint_complain(NULL, opt.provider ? opt.provider : "no provider", ret);
		return KV_FAILED;
	}
	status = run(verb, &opt, dev, argv + optind, argc - optind);
	warp_device_close(dev);
	return (int)status;
}
