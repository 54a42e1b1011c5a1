/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the launcher to each other. One file is one subcommand, or what several need.
 */
#ifndef APPS_WARPSOCK_LAUNCHER_H
#define APPS_WARPSOCK_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "config/option.h"
#include "config/rule.h"

#define LAUNCHER_FAILED 125

extern const char launcher_usage[];

__attribute__((format(printf, 1, 2), noreturn)) void launcher_die(const char *fmt, ...);

/* Each subcommand: its exit status. argv[0] is its name. */
int run_main(int argc, char **argv);
int options_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int doctor_main(int argc, char **argv);

/* --- rules.c: --use, --all and --mode, which several have --------------------------------- */

struct rules_args {
	const char **use;
	size_t uses;
	bool all, moded;
	enum config_transport mode;
};

void rules_args_init(struct rules_args *args, int argc);
/* 'u'se, 'a'll, 'm'ode of getopt_long(); false: it is none of these */
bool rules_args_take(struct rules_args *args, int c, const char *value);
/* The table of all sources; what is wrong in one of them is told, and the end */
const struct config_rules *rules_load(const struct rules_args *args);

/* --- settings.c: options and profiles ----------------------------------------------------- */

/* @profile: its name, or NULL. What is wrong is told, and the end */
void settings_load(struct config_settings *settings, const char *profile);

/* --- target.c ----------------------------------------------------------------------------- */

/* Ends with a message when the interposer cannot be loaded into the command */
void target_check(const char *command);

#endif
