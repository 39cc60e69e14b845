/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration and removal of workers: links on every lcore, pick tables. All of it runs on the
 * control thread; an lcore's own structures are changed by that lcore, on command.
 */
#include "membership/registry.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include <rte_malloc.h>

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "membership/health.h"
#include "membership/operator_settings.h"
#include "membership/resolve.h"
#include "membership/service_workers.h"
#include "observe/stats.h"
#include "ports/verbs_port.h"
#include "walk/choose.h"

static int registry_fail(char *error, size_t size, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int registry_fail(char *error, size_t size, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return code;
}

/* --- publishing pick tables ---------------------------------------------------------------- */

static void free_pick_table(void *table)
{
	workers_pick_table_destroy(table);
}

static void free_models(void *models)
{
	model_table_destroy(models);
}

/* Of the services of <model>; NULL: of all. */
static void publish_picks(struct lb *lb, const char *model)
{
	struct pick_table *table;

	for (unsigned int i = 0; i < lb->config.n_services; i++) {
		const struct lb_service_config *s = &lb->config.service[i];

		if (!lb_service_serves(s) || (model != NULL && strcmp(s->model, model) != 0))
			continue;
		table = service_workers_table(lb, s, i);
		if (table == NULL) {
			/* The old table still works: links that are gone have no credits. */
			LB_LOG(ERR, "no memory for the pick table service=%s", s->name);
			continue;
		}
		table = __atomic_exchange_n(&lb->pick[i], table, __ATOMIC_ACQ_REL);
		lcores_free_later(lb, free_pick_table, table);
	}
}

static void publish_models(struct lb *lb)
{
	struct model_table *models = service_workers_models(lb, &lb->config);

	if (models == NULL) {
		/* So does this: what a model's workers say of it does not change. */
		LB_LOG(ERR, "no memory for the table of models");
		return;
	}
	models = __atomic_exchange_n(&lb->models, models, __ATOMIC_ACQ_REL);
	lcores_free_later(lb, free_models, models);
}

void registry_publish(struct lb *lb, const char *model)
{
	service_workers_update(lb, &lb->config);
	/* Workers of the old tables that are gone have no credits, and their numbers are not given
	 * again while too many tables wait: lb_registration_check(). */
	lb->publish_due |= !lcores_has_room(lb);
	if (lb->publish_due)
		return;
	publish_picks(lb, model);
	publish_models(lb);
	lcores_settle(lb);
}

void registry_publish_due(struct lb *lb)
{
	if (!lb->publish_due || !lcores_has_room(lb))
		return;
	lb->publish_due = false;
	registry_publish(lb, NULL);
}

/* True for states in which a worker counts in pick tables. */
static bool is_of_tables(enum worker_state state)
{
	return state == WORKER_ACTIVE || state == WORKER_SUSPECT || state == WORKER_PROBING;
}

void registry_set_state(struct lb *lb, struct worker *w, enum worker_state state,
			const char *reason)
{
	bool picked = is_of_tables(w->state) || is_of_tables(state);

	w->state = state;
	w->drained = false;
	snprintf(w->reason, sizeof(w->reason), "%s", reason);
	LB_LOG(NOTICE, "worker=%s number=%u state=%s reason=\"%s\"", w->spec.name, w->number,
	       worker_state_name(state), reason);
	if (picked)
		registry_publish(lb, w->spec.model);
	if (lb->on_event != NULL)
		lb->on_event(w, lb->on_event_context);
}

/* --- links: run on their lcore, on command ---------------------------------------------------- */

static void registry_attach_link(void *lcore, void *argument)
{
	struct lcore *lc = lcore;
	struct link *link = argument;

	lc->link[link->worker] = link;
	lc->links[lc->n_links++] = link;
	if (link->qp == NULL)
		lc->by_qpn[LINK_QPN_PLACE(link->qpn)] = link;
	lcore_share_windows(lc);
	workers_load_open(&lc->load, link->worker, RTE_MIN(link->slots, (uint32_t)UINT16_MAX));
}

static void remove_from(struct link **list, uint16_t *n, const struct link *link)
{
	for (uint16_t i = 0; i < *n; i++) {
		if (list[i] == link) {
			list[i] = list[--*n];
			return;
		}
	}
}

static void registry_detach_link(void *lcore, void *argument)
{
	struct lcore *lc = lcore;
	struct link *link = argument;

	lc->link[link->worker] = NULL;
	if (lc->by_qpn[LINK_QPN_PLACE(link->qpn)] == link)
		lc->by_qpn[LINK_QPN_PLACE(link->qpn)] = NULL;
	workers_load_close(&lc->load, link->worker);
	remove_from(lc->links, &lc->n_links, link);
	remove_from(lc->dirty, &lc->n_dirty, link);
	remove_from(lc->active, &lc->n_active, link);
	link->active = false;
	for (uint32_t i = link->busy.oldest; i != SLOT_NONE; i = link->slot[i].newer)
		link->stats.lost++;
	if (link->suspect)
		lc->n_suspect--;
	lcore_share_windows(lc);
	/* Its packets will not be acknowledged, so free them, unless a device may still read them.
	 */
	if (__atomic_load_n(&link->qp, __ATOMIC_ACQUIRE) == NULL)
		requester_fini(&link->requester);
	/* Before the next bytes come, which would be written to it, and counted for the worker that
	 * gets its number. */
	edge_lose_link(lc, link);
	/* Its requests go to other workers, or their clients get notices as the ports have room. */
	link->next_detached = lc->detached;
	lc->detached = link;
	/* Release: the control thread counts what was lost. */
	__atomic_store_n(&link->let_go, 1, __ATOMIC_RELEASE);
}

/* The lcore has let go of the link. Stops the device, and counts what was in flight. */
static void stop_link(struct lb *lb, struct link *link)
{
	const struct worker *w = workers_get(lb->pool, link->worker);

	verbs_link_stop(link);
	link->stopped = true;
	/* Another worker may have the number. */
	if (w == NULL || w->generation == link->worker_generation)
		lb->lost[link->worker] += link->stats.lost;
	else if (link->stats.lost > 0)
		LB_LOG(WARNING, "event=late_loss lcore=%u lost=%lu", LINK_QPN_LCORE(link->qpn),
		       link->stats.lost);
}

static void detach(struct lb *lb, struct link *link)
{
	uint32_t before = mailbox_last(&lb->lcore[link->lcore]->mailbox);
	bool made = lcores_tell(lb, link->lcore, registry_detach_link, link, 0);

	link->asked = made || mailbox_last(&lb->lcore[link->lcore]->mailbox) != before;
	if (made)
		stop_link(lb, link);
}

static void drop_links(struct lb *lb, struct worker *w)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		struct link *link = lb->link[i][w->number];

		if (link == NULL)
			continue;
		lb->link[i][w->number] = NULL;
		link->lcore = i;
		link->next_to_free = lb->detached;
		lb->detached = link;
		/* Where the lcore stands still, registry_free_links() does the rest. */
		detach(lb, link);
	}
}

void registry_destroy_link(struct lb *lb, struct link *link)
{
	if (link == NULL)
		return;
	verbs_link_stop(link);
	link_destroy(link);
}

/* Free the links whose lcores are done with them. */
void registry_free_links(struct lb *lb)
{
	struct link **at = &lb->detached;

	while (*at != NULL) {
		struct link *link = *at;

		if (!link->asked)
			detach(lb, link);
		else if (!link->stopped && __atomic_load_n(&link->let_go, __ATOMIC_ACQUIRE))
			stop_link(lb, link);
		if (link->stopped && __atomic_load_n(&link->reaped, __ATOMIC_ACQUIRE)) {
			*at = link->next_to_free;
			link_destroy(link);
		} else {
			at = &link->next_to_free;
		}
	}
}

/* --- registration ------------------------------------------------------------------------------
 */

static const char stopping[] =
	"the load balancer is stopping and takes no workers; try again when it is back";

static int fabric_port(const struct lb *lb, const struct lb_address *agent)
{
	int port = resolve_port(&lb->config, agent);

	return port < 0 ? resolve_gateway_port(&lb->config, agent) : port;
}

static uint32_t port_path_mtu(const struct lb *lb, unsigned int port)
{
	return lb->config.port[port].verbs ? verbs_port_path_mtu(lb, port)
					   : roce_path_mtu(lb->config.port[port].mtu);
}

/* Largest request and reply of the services that use a model; false when none does. */
static bool model_limits(const struct lb_config *config, const char *model, uint32_t *request,
			 uint32_t *reply)
{
	bool found = false;

	*request = *reply = 0;
	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *s = &config->service[i];

		if (!lb_service_serves(s) || strcmp(s->model, model) != 0)
			continue;
		found = true;
		*request = RTE_MAX(*request, s->max_request);
		*reply = RTE_MAX(*reply, s->max_reply);
	}
	return found;
}

/* The service of the model with the smallest max_request, if that is below <bytes>; or NULL. */
static const struct lb_service_config *too_narrow(const struct lb_config *config, const char *model,
						  uint32_t bytes)
{
	const struct lb_service_config *least = NULL;

	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *s = &config->service[i];

		if (lb_service_serves(s) && strcmp(s->model, model) == 0 &&
		    s->max_request < (least == NULL ? bytes : least->max_request))
			least = s;
	}
	return least;
}

int lb_request_check(const struct lb *lb, const char *model, uint32_t min_request, char *error,
		     size_t error_size)
{
	const struct lb_service_config *s = too_narrow(&lb->config, model, min_request);

	if (s == NULL)
		return 0;
	return registry_fail(
		error, error_size, -EINVAL,
		"min_request: the model '%s' takes requests of %u bytes or more, and service "
		"'%s' carries %u at most%s; use a model with smaller requests, or raise the "
		"service's max_request%s",
		model, min_request, s->name, s->max_request,
		s->protocol == IPPROTO_UDP ? ", in one datagram" : "",
		s->protocol == IPPROTO_UDP ? " as far as the clients ports' mtu lets it" : "");
}

int lb_hello(struct lb *lb, const char *model, const struct lb_address *agent,
	     struct lb_hello *hello, char *error, size_t error_size)
{
	char text[LB_ADDRESS_TEXT];
	int port = fabric_port(lb, agent);

	memset(hello, 0, sizeof(*hello));
	if (lb_is_winding_down(lb))
		return registry_fail(error, error_size, -ESHUTDOWN, "%s", stopping);
	if (port < 0)
		return registry_fail(
			error, error_size, -EHOSTUNREACH,
			"no fabric port reaches %s; give the agent an address in a fabric "
			"port's subnet, or that port a gateway",
			lb_address_format(agent, text, sizeof(text)));
	if (!model_limits(&lb->config, model, &hello->max_request, &hello->max_reply))
		return registry_fail(
			error, error_size, -ENOENT,
			"no service uses model '%s'; start the agent with a model that a "
			"service names, or add the service",
			model);
	hello->n_lcores = lb->n_lcores;
	hello->path_mtu = port_path_mtu(lb, port);
	hello->address = lb->config.port[port].address;
	hello->worker_timeout_ms = lb->config.worker_timeout_ms;
	hello->ack_timeout = lb->config.ack_timeout;
	hello->retry_count = lb->config.retry_count;
	return 0;
}

/* Check the payload region of link <i>: tiles, and room for requests that are longer. */
static int check_payloads(const struct worker_spec *w, const struct lb_link_spec *l, unsigned int i,
			  char *error, size_t size)
{
	const uint64_t room_max = (uint64_t)PAYLOAD_ROOM_PAGES_MAX * PAYLOAD_ROOM_PAGE;
	uint32_t tile = RTE_MIN(w->max_request, RING_STRIDE_MAX);

	if (l->entry != RING_ENTRY)
		return registry_fail(error, size, -EINVAL,
				     "links[%u].entry: %u; this load balancer writes entries of "
				     "%d bytes only",
				     i, l->entry, RING_ENTRY);
	if (l->stride % RING_ALIGNMENT != 0 || l->stride < tile || l->stride > WORKER_BYTES_MAX)
		return registry_fail(error, size, -EINVAL,
				     "links[%u].stride: %u must be a multiple of %d and hold a "
				     "request of %u bytes",
				     i, l->stride, RING_ALIGNMENT, tile);
	if (l->room % RING_PAGE != 0 || l->room > room_max)
		return registry_fail(error, size, -EINVAL,
				     "links[%u].room: %" PRIu64 " must be a multiple of %u and at "
				     "most %" PRIu64,
				     i, l->room, RING_PAGE, room_max);
	if (w->max_request > l->stride && l->room < w->max_request)
		return registry_fail(error, size, -EINVAL,
				     "links[%u].room: %" PRIu64 " bytes do not hold a request of "
				     "%u; start the agent with a higher --payload-mb",
				     i, l->room, w->max_request);
	if (ring_room_at(w->slots, l->stride) + l->room > RING_REGION_MAX)
		return registry_fail(error, size, -EINVAL,
				     "links[%u].stride: %u slots of %u bytes are more than a link "
				     "can address; lower --slots",
				     i, w->slots, l->stride);
	return 0;
}

/*
 * Choose the places of a worker's replies: <chunk> bytes for each of a reply's chunks, and
 * <reply_stride> for all chunks of one slot. Behind the addresses of engine roce is no memory: a
 * slot has as many chunks as a link can address, up to LINK_CHUNKS_MAX. A port of engine verbs has
 * memory for those that the worker asked for. Powers of two are fast to check.
 */
static int choose_places(const struct lb *lb, unsigned int port, const struct lb_registration *r,
			 uint32_t *chunk, uint64_t *reply_stride, char *error, size_t size)
{
	uint64_t asked = rte_align32pow2(RTE_MAX(r->max_chunks, 1u)), chunks = LINK_CHUNKS_MAX;
	bool verbs = lb->config.port[port].verbs;
	uint64_t most = verbs ? VERBS_REPLIES_MAX : RING_REGION_MAX, each;

	if (r->max_chunks > LINK_CHUNKS_MAX)
		return registry_fail(error, size, -EINVAL,
				     "max_chunks: %u is too many; use %d or less", r->max_chunks,
				     LINK_CHUNKS_MAX);
	*chunk = rte_align32pow2(sizeof(struct ring_reply) + r->worker.max_reply);
	each = (uint64_t)*chunk * r->worker.slots;
	while (chunks > asked && (verbs || chunks * each > most))
		chunks /= 2;
	*reply_stride = chunks * *chunk;
	if (chunks * each > most)
		return registry_fail(
			error, size, -EINVAL,
			"slots: %u replies of up to %u chunks of %u bytes need %" PRIu64
			" MiB for each lcore, and %s at most %" PRIu64
			"; start the agent with a lower --slots",
			r->worker.slots, RTE_MAX(r->max_chunks, 1u), r->worker.max_reply,
			chunks * each >> 20,
			verbs ? "a port of engine verbs has" : "a link addresses", most >> 20);
	return 0;
}

static int check_links(const struct lb *lb, const struct lb_registration *r, char *error,
		       size_t size)
{
	uint64_t seen = 0;

	if (r->n_links != lb->n_lcores)
		return registry_fail(error, size, -EINVAL,
				     "links: %u given, one per lcore wanted: %u", r->n_links,
				     lb->n_lcores);
	for (unsigned int i = 0; i < r->n_links; i++) {
		const struct lb_link_spec *l = &r->link[i];

		if (l->lcore >= lb->n_lcores || seen & 1ull << l->lcore)
			return registry_fail(error, size, -EINVAL,
					     "links[%u].lcore: %u is out of range or given twice",
					     i, l->lcore);
		seen |= 1ull << l->lcore;
		if (l->qpn < 2 || l->qpn > ROCE_PSN_MASK)
			return registry_fail(
				error, size, -EINVAL,
				"links[%u].qpn: %u is not a queue pair number (2..16777215)", i,
				l->qpn);
		if (l->psn > ROCE_PSN_MASK)
			return registry_fail(error, size, -EINVAL,
					     "links[%u].psn: more than 24 bits", i);
		if (check_payloads(&r->worker, l, i, error, size) < 0)
			return -EINVAL;
	}
	return 0;
}

static int registry_check_spec(const struct worker_spec *w, const struct lb_config *config,
			       char *error, size_t size)
{
	const struct lb_service_config *narrow = too_narrow(config, w->model, w->min_request);
	uint32_t request, reply;

	if (w->heartbeat_ms * 2 > config->worker_timeout_ms)
		return registry_fail(
			error, size, -EINVAL,
			"workers.timeout_ms: %u is less than twice the heartbeat_ms %u of "
			"worker %s; use %u or more, or start it again with a lower "
			"--heartbeat-ms",
			config->worker_timeout_ms, w->heartbeat_ms, w->name, w->heartbeat_ms * 2);
	if (!model_limits(config, w->model, &request, &reply))
		return 0; /* no service uses the worker's model any more */
	if (narrow != NULL)
		return registry_fail(
			error, size, -EINVAL,
			"max_request: service '%s' would carry %u bytes at most, and worker %s "
			"takes requests of %u or more; raise the service's, or stop the worker "
			"first",
			narrow->name, narrow->max_request, w->name, w->min_request);
	if (w->max_request < request)
		return registry_fail(
			error, size, -EINVAL,
			"max_request: a service of model '%s' would send up to %u bytes, worker "
			"%s takes %u; lower the service's, or drain the worker first and start "
			"it again with more",
			w->model, request, w->name, w->max_request);
	if (w->max_reply > reply)
		return registry_fail(
			error, size, -EINVAL,
			"max_reply: the services of model '%s' would give their clients at "
			"most %u bytes, worker %s answers with up to %u; raise the service's, "
			"or drain the worker first",
			w->model, reply, w->name, w->max_reply);
	return 0;
}

int registry_check_config(const struct lb *lb, const struct lb_config *config, char *error,
			  size_t size)
{
	for (const struct worker *w = workers_next(lb->pool, NULL); w != NULL;
	     w = workers_next(lb->pool, w)) {
		int ret = registry_check_spec(&w->spec, config, error, size);

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Check that this worker can serve every service of its model. */
static int check_worker(const struct lb *lb, const struct lb_registration *r, char *error,
			size_t size)
{
	uint32_t request, reply;

	if (!model_limits(&lb->config, r->worker.model, &request, &reply))
		return registry_fail(error, size, -ENOENT, "model: no service uses '%s'",
				     r->worker.model);
	if (lb_request_check(lb, r->worker.model, r->worker.min_request, error, size) < 0)
		return -EINVAL;
	if (r->worker.max_request < request)
		return registry_fail(
			error, size, -EINVAL,
			"max_request: the worker takes %u bytes, the services of model '%s' "
			"send up to %u; raise the model's max_request or lower the service's",
			r->worker.max_request, r->worker.model, request);
	if (r->worker.max_reply > reply)
		return registry_fail(
			error, size, -EINVAL,
			"max_reply: %u bytes, but the services of model '%s' give their clients "
			"at most %u",
			r->worker.max_reply, r->worker.model, reply);
	if (!workers_spec_agrees(lb->pool, &r->worker, error, size))
		return -EINVAL;
	if (lb_owns_address(lb, &r->address.addr))
		return registry_fail(
			error, size, -EINVAL,
			"address: it is the load balancer's own; give the agent another");
	if (r->worker.heartbeat_ms * 2 > lb->config.worker_timeout_ms)
		return registry_fail(error, size, -EINVAL,
				     "heartbeat_ms: %u is more than half of the load balancer's "
				     "workers.timeout_ms %u; lower --heartbeat-ms",
				     r->worker.heartbeat_ms, lb->config.worker_timeout_ms);
	if (r->path_mtu < ROCE_MTU_MIN || r->path_mtu > ROCE_MTU_MAX ||
	    (r->path_mtu & (r->path_mtu - 1)) != 0)
		return registry_fail(error, size, -EINVAL,
				     "path_mtu: %u is none of 256, 512, 1024, 2048, 4096",
				     r->path_mtu);
	return 0;
}

/*
 * Make a link with a queue pair of the RDMA device, which gives its number and the key for replies.
 */
static struct link *make_verbs_link(struct lb *lb, struct link_params *p,
				    const struct lb_registration *r, struct lb_link_info *info)
{
	struct verbs_link_params params = {
		.port = p->port,
		.lcore = p->remote->lcore,
		.slots = p->slots,
		.replies = p->slots * p->reply_stride,
		.worker = p->worker,
	};
	struct verbs_link made = {0};
	struct link *link;
	int ret = verbs_link_create(lb, &params, &made);

	if (ret < 0) {
		errno = -ret;
		return NULL;
	}
	p->qpn = info->qpn = made.qpn;
	info->reply_rkey = made.reply_rkey;
	info->reply_address = made.reply_address;
	link = link_create(p);
	if (link == NULL) {
		verbs_link_discard(&made);
		errno = ENOMEM;
		return NULL;
	}
	ret = verbs_link_connect(lb, link, &made, r, p->remote, p->psn, p->path.mtu);
	if (ret < 0) {
		registry_destroy_link(lb, link);
		errno = -ret;
		return NULL;
	}
	return link;
}

/* A UDP source port with which the worker's packets come to this lcore's queue; 0: not known. */
static uint16_t reply_source(const struct lb *lb, const struct lcore *lc, unsigned int port,
			     const struct lb_address *worker, uint32_t random)
{
	const struct lb_address *own = &lb->config.port[port].address;
	struct flow_key key = {
		.family = worker->family == 4 ? FLOW_IPV4 : FLOW_IPV6,
		.protocol = IPPROTO_UDP,
		.src = worker->addr,
		.dst = own->addr,
		.dst_port = htons(ROCE_UDP_PORT),
	};

	if (lb->owner_rule[port] != OWNER_RSS || lb->n_lcores == 1)
		return 0;
	return owner_source_port(&lb->port[port].spread, &key, lc->queue[port], random);
}

/* Has a link of the lcore this place in its table, or will it have it? */
static bool has_place(const struct lb *lb, unsigned int lcore, uint32_t place)
{
	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		const struct link *link = lb->link[lcore][i];

		if (link != NULL && link->qp == NULL && LINK_QPN_PLACE(link->qpn) == place)
			return true;
	}
	return false;
}

static bool choose_qpn(const struct lb *lb, unsigned int lcore, uint32_t *qpn)
{
	uint32_t random;

	do {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return false;
		*qpn = LINK_QPN(lcore, random);
		/* 0 and 1 are management queue pairs (IBTA) */
	} while (*qpn < 2 || has_place(lb, lcore, LINK_QPN_PLACE(*qpn)));
	return true;
}

/* The parameters that follow from configuration, lcore and registration. The caller sets PSN, queue
 * pair number, reply key and the path's source. */
static struct link_params link_params_of(struct lb *lb, const struct worker *w,
					 const struct lb_registration *r,
					 const struct lb_link_spec *remote, unsigned int port,
					 uint32_t path_mtu)
{
	struct lcore *lc = lb->lcore[remote->lcore];
	struct link_params p = {
		.worker = w->number,
		.worker_generation = w->generation,
		.port = port,
		.direct = resolve_port(&lb->config, &r->address) == (int)port,
		.remote = remote,
		.slots = w->spec.slots,
		.batch_share = RTE_MAX(w->spec.max_batch / lb->n_lcores, 1u),
		.path =
			{
				.family = r->address.family,
				.source = lb->config.port[port].address.addr,
				.destination = r->address.addr,
				.qpn = remote->qpn,
				.tos = lb->config.dcqcn ? ROCE_TOS_ECT : ROCE_TOS_DEFAULT,
				.migrated = true,
				.mtu = path_mtu,
			},
		.tx = &lc->tx[port],
		.descriptor_room = rte_pktmbuf_data_room_size(lc->packets) - RTE_PKTMBUF_HEADROOM,
		.indirect_pool = lc->indirect_pool,
		.held = &lc->held,
		.clock = &lc->now,
		.drained = &lc->drained.at,
		.paced = &lc->paced,
		.multi_segment = lb->port[port].segments_max >= REQUESTER_SEGMENTS,
		.ack_timeout = lb->config.ack_timeout,
		.retry_limit = lb->config.retry_count,
		.rnr_retry = lb->config.rnr_retry,
	};

	if (lb->config.dcqcn) {
		p.line_rate = port_line_rate(&lb->port[port]);
		p.notify_interval = lb->tsc_hz / 1000000 * DCQCN_CNP_NS / 1000;
	}
	return p;
}

static struct link *make_link(struct lb *lb, const struct worker *w,
			      const struct lb_registration *r, const struct lb_link_spec *remote,
			      unsigned int port, uint32_t path_mtu, struct lb_link_info *info)
{
	struct link_params p = link_params_of(lb, w, r, remote, port, path_mtu);
	struct lcore *lc = lb->lcore[remote->lcore];
	uint32_t random[3];
	char ignored[256];

	/* lb_registration_check() has found that there is a choice. */
	choose_places(lb, port, r, &p.chunk, &p.reply_stride, ignored, sizeof(ignored));
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return NULL;
	p.psn = random[0] & ROCE_PSN_MASK;
	*info = (struct lb_link_info){
		.lcore = remote->lcore,
		.psn = p.psn,
		.reply_stride = p.reply_stride,
		.chunk = p.chunk,
	};
	if (lb->config.port[port].verbs)
		return make_verbs_link(lb, &p, r, info);
	if (!choose_qpn(lb, lc->index, &p.qpn))
		return NULL;
	p.reply_rkey = random[1];
	/* One source port per queue pair, so that ECMP spreads links over paths. */
	p.path.udp_source = ROCE_SOURCE_MIN | (random[0] >> 16 & 0x3fff);
	memcpy(p.path.source_mac, lb->port[port].mac, 6);
	info->qpn = p.qpn;
	info->reply_rkey = p.reply_rkey;
	info->udp_source = reply_source(lb, lc, port, &r->address, random[2]);
	return link_create(&p);
}

/* A printf format; its argument is strerror(<error>). */
static const char *no_link_reason(int error)
{
	switch (error) {
	case ENOMEM:
		return "the load balancer has no memory for the links; ask for fewer --slots, or "
		       "raise its memory.mb";
	case ENOSPC:
		return "the load balancer's RDMA device has no room for what the links may "
		       "complete; ask for fewer --slots";
	case EOPNOTSUPP:
		return "the load balancer's RDMA device takes no work requests by ibv_wr_start(); "
		       "use engine: roce there";
	case EADDRNOTAVAIL:
		return "the load balancer's RDMA device has lost its address; give it to its "
		       "network interface again";
	default:
		return "the load balancer's RDMA device cannot reach the worker: %s";
	}
}

/* True while there was no room for the call that lets go of a link. */
static bool has_unasked(const struct lb *lb)
{
	for (const struct link *link = lb->detached; link != NULL; link = link->next_to_free)
		if (!link->asked)
			return true;
	return false;
}

int lb_registration_check(const struct lb *lb, const struct lb_registration *r, char *error,
			  size_t error_size)
{
	int ret, port = fabric_port(lb, &r->address);
	uint64_t reply_stride;
	uint32_t chunk;

	if (lb_is_winding_down(lb))
		return registry_fail(error, error_size, -ESHUTDOWN, "%s", stopping);
	if (!workers_spec_is_valid(&r->worker, error, error_size))
		return -EINVAL;
	if (port < 0)
		return registry_fail(error, error_size, -EHOSTUNREACH,
				     "address: no fabric port reaches it");
	/* A worker serves all lcores, or is not active. */
	if (lcores_check_all(lb, error, error_size) < 0)
		return -EBUSY;
	/* Calls are made in their order: that which lets go of a link comes before that of the link
	 * with its number. */
	if (has_unasked(lb))
		return lcores_refuse(lb, error, error_size);
	ret = check_worker(lb, r, error, error_size);
	if (ret == 0)
		ret = check_links(lb, r, error, error_size);
	if (ret == 0)
		ret = choose_places(lb, port, r, &chunk, &reply_stride, error, error_size);
	return ret;
}

struct worker *lb_worker_register(struct lb *lb, const struct lb_registration *r,
				  struct lb_link_info *info, uint32_t *path_mtu, char *error,
				  size_t error_size)
{
	struct link *link[LB_LCORES_MAX] = {NULL};
	int port = fabric_port(lb, &r->address);
	struct worker *w;

	if (lb_registration_check(lb, r, error, error_size) < 0)
		return NULL;
	w = workers_register(lb->pool, &r->worker, error, error_size);
	if (w == NULL)
		return NULL;
	*path_mtu = RTE_MIN(r->path_mtu, port_path_mtu(lb, port));
	for (unsigned int i = 0; i < r->n_links; i++) {
		link[i] = make_link(lb, w, r, &r->link[i], port, *path_mtu, &info[i]);
		if (link[i] == NULL)
			goto no_link;
	}
	w->registered_ms = lb_now_ms(lb);
	lb->lost[w->number] = 0;
	settings_apply(lb, w);
	for (unsigned int i = 0; i < r->n_links; i++) {
		lb->link[r->link[i].lcore][w->number] = link[i];
		/* There is room: lb_registration_check(). */
		lcores_tell(lb, r->link[i].lcore, registry_attach_link, link[i], 0);
	}
	registry_set_state(lb, w, WORKER_JOINING, "registered; resolving its address");
	resolve_start(lb, w->number, port, &r->address);
	return w;
no_link:
	registry_fail(error, error_size, 0, no_link_reason(errno), strerror(errno));
	for (unsigned int i = 0; i < r->n_links; i++)
		registry_destroy_link(lb, link[i]);
	workers_remove(lb->pool, w);
	return NULL;
}

const struct lb_address *lb_worker_address(const struct lb *lb, const struct worker *w)
{
	return &lb->neighbour[w->number].address;
}

void lb_worker_ready(struct lb *lb, struct worker *w)
{
	w->ready = true;
	if (w->state == WORKER_JOINING)
		snprintf(w->reason, sizeof(w->reason), "waiting for the loop's first heartbeat");
}

void lb_worker_drain(struct lb *lb, struct worker *w)
{
	w->leaving = true;
	/* also if an operator has drained the worker before: its agent waits for the event */
	registry_set_state(lb, w, WORKER_DRAINING, "asked to drain");
}

const char *registry_reason(const struct worker *w)
{
	return w->uncontrolled ? "control connection lost" : "";
}

void lb_worker_control_lost(struct lb *lb, struct worker *w, bool closed)
{
	if (w->state == WORKER_JOINING || w->state == WORKER_PROBING || w->leaving ||
	    lb_worker_drained(lb, w))
		return lb_worker_remove(lb, w, "connection closed");
	if (!w->uncontrolled) {
		w->uncontrolled = true;
		w->uncontrolled_ms = lb_now_ms(lb);
		LB_LOG(WARNING, "worker=%s control=lost closed=%d: it stays while its loop beats",
		       w->spec.name, closed);
		if (w->state == WORKER_ACTIVE)
			snprintf(w->reason, sizeof(w->reason), "%s", registry_reason(w));
	}
	if (closed)
		health_hint(lb, w);
}

void lb_worker_control_back(struct lb *lb, struct worker *w)
{
	if (!w->uncontrolled)
		return;
	w->uncontrolled = false;
	LB_LOG(NOTICE, "worker=%s control=back after_ms=%u", w->spec.name,
	       lb_now_ms(lb) - w->uncontrolled_ms);
	if (w->state == WORKER_ACTIVE)
		snprintf(w->reason, sizeof(w->reason), "%s", registry_reason(w));
}

static uint64_t outstanding(const struct lb *lb, const struct worker *w)
{
	struct lb_link_stats stats;

	lb_worker_stats_read(lb, w, &stats);
	return stats.outstanding;
}

bool lb_worker_drained(struct lb *lb, const struct worker *w)
{
	return w->state == WORKER_DRAINING && outstanding(lb, w) == 0;
}

void lb_worker_remove(struct lb *lb, struct worker *w, const char *reason)
{
	uint16_t number = w->number;

	/* The worker leaves the pick tables first; then the lcores drop its links; then its place
	 * is free.
	 */
	registry_set_state(lb, w, WORKER_GONE, reason);
	drop_links(lb, w);
	resolve_stop(lb, number);
	if (lb->lost[number] > 0)
		LB_LOG(WARNING, "worker=%s lost=%lu", w->spec.name, lb->lost[number]);
	workers_remove(lb->pool, w);
}

void lb_on_worker_event(struct lb *lb, lb_worker_event event, void *context)
{
	lb->on_event = event;
	lb->on_event_context = context;
}
