/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion scripts for bash, zsh and fish, made of the table of options. Where no option is
 * completed, the shells complete names of files.
 */
#include <stdio.h>
#include <string.h>

#include "apps/activecc/activecc.h"

static void bash_print(void)
{
	fputs("_warp_activecc()\n"
	      "{\n"
	      "\tlocal last=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tcase $before in\n"
	      "\t--completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$last\")); return ;;\n"
	      "\t--clang) COMPREPLY=($(compgen -c -- \"$last\")); return ;;\n"
	      "\tesac\n"
	      "\tcase $last in\n"
	      "\t-*) COMPREPLY=($(compgen -W '",
	      stdout);
	for (const struct activecc_option *o = activecc_table; o->text; o++) {
		if (o->letter)
			printf("-%c ", o->letter);
		if (o->name)
			printf("--%s ", o->name);
	}
	fputs("' -- \"$last\")) ;;\n"
	      "\t*) COMPREPLY=($(compgen -f -- \"$last\")) ;;\n"
	      "\tesac\n"
	      "}\n"
	      "complete -o filenames -F _warp_activecc warp-activecc\n",
	      stdout);
}

/* One word of an option for zsh; @dashes and the word, then what it does and takes */
static void zsh_word_print(const char *dashes, const char *word, const struct activecc_option *o)
{
	printf(" \\\n\t'%s%s%s[", dashes, word, o->arg && o->name ? "" : o->arg ? "+" : "");
	for (const char *p = o->text; *p; p++)
		printf(*p == '\'' ? "'\\''" : "%c", *p);
	fputs("]", stdout);
	if (o->arg)
		printf(":%s:%s", strchr(o->arg, ':') ? "helper" : o->arg,
		       !strcmp(o->arg, "SHELL") ? "(bash zsh fish)" : "_files");
	fputs("'", stdout);
}

static void zsh_print(void)
{
	fputs("#compdef warp-activecc\n_arguments", stdout);
	for (const struct activecc_option *o = activecc_table; o->text; o++) {
		const char letter[] = { o->letter, 0 };

		if (o->letter)
			zsh_word_print("-", letter, o);
		if (o->name)
			zsh_word_print("--", o->name, o);
	}
	fputs(" \\\n\t'1:source:_files -g \"*.(c|s|S|o)\"'\n", stdout);
}

static void fish_print(void)
{
	for (const struct activecc_option *o = activecc_table; o->text; o++) {
		fputs("complete -c warp-activecc", stdout);
		if (o->letter)
			printf(" -s %c", o->letter);
		if (o->name)
			printf(" -l %s", o->name);
		if (o->arg)
			fputs(!strcmp(o->arg, "SHELL") ? " -x -a 'bash zsh fish'" : " -r", stdout);
		printf(" -d \"%s\"\n", o->text);
	}
}

bool activecc_completion_print(const char *shell)
{
	if (!strcmp(shell, "bash"))
		bash_print();
	else if (!strcmp(shell, "zsh"))
		zsh_print();
	else if (!strcmp(shell, "fish"))
		fish_print();
	else
		return false;
	return true;
}
