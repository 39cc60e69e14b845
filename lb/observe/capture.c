/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "lcore/lcore.h"
#include "observe/capture_writer.h"
#include "observe/stats.h"

/* Bytes of all rings together, and of one at most; powers of two. */
#define RINGS_MAX (32u << 20)
#define RING_MAX  (8u << 20)

/* The lcores' part of a capture: freed when none is in a callback any more. */
struct taps {
	struct capture_filter *filter; /* NULL: all packets */
	struct capture_tap *tap;       /* one per lcore that has a queue of the port */
	unsigned int n;
};

struct capture {
	struct capture_params params;
	uint32_t id;
	enum capture_state state;
	uint32_t since_ms; /* when it began; until then, when it was asked for */
	pid_t reader;      /* the process with the socket's other end; 0: not known */
	const struct port *port;
	struct taps taps;
	struct capture_writer writer;
	bool writing; /* there is a thread to join */
	bool done;
	uint64_t filtered, dropped; /* of taps that were freed */
};

static const char *const states[CAPTURE_STATES] = {
#define ROW(symbol, name) [CAPTURE_##symbol] = name,
	CAPTURE_STATE_LIST(ROW)
#undef ROW
};

const char *lb_capture_state_name(enum capture_state state)
{
	return (unsigned int)state < CAPTURE_STATES ? states[state] : "unknown";
}

static bool is_over(const struct capture *c)
{
	return c->state > CAPTURE_RUNNING;
}

/* --- making one ------------------------------------------------------------------------------ */

static int capture_find_port(const struct lb *lb, const char *name, char *error, size_t size)
{
	char names[256] = "";
	size_t at = 0;

	for (unsigned int i = 0; i < lb->config.n_ports; i++) {
		if (strcmp(lb->config.port[i].name, name) == 0)
			return (int)i;
		if (at < sizeof(names))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? ", " : "", lb->config.port[i].name);
	}
	snprintf(error, size, "no port '%s'; ports are: %s", name, names);
	return -ENOENT;
}

static size_t ring_size(unsigned int n)
{
	size_t size = RING_MAX;

	while (size * n > RINGS_MAX)
		size /= 2;
	return size;
}

static int make_taps(struct capture *c, const struct lb *lb, unsigned int port)
{
	unsigned int queues = lb->port[port].queues;

	c->taps.tap =
		aligned_alloc(alignof(struct capture_tap), lb->n_lcores * sizeof(*c->taps.tap));
	if (c->taps.tap == NULL)
		return -ENOMEM;
	memset(c->taps.tap, 0, lb->n_lcores * sizeof(*c->taps.tap));
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		struct lcore *lc = lb->lcore[i];
		struct capture_tap *tap = &c->taps.tap[c->taps.n];

		if (lc->queue[port] == LCORE_NO_QUEUE)
			continue;
		if (capture_ring_init(&tap->ring, ring_size(queues)) < 0)
			return -ENOMEM;
		tap->filter = c->taps.filter;
		tap->snaplen = c->params.snaplen;
		tap->queue = lc->queue[port];
		tap->tx = &lc->tx[port];
		c->taps.n++;
	}
	return 0;
}

/* DPDK took the callbacks off its lists and left their memory to us. */
static void free_taps(void *what)
{
	struct taps *taps = what;

	for (unsigned int i = 0; i < taps->n; i++) {
		rte_free((void *)(uintptr_t)taps->tap[i].in);
		rte_free((void *)(uintptr_t)taps->tap[i].out);
		capture_ring_fini(&taps->tap[i].ring);
	}
	free(taps->tap);
	capture_filter_destroy(taps->filter);
	free(taps);
}

/* The capture is over: count what the taps have counted, and free them when no lcore uses them. */
static void drop_taps(struct lb *lb, struct capture *c)
{
	struct taps *taps = malloc(sizeof(*taps));

	for (unsigned int i = 0; i < c->taps.n; i++) {
		c->filtered += __atomic_load_n(&c->taps.tap[i].filtered, __ATOMIC_RELAXED);
		c->dropped += __atomic_load_n(&c->taps.tap[i].dropped, __ATOMIC_RELAXED);
	}
	if (taps != NULL) {
		*taps = c->taps;
		lcores_free_later(lb, free_taps, taps);
		lcores_settle(lb);
	}
	c->taps = (struct taps){0};
}

static int capture_make(struct capture *c, const struct lb *lb, char *error, size_t size)
{
	int port = capture_find_port(lb, c->params.port, error, size);

	if (port < 0)
		return port;
	if (lb->config.port[port].verbs) {
		snprintf(error, size,
			 "port %s is an RDMA device, whose packets this host cannot see; capture "
			 "on the switch, or on the other side",
			 c->params.port);
		return -ENOTSUP;
	}
	c->port = &lb->port[port];
	if (c->params.program[0] != '\0') {
		char reason[160];

		c->taps.filter = capture_filter_create(c->params.program, reason, sizeof(reason));
		if (c->taps.filter == NULL) {
			snprintf(error, size, "filter: %s", reason);
			return -EINVAL;
		}
	}
	if (make_taps(c, lb, (unsigned int)port) < 0) {
		snprintf(error, size, "no memory for a capture");
		return -ENOMEM;
	}
	c->writer.interface = (struct pcapng_interface){
		.name = lb->config.port[port].name,
		.description = lb->config.port[port].device,
		.filter = c->params.filter[0] != '\0' ? c->params.filter : NULL,
		.mac = c->port->mac,
		.snaplen = c->params.snaplen,
	};
	return 0;
}

static int check_no_other(const struct lb *lb, char *error, size_t size)
{
	const struct capture *c = lb->capture;
	char reader[32] = "";

	if (c == NULL || c->done)
		return 0;
	if (c->reader > 0)
		snprintf(reader, sizeof(reader), " by process %d", (int)c->reader);
	snprintf(error, size,
		 "port %s is being captured to %s%s, for %u s now; only one capture runs at a "
		 "time: end that one first",
		 c->params.port, c->params.file, reader, (lb_now_ms(lb) - c->since_ms) / 1000);
	return -EBUSY;
}

int lb_capture_start(struct lb *lb, const struct capture_params *params, uint32_t *id, char *error,
		     size_t size)
{
	int ret = check_no_other(lb, error, size);
	struct capture *c;

	if (ret == 0)
		ret = lcores_check(lb, error, size);
	if (ret < 0)
		return ret;
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		snprintf(error, size, "no memory for a capture");
		return -ENOMEM;
	}
	c->params = *params;
	ret = capture_make(c, lb, error, size);
	if (ret < 0) {
		drop_taps(lb, c);
		free(c);
		return ret;
	}
	c->id = *id = ++lb->capture_id;
	c->since_ms = lb_now_ms(lb);
	free(lb->capture); /* it is done */
	lb->capture = c;
	return 0;
}

/* --- beginning and ending -------------------------------------------------------------------- */

static void capture_attach(struct capture *c)
{
	for (unsigned int i = 0; i < c->taps.n; i++) {
		struct capture_tap *tap = &c->taps.tap[i];
		struct port_queue q = port_queue(c->port, tap->queue);

		if (c->params.directions & CAPTURE_IN)
			tap->in = rte_eth_add_rx_callback(q.id, q.queue, capture_tap_in, tap);
		if (c->params.directions & CAPTURE_OUT)
			tap->out = rte_eth_add_tx_callback(q.id, q.queue, capture_tap_out, tap);
	}
}

static void capture_detach(struct lb *lb, struct capture *c)
{
	for (unsigned int i = 0; i < c->taps.n; i++) {
		struct port_queue q = port_queue(c->port, c->taps.tap[i].queue);

		if (c->taps.tap[i].in != NULL)
			rte_eth_remove_rx_callback(q.id, q.queue, c->taps.tap[i].in);
		if (c->taps.tap[i].out != NULL)
			rte_eth_remove_tx_callback(q.id, q.queue, c->taps.tap[i].out);
	}
	/* From the next poll on no lcore runs a callback. What one copies that stands still now,
	 * and goes on later, is not in the file. */
	lcores_pass(lb);
}

static bool is_attached(const struct capture *c)
{
	for (unsigned int i = 0; i < c->taps.n; i++)
		if ((c->params.directions & CAPTURE_IN && c->taps.tap[i].in == NULL) ||
		    (c->params.directions & CAPTURE_OUT && c->taps.tap[i].out == NULL))
			return false;
	return true;
}

static int capture_begin(struct lb *lb, struct capture *c, int fd)
{
	int ret;

	capture_attach(c);
	c->writer.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	c->writer.tap = c->taps.tap;
	c->writer.n_taps = c->taps.n;
	c->writer.count = c->params.count;
	c->writer.tsc_per_ms = lb->tsc_per_ms;
	ret = !is_attached(c) ? -ENOMEM : c->writer.fd < 0 ? -errno : 0;
	if (ret == 0)
		ret = capture_writer_start(&c->writer);
	if (ret < 0) {
		capture_detach(lb, c);
		if (c->writer.fd >= 0)
			close(c->writer.fd);
		return ret;
	}
	c->writing = true;
	c->state = CAPTURE_RUNNING;
	c->since_ms = lb_now_ms(lb);
	return 0;
}

/* The lcores stop at once, the thread once it has written what they copied. */
static void capture_end(struct lb *lb, struct capture *c, enum capture_state why)
{
	if (is_over(c))
		return;
	if (c->state == CAPTURE_RUNNING)
		capture_detach(lb, c);
	c->state = why;
	if (c->writing) {
		capture_writer_end(&c->writer);
		return;
	}
	drop_taps(lb, c);
	c->done = true;
}

static void capture_reap(struct lb *lb, struct capture *c)
{
	capture_writer_join(&c->writer);
	c->writing = false;
	drop_taps(lb, c);
	c->done = true;
	LB_LOG(NOTICE,
	       "event=capture_ended port=%s captured=%" PRIu64 " dropped=%" PRIu64 " reason=%s",
	       c->params.port, c->writer.packets, c->dropped, states[c->state]);
}

int lb_capture_begin(struct lb *lb, uint32_t id, int fd)
{
	struct capture *c = lb->capture;
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	int ret;

	if (c == NULL || c->id != id || c->state != CAPTURE_WAITING)
		return -ENOENT;
	ret = capture_begin(lb, c, fd);
	if (ret < 0) {
		LB_LOG(ERR, "event=capture_failed port=%s reason=\"%s\"", c->params.port,
		       strerror(-ret));
		capture_end(lb, c, CAPTURE_DISCONNECTED);
		return ret;
	}
	/* Log which process sees clients' data. The process id precedes the text that the process
	 * chose, because that text could imitate an id. */
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	c->reader = peer.pid;
	LB_LOG(NOTICE, "event=capture_started port=%s pid=%d uid=%d file=\"%s\" filter=\"%s\"",
	       c->params.port, (int)peer.pid, (int)peer.uid, c->params.file, c->params.filter);
	return 0;
}

void capture_tick(struct lb *lb)
{
	struct capture *c = lb->capture;
	uint32_t age_ms;

	if (c == NULL || c->done)
		return;
	age_ms = lb_now_ms(lb) - c->since_ms;
	if (__atomic_load_n(&c->writer.failed, __ATOMIC_ACQUIRE))
		capture_end(lb, c, CAPTURE_DISCONNECTED);
	else if (__atomic_load_n(&c->writer.full, __ATOMIC_ACQUIRE))
		capture_end(lb, c, CAPTURE_COUNT);
	else if (c->state == CAPTURE_RUNNING && c->params.seconds > 0 &&
		 age_ms / 1000 >= c->params.seconds)
		capture_end(lb, c, CAPTURE_TIME);
	else if (c->state == CAPTURE_WAITING && age_ms >= LB_CAPTURE_WAIT_MS)
		capture_end(lb, c, CAPTURE_DISCONNECTED);
	if (c->writing && __atomic_load_n(&c->writer.done, __ATOMIC_ACQUIRE))
		capture_reap(lb, c);
}

void lb_capture_stop(struct lb *lb, uint32_t id)
{
	if (lb->capture != NULL && lb->capture->id == id)
		capture_end(lb, lb->capture, CAPTURE_STOPPED);
}

int lb_capture_read(const struct lb *lb, uint32_t id, struct capture_status *out)
{
	const struct capture *c = lb->capture;

	if (c == NULL || c->id != id)
		return -ENOENT;
	*out = (struct capture_status){
		.state = c->state,
		.done = c->done,
		.captured = __atomic_load_n(&c->writer.packets, __ATOMIC_RELAXED),
		.bytes = __atomic_load_n(&c->writer.bytes, __ATOMIC_RELAXED),
		.filtered = c->filtered,
		.dropped = c->dropped,
	};
	for (unsigned int i = 0; i < c->taps.n; i++) {
		out->filtered += __atomic_load_n(&c->taps.tap[i].filtered, __ATOMIC_RELAXED);
		out->dropped += __atomic_load_n(&c->taps.tap[i].dropped, __ATOMIC_RELAXED);
	}
	return 0;
}

void capture_destroy(struct lb *lb)
{
	struct capture *c = lb->capture;

	if (c == NULL)
		return;
	capture_end(lb, c, CAPTURE_STOPPED);
	if (c->writing)
		capture_reap(lb, c);
	drop_taps(lb, c);
	free(c);
	lb->capture = NULL;
}
