/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which rule is found: rows for what the manual promises, then random tables against a model
 * that compares addresses bit by bit and takes its time.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/bits.h"
#include "config/glob.h"
#include "rules_text.h"

static struct config_rules rules;

static void rules_set(const char *text)
{
	struct config_error err = { "" };

	config_rules_init(&rules);
	cr_assert_eq(text_add(&rules, CONFIG_FROM_FILE, "f", text, &err), 0, "%s", err.text);
}

static socklen_t address_make(struct sockaddr_storage *out, const char *text, uint16_t port)
{
	struct sockaddr_in6 *six = (void *)out;
	struct sockaddr_in *four = (void *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htobe16(port);
		return sizeof(*four);
	}
	cr_assert_eq(inet_pton(AF_INET6, text, &six->sin6_addr), 1, "%s", text);
	six->sin6_family = AF_INET6;
	six->sin6_port = htobe16(port);
	return sizeof(*six);
}

static const char table[] = "use tcp * sshd *:*\n"
			    "use ddp client redis-* 10.0.0.0/8:6379-6389\n"
			    "use auto server redis-server *:6379\n"
			    "use auto * nginx [2001:db8::]/33:443\n"
			    "use tcp * * 192.168.1.7:*\n"
			    "use ddp * * 192.168.1.0/25:80\n"
			    "use auto client curl [::]/0:80\n"
			    "use ddp server x 0.0.0.0/0:1-2\n";

static const struct {
	enum config_role role;
	const char *program;
	const char *address;
	uint16_t port;
	int line; /* 0: none */
} rows[] = {
	{ CONFIG_CLIENT, "sshd", "1.2.3.4", 22, 1 },
	{ CONFIG_SERVER, "sshd", "::1", 0, 1 },
	{ CONFIG_SERVER, "sshd", "10.0.0.1", 6379, 1 },
	{ CONFIG_CLIENT, "sshd2", "1.2.3.4", 22, 0 },
	{ CONFIG_CLIENT, "ssh", "1.2.3.4", 22, 0 },
	{ CONFIG_CLIENT, "redis-cli", "10.0.0.1", 6379, 2 },
	{ CONFIG_CLIENT, "redis-cli", "10.255.255.255", 6389, 2 },
	{ CONFIG_CLIENT, "redis-cli", "::ffff:10.0.0.1", 6380, 2 },
	{ CONFIG_CLIENT, "redis-cli", "11.0.0.0", 6379, 0 },
	{ CONFIG_CLIENT, "redis-cli", "9.255.255.255", 6379, 0 },
	{ CONFIG_CLIENT, "redis-cli", "10.0.0.1", 6378, 0 },
	{ CONFIG_CLIENT, "redis-cli", "10.0.0.1", 6390, 0 },
	{ CONFIG_CLIENT, "redis", "10.0.0.1", 6379, 0 },
	{ CONFIG_SERVER, "redis-cli", "10.0.0.1", 6379, 0 },
	{ CONFIG_CLIENT, "redis-cli", "a00:1::", 6379, 0 },
	{ CONFIG_SERVER, "redis-server", "0.0.0.0", 6379, 3 },
	{ CONFIG_SERVER, "redis-server", "::", 6379, 3 },
	{ CONFIG_SERVER, "redis-server", "10.1.1.1", 6379, 3 },
	{ CONFIG_CLIENT, "redis-server", "1.1.1.1", 6379, 0 },
	{ CONFIG_CLIENT, "nginx", "2001:db8:7fff::1", 443, 4 },
	{ CONFIG_SERVER, "nginx", "2001:db8::", 443, 4 },
	{ CONFIG_CLIENT, "nginx", "2001:db8:8000::1", 443, 0 },
	{ CONFIG_CLIENT, "nginx", "2001:db9::1", 443, 0 },
	{ CONFIG_CLIENT, "a", "192.168.1.7", 80, 5 },
	{ CONFIG_CLIENT, "a", "::ffff:192.168.1.7", 80, 5 },
	{ CONFIG_CLIENT, "a", "192.168.1.8", 80, 6 },
	{ CONFIG_CLIENT, "", "192.168.1.127", 80, 6 },
	{ CONFIG_CLIENT, "a", "192.168.1.128", 80, 0 },
	{ CONFIG_CLIENT, "curl", "::1", 80, 7 },
	{ CONFIG_CLIENT, "curl", "fe80::1", 80, 7 },
	/* a mapped address is IPv4 and nothing else */
	{ CONFIG_CLIENT, "curl", "::ffff:1.2.3.4", 80, 0 },
	{ CONFIG_CLIENT, "curl", "1.2.3.4", 80, 0 },
	/* a compatible one (RFC 4291 section 2.5.5.1) is IPv6 */
	{ CONFIG_CLIENT, "curl", "::1.2.3.4", 80, 7 },
	{ CONFIG_SERVER, "x", "255.255.255.255", 2, 8 },
	{ CONFIG_SERVER, "x", "::ffff:0.0.0.0", 1, 8 },
	{ CONFIG_SERVER, "x", "::", 1, 0 },
	{ CONFIG_SERVER, "x", "1.2.3.4", 0, 0 },
	{ CONFIG_SERVER, "x", "1.2.3.4", 65535, 0 },
};

Test(rule_match, rows)
{
	struct sockaddr_storage addr;

	rules_set(table);
	for (size_t i = 0; i < base_array_size(rows); i++) {
		socklen_t len = address_make(&addr, rows[i].address, rows[i].port);
		const struct config_rule *r =
			config_rule_find(&rules, rows[i].role, rows[i].program, (void *)&addr, len);
		enum config_transport how = config_rule_match(&rules, rows[i].role, rows[i].program,
							      (void *)&addr, len);

		cr_expect_eq(r ? (int)r->line : 0, rows[i].line, "%s to %s:%u: line %u",
			     rows[i].program, rows[i].address, rows[i].port, r ? r->line : 0);
		cr_expect_eq(how, r ? (enum config_transport)r->transport : CONFIG_USE_TCP);
	}
}

Test(rule_match, what_is_no_ip_address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/x" };
	struct sockaddr_storage addr;
	socklen_t len;

	rules_set("use ddp * * *:*");
	cr_expect_null(config_rule_find(&rules, CONFIG_CLIENT, "x", (void *)&un, sizeof(un)));
	cr_expect_eq(config_rule_match(&rules, CONFIG_CLIENT, "x", (void *)&un, sizeof(un)),
		     CONFIG_USE_TCP);
	len = address_make(&addr, "1.2.3.4", 1);
	for (socklen_t i = 0; i < len; i++)
		cr_expect_null(config_rule_find(&rules, CONFIG_CLIENT, "x", (void *)&addr, i));
	address_make(&addr, "::1", 1);
	/* 24 octets without a scope id are what the kernel takes, too */
	for (socklen_t i = 0; i < sizeof(struct sockaddr_in6); i++)
		cr_expect_eq(!config_rule_find(&rules, CONFIG_CLIENT, "x", (void *)&addr, i),
			     i < 24, "%u", i);
}

Test(rule_match, names_a_peer)
{
	static const struct {
		const char *text;
		int want;
	} peers[] = {
		{ "use auto * * *:*", 0 },	     { "use auto * * *:80", 0 },
		{ "use auto * * 0.0.0.0/0:80", 0 },  { "use auto * * [::]/0:80", 0 },
		{ "use auto * * 10.0.0.0/8:80", 1 }, { "use auto * * [::1]:80", 1 },
	};

	for (size_t i = 0; i < base_array_size(peers); i++) {
		rules_set(peers[i].text);
		cr_expect_eq(config_rule_names_peer(config_rule_next(&rules, NULL)), peers[i].want,
			     "%s", peers[i].text);
	}
}

Test(rule_match, empty_table_says_tcp)
{
	struct sockaddr_storage addr;
	socklen_t len = address_make(&addr, "1.2.3.4", 1);

	config_rules_init(&rules);
	cr_assert_null(config_rule_find(&rules, CONFIG_CLIENT, "x", (void *)&addr, len));
	cr_assert_eq(config_rule_match(&rules, CONFIG_CLIENT, "x", (void *)&addr, len),
		     CONFIG_USE_TCP);
}

Test(rule_match, errno_is_kept)
{
	struct sockaddr_storage addr;
	socklen_t len = address_make(&addr, "1.2.3.4", 1);

	rules_set(table);
	errno = ENOTTY;
	config_rule_match(&rules, CONFIG_CLIENT, "x", (void *)&addr, len);
	cr_assert_eq(errno, ENOTTY);
}

/* --- random tables against a model ---------------------------------------------------------- */

static uint32_t seed = 7;

static uint32_t below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

struct model_rule {
	int roles, family, prefix, first, last;
	const char *program;
	uint8_t addr[16];
};

struct model_peer {
	int family, port;
	uint8_t addr[16];
};

#define MODEL_RULES 6
static const char *const programs[] = { "*", "a*", "?", "ab", "[ab]", "*b" };
static const char *const names[] = { "a", "b", "ab", "ba", "" };

/* Few different bits, near the ends of prefixes */
static void random_address(uint8_t *out, int octets)
{
	for (int i = 0; i < octets; i++)
		out[i] = below(4) ? 0 : (uint8_t)(1u << below(8));
}

static void model_rule_make(struct model_rule *m)
{
	static const int families[] = { 0, 4, 6 };

	memset(m, 0, sizeof(*m));
	m->roles = 1 + (int)below(3);
	m->family = families[below(3)];
	m->prefix = m->family ? (int)below(m->family == 4 ? 33 : 129) : 0;
	m->first = below(3) ? 1 + (int)below(4) : 0;
	m->last = m->first ? m->first + (int)below(3) : 65535;
	m->program = programs[below(base_array_size(programs))];
	random_address(m->addr, 16);
	if (m->family == 6)
		m->addr[0] |= 0x20; /* not a mapped one */
}

static int model_rule_write(const struct model_rule *m, char *out, size_t size)
{
	static const char *const roles[] = { "", "client", "server", "*" };
	char addr[64] = "*", ports[32] = "*", text[INET6_ADDRSTRLEN];

	if (m->family)
		inet_ntop(m->family == 4 ? AF_INET : AF_INET6, m->addr, text, sizeof(text));
	if (m->family)
		snprintf(addr, sizeof(addr), m->family == 4 ? "%s/%d" : "[%s]/%d", text, m->prefix);
	if (m->first)
		snprintf(ports, sizeof(ports), "%d-%d", m->first, m->last);
	return snprintf(out, size, "use ddp %s %s %s:%s\n", roles[m->roles], m->program, addr,
			ports);
}

static bool bit(const uint8_t *p, int i)
{
	return p[i / 8] & 0x80 >> i % 8;
}

static bool model_fits(const struct model_rule *m, int role, const char *name,
		       const struct model_peer *peer)
{
	bool fits = m->roles & role && peer->port >= m->first && peer->port <= m->last &&
		    config_glob_match(m->program, name);

	if (m->family && m->family != peer->family)
		return false;
	for (int i = 0; i < m->prefix; i++)
		fits = fits && bit(m->addr, i) == bit(peer->addr, i);
	return fits;
}

/* Often an address of the rule with one bit flipped */
static void model_peer_make(struct model_peer *peer, const struct model_rule *m)
{
	*peer = (struct model_peer){ .family = below(2) ? 4 : 6, .port = (int)below(8) };
	random_address(peer->addr, peer->family == 4 ? 4 : 16);
	if (m->family && below(4)) {
		peer->family = m->family;
		memcpy(peer->addr, m->addr, 16);
		if (below(2))
			peer->addr[below(peer->family == 4 ? 4 : 16)] ^= (uint8_t)(1u << below(8));
	}
	if (peer->family == 6)
		peer->addr[0] |= 0x20;
}

static socklen_t peer_address(struct sockaddr_storage *out, const struct model_peer *peer)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };

	four.sin_port = six.sin6_port = htobe16((uint16_t)peer->port);
	if (peer->family == 4 && below(2)) {
		memcpy(&four.sin_addr, peer->addr, 4);
		memcpy(out, &four, sizeof(four));
		return sizeof(four);
	}
	memcpy(six.sin6_addr.s6_addr, peer->addr, 16);
	if (peer->family == 4) {
		memset(six.sin6_addr.s6_addr, 0, 10);
		memset(six.sin6_addr.s6_addr + 10, 0xFF, 2);
		memcpy(six.sin6_addr.s6_addr + 12, peer->addr, 4);
	}
	memcpy(out, &six, sizeof(six));
	return sizeof(six);
}

/* Returns the line found */
static int model_compare(const struct model_rule *model, const char *text)
{
	const struct model_rule *near = &model[below(MODEL_RULES)];
	const char *name = names[below(base_array_size(names))];
	int role = 1 + (int)below(2), want = 0;
	const struct config_rule *r;
	struct sockaddr_storage addr;
	struct model_peer peer;
	socklen_t len;

	model_peer_make(&peer, near);
	for (int i = MODEL_RULES; i > 0; i--)
		if (model_fits(&model[i - 1], role, name, &peer))
			want = i;
	len = peer_address(&addr, &peer);
	r = config_rule_find(&rules, (enum config_role)role, name, (void *)&addr, len);
	cr_assert_eq(r ? (int)r->line : 0, want, "%sname %s role %d port %d: line %u, not %d", text,
		     name, role, peer.port, r ? r->line : 0, want);
	return want;
}

Test(rule_match, random_tables_as_the_model)
{
	struct model_rule model[MODEL_RULES];
	unsigned int found[MODEL_RULES + 1] = { 0 };
	char text[1024];

	for (int i = 0; i < 4000; i++) {
		size_t at = 0;

		for (int j = 0; j < MODEL_RULES; j++) {
			model_rule_make(&model[j]);
			at += (size_t)model_rule_write(&model[j], text + at, sizeof(text) - at);
		}
		rules_set(text);
		for (int j = 0; j < 50; j++)
			found[model_compare(model, text)]++;
	}
	/* Each outcome was seen often enough to mean something. */
	for (int i = 0; i <= MODEL_RULES; i++)
		cr_expect_gt(found[i], 500, "line %d: %u", i, found[i]);
}
