/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include <rte_ethdev.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "seen.h"
#include "walk/loop.h"

/* --- pools --------------------------------------------------------------------------------------
 */

struct stack {
	pthread_mutex_t lock;
	unsigned int n;
	void *object[];
};

static int stack_alloc(struct rte_mempool *pool)
{
	struct stack *s = calloc(1, sizeof(*s) + pool->size * sizeof(s->object[0]));

	if (s == NULL)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pool->pool_data = s;
	return 0;
}

static void stack_free(struct rte_mempool *pool)
{
	free(pool->pool_data);
}

static int stack_put(struct rte_mempool *pool, void *const *object, unsigned int n)
{
	struct stack *s = pool->pool_data;

	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 0; i < n; i++)
		s->object[s->n++] = object[i];
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int stack_take(struct rte_mempool *pool, void **object, unsigned int n)
{
	struct stack *s = pool->pool_data;
	int ret = -ENOENT;

	pthread_mutex_lock(&s->lock);
	if (s->n >= n) {
		for (unsigned int i = 0; i < n; i++)
			object[i] = s->object[--s->n];
		ret = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static unsigned int stack_count(const struct rte_mempool *pool)
{
	const struct stack *s = pool->pool_data;

	return s->n;
}

static const struct rte_mempool_ops stack_ops = {
	.name = "seen",
	.alloc = stack_alloc,
	.free = stack_free,
	.enqueue = stack_put,
	.dequeue = stack_take,
	.get_count = stack_count,
};

RTE_MEMPOOL_REGISTER_OPS(stack_ops);

void seen_pools(void)
{
	walk_start_eal();
	walk_need(rte_mbuf_set_user_mempool_ops("seen") == 0);
}

const char *__tsan_default_suppressions(void);

/* These only peek: a message seen too late is followed by an event that wakes its reader. */
const char *__tsan_default_suppressions(void)
{
	return "race:rte_ring_empty\nrace:rte_ring_count\n";
}

/* --- ports --------------------------------------------------------------------------------------
 */

static struct rte_mempool *wire;

static uint16_t receive(void *queue, struct rte_mbuf **packet, uint16_t n)
{
	return rte_ring_sc_dequeue_burst(queue, (void **)packet, n, NULL);
}

/* As with drivers, the queue's thread frees what it has sent: only copies reach the wire. */
static uint16_t transmit(void *queue, struct rte_mbuf **packet, uint16_t n)
{
	uint16_t sent = 0;

	while (sent < n && rte_ring_free_count(queue) > 0) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(packet[sent], wire, 0, UINT32_MAX);

		if (copy == NULL || rte_ring_sp_enqueue(queue, copy) != 0)
			break;
		rte_pktmbuf_free(packet[sent++]);
	}
	return sent;
}

void seen_ports(struct walk *w)
{
	wire = rte_pktmbuf_pool_create("wire", 8191, 0, 0, 4096, SOCKET_ID_ANY);
	walk_need(wire != NULL);
	for (unsigned int i = 0; i < w->n_ports; i++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[w->nic[i].port];

		ops->rx_pkt_burst = receive;
		ops->tx_pkt_burst = transmit;
		ops->rxq.data = (void **)w->nic[i].rx;
		ops->txq.data = (void **)w->nic[i].tx;
	}
}

/* --- lcores -------------------------------------------------------------------------------------
 */

static pthread_t loops[LB_LCORES_MAX];

static void *run(void *lcore)
{
	lb_loop(lcore);
	return NULL;
}

void seen_start(struct walk *w)
{
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		pthread_create(&loops[i], NULL, run, w->lb->lcore[i]);
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		mailbox_wait_open(&w->lb->lcore[i]->mailbox);
}

void seen_stop(struct walk *w)
{
	__atomic_store_n(&w->lb->stop, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < w->lb->n_lcores; i++) {
		sleeper_wake(&w->lb->lcore[i]->sleeper);
		pthread_join(loops[i], NULL);
	}
}
