/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock explain`: which rule decides about a socket, and what reason codes mean.
 */
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"
#include "config/endpoint.h"
#include "config/nearest.h"
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

static void all_put(void)
{
	const struct config_reason_row *r;

	for (unsigned int i = 0; (r = config_reason_at(i)); i++)
		code_put(r);
}

static const char *code_name(unsigned int i)
{
	const struct config_reason_row *r = config_reason_at(i);

	return r ? r->name : NULL;
}

/* By its name, in any case, or its number */
static bool by_code(const char *word)
{
	const struct config_reason_row *r;
	char *end;
	unsigned long number = strtoul(word, &end, 10);
	bool is_number = word[0] >= '0' && word[0] <= '9' && !*end;

	for (unsigned int i = 0; (r = config_reason_at(i)); i++) {
		if (is_number ? r->number != number : strcasecmp(r->name, word) != 0)
			continue;
		code_put(r);
		return true;
	}
	return false;
}

/* An errno that a connection in mode on fails with, by its name or its number */
static bool by_errno(const char *word)
{
	enum config_reason reason;
	bool found = false;
	int error;

	for (unsigned int i = 0; (error = config_reason_error_at(i, &reason)); i++) {
		char number[16];

		snprintf(number, sizeof(number), "%d", error);
		if (strcasecmp(strerrorname_np(error), word) && strcmp(number, word))
			continue;
		if (found)
			puts("or");
		else
			printf("%s (errno %d) of a connection in mode on: %s\n",
			       strerrorname_np(error), error, strerrordesc_np(error));
		by_code(config_reason_name(reason));
		found = true;
	}
	return found;
}

static int code_explain(const char *word)
{
	const char *meant;
	bool code = by_code(word);

	if (by_errno(word) || code)
		return 0;
	meant = config_nearest(word, strlen(word), code_name);
	fprintf(stderr, "warpsock: no reason code is called \"%s\"; ", word);
	if (meant)
		fprintf(stderr, "did you mean %s?\n", meant);
	else
		fputs("warpsock explain lists them\n", stderr);
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

/* A client in mode auto: whose word it needs before it sends a Request */
static const char *asked(const struct config_rule *r)
{
	static const char *const words[] = {
		[CONFIG_ASK_NEAR] = "DDP where the peer speaks it, else TCP; the rule names no "
				    "address, so the "
				    "peer's host is asked beside the connection if it is near "
				    "(warpsock.conf(5)) "
				    "and has neither a listener under warpsock that this host "
				    "knows nor spoken "
				    "DDP before",
		[CONFIG_ASK_ALWAYS] = "DDP where the peer speaks it, else TCP; the peer's host is "
				      "asked beside the connection, wherever it is",
		[CONFIG_ASK_NEVER] = "DDP where the peer speaks it, else TCP; the rule names no "
				     "address, so the "
				     "peer is sent a Request only if it is a listener under "
				     "warpsock on this "
				     "host or has spoken DDP before",
	};

	if (config_rule_names_peer(r) && r->ask != CONFIG_ASK_ALWAYS)
		return "DDP where the peer speaks it, else TCP; the rule names the address, so the "
		       "peer is sent a Request at once";
	return words[r->ask];
}

static const char *server_meaning(const struct config_rule *r)
{
	if (r->ask == CONFIG_ASK_NEVER)
		return "DDP where the peer asks for it, else TCP; other hosts that ask for a "
		       "listener are not told of it";
	return "DDP where the peer asks for it, else TCP";
}

static const char *meaning(const struct config_rule *r, enum config_role role)
{
	if (r->transport == CONFIG_USE_TCP)
		return "plain TCP";
	if (r->transport == CONFIG_USE_DDP)
		return "only DDP: a connection to a peer that does not speak it fails";
	if (role == CONFIG_SERVER)
		return server_meaning(r);
	return asked(r);
}

static int socket_explain(const struct rules_args *args, char **words)
{
	struct sockaddr_storage addr;
	enum config_role role = role_parse(words[0]);
	socklen_t len = address_parse(words[2], &addr);
	const struct config_rule *r = config_rule_find(rules_load(args), role, words[1],
						       (const struct sockaddr *)&addr, len);
	char text[CONFIG_RULE_TEXT_MAX], source[PATH_MAX + 32];

	if (!r) {
		puts("no rule matches: plain TCP");
		by_code("RULE_NONE");
		return 0;
	}
	puts(config_rule_format(r, text, sizeof(text)));
	printf("    from %s\n", rules_source(r, args, source, sizeof(source)));
	printf("    %s\n", meaning(r, role));
	return 0;
}

int explain_main(int argc, char **argv)
{
	struct rules_args args;
	int c;

	rules_args_init(&args, argc);
	while ((c = command_next("explain", argc, argv)) != -1)
		rules_args_take(&args, c, optarg);
	if (argc - optind == 3)
		return socket_explain(&args, argv + optind);
	if (argc - optind == 1)
		return code_explain(argv[optind]);
	if (argc != optind)
		return command_wrong("explain", "a role, a program and an address, or one code");
	all_put();
	return 0;
}
