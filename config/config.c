/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the option table to what the interposer goes by.
 */
#include "config/config.h"

#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/log.h"

/* too large for a stack of which nothing is known */
static struct config_settings settings;

/* The launcher has warned the user of unknown variables; each process need not do so again. */
static void report(void *ctx, bool bad, const struct config_error *what)
{
	if (bad)
		base_log_each(BASE_LOG_WARN, "%s", what->text);
	else
		base_info("%s", what->text);
}

/* The table has seen to it that it fits. */
static void text_copy(char *out, size_t size, const char *text)
{
	memcpy(out, text, base_min(strlen(text) + 1, size));
}

static struct conn_opts conn_opts_of(const struct config_settings *s)
{
	const char *provider = config_text(s, CONFIG_PROVIDER);
	struct conn_opts opts = {
		.no_crc = !config_number(s, CONFIG_CRC),
		.markers = config_number(s, CONFIG_MARKERS),
		.ring = (uint32_t)config_number(s, CONFIG_RING),
		.credits = (uint16_t)config_number(s, CONFIG_CREDITS),
	};

	text_copy(opts.provider, sizeof(opts.provider), strcmp(provider, "auto") ? provider : "");
	return opts;
}

int config_load(struct config *c)
{
	const char *dir = config_text(&settings, CONFIG_RUNTIME_DIR);
	int err;

	config_settings_init(&settings);
	err = config_settings_read(&settings, environ, report, NULL);
	c->conn = conn_opts_of(&settings);
	c->spin = config_number(&settings, CONFIG_SPIN);
	c->spin_always = config_number(&settings, CONFIG_SPIN_ALWAYS);
	c->tcp_spin = config_number(&settings, CONFIG_TCP_SPIN);
	text_copy(c->report, sizeof(c->report), config_text(&settings, CONFIG_REPORT));
	text_copy(c->command, sizeof(c->command), config_text(&settings, CONFIG_COMMAND));
	text_copy(c->dir, sizeof(c->dir), strcmp(dir, "auto") ? dir : "");
	c->uring = config_number(&settings, CONFIG_URING);
	c->linger = config_number(&settings, CONFIG_LINGER);
	c->start = config_number(&settings, CONFIG_START);
	c->strict = config_number(&settings, CONFIG_CONNECT);
	c->ask = (uint16_t)config_number(&settings, CONFIG_ASK);
	c->mapper = config_number(&settings, CONFIG_PORT_MAPPER);
	c->grace = config_number(&settings, CONFIG_GRACE);
	c->probe = config_number(&settings, CONFIG_PROBE_TIMEOUT);
	c->forget_plain = config_number(&settings, CONFIG_FORGET_PLAIN);
	c->forget_ddp = config_number(&settings, CONFIG_FORGET_DDP);
	return err;
}
