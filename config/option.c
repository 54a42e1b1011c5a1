/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values of options: from text, checked against the table, and back to text.
 *
 * A value is read into a variable first and stored only when it is good. Numbers are decimal; a
 * unit may follow (64k, 5ms), and nothing else may: what strtoull() would also take (signs,
 * blanks, hexadecimal) is more often a slip than meant.
 */
#include "config/option.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* The largest last: formatting takes the last one that divides. */
static const struct unit sizes[] = {
	{ "", 1 },	     { "k", 1ull << 10 }, { "K", 1ull << 10 },
	{ "M", 1ull << 20 }, { "G", 1ull << 30 }, { NULL, 0 },
};

static const struct unit times[] = {
	{ "ns", 1 }, { "us", BASE_NS_PER_US }, { "ms", BASE_NS_PER_MS }, { "s", BASE_NS_PER_S },
	{ NULL, 0 },
};

static const struct unit counts[] = { { "", 1 }, { NULL, 0 } };

static const struct unit *units_of(const struct config_option *o)
{
	if (o->type == CONFIG_TYPE_SIZE)
		return sizes;
	return o->type == CONFIG_TYPE_TIME ? times : counts;
}

static bool is_computed(const struct config_option *o)
{
	return o->type <= CONFIG_TYPE_TIME && !strcmp(o->fallback, "auto");
}

/* --- from text ---------------------------------------------------------------------------- */

/* The factor of @name; @otherwise names the unit when there is none. 0 when it is unknown */
static uint64_t unit_factor(const struct unit *units, const char *name, const char *otherwise)
{
	name = *name || !otherwise ? name : otherwise;
	for (; units->name; units++)
		if (!strcmp(name, units->name))
			return units->factor;
	return 0;
}

static bool number_parse(const struct config_option *o, const char *value, uint64_t *out)
{
	const char *p = value;
	uint64_t n = 0, factor;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return false;
	factor = p == value ? 0 : unit_factor(units_of(o), p, o->unit);
	if (!factor || __builtin_mul_overflow(n, factor, &n) || n < o->min || n > o->max)
		return false;
	*out = n;
	return true;
}

/* Which of @words, which have single blanks between them, @value is; -1 when it is none */
static int word_index(const char *words, const char *value)
{
	size_t len = strlen(value);

	for (int i = 0; *words; i++) {
		size_t n = strcspn(words, " ");

		if (n == len && !memcmp(words, value, n))
			return i;
		words += n + (words[n] == ' ');
	}
	return -1;
}

static bool word_parse(const char *words, const char *value, uint64_t *out)
{
	int i = word_index(words, value);

	if (i < 0)
		return false;
	*out = (uint64_t)i;
	return true;
}

static bool value_parse(const struct config_option *o, const char *value, uint64_t *out)
{
	if (is_computed(o) && !strcmp(value, "auto")) {
		*out = CONFIG_COMPUTED;
		return true;
	}
	if (o->type == CONFIG_TYPE_SWITCH)
		return word_parse("off on", value, out) || word_parse("0 1", value, out);
	if (o->type == CONFIG_TYPE_CHOICE)
		return word_parse(o->words, value, out);
	return number_parse(o, value, out);
}

static int refuse(enum config_option_id id, const char *value, struct config_error *err)
{
	char range[256], quoted[CONFIG_QUOTE_MAX];

	config_error_set(err, "%s: expected %s, got %s", config_option_get(id)->name,
			 config_option_range(id, range, sizeof(range)),
			 config_quote(value, strlen(value), quoted));
	return -EINVAL;
}

int config_settings_set(struct config_settings *s, enum config_option_id id, const char *value,
			enum config_origin origin, struct config_error *err)
{
	const struct config_option *o = config_option_get(id);
	size_t len = strlen(value);
	uint64_t number;

	if (o->type == CONFIG_TYPE_TEXT) {
		if (len < o->min || len > o->max)
			return refuse(id, value, err);
		memcpy(s->value[id].text, value, len + 1);
	} else if (o->type != CONFIG_TYPE_RULES) {
		if (!value_parse(o, value, &number))
			return refuse(id, value, err);
		s->value[id].number = number;
	}
	s->origin[id] = (uint8_t)origin;
	return 0;
}

void config_settings_init(struct config_settings *s)
{
	struct config_error err;

	memset(s, 0, sizeof(*s));
	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++)
		config_settings_set(s, id, config_option_get(id)->fallback, CONFIG_DEFAULT, &err);
}

/* --- to text ------------------------------------------------------------------------------ */

static void number_format(const struct config_option *o, uint64_t n, char *out, size_t size)
{
	const struct unit *fit = units_of(o);

	if (n == CONFIG_COMPUTED) {
		snprintf(out, size, "auto");
		return;
	}
	for (const struct unit *u = fit; n && u->name; u++)
		if (n % u->factor == 0 && u->factor > fit->factor)
			fit = u;
	snprintf(out, size, "%llu%s", (unsigned long long)(n / fit->factor), n ? fit->name : "");
}

static void word_format(const char *words, uint64_t i, char *out, size_t size)
{
	for (; i; i--)
		words += strcspn(words, " ") + 1;
	snprintf(out, size, "%.*s", (int)strcspn(words, " "), words);
}

const char *config_settings_format(const struct config_settings *s, enum config_option_id id,
				   char *out, size_t size)
{
	const struct config_option *o = config_option_get(id);

	if (o->type == CONFIG_TYPE_TEXT || o->type == CONFIG_TYPE_RULES)
		snprintf(out, size, "%s", s->value[id].text);
	else if (o->type == CONFIG_TYPE_SWITCH)
		word_format("off on", s->value[id].number, out, size);
	else if (o->type == CONFIG_TYPE_CHOICE)
		word_format(o->words, s->value[id].number, out, size);
	else
		number_format(o, s->value[id].number, out, size);
	return out;
}

static void words_range(const char *words, char *out, size_t size)
{
	size_t at = 0;

	while (*words && at < size) {
		size_t n = strcspn(words, " ");
		const char *comma = !at ? "" : words[n] ? ", " : " or ";

		at += (size_t)snprintf(out + at, size - at, "%s%.*s", comma, (int)n, words);
		words += n + (words[n] == ' ');
	}
}

static void number_range(const struct config_option *o, char *out, size_t size)
{
	static const char *const kinds[] = {
		[CONFIG_TYPE_COUNT] = "a number",
		[CONFIG_TYPE_SIZE] = "bytes",
		[CONFIG_TYPE_TIME] = "a time",
	};
	char min[32], max[32];

	number_format(o, o->min, min, sizeof(min));
	number_format(o, o->max, max, sizeof(max));
	snprintf(out, size, "%s%s from %s to %s", is_computed(o) ? "auto or " : "", kinds[o->type],
		 min, max);
}

const char *config_option_range(enum config_option_id id, char *out, size_t size)
{
	const struct config_option *o = config_option_get(id);

	if (o->type == CONFIG_TYPE_SWITCH)
		words_range("on off", out, size);
	else if (o->type == CONFIG_TYPE_CHOICE)
		words_range(o->words, out, size);
	else if (o->type == CONFIG_TYPE_RULES)
		snprintf(out, size, "rules");
	else if (o->type == CONFIG_TYPE_TEXT)
		snprintf(out, size, "text of %s%u bytes", o->min ? "1 to " : "at most ",
			 (unsigned int)o->max);
	else
		number_range(o, out, size);
	return out;
}
