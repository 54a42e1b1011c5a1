/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_RULE_H
#define CONFIG_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "config/conn_opts.h"
#include "config/error.h"

/*
 * Which sockets are for DDP: rules, and the table that they become. warpsock.conf(5) has the
 * syntax. A table is one block of memory without pointers that its owner provides, static or
 * not: nothing here allocates. It may be copied, and read by several threads at once.
 *
 *	static struct config_rules rules;
 *	struct config_error err;
 *
 *	if (config_rules_inherit(&rules, NULL, &err))
 *		base_err("%s", err.text);
 *	...
 *	how = config_rule_match(&rules, CONFIG_CLIENT, program_invocation_short_name, peer, len);
 */

enum config_role {
	CONFIG_CLIENT = 1, /* connects; the address is the peer's */
	CONFIG_SERVER = 2, /* accepted; the address is its own end's, as getsockname() tells it */
};

/* In their precedence: of all rules that match, the first of the first source decides. */
enum config_source {
	CONFIG_FROM_COMMAND,
	CONFIG_FROM_ENVIRONMENT,
	CONFIG_FROM_FILE,
};

enum config_family {
	CONFIG_ANY_FAMILY, /* the address is * */
	CONFIG_IPV4,	   /* and IPv6 addresses that are mapped IPv4 ones */
	CONFIG_IPV6,
};

/* Who is to serve: config_rule_provider() has the words */
enum config_rule_by {
	CONFIG_BY_SETTING, /* the rule does not say: WARPSOCK_PROVIDER does */
	CONFIG_BY_ROUTE,
	CONFIG_BY_SOFT,
	CONFIG_BY_VERBS,
};

/* Whether peers are asked beside the connection for a listener, and listeners told of when asked */
enum config_rule_ask {
	CONFIG_ASK_NEAR,   /* the rule does not say: a client asks hosts that are near */
	CONFIG_ASK_ALWAYS, /* a client asks each, also where the rule names the destination */
	CONFIG_ASK_NEVER,  /* a client asks nobody, and of a listener nobody is told */
};

#define CONFIG_PROGRAM_MAX 255
#define CONFIG_FILE_DEFAULT "/etc/warpsock.conf"
#define CONFIG_FILE_MAX (256 * 1024)

/* Integers are in the host's order: a table does not leave its machine. */
struct config_rule {
	uint16_t size; /* bytes of this rule, program included; a multiple of 4 */
	uint8_t transport;
	uint8_t roles; /* one or both of enum config_role */
	uint8_t family;
	uint8_t prefix; /* leading bits of addr that count */
	uint16_t port_first, port_last;
	uint8_t source;
	uint8_t by;    /* enum config_rule_by */
	uint32_t line; /* in its source; of the command line: which --use */
	uint8_t addr[16];
	uint8_t ask; /* enum config_rule_ask */
	uint8_t zero[3];
	char program[]; /* a pattern, ends with NUL */
};
_Static_assert(sizeof(struct config_rule) == 36, "a rule has no holes");

#define CONFIG_RULES_OCTETS 65536
#define CONFIG_RULES_MAGIC 0x57524C33u /* "WRL3": the layout's version is part of it */

struct config_rules {
	uint32_t magic;
	uint32_t count;
	uint32_t size; /* bytes of octets[] in use */
	uint32_t zero;
	uint8_t octets[CONFIG_RULES_OCTETS - 16];
};
_Static_assert(sizeof(struct config_rules) == CONFIG_RULES_OCTETS, "a table is one block");

/* --- asking: async-signal-safe, no memory, no locale, errno kept --------------------------- */

/*
 * The first rule for this socket, or NULL. @program is the base name that the program was
 * started by (program_invocation_short_name). Addresses that are not IP match no rule.
 */
const struct config_rule *config_rule_find(const struct config_rules *rules, enum config_role role,
					   const char *program, const struct sockaddr *addr,
					   socklen_t len);
/* What that rule says; CONFIG_USE_TCP when there is none. */
enum config_transport config_rule_match(const struct config_rules *rules, enum config_role role,
					const char *program, const struct sockaddr *addr,
					socklen_t len);
/* The provider that it names, as WARPSOCK_PROVIDER would; NULL: none */
const char *config_rule_provider(const struct config_rule *rule);
/* Whether it is one for programs of this name, whatever the address */
bool config_rule_is_for(const struct config_rule *rule, const char *program);
/* All rules in their order: NULL begins, NULL ends. */
const struct config_rule *config_rule_next(const struct config_rules *rules,
					   const struct config_rule *rule);
/* One that is before @rule, for which @rule can never decide; NULL: it may */
const struct config_rule *config_rule_shadow(const struct config_rules *rules,
					     const struct config_rule *rule);
/* Whether it names a destination, which is a reason for AUTO to probe it; "*" names none. */
static inline int config_rule_names_peer(const struct config_rule *rule)
{
	return rule->prefix > 0;
}

/* --- making ------------------------------------------------------------------------------ */

/* Is told of each mistake; where there is none to be told, the first one ends the work */
typedef void (*config_mistake_fn)(const struct config_error *mistake);

/* Text with rules, separated by newlines or ';'. */
struct config_text {
	enum config_source source;
	const char *name; /* what errors call it: a path, "WARPSOCK_USE", "--use" */
	uint32_t line;	  /* the number of its first line */
	const char *octets;
	size_t len;
	config_mistake_fn mistake; /* or NULL */
};

void config_rules_init(struct config_rules *rules);

/*
 * Adds the rules of @text behind those that are there. On -EINVAL (syntax) and -ENOSPC (the
 * table is full) @rules is as it was, and @err says "NAME:LINE:COLUMN: expected ..., got ..."
 * of the last mistake that was looked for.
 * Lines and columns count from 1, columns in bytes.
 */
int config_rules_add(struct config_rules *rules, const struct config_text *text,
		     struct config_error *err);

struct config_sources {
	const char *const *use; /* arguments of --use, in order */
	size_t uses;
	int all; /* --all: behind those, a rule for every TCP socket ... */
	enum config_transport all_transport; /* ... that says this */
	const char *environment;	     /* the value of WARPSOCK_USE, or NULL */
	const char *file; /* a path; NULL: the default one, which may be absent; "": none */
	config_mistake_fn mistake; /* NULL: the first one ends the work */
};

/* Nothing from a command line; the rest from WARPSOCK_USE and WARPSOCK_CONFIG. */
void config_sources_init(struct config_sources *sources);

/*
 * Makes the table from all sources. When one of them is bad or cannot be read, -errno: @rules is
 * empty then, and @err says why.
 */
int config_rules_load(struct config_rules *rules, const struct config_sources *sources,
		      struct config_error *err);

/* --mode on, --mode auto; -EINVAL for another word */
int config_mode_parse(const char *word, enum config_transport *out);

/* --- handing on --------------------------------------------------------------------------- */

/* One rule as one would write it. Cut when @size is short, as snprintf() does; returns @out. */
#define CONFIG_RULE_TEXT_MAX (CONFIG_PROGRAM_MAX + 100)
const char *config_rule_format(const struct config_rule *rule, char *out, size_t size);

/*
 * The table as text for WARPSOCK_RULES, which hands it from the launcher to the interposer, and
 * back. Encoding fails with -ENOSPC, CONFIG_RULES_TEXT_MAX is always enough. Decoding believes
 * nothing: -EINVAL, and @rules is empty, for whatever encoding did not make.
 */
#define CONFIG_RULES_TEXT_MAX ((CONFIG_RULES_OCTETS + 2) / 3 * 4 + 1)
int config_rules_encode(const struct config_rules *rules, char *out, size_t size);
int config_rules_decode(struct config_rules *rules, const char *text);

/*
 * The table that a launcher left in WARPSOCK_RULES, or without one what config_rules_load() makes
 * of the environment and the file. Fails as that does; @mistake, if it is not NULL, is told of
 * each mistake in them.
 */
int config_rules_inherit(struct config_rules *rules, config_mistake_fn mistake,
			 struct config_error *err);

#endif
