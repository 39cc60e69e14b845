/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports close while their driver's handlers run: DPDK's memif speaks with its other end on the
 * EAL's interrupt thread, and hears there that the other end has gone.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "runtime/eal_end.h"
#include "runtime/memif.h"
#include "runtime/port.h"

#define ROUNDS      120
#define MBUFS       1023
#define PATIENCE_MS 1000

static struct rte_mempool *pool;

static void start_eal(void)
{
	char *argv[] = {
		"port", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"-m",   "128",       "--lcores",    "0@(0-1)",  "--log-level=pmd.*:critical",
		NULL};

	cr_assert_geq(rte_eal_init(10, argv), 0);
	pool = rte_pktmbuf_pool_create("port", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	cr_assert_not_null(pool);
}

static void open_end(struct port *port, const char *role, unsigned int round)
{
	char device[128], error[256];
	struct port_params p = {
		.device = device,
		.queues = 1,
		.rx_descriptors = 256,
		.tx_descriptors = 256,
		.mtu = 1500,
		.pool = &pool,
	};

	/* The bus remembers the names of devices that were closed. */
	snprintf(device, sizeof(device),
		 "net_memif_%s%u,role=%s,socket=doorbell-port-%d-%u,rsize=8", role, round, role,
		 getpid(), round);
	*port = (struct port){0};
	cr_assert_eq(port_open(port, &p, error, sizeof(error)), 0, "round %u: %s", round, error);
}

/* Now and then the driver's handshake does not come to its end; then both sides close in the middle
 * of it. */
static bool come_up(const struct port *server, const struct port *client)
{
	for (unsigned int ms = 0; ms < PATIENCE_MS; ms++) {
		if (port_up(client) && port_up(server))
			return true;
		rte_delay_us_sleep(1000);
	}
	return false;
}

Test(port, closes_both_ends_of_a_memif_at_once, .timeout = 120)
{
	struct port server, client;
	unsigned int up = 0;
	char *said = NULL;
	size_t length = 0;
	FILE *log = open_memstream(&said, &length);

	start_eal();
	rte_openlog_stream(log);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		open_end(&server, "server", round);
		open_end(&client, "client", round);
		up += come_up(&server, &client);
		/* The interrupt thread is told of this, and closes the server's side, too. */
		port_close(&client);
		rte_delay_us_block(round % 50);
		port_close(&server);
	}
	rte_openlog_stream(NULL);
	fclose(log);
	/* Where it does not crash, the EAL complains of memory that is freed twice. */
	cr_expect(strstr(said, "Invalid memory") == NULL, "%s", said);
	free(said);
	cr_expect_gt(up, ROUNDS / 2);
	eal_end();
}

/* The interrupt thread looks through the EAL's handlers once more after one was taken back. On a
 * busy machine it comes to that when the main thread has cleaned up. */
Test(port, leaves_no_handler_behind)
{
	struct port server, client;

	start_eal();
	open_end(&server, "server", 0);
	open_end(&client, "client", 0);
	come_up(&server, &client);
	port_close(&client);
	port_close(&server);
	eal_end();
	usleep(50000); /* for that thread to fail in */
}

static sem_t released;

static void get_stuck(void *argument)
{
	sem_wait(&released);
}

/* A handler of a driver that does not return holds up the end, but not for ever. */
Test(port, ends_beside_a_handler_that_is_stuck, .timeout = 60)
{
	struct port server;

	start_eal();
	open_end(&server, "server", 0);
	sem_init(&released, 0, 0);
	cr_assert_eq(rte_eal_alarm_set(1, get_stuck, NULL), 0);
	port_close(&server);
	eal_end();
	/* Nothing was taken from under it. */
	sem_post(&released);
	usleep(50000);
}

/* --- what memif leaves to us --------------------------------------------------------------------
 */

Test(port, knows_which_end_of_a_memif_connects)
{
	cr_expect(memif_connects("net_memif0,role=client,socket=x"));
	cr_expect(memif_connects("net_memif0,socket=role=server"));
	cr_expect(memif_connects("net_memif_a,id=3,role=slave"));
	cr_expect(memif_connects("net_memif"));
	cr_expect(!memif_connects("net_memif0,id=1,role=server"));
	cr_expect(!memif_connects("net_memif0,role=master,socket=client"));
	cr_expect(!memif_connects("net_ring0,role=client"));
	cr_expect(!memif_connects("0000:01:00.0"));
}

static bool is_left(const char *path, const char *more)
{
	char device[160];

	snprintf(device, sizeof(device), "net_memif0,socket=%s%s", path, more);
	memif_remove_left(device);
	return access(path, F_OK) == 0;
}

Test(port, removes_the_socket_of_a_memif_only_when_nobody_listens)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char folder[] = "/tmp/doorbell-memif-XXXXXX";
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	cr_assert_not_null(mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", folder);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_expect(is_left(address.sun_path, ",socket-abstract=no,role=server"));
	/* as the kernel leaves it behind when its process is killed */
	close(fd);
	cr_expect(is_left(address.sun_path, ",socket-abstract=no,role=client"));
	cr_expect(is_left(address.sun_path, ",role=server"));
	cr_expect(!is_left(address.sun_path, ",socket-abstract=no,role=server"));
	/* neither a file that is no socket */
	fd = open(address.sun_path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	cr_expect(is_left(address.sun_path, ",socket-abstract=no,role=server"));
	unlink(address.sun_path);
	rmdir(folder);
}

static int open_attended(struct port *port, const char *role, const char *socket)
{
	char device[256], error[512] = "";
	struct port_params p = {
		.device = device,
		.queues = 1,
		.rx_descriptors = 256,
		.tx_descriptors = 256,
		.mtu = 1500,
		.pool = &pool,
		.attends = true,
		.may_wait = strcmp(role, "client") == 0,
	};
	int ret;

	snprintf(device, sizeof(device), "net_memif_%s,role=%s,socket=%s,rsize=8", role, role,
		 socket);
	*port = (struct port){0};
	ret = port_open(port, &p, error, sizeof(error));
	cr_expect_eq(ret, 0, "%s", error);
	return ret;
}

/* Its handlers run in port_attend() only: what they change is in nobody's hands then. */
Test(port, that_is_attended_connects_when_it_is_attended_and_only_then, .timeout = 60)
{
	struct rte_mbuf *packet[4];
	struct port server, client;
	char socket[64];
	uint64_t ms = 1;

	snprintf(socket, sizeof(socket), "doorbell-attended-%d", getpid());
	start_eal();
	cr_assert_eq(open_attended(&server, "server", socket), 0);
	cr_assert_eq(open_attended(&client, "client", socket), 0);
	usleep(20000);
	cr_expect(!port_up(&server) && !port_up(&client), "handlers run unasked");
	for (; ms < 2000 && (!port_up(&client) || !port_up(&server)); ms++) {
		if (port_wants_attention(&server, ms))
			port_attend(&server, ms);
		if (port_wants_attention(&client, ms))
			port_attend(&client, ms);
	}
	cr_expect(port_up(&client) && port_up(&server), "no link after %lu ms", (unsigned long)ms);
	
	/* paused, it receives nothing that is there */
	packet[0] = rte_pktmbuf_alloc(pool);
	rte_pktmbuf_append(packet[0], 60);
	cr_expect_eq(rte_eth_tx_burst(client.id, 0, packet, 1), 1);
	port_pause(&server);
	cr_expect_eq(rte_eth_rx_burst(server.id, 0, packet, 4), 0);
	port_resume(&server);
	cr_assert_eq(rte_eth_rx_burst(server.id, 0, packet, 4), 1);
	rte_pktmbuf_free(packet[0]);
	/* the other end goes: the link stays up until somebody attends */
	port_close(&client);
	for (ms += 5000; ms < 10000 && port_up(&server); ms++)
		if (port_wants_attention(&server, ms))
			port_attend(&server, ms);
	cr_expect(!port_up(&server));
	port_close(&server);
	eal_end();
}

/* How often <client> has connected to <listener> from <ms> to <end>; the last connection in <fd>.
 */
static unsigned int connections(struct port *client, int listener, uint64_t *ms, uint64_t end,
				int *fd)
{
	unsigned int n = 0;

	for (; *ms < end; ++*ms) {
		int accepted;

		if (port_wants_attention(client, *ms))
			port_attend(client, *ms);
		accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		if (accepted >= 0) {
			n++;
			*fd = accepted;
		}
	}
	return n;
}

/* A handshake is many steps, and the other end may be slow: one that goes on is not begun anew. */
Test(port, that_connects_does_not_break_off_a_handshake, .timeout = 60)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[sizeof(address.sun_path) + 32];
	struct port client;
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0), fd = -1;
	uint64_t ms = 1;

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/doorbell-slow-%d", getpid());
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listener, 8), 0);
	start_eal();
	snprintf(text, sizeof(text), "%s,socket-abstract=no", address.sun_path);
	cr_assert_eq(open_attended(&client, "client", text), 0);
	cr_expect_eq(connections(&client, listener, &ms, 4000, &fd), 1);
	/* it is gone: the next connection comes soon */
	close(fd);
	cr_expect_eq(connections(&client, listener, &ms, 6000, &fd), 1);
	/* it says nothing for ever: another connection after a while */
	cr_expect_eq(connections(&client, listener, &ms, 11000, &fd), 1);
	unlink(address.sun_path);
	port_close(&client);
	eal_end();
}

/* --- ends that misbehave ------------------------------------------------------------------------
 */

/* A listener, and what the devices of both ends have as its name. */
static struct sockaddr_un listener = {.sun_family = AF_UNIX};
static char listener_name[sizeof(listener.sun_path) + 32];

static void start_listener(struct port *server)
{
	start_eal();
	snprintf(listener.sun_path, sizeof(listener.sun_path), "/tmp/doorbell-port-%d", getpid());
	snprintf(listener_name, sizeof(listener_name), "%s,socket-abstract=no", listener.sun_path);
	cr_assert_eq(open_attended(server, "server", listener_name), 0);
}

/* A connection to it without the driver. */
static int connect_stranger(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&listener, sizeof(listener)), 0);
	return fd;
}

/* A handler that is stuck comes to no end; on a busy machine one may take long. */
static void attend(struct port *port, uint64_t *ms)
{
	for (unsigned int i = 0; i < 50 && port_wants_attention(port, ++*ms); i++)
		for (unsigned int tries = 0; !port_attend(port, *ms); tries++)
			cr_assert_lt(tries, 100, "a handler does not come to its end");
}

/* Both ends find each other. */
static void expect_link(struct port *server)
{
	struct port client;
	uint64_t ms = 1;

	cr_assert_eq(open_attended(&client, "client", listener_name), 0);
	for (; ms < 3000 && (!port_up(&client) || !port_up(server)); ms++) {
		if (port_wants_attention(server, ms))
			port_attend(server, ms);
		if (port_wants_attention(&client, ms))
			port_attend(&client, ms);
	}
	cr_expect(port_up(&client) && port_up(server), "no link");
	port_close(&client);
}

/* An agent that is killed in the moment in which it connects. */
Test(port, that_listens_outlives_clients_that_have_gone_before_they_are_accepted, .timeout = 60)
{
	struct port server;
	uint64_t ms = 1;

	start_listener(&server);
	for (unsigned int i = 0; i < 20; i++) {
		close(connect_stranger());
		attend(&server, &ms);
	}
	expect_link(&server);
	port_close(&server);
	eal_end();
}

/* memif's messages, as far as they are needed here. */
#define MESSAGE_SIZE   128
#define MESSAGE_INIT   3
#define MESSAGE_RING   5
#define MEMIF_VERSION2 0x0200

static bool say(int fd, uint16_t type, uint16_t first, int descriptor)
{
	uint8_t message[MESSAGE_SIZE] = {0};
	struct iovec part = {message, sizeof(message)};
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *rights;

	memcpy(message, &type, sizeof(type));
	memcpy(message + sizeof(type), &first, sizeof(first));
	if (descriptor >= 0) {
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL) == sizeof(message);
}

/* Each message is answered, and the driver waits for room: for ever, and the load balancer with it.
 */
Test(port, that_listens_does_not_wait_for_a_client_that_reads_nothing, .timeout = 60)
{
	struct port server;
	uint64_t ms = 1;
	unsigned int said;
	int fd, memory = memfd_create("ring", 0);

	start_listener(&server);
	fd = connect_stranger();
	attend(&server, &ms);
	cr_assert(say(fd, MESSAGE_INIT, MEMIF_VERSION2, -1));
	attend(&server, &ms);
	for (said = 0; said < 2000 && say(fd, MESSAGE_RING, 0, memory); said++)
		attend(&server, &ms);
	cr_expect(said > 100 && said < 2000, "%u messages were taken", said);
	close(fd);
	attend(&server, &ms);
	expect_link(&server);
	port_close(&server);
	eal_end();
}

/* How many messages have come; none is longer. */
static unsigned int hear(int fd)
{
	uint8_t message[MESSAGE_SIZE];
	unsigned int n = 0;

	while (read(fd, message, sizeof(message)) == sizeof(message))
		n++;
	return n;
}

/* Strangers that say nothing, or something else, hold up nobody. */
Test(port, that_listens_serves_its_client_beside_strangers, .timeout = 60)
{
	struct port server;
	uint64_t ms = 1;
	int silent[3], fd;

	start_listener(&server);
	for (unsigned int i = 0; i < 3; i++) {
		silent[i] = connect_stranger();
		fd = connect_stranger();
		attend(&server, &ms);
		cr_expect_eq(write(fd, "GET / HTTP/1.1", 14), 14);
		attend(&server, &ms);
		/* hello, and that it is disconnected */
		cr_expect_eq(hear(fd), 2);
		close(fd);
		cr_expect_eq(hear(silent[i]), 1);
		cr_expect(!port_wants_attention(&server, ++ms), "it does not come to an end");
	}
	expect_link(&server);
	for (unsigned int i = 0; i < 3; i++)
		close(silent[i]);
	attend(&server, &ms);
	port_close(&server);
	eal_end();
}

/* --- what else the interrupt thread has to do ---------------------------------------------------
 */

static void ring_alarm(void *argument)
{
	sem_post(argument);
}

static bool alarm_rings(void)
{
	struct timespec until;
	sem_t rang;

	sem_init(&rang, 0, 0);
	cr_assert_eq(rte_eal_alarm_set(1000, ring_alarm, &rang), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	return sem_timedwait(&rang, &until) == 0;
}

/* Bonded ports and virtual functions live on alarms, and some drivers' calls wait for them. */
Test(port, that_is_attended_lets_other_handlers_run_unasked, .timeout = 60)
{
	struct port server;
	uint64_t ms = 1;
	int fd;

	start_listener(&server);
	for (unsigned int i = 0; i < 200; i++)
		cr_assert(alarm_rings(), "alarm %u does not ring", i);
	/* nor does a stranger who says nothing change that, or a link */
	fd = connect_stranger();
	attend(&server, &ms);
	cr_assert(alarm_rings());
	expect_link(&server);
	attend(&server, &ms);
	cr_assert(alarm_rings());
	close(fd);
	attend(&server, &ms);
	cr_assert(alarm_rings());
	port_close(&server);
	eal_end();
}

#define ALARM_US 200

static void ring_on(void *left)
{
	if (__atomic_sub_fetch((int *)left, 1, __ATOMIC_ACQ_REL) > 0)
		rte_eal_alarm_set(ALARM_US, ring_on, left);
}

/* Whatever else that thread does meanwhile: a memif's handlers wait until they are asked for, but
 * for the one that accepts connections. */
Test(port, that_is_attended_is_left_alone_among_alarms, .timeout = 60)
{
	struct port server;
	int left = 1000000;
	uint64_t ms = 1;

	start_listener(&server);
	cr_assert_eq(rte_eal_alarm_set(ALARM_US, ring_on, &left), 0);
	for (unsigned int i = 0; i < 100; i++) {
		int fd = connect_stranger();

		attend(&server, &ms);
		cr_assert_eq(hear(fd), 1);
		cr_assert(say(fd, MESSAGE_INIT, MEMIF_VERSION2, -1));
		usleep(300);
		cr_assert_eq(hear(fd), 0, "round %u: it was answered unasked", i);
		attend(&server, &ms);
		cr_assert_eq(hear(fd), 1);
		close(fd);
		attend(&server, &ms);
	}
	cr_expect_lt(__atomic_load_n(&left, __ATOMIC_ACQUIRE), 1000000, "no alarms have rung");
	__atomic_store_n(&left, 0, __ATOMIC_RELEASE);
	rte_eal_alarm_cancel(ring_on, &left);
	port_close(&server);
	eal_end();
}
