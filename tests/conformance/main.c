/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a group of cases, each in a process of its own, once for every kind of end that it is for:
 *
 * 	conformance GROUP            run it
 * 	conformance GROUP 12 mem     this case alone, in this process
 * 	conformance list             every number once, and a reason where a kind is left out
 *
 * With CONFORMANCE_DEVICE=verbs:NAME and CONFORMANCE_ADDRESS, its address, in the environment a
 * group is run on that device and on no other kind of end. What departures.c says that the device
 * does otherwise must still fail there, in the same way, and where that is a part of a case only,
 * the rest of it must hold.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

enum { CASES = 132, LIMIT_S = 30, DEVICE_LIMIT_S = 120, DETAIL = 2000 };

static const struct group *const groups[] = { &start_group,	&depth_group,	&fpdu_group,
					      &ddp_group,	&rdmap_group,	&read_group,
					      &terminate_group, &rfc7306_group, &device_group,
					      &robust_group,	&vectors_group };
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static const struct {
	enum kind kind;
	const char *name, *label;
} kinds[] = { { MEM, "mem", "mem" },
	      { TCP, "tcp", "tcp" },
	      { SOFT, "soft", "tcp, soft provider" },
	      { DEVICE, "device", "device" } };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int detail_fd = STDOUT_FILENO;

void fail_at(const char *file, int line, const char *fmt, ...)
{
	char text[DETAIL];
	int n = snprintf(text, sizeof(text), "# %s:%d: ", file, line);
	va_list args;

	va_start(args, fmt);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 2, fmt, args);
	va_end(args);
	if (n > DETAIL - 2)
		n = DETAIL - 2;
	text[n++] = '\n';
	if (write(detail_fd, text, (size_t)n) < 0)
		_exit(2);
	_exit(1);
}

/* --- one case ----------------------------------------------------------------------------- */

static void run_here(const struct row *row, enum kind kind, unsigned int without)
{
	static struct world w;

	w = (struct world){ .kind = kind, .arg = row->arg, .without = without };
	row->run(&w);
	world_close(&w);
}

static bool judge(int status, char *detail, size_t have)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	if (WIFSIGNALED(status))
		snprintf(detail + have, DETAIL - have, "# died by signal %d%s\n", WTERMSIG(status),
			 WTERMSIG(status) == SIGALRM ? ": took too long" : "");
	else if (!have)
		snprintf(detail, DETAIL, "# exit status %d\n", WEXITSTATUS(status));
	return false;
}

static bool run_case(const struct row *row, enum kind kind, unsigned int without,
		     char detail[DETAIL])
{
	int fds[2], status;
	ssize_t n;
	size_t have = 0;
	pid_t pid;

	fflush(stdout);
	if (pipe(fds))
		return false;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		detail_fd = fds[1];
		alarm(kind == DEVICE ? DEVICE_LIMIT_S : LIMIT_S);
		run_here(row, kind, without);
		exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], detail + have, DETAIL - 1 - have)) > 0)
		have += (size_t)n;
	detail[have] = 0;
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	return judge(status, detail, have);
}

/* --- a group ------------------------------------------------------------------------------ */

static const struct group *find(const char *name)
{
	for (size_t i = 0; i < GROUPS; i++) {
		if (!strcmp(groups[i]->name, name))
			return groups[i];
	}
	return NULL;
}

/* @part: in brackets, too, unless it is NULL */
static void print_name(const struct row *row, size_t kind, const char *part)
{
	if (row->number)
		printf("case %u (%s): %s [%s%s%s]\n", row->number, row->ref, row->text,
		       kinds[kind].label, part ? ": " : "", part ? part : "");
	else
		printf("%s: %s [%s]\n", row->ref, row->text, kinds[kind].label);
}

/* Runs the case, as the @count-th, without these parts: does it hold? */
static bool holds(const struct row *row, size_t kind, unsigned int without, unsigned int count)
{
	char detail[DETAIL] = "";
	bool held = run_case(row, kinds[kind].kind, without, detail);

	printf("%sok %u - ", held ? "" : "not ", count);
	print_name(row, kind, without ? "the rest" : NULL);
	if (!held)
		fputs(detail, stdout);
	return held;
}

/* Do the words behind file and line, or what came of a signal, begin with one of @shows? */
static bool is_as_shown(const char *detail, const char *shows)
{
	const char *words = strstr(detail, ": ");

	for (const char *end; words && *shows; shows = end + (*end == '|')) {
		end = shows + strcspn(shows, "|");
		if (!strncmp(words + 2, shows, (size_t)(end - shows)))
			return true;
	}
	return false;
}

/* The same of a case that must fail, as its departure has it */
static bool departs(const struct row *row, size_t kind, size_t i, unsigned int count)
{
	const struct departing *how;
	const struct departure *d = departure_of(row->number, i, &how);
	unsigned int without = departure_parts(row->number) & ~how->part;
	char detail[DETAIL] = "";
	bool held = run_case(row, kinds[kind].kind, without, detail);
	bool good = !held && is_as_shown(detail, how->shows);

	printf("%sok %u - departure %s: ", good ? "" : "not ", count, d->name);
	print_name(row, kind, how->part ? departure_part_text(how->part) : NULL);
	if (!held)
		fputs(detail, stdout);
	if (!good)
		printf("# %s: %s\n", held ? "it holds now" : "it should be", how->shows);
	return good;
}

/* Runs the case on this kind as often as it has parts there: how many are not as they should be? */
static unsigned int run_row(const struct row *row, size_t kind, unsigned int *count)
{
	const bool on_device = kinds[kind].kind == DEVICE;
	const unsigned int parts = on_device ? departure_parts(row->number) : 0;
	const struct departing *how;
	unsigned int failed = 0;
	size_t i;

	for (i = 0; on_device && departure_of(row->number, i, &how); i++)
		failed += !departs(row, kind, i, ++*count);
	if (!i || parts)
		failed += !holds(row, kind, parts, ++*count);
	return failed;
}

/* Is the row for this kind, in this run? */
static bool is_for(const struct row *row, enum kind kind)
{
	const struct departing *how;
	const bool on_device = getenv("CONFORMANCE_DEVICE");
	const bool asked = !departure_of(row->number, 0, &how) || how->shows;

	if (on_device != (kind == DEVICE))
		return false;
	/* the vectors are for parsers of ours */
	return row->kinds & kind && (!on_device || (row->number && asked));
}

static int run_group(const struct group *g)
{
	unsigned int count = 0, failed = 0;

	for (size_t i = 0; i < g->count; i++) {
		const struct row *row = &g->rows[i];

		for (size_t k = 0; k < KINDS; k++)
			if (is_for(row, kinds[k].kind))
				failed += run_row(row, k, &count);
		if (row->kinds != ALL && !getenv("CONFORMANCE_DEVICE"))
			printf("# case %u is not for every kind of end: %s\n", row->number,
			       row->why);
	}
	printf("1..%u\n", count);
	return failed ? 1 : 0;
}

static int run_one(const struct group *g, unsigned int number, const char *kind)
{
	for (size_t i = 0; i < g->count; i++) {
		for (size_t k = 0; k < KINDS; k++) {
			if (g->rows[i].number == number && !strcmp(kinds[k].name, kind)) {
				run_here(&g->rows[i], kinds[k].kind, 0);
				print_name(&g->rows[i], k, NULL);
				return 0;
			}
		}
	}
	return 2;
}

/* --- the list ----------------------------------------------------------------------------- */

static const struct row *rows_of(unsigned int number, unsigned int *n)
{
	const struct row *found = NULL;

	*n = 0;
	for (size_t i = 0; i < GROUPS; i++) {
		for (size_t k = 0; k < groups[i]->count; k++) {
			if (groups[i]->rows[k].number == number) {
				found = &groups[i]->rows[k];
				++*n;
			}
		}
	}
	return found;
}

static int check_list(void)
{
	const struct departing *how;
	unsigned int n, failed = 0;

	for (unsigned int number = 1; number <= CASES; number++) {
		const struct row *row = rows_of(number, &n);
		bool good = n == 1 && row->run && (row->kinds & (TCP | SOFT)) &&
			    (row->kinds == ALL || row->why) &&
			    (row->kinds & DEVICE || !departure_of(number, 0, &how));

		printf("%sok %u - case %u is there once, runs over TCP, and tells where it does "
		       "not "
		       "run\n",
		       good ? "" : "not ", number, number);
		failed += !good;
	}
	printf("1..%u\n", CASES);
	return failed ? 1 : 0;
}

/* What becomes of cases over a device, and of how many */
static struct {
	unsigned int asked, held, parted, departed, spared;
} shares;

static void count_shares(unsigned int number)
{
	const struct departing *how;
	const bool holds_whole = !departure_of(number, 0, &how);

	shares.asked++;
	if (holds_whole)
		shares.held++;
	else if (!how->shows)
		shares.spared++;
	else if (departure_parts(number))
		shares.parted++;
	else
		shares.departed++;
}

static void print_device(const struct row *row)
{
	const struct departing *how;
	const struct departure *d;

	if (!(row->kinds & DEVICE)) {
		printf(" |\n");
		return;
	}
	count_shares(row->number);
	if (!departure_of(row->number, 0, &how))
		printf("holds");
	for (size_t i = 0; (d = departure_of(row->number, i, &how)); i++)
		printf("%s%s%s%s",
		       i	   ? ", "
		       : how->part ? "holds but for: "
				   : "",
		       how->part ? departure_part_text(how->part) : "", how->part ? ": " : "",
		       d->name);
	printf(" |\n");
}

static void print_departures(void)
{
	const struct departure *d;

	printf("\n| | what siw does | where | |\n| --- | --- | --- | --- |\n");
	for (size_t i = 0; (d = departure_at(i)); i++)
		printf("| %s | %s | %s | %s |\n", d->name, d->what, d->where,
		       d->cases->shows ? "fails there" : "is not asked");
	printf("\nOf %u cases that are for a device, siw keeps to %u, and to another %u but for a "
	       "part; %u it fails,\nwhich is %u in a hundred, and %u it is not asked.\n",
	       shares.asked, shares.held, shares.parted, shares.departed,
	       (shares.departed * 100 + shares.asked / 2) / shares.asked, shares.spared);
}

static int print_table(void)
{
	unsigned int n;

	printf("| case | RFC | what must hold | ends | siw |\n| --- | --- | --- | --- | --- |\n");
	for (unsigned int number = 1; number <= CASES; number++) {
		const struct row *row = rows_of(number, &n);

		if (!row)
			return 1;
		printf("| %u | %s | %s | %s", number, row->ref, row->text,
		       row->kinds == ALL	? "all"
		       : !(row->kinds & LAYERS) ? "provider"
						: "layers");
		printf(row->why ? ": %s | " : " | ", row->why);
		print_device(row);
	}
	print_departures();
	return 0;
}

int main(int argc, char **argv)
{
	const struct group *g = argc > 1 ? find(argv[1]) : NULL;

	if (argc == 2 && !strcmp(argv[1], "list"))
		return check_list();
	if (argc == 2 && !strcmp(argv[1], "table"))
		return print_table();
	if (argc == 2 && g)
		return run_group(g);
	if (argc == 4 && g)
		return run_one(g, (unsigned int)atoi(argv[2]), argv[3]);
	fprintf(stderr, "usage: %s list | table | GROUP [CASE KIND]\n", argv[0]);
	return 2;
}
