/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in's device: its context, attributes, events, protection domains and memory regions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "standin_private.h"

#define CQE_MAX (1u << 22)
/* Above this, addresses are no host's: what a GPU's memory looks like in tests without one. */
#define HOST_END 0x800000000000ull

struct standin standin = {.lock = PTHREAD_MUTEX_INITIALIZER, .next_qpn = 0x40, .next_key = 0x1000};
struct standin_faults standin_faults;
struct standin_counters standin_counters;
char standin_wrong[128];

static struct ibv_device device = {.node_type = IBV_NODE_CA,
				   .transport_type = IBV_TRANSPORT_IB,
				   .name = STANDIN_DEVICE,
				   .dev_name = STANDIN_DEVICE};

void standin_lock(void)
{
	pthread_mutex_lock(&standin.lock);
}

void standin_unlock(void)
{
	pthread_mutex_unlock(&standin.lock);
}

unsigned int standin_objects(void)
{
	return standin.objects;
}

void standin_say_counters(void)
{
	const struct standin_counters *c = &standin_counters;

	fprintf(stderr,
		"standin: doorbells=%lu wqes=%lu cqes=%lu posts=%lu overruns=%lu shared=%lu "
		"wrong=%lu objects=%u %s\n",
		c->doorbells, c->wqes, c->cqes, c->posts, c->overruns, c->shared, c->wrong,
		standin.objects - 1, standin_wrong);
}

/* --- device and context ------------------------------------------------------------------------
 */

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	if (list != NULL)
		list[0] = &device;
	if (n != NULL)
		*n = list != NULL;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

bool mlx5dv_is_supported(struct ibv_device *d)
{
	return !standin_faults.other_vendor;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct verbs_context *c = &standin.context;
	int error;

	if (standin.running && standin_net.pairs) {
		standin.users++;
		return &c->context;
	}
	if (standin.running) {
		errno = EBUSY;
		return NULL;
	}
	if (pipe(standin.events) < 0)
		return NULL;
	error = standin_net.open(&standin.gid, &standin.interface);
	if (error != 0) {
		close(standin.events[0]);
		close(standin.events[1]);
		errno = error;
		return NULL;
	}
	*c = (struct verbs_context){
		.alloc_td = standin_alloc_td,
		.dealloc_td = standin_dealloc_td,
		.alloc_parent_domain = standin_alloc_parent_domain,
		.create_qp_ex = standin_create_qp_ex,
		.sz = sizeof(*c),
		.context = {.device = d,
			    .ops = {.poll_cq = standin_poll_cq,
				    .req_notify_cq = standin_req_notify_cq,
				    .post_send = standin_post_send,
				    .post_recv = standin_post_recv},
			    .cmd_fd = -1,
			    .async_fd = standin.events[0],
			    .num_comp_vectors = 1,
			    .abi_compat = __VERBS_ABI_IS_EXTENDED},
	};
	standin.stop = 0;
	standin.removed = false;
	standin.objects++;
	standin.users = 1;
	standin.running = pthread_create(&standin.thread, NULL, standin_nic, NULL) == 0;
	pthread_setname_np(standin.thread, "standin-nic");
	return &c->context;
}

int ibv_close_device(struct ibv_context *context)
{
	if (--standin.users > 0)
		return 0;
	__atomic_store_n(&standin.stop, 1, __ATOMIC_RELEASE);
	pthread_join(standin.thread, NULL);
	standin.running = false;
	standin_net.close();
	close(standin.events[0]);
	close(standin.events[1]);
	standin.objects--;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.max_qp = STANDIN_QPS,
		.max_qp_wr = STANDIN_WQES_MAX,
		.max_cqe = CQE_MAX - 1,
		.max_mr = STANDIN_MRS,
		.phys_port_cnt = 1,
	};
	return 0;
}

/* Programs built against older headers pass a smaller struct; its fields here are in both. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)attr;

	a->state = IBV_PORT_ACTIVE;
	a->max_mtu = IBV_MTU_4096;
	a->active_mtu = IBV_MTU_1024;
	a->gid_tbl_len = 1;
	a->pkey_tbl_len = 1;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	return state == IBV_PORT_ACTIVE ? "active" : "down";
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	*pkey = htobe16(0xffff);
	return index == 0 ? 0 : -1;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	*gid = standin.gid;
	return index == 0 ? 0 : -1;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t size)
{
	if (max == 0)
		return 0;
	entries[0] = (struct ibv_gid_entry){
		.gid = standin.gid,
		.gid_index = 0,
		.port_num = 1,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = standin.interface,
	};
	return 1;
}

/* --- events ------------------------------------------------------------------------------------
 */

void standin_event(enum ibv_event_type type, void *about)
{
	struct ibv_async_event event = {.event_type = type, .element.cq = about};

	if (write(standin.events[1], &event, sizeof(event)) != sizeof(event))
		abort(); /* the pipe holds more events than there are objects */
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return read(context->async_fd, event, sizeof(*event)) == sizeof(*event) ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}

void standin_remove(void)
{
	standin_lock();
	standin.removed = true;
	standin_event(IBV_EVENT_DEVICE_FATAL, NULL);
	standin_unlock();
}

/* --- protection domains and memory regions -----------------------------------------------------
 */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct standin_pd *pd = calloc(1, sizeof(*pd));

	if (pd == NULL)
		return NULL;
	pd->base.context = context;
	standin.objects++;
	return &pd->base;
}

struct ibv_pd *standin_alloc_parent_domain(struct ibv_context *context,
					   struct ibv_parent_domain_init_attr *attr)
{
	struct standin_pd *pd = (struct standin_pd *)ibv_alloc_pd(context);

	if (pd != NULL)
		pd->td = STANDIN_OF(standin_td, attr->td);
	return pd == NULL ? NULL : &pd->base;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	standin.objects--;
	free(pd);
	return 0;
}

struct standin_mr *standin_mr_find(uint32_t key)
{
	for (unsigned int i = 0; i < STANDIN_MRS; i++)
		if (standin.mr[i].used && standin.mr[i].base.lkey == key)
			return &standin.mr[i];
	return NULL;
}

static struct ibv_mr *add_region(struct ibv_pd *pd, void *at, size_t length, uint64_t iova,
				 int access)
{
	struct standin_mr *mr = NULL;

	standin_lock();
	if (standin_faults.regions == 0 || standin.n_mrs < standin_faults.regions)
		for (unsigned int i = 0; mr == NULL && i < STANDIN_MRS; i++)
			mr = standin.mr[i].used ? NULL : &standin.mr[i];
	if (mr == NULL) {
		standin_unlock();
		errno = ENOMEM;
		return NULL;
	}
	/* The low byte of a real key is its owner's choice; libmlx5's first is 0. Keys of the two
	 * uses are the same number there, too. */
	standin.next_key += 0x100;
	*mr = (struct standin_mr){
		.base = {.context = pd->context,
			 .pd = pd,
			 .addr = at,
			 .length = length,
			 .lkey = standin.next_key,
			 .rkey = standin.next_key},
		.iova = iova,
		.access = access,
		.used = true,
	};
	if (access & IBV_ACCESS_REMOTE_WRITE)
		standin.newest = mr;
	standin.n_mrs++;
	standin.objects++;
	standin_unlock();
	return &mr->base;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
	if (standin_faults.no_device_memory && (uintptr_t)at >= HOST_END) {
		errno = EFAULT;
		return NULL;
	}
	return add_region(pd, at, length, (uintptr_t)at, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t length, uint64_t iova,
				unsigned int access)
{
	return add_region(pd, at, length, iova, (int)access);
}

/* As the kernel does: the file must hold the range, and both addresses have the same offset in
 * their page. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	off_t size = lseek(fd, 0, SEEK_END);

	errno = 0;
	if (standin_faults.no_dmabuf)
		errno = EOPNOTSUPP;
	else if (size < 0)
		errno = EBADF;
	else if ((offset & (page - 1)) != (iova & (page - 1)) || offset + length > (uint64_t)size ||
		 (access & IBV_ACCESS_RELAXED_ORDERING) != 0)
		errno = EINVAL;
	return errno != 0 ? NULL : add_region(pd, (void *)(uintptr_t)iova, length, iova, access);
}

int ibv_dereg_mr(struct ibv_mr *base)
{
	standin_lock();
	STANDIN_OF(standin_mr, base)->used = false;
	if (standin.newest == STANDIN_OF(standin_mr, base))
		standin.newest = NULL;
	standin.n_mrs--;
	standin.objects--;
	standin_unlock();
	return 0;
}
