/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock completion`: scripts for bash, zsh and fish, made of the table of commands.
 *
 * A script has the commands, and for each the options and the words that a value or the first
 * argument may be. Behind the command of `run` the shell completes as it would without warpsock.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"
#include "config/reason.h"

/* --- lists of words --- */

static void commands_put(void)
{
	const struct command *c;

	for (unsigned int i = 0; (c = command_at(i)); i++)
		printf("%s%s", i ? " " : "", c->name);
}

static void options_put(void)
{
	const char *blank = "";

	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++)
		if (!config_option_get(id)->internal) {
			printf("%s%s", blank, config_option_get(id)->name);
			blank = " ";
		}
}

static void reasons_put(void)
{
	const struct config_reason_row *r;

	for (unsigned int i = 0; (r = config_reason_at(i)); i++)
		printf("%s%s", i ? " " : "", r->name);
}

/* What the table calls @words; false: files or programs, which a shell knows itself */
static bool words_put(const char *words)
{
	if (!strcmp(words, "@command"))
		commands_put();
	else if (!strcmp(words, "@option"))
		options_put();
	else if (!strcmp(words, "@reason"))
		reasons_put();
	else if (words[0] == '@')
		return false;
	else
		fputs(words, stdout);
	return true;
}

static bool has_letter(const struct command_option *o)
{
	return o->letter < 'A' || o->letter > 'Z';
}

/* Letters of the options of `run` that have a value: behind them stands no command */
static void letters_put(void)
{
	for (const struct command_option *o = command_find("run")->options; o->name; o++)
		if (o->arg && has_letter(o))
			putchar(o->letter);
}

/* And their names, with @between */
static void names_put(const char *between)
{
	const char *before = "";

	for (const struct command_option *o = command_find("run")->options; o->name; o++)
		if (o->arg) {
			printf("%s--%s", before, o->name);
			before = between;
		}
}

static bool is_list(const char *words)
{
	return words && strcmp(words, "@file") && strcmp(words, "@program");
}

/* --- bash --- */

static void bash_value_put(const struct command *c, const struct command_option *o)
{
	printf("\t%s:--%s", c->name, o->name);
	if (has_letter(o))
		printf("|%s:-%c", c->name, o->letter);
	fputs(") ", stdout);
	if (is_list(o->words)) {
		fputs("COMPREPLY=($(compgen -W '", stdout);
		words_put(o->words);
		puts("' -- \"$cur\")); return;;");
	} else if (o->words) {
		puts("COMPREPLY=($(compgen -f -- \"$cur\")); return;;");
	} else {
		puts("return;;");
	}
}

static void bash_command_put(const struct command *c)
{
	printf("\t%s) ", c->name);
	fputs("words='", stdout);
	for (const struct command_option *o = c->options; o->name; o++)
		printf("--%s ", o->name);
	fputs("--help'", stdout);
	if (is_list(c->words)) {
		fputs("; [[ $cur == -* ]] || words='", stdout);
		words_put(c->words);
		putchar('\'');
	} else if (c->words) {
		fputs("; [[ $cur == -* ]] || { COMPREPLY=($(compgen -c -- \"$cur\")); return; }",
		      stdout);
	}
	puts(";;");
}

/* @i becomes the place of the command behind `run` and its options */
static void bash_behind_put(void)
{
	puts("\tif [ \"${COMP_WORDS[1]}\" = run ]; then\n"
	     "\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	     "\t\t\tcase ${COMP_WORDS[i]} in\n"
	     "\t\t\t--) ((i++)); break;;");
	fputs("\t\t\t", stdout);
	names_put("|");
	fputs(") ((i++));;\n\t\t\t--*) ;;\n\t\t\t-*[", stdout);
	letters_put();
	puts("]) ((i++));;\n"
	     "\t\t\t-*) ;;\n"
	     "\t\t\t*) break;;\n"
	     "\t\t\tesac\n"
	     "\t\tdone\n"
	     "\t\tif ((i < COMP_CWORD)) || [ \"$prev\" = -- ] || [[ $cur != -* ]]; then\n"
	     "\t\t\tif declare -F _command_offset >/dev/null; then _command_offset $i\n"
	     "\t\t\telse COMPREPLY=($(compgen -c -f -- \"$cur\")); fi\n"
	     "\t\t\treturn\n"
	     "\t\tfi\n"
	     "\tfi");
}

static void bash_put(void)
{
	const struct command *c;

	puts("# bash completion for warpsock, made by: warpsock completion bash\n"
	     "_warpsock()\n"
	     "{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words i\n"
	     "\tCOMPREPLY=()\n"
	     "\tif [ \"$COMP_CWORD\" = 1 ]; then");
	fputs("\t\tCOMPREPLY=($(compgen -W '", stdout);
	commands_put();
	puts(" --version --help' -- \"$cur\"))\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase ${COMP_WORDS[1]}:$prev in");
	for (unsigned int i = 0; (c = command_at(i)); i++)
		for (const struct command_option *o = c->options; o->name; o++)
			if (o->arg)
				bash_value_put(c, o);
	puts("\tesac");
	bash_behind_put();
	puts("\tcase ${COMP_WORDS[1]} in");
	for (unsigned int i = 0; (c = command_at(i)); i++)
		bash_command_put(c);
	puts("\tesac\n"
	     "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	     "}\n"
	     "complete -F _warpsock warpsock");
}

/* --- zsh --- */

/* Within '...[...]' of _arguments */
static void zsh_text_put(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", stdout);
		else if (strchr("[]:\\", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void zsh_words_put(const char *name, const char *words)
{
	printf(":%s:", name);
	if (!words)
		return;
	if (is_list(words)) {
		putchar('(');
		words_put(words);
		putchar(')');
	} else {
		fputs(strcmp(words, "@file") ? "_command_names -e" : "_files", stdout);
	}
}

/* @dashed: "--mode", or "-m" */
static void zsh_form_put(const struct command_option *o, const char *dashed)
{
	printf(" \\\n\t\t\t'%s%s[", strcmp(o->name, "use") ? "" : "*", dashed);
	zsh_text_put(o->text);
	putchar(']');
	if (o->arg)
		zsh_words_put(o->arg, o->words);
	putchar('\'');
}

static void zsh_option_put(const struct command_option *o)
{
	char dashed[32];

	snprintf(dashed, sizeof(dashed), "--%s", o->name);
	zsh_form_put(o, dashed);
	snprintf(dashed, sizeof(dashed), "-%c", o->letter);
	if (has_letter(o))
		zsh_form_put(o, dashed);
}

static void zsh_command_put(const struct command *c)
{
	printf("\t%s)\n", c->name);
	if (!strcmp(c->name, "run"))
		puts("\t\t# _arguments does not take -- before all options\n"
		     "\t\tif [[ $words[2] = -- ]] && ((CURRENT > 2)); then\n"
		     "\t\t\twords=($words[1] \"${(@)words[3,-1]}\")\n"
		     "\t\t\t((CURRENT--))\n"
		     "\t\tfi");
	fputs("\t\t_arguments -S", stdout);
	for (const struct command_option *o = c->options; o->name; o++)
		zsh_option_put(o);
	fputs(" \\\n\t\t\t'--help[Show the help of this command]'", stdout);
	if (!strcmp(c->name, "run")) {
		fputs(" \\\n\t\t\t'(-)1:command:_command_names -e' '*::argument:_normal'", stdout);
	} else if (c->words) {
		fputs(" \\\n\t\t\t'1", stdout);
		zsh_words_put("argument", c->words);
		putchar('\'');
	}
	puts(";;");
}

static void zsh_put(void)
{
	const struct command *c;

	puts("#compdef warpsock\n"
	     "# zsh completion for warpsock, made by: warpsock completion zsh\n"
	     "# The name commands is zsh's own, for programs\n"
	     "local -a warpsock_commands=(");
	for (unsigned int i = 0; (c = command_at(i)); i++) {
		printf("\t'%s:", c->name);
		zsh_text_put(c->summary);
		puts("'");
	}
	puts(")\n"
	     "if ((CURRENT == 2)); then\n"
	     "\t_describe command warpsock_commands\n"
	     "\t_arguments '--version[Show the version]' '--help[Show all commands]'\n"
	     "\treturn\n"
	     "fi\n"
	     "local command=$words[2]\n"
	     "shift words\n"
	     "((CURRENT--))\n"
	     "case $command in");
	for (unsigned int i = 0; (c = command_at(i)); i++)
		zsh_command_put(c);
	puts("esac");
}

/* --- fish --- */

/* Within '...' */
static void fish_text_put(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void fish_words_put(const char *words)
{
	if (!words || strcmp(words, "@file") != 0)
		fputs(" -f", stdout);
	if (is_list(words)) {
		fputs(" -a '", stdout);
		words_put(words);
		putchar('\'');
	} else if (words && !strcmp(words, "@program")) {
		fputs(" -a '(__fish_complete_command)'", stdout);
	}
}

static void fish_option_put(const struct command *c, const struct command_option *o)
{
	printf("complete -c warpsock -n '__warpsock_in %s' -l %s", c->name, o->name);
	if (has_letter(o))
		printf(" -s %c", o->letter);
	if (o->arg) {
		fputs(" -r", stdout);
		fish_words_put(o->words);
	} else {
		fputs(" -f", stdout);
	}
	fputs(" -d '", stdout);
	fish_text_put(o->text);
	puts("'");
}

static void fish_command_put(const struct command *c)
{
	printf("complete -c warpsock -n '__warpsock_in' -f -a %s -d '", c->name);
	fish_text_put(c->summary);
	puts("'");
	for (const struct command_option *o = c->options; o->name; o++)
		fish_option_put(c, o);
	printf("complete -c warpsock -n '__warpsock_in %s' -l help -s h -f -d 'Tell about this "
	       "command'\n",
	       c->name);
	printf("complete -c warpsock -n '__warpsock_in %s'", c->name);
	fish_words_put(c->words);
	putchar('\n');
}

static void fish_put(void)
{
	const struct command *c;

	puts("# fish completion for warpsock, made by: warpsock completion fish\n"
	     "# The words before the cursor are those of the command $argv, or of none yet\n"
	     "function __warpsock_in\n"
	     "\tset -l words (commandline -opc)\n"
	     "\tif test (count $argv) = 0\n"
	     "\t\ttest (count $words) = 1\n"
	     "\t\treturn\n"
	     "\tend\n"
	     "\ttest \"$words[2]\" = \"$argv[1]\"; or return\n"
	     "\ttest \"$argv[1]\" != run; or test (count (__warpsock_behind)) = 0\n"
	     "end\n"
	     "# Behind `run` and its options: the words of the program, with the one at the "
	     "cursor\n"
	     "function __warpsock_behind\n"
	     "\tset -l words (commandline -opc)\n"
	     "\ttest \"$words[2]\" = run; or return\n"
	     "\tset -l at 3\n"
	     "\twhile set -q words[$at]; and string match -q -- '-*' $words[$at]");
	fputs("\t\tif contains -- $words[$at] ", stdout);
	names_put(" ");
	fputs("; or string match -qr -- '^-[^-]*[", stdout);
	letters_put();
	puts("]$' $words[$at]\n"
	     "\t\t\tset at (math $at + 1)\n"
	     "\t\telse if test \"$words[$at]\" = --\n"
	     "\t\t\tset at (math $at + 1)\n"
	     "\t\t\tstring join \\n -- $words[$at..-1] (commandline -ct)\n"
	     "\t\t\treturn\n"
	     "\t\tend\n"
	     "\t\tset at (math $at + 1)\n"
	     "\tend\n"
	     "\tset -q words[$at]; and string join \\n -- $words[$at..-1] (commandline -ct)\n"
	     "end\n"
	     "complete -c warpsock -n '__warpsock_in' -l version -f -d 'Show the version'\n"
	     "complete -c warpsock -n '__warpsock_in' -l help -s h -f -d 'Tell about all "
	     "commands'\n"
	     "complete -c warpsock -n 'test (count (__warpsock_behind)) != 0' -f -a "
	     "'(complete -C \"$(__warpsock_behind | string join \" \")\")'");
	for (unsigned int i = 0; (c = command_at(i)); i++)
		fish_command_put(c);
}

int completion_main(int argc, char **argv)
{
	static const struct {
		const char *shell;
		void (*put)(void);
	} shells[] = { { "bash", bash_put }, { "zsh", zsh_put }, { "fish", fish_put } };

	command_next("completion", argc, argv);
	if (optind != argc - 1)
		return command_wrong("completion", "for which shell: bash, zsh or fish?");
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (!strcmp(argv[optind], shells[i].shell)) {
			shells[i].put();
			return 0;
		}
	return command_wrong("completion", "expected bash, zsh or fish, got \"%s\"", argv[optind]);
}
