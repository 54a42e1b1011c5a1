/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses and ports as a rule names them. The word is first cut into its parts, then each part
 * is read for itself; every function narrows @w down to what it complains about.
 *
 * An IPv6 address stands in brackets (RFC 3986 section 3.2.2), its length inside or behind
 * them. A mapped IPv4 address becomes an IPv4 one, as it does when it is asked for. What an
 * address has beyond its length is masked off.
 */
#include "config/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"

static struct config_word word_cut(const char *from, const char *to)
{
	return (struct config_word){ from, (size_t)(to - from) };
}

static const char *find(struct config_word w, char c)
{
	return w.len ? memchr(w.at, c, w.len) : NULL;
}

/* What stands behind the first @c moves from @w to @tail; false when there is none */
static bool word_split(struct config_word *w, char c, struct config_word *tail)
{
	const char *at = find(*w, c), *end = w->at + w->len;

	if (!at)
		return false;
	*tail = word_cut(at + 1, end);
	*w = word_cut(w->at, at);
	return true;
}

static bool is_star(struct config_word w)
{
	return w.len == 1 && *w.at == '*';
}

/* Decimal digits only; a number that is too large for any field stays so */
static bool number_parse(struct config_word w, unsigned int *out)
{
	unsigned int n = 0;

	for (size_t i = 0; i < w.len; i++) {
		if (w.at[i] < '0' || w.at[i] > '9')
			return false;
		n = base_min(n * 10 + (unsigned int)(w.at[i] - '0'), 100000u);
	}
	*out = n;
	return w.len > 0;
}

/* --- ports -------------------------------------------------------------------------------- */

static const char *port_parse(struct config_word *w, struct config_word whole, uint16_t *out)
{
	unsigned int n;

	if (!number_parse(*w, &n)) {
		*w = whole;
		return "a port or *";
	}
	if (n < 1 || n > UINT16_MAX)
		return "a port from 1 to 65535";
	*out = (uint16_t)n;
	return NULL;
}

static const char *ports_parse(struct config_word *w, struct config_rule *r)
{
	struct config_word whole = *w, last;
	const char *wrong;
	bool range;

	if (is_star(*w)) {
		r->port_first = 0;
		r->port_last = UINT16_MAX;
		return NULL;
	}
	range = word_split(w, '-', &last);
	wrong = port_parse(w, whole, &r->port_first);
	if (wrong)
		return wrong;
	if (range)
		*w = last;
	wrong = port_parse(w, whole, &r->port_last);
	if (!wrong && r->port_last < r->port_first) {
		*w = whole;
		return "the lower port first";
	}
	return wrong;
}

/* --- addresses ---------------------------------------------------------------------------- */

static bool address_parse(struct config_word w, int family, void *out)
{
	char text[INET6_ADDRSTRLEN];

	if (w.len >= sizeof(text) || find(w, 0))
		return false;
	memcpy(text, w.at, w.len);
	text[w.len] = 0;
	return inet_pton(family, text, out) == 1;
}

static void mask(uint8_t *addr, unsigned int bits)
{
	if (bits % 8)
		addr[bits / 8] &= (uint8_t)(0xFF00 >> bits % 8);
	for (unsigned int i = (bits + 7) / 8; i < 16; i++)
		addr[i] = 0;
}

/* The length behind a slash, if there is one, else @max */
static const char *length_parse(struct config_word *w, bool there, unsigned int min,
				unsigned int max, const char *expected, uint8_t *out)
{
	unsigned int n = max;

	if (there && (!number_parse(*w, &n) || n < min || n > max))
		return expected;
	*out = (uint8_t)n;
	return NULL;
}

static const char *ipv4_parse(struct config_word *w, struct config_rule *r)
{
	struct config_word length;
	bool cut = word_split(w, '/', &length);
	const char *wrong;

	if (!address_parse(*w, AF_INET, r->addr))
		return "an IPv4 address, an IPv6 address in [ ], or *";
	if (cut)
		*w = length;
	wrong = length_parse(w, cut, 0, 32, "a length from 0 to 32", &r->prefix);
	if (wrong)
		return wrong;
	r->family = CONFIG_IPV4;
	mask(r->addr, r->prefix);
	return NULL;
}

static void unmap(struct config_rule *r)
{
	memmove(r->addr, r->addr + 12, 4);
	r->prefix = (uint8_t)(r->prefix - 96);
	r->family = CONFIG_IPV4;
}

/* @length is behind the bracket; @w, what is inside, may have one instead */
static const char *ipv6_parse(struct config_word *w, bool cut, struct config_word length,
			      struct config_rule *r)
{
	struct in6_addr addr;
	const char *wrong;
	bool mapped;

	if (!cut)
		cut = word_split(w, '/', &length);
	if (!address_parse(*w, AF_INET6, &addr))
		return "an IPv6 address in the brackets";
	memcpy(r->addr, &addr, sizeof(addr));
	mapped = IN6_IS_ADDR_V4MAPPED(&addr);
	if (cut)
		*w = length;
	wrong = length_parse(w, cut, mapped ? 96 : 0, 128,
			     mapped ? "a length from 96 to 128 for a mapped IPv4 address"
				    : "a length from 0 to 128",
			     &r->prefix);
	if (wrong)
		return wrong;
	r->family = CONFIG_IPV6;
	if (mapped)
		unmap(r);
	mask(r->addr, r->prefix);
	return NULL;
}

/* --- the two together --------------------------------------------------------------------- */

static const char *plain_parse(struct config_word *w, struct config_rule *r)
{
	struct config_word host = *w, ports;
	const char *wrong;

	if (!word_split(&host, ':', &ports))
		return "an address, a colon and a port or *";
	if (find(ports, ':'))
		return "an IPv6 address in brackets, as in [::1]:80";
	*w = host;
	wrong = is_star(host) ? NULL : ipv4_parse(w, r);
	if (wrong)
		return wrong;
	*w = ports;
	return ports_parse(w, r);
}

static const char *bracket_parse(struct config_word *w, struct config_rule *r)
{
	struct config_word inside, behind, ports, length = { 0 };
	const char *wrong;
	bool cut;

	inside = *w;
	if (!word_split(&inside, ']', &behind))
		return "a ] behind the IPv6 address";
	inside = word_cut(inside.at + 1, inside.at + inside.len);
	*w = behind;
	if (!word_split(&behind, ':', &ports))
		return "a colon and a port or * behind the ]";
	cut = behind.len && *behind.at == '/';
	if (behind.len && !cut)
		return "a colon or a length behind the ]";
	if (cut)
		length = word_cut(behind.at + 1, behind.at + behind.len);
	*w = inside;
	wrong = ipv6_parse(w, cut, length, r);
	if (wrong)
		return wrong;
	*w = ports;
	return ports_parse(w, r);
}

const char *config_endpoint_parse(struct config_word *w, struct config_rule *r)
{
	return w->len && *w->at == '[' ? bracket_parse(w, r) : plain_parse(w, r);
}
