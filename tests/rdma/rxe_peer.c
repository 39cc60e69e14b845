/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end for RoCEv2 tests: does with libibverbs, on rdma_rxe or any RDMA device, what a test
 * tells it by TCP. Text: one command a line, one line in answer, "ok ..." or "error ERRNO WHAT".
 * Numbers are as strtoull() reads them; addresses are this process's own.
 *
 *   mr BYTES ACCESS                      memory, all zero; ACCESS: w, r (remote) and l (local
 *                                        write), or -         ok VA LKEY RKEY
 *   qp                                   RC, with a completion queue of its own    ok QP QPN
 *   rtr QP GID-INDEX GID QPN PSN MTU RNR-CODE     the peer's; MTU in bytes
 *   rts QP PSN TIMEOUT RETRIES RNR-RETRIES
 *   recv QP COUNT                        receives without memory
 *   write QP VA LKEY BYTES VA RKEY       local, remote
 *   write_imm ... IMM, read ..., send QP VA LKEY BYTES 0 0
 *   poll QP MS                           ok none, or
 *                                        ok STATUS OPCODE FLAGS IMM BYTES (IMM: host order)
 *   peek VA BYTES, poke VA HEX           ok HEX, ok
 *   fill VA BYTES SEED, same VA BYTES SEED        byte i is (SEED + i * 7) mod 251; ok 1 or ok 0
 *   state QP                             ok STATE (enum ibv_qp_state)
 *   close QP                             destroys it
 *   sh COMMAND                           ok STATUS
 *
 * usage: rxe-peer DEVICE PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <netinet/tcp.h>

#define QPS_MAX   4096
#define CQ_DEPTH  1024
#define LINE_SIZE 65536
#define PORT_NUM  1

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
} qps[QPS_MAX];
static unsigned int n_qps;
static FILE *client;
static jmp_buf next_line; /* where to go on after this line was answered */

static void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void answer(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(client, format, args);
	va_end(args);
	fputc('\n', client);
	fflush(client);
}

static void answer_result(int error, const char *what)
{
	if (error == 0)
		answer("ok");
	else
		answer("error %d %s", error, what);
}

/* Reads the next number of the line. */
static uint64_t number(char **at)
{
	return strtoull(*at, at, 0);
}

static unsigned int qp_index(char **at)
{
	uint64_t i = number(at);

	if (i >= n_qps || qps[i].qp == NULL) {
		answer_result(ENOENT, "queue pair");
		longjmp(next_line, 1);
	}
	return i;
}

static void *pointer(char **at)
{
	return (void *)(uintptr_t)number(at);
}

static void mr_command(char *at)
{
	size_t bytes = number(&at);
	void *memory = aligned_alloc(4096, (bytes + 4095) & ~4095ull);
	struct ibv_mr *mr;
	int access = 0;

	for (; *at != '\0'; at++)
		access |= *at == 'w'   ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE
			  : *at == 'r' ? IBV_ACCESS_REMOTE_READ
			  : *at == 'l' ? IBV_ACCESS_LOCAL_WRITE
				       : 0;
	if (memory == NULL) {
		answer_result(ENOMEM, "memory");
		return;
	}
	memset(memory, 0, bytes);
	mr = ibv_reg_mr(pd, memory, bytes, access);
	if (mr == NULL)
		answer_result(errno, "ibv_reg_mr");
	else
		answer("ok %p %#x %#x", memory, mr->lkey, mr->rkey);
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT_NUM,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void qp_command(char *at)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 256,
			.max_recv_wr = 256,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_cq *cq = ibv_create_cq(device, CQ_DEPTH, NULL, NULL, 0);

	if (n_qps == QPS_MAX || cq == NULL) {
		answer_result(ENOSPC, "ibv_create_cq");
		return;
	}
	init.send_cq = init.recv_cq = cq;
	qps[n_qps].cq = cq;
	qps[n_qps].qp = ibv_create_qp(pd, &init);
	if (qps[n_qps].qp == NULL || to_init(qps[n_qps].qp) != 0) {
		answer_result(errno, "ibv_create_qp");
		return;
	}
	answer("ok %u %#x", n_qps, qps[n_qps].qp->qp_num);
	n_qps++;
}

static enum ibv_mtu mtu_of(uint64_t bytes)
{
	return bytes == 4096   ? IBV_MTU_4096
	       : bytes == 2048 ? IBV_MTU_2048
	       : bytes == 1024 ? IBV_MTU_1024
	       : bytes == 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

static void rtr_command(char *at)
{
	struct ibv_qp *qp = qps[qp_index(&at)].qp;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.is_global = 1, .port_num = PORT_NUM, .grh.hop_limit = 64},
	};
	char gid[64] = "";
	int consumed = 0;

	attr.ah_attr.grh.sgid_index = number(&at);
	sscanf(at, "%63s%n", gid, &consumed);
	at += consumed;
	if (inet_pton(AF_INET6, gid, &attr.ah_attr.grh.dgid) != 1) {
		answer_result(EINVAL, "GID");
		return;
	}
	attr.dest_qp_num = number(&at);
	attr.rq_psn = number(&at);
	attr.path_mtu = mtu_of(number(&at));
	attr.min_rnr_timer = number(&at);
	answer_result(ibv_modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER),
		      "to RTR");
}

static void rts_command(char *at)
{
	struct ibv_qp *qp = qps[qp_index(&at)].qp;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .max_rd_atomic = 1};

	attr.sq_psn = number(&at);
	attr.timeout = number(&at);
	attr.retry_cnt = number(&at);
	attr.rnr_retry = number(&at);
	answer_result(ibv_modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC),
		      "to RTS");
}

static void recv_command(char *at)
{
	struct ibv_qp *qp = qps[qp_index(&at)].qp;
	struct ibv_recv_wr wr = {0}, *bad;
	uint64_t count = number(&at);
	int ret = 0;

	while (ret == 0 && count-- > 0)
		ret = ibv_post_recv(qp, &wr, &bad);
	answer_result(ret, "ibv_post_recv");
}

static void post(char *at, enum ibv_wr_opcode opcode)
{
	struct ibv_qp *qp = qps[qp_index(&at)].qp;
	struct ibv_sge sge = {0};
	struct ibv_send_wr wr = {.sg_list = &sge, .opcode = opcode}, *bad;

	sge.addr = number(&at);
	sge.lkey = number(&at);
	sge.length = number(&at);
	wr.num_sge = sge.length > 0;
	wr.wr.rdma.remote_addr = number(&at);
	wr.wr.rdma.rkey = number(&at);
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr.imm_data = htonl(number(&at));
	answer_result(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void write_command(char *at)
{
	post(at, IBV_WR_RDMA_WRITE);
}

static void write_imm_command(char *at)
{
	post(at, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void read_command(char *at)
{
	post(at, IBV_WR_RDMA_READ);
}

static void send_command(char *at)
{
	post(at, IBV_WR_SEND);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void poll_command(char *at)
{
	struct ibv_cq *cq = qps[qp_index(&at)].cq;
	uint64_t end = now_ms() + number(&at);
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0 && now_ms() < end)
		usleep(200);
	if (n < 0)
		answer_result(EIO, "ibv_poll_cq");
	else if (n == 0)
		answer("ok none");
	else
		answer("ok %d %d %u %#x %u", wc.status, wc.opcode, wc.wc_flags, ntohl(wc.imm_data),
		       wc.byte_len);
}

static void peek_command(char *at)
{
	const uint8_t *from = pointer(&at);
	uint64_t bytes = number(&at);

	fputs("ok ", client);
	for (uint64_t i = 0; i < bytes; i++)
		fprintf(client, "%02x", from[i]);
	answer("%s", "");
}

static void poke_command(char *at)
{
	uint8_t *to = pointer(&at);
	int consumed;

	while (sscanf(at, " %2hhx%n", to, &consumed) == 1) {
		at += consumed;
		to++;
	}
	answer("ok");
}

static void fill_command(char *at)
{
	uint8_t *to = pointer(&at);
	uint64_t bytes = number(&at), seed = number(&at);

	for (uint64_t i = 0; i < bytes; i++)
		to[i] = (seed + i * 7) % 251;
	answer("ok");
}

static void same_command(char *at)
{
	const uint8_t *from = pointer(&at);
	uint64_t bytes = number(&at), seed = number(&at), i = 0;

	while (i < bytes && from[i] == (seed + i * 7) % 251)
		i++;
	answer("ok %d", i == bytes);
}

static void state_command(char *at)
{
	struct ibv_qp *qp = qps[qp_index(&at)].qp;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);

	if (ret != 0)
		answer_result(ret, "ibv_query_qp");
	else
		answer("ok %d", attr.qp_state);
}

static void close_command(char *at)
{
	unsigned int i = qp_index(&at);
	int ret = ibv_destroy_qp(qps[i].qp);

	ibv_destroy_cq(qps[i].cq);
	qps[i].qp = NULL;
	answer_result(ret, "ibv_destroy_qp");
}

static void sh_command(char *at)
{
	answer("ok %d", system(at));
}

static const struct {
	const char *name;
	void (*run)(char *at);
} commands[] = {
	{"mr", mr_command},       {"qp", qp_command},     {"rtr", rtr_command},
	{"rts", rts_command},     {"recv", recv_command}, {"write", write_command},
	{"read", read_command},   {"send", send_command}, {"write_imm", write_imm_command},
	{"poll", poll_command},   {"peek", peek_command}, {"poke", poke_command},
	{"fill", fill_command},   {"same", same_command}, {"state", state_command},
	{"close", close_command}, {"sh", sh_command},
};

static void obey(char *line)
{
	size_t length = strcspn(line, " \n");

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strlen(commands[i].name) == length &&
		    strncmp(commands[i].name, line, length) == 0) {
			commands[i].run(line + length);
			return;
		}
	}
	answer_result(ENOSYS, line);
}

static int open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			device = ibv_open_device(list[i]);
	if (device == NULL)
		return -ENODEV;
	pd = ibv_alloc_pd(device);
	return pd == NULL ? -errno : 0;
}

static int listen_at(const char *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 1) < 0)
		return -errno;
	return fd;
}

static void serve(int fd)
{
	static char line[LINE_SIZE];
	FILE *in = fdopen(dup(fd), "r");
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	client = fdopen(fd, "w");
	while (in != NULL && fgets(line, LINE_SIZE, in) != NULL)
		if (setjmp(next_line) == 0)
			obey(line);
	fclose(in);
	fclose(client);
}

int main(int argc, char **argv)
{
	int fd, ret;

	if (argc != 3) {
		fprintf(stderr, "usage: rxe-peer DEVICE PORT\n");
		return 2;
	}
	ret = open_device(argv[1]);
	fd = ret < 0 ? ret : listen_at(argv[2]);
	if (fd < 0) {
		fprintf(stderr, "rxe-peer: %s: %s\n", argv[1], strerror(-fd));
		return 1;
	}
	printf("rxe-peer: listening\n");
	fflush(stdout);
	for (;;)
		serve(accept(fd, NULL, NULL));
}
