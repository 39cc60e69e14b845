/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole load balancer, lb_create(), between ports that are rings, driven turn by turn (one
 * loop iteration of each lcore) on the thread of the test, in simulated time. Rows put frames in
 * and say which frames, drops and counters come out. README.md has an example; worker.h has the
 * workers.
 *
 * Time stands still unless a row lets it pass.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "lcore/lcore.h"
#include "nic.h"
#include "packet.h"

#define WALK_FRAME_MAX   9216
#define WALK_WORKERS_MAX 64

/* --- rows ------------------------------------------------------------------------------------
 *
 * WALK(name) { ... } is one row: a function that runs once, in the order of the file. A program
 * given words runs the rows whose name contains one of them.
 */
struct walk_test {
	const char *name;
	void (*run)(void);
	struct walk_test *next;
};

void walk_register(struct walk_test *test);

#define WALK(test)                                                                                 \
	static void test(void);                                                                    \
	static struct walk_test test##_row = {#test, test, NULL};                                  \
	static void __attribute__((constructor)) test##_register(void)                             \
	{                                                                                          \
		walk_register(&test##_row);                                                        \
	}                                                                                          \
	static void test(void)

/* The row fails but goes on. */
#define walk_expect(condition, ...)                                                                \
	((condition) ? (void)0 : walk_failed(__FILE__, __LINE__, #condition, " " __VA_ARGS__))
#define walk_expect_eq(a, b) walk_equal(__FILE__, __LINE__, #a, (a), #b, (b))
/* The program ends: nothing after it would make sense. */
#define walk_need(condition, ...)                                                                  \
	((condition) ? (void)0 : walk_fatal(__FILE__, __LINE__, #condition, " " __VA_ARGS__))

void walk_failed(const char *file, int line, const char *condition, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void walk_fatal(const char *file, int line, const char *condition, const char *format, ...)
	__attribute__((noreturn, format(printf, 4, 5)));
bool walk_equal(const char *file, int line, const char *a_text, uint64_t a, const char *b_text,
		uint64_t b);
/* Returns the number of failures since the last call. */
unsigned int walk_failures(void);
/* Returns the number of contexts since the last call: walk_context() begins one. */
unsigned int walk_contexts(void);
/* Sets a prefix for walk_failed(): the row of a table, for example. "" for none. */
void walk_context(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- the load balancer --------------------------------------------------------------------------
 */

struct walk_params {
	/*
	 * YAML items of `services:`, each with a line end. NULL: one service `echo` at
	 * PACKET_DESTINATION4 and one, `echo6`, at PACKET_DESTINATION6, port 8000, model echo.
	 */
	const char *services;
	/* More YAML at the top level, such as "workers: {suspect_ms: 0}\n". */
	const char *more;
	/* YAML items of `ports:` instead of those that follow from the numbers below. The device
	 * is net_ring_<name>; the name has 15 characters at most. */
	const char *ports;
	unsigned int client_ports; /* 0: 1; named clients0, clients1 ...: port 0, 1 ... */
	unsigned int lcores;       /* 0: 1 */
	uint16_t queues;           /* of each port; 0: one per lcore */
	uint32_t flows;            /* 0: 1024 per lcore */
	uint32_t packets;          /* that wait, and as many unacknowledged; 0: 1024 per lcore */
	bool fabric6;              /* the fabric port, the last one, has an IPv6 address */
	bool no_chains;            /* ports send packets of one segment only */
	bool verified;             /* NICs verify checksums */
	uint32_t start_ms;         /* 0: 1000; the load balancer's clock when the row begins */
	/* Threads of its own turn the loops and real time passes; see tests/race. */
	bool threads;
};

#define WALK_SERVICE(name, port, model, more)                                                      \
	"  - {name: " name ", address: " PACKET_DESTINATION4 ", port: " #port                      \
	", model: " model more "}\n"

struct walk_worker;

struct walk {
	struct lb *lb;
	struct lb_config config; /* as parsed; the load balancer has a copy */
	struct nic nic[LB_PORTS_MAX];
	unsigned int n_ports;
	unsigned int fabric; /* the last port with the role fabric */
	uint64_t clock;      /* TSC */
	bool threads;
	unsigned int n_workers;
	struct walk_worker *worker[WALK_WORKERS_MAX]; /* also those that are gone */
	uint64_t drop_seen[LB_DROPS];
	uint64_t unsent; /* frames of the row that the NIC had no packet memory or room for */
	struct rte_mbuf *pending[LB_PORTS_MAX][NIC_SIZE]; /* sent to clients, not looked at yet */
	unsigned int n_pending[LB_PORTS_MAX];
	unsigned int n_cut[LB_PORTS_MAX]; /* segments taken of the first, if the port cuts it */
	char error[512];                  /* the sentence of the last refusal */
};

/* NULL for <params>: all defaults. Ends the program when it cannot be made. */
struct walk *walk_create(const struct walk_params *params);
void walk_start_eal(void);
/* The same with the YAML of <text> instead of that made from <params>. */
struct walk *walk_create_yaml(const char *text, const struct walk_params *params);
/*
 * Workers leave, waiting requests end. Then every packet must be back in its pool and each counter
 * of held packets zero; otherwise the row fails.
 */
void walk_quiesce(struct walk *w);
/* walk_quiesce(), then frees all. */
void walk_destroy(struct walk *w);
void walk_remove_workers(struct walk *w);

/* The first lcore finds no memory for anything that it sends, from now on; until it has it back. */
void walk_take_memory(struct walk *w);
void walk_give_memory(struct walk *w);

/* Writes the YAML of <params>; <services> instead of theirs unless NULL. For reloads. */
void walk_yaml(const struct walk_params *params, const char *services, char *text, size_t size);
/* Applies <text> as a file. Returns the result of lb_reload_apply(), a refusal's sentence in
 * w->error. */
int walk_reload(struct walk *w, const char *text);

/* --- time and turns ----------------------------------------------------------------------------
 */

/* Runs everything outside the load balancer: workers take the frames sent to them and act. */
void walk_wire(struct walk *w);
/* Every lcore polls once; then workers take the frames sent to them and act. */
void walk_turn(struct walk *w);
void walk_turns(struct walk *w, unsigned int n);
/* Only one lcore polls, and workers do nothing. */
void walk_turn_lcore(struct walk *w, unsigned int lcore);
/* Turns until nothing moves any more. */
void walk_settle(struct walk *w);
/* The control thread does its regular work. */
void walk_tick(struct walk *w);
/* Time passes at once, and no lcore polls. */
void walk_jump_us(struct walk *w, uint64_t us);
void walk_jump(struct walk *w, uint32_t ms);
/* Time passes ms by ms: heartbeats, a turn each, lb_tick() before every tenth and the last. */
void walk_pass(struct walk *w, uint32_t ms);

/* --- frames in ---------------------------------------------------------------------------------
 */

/* A client's frame comes in on a port's first queue; or on <queue>; or as any bytes. */
void walk_send(struct walk *w, unsigned int port, const struct packet *packet);
void walk_send_on(struct walk *w, unsigned int port, uint16_t queue, const struct packet *packet);
void walk_send_frame(struct walk *w, unsigned int port, uint16_t queue, const uint8_t *frame,
		     uint32_t length);

/* A request of framing tagged (request.h) with 8 bytes behind its header. */
struct walk_tagged {
	uint8_t kind; /* 0: a request */
	uint64_t id;
	uint8_t priority;
	uint32_t deadline_us;
	uint8_t bytes[32];
};
/* Returns an IPv4 packet with it, which points into <t>. */
struct packet walk_tagged(struct walk_tagged *t);

/* --- frames out --------------------------------------------------------------------------------
 */

enum walk_kind { WALK_NOTHING, WALK_UDP, WALK_ARP, WALK_ND, WALK_ICMP, WALK_OTHER };

/* A frame that came out of a port. */
struct walk_frame {
	enum walk_kind kind;
	uint8_t destination_mac[6], source_mac[6];
	bool tagged;
	uint16_t tci;
	uint8_t family;
	uint8_t hops;                        /* TTL or hop limit */
	struct in6_addr source, destination; /* IPv4 mapped */
	uint16_t source_port, destination_port;
	bool sums_hold; /* of IP and of UDP or ICMP */
	const uint8_t *payload;
	uint32_t n_payload;
	bool notice; /* a datagram with the magic of notices */
	uint8_t code;
	uint64_t tag;
	uint32_t length;
	uint8_t bytes[WALK_FRAME_MAX];
};

/* The next frame that the port sent; false: none. */
bool walk_take(struct walk *w, unsigned int port, struct walk_frame *frame);
void walk_parse(const uint8_t *bytes, uint32_t length, struct walk_frame *frame);
/* Returns how many frames wait to be taken. */
unsigned int walk_count(struct walk *w, unsigned int port);
/* Forgets the frames that wait to be taken. */
void walk_forget(struct walk *w, unsigned int port);

/*
 * Expects that the next frame on the port answers <packet>: back by the way that it came, from the
 * address that it went to, checksums right. Its payload is the request's; or <bytes>; or it is a
 * notice about the request with this code.
 */
#define walk_expect_echo(w, port, packet)                                                          \
	walk_answered(__FILE__, __LINE__, w, port, packet, NULL, -1)
#define walk_expect_reply(w, port, packet, bytes, n)                                               \
	walk_answered(__FILE__, __LINE__, w, port, packet, bytes, n)
#define walk_expect_notice(w, port, packet, code)                                                  \
	walk_noticed(__FILE__, __LINE__, w, port, packet, code)
#define walk_expect_silence(w, port)                                                               \
	walk_equal(__FILE__, __LINE__, "frames sent", walk_count(w, port), "none", 0)
/* Both return whether the frame was as expected. */
bool walk_answered(const char *file, int line, struct walk *w, unsigned int port,
		   const struct packet *packet, const void *bytes, int n);
bool walk_noticed(const char *file, int line, struct walk *w, unsigned int port,
		  const struct packet *packet, uint8_t code);

/* --- counters ----------------------------------------------------------------------------------
 */

struct walk_drops {
	enum lb_drop reason;
	uint64_t n;
};

/*
 * Expects exactly these drops since the last call, over all lcores:
 * walk_expect_drops(w, {LB_DROP_FRAMING, 2}, {LB_DROP_NO_WORKER, 1}); or nothing:
 * walk_expect_no_drops(w).
 */
#define walk_expect_drops(w, ...)                                                                  \
	walk_dropped(__FILE__, __LINE__, w, (const struct walk_drops[]){__VA_ARGS__},              \
		     sizeof((const struct walk_drops[]){__VA_ARGS__}) / sizeof(struct walk_drops))
#define walk_expect_no_drops(w) walk_dropped(__FILE__, __LINE__, w, NULL, 0)
bool walk_dropped(const char *file, int line, struct walk *w, const struct walk_drops *drops,
		  size_t n);

/* Sums over all lcores; those of a service by its number. */
struct lb_lcore_stats walk_stats(const struct walk *w);
struct lb_service_stats walk_service_stats(const struct walk *w, unsigned int service);
/* Returns the flow of a packet's client on the first port, on any lcore; NULL: there is none. */
struct flow *walk_flow(struct walk *w, const struct packet *packet);

/* --- tables of rows --------------------------------------------------------------------------- */

/* One frame in, and what must come out after the workers, if there are any, have answered. */
struct walk_row {
	const char *name;
	struct packet in;
	enum { WALK_ECHO, WALK_NOTICE, WALK_SILENCE } out;
	uint8_t code; /* of the notice */
	bool dropped; /* then it is counted once as */
	enum lb_drop drop;
	unsigned int port; /* in and out */
};

/* Runs all rows on the same load balancer, one after the other. */
void walk_rows(struct walk *w, const struct walk_row *rows, size_t n);

#endif
