/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock explain`: which rule decides about a socket, and what reason codes mean.
 */
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "apps/warpsock/launcher.h"
#include "config/endpoint.h"
#include "config/reason.h"

/* --- codes --- */

static const char *const groups[] = {
	[CONFIG_REASON_CHOICE] = "a choice of this end",
	[CONFIG_REASON_PEER] = "the peer",
	[CONFIG_REASON_HOST] = "this host",
	[CONFIG_REASON_END] = "how it ended",
};

static void code_put(const struct config_reason_row *r)
{
	printf("%s (%u, %s)\n    %s\n", r->name, r->number, groups[r->group], r->text);
	if (r->advice[0])
		printf("    %s\n", r->advice);
}

/* All of them without a name. How many were found. */
static unsigned int codes_put(const char *name)
{
	const struct config_reason_row *r;
	unsigned int found = 0;

	for (unsigned int i = 0; (r = config_reason_at(i)); i++) {
		if (name && strcmp(r->name, name))
			continue;
		code_put(r);
		found++;
	}
	return found;
}

static int code_explain(const char *name)
{
	if (codes_put(name))
		return 0;
	fprintf(stderr, "warpsock: no reason code is called \"%s\"; warpsock explain lists them\n",
		name);
	return 1;
}

/* --- sockets --- */

static enum config_role role_parse(const char *word)
{
	if (!strcmp(word, "client"))
		return CONFIG_CLIENT;
	if (!strcmp(word, "server"))
		return CONFIG_SERVER;
	launcher_die("expected client or server, got \"%s\"", word);
}

static socklen_t address_parse(const char *text, struct sockaddr_storage *out)
{
	struct config_word w = { text, strlen(text) };
	struct config_rule r = { .size = 0 };
	const char *expected = config_endpoint_parse(&w, &r);
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
	struct sockaddr_in *four = (struct sockaddr_in *)out;

	if (!expected && (r.family == CONFIG_ANY_FAMILY || r.port_first != r.port_last ||
			  r.prefix != (r.family == CONFIG_IPV4 ? 32 : 128)))
		expected = "one address and one port";
	if (expected)
		launcher_die("%s: expected %s", text, expected);
	*out = (struct sockaddr_storage){ .ss_family = AF_INET };
	if (r.family == CONFIG_IPV4) {
		four->sin_port = htons(r.port_first);
		memcpy(&four->sin_addr, r.addr, sizeof(four->sin_addr));
		return sizeof(*four);
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(r.port_first);
	memcpy(&six->sin6_addr, r.addr, sizeof(six->sin6_addr));
	return sizeof(*six);
}

static void source_put(const struct config_rule *r, const struct rules_args *args)
{
	struct config_sources sources;

	config_sources_init(&sources);
	if (r->source == CONFIG_FROM_FILE)
		printf("    from %s, line %u\n", sources.file ? sources.file : CONFIG_FILE_DEFAULT,
		       r->line);
	else if (r->source == CONFIG_FROM_ENVIRONMENT)
		printf("    from WARPSOCK_USE, line %u\n", r->line);
	else if (r->line > args->uses)
		puts("    from --all");
	else
		printf("    from --use, number %u\n", r->line);
}

static const char *meaning(const struct config_rule *r, enum config_role role)
{
	if (r->transport == CONFIG_USE_TCP)
		return "plain TCP";
	if (r->transport == CONFIG_USE_DDP)
		return "only DDP: a connection to a peer that does not speak it fails";
	if (role == CONFIG_SERVER)
		return "DDP where the peer asks for it, else TCP";
	return config_rule_names_peer(r) ? "DDP where the peer speaks it, else TCP; the rule names "
					   "the address, so the "
					   "peer is asked"
					 : "DDP where the peer speaks it, else TCP; the rule names "
					   "no address, so the "
					   "peer is asked only if it is a listener under warpsock "
					   "on this host or has "
					   "spoken DDP before";
}

static int socket_explain(const struct rules_args *args, char **words)
{
	struct sockaddr_storage addr;
	enum config_role role = role_parse(words[0]);
	socklen_t len = address_parse(words[2], &addr);
	const struct config_rule *r = config_rule_find(rules_load(args), role, words[1],
						       (const struct sockaddr *)&addr, len);
	char text[CONFIG_RULE_TEXT_MAX];

	if (!r) {
		puts("no rule matches: plain TCP");
		codes_put("RULE_NONE");
		return 0;
	}
	puts(config_rule_format(r, text, sizeof(text)));
	source_put(r, args);
	printf("    %s\n", meaning(r, role));
	return 0;
}

int explain_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "use", required_argument, NULL, 'u' },
		{ "all", no_argument, NULL, 'a' },
		{ "mode", required_argument, NULL, 'm' },
		{ .name = NULL },
	};
	struct rules_args args;
	int c;

	rules_args_init(&args, argc);
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		if (!rules_args_take(&args, c, optarg))
			break;
	if (c == -1 && argc - optind == 3)
		return socket_explain(&args, argv + optind);
	if (c == -1 && argc - optind == 1)
		return code_explain(argv[optind]);
	if (c == -1 && argc == optind)
		return !codes_put(NULL);
	fputs(launcher_usage, stderr);
	return LAUNCHER_FAILED;
}
