/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regular expressions as text, made a tree. Recursive descent:
 *
 *	either  = both { "|" both }
 *	both    = { repeat }
 *	repeat  = atom [ "*" | "+" | "?" | "{" min [ "," [ max ] ] "}" ]
 *	atom    = "(" [ "?:" ] either ")" | "[" set "]" | "." | "^" | "$" | escape | byte
 *
 * What POSIX leaves undefined is refused rather than guessed: a repetition of nothing or of a
 * repetition, a brace without a number, an escape that is not known. Groups do not capture.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/inside.h"
#include "bpfgen/regex_inside.h"

struct parser {
	const char *text;
	size_t at, len;
	unsigned int flags, depth;
	struct bpfgen_regex *re;
	struct bpfgen_error *err;
};

#define refuse(p, ...) bpfgen_refuse((p)->err, -EINVAL, (p)->at, __VA_ARGS__)

static bool more(const struct parser *p)
{
	return p->at < p->len;
}

static bool sees(const struct parser *p, const char *word)
{
	size_t n = strlen(word);

	return p->len - p->at >= n && !memcmp(p->text + p->at, word, n);
}

static bool takes(struct parser *p, const char *word)
{
	if (!sees(p, word))
		return false;
	p->at += strlen(word);
	return true;
}

static int node_add(struct parser *p, struct regex_node node, uint32_t *out)
{
	struct bpfgen_regex *re = p->re;

	if (!bpfgen_grow((void **)&re->nodes, &re->room, re->count, sizeof(node)))
		return bpfgen_refuse(p->err, -ENOMEM, p->at, "out of memory");
	re->nodes[re->count] = node;
	*out = (uint32_t)re->count++;
	return 0;
}

/* --- sets ------------------------------------------------------------------------------------- */

static void set_range(struct regex_set *s, unsigned int from, unsigned int to)
{
	for (unsigned int byte = from; byte <= to; byte++)
		regex_set_add(s, byte);
}

static void set_merge(struct regex_set *s, const struct regex_set *with, bool inverse)
{
	for (int i = 0; i < 4; i++)
		s->bits[i] |= inverse ? ~with->bits[i] : with->bits[i];
}

static bool ascii_is(int (*is)(int), unsigned int byte)
{
	return byte < 0x80 && is((int)byte);
}

static bool set_named(struct regex_set *s, const char *name, size_t len)
{
	static const struct {
		const char *name;
		int (*is)(int);
	} list[] = {
		{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank },
		{ "cntrl", iscntrl }, { "digit", isdigit }, { "graph", isgraph },
		{ "lower", islower }, { "print", isprint }, { "punct", ispunct },
		{ "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
	};

	for (size_t i = 0; i < base_array_size(list); i++)
		if (strlen(list[i].name) == len && !memcmp(list[i].name, name, len)) {
			for (unsigned int byte = 0; byte < 0x80; byte++)
				if (ascii_is(list[i].is, byte))
					regex_set_add(s, byte);
			return true;
		}
	return false;
}

static void set_fold(const struct parser *p, struct regex_set *s)
{
	if (!(p->flags & BPFGEN_ICASE))
		return;
	for (unsigned int byte = 'a'; byte <= 'z'; byte++) {
		unsigned int capital = byte - 'a' + 'A';

		if (regex_set_has(s, byte) || regex_set_has(s, capital)) {
			regex_set_add(s, byte);
			regex_set_add(s, capital);
		}
	}
}

/* \d, \w, \s and those with capitals, which mean all others */
static bool set_escaped(struct regex_set *s, char letter)
{
	struct regex_set found = { { 0 } };

	switch (letter) {
	case 'd':
	case 'D':
		set_named(&found, "digit", 5);
		break;
	case 'w':
	case 'W':
		set_named(&found, "alnum", 5);
		regex_set_add(&found, '_');
		break;
	case 's':
	case 'S':
		set_named(&found, "space", 5);
		break;
	default:
		return false;
	}
	set_merge(s, &found, letter < 'a');
	return true;
}

static int hex_value(char digit)
{
	const char *digits = "0123456789abcdef", *found;

	found = digit ? strchr(digits, tolower((unsigned char)digit)) : NULL;
	return found ? (int)(found - digits) : -1;
}

static int hex_parse(struct parser *p, unsigned int *byte)
{
	int high = p->len - p->at >= 2 ? hex_value(p->text[p->at]) : -1;
	int low = p->len - p->at >= 2 ? hex_value(p->text[p->at + 1]) : -1;

	if (high < 0 || low < 0)
		return refuse(p, "\\x needs two hexadecimal digits");
	p->at += 2;
	*byte = (unsigned int)(high * 16 + low);
	return 0;
}

/* Behind a backslash: one byte, or a set of them (then *byte is 256) */
static int escape_parse(struct parser *p, struct regex_set *s, unsigned int *byte)
{
	static const char letters[] = "ntrfvae0", bytes[] = "\n\t\r\f\v\a\033";
	char letter;
	const char *found;

	if (!more(p))
		return refuse(p, "a backslash at the end");
	letter = p->text[p->at++];
	*byte = (unsigned char)letter;
	if (letter == 'x')
		return hex_parse(p, byte);
	if (set_escaped(s, letter)) {
		*byte = 256;
		return 0;
	}
	found = letter ? strchr(letters, letter) : NULL;
	if (found) {
		*byte = (unsigned char)bytes[found - letters];
		return 0;
	}
	p->at--;
	if (isdigit((unsigned char)letter))
		return refuse(p, "back references are not regular");
	if (!isprint((unsigned char)letter) || isalnum((unsigned char)letter))
		return refuse(p, "an unknown escape");
	p->at++;
	return 0;
}

/* [:digit:] and the like; *taken: it was one */
static int class_parse(struct parser *p, struct regex_set *s, bool *taken)
{
	const char *name, *end;

	*taken = false;
	if (sees(p, "[.") || sees(p, "[="))
		return refuse(p, "collating elements do not exist here");
	if (!sees(p, "[:"))
		return 0;
	name = p->text + p->at + 2;
	end = memmem(name, p->len - p->at - 2, ":]", 2);
	if (!end || !set_named(s, name, (size_t)(end - name)))
		return refuse(p, "an unknown class of bytes");
	p->at = (size_t)(end + 2 - p->text);
	*taken = true;
	return 0;
}

/* One byte of a set, or one end of a range; 256: a set, which is then in @s */
static int member_parse(struct parser *p, struct regex_set *s, unsigned int *byte)
{
	if (!more(p))
		return refuse(p, "a set without its ]");
	*byte = (unsigned char)p->text[p->at++];
	return *byte == '\\' ? escape_parse(p, s, byte) : 0;
}

static int range_parse(struct parser *p, struct regex_set *s)
{
	unsigned int from, to;
	bool taken;
	int ret = class_parse(p, s, &taken);

	if (ret || taken)
		return ret;
	ret = member_parse(p, s, &from);
	if (ret || from == 256)
		return ret;
	to = from;
	if (sees(p, "-") && !sees(p, "-]")) {
		p->at++;
		ret = member_parse(p, s, &to);
	}
	if (ret)
		return ret;
	if (to == 256 || to < from)
		return refuse(p, "a range of bytes ends before it begins");
	set_range(s, from, to);
	return 0;
}

/* Behind the [ */
static int set_parse(struct parser *p, struct regex_set *out)
{
	struct regex_set s = { { 0 } };
	bool inverse = takes(p, "^");
	size_t first = p->at;
	int ret = 0;

	while (!ret && !(sees(p, "]") && p->at != first))
		ret = range_parse(p, &s);
	if (ret)
		return ret;
	p->at++;
	set_fold(p, &s);
	set_merge(out, &s, inverse);
	return 0;
}

/* --- the tree --------------------------------------------------------------------------------- */

static int either_parse(struct parser *p, uint32_t *out);

static int group_parse(struct parser *p, uint32_t *out)
{
	int ret;

	if (takes(p, "?") && !takes(p, ":"))
		return refuse(p, "an unknown kind of group");
	if (++p->depth > BPFGEN_GROUPS_MAX)
		return bpfgen_refuse(p->err, -E2BIG, p->at, "more than %d groups in one another",
				     BPFGEN_GROUPS_MAX);
	ret = either_parse(p, out);
	p->depth--;
	if (!ret && !takes(p, ")"))
		ret = refuse(p, "a group without its )");
	return ret;
}

static int byte_parse(struct parser *p, struct regex_set *s)
{
	unsigned int byte = (unsigned char)p->text[p->at++];
	int ret = byte == '\\' ? escape_parse(p, s, &byte) : 0;

	if (!ret && byte < 256) {
		regex_set_add(s, byte);
		set_fold(p, s);
	}
	return ret;
}

/* *repeats: it may be followed by * and so on */
static int atom_parse(struct parser *p, uint32_t *out, bool *repeats)
{
	struct regex_node node = { .kind = REGEX_SET };
	int ret = 0;

	*repeats = true;
	if (takes(p, "("))
		return group_parse(p, out);
	if (sees(p, "*") || sees(p, "+") || sees(p, "?") || sees(p, "{"))
		return refuse(p, "nothing to repeat before %c", p->text[p->at]);
	if (sees(p, "^") || sees(p, "$")) {
		node.kind = p->text[p->at++] == '^' ? REGEX_BEGIN : REGEX_END;
		*repeats = false;
	} else if (takes(p, ".")) {
		set_range(&node.set, 0, 255);
		node.set.bits['\n' / 64] &= ~(1ull << ('\n' % 64));
	} else if (takes(p, "[")) {
		ret = set_parse(p, &node.set);
	} else {
		ret = byte_parse(p, &node.set);
	}
	return ret ? ret : node_add(p, node, out);
}

static int count_parse(struct parser *p, int *out)
{
	int n = 0;

	if (!more(p) || !isdigit((unsigned char)p->text[p->at]))
		return refuse(p, "a number is needed behind {");
	while (more(p) && isdigit((unsigned char)p->text[p->at])) {
		n = n * 10 + (p->text[p->at] - '0');
		if (n > BPFGEN_REPEAT_MAX)
			return bpfgen_refuse(p->err, -E2BIG, p->at, "more than %d repetitions",
					     BPFGEN_REPEAT_MAX);
		p->at++;
	}
	*out = n;
	return 0;
}

/* Behind the { */
static int braces_parse(struct parser *p, struct regex_node *node)
{
	int ret = count_parse(p, &node->min);

	node->max = node->min;
	if (!ret && takes(p, ",")) {
		node->max = REGEX_UNBOUNDED;
		if (!sees(p, "}"))
			ret = count_parse(p, &node->max);
	}
	if (ret)
		return ret;
	if (!takes(p, "}"))
		return refuse(p, "a { without its }");
	if (node->max != REGEX_UNBOUNDED && node->max < node->min)
		return refuse(p, "at most %d, but at least %d", node->max, node->min);
	return 0;
}

/* *taken: there was one */
static int count_of(struct parser *p, struct regex_node *node, bool *taken)
{
	*taken = true;
	if (takes(p, "*"))
		*node = (struct regex_node){ .min = 0, .max = REGEX_UNBOUNDED };
	else if (takes(p, "+"))
		*node = (struct regex_node){ .min = 1, .max = REGEX_UNBOUNDED };
	else if (takes(p, "?"))
		*node = (struct regex_node){ .min = 0, .max = 1 };
	else if (takes(p, "{"))
		return braces_parse(p, node);
	else
		*taken = false;
	return 0;
}

static int repeat_parse(struct parser *p, uint32_t *out)
{
	struct regex_node node = { 0 };
	bool repeats, taken, again;
	int ret = atom_parse(p, out, &repeats);

	if (ret)
		return ret;
	ret = count_of(p, &node, &taken);
	if (ret || !taken)
		return ret;
	if (!repeats)
		return refuse(p, "^ and $ cannot be repeated");
	node.kind = REGEX_REPEAT;
	node.a = *out;
	ret = node_add(p, node, out);
	if (!ret)
		ret = count_of(p, &node, &again);
	if (!ret && again)
		ret = refuse(p, "a repetition of a repetition needs a group");
	return ret;
}

static int pair_add(struct parser *p, enum regex_kind kind, uint32_t a, uint32_t b, uint32_t *out)
{
	return node_add(p, (struct regex_node){ .kind = kind, .a = a, .b = b }, out);
}

static int both_parse(struct parser *p, uint32_t *out)
{
	bool some = false;
	uint32_t next;
	int ret = 0;

	while (!ret && more(p) && !sees(p, "|") && !sees(p, ")")) {
		ret = repeat_parse(p, &next);
		if (ret)
			break;
		if (some)
			ret = pair_add(p, REGEX_BOTH, *out, next, out);
		else
			*out = next;
		some = true;
	}
	if (!ret && !some)
		ret = node_add(p, (struct regex_node){ .kind = REGEX_EMPTY }, out);
	return ret;
}

static int either_parse(struct parser *p, uint32_t *out)
{
	int ret = both_parse(p, out);
	uint32_t next;

	while (!ret && takes(p, "|")) {
		ret = both_parse(p, &next);
		if (!ret)
			ret = pair_add(p, REGEX_EITHER, *out, next, out);
	}
	return ret;
}

int bpfgen_regex_parse(const char *pattern, size_t len, unsigned int flags,
		       struct bpfgen_regex **out, struct bpfgen_error *err)
{
	struct parser p = { .text = pattern, .len = len, .flags = flags, .err = err };
	int ret;

	if (len > BPFGEN_PATTERN_MAX)
		return bpfgen_refuse(err, -E2BIG, BPFGEN_NOWHERE, "longer than %d bytes",
				     BPFGEN_PATTERN_MAX);
	p.re = calloc(1, sizeof(*p.re));
	if (!p.re)
		return bpfgen_refuse(err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
	ret = either_parse(&p, &p.re->root);
	if (!ret && more(&p))
		ret = refuse(&p, "a ) without its (");
	if (ret)
		bpfgen_regex_destroy(p.re);
	else
		*out = p.re;
	return ret;
}

void bpfgen_regex_destroy(struct bpfgen_regex *re)
{
	if (!re)
		return;
	free(re->nodes);
	free(re);
}
