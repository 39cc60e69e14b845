/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of Doorbell: requests to a service over UDP or TCP, with deadlines, cancels and retries.
 * Needs libc and POSIX sockets only. Installed as <doorbell_client.h> with libdoorbell-client,
 * which `pkg-config doorbell-client` finds; the two files may as well be copied into another
 * program.
 *
 *   blocking     open, call, call, ..., close
 *   event loop   open; submit as often as wanted; poll what wants() says; process(); finished()
 * until it returns NULL; ...; close
 *
 * A struct doorbell_client belongs to one thread at a time; there is no other state. open()
 * allocates all memory that the client ever takes. The memory of a request, of its bytes and of its
 * reply is the caller's, and stays where it is from submit() until the request is over.
 */
#ifndef DOORBELL_CLIENT_H
#define DOORBELL_CLIENT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doorbell_client;

enum doorbell_protocol {
	DOORBELL_UDP,
	DOORBELL_TCP,
};

/* As the service's `framing` in the load balancer's configuration says. */
enum doorbell_framing {
	DOORBELL_TAGGED, /* UDP or TCP: ids, priorities, deadlines, cancels; answers in any order */
	DOORBELL_DATAGRAM, /* UDP: the bytes alone. A reply can be told by its socket only, so
			      requests go one at a time, each from a socket of its own */
	DOORBELL_LENGTH,   /* TCP: a length in front; answers in the order of requests */
};

/*
 * How a request ended. 1 to 255 are notices of the load balancer, by their code; one that is not
 * listed here is treated as DOORBELL_TIMEOUT. The column says whether a worker ran the request.
 */
enum doorbell_status {
	DOORBELL_PENDING = -1,
	DOORBELL_OK = 0,          /* yes      the reply is there */
	DOORBELL_BUSY = 1,        /* no       no room or no worker: retried */
	DOORBELL_TIMEOUT = 2,     /* perhaps  the worker did not answer: retried if idempotent */
	DOORBELL_WORKER_LOST = 3, /* perhaps  the worker died: retried if idempotent */
	DOORBELL_MODEL_ERROR = 4, /* perhaps  the model refused it or failed */
	DOORBELL_EXPIRED = 5,     /* no       the deadline passed before the model ran */
	DOORBELL_CANCELLED = 6,   /* perhaps  by doorbell_client_cancel(), or by close() */
	DOORBELL_DEADLINE = 7,    /* perhaps  cannot be, or was not, answered by the deadline */
	DOORBELL_MALFORMED = 8,   /* no       the service has another framing */
	DOORBELL_STOPPING = 9,    /* no       the load balancer ends: retried */
	DOORBELL_TOO_LARGE = 10,  /* no       longer than the service or the network allows */
	DOORBELL_NO_ANSWER = 256, /* perhaps  nothing came: retried over UDP if idempotent */
	DOORBELL_NOT_SENT = 257,  /* no       not connected, or not written to the end: retried */
	DOORBELL_DISCONNECTED =
		258,                /* perhaps  the connection ended first: retried if idempotent */
	DOORBELL_PROTOCOL = 259,    /* perhaps  the peer sent what is not in the framing */
	DOORBELL_REPLY_LARGE = 260, /* yes      the reply has more than <reply_size> bytes */
	DOORBELL_REPLY_CUT = 261,   /* yes      UDP: a chunk of the reply was lost */
};

enum doorbell_ran {
	DOORBELL_NEVER_RAN, /* no worker ran it: sending it again does no harm */
	DOORBELL_MAY_HAVE_RUN,
	DOORBELL_RAN,
};

/* Zero is the default of each. */
struct doorbell_options {
	enum doorbell_protocol protocol;
	enum doorbell_framing framing;
	uint32_t in_flight;  /* requests sent and not answered, at most; others wait here. 64 */
	uint32_t connect_ms; /* how long a connection may take to open, per address. 3000 */
	uint32_t silence_ms; /* TCP: no answer came for so long although something should: the
				connection is given up. 15000 */
	uint32_t backoff_ms; /* wait before the first retry, then twice as long each time; a random
				part of up to a half is taken off. 100 */
	uint32_t backoff_max_ms; /* 3000 */
	uint64_t max_reply; /* TCP: bytes; a chunk that claims more ends the connection. 1 GiB */
};

/* Zeroed memory, then what the caller wants to set. */
struct doorbell_request {
	/* The caller's. */
	const void *data;
	size_t length; /* not 0 */
	void *reply;   /* room for the reply */
	size_t reply_size;
	uint32_t deadline_ms; /* from submit(), over all tries. The load balancer gets what is left
				 of it (tagged). 0: the service's, and 12 s here */
	uint32_t retries; /* how often it may be sent again, see enum doorbell_status. A request of
			     whose reply a chunk has come is not sent again. 0: never */
	uint32_t try_ms;  /* UDP, idempotent: a try without an answer ends after this, and the next
			     one begins. 0: deadline_ms in equal parts */
	uint8_t priority; /* tagged: 1 (first) to 4 (last). 0: the service's */
	bool idempotent;  /* running it twice does no harm */
	void *context;    /* not looked at */

	/* The library's; to be read. */
	int status;          /* enum doorbell_status, or another notice's code */
	size_t reply_length; /* bytes of the reply so far, those that found no room included */
	uint32_t chunks;     /* complete chunks of it so far; grows while DOORBELL_PENDING */
	uint32_t tries;      /* how often it was sent, or a connection for it was tried */

	/* The library's own. */
	struct doorbell_request *next, **link;
	int64_t deadline, due;
	uint64_t id;
	uint32_t slot;
	int answer;
	uint8_t place;
};

struct doorbell_counters {
	uint64_t sent, replies, notices, retries, connections;
	uint64_t
		ignored; /* answers that no request waits for: late, double, never asked, garbled */
};

#define DOORBELL_ERROR_SIZE 160

/*
 * Make a client of the service at <address>: "10.0.0.10:8500", "[fd00::10]:8500", "name:8500".
 * Names are looked up here, which may block, and only here; all of a name's addresses are tried in
 * turn. A TCP connection is opened with the first request, and again with the next one after it
 * ended. <options> may be NULL. NULL with a sentence in <error> (DOORBELL_ERROR_SIZE bytes, or
 * NULL).
 */
struct doorbell_client *doorbell_client_open(const char *address,
					     const struct doorbell_options *options, char *error);

/* Pending requests end as DOORBELL_CANCELLED, without a word to the load balancer. NULL is allowed.
 */
void doorbell_client_close(struct doorbell_client *client);

/* Submit <request> and wait until it is over; others of this client go on meanwhile. Returns its
 * status, or -EINVAL as submit(). finished() does not return it. */
int doorbell_client_call(struct doorbell_client *client, struct doorbell_request *request);

/* Begin a request, without blocking. 0; -EINVAL: nothing to send, a wrong priority, or the request
 * is pending, or over and not yet taken from finished(). */
int doorbell_client_submit(struct doorbell_client *client, struct doorbell_request *request);

/* End a pending request at once as DOORBELL_CANCELLED, and with `tagged` tell the load balancer; it
 * is the caller's again, and finished() does not return it. One of which a part has been written to
 * a TCP connection costs that connection. Does nothing to a request that is over. */
void doorbell_client_cancel(struct doorbell_client *client, struct doorbell_request *request);

/* Fill in the descriptor to poll (it changes; -1: none) and the events to wait for. Returns after
 * how many ms process() wants to be called all the same; -1: not before an event. */
int doorbell_client_wants(struct doorbell_client *client, struct pollfd *pollfd);

/* Do all that can be done without waiting: read, write, retry, end what is too late. */
void doorbell_client_process(struct doorbell_client *client);

/* Take the next request that is over; NULL: none. */
struct doorbell_request *doorbell_client_finished(struct doorbell_client *client);

/* "busy", "no answer": a word or two, valid for ever. */
const char *doorbell_client_text(int status);
enum doorbell_ran doorbell_client_ran(int status);

/* The last thing that went wrong with a connection, as a sentence; "" if nothing did. */
const char *doorbell_client_error(const struct doorbell_client *client);
struct doorbell_counters doorbell_client_counters(const struct doorbell_client *client);

#ifdef __cplusplus
}
#endif

#endif
