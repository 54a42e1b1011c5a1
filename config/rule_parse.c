/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From text to the table.
 *
 * One pass, word by word: a word goes on to the next blank, newline or ';', and \ takes the
 * byte behind it into the word. A rule is laid down behind the end of the table and belongs to
 * it only when the whole text was good, so a bad text leaves no rule behind. Each fail() says
 * what was expected, because what was found is quoted anyway. Where all mistakes are wanted, the
 * rest of a bad rule is passed over, and the next one is read.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "config/endpoint.h"
#include "config/glob.h"
#include "config/rule.h"

struct parser {
	const struct config_text *text;
	const char *at, *end;
	const char *line_start;
	uint32_t line;
	struct config_rules *rules;
	uint32_t count, size; /* of the table with this text's rules */
	struct config_error *err;
};

static int fail_with(struct parser *p, const char *where, const char *expected, const char *got)
{
	config_error_set(p->err, "%.255s:%u:%zu: expected %s, got %s", p->text->name, p->line,
			 (size_t)(where - p->line_start) + 1, expected, got);
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* @wrong is empty where something is missing */
static int fail(struct parser *p, struct config_word wrong, const char *expected)
{
	char quoted[CONFIG_QUOTE_MAX];

	if (wrong.len)
		return fail_with(p, wrong.at, expected, config_quote(wrong.at, wrong.len, quoted));
	if (wrong.at < p->end && is_blank(*wrong.at))
		return fail_with(p, wrong.at, expected, "a blank");
	return fail_with(p, wrong.at, expected, "the end of the rule");
}

/* --- words -------------------------------------------------------------------------------- */

static bool ends_rule(const struct parser *p)
{
	return p->at == p->end || *p->at == '\n' || *p->at == ';';
}

/* An empty word is the end of the rule. A # begins a comment only where a word could begin. */
static struct config_word next_word(struct parser *p)
{
	struct config_word w;

	while (p->at < p->end && is_blank(*p->at))
		p->at++;
	w.at = p->at;
	if (p->at < p->end && *p->at == '#')
		while (p->at < p->end && *p->at != '\n')
			p->at++;
	else
		while (!ends_rule(p) && !is_blank(*p->at))
			p->at += *p->at == '\\' && p->end - p->at > 1 && p->at[1] != '\n' ? 2 : 1;
	w.len = w.at < p->end && *w.at == '#' ? 0 : (size_t)(p->at - w.at);
	return w;
}

/* Behind the last word of a rule; false at the end of the text */
static bool next_rule(struct parser *p)
{
	if (p->at == p->end)
		return false;
	if (*p->at++ == '\n') {
		p->line++;
		p->line_start = p->at;
	}
	return true;
}

/* --- the fields of a rule ----------------------------------------------------------------- */

struct choice {
	const char *word;
	uint8_t value;
};

static const struct choice transports[] = {
	{ "ddp", CONFIG_USE_DDP },
	{ "auto", CONFIG_USE_AUTO },
	{ "tcp", CONFIG_USE_TCP },
	{ NULL, 0 },
};

static const struct choice roles[] = {
	{ "client", CONFIG_CLIENT },
	{ "server", CONFIG_SERVER },
	{ "*", CONFIG_CLIENT | CONFIG_SERVER },
	{ NULL, 0 },
};

static const struct choice providers[] = {
	{ "auto", CONFIG_BY_ROUTE },
	{ "soft", CONFIG_BY_SOFT },
	{ "verbs", CONFIG_BY_VERBS },
	{ NULL, 0 },
};

static const struct choice asks[] = {
	{ "always", CONFIG_ASK_ALWAYS },
	{ "never", CONFIG_ASK_NEVER },
	{ NULL, 0 },
};

static bool word_is(struct config_word w, const char *text)
{
	return w.len == strlen(text) && !memcmp(w.at, text, w.len);
}

static int choice_take(struct parser *p, struct config_word w, const struct choice *choices,
		       const char *expected, uint8_t *out)
{
	for (; choices->word; choices++) {
		if (word_is(w, choices->word)) {
			*out = choices->value;
			return 0;
		}
	}
	return fail(p, w, expected);
}

/* Where the word has its first control character, or its end */
static size_t control_at(struct config_word w)
{
	for (size_t i = 0; i < w.len; i++)
		if ((unsigned char)w.at[i] < 0x20 || w.at[i] == 0x7f)
			return i;
	return w.len;
}

static int program_take(struct parser *p, struct config_word w, struct config_rule *r)
{
	size_t where = control_at(w);
	const char *wrong;

	if (!w.len)
		return fail(p, w, "a program or a pattern");
	if (where < w.len)
		return fail(p, (struct config_word){ w.at + where, 1 },
			    "a program without control characters");
	if (w.len > CONFIG_PROGRAM_MAX)
		return fail(p, w, "a pattern of at most 255 bytes");
	memcpy(r->program, w.at, w.len);
	r->program[w.len] = 0;
	wrong = config_glob_check(r->program, &where);
	if (wrong)
		return fail(p, (struct config_word){ w.at + where, w.len - where }, wrong);
	return 0;
}

static int endpoint_take(struct parser *p, struct config_word w, struct config_rule *r)
{
	const char *end = w.at + w.len;
	const char *expected = config_endpoint_parse(&w, r);

	if (!expected)
		return 0;
	/* something is missing within the word: show what stands in its place */
	if (!w.len)
		w.len = (size_t)(end - w.at);
	return fail(p, w, expected);
}

/* @name and a word of @choices, if they come next; *@w is the word behind them */
static int clause_take(struct parser *p, struct config_word *w, const char *name,
		       const struct choice *choices, const char *expected, uint8_t *out)
{
	int err;

	if (!word_is(*w, name))
		return 0;
	err = choice_take(p, next_word(p), choices, expected, out);
	*w = next_word(p);
	return err;
}

static int clauses_take(struct parser *p, struct config_word *w, struct config_rule *r)
{
	bool by = word_is(*w, "provider");
	int err = clause_take(p, w, "provider", providers, "auto, soft or verbs", &r->by);

	if (err)
		return err;
	if (w->len && !word_is(*w, "ask"))
		return fail(p, *w,
			    by ? "ask or the end of the rule"
			       : "provider, ask or the end of the rule");
	return clause_take(p, w, "ask", asks, "always or never", &r->ask);
}

/* What may follow; plain TCP has neither a provider nor anybody to ask */
static int end_take(struct parser *p, struct config_rule *r)
{
	struct config_word w = next_word(p);
	int err = r->transport == CONFIG_USE_TCP ? 0 : clauses_take(p, &w, r);

	if (err)
		return err;
	return w.len ? fail(p, w, "the end of the rule") : 0;
}

/* @w is its transport; the program comes last, for what it needs of @r is known only then */
static int fields_take(struct parser *p, struct config_word w, struct config_rule *r)
{
	int err = choice_take(p, w, transports, "ddp, auto or tcp", &r->transport);

	if (!err)
		err = choice_take(p, next_word(p), roles, "client, server or *", &r->roles);
	if (!err)
		err = program_take(p, next_word(p), r);
	if (!err)
		err = endpoint_take(p, next_word(p), r);
	return err ? err : end_take(p, r);
}

/* --- rules -------------------------------------------------------------------------------- */

/* The largest rule there can be, to be laid down in the table when it is known to be good */
union rule_space {
	struct config_rule rule;
	uint8_t octets[sizeof(struct config_rule) + CONFIG_PROGRAM_MAX + 1];
};

static int rule_append(struct parser *p, struct config_word first, struct config_rule *r)
{
	size_t size = base_align_up(sizeof(*r) + strlen(r->program) + 1, 4);

	if (size > sizeof(p->rules->octets) - p->size) {
		fail_with(p, first.at, "fewer rules: they fill the table of 64 KiB", "one more");
		return -ENOSPC;
	}
	r->size = (uint16_t)size;
	r->source = (uint8_t)p->text->source;
	r->line = p->line;
	memcpy(p->rules->octets + p->size, r, size);
	p->size += (uint32_t)size;
	p->count++;
	return 0;
}

/* Only a file needs the keyword: there it leaves room for others. */
static int rule_take(struct parser *p)
{
	union rule_space space = { 0 };
	struct config_word first = next_word(p), w = first;
	int err;

	if (!first.len)
		return 0;
	if (word_is(first, "use"))
		w = next_word(p);
	else if (p->text->source == CONFIG_FROM_FILE)
		return fail(p, first, "use");
	err = fields_take(p, w, &space.rule);
	return err ? err : rule_append(p, first, &space.rule);
}

/* With a comment, which may hold what would end a rule */
static void rest_pass(struct parser *p)
{
	while (next_word(p).len)
		;
}

void config_rules_init(struct config_rules *rules)
{
	rules->magic = CONFIG_RULES_MAGIC;
	rules->count = 0;
	rules->size = 0;
	rules->zero = 0;
}

int config_rules_add(struct config_rules *rules, const struct config_text *text,
		     struct config_error *err)
{
	struct parser p = {
		.text = text,
		.at = text->octets,
		.end = text->octets + text->len,
		.line_start = text->octets,
		.line = text->line,
		.rules = rules,
		.count = rules->count,
		.size = rules->size,
		.err = err,
	};
	int bad = 0;

	do {
		int err = rule_take(&p);

		if (err && !text->mistake)
			return err;
		if (err) {
			text->mistake(p.err);
			rest_pass(&p);
			bad = err;
		}
	} while (bad != -ENOSPC && next_rule(&p));
	if (bad)
		return bad;
	rules->count = p.count;
	rules->size = p.size;
	return 0;
}
