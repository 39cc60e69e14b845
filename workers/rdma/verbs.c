/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "rdma/roce_wire.h"
#include "rdma/verbs.h"
#include "rdma/verbs_reach.h"

#define HOP_LIMIT   64
#define GIDS_MAX    256
#define FLOW_LABELS 0xfffffu /* 20 bits */
/* Code 12 is 640 us (IBTA table 45): the peer's time to retry when our receive queue is empty. */
#define RNR_TIMER 12

static void verbs_format_address(const struct in6_addr *a, char *text, size_t size)
{
	if (IN6_IS_ADDR_V4MAPPED(a))
		inet_ntop(AF_INET, a->s6_addr + 12, text, size);
	else
		inet_ntop(AF_INET6, a, text, size);
}

/* Append <item> to a list in <text>, as far as it fits. */
static void verbs_list_add(char *text, size_t size, const char *item)
{
	size_t at = strlen(text);

	snprintf(text + at, size - at, "%s%s", at == 0 ? "" : ", ", item);
}

static struct ibv_context *open_by_name(const char *name, char *error, size_t size)
{
	int n = 0;
	struct ibv_device **devices = ibv_get_device_list(&n), *found = NULL;
	struct ibv_context *context = NULL;
	char names[256] = "";

	for (int i = 0; devices != NULL && i < n; i++) {
		verbs_list_add(names, sizeof(names), ibv_get_device_name(devices[i]));
		if (strcmp(ibv_get_device_name(devices[i]), name) == 0)
			found = devices[i];
	}
	if (found != NULL)
		context = ibv_open_device(found);
	if (names[0] == '\0')
		snprintf(error, size,
			 "RDMA device '%s' not found, nor any other; load its driver and ib_uverbs",
			 name);
	else if (found == NULL)
		snprintf(error, size, "RDMA device '%s' not found; this host has: %s", name, names);
	else if (context == NULL)
		snprintf(error, size,
			 "RDMA device '%s' cannot be opened: %s; give this user access to "
			 "/dev/infiniband/uverbs*",
			 name, strerror(errno));
	if (devices != NULL)
		ibv_free_device_list(devices);
	return context;
}

/*
 * Find our address in the device's GID table, or -EADDRNOTAVAIL with a list of all GIDs in <have>.
 */
static int find_gid(const struct verbs_device *d, struct ibv_gid_entry *found, char *have,
		    size_t size)
{
	struct ibv_gid_entry entries[GIDS_MAX];
	ssize_t n = ibv_query_gid_table(d->context, entries, GIDS_MAX, 0);
	char one[INET6_ADDRSTRLEN];

	have[0] = '\0';
	for (ssize_t i = 0; i < n; i++) {
		*found = entries[i];
		if (found->gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (memcmp(found->gid.raw, &d->address, sizeof(d->address)) == 0)
			return 0;
		verbs_format_address((const struct in6_addr *)found->gid.raw, one, sizeof(one));
		verbs_list_add(have, size, one);
	}
	return -EADDRNOTAVAIL;
}

/* Choose the port and GID index whose GID is our address. */
static int choose_gid(struct verbs_device *d, char *error, size_t size)
{
	char ours[INET6_ADDRSTRLEN], have[512];
	struct ibv_gid_entry found;

	if (find_gid(d, &found, have, sizeof(have)) == 0) {
		d->port = found.port_num;
		d->gid_index = found.gid_index;
		return 0;
	}
	verbs_format_address(&d->address, ours, sizeof(ours));
	snprintf(error, size,
		 "%s is no RoCE v2 address of RDMA device '%s'; %s%s; give its network interface "
		 "the address, or name another device",
		 ours, ibv_get_device_name(d->context->device),
		 have[0] == '\0' ? "it has none" : "it has ", have);
	return -EADDRNOTAVAIL;
}

static int check_port(struct verbs_device *d, char *error, size_t size)
{
	const char *name = ibv_get_device_name(d->context->device);
	struct ibv_port_attr port;

	if (ibv_query_port(d->context, d->port, &port) != 0) {
		snprintf(error, size, "RDMA device '%s' port %u cannot be queried: %s", name,
			 d->port, strerror(errno));
		return -errno;
	}
	if (port.state != IBV_PORT_ACTIVE) {
		snprintf(error, size,
			 "RDMA device '%s' port %u is %s; bring its network interface up", name,
			 d->port, ibv_port_state_str(port.state));
		return -ENETDOWN;
	}
	d->path_mtu = 128u << port.active_mtu;
	for (uint16_t i = 0; i < port.pkey_tbl_len; i++) {
		uint16_t pkey;

		if (ibv_query_pkey(d->context, d->port, i, &pkey) == 0 &&
		    ntohs(pkey) == ROCE_PKEY_DEFAULT) {
			d->pkey_index = i;
			return 0;
		}
	}
	snprintf(error, size, "RDMA device '%s' port %u has no P_Key 0x%x", name, d->port,
		 ROCE_PKEY_DEFAULT);
	return -ENOENT;
}

static int read_limits(struct verbs_device *d, char *error, size_t size)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(d->context, &attr) != 0) {
		snprintf(error, size, "RDMA device '%s' cannot be queried for its limits: %s",
			 ibv_get_device_name(d->context->device), strerror(errno));
		return -errno;
	}
	d->wr_max = attr.max_qp_wr;
	d->cqe_max = attr.max_cqe;
	d->pd = ibv_alloc_pd(d->context);
	if (d->pd == NULL) {
		snprintf(error, size, "RDMA device '%s' gives no protection domain: %s",
			 ibv_get_device_name(d->context->device), strerror(errno));
		return -errno;
	}
	return 0;
}

static int never_block(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int verbs_open(struct verbs_device *d, const struct verbs_params *params, char *error, size_t size)
{
	int ret;

	*d = (struct verbs_device){
		.context = open_by_name(params->device, error, size),
		.address = params->address,
		.traffic_class = params->traffic_class,
	};
	if (d->context == NULL)
		return -ENODEV;
	ret = never_block(d->context->async_fd) < 0 ? -errno : 0;
	if (ret < 0)
		snprintf(error, size, "RDMA device '%s' gives no events: %s", params->device,
			 strerror(-ret));
	if (ret == 0)
		ret = choose_gid(d, error, size);
	if (ret == 0)
		ret = check_port(d, error, size);
	if (ret == 0)
		ret = read_limits(d, error, size);
	if (ret < 0)
		verbs_close(d);
	return ret;
}

void verbs_close(struct verbs_device *d)
{
	if (d->pd != NULL)
		ibv_dealloc_pd(d->pd);
	if (d->context != NULL)
		ibv_close_device(d->context);
	*d = (struct verbs_device){0};
}

struct ibv_comp_channel *verbs_channel_create(const struct verbs_device *d)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(d->context);
	int error;

	if (channel == NULL || never_block(channel->fd) == 0)
		return channel;
	error = errno;
	ibv_destroy_comp_channel(channel);
	errno = error;
	return NULL;
}

bool verbs_channel_drain(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;
	bool any = false;

	while (ibv_get_cq_event(channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		any = true;
	}
	return any;
}

const char *verbs_describe(const struct verbs_device *d, char *text, size_t size)
{
	char address[INET6_ADDRSTRLEN] = "?";
	union ibv_gid gid;

	if (ibv_query_gid(d->context, d->port, d->gid_index, &gid) == 0)
		verbs_format_address((const struct in6_addr *)gid.raw, address, sizeof(address));
	snprintf(text, size,
		 "rdma_device=%s port=%u gid_index=%u gid_type=rocev2 gid=%s pkey_index=%u "
		 "path_mtu=%u traffic_class=%u",
		 ibv_get_device_name(d->context->device), d->port, d->gid_index, address,
		 d->pkey_index, d->path_mtu, d->traffic_class);
	return text;
}

int verbs_cq_reserve(const struct verbs_device *d, struct ibv_cq *cq, uint32_t *reserved,
		     uint32_t more)
{
	uint64_t wanted = (uint64_t)*reserved + more, size = 2 * (uint64_t)cq->cqe;

	if (size < wanted)
		size = wanted;
	if (size > d->cqe_max)
		size = d->cqe_max;
	if (wanted > (uint64_t)cq->cqe && (wanted > size || ibv_resize_cq(cq, size) != 0))
		return -ENOSPC;
	*reserved = wanted;
	return 0;
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && (128u << code) < bytes)
		code++;
	return code;
}

/* ibv_modify_qp() returns the error number; some providers only set errno. */
static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = ibv_modify_qp(qp, attr, mask);

	return ret > 0 ? -ret : ret < 0 ? -errno : 0;
}

static int to_init(const struct verbs_device *d, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = d->pkey_index,
		.port_num = d->port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return modify(qp, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_receive(const struct verbs_device *d, struct ibv_qp *qp, uint8_t gid_index,
		      const struct verbs_peer *peer)
{
	uint32_t flow_label = 0;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(peer->path_mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr =
			{
				.is_global = 1,
				.port_num = d->port,
				.grh =
					{
						.sgid_index = gid_index,
						.hop_limit = HOP_LIMIT,
						.traffic_class = d->traffic_class,
					},
			},
	};

	/*
	 * The device derives the UDP source port, by which ECMP spreads links, from the flow label:
	 * 0xc000 plus (the low 14 bits XOR the high 6 bits). rdma_rxe ignores the label.
	 */
	if (peer->udp_source != 0)
		attr.ah_attr.grh.flow_label = peer->udp_source - ROCE_SOURCE_MIN;
	else if (getrandom(&flow_label, sizeof(flow_label), 0) == sizeof(flow_label))
		attr.ah_attr.grh.flow_label = flow_label & FLOW_LABELS;
	memcpy(attr.ah_attr.grh.dgid.raw, &peer->address, sizeof(peer->address));
	return modify(qp, &attr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_send(struct ibv_qp *qp, uint32_t psn, const struct verbs_peer *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = peer->ack_timeout,
		.retry_cnt = peer->retry_limit,
		.rnr_retry = peer->rnr_retry,
	};

	return modify(qp, &attr,
		      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_connect(const struct verbs_device *d, struct ibv_qp *qp, uint32_t psn,
		  const struct verbs_peer *peer)
{
	struct ibv_gid_entry gid;
	char have[512];
	int ret;

	/* The GID's index changes when the interface loses the address and gets it again. */
	if (find_gid(d, &gid, have, sizeof(have)) < 0 || gid.port_num != d->port)
		return -EADDRNOTAVAIL;
	ret = verbs_reach(gid.ndev_ifindex, &d->address, &peer->address);
	if (ret == 0)
		ret = to_init(d, qp);
	if (ret == 0)
		ret = to_receive(d, qp, gid.gid_index, peer);
	if (ret == 0)
		ret = to_send(qp, psn, peer);
	return ret;
}
