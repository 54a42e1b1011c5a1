/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the launcher to each other. One file is one command, or what several need.
 */
#ifndef APPS_WARPSOCK_LAUNCHER_H
#define APPS_WARPSOCK_LAUNCHER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/option.h"
#include "config/report.h"
#include "config/rule.h"

__attribute__((format(printf, 1, 2), noreturn)) void launcher_die(const char *fmt, ...);

/* Each command: its exit status. argv[0] is its name */
int run_main(int argc, char **argv);
int check_main(int argc, char **argv);
int rules_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int options_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int completion_main(int argc, char **argv);
int help_main(int argc, char **argv);

/* --- rules.c: --use, --all and --mode, which several have --------------------------------- */

struct rules_args {
	const char **use;
	size_t uses;
	bool all, moded, spins; /* @spins: --mode spin */
	bool inherited;		/* the table of a launcher, which does not tell --all from --use */
	enum config_transport mode;
};

void rules_args_init(struct rules_args *args, int argc);
/* 'u'se, 'a'll, 'm'ode of command_next(); false: it is none of these */
bool rules_args_take(struct rules_args *args, int c, const char *value);
/* The table of all sources; each mistake in one of them is told, and the end */
const struct config_rules *rules_load(const struct rules_args *args);
/* "--use, number 2" or "/etc/warpsock.conf, line 3"; returns @out */
const char *rules_source(const struct config_rule *r, const struct rules_args *args, char *out,
			 size_t size);

/* --- settings.c: options and profiles ----------------------------------------------------- */

/* @profile: its name, or NULL. What is wrong is told, and the end */
void settings_load(struct config_settings *settings, const char *profile);

/* --- environment.c: what a program under the interposer has in its environment ------------ */

void environment_put(const char *name, const char *value);
/* Checked against the table: what is wrong is told, and the end */
void environment_option(enum config_option_id id, const char *value);
void environment_rules(const struct config_rules *rules);
/* LD_PRELOAD, with the interposer first */
void environment_preload(void);

/* --- target.c ----------------------------------------------------------------------------- */

/*
 * Can the command be interposed? If not, and a rule has its sockets on DDP alone, it ends with a
 * message; in mode auto the user is warned. TARGET_PLAIN_UNLOADED: nor may it be told to load it.
 * What no rule is for counts as interposed.
 */
enum target { TARGET_INTERPOSED, TARGET_PLAIN, TARGET_PLAIN_UNLOADED };
enum target target_check(const char *command, const struct config_rules *rules);

/* --- counts.c: the file in which the command's processes add up what they did -------------- */

/* A file of zeros at --report's @path, which becomes absolute in @out; what is wrong is told */
void counts_report(const char *path, char out[PATH_MAX]);
/* One that WARPSOCK_REPORT names, which may be there and is added to */
void counts_named(const char *path, char out[PATH_MAX]);
/* What the command's processes share, in a file of /dev/shm; empty: there cannot be one */
void counts_private(char out[PATH_MAX]);
/* Its numbers, to the end of this process; NULL: there are none */
struct config_tally *counts_map(const char *path);
/* Adds to a report, which *all is then; false: it is gone, or something else */
bool counts_add(const char *path, const struct config_report *more, struct config_report *all);

/* --- watch.c: the command as a child ------------------------------------------------------ */

struct watch {
	const char *counts; /* the file of the command's report */
	const char *shared; /* what its processes share, which goes at the end */
	bool summary;	    /* on standard error */
	bool json;	    /* that file on standard output */
};

/*
 * Starts the command, passes signals on, waits for it, and prints. Returns the exit status, or
 * ends by the signal that the command ended by.
 */
int watch_command(char **argv, const struct watch *w);

#endif
