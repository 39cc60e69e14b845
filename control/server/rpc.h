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
	bool greeted;                /* an agent whose hello was accepted */
	struct worker *worker;       /* the worker that this agent registered, or NULL */
	uint64_t server_start_ms;    /* clock_now_ms() when the server started */
	const struct window *window; /* the server's, or NULL */
	struct refusals *refusals;   /* the server's, or NULL; notes this peer's refusals */
	char peer[80];               /* address and port, to be shown */
	uint16_t trace_service;      /* the service of the traced flow, once it is known */
	uint32_t lease_ms;           /* lease of <worker> */
	bool renewed;                /* the lease starts again; the timer's owner clears this */
	bool hung_up;                /* the peer closed the connection, or its process ended */
	bool ended;                  /* our side is ending all connections */
	bool attached; /* took over a worker; cleared when the former connection is ended */
	bool over; /* the worker was taken over or its name refused: no further line is handled */
	uint32_t capture; /* number of the capture that ends with this connection; 0: none */
	bool raw; /* the socket carries a capture's file from now on, and no more messages */
	uint32_t carried;  /* number of the capture that the socket carries; 0: none, close it */
	const char *names; /* the workers that its certificate allows (secure.h); NULL: any */
};

/*
 * Handle one line. Adds a complete JSON-RPC reply with the line's id to <reply>, on one line and
 * without its LF. Adds nothing when the line was a notification.
 */
void control_dispatch(struct control_connection *c, const char *line, size_t n, struct text *reply);

/* Make a reply with an error that answers no particular message. The caller owns it. */
json_t *control_error_reply(int code, const char *message);

/*
 * Release <c> after its peer is gone; its worker stays while its loop beats, unless c->ended. Call
 * once, last.
 */
void control_connection_closed(struct control_connection *c);

/*
 * Make the notification for <c> after its worker changed state; the caller owns it. Forgets the
 * worker when it is gone.
 */
json_t *control_worker_event(struct control_connection *c);

/* End the lease of <c>'s worker: its agent was not heard in time. */
void control_lease_end(struct control_connection *c);

/* --- what handlers use -------------------------------------------------------------------- */

/* One method call. */
struct control_call {
	struct control_connection *c;
	json_t *params; /* an object */
	int code;       /* 0 = no error yet */
	char message[512];
	/* One member of the result, already as JSON text; none while it is empty. */
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
	CONTROL_NAMES,   /* as CONTROL_LIST, with elements that are strings */
	CONTROL_MAP,     /* an object of min..max members that are strings, borrowed as well */
	CONTROL_OBJECT,  /* an object, borrowed as well */
	CONTROL_SHAPE,   /* an array of min..max integers of 32 bits, borrowed as well */
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

/* Name, offset and size: the first three members of a struct control_param. */
#define CONTROL_PARAM(object, member)                                                              \
#member, offsetof(struct object, member), sizeof(((struct object *)0)->member)

/*
 * Check <object> against <table> and fill <out>; absent members stay as they were. False after
 * control_fail() with a sentence that begins with <where>, names the field and says what to give.
 */
bool control_params_read(struct control_call *call, const char *where, const json_t *object,
			 const struct control_param *table, size_t n, void *out);

/*
 * Read params.description, as tensors.c does. False after control_fail() for what JSON can have
 * wrong: missing and unknown members, and types. The rest is for workers_spec_is_valid().
 */
bool tensors_read(struct control_call *call, const json_t *object, struct model_description *d);

#define CONTROL_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* --- handlers, one file per object --------------------------------------------------------- */

/* Returns the result, which the caller owns, or NULL after control_fail(). */
typedef json_t *control_handler(struct control_call *call);

control_handler control_flows_list, control_flows_show, control_flows_count, control_flows_top;
control_handler control_workers_list, control_workers_show, control_workers_drain;
control_handler control_workers_replace;
control_handler control_workers_assign, control_workers_release, control_workers_table;
control_handler control_workers_refused;
control_handler control_workers_set, control_workers_resume, control_workers_forget,
	control_workers_settings;
control_handler control_services_list, control_services_show;
control_handler control_models_list, control_models_show;
control_handler control_trace_start, control_trace_read, control_trace_stop;
control_handler control_capture_start, control_capture_data, control_capture_read,
	control_capture_stop;
control_handler control_log_show, control_log_level;
control_handler control_config_check, control_config_diff, control_config_apply;
control_handler control_stats_show, control_status_show, control_version;
control_handler control_agent_hello, control_agent_register, control_agent_ready,
	control_agent_drain, control_agent_renew, control_agent_attach;

/*
 * True when the peer may have a worker of this name. False after control_fail(), and the connection
 * ends.
 */
bool control_name_allowed(struct control_call *call, const char *name);
/* True when the peer may have its worker at this address and with this model. False as above. */
bool control_binding_allowed(struct control_call *call, const char *name,
			     const struct lb_address *address, const char *model);
bool control_version_fits(struct control_call *call, uint32_t version);

/*
 * Make sure that the name of <spec> is free. An agent that registers again takes over its own
 * worker, also when its former connection was not found dead yet. False after control_fail() when
 * the name is another agent's.
 */
bool control_claim_name(struct control_call *call, const struct worker_spec *spec);

/* Index of the service of this name, or -1. */
int control_service_find(const struct lb_config *config, const char *name);

enum control_state control_worker_state(const struct lb *lb, const struct worker *worker);
const char *control_worker_state_name(const struct lb *lb, const struct worker *worker);
/* Ms since the last heartbeat of the slowest link; -1 until every link had one. */
int64_t control_heartbeat_age(const struct lb *lb, const struct worker *worker);
/* Make a result of <call> with everything about <worker>. */
json_t *control_worker_page(struct control_call *call, const struct worker *worker);
/* Write one worker as an element of an array. */
typedef void control_worker_writer(struct json_writer *w, struct lb *lb,
				   const struct worker *worker);
/* Make the result of a <call> without parameters: an array with one element per worker. */
json_t *control_workers_write(struct control_call *call, control_worker_writer *write);

#endif
