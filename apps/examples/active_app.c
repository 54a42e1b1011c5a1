/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line and the server that the example programs of Active RDMA share.
 */
#include "active_app.h"

#include <getopt.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "endpoint.h"

enum { LETTERS_MAX = 64 };

int active_app_complain(const struct active_app *app, const char *what, int err)
{
	fprintf(stderr, "%s: %s: %s\n", app->name, what, strerror(-err));
	return APP_FAILED;
}

/* --- help --------------------------------------------------------------------------------- */

static void option_print(FILE *to, int letter, const char *arg, const char *text)
{
	fprintf(to, "  -%c%s%-*s %s\n", letter, arg ? " " : "", arg ? 10 : 11, arg ? arg : "",
		text);
}

static void usage_print(const struct active_app *app, FILE *to)
{
	const char *begin = "usage:";

	for (const struct active_verb *v = app->verbs; v->name; v++) {
		fprintf(to, "%s %s %s%s [OPTION..]%s%s\n", begin, app->name, v->name,
			v == app->verbs ? "" : " -a ADDRESS", *v->words ? " " : "", v->words);
		begin = "      ";
	}
	option_print(to, 'a', "ADDRESS",
		     "serve: where to listen (all IPv4 addresses); else: the server");
	fprintf(to, "  -p %-10s TCP port (%lu); serve: 0 takes a free one\n", "PORT",
		app->common->port);
	for (const struct active_option *o = app->options; o->letter; o++)
		option_print(to, o->letter, o->arg, o->text);
	option_print(to, 's', "US",
		     "look for input so long before sleeping: shorter times, more work (0)");
	option_print(to, 'x', "INTERFACE",
		     "serve: programs may run in the kernel, for requests that arrive there");
	option_print(to, 'X', NULL, "else: have programs run in the server's kernel if they can");
	fputs("  -h, --help    this text;  --version\n", to);
	fprintf(to, "exit status: 0 done, %s%s2 usage, 3 failed\n", app->absent ? "1 " : "",
		app->absent ? app->absent : "");
}

int active_app_wrong(const struct active_app *app, const char *what)
{
	fprintf(stderr, "%s: %s\n", app->name, what);
	usage_print(app, stderr);
	return APP_USAGE;
}

/* --- options ------------------------------------------------------------------------------ */

static const struct active_option *option_find(const struct active_app *app, int letter)
{
	for (const struct active_option *o = app->options; o->letter; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

/* As getopt() wants them */
static void letters_make(const struct active_app *app, char *to)
{
	to = stpcpy(to, "a:p:s:x:Xh");
	for (const struct active_option *o = app->options; o->letter; o++) {
		*to++ = (char)o->letter;
		if (o->arg)
			*to++ = ':';
	}
	*to = 0;
}

static int option_take(const struct active_app *app, int letter)
{
	const struct active_option common[] = {
		{ 'p', "PORT", "", &app->common->port, 0, 65535, NULL },
		{ 's', "US", "", &app->common->spin_us, 0, 1000000, NULL },
		{ 'x', "INTERFACE", "", NULL, 0, 0, &app->common->interface },
		{ 'X', NULL, "", &app->common->in_kernel, 0, 1, NULL },
	};
	const struct active_option *o = option_find(app, letter);

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		o = common[i].letter == letter ? &common[i] : o;

	if (letter == 'a')
		app->common->host = optarg;
	else if (o && o->string)
		*o->string = optarg;
	else if (o && !o->arg)
		*o->value = 1;
	else if (o && endpoint_number(optarg, o->min, o->max, o->value))
		fprintf(stderr, "%s: %s is no value for -%c\n", app->name, optarg, letter);
	else if (o)
		return 0;
	return letter == 'a' || (o && (o->string || !o->arg)) ? 0 : -1;
}

/* 0, or the status to exit with plus one */
static int options_read(const struct active_app *app, int argc, char **argv)
{
	static const struct option names[] = { { "help", no_argument, NULL, 'h' },
					       { "version", no_argument, NULL, 'V' },
					       { 0 } };
	char letters[LETTERS_MAX];
	int letter;

	letters_make(app, letters);
	while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		if (letter == 'h')
			usage_print(app, stdout);
		if (letter == 'V')
			printf("%s %s\n", app->name, warp_version());
		if (letter == 'h' || letter == 'V')
			return APP_OK + 1;
		if (option_take(app, letter))
			return APP_USAGE + 1;
	}
	return 0;
}

static int verb_missing(const struct active_app *app)
{
	char text[200] = "one of";

	for (const struct active_verb *v = app->verbs; v->name; v++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s%s", v->name,
			 v[1].name ? "," : " is needed");
	return active_app_wrong(app, text);
}

int active_app_main(const struct active_app *app, int argc, char **argv)
{
	struct active_common *common = app->common;
	const struct active_verb *v = app->verbs;
	int ret = options_read(app, argc, argv), n;
	const char *host;

	if (ret)
		return ret - 1;
	while (v->name && (optind == argc || strcmp(v->name, argv[optind])))
		v++;
	if (!v->name)
		return verb_missing(app);
	n = argc - ++optind;
	if (n != v->count)
		return active_app_wrong(app, n > v->count ? "too many words" : "too few words");
	if (v != app->verbs && !common->host)
		return active_app_wrong(app, "-a is needed");
	host = common->host ? common->host : "0.0.0.0";
	ret = endpoint_resolve(host, (uint16_t)common->port, &common->addr);
	if (ret) {
		fprintf(stderr, "%s: %s: %s\n", app->name, host, gai_strerror(ret));
		return APP_USAGE;
	}
	common->host = host;
	endpoint_catch_signals();
	return v->run(argv + optind);
}

/* --- client ------------------------------------------------------------------------------- */

int active_app_ask(const struct active_app *app, struct active_end *end, const char *region,
		   int (*way)(void *arg), void *arg, unsigned long repeat, double *median)
{
	const struct active_common *common = app->common;
	int ret;

	end->in_kernel = common->in_kernel;
	ret = active_end_open(end, &common->addr, (unsigned int)common->spin_us, region,
			      app->object, (size_t)(app->object_end - app->object));

	if (!ret)
		ret = active_end_time(way, arg, repeat, median);
	active_end_close(end);
	return ret ? active_app_complain(app, common->host, ret) : APP_OK;
}

/* --- server ------------------------------------------------------------------------------- */

static int kernel_serve(struct warp_active_server *server, const struct active_common *common,
			size_t size)
{
	const struct warp_active_kernel_attr attr = {
		.interface = common->interface,
		.addr = (const struct sockaddr *)&common->addr,
		.len = endpoint_addr_len(&common->addr),
		.size = size,
	};

	return warp_active_kernel_serve(server, &attr);
}

static int region_serve(struct warp_active_server *server, const struct active_app *app,
			const struct warp_active_region_attr *attr, void (*fill)(void *memory),
			const char *what)
{
	const struct active_common *common = app->common;
	struct warp_active_region_attr in = *attr;
	struct warp_active_region *region;
	struct sockaddr_storage at;
	int ret = common->interface ? kernel_serve(server, common, attr->size) : 0;

	if (common->interface)
		in.flags |= WARP_ACTIVE_IN_KERNEL;
	if (!ret)
		ret = warp_active_export(server, &in, &region);
	if (ret)
		return ret;
	fill(warp_active_region_memory(region));
	ret = warp_active_server_listen(server, (const struct sockaddr *)&common->addr,
					endpoint_addr_len(&common->addr));
	if (!ret)
		ret = warp_active_server_addr(server, &at);
	if (ret)
		return ret;
	printf("port %u, %s\n", endpoint_port(&at), what);
	fflush(stdout);
	while (!endpoint_stopped())
		pause();
	return 0;
}

int active_app_serve(const struct active_app *app, const struct warp_active_region_attr *attr,
		     void (*fill)(void *memory), const char *what)
{
	const struct warp_active_server_attr server_attr = {
		.spin_us = (unsigned int)app->common->spin_us,
	};
	struct warp_active_server *server;
	int ret = warp_active_server_create(&server_attr, &server);

	if (ret)
		return active_app_complain(app, "no server", ret);
	ret = region_serve(server, app, attr, fill, what);
	warp_active_server_destroy(server);
	return ret ? active_app_complain(app, "serve", ret) : APP_OK;
}
