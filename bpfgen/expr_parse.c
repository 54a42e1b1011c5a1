/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions as text, with C's operators and their precedence, and ~ between a text and a regular
 * expression. Operators of two operands by precedence climbing, the rest by recursive descent:
 *
 *	binary  = unary { operator unary }
 *	unary   = ( "!" | "-" | "~" ) unary | primary
 *	primary = "(" binary ")" | number | 'byte' | field
 *		| text-field ( "==" | "!=" | "~" | "!~" ) "string" [ "i" ]
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/expr_inside.h"

enum { DEPTH_MAX = 200, STRING_MAX = 1024 };

struct parser {
	const char *text, *at;
	struct bpfgen_expr *e;
	struct bpfgen_error *err;
	unsigned int depth;
};

#define refuse(p, ...) bpfgen_refuse((p)->err, -EINVAL, (size_t)((p)->at - (p)->text), __VA_ARGS__)
#define too_large(p, ...) \
	bpfgen_refuse((p)->err, -E2BIG, (size_t)((p)->at - (p)->text), __VA_ARGS__)

static const struct {
	const char *word;
	enum bpfgen_op op;
	int precedence;
} operators[] = {
	/* the longer ones first */
	{ "||", BPFGEN_OR, 1 },	    { "&&", BPFGEN_AND, 2 },   { "==", BPFGEN_EQ, 6 },
	{ "!=", BPFGEN_NE, 6 },	    { "<<", BPFGEN_SHL, 8 },   { ">>", BPFGEN_SHR, 8 },
	{ "<=", BPFGEN_LE, 7 },	    { ">=", BPFGEN_GE, 7 },    { "<", BPFGEN_LT, 7 },
	{ ">", BPFGEN_GT, 7 },	    { "|", BPFGEN_BIT_OR, 3 }, { "^", BPFGEN_BIT_XOR, 4 },
	{ "&", BPFGEN_BIT_AND, 5 }, { "+", BPFGEN_ADD, 9 },    { "-", BPFGEN_SUB, 9 },
	{ "*", BPFGEN_MUL, 10 },    { "/", BPFGEN_DIV, 10 },   { "%", BPFGEN_MOD, 10 },
};

static void blank_skip(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool takes(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	blank_skip(p);
	if (strncmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	return true;
}

/* What the tree has to say against the node that was just added, with this place in the text */
static int tree_check(struct parser *p, const char *at)
{
	if (!p->e->error)
		return 0;
	if (p->err) {
		*p->err = p->e->why;
		p->err->at = (size_t)(at - p->text);
	}
	return p->e->error;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static int digit_value(char digit)
{
	if (isdigit((unsigned char)digit))
		return digit - '0';
	if (isxdigit((unsigned char)digit))
		return tolower((unsigned char)digit) - 'a' + 10;
	return 16;
}

static int number_parse(struct parser *p, bpfgen_node *out)
{
	unsigned int base = p->at[0] == '0' && (p->at[1] | 0x20) == 'x' ? 16 : 10;
	const char *digits = p->at + (base == 16 ? 2 : 0), *at = digits;
	bool is_signed = true;
	uint64_t value = 0;

	for (; digit_value(*at) < (int)base; at++)
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit_value(*at), &value))
			return too_large(p, "a number of more than 64 bits");
	if (at == digits)
		return refuse(p, "0x needs a hexadecimal digit");
	if (base == 10 && *digits == '0' && at != digits + 1)
		return refuse(p, "a number that begins with 0; octal ones do not exist here");
	if ((*at | 0x20) == 'u') {
		is_signed = false;
		at++;
	}
	if (isalnum((unsigned char)*at) || *at == '_' || *at == '.')
		return refuse(p, "no number");
	p->at = at;
	*out = bpfgen_expr_number(p->e, value, is_signed && value <= INT64_MAX);
	return tree_check(p, digits);
}

/* Behind a backslash, in bytes and in texts that are compared; moves *at behind it. -1: unknown */
static int escape_read(const char **at)
{
	static const char letters[] = "ntr0\\'\"", bytes[] = "\n\t\r\0\\'\"";
	const char *begin = *at, *found = *begin ? strchr(letters, *begin) : NULL;

	if (found) {
		*at = begin + 1;
		return (unsigned char)bytes[found - letters];
	}
	if (*begin != 'x' || digit_value(begin[1]) > 15 || digit_value(begin[2]) > 15)
		return -1;
	*at = begin + 3;
	return digit_value(begin[1]) * 16 + digit_value(begin[2]);
}

/* 'a', '\n', '\\', '\x41' */
static int byte_parse(struct parser *p, bpfgen_node *out)
{
	const char *at = p->at + 1;
	int value = (unsigned char)*at;

	if (!*at || *at == '\'')
		return refuse(p, "a byte is needed between quotes");
	at++;
	if (value == '\\')
		value = escape_read(&at);
	if (value < 0)
		return refuse(p, "an unknown escape");
	if (*at != '\'')
		return refuse(p, "one byte is needed between quotes");
	p->at = at + 1;
	*out = bpfgen_expr_number(p->e, (uint64_t)value, true);
	return tree_check(p, at);
}

/* --- texts ------------------------------------------------------------------------------------ */

struct string {
	char bytes[STRING_MAX];
	size_t len;
	unsigned int flags;
};

/* Between quotes; \" is a quote, every other escape stays as it is; there is room for a NUL */
static int string_parse(struct parser *p, struct string *s)
{
	const char *begin = p->at;

	if (!takes(p, "\""))
		return refuse(p, "a string in quotes is needed");
	for (s->len = 0; *p->at != '"'; p->at++) {
		if (!*p->at) {
			p->at = begin;
			return refuse(p, "a string without its end");
		}
		if (s->len + 2 > sizeof(s->bytes))
			return too_large(p, "a string of more than %d bytes", STRING_MAX - 2);
		if (p->at[0] == '\\' && p->at[1] == '"')
			p->at++;
		else if (p->at[0] == '\\' && p->at[1])
			s->bytes[s->len++] = *p->at++;
		s->bytes[s->len++] = *p->at;
	}
	p->at++;
	s->flags = 0;
	if (*p->at == 'i' && !isalnum((unsigned char)p->at[1]) && p->at[1] != '_') {
		s->flags = BPFGEN_ICASE;
		p->at++;
	}
	return 0;
}

/* What the escapes in a text mean that is compared as it is; it becomes no longer */
static int string_unescape(struct parser *p, struct string *s)
{
	const char *at = s->bytes, *end = s->bytes + s->len;

	s->bytes[s->len] = 0;
	for (s->len = 0; at < end; s->len++) {
		int value = (unsigned char)*at++;

		if (value == '\\')
			value = escape_read(&at);
		if (value < 0)
			return refuse(p, "an unknown escape");
		s->bytes[s->len] = (char)value;
	}
	return 0;
}

/* The string's bytes and nothing else, as a regular expression */
static size_t string_quote(const struct string *s, char *pattern, size_t room)
{
	size_t n = (size_t)snprintf(pattern, room, "^");

	for (size_t i = 0; i < s->len; i++)
		n += (size_t)snprintf(pattern + n, room - n, "\\x%02x",
				      (unsigned int)(unsigned char)s->bytes[i]);
	return n + (size_t)snprintf(pattern + n, room - n, "$");
}

static int equal_parse(struct parser *p, int field, struct string *s, bpfgen_node *out)
{
	char pattern[4 * STRING_MAX + 3];
	int ret = string_unescape(p, s);

	if (ret)
		return ret;
	if (s->flags)
		*out = expr_match_add(p->e, field, pattern,
				      string_quote(s, pattern, sizeof(pattern)), s->flags);
	else
		*out = expr_equal_add(p->e, field, s->bytes, s->len);
	return 0;
}

static int match_parse(struct parser *p, int field, bpfgen_node *out)
{
	static const char *const words[] = { "==", "!=", "!~", "~" };
	const char *begin = p->at;
	struct string s;
	size_t word = 0;
	int ret;

	while (word < base_array_size(words) && !takes(p, words[word]))
		word++;
	if (word == base_array_size(words))
		return refuse(p, "%.64s is a text: ==, !=, ~ or !~ is needed",
			      p->e->fields[field].name);
	ret = string_parse(p, &s);
	if (!ret && word < 2)
		ret = equal_parse(p, field, &s, out);
	else if (!ret)
		*out = expr_match_add(p->e, field, s.bytes, s.len, s.flags);
	if (ret)
		return ret;
	if (word == 1 || word == 2)
		*out = bpfgen_expr_unary(p->e, BPFGEN_NOT, *out);
	return tree_check(p, begin);
}

/* --- the grammar ------------------------------------------------------------------------------ */

static int binary_parse(struct parser *p, int least, bpfgen_node *out);

static int field_parse(struct parser *p, bpfgen_node *out)
{
	const char *begin = p->at;
	size_t n = 0;
	int field;

	while (isalnum((unsigned char)begin[n]) || begin[n] == '_')
		n++;
	field = expr_field_find(p->e, begin, n);
	if (field < 0)
		return refuse(p, "there is no field %.*s", (int)base_min(n, (size_t)64), begin);
	p->at += n;
	if (p->e->fields[field].type == BPFGEN_TEXT)
		return match_parse(p, field, out);
	*out = expr_field_add(p->e, field);
	return tree_check(p, begin);
}

static int primary_parse(struct parser *p, bpfgen_node *out)
{
	int ret;

	blank_skip(p);
	if (isdigit((unsigned char)*p->at))
		return number_parse(p, out);
	if (*p->at == '\'')
		return byte_parse(p, out);
	if (isalpha((unsigned char)*p->at) || *p->at == '_')
		return field_parse(p, out);
	if (!takes(p, "("))
		return refuse(p, "%s",
			      *p->at ? "a number, a field or ( is needed"
				     : "the expression ends where a number, a field or "
				       "( is needed");
	ret = binary_parse(p, 1, out);
	if (!ret && !takes(p, ")"))
		ret = refuse(p, "a ( without its )");
	return ret;
}

static int unary_parse(struct parser *p, bpfgen_node *out)
{
	static const char words[] = "!-~";
	static const enum bpfgen_op ops[] = { BPFGEN_NOT, BPFGEN_NEGATE, BPFGEN_INVERT };
	const char *found, *begin;
	int ret;

	blank_skip(p);
	found = *p->at ? strchr(words, *p->at) : NULL;
	if (p->depth >= DEPTH_MAX)
		return too_large(p, "more than %d operators and brackets in one another",
				 DEPTH_MAX);
	p->depth++;
	begin = p->at;
	if (found) {
		p->at++;
		ret = unary_parse(p, out);
		if (!ret) {
			*out = bpfgen_expr_unary(p->e, ops[found - words], *out);
			ret = tree_check(p, begin);
		}
	} else {
		ret = primary_parse(p, out);
	}
	p->depth--;
	return ret;
}

/* The operator that stands here, if it binds as @least at least; its index, or -1 */
static int operator_see(struct parser *p, int least)
{
	blank_skip(p);
	for (size_t i = 0; i < base_array_size(operators); i++)
		if (!strncmp(p->at, operators[i].word, strlen(operators[i].word)))
			return operators[i].precedence >= least ? (int)i : -1;
	return -1;
}

static int binary_parse(struct parser *p, int least, bpfgen_node *out)
{
	int ret = unary_parse(p, out), found;
	bpfgen_node right;

	while (!ret && (found = operator_see(p, least)) >= 0) {
		const char *begin = p->at;

		p->at += strlen(operators[found].word);
		ret = binary_parse(p, operators[found].precedence + 1, &right);
		if (ret)
			break;
		*out = bpfgen_expr_binary(p->e, operators[found].op, *out, right);
		ret = tree_check(p, begin);
	}
	return ret;
}

int bpfgen_expr_parse(const char *text, const struct bpfgen_layout *layout,
		      struct bpfgen_expr **out, struct bpfgen_error *err)
{
	struct parser p = { .text = text, .at = text, .err = err };
	bpfgen_node whole = 0;
	int ret = bpfgen_expr_create(layout, &p.e, err);

	if (ret)
		return ret;
	ret = binary_parse(&p, 1, &whole);
	blank_skip(&p);
	if (!ret && *p.at)
		ret = refuse(&p, "an operator or the end is needed");
	if (!ret)
		ret = bpfgen_expr_finish(p.e, whole, err);
	if (ret)
		bpfgen_expr_destroy(p.e);
	else
		*out = p.e;
	return ret;
}
