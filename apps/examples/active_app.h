/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_ACTIVE_APP_H
#define APPS_EXAMPLES_ACTIVE_APP_H

#include <warp/active.h>

#include "active_end.h"

/*
 * The command line and the server of the example programs of Active RDMA: tables, of which the
 * options and the help are made. The options that all have are -a, -p, -s, -x, -X, --help and
 * --version.
 */

enum active_app_status { APP_OK, APP_ABSENT, APP_USAGE, APP_FAILED };

/* What the common options said; the port is the default at first */
struct active_common {
	const char *host;
	struct sockaddr_storage addr;
	unsigned long port, spin_us;
	const char *interface;	 /* serve: programs may go into the kernel behind it */
	unsigned long in_kernel; /* else: programs run there where they can */
};

/* An option of one program: a number from min to max; or a flag, which sets 1; or a text */
struct active_option {
	int letter;
	const char *arg; /* NULL: a flag */
	const char *text;
	unsigned long *value, min, max;
	const char **string; /* of a text; else NULL */
};

struct active_verb {
	const char *name;
	const char *words; /* what follows the options, for the help, or "" */
	int count;	   /* of these words */
	int (*run)(char **words);
};

struct active_app {
	const char *name;
	struct active_common *common;
	const struct active_verb *verbs; /* the first one is the server's; ends with a NULL name */
	const struct active_option *options; /* ends with letter 0 */
	const char *absent;		     /* what status 1 means, or NULL */
	const unsigned char *object, *object_end;
};

/* The object that the build made of the program's source (object.S) */
extern const unsigned char active_object[], active_object_end[];

/* Reads the command line and runs the verb: the status to exit with */
int active_app_main(const struct active_app *app, int argc, char **argv);
/* Says what is wrong: APP_FAILED */
int active_app_complain(const struct active_app *app, const char *what, int err);
/* The same of the command line: APP_USAGE */
int active_app_wrong(const struct active_app *app, const char *what);
/*
 * Opens @end and does @way(@arg) once and so often more: 0, or what it returned. The median is that
 * of active_end_time(). What else is wrong is said.
 */
int active_app_ask(const struct active_app *app, struct active_end *end, const char *region,
		   int (*way)(void *arg), void *arg, unsigned long repeat, double *median);
/* Serves one region until a signal ends it: prints "port N, @what". @fill makes its content */
int active_app_serve(const struct active_app *app, const struct warp_active_region_attr *attr,
		     void (*fill)(void *memory), const char *what);

#endif
