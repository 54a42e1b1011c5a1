/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Client and server of Active RDMA in two processes over loopback: quotas, deadlines, an endless
 * loop beside other clients, many clients, and the end of either process at any moment.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/active/world.h"
#include "tests/tap.h"

#define CALL(...) (&(const struct world_call){ __VA_ARGS__ })

static bool ok(const struct warp_active_result *r, uint64_t value)
{
	if (r->code == WARP_ACTIVE_OK && r->value == value)
		return true;
	printf("# code %d, value %llu: %s\n", r->code, (unsigned long long)r->value, r->text);
	return false;
}

static bool code(const struct warp_active_result *r, enum warp_active_code wanted, const char *text)
{
	if (r->code == wanted && strstr(r->text, text))
		return true;
	printf("# code %d, wanted %d: %s\n", r->code, wanted, r->text);
	return false;
}

static bool no_client(const struct warp_active_stats *stats)
{
	return !stats->clients;
}

static bool one_client(const struct warp_active_stats *stats)
{
	return stats->clients == 1;
}

/* --- what a client may have --------------------------------------------------------------- */

static bool rights(void)
{
	struct warp_active_client *reader, *all;
	struct warp_active_result r;
	uint64_t table, number = 9;
	struct world w;
	bool good;

	world_spawn(&w, NULL);
	all = world_client(&w);
	good = !world_connect(&w, "reader", &reader) &&
	       world_connect(&w, "no", &reader) == -ECONNREFUSED;
	table = world_region(reader, 0).addr;
	r = world_run(&w, all, CALL("poke", { table, 77 }, 2, 1));
	good = good && ok(&r, 0);
	r = world_run(&w, reader, CALL("peek", { table }, 1, 1, WARP_ACTIVE_READ));
	good = good && ok(&r, 77);
	r = world_run(&w, reader, CALL("poke", { table, 1 }, 2, 1));
	good = good && code(&r, WARP_ACTIVE_RIGHTS, "does not have the rights");
	r = world_run(&w, reader, CALL("poke", { table, 1 }, 2, 1, WARP_ACTIVE_READ));
	good = good && code(&r, WARP_ACTIVE_RIGHTS, "write of 8 bytes");
	r = world_run(&w, all, CALL("peek", { table }, 1));
	good = good && code(&r, WARP_ACTIVE_ADDRESS, "read of 8 bytes");
	good = good && !world_access(reader, WARP_ACTIVE_OP_READ, 0, 0, &number, 8) && number == 77;
	/* the server keeps a client from what the client's own library would refuse */
	good = good && world_access(reader, WARP_ACTIVE_OP_WRITE, 0, 0, &number, 8) == -EACCES;
	warp_active_disconnect(reader);
	warp_active_disconnect(all);
	world_close(&w);
	return good;
}

/* More clients than there may be, and then again */
static bool clients_most(void)
{
	const struct warp_active_server_attr attr = { .clients = 3 };
	struct warp_active_client *c[3], *more = NULL;
	struct world w;
	bool good;

	world_spawn(&w, &attr);
	for (int i = 0; i < 3; i++)
		c[i] = world_client(&w);
	good = world_connect(&w, NULL, &more) == -ECONNREFUSED && world_stats(&w).clients == 3;
	for (int i = 0; i < 3; i++)
		warp_active_disconnect(c[i]);
	good = good && world_until(&w, no_client, 5000) && !world_connect(&w, NULL, &more);
	warp_active_disconnect(more);
	world_close(&w);
	return good;
}

/*
 * Two at once and two that wait: the others are told so, at once; one or two more if the first ones
 * have not begun yet
 */
static bool queue_full(void)
{
	const struct warp_active_server_attr attr = { .at_once = 2, .queue = 2, .workers = 1 };
	struct warp_active_request *r[10];
	struct warp_active_client *c;
	struct warp_active_result result;
	int busy = 0, late = 0;
	struct world w;

	world_spawn(&w, &attr);
	c = world_client(&w);
	world_run(&w, c, CALL("sum"));
	for (int i = 0; i < 10; i++) {
		static const struct world_call spin = { "spin", .timeout_us = 200000 };

		r[i] = world_start(&w, c, &spin);
	}
	for (int i = 0; i < 10; i++) {
		result = world_wait(r[i]);
		busy += code(&result, result.code, "queue is full");
		late += result.code == WARP_ACTIVE_FUEL;
	}
	warp_active_disconnect(c);
	world_close(&w);
	printf("# %d busy, %d late\n", busy, late);
	return busy >= 6 && busy <= 8 && busy + late == 10;
}

/*
 * Behind a run that has the only worker: @second, which may be cancelled, ends with @wanted before
 * it began; the first one ends with its own time
 */
static bool second_in_the_queue(const struct world_call *second, bool cancelled,
				enum warp_active_code wanted, double least)
{
	const struct warp_active_server_attr attr = { .at_once = 1, .workers = 1 };
	static const struct world_call spin = { "spin", .timeout_us = 500000 };
	struct warp_active_request *r[2];
	struct warp_active_client *c;
	struct warp_active_result result;
	double begin, took;
	struct world w;
	bool good;

	world_spawn(&w, &attr);
	c = world_client(&w);
	world_run(&w, c, CALL("sum"));
	begin = world_now();
	r[0] = world_start(&w, c, &spin);
	r[1] = world_start(&w, c, second);
	if (cancelled)
		warp_active_cancel(r[1]);
	result = world_wait(r[1]);
	took = world_now() - begin;
	good = code(&result, wanted, "before it began") && took > least && took < 0.4;
	result = world_wait(r[0]);
	good = good && code(&result, WARP_ACTIVE_FUEL, "the time is used up") &&
	       world_now() - begin > 0.45;
	warp_active_disconnect(c);
	world_close(&w);
	return good;
}

static bool deadline_in_the_queue(void)
{
	return second_in_the_queue(CALL("sum", .timeout_us = 50000), false, WARP_ACTIVE_FUEL,
				   0.045);
}

/* One that waits is given up at once, and not when its turn comes */
static bool cancel_in_the_queue(void)
{
	return second_in_the_queue(CALL("spin", .timeout_us = 800000), true, WARP_ACTIVE_CANCELLED,
				   0);
}

/* The server's own limits, whatever the client asks for: what is said, and the fuel, if not 0 */
static bool limit_of_the_server(const struct warp_active_server_attr *attr, const char *text,
				uint64_t fuel)
{
	struct warp_active_result r;
	struct warp_active_client *c;
	struct world w;
	double begin;
	bool good;

	world_spawn(&w, attr);
	c = world_client(&w);
	begin = world_now();
	r = world_run(&w, c, CALL("spin", .fuel = 1ull << 60));
	good = code(&r, WARP_ACTIVE_FUEL, text) && world_now() - begin < 2 &&
	       (!fuel || r.fuel == fuel);
	warp_active_disconnect(c);
	world_close(&w);
	return good;
}

static bool limits_of_the_server(void)
{
	const struct warp_active_server_attr attr = { .fuel = 50000, .time_ms = 100 };

	return limit_of_the_server(&attr, "the fuel is used up", 50000);
}

static bool time_of_the_server(void)
{
	const struct warp_active_server_attr attr = { .time_ms = 100 };

	return limit_of_the_server(&attr, "the time is used up", 0);
}

static bool heap_most(void)
{
	const struct warp_active_server_attr attr = { .heap_max = 1000 };
	struct warp_active_client *c[2];
	struct warp_active_result r;
	int got[2] = { 0 };
	struct world w;
	bool good;

	world_spawn(&w, &attr);
	for (int i = 0; i < 2; i++) {
		c[i] = world_client(&w);
		while (world_run(&w, c[i], CALL("push", { 1 }, 1, WORLD_HEAP + 1)).value)
			got[i]++;
	}
	r = world_run(&w, c[0], CALL("clear", { 0 }, 0, WORLD_HEAP + 1));
	good = got[0] == 15 && got[1] == 15 && ok(&r, 30) && !world_stats(&w).heap_bytes;
	/* what was given back can be had again */
	r = world_run(&w, c[0], CALL("take", { 0, 900 }, 2, WORLD_HEAP + 1));
	good = good && !r.value; /* a block of 1,024 */
	r = world_run(&w, c[0], CALL("take", { 0, 512 }, 2, WORLD_HEAP + 1));
	good = good && r.value;
	for (int i = 0; i < 2; i++)
		warp_active_disconnect(c[i]);
	world_close(&w);
	return good;
}

/* --- objects ------------------------------------------------------------------------------ */

static struct warp_active_object *object_variant(unsigned int number)
{
	static uint8_t *bytes;
	static size_t len;
	struct warp_active_object *object;

	if (!bytes)
		bytes = world_file("active.object", &len);
	memcpy(bytes + len, &number, sizeof(number));
	if (warp_active_object_create(bytes, len + sizeof(number), &object))
		abort();
	return object;
}

/* Others each time, far more than the server keeps; the first is forgotten and sent again */
static bool objects_of_many(void)
{
	enum { OBJECTS = 600, MOST = 1 << 20 };
	const struct warp_active_server_attr attr = { .cache = MOST };
	struct warp_active_stats stats;
	struct warp_active_client *c;
	struct world w;
	bool good = true;

	world_spawn(&w, &attr);
	c = world_client(&w);
	for (unsigned int i = 0; i <= OBJECTS && good; i++) {
		struct warp_active_object *object = object_variant(i % OBJECTS);
		const struct warp_active_run run = { .object = object, .function = "sum" };
		struct warp_active_result r;

		good = !warp_active_run(c, &run, &r) && ok(&r, 0);
		warp_active_object_destroy(object);
	}
	stats = world_stats(&w);
	printf("# %zu objects of %zu bytes are kept\n", stats.objects, stats.object_bytes);
	good = good && stats.loads == OBJECTS + 1 && stats.object_bytes <= MOST &&
	       stats.objects > 5;
	warp_active_disconnect(c);
	world_close(&w);
	return good;
}

static bool refused_object(void)
{
	size_t len;
	void *bytes = world_file("refused.object", &len);
	struct warp_active_run run = { 0 };
	struct warp_active_object *object;
	struct warp_active_result r;
	struct warp_active_client *c;
	struct world w;
	bool good;

	world_spawn(&w, NULL);
	c = world_client(&w);
	good = !warp_active_object_create(bytes, len, &object);
	run.object = object;
	good = good && !warp_active_run(c, &run, &r) &&
	       code(&r, WARP_ACTIVE_REFUSED, "refused.bpf.c:9");
	warp_active_object_destroy(object);
	free(bytes);
	warp_active_disconnect(c);
	world_close(&w);
	return good;
}

static bool output_most(void)
{
	static uint8_t output[65536];
	struct warp_active_run run = { .function = "flood", .output = output };
	struct warp_active_client *c;
	struct warp_active_result r;
	struct world w;
	bool good;

	world_spawn(&w, NULL);
	c = world_client(&w);
	run.object = w.object;
	run.output_room = sizeof(output);
	good = !warp_active_run(c, &run, &r) && ok(&r, 655) && r.output == 65500 &&
	       output[65499] == 'x' && !output[65500];
	memset(output, 0, sizeof(output));
	run.output_room = 399;
	good = good && !warp_active_run(c, &run, &r) && ok(&r, 3) && r.output == 300 &&
	       !output[300];
	run.output_room = sizeof(output) + 1;
	good = good && warp_active_run(c, &run, &r) == -EINVAL;
	warp_active_disconnect(c);
	world_close(&w);
	return good;
}

/* --- many, and one that is in the way ----------------------------------------------------- */

struct crew {
	struct world *w;
	bool good;
};

static void *crew_member(void *arg)
{
	struct crew *crew = arg;
	struct warp_active_client *c = world_client(crew->w);
	uint64_t table = world_region(c, WORLD_TABLE).addr;

	for (int i = 0; i < 100; i++) {
		struct warp_active_result r =
			world_run(crew->w, c, CALL("add", { table, 1 }, 2, 1));

		if (r.code != WARP_ACTIVE_OK)
			__atomic_store_n(&crew->good, false, __ATOMIC_RELAXED);
	}
	warp_active_disconnect(c);
	return NULL;
}

static bool many_clients(void)
{
	enum { CLIENTS = 20 };
	pthread_t threads[CLIENTS];
	struct warp_active_client *c;
	struct warp_active_result r;
	struct crew crew;
	struct world w;

	world_spawn(&w, NULL);
	crew = (struct crew){ &w, true };
	for (int i = 0; i < CLIENTS; i++)
		if (pthread_create(&threads[i], NULL, crew_member, &crew))
			abort();
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	c = world_client(&w);
	r = world_run(&w, c, CALL("peek", { world_region(c, 0).addr }, 1, 1));
	crew.good = crew.good && ok(&r, CLIENTS * 100) && world_until(&w, one_client, 5000);
	warp_active_disconnect(c);
	world_close(&w);
	return crew.good;
}

static struct warp_active_client *shared;

static void *shared_user(void *arg)
{
	struct crew *crew = arg;

	for (uint64_t i = 0; i < 300; i++) {
		struct warp_active_result r = world_run(crew->w, shared, CALL("steps", { i }, 1));

		if (r.code != WARP_ACTIVE_OK || r.value != i)
			__atomic_store_n(&crew->good, false, __ATOMIC_RELAXED);
	}
	return NULL;
}

static bool many_threads(void)
{
	enum { THREADS = 16 };
	pthread_t threads[THREADS];
	struct crew crew;
	struct world w;

	world_spawn(&w, NULL);
	shared = world_client(&w);
	crew = (struct crew){ &w, true };
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, shared_user, &crew))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	crew.good = crew.good && world_stats(&w).loads == 1 &&
		    world_stats(&w).runs >= THREADS * 300;
	warp_active_disconnect(shared);
	world_close(&w);
	return crew.good;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

enum { SAMPLES = 1500 };

/* The median of so many round trips, a short pause between them, in microseconds */
static double round_trip(struct world *w, struct warp_active_client *c, double *most)
{
	static double took[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		double begin = world_now();

		world_run(w, c, CALL("sum", { 1 }, 1));
		took[i] = (world_now() - begin) * 1e6;
		usleep(300);
	}
	qsort(took, SAMPLES, sizeof(*took), by_size);
	*most = took[SAMPLES * 95 / 100];
	return took[SAMPLES / 2];
}

/*
 * A client that keeps as many endless loops under way as it may. The processor is busy then, which
 * others of the host notice whoever makes it so; so the comparison is with a process that loops
 * beside the server, at the same priority as the server's workers.
 */
static bool endless_loop(void)
{
	static const struct world_call spin = { "spin", .timeout_us = 8000000 };
	struct warp_active_client *c, *bad;
	struct warp_active_request *r[16];
	double quiet, beside, quiet_most, beside_most;
	pid_t hogs[2];
	struct world w;

	world_spawn(&w, NULL);
	c = world_client(&w);
	bad = world_client(&w);
	world_run(&w, c, CALL("sum"));
	for (int i = 0; i < 2; i++) {
		hogs[i] = fork();
		if (!hogs[i]) {
			if (nice(10) == -1)
				_exit(1);
			for (;;)
				__asm__ volatile("");
		}
	}
	quiet = round_trip(&w, c, &quiet_most);
	for (int i = 0; i < 2; i++) {
		kill(hogs[i], SIGKILL);
		waitpid(hogs[i], NULL, 0);
	}
	for (int i = 0; i < 16; i++)
		r[i] = world_start(&w, bad, &spin);
	usleep(20000);
	beside = round_trip(&w, c, &beside_most);
	for (int i = 0; i < 16; i++)
		warp_active_drop(r[i]);
	printf("# median %.1f us beside busy processes, %.1f beside endless loops; of 95 in 100: "
	       "%.0f, %.0f\n",
	       quiet, beside, quiet_most, beside_most);
	warp_active_disconnect(bad);
	warp_active_disconnect(c);
	world_close(&w);
	return beside < quiet * 1.5 + 20;
}

/* Two that loop share what there is, whoever has more of them */
static bool fair(void)
{
	const struct warp_active_server_attr attr = { .workers = 1, .at_once = 16 };
	static const struct world_call spin = { "spin", .timeout_us = 1000000 };
	struct warp_active_client *greedy, *modest;
	struct warp_active_request *r[15], *other;
	uint64_t greedy_fuel = 0, modest_fuel;
	struct world w;

	world_spawn(&w, &attr);
	greedy = world_client(&w);
	modest = world_client(&w);
	world_run(&w, greedy, CALL("sum"));
	for (int i = 0; i < 15; i++)
		r[i] = world_start(&w, greedy, &spin);
	other = world_start(&w, modest, &spin);
	modest_fuel = world_wait(other).fuel;
	for (int i = 0; i < 15; i++)
		greedy_fuel += world_wait(r[i]).fuel;
	printf("# one: %llu instructions, fifteen together: %llu\n",
	       (unsigned long long)modest_fuel, (unsigned long long)greedy_fuel);
	warp_active_disconnect(greedy);
	warp_active_disconnect(modest);
	world_close(&w);
	return modest_fuel > greedy_fuel / 2 && modest_fuel < greedy_fuel * 2;
}

/* --- the end of either process ------------------------------------------------------------ */

/* A client's process that does everything at once until it is killed */
static void busy_client(struct world *w)
{
	static const struct world_call calls[] = { { "spin" },
						   { "sum" },
						   { "steps", { 100000 }, 1 },
						   { "push", { 1 }, 1, WORLD_HEAP + 1 } };
	static uint8_t page[4096];
	struct warp_active_client *c = world_client(w);

	for (unsigned int i = 0;; i++) {
		world_start(w, c, &calls[i % 4]);
		world_access(c, WARP_ACTIVE_OP_WRITE, WORLD_RAW, 0, page, sizeof(page));
		if (i % 8 == 0) {
			const struct warp_active_run run = { .object = object_variant(i),
							     .function = "sum" };
			struct warp_active_request *r;

			warp_active_start(c, &run, &r);
		}
	}
}

static bool client_killed(void)
{
	enum { TIMES = 25 };
	struct warp_active_result r;
	struct warp_active_client *c;
	struct warp_active_stats stats;
	unsigned int seed = 7;
	struct world w;
	bool good;

	world_spawn(&w, NULL);
	for (int i = 0; i < TIMES; i++) {
		pid_t pid = fork();

		if (!pid)
			busy_client(&w);
		usleep((useconds_t)(rand_r(&seed) % 60000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	good = world_until(&w, no_client, 10000);
	stats = world_stats(&w);
	good = good && !stats.waiting;
	c = world_client(&w);
	r = world_run(&w, c, CALL("sum", { 3 }, 1));
	good = good && ok(&r, 3);
	printf("# %u clients, %u waiting, %llu runs\n", stats.clients, stats.waiting,
	       (unsigned long long)stats.runs);
	warp_active_disconnect(c);
	world_close(&w);
	return good;
}

struct killer {
	pid_t pid;
	useconds_t after;
};

static void *kill_later(void *arg)
{
	const struct killer *killer = arg;

	usleep(killer->after);
	kill(killer->pid, SIGKILL);
	return NULL;
}

/* Everything that is under way ends, with the reason; what comes later is refused */
static bool server_killed_after(useconds_t after)
{
	static const struct world_call calls[] = { { "spin" },
						   { "sum" },
						   { "steps", { 300000 }, 1 },
						   { "push", { 1 }, 1, WORLD_HEAP + 1 } };
	struct warp_active_request *requests[40];
	struct warp_active_client *c;
	struct killer killer;
	pthread_t thread;
	struct world w;
	bool good = true;
	double begin;
	int n = 0, ret;

	world_spawn(&w, NULL);
	c = world_client(&w);
	killer = (struct killer){ w.pid, after };
	if (pthread_create(&thread, NULL, kill_later, &killer))
		abort();
	begin = world_now();
	for (; n < 40; n++) {
		const struct warp_active_run run = { .object = w.object,
						     .function = calls[n % 4].function,
						     .args = calls[n % 4].args,
						     .args_len = 8 };

		if (warp_active_start(c, &run, &requests[n]))
			break;
	}
	for (int i = 0; i < n; i++) {
		ret = warp_active_wait(requests[i], 10000, NULL);
		good = good && (ret == -ECONNRESET || (!ret && i % 4));
	}
	good = good && world_now() - begin < 5;
	pthread_join(thread, NULL);
	good = good && warp_active_start(c, &(const struct warp_active_run){ .object = w.object },
					 &requests[0]) == -ECONNRESET;
	good = good && !warp_active_disconnect(c);
	world_close(&w);
	return good;
}

static bool server_killed(void)
{
	unsigned int seed = 3;
	bool good = true;

	for (int i = 0; i < 15 && good; i++)
		good = server_killed_after((useconds_t)(rand_r(&seed) % 40000));
	return good;
}

int main(int argc, char **argv)
{
	world_main(argc, argv);
	tap_case(rights(), "rights");
	tap_case(clients_most(), "more clients than there may be");
	tap_case(queue_full(), "more requests than may wait");
	tap_case(deadline_in_the_queue(), "a deadline passes in the queue");
	tap_case(cancel_in_the_queue(), "a run that waits is cancelled");
	tap_case(limits_of_the_server(), "the server's limit of fuel");
	tap_case(time_of_the_server(), "the server's limit of time");
	tap_case(heap_most(), "a client's limit of memory");
	tap_case(objects_of_many(), "objects do not fill memory");
	tap_case(refused_object(), "the verifier's message has the line");
	tap_case(output_most(), "output has a limit");
	tap_case(many_clients(), "many clients at once");
	tap_case(many_threads(), "one client of many threads");
	tap_case(fair(), "clients share the workers");
	/* other work on this machine may come between */
	tap_case(endless_loop() || endless_loop() || endless_loop(), "endless loops beside another "
								     "client");
	tap_case(client_killed(), "clients are killed at any moment");
	tap_case(server_killed(), "servers are killed at any moment");
	return tap_finish();
}
