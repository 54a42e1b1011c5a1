/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The side that pings: offers a buffer to be read, then one to be written to, and compares.
 *
 *	client                                   server
 *	"read here" (to, stag, size)  ------->
 *	                              <=======   RDMA Read
 *	                              <-------   go ahead
 *	"write here" (to, stag, size) ------->
 *	                              <=======   RDMA Write
 *	                              <-------   go ahead
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rping.h"

/*
 * Text that differs from ping to ping: its number, then letters that begin one later each time.
 */
static void fill(char *p, uint32_t size, uint32_t number)
{
	const unsigned int letters = 'z' - 'A' + 1;
	int n = snprintf(p, size, "rdma-ping-%u: ", number);

	for (uint32_t i = (uint32_t)n; i < size - 1; i++)
		p[i] = (char)('A' + (number + i - (uint32_t)n) % letters);
	p[size - 1] = 0;
}

static int ping(struct rping_side *s, uint32_t number)
{
	struct rping_info ahead;
	int ret;

	fill(s->ping, s->size, number);
	memset(s->data, 0, s->size);
	ret = rping_side_tell(s, s->ping, s->ping_mr, s->size);
	if (!ret)
		ret = rping_side_hear(s, &ahead);
	if (!ret)
		ret = rping_side_tell(s, s->data, s->data_mr, s->size);
	if (!ret)
		ret = rping_side_hear(s, &ahead);
	if (ret)
		return ret;
	if (s->opt->validate && memcmp(s->ping, s->data, s->size))
		return -EBADMSG;
	if (s->opt->verbose)
		printf("ping data: %s\n", s->data);
	return 0;
}

static int ping_all(struct rping_side *s)
{
	for (uint32_t i = 0; !s->opt->count || i < s->opt->count; i++) {
		int ret = ping(s, i);

		if (ret == -EBADMSG)
			fprintf(stderr, "warp-rping: ping %u came back as something else\n", i);
		if (ret)
			return ret;
	}
	return 0;
}

int rping_client_run(const struct rping_options *opt, struct warp_device *dev)
{
	const struct sockaddr_storage *source = opt->source_host ? &opt->source : NULL;
	struct warp_conn_param param;
	struct rping_side s;
	int ret = rping_side_open(&s, opt, dev, opt->size ? opt->size : RPING_SIZE);

	if (ret) {
		endpoint_complain(NULL, "no resources", ret);
		return 1;
	}
	param = rping_side_param(&s);
	ret = endpoint_connect(&s.ep, &opt->addr, source, &param);
	if (ret) {
		endpoint_complain(&s.ep, "connect", ret);
	} else {
		ret = ping_all(&s);
		if (ret && !endpoint_stopped())
			endpoint_complain(&s.ep, "ping", ret);
		else
			ret = endpoint_finish(&s.ep);
	}
	rping_side_close(&s);
	return ret ? 1 : 0;
}
