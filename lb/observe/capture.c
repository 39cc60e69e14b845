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

struct capture {
	struct capture_params params;
	uint32_t id;
	enum capture_state state;
	uint32_t since_ms; /* when it began; until then, when it was asked for */
	pid_t reader;      /* the process with the socket's other end; 0: not known */
	const struct port *port;
	struct capture_filter *filter; /* NULL: all packets */
	struct capture_tap *tap;       /* one per lcore that has a queue of the port */
	unsigned int n_taps;
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

	c->tap = aligned_alloc(alignof(struct capture_tap), lb->n_lcores * sizeof(*c->tap));
	if (c->tap == NULL)
		return -ENOMEM;
	memset(c->tap, 0, lb->n_lcores * sizeof(*c->tap));
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		struct lcore *lc = lb->lcore[i];
		struct capture_tap *tap = &c->tap[c->n_taps];

		if (lc->queue[port] == LCORE_NO_QUEUE)
			continue;
		if (capture_ring_init(&tap->ring, ring_size(queues)) < 0)
			return -ENOMEM;
		tap->filter = c->filter;
		tap->snaplen = c->params.snaplen;
		tap->queue = lc->queue[port];
		tap->tx = &lc->tx[port];
		c->n_taps++;
	}
	return 0;
}

static void free_taps(struct capture *c)
{
	for (unsigned int i = 0; i < c->n_taps; i++) {
		c->filtered += c->tap[i].filtered;
		c->dropped += c->tap[i].dropped;
		capture_ring_fini(&c->tap[i].ring);
	}
	free(c->tap);
	c->tap = NULL;
	c->n_taps = 0;
	capture_filter_destroy(c->filter);
	c->filter = NULL;
}

static void capture_free(struct capture *c)
{
	if (c == NULL)
		return;
	free_taps(c);
	free(c);
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

		c->filter = capture_filter_create(c->params.program, reason, sizeof(reason));
		if (c->filter == NULL) {
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
		capture_free(c);
		return ret;
	}
	c->id = *id = ++lb->capture_id;
	c->since_ms = lb_now_ms(lb);
	capture_free(lb->capture);
	lb->capture = c;
	return 0;
}

/* --- beginning and ending -------------------------------------------------------------------- */

static void capture_attach(struct capture *c)
{
	for (unsigned int i = 0; i < c->n_taps; i++) {
		struct capture_tap *tap = &c->tap[i];
		struct port_queue q = port_queue(c->port, tap->queue);

		if (c->params.directions & CAPTURE_IN)
			tap->in = rte_eth_add_rx_callback(q.id, q.queue, capture_tap_in, tap);
		if (c->params.directions & CAPTURE_OUT)
			tap->out = rte_eth_add_tx_callback(q.id, q.queue, capture_tap_out, tap);
	}
}

/* DPDK takes the callbacks off its lists and leaves their memory to us. */
static void capture_detach(struct lb *lb, struct capture *c)
{
	for (unsigned int i = 0; i < c->n_taps; i++) {
		struct port_queue q = port_queue(c->port, c->tap[i].queue);

		if (c->tap[i].in != NULL)
			rte_eth_remove_rx_callback(q.id, q.queue, c->tap[i].in);
		if (c->tap[i].out != NULL)
			rte_eth_remove_tx_callback(q.id, q.queue, c->tap[i].out);
	}
	/* Wait until each lcore has begun another poll: from then on no lcore runs a callback. */
	rte_rcu_qsbr_synchronize(lb->qsbr, RTE_QSBR_THRID_INVALID);
	for (unsigned int i = 0; i < c->n_taps; i++) {
		rte_free((void *)(uintptr_t)c->tap[i].in);
		rte_free((void *)(uintptr_t)c->tap[i].out);
		c->tap[i].in = c->tap[i].out = NULL;
	}
}

static bool is_attached(const struct capture *c)
{
	for (unsigned int i = 0; i < c->n_taps; i++)
		if ((c->params.directions & CAPTURE_IN && c->tap[i].in == NULL) ||
		    (c->params.directions & CAPTURE_OUT && c->tap[i].out == NULL))
			return false;
	return true;
}

static int capture_begin(struct lb *lb, struct capture *c, int fd)
{
	int ret;

	capture_attach(c);
	c->writer.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	c->writer.tap = c->tap;
	c->writer.n_taps = c->n_taps;
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
	free_taps(c);
	c->done = true;
}

static void capture_reap(struct capture *c)
{
	capture_writer_join(&c->writer);
	c->writing = false;
	free_taps(c);
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
		capture_reap(c);
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
	for (unsigned int i = 0; i < c->n_taps; i++) {
		out->filtered += __atomic_load_n(&c->tap[i].filtered, __ATOMIC_RELAXED);
		out->dropped += __atomic_load_n(&c->tap[i].dropped, __ATOMIC_RELAXED);
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
		capture_reap(c);
	capture_free(c);
	lb->capture = NULL;
}
