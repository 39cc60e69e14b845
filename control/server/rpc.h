/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pure half of control: a line in, a reply out, no sockets. For this folder, its unit tests and
 * the fuzzer.
 *
 * Facade of rpc.c, params.c, lease.c, worker_row.c and the cmd_*.c files that share functions.
 */
#ifndef CONTROL_RPC_H
#define CONTROL_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/control.h"
#include "protocol/json_writer.h"
#include "lb.h"
#include "server/refusals.h"
#include "protocol/text.h"
#include "protocol/worker_state.h"
#include "runtime/clock.h"
#include "server/window.h"

/* A reader is an operator on the read-only socket. */
enum control_role { CONTROL_OPERATOR, CONTROL_READER, CONTROL_AGENT, CONTROL_ROLES };

/* One peer. Owned by the code that reads its lines: stream.c, a test, the fuzzer. */
struct control_connection {
	struct lb *lb;
	enum control_role role;
	bool greeted;                /* an agent that said a good hello */
	struct worker *worker;       /* the one that this agent registered, or NULL */
	uint64_t server_start_ms;    /* clock_now_ms() when the server started */
	const struct window *window; /* the server's, or NULL */
	struct refusals *refusals;   /* the same: it is noted there when it may not register */
	char peer[80];               /* for people */
	uint16_t trace_service; /* of the flow of the trace that it reads, once that is known */
	uint32_t lease_ms;      /* of <worker>; 0: as long as the connection */
	bool renewed;           /* the lease begins anew; the owner of the timer clears it */
	bool hung_up;           /* the peer closed the connection, or its process ended */
	bool ended;             /* we end all connections */
	bool attached; /* it took a worker over; cleared when the former connection is ended */
	bool over;     /* its worker was taken over, or its name refused: nothing more is taken */
	uint32_t capture;  /* the one that ends with this connection; 0: none */
	bool raw;          /* it carries a capture's file from now on, and no more messages */
	uint32_t carried;  /* which one's; 0: none, it is to be closed */
	const char *names; /* the workers that its certificate allows (secure.h); NULL: any */
};

/*
 * Handle one line. Adds the reply to <reply>, complete JSON-RPC with the line's id on one line but
 * without its end; nothing when the line was a notification.
 */
void control_dispatch(struct control_connection *c, const char *line, size_t n, struct text *reply);

/* A reply with an error that answers no particular message. The caller owns it. */
json_t *control_error_reply(int code, const char *message);

/* The peer is gone; its worker stays while its loop beats, unless c->ended. Call once, last. */
void control_connection_closed(struct control_connection *c);

/*
 * The notification for <c> when its worker changed state; the caller owns it. Forgets the worker
 * when it is gone.
 */
json_t *control_worker_event(struct control_connection *c);

/* The agent was not heard for the time of its lease. */
void control_lease_end(struct control_connection *c);

/* --- what handlers use -------------------------------------------------------------------- */

/* One method call. */
struct control_call {
	struct control_connection *c;
	json_t *params; /* an object */
	int code;       /* 0 = no error yet */
	char message[512];
	/* A member of the result that is written as it shall be sent; none while it is empty. */
	const char *written_name;
	struct text written;
};

/* Set the call's error. Returns NULL, so that a handler can return it. */
json_t *control_fail(struct control_call *call, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum control_type {
	CONTROL_INTEGER, /* min..max, into an unsigned integer of any size */
	CONTROL_TEXT,    /* 1 to size - 1 bytes without control characters, into a char array */
	CONTROL_HEX64,   /* 16 digits, into a uint64_t */
	CONTROL_ADDRESS, /* into a struct lb_address */
	CONTROL_BOOLEAN, /* into a bool */
	CONTROL_LIST,    /* an array of min..max elements, borrowed into a const json_t * */
	CONTROL_NAMES,   /* the same of strings */
	CONTROL_MAP,     /* an object of min..max members that are strings, borrowed too */
	CONTROL_TYPES,
};

/* One member of a params object, and where its value goes. */
struct control_param {
	const char *name;
	size_t offset, size;
	enum control_type type;
	bool required;
	uint64_t min, max;
};

/* The first three of them. */
#define CONTROL_PARAM(object, member)                                                              \
#member, offsetof(struct object, member), sizeof(((struct object *)0)->member)

/*
 * Check <object> against <table> and fill <out>; absent members stay as they were. False after
 * control_fail() with a sentence that names the field, <where> first, and says what to give.
 */
bool control_params_read(struct control_call *call, const char *where, const json_t *object,
			 const struct control_param *table, size_t n, void *out);

#define CONTROL_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* --- handlers, one file per object --------------------------------------------------------- */

/* Return the result, which the caller owns, or NULL after control_fail(). */
typedef json_t *control_handler(struct control_call *call);

control_handler control_flows_list, control_flows_count, control_flows_top;
control_handler control_workers_list, control_workers_show, control_workers_drain;
control_handler control_workers_assign, control_workers_release, control_workers_table;
control_handler control_workers_refused;
control_handler control_workers_set, control_workers_resume, control_workers_forget,
	control_workers_settings;
control_handler control_services_list, control_services_show;
control_handler control_trace_start, control_trace_read, control_trace_stop;
control_handler control_capture_start, control_capture_data, control_capture_read,
	control_capture_stop;
control_handler control_log_show, control_log_level;
control_handler control_config_check, control_config_diff, control_config_apply;
control_handler control_stats_show, control_status_show, control_version;
control_handler control_agent_hello, control_agent_register, control_agent_ready,
	control_agent_drain, control_agent_renew, control_agent_attach;

/* May this peer have a worker of this name? False after control_fail(), and the connection ends. */
bool control_name_allowed(struct control_call *call, const char *name);
/* And at this address, with this model? The same. */
bool control_binding_allowed(struct control_call *call, const char *name,
			     const struct lb_address *address, const char *model);
bool control_version_fits(struct control_call *call, uint32_t version);

/*
 * Make sure that the name of <spec> is free: an agent that registers again takes over, also while
 * its former connection has not been found dead. False after control_fail() when it is another's.
 */
bool control_claim_name(struct control_call *call, const struct worker_spec *spec);

/* Index of the service of this name, or -1. */
int control_service_find(const struct lb_config *config, const char *name);

enum control_state control_worker_state(const struct lb *lb, const struct worker *worker);
const char *control_worker_state_name(const struct lb *lb, const struct worker *worker);
/* Ms since its last heartbeat, of its slowest link; -1 while one of them never had any. */
int64_t control_heartbeat_age(const struct lb *lb, const struct worker *worker);
/* The result of <call> is all about <worker>. */
json_t *control_worker_page(struct control_call *call, const struct worker *worker);
/* Writes one element of the array of workers. */
typedef void control_worker_writer(struct json_writer *w, struct lb *lb,
				   const struct worker *worker);
/* The result of <call>, which takes no parameters, is an array with an element per worker. */
json_t *control_workers_write(struct control_call *call, control_worker_writer *write);

#endif
