/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs engine on a ConnectX's stand-in: who posts, with what queues, and what happens when the
 * device or the driver refuses something.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rnic/verbs_rnic.h"
#include "standin.h"

#define PATIENCE_NS 20000000000ull
#define MEMORY      65536
#define SLOTS       64

/* A host with pages of this size; 0: those that it has. */
static long page_bytes;

long sysconf(int name)
{
	long (*host)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PAGESIZE && page_bytes != 0 ? page_bytes : host(name);
}

struct fixture {
	struct rnic *rnic;
	struct standin_far *far;
	struct rnic_qp *qp;
	struct mlx5_queue queue; /* the poster's copy */
	uint8_t *memory;
	uint32_t failed;
	char described[384], error[512], why[320];
};

static const struct rnic_address here = {
	.family = 4, .addr.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

static void open_rnic(struct fixture *f, struct verbs_rnic_params p)
{
	p.device = STANDIN_DEVICE;
	p.address = here;
	f->rnic = verbs_rnic_create(&p, f->described, sizeof(f->described), f->error,
				    sizeof(f->error));
	cr_assert_not_null(f->rnic, "%s", f->error);
}

static struct rnic_qp_params params_of(struct fixture *f, uint32_t wqes)
{
	f->memory = aligned_alloc(4096, 2 * MEMORY);
	cr_assert_not_null(f->memory);
	memset(f->memory, 0, 2 * MEMORY);
	return (struct rnic_qp_params){
		.writable = {.va = (uintptr_t)f->memory, .length = MEMORY, .dmabuf_fd = -1},
		.sendable = {.va = (uintptr_t)f->memory + MEMORY,
			     .length = MEMORY,
			     .dmabuf_fd = -1},
		.wqe_count = wqes,
		.failed = &f->failed,
		.why = f->why,
		.why_size = sizeof(f->why),
	};
}

/* Where the engine reports failures to. */
static void await_failure(const struct fixture *f)
{
	uint64_t end = clock_now_ns() + PATIENCE_NS;

	while (__atomic_load_n(&f->failed, __ATOMIC_ACQUIRE) == 0) {
		cr_assert_lt(clock_now_ns(), end, "the engine reports no failure");
		sched_yield();
	}
}

static void connect_qp(struct fixture *f, uint32_t wqes)
{
	struct rnic_qp_params p = params_of(f, wqes);
	struct rnic_peer peer = {
		.address = here, .path_mtu = 1024, .ack_timeout = 14, .retry_limit = 7};

	f->far = standin_far_open(MEMORY);
	cr_assert_not_null(f->far);
	f->qp = f->rnic->ops->create(f->rnic, &p);
	cr_assert_not_null(f->qp, "%s", strerror(errno));
	peer.qpn = standin_far_qpn(f->far);
	cr_assert_eq(f->rnic->ops->connect(f->qp, &peer), 0);
	f->queue = f->qp->queue;
}

static void close_all(struct fixture *f)
{
	if (f->qp != NULL)
		f->rnic->ops->destroy(f->qp);
	if (f->far != NULL)
		standin_far_close(f->far);
	f->rnic->ops->close(f->rnic);
	free(f->memory);
	cr_expect_eq(standin_objects(), 0, "something was not destroyed");
	cr_expect_eq(standin_counters.wrong, 0, "%s", standin_wrong);
	cr_expect_eq(standin_counters.overruns, 0, "a completion queue had no room");
}

static struct mlx5_write write_of(const struct fixture *f, uint32_t imm, uint32_t length)
{
	return (struct mlx5_write){
		.remote_address = (uintptr_t)standin_far_memory(f->far),
		.local_address = (uintptr_t)f->memory + MEMORY,
		.rkey = standin_far_rkey(f->far),
		.lkey = f->qp->lkey,
		.length = length,
		.imm = imm,
		.with_imm = true,
		.signal = true,
	};
}

static void ring(struct fixture *f, uint32_t n)
{
	mlx5_ring(&f->queue, n);
	f->rnic->ops->kick(f->rnic);
}

static void post(struct fixture *f, uint32_t imm, uint32_t length)
{
	struct mlx5_write w = write_of(f, imm, length);

	mlx5_wqe_build(&f->queue, 0, &w);
	ring(f, 1);
}

static enum mlx5_poll await_cqe(struct fixture *f, uint8_t *syndrome)
{
	uint64_t end = clock_now_ns() + PATIENCE_NS;
	enum mlx5_poll result;

	while ((result = mlx5_cq_poll(&f->queue, syndrome)) == MLX5_POLL_EMPTY) {
		cr_assert_lt(clock_now_ns(), end, "no completion");
		sched_yield();
	}
	return result;
}

static void await_counter(const uint64_t *counter, uint64_t value)
{
	uint64_t end = clock_now_ns() + PATIENCE_NS;

	while (__atomic_load_n(counter, __ATOMIC_RELAXED) < value) {
		cr_assert_lt(clock_now_ns(), end, "a counter stands still");
		sched_yield();
	}
}

/* Requests by number, each with one completion. */
static void stream(struct fixture *f, uint32_t n)
{
	uint32_t posted = 0, arrived = 0, ahead;
	uint64_t end = clock_now_ns() + 3 * PATIENCE_NS;
	struct standin_message m;
	struct mlx5_write w;

	while (arrived < n) {
		cr_assert_lt(clock_now_ns(), end, "%u of %u arrived", arrived, n);
		for (ahead = 0; posted + ahead < n && ahead < mlx5_room(&f->queue) && ahead < 37;
		     ahead++) {
			w = write_of(f, posted + ahead, (posted + ahead) % 3 * 8);
			mlx5_wqe_build(&f->queue, ahead, &w);
		}
		if (ahead > 0)
			ring(f, ahead);
		posted += ahead;
		while (standin_far_next(f->far, &m))
			cr_assert_eq(m.imm, arrived++);
		while (mlx5_cq_poll(&f->queue, NULL) == MLX5_POLL_DONE)
			;
		sched_yield();
	}
}

/* The proxy posts, and all works. */
static void expect_proxied(struct fixture *f, const char *reason)
{
	cr_expect_not_null(strstr(f->described, "post=proxy"), "%s", f->described);
	if (reason == NULL)
		cr_expect_null(strstr(f->described, "reason"), "%s", f->described);
	else
		cr_expect_not_null(strstr(f->described, reason), "%s", f->described);
	cr_expect_null(strchr(f->described, '\n'));
	connect_qp(f, 2 * SLOTS);
	cr_expect_not(f->qp->doorbell_is_io);
	stream(f, 3 * SLOTS);
	cr_expect_eq(standin_counters.posts, 3 * SLOTS);
}

Test(agent_verbs, a_connectx_gives_its_queues_to_the_poster)
{
	struct standin_message m;
	struct fixture f = {0};

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	cr_expect_not_null(strstr(f.described, "post=direct"), "%s", f.described);
	connect_qp(&f, 2 * SLOTS);
	cr_expect(f.qp->doorbell_is_io, "a register: CUDA must know");
	cr_expect_str_eq(f.qp->note, "");
	memcpy(f.memory + MEMORY, "a reply", 8);
	post(&f, 0x1234, 8);
	cr_expect_eq(await_cqe(&f, NULL), MLX5_POLL_DONE);
	cr_assert(standin_far_next(f.far, &m));
	cr_expect_eq(m.imm, 0x1234);
	cr_expect_str_eq((char *)standin_far_memory(f.far), "a reply");
	cr_expect_eq(standin_counters.posts, 0);
	close_all(&f);
}

Test(agent_verbs, each_queue_has_a_register_of_its_own)
{
	struct fixture f = {0};

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	connect_qp(&f, 2 * SLOTS);
	cr_expect_eq(standin_counters.shared, 0);
	close_all(&f);
}

Test(agent_verbs, with_direct_posting_the_proxy_sleeps)
{
	struct fixture f = {0};
	uint64_t polls;

	/* A GPU posts: nothing wakes the proxy. */
	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = false});
	connect_qp(&f, 2 * SLOTS);
	await_counter(&standin_counters.queries, 2);
	polls = standin_counters.polls;
	await_counter(&standin_counters.queries, 12);
	cr_expect_lt(standin_counters.polls - polls, 300, "it polled %lu times between ten checks",
		     (unsigned long)(standin_counters.polls - polls));
	close_all(&f);
}

Test(agent_verbs, has_8192_slots)
{
	for (int proxy = 0; proxy < 2; proxy++) {
		struct fixture f = {0};

		open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true,
							 .always_proxy = proxy == 1});
		connect_qp(&f, 2 * 8192);
		cr_expect_eq(f.queue.wqe_count, 2 * 8192);
		stream(&f, 2 * 8192);
		close_all(&f);
	}
}

/* Every WQE that the queue takes may complete before one completion is read. */
Test(agent_verbs, completions_of_a_full_queue_have_room)
{
	struct fixture f = {0};
	struct mlx5_write w;

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	connect_qp(&f, 2 * SLOTS);
	w = write_of(&f, 1, 8);
	for (uint32_t lap = 0; lap < 5; lap++) {
		uint32_t room = mlx5_room(&f.queue);
		uint64_t cqes = standin_counters.cqes;

		cr_assert_eq(room, f.queue.wqe_count);
		for (uint32_t i = 0; i < room; i++)
			mlx5_wqe_build(&f.queue, i, &w);
		ring(&f, room);
		await_counter(&standin_counters.cqes, cqes + room);
		for (uint32_t i = 0; i < room; i++)
			cr_assert_eq(await_cqe(&f, NULL), MLX5_POLL_DONE, "lap %u, WQE %u", lap, i);
	}
	close_all(&f);
}

/* Indices have 16 bits and the queue 128 places: both wrap, the owner bit of completions too. */
Test(agent_verbs, posts_past_two_wraps_of_the_index, .timeout = 60)
{
	struct fixture f = {0};

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	connect_qp(&f, 2 * SLOTS);
	stream(&f, 2 * 65536 + 100);
	cr_expect_eq(standin_counters.wqes, 2 * 65536 + 100);
	close_all(&f);
}

Test(agent_verbs, a_silent_peer_fills_the_queue)
{
	struct fixture f = {0};
	struct mlx5_write w;

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	connect_qp(&f, 2 * SLOTS);
	standin_far_listen(f.far, false);
	w = write_of(&f, 7, 8);
	for (uint32_t i = 0; i < f.queue.wqe_count; i++)
		mlx5_wqe_build(&f.queue, i, &w);
	ring(&f, f.queue.wqe_count);
	cr_expect_eq(mlx5_room(&f.queue), 0);
	await_counter(&standin_counters.doorbells, 1);
	cr_expect_eq(mlx5_cq_poll(&f.queue, NULL), MLX5_POLL_EMPTY);
	standin_far_listen(f.far, true);
	for (uint32_t i = 0; i < f.queue.wqe_count; i++)
		cr_assert_eq(await_cqe(&f, NULL), MLX5_POLL_DONE);
	cr_expect_eq(mlx5_room(&f.queue), f.queue.wqe_count);
	close_all(&f);
}

/* A WQE that the NIC or the peer refuses ends the queue pair; its owner learns why. */
static void expect_refusal(bool proxy, struct mlx5_write w, const struct fixture *like,
			   uint8_t expected)
{
	struct fixture f = *like;
	uint8_t syndrome = 0;

	mlx5_wqe_build(&f.queue, 0, &w);
	mlx5_wqe_build(&f.queue, 1, &w);
	ring(&f, 2);
	cr_expect_eq(await_cqe(&f, &syndrome), MLX5_POLL_ERROR);
	cr_expect_eq(syndrome, expected, "%#x, expected %#x", syndrome, expected);
	await_failure(like);
	if (!proxy) {
		cr_expect_eq(await_cqe(&f, &syndrome), MLX5_POLL_ERROR);
		cr_expect_eq(syndrome, MLX5_SYNDROME_FLUSHED, "what is posted later is flushed");
	}
}

static void end_in_all_ways(void)
{
	for (int i = 0; i < 8; i++) {
		bool proxy = i % 2 == 1;
		uint8_t expected = 0;
		struct fixture f = {0};
		struct mlx5_write w;

		open_rnic(&f,
			  (struct verbs_rnic_params){.idle_sleep = true, .always_proxy = proxy});
		connect_qp(&f, 2 * SLOTS);
		w = write_of(&f, 1, 8);
		switch (i / 2) {
		case 0:
			w.rkey++;
			expected = MLX5_SYNDROME_REMOTE_ACCESS;
			break;
		case 1:
			w.remote_address += MEMORY - 7;
			expected = MLX5_SYNDROME_REMOTE_ACCESS;
			break;
		case 2:
			w.lkey++;
			expected = MLX5_SYNDROME_LOCAL_PROTECTION;
			break;
		case 3:
			w.local_address += MEMORY - 7;
			expected = MLX5_SYNDROME_LOCAL_PROTECTION;
			break;
		}
		/* The poster's copy of the queue is the fixture's; failures go to the original. */
		f.qp->queue = f.queue;
		expect_refusal(proxy, w, &f, expected);
		close_all(&f);
	}
}

Test(agent_verbs, tells_why_a_queue_pair_ended)
{
	end_in_all_ways();
}

/* A check of the states may come between the failure and its completion, which alone says why. */
Test(agent_verbs, tells_why_a_queue_pair_ended_when_its_state_tells_first)
{
	standin_faults.late_errors = true;
	end_in_all_ways();
}

Test(agent_verbs, notices_a_queue_pair_that_fails_by_itself)
{
	struct fixture f = {0};
	uint8_t syndrome = 0;

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	connect_qp(&f, 2 * SLOTS);
	standin_break(f.qp->number);
	await_failure(&f);
	post(&f, 1, 8);
	cr_expect_eq(await_cqe(&f, &syndrome), MLX5_POLL_ERROR);
	cr_expect_eq(syndrome, MLX5_SYNDROME_FLUSHED);
	close_all(&f);
}

Test(agent_verbs, a_removed_device_fails_all_and_takes_no_more)
{
	struct rnic_qp_params p;
	struct fixture f = {0};

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	connect_qp(&f, 2 * SLOTS);
	standin_remove();
	await_failure(&f);
	free(f.memory);
	p = params_of(&f, 2 * SLOTS);
	cr_expect_null(f.rnic->ops->create(f.rnic, &p));
	cr_expect_eq(errno, ENODEV);
	close_all(&f);
}

/* --- who posts ---------------------------------------------------------------------------------
 */

static bool cannot_ring(void *context, const struct mlx5_queue *queue, char *why, size_t size)
{
	*(struct mlx5_queue *)context = *queue;
	snprintf(why, size, "GPU 0 cannot map the doorbell");
	return false;
}

Test(agent_verbs, a_poster_that_cannot_ring_gets_the_proxy)
{
	struct mlx5_queue asked = {0};
	struct fixture f = {0};

	open_rnic(&f, (struct verbs_rnic_params){
			      .idle_sleep = false, .can_ring = cannot_ring, .context = &asked});
	/* All that it would have to map. */
	cr_expect_not_null((const void *)asked.doorbell);
	cr_expect_not_null(asked.wqes);
	cr_expect_not_null((const void *)asked.cqes);
	cr_expect_not_null((const void *)asked.record);
	cr_expect_not_null((const void *)asked.cq_record);
	cr_expect(asked.wqe_count > 0 && asked.cqe_count >= asked.wqe_count);
	expect_proxied(&f, "post=proxy reason=\"GPU 0 cannot map the doorbell\"");
	close_all(&f);
}

Test(agent_verbs, without_registers_the_proxy_posts)
{
	struct fixture f = {0};

	standin_faults.no_registers = true;
	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	expect_proxied(&f, "reason=\"the device gives no doorbell register of one's own: Cannot "
			   "allocate memory\"");
	close_all(&f);
}

Test(agent_verbs, with_large_completions_the_proxy_posts)
{
	struct fixture f = {0};

	standin_faults.large_cqes = true;
	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	expect_proxied(&f, "x 128 bytes");
	close_all(&f);
}

Test(agent_verbs, other_devices_and_the_operator_have_the_proxy)
{
	struct fixture f = {0}, g = {0};

	standin_faults.other_vendor = true;
	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	expect_proxied(&f, NULL);
	close_all(&f);
	standin_faults.other_vendor = false;
	standin_counters.posts = 0;
	open_rnic(&g, (struct verbs_rnic_params){.idle_sleep = true, .always_proxy = true});
	expect_proxied(&g, NULL);
	close_all(&g);
}

Test(agent_verbs, when_registers_run_out_the_rest_is_proxied)
{
	struct fixture f = {0}, g = {0};

	/* One serves the first queue pair; it was free again after the trial. */
	standin_faults.registers = 1;
	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = false});
	cr_expect_not_null(strstr(f.described, "post=direct"), "%s", f.described);
	connect_qp(&f, 2 * SLOTS);
	g.rnic = f.rnic;
	connect_qp(&g, 2 * SLOTS);
	cr_expect_str_eq(f.qp->note, "");
	cr_expect_not_null(strstr(g.qp->note, "no doorbell register"), "%s", g.qp->note);
	stream(&g, 1000);
	cr_expect_eq(standin_counters.posts, 1000);
	stream(&f, 1000);
	cr_expect_eq(standin_counters.posts, 1000);
	f.rnic->ops->destroy(g.qp);
	standin_far_close(g.far);
	free(g.memory);
	close_all(&f);
}

Test(agent_verbs, many_queue_pairs_post_at_the_same_time)
{
	struct fixture f[8] = {0};

	open_rnic(&f[0], (struct verbs_rnic_params){.idle_sleep = true});
	for (int i = 0; i < 8; i++) {
		f[i].rnic = f[0].rnic;
		connect_qp(&f[i], 2 * SLOTS);
	}
	/* All doorbells ring before the NIC has looked at the first. */
	for (uint32_t round = 0; round < 500; round++) {
		for (int i = 0; i < 8; i++)
			post(&f[i], round, 8);
		for (int i = 0; i < 8; i++)
			cr_assert_eq(await_cqe(&f[i], NULL), MLX5_POLL_DONE);
	}
	for (int i = 7; i > 0; i--) {
		f[0].rnic->ops->destroy(f[i].qp);
		standin_far_close(f[i].far);
		free(f[i].memory);
	}
	close_all(&f[0]);
}

/* --- memory ------------------------------------------------------------------------------------
 */

Test(agent_verbs, the_peer_writes_to_what_is_writable_and_to_nothing_else)
{
	static const uint8_t bytes[16] = "fifteen letters";
	struct fixture f = {0};
	uint64_t at;

	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	connect_qp(&f, 2 * SLOTS);
	at = (uintptr_t)f.memory;
	cr_expect_str_eq(f.qp->registered, "host");
	cr_expect_eq(standin_far_write(f.qp->number, f.qp->rkey, at + 100, bytes, 16), 0);
	cr_expect_arr_eq(f.memory + 100, bytes, 16);
	cr_expect_eq(standin_far_write(f.qp->number, f.qp->rkey, at + MEMORY - 15, bytes, 16),
		     MLX5_SYNDROME_REMOTE_ACCESS, "beyond its end");
	cr_expect_eq(standin_far_write(f.qp->number, f.qp->lkey, at + MEMORY, bytes, 16),
		     MLX5_SYNDROME_REMOTE_ACCESS, "replies may be sent only");
	cr_expect_eq(standin_far_write(f.qp->number, f.qp->rkey + 1, at, bytes, 16),
		     MLX5_SYNDROME_REMOTE_ACCESS, "a key that was never given");
	close_all(&f);
}

Test(agent_verbs, says_what_was_not_registered)
{
	struct rnic_qp_params p;
	struct fixture f = {0};

	for (uint32_t regions = 1; regions <= 2; regions++) {
		memset(&f, 0, sizeof(f));
		open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
		p = params_of(&f, 2 * SLOTS);
		standin_faults.regions = regions;
		f.qp = f.rnic->ops->create(f.rnic, &p);
		if (regions == 1) {
			cr_expect_null(f.qp);
			cr_expect_eq(errno, ENOMEM);
			cr_expect_not_null(strstr(f.why, "65536 bytes of memory: Cannot allocate"),
					   "%s", f.why);
		} else {
			cr_expect_not_null(f.qp);
		}
		close_all(&f);
	}
}

/* A file in memory is what a dma-buf is to the device: bytes behind a descriptor. */
static int map_like_a_gpu(struct fixture *f, struct rnic_qp_params *p)
{
	int fd = memfd_create("gpu", 0);

	cr_assert_eq(ftruncate(fd, 2 * MEMORY), 0);
	free(f->memory);
	f->memory = mmap(NULL, 2 * MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(f->memory, MAP_FAILED);
	p->writable = (struct rnic_span){
		.va = (uintptr_t)f->memory, .length = MEMORY, .on_gpu = true, .dmabuf_fd = fd};
	p->sendable = p->writable;
	p->sendable.va += MEMORY;
	p->sendable.dmabuf_offset = MEMORY;
	return fd;
}

static void unmap_like_a_gpu(struct fixture *f, int fd)
{
	munmap(f->memory, 2 * MEMORY);
	f->memory = NULL;
	close(fd);
}

Test(agent_verbs, registers_a_gpus_memory_by_dmabuf_or_by_its_address)
{
	for (int i = 0; i < 3; i++) {
		struct fixture f = {0};
		struct rnic_qp_params p = params_of(&f, 2 * SLOTS);
		int fd = map_like_a_gpu(&f, &p);

		standin_faults.no_dmabuf = i == 1;
		if (i == 2) /* the driver exported none */
			p.writable.dmabuf_fd = p.sendable.dmabuf_fd = -1;
		open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
		f.qp = f.rnic->ops->create(f.rnic, &p);
		cr_assert_not_null(f.qp, "%s", f.why);
		cr_expect_str_eq(f.qp->registered, i == 0 ? "dmabuf" : "peermem");
		unmap_like_a_gpu(&f, fd);
		close_all(&f);
	}
}

Test(agent_verbs, says_why_a_gpus_memory_is_not_registered)
{
	struct fixture f = {0};
	struct rnic_qp_params p = params_of(&f, 2 * SLOTS);
	int fd = map_like_a_gpu(&f, &p);

	/* No host's address: only nvidia-peermem could know it. */
	p.writable.va = 0x900000000000;
	p.sendable.va = p.writable.va + MEMORY;
	standin_faults.no_dmabuf = standin_faults.no_device_memory = true;
	open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true});
	f.qp = f.rnic->ops->create(f.rnic, &p);
	cr_assert_null(f.qp);
	cr_expect_str_eq(f.why, "the RDMA device does not register the GPU's memory: dma-buf: "
				"Operation not supported; nvidia-peermem: Bad address");
	snprintf(f.why, sizeof(f.why), "dma-buf: the driver exports none");
	p.writable.dmabuf_fd = p.sendable.dmabuf_fd = -1;
	f.qp = f.rnic->ops->create(f.rnic, &p);
	cr_assert_null(f.qp);
	cr_expect_str_eq(f.why, "the RDMA device does not register the GPU's memory: dma-buf: the "
				"driver exports none; nvidia-peermem: Bad address");
	unmap_like_a_gpu(&f, fd);
	close_all(&f);
}

/* --- pages of 64 KiB ---------------------------------------------------------------------------
 */

Test(agent_verbs, serves_on_a_host_with_large_pages)
{
	for (int proxy = 0; proxy < 2; proxy++) {
		struct fixture f = {0};

		page_bytes = 65536;
		open_rnic(&f, (struct verbs_rnic_params){.idle_sleep = true,
							 .always_proxy = proxy == 1});
		connect_qp(&f, 2 * SLOTS);
		/* Memory that a GPU maps fills pages of its own. */
		cr_expect(proxy == 0 || (uintptr_t)f.queue.wqes % 65536 == 0);
		cr_expect_eq((uintptr_t)f.queue.cqes % 65536, 0);
		stream(&f, 1000);
		close_all(&f);
	}
}
