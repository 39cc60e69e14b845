/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of the stream framings (private to lb/): find the requests in a TCP stream, and write what
 * goes around their replies. Pure.
 *
 * A framing reads in order: headers, and bytes that it converts. When a header says that the next
 * bytes of the stream belong to a request, the framing names them by their positions in the stream
 * (STREAM_EXTENT) and continues behind them. The owner of the connection puts the bytes of an
 * extent in their place as they arrive, in order or not. So payload passes through no framing and
 * is never copied.
 *
 *   position            a byte's number in the stream: the client's first is 0
 *   stream->position    the next byte that read() is to be shown; the owner needs none of the bytes
 *                       before it that lie in no extent
 *   stream->requests    requests so far, valid or not; each has its number from 0 on
 *
 * One request causes one of these sequences of actions; actions of other requests may come between
 * them:
 *
 *   REQUEST                                       a request whose bytes are the next of the stream:
 *                                                 stands for BEGIN EXTENT END
 *   BEGIN  (EXTENT | PRODUCE | SEND)*  END        a request; a CANCEL may come later
 *   BEGIN  (EXTENT | PRODUCE | SEND)*  REFUSE     it proves invalid: its bytes are dropped
 *   BEGIN  (EXTENT | PRODUCE | SEND)*  CANCEL     the client gives up half-way: as above
 *   REFUSE                                        its header shows that it is invalid
 *   SEND+                                         answered by the framing: the last has .ends
 *
 * The bytes of a request, by extents and produced, cover it from 0 to its size without gap or
 * overlap, in any order.
 * Each request gets one answer, also when refused or cancelled: the owner calls reply() to write
 * it. If the framing is <in_order>, the owner sends answers, and the bytes that SEND has for a
 * request, in the order of requests.
 *
 * A struct stream belongs to the thread that owns its connection.
 */
#ifndef LB_STREAM_H
#define LB_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define STREAM_SIZE_UNKNOWN UINT64_MAX /* of a request: known at its end */
#define STREAM_CLOSED       UINT64_MAX /* position after STREAM_CLOSE: no byte is needed */
#define STREAM_ACTIONS_MIN  4          /* room that read() wants; with less it does nothing */
#define STREAM_HEADER_MAX   24         /* bytes of a header that struct stream can keep */
#define STREAM_HEAD_MAX     768        /* bytes that reply() writes at most, of any framing */

struct kserve_room;

/* A service's limits. Passed with each call, because a reload replaces them. */
struct stream_settings {
	uint64_t max_request;       /* bytes */
	struct kserve_room *kserve; /* kserve_room.h: memory of that framing; others do not look */
};

enum stream_action_kind {
	STREAM_REQUEST, /* a request whose bytes are in a row and all named: .whole */
	STREAM_BEGIN,   /* a request: .begin */
	STREAM_EXTENT,  /* these positions of the stream hold bytes of it: .extent */
	STREAM_PRODUCE, /* bytes of it that are not in the stream: .bytes */
	STREAM_END,     /* all its bytes are named, though they may not have come: .size */
	STREAM_REFUSE,  /* no valid request: .refuse says what to answer, and what to count */
	STREAM_CANCEL,  /* the client does not want the reply of its open request .tag */
	STREAM_SEND,    /* bytes for the client that no worker wrote: .bytes */
	STREAM_CLOSE,   /* nothing more can be read: close when all that is open is answered */
};

struct stream_begin {
	uint64_t size;        /* bytes at most: END says how many; or STREAM_SIZE_UNKNOWN */
	uint64_t tag;         /* the framing's name for it; comes back in stream_reply */
	uint32_t session;     /* hash: requests of one go to one worker, where the service is
				 sticky; 0: those of the connection do */
	uint32_t deadline_us; /* 0: the service's */
	/* 0: one request. Else it is so many of <size> / <rows> bytes, one behind the other, which
	 * workers get one by one; the reply is theirs in the same order. With <rows_differ> each
	 * ends where <row_ends> of struct kserve_room says, until the next call. */
	uint16_t rows;
	uint16_t service; /* 1 + the number of the one that it is for; 0: the connection's */
	uint8_t priority; /* 0: the service's */
	/* Its reply may come in pieces, which leave as they come: silence in between is filled by
	 * beat(), and its deadline is looked at all the time. */
	bool streams;
	bool rows_differ;
};

struct stream_action {
	uint8_t kind;     /* enum stream_action_kind */
	uint32_t request; /* its number, modulo 2^32; of CANCEL and CLOSE: 0 */
	union {
		struct stream_begin begin;
		struct {
			struct stream_begin begin; /* its size is known */
			uint64_t position;         /* of its first byte, in the stream */
		} whole;
		struct {
			uint64_t position; /* of the first byte, in the stream */
			uint64_t offset;   /* of the first byte, in the request */
			uint64_t length;   /* never 0 */
		} extent;
		struct {
			const uint8_t *at; /* valid until the next call for this stream */
			union {
				uint64_t offset; /* of PRODUCE: in the request */
				uint64_t tag;    /* of SEND that <watches>: of its request */
			};
			/* 0, or of PRODUCE: <offset> is in a tensor of which each row has so many
			 * bytes, from <within> on of rows of <row> bytes */
			uint32_t each, within, row;
			uint32_t length;
			bool of_request; /* of SEND: false: <request> is 0, and the bytes may go at
					    once */
			bool ends;       /* of SEND: with it the request is answered, */
			bool watches;    /* but more of its answer may follow: watch() says when */
		} bytes;
		struct {
			uint64_t tag;
			uint8_t notice; /* enum lb_notice */
			uint8_t reason; /* enum lb_drop */
		} refuse;
		uint64_t size;  /* of END */
		uint64_t tag;   /* of CANCEL */
		uint8_t reason; /* of CLOSE: enum lb_drop, if that is to be counted; 0: not */
	};
};

/* A framing's state for one connection. Zeroed memory is a stream of which nothing has arrived. */
struct stream {
	uint64_t position;
	uint32_t requests; /* modulo 2^32 */
	uint32_t got;      /* bytes of <header>: 0 when the client is between headers */
	union {
		uint8_t header[STREAM_HEADER_MAX]; /* the part of a header that came */
		struct {
			void *own;  /* state of framings that need more, */
			void *open; /* and of their open requests; release() gives both back */
		};
	};
};
_Static_assert(sizeof(struct stream) <= 64, "part of an idle connection");

/*
 * One chunk of an answer. A reply that the worker sends at once is one chunk. A notice is an answer
 * without bytes; it can also end a reply of which chunks were sent.
 */
struct stream_reply {
	uint32_t request; /* number and tag of its BEGIN or REFUSE */
	uint64_t tag;
	uint32_t chunk;  /* its number in the reply, from 0 on */
	uint32_t length; /* bytes of the chunk */
	uint32_t taken;  /* bytes of them in pieces so far; 0 before the first call, then kept by
			    reply() */
	/* of a request with rows: how many, and where each one's bytes end */
	uint32_t rows;
	const uint32_t *ends;
	uint32_t failed; /* of a notice: the row that it is about, from 1 on; 0: all */
	uint8_t notice;  /* enum lb_notice; 0: a reply */
	bool more;       /* chunks of this reply follow */
};

/* The next bytes to send: <head> bytes that the framing wrote, then <bytes> bytes of the chunk. */
struct stream_piece {
	uint32_t head;
	uint32_t bytes;
	/* The piece completes its chunk. An empty piece that does not means that the client takes
	 * nothing now: call again after the next read(). */
	bool last;
	bool closes; /* it was the last answer of its stream: the connection closes behind it */
};

/* The result of rewrite(). */
struct stream_rewritten {
	uint32_t length; /* bytes that it wrote */
	bool done;
	bool keeps; /* with <done>: the chunk follows as it is */
	bool waits; /* with <done>: what the next chunk gives is sent together with it; no reply()
		       now */
};

/*
 * The next thing that a framing sends whose answers share the connection, piece by piece: <head>
 * bytes of its own, then the next <bytes> bytes of the answer of <request>.
 */
struct stream_emitted {
	const uint8_t *head_at; /* valid until the next call for this stream */
	uint32_t head, bytes;
	uint32_t request;
	bool ends;    /* the request is over: nothing more of its answer is sent */
	bool cancels; /* with <ends>: it is not answered, and the client does not want it: */
	uint64_t tag; /* its tag */
	bool closes;  /* nothing more is read or sent: the connection closes */
	bool fault;   /* with <closes>: the client has sent what it may not */
};

struct stream_framing {
	const char *name;
	bool in_order;     /* answers go in the order of requests */
	uint32_t head_max; /* bytes that reply() writes at most */

	/*
	 * Read the <length> bytes of the stream from its position on, all of which lie in order.
	 * Writes at most <max> actions and returns how many; with STREAM_ACTIONS_MIN of room it
	 * stops behind one header. The owner calls again with the bytes from the new position on,
	 * as long as there are any; the result 0 means that more bytes are needed.
	 */
	unsigned int (*read)(struct stream *s, const struct stream_settings *settings,
			     const uint8_t *bytes, uint32_t length, struct stream_action *actions,
			     unsigned int max);

	/*
	 * Of framings that can tell at a glance; others have NULL. Are the <length> bytes of the
	 * stream from its position on, all of which have come, a valid request and nothing else?
	 * Then it is taken: writes what read() would say of it, and returns the bytes of the header
	 * in front of it. Else returns 0, and nothing has changed.
	 */
	uint32_t (*whole)(struct stream *s, const struct stream_settings *settings,
			  const uint8_t *bytes, uint32_t length, struct stream_begin *begin);

	/* Write the head of the next piece of <reply>'s chunk to <at>, head_max bytes of room.
	 * Called until it returns the chunk's last piece. */
	struct stream_piece (*reply)(struct stream *s, struct stream_reply *reply, uint8_t *at);

	/*
	 * Of framings with rewrite(): does all of this reply, of one chunk, pass as it is behind
	 * the head that reply() writes? Then rewrite() is not called. NULL: none does.
	 */
	bool (*keeps)(struct stream *s, const struct stream_reply *reply);

	/*
	 * Of framings that do not send a worker's bytes as they are; others have NULL. Called
	 * before reply(), until it is done: takes from <bytes>, the <length> bytes of the chunk
	 * from reply->taken on that lie in a row, and writes to <at>. reply->taken says which byte
	 * of the chunk it wants next, also one before. If the chunk cannot be written it sets
	 * reply->notice, and what it wrote is dropped. Then reply() writes the head in front of it
	 * all.
	 */
	struct stream_rewritten (*rewrite)(struct stream *s, struct stream_reply *reply,
					   const uint8_t *bytes, uint32_t length, uint8_t *at,
					   uint32_t room);

	/*
	 * Of framings whose clients want to hear something while a reply in pieces is silent;
	 * others have NULL. Writes it to <at>, head_max bytes of room, for the request of this tag,
	 * which was begun with <streams>. Returns its length; 0: nothing now.
	 */
	uint32_t (*beat)(struct stream *s, uint64_t tag, uint8_t *at);

	/*
	 * Of framings with requests that watch; others have NULL. Called when something that they
	 * watch may be another, for the request of this tag, but not while bytes of its answer
	 * wait. With <ends>: no further answer is taken of it, as the load balancer stops. Writes
	 * what the client is told to <at>, head_max bytes of room. Returns its length; 0: nothing.
	 */
	uint32_t (*watch)(struct stream *s, const struct stream_settings *settings, uint64_t tag,
			  bool ends, uint8_t *at);

	/*
	 * Of framings that decide what is sent when; others have NULL. The owner keeps the bytes of
	 * answers, behind the heads that reply() wrote, until this asks for them: it calls after
	 * read(), after reply(), and when the client has taken bytes, until the result is false:
	 * nothing may be sent now. A request is over when this says so.
	 */
	bool (*emit)(struct stream *s, struct stream_emitted *out);

	/* Tell the client that no more requests are taken; the last emit() closes. NULL: there is
	 * no such thing, and closing is not reading. */
	void (*drain)(struct stream *s);

	/*
	 * Of a name that stands for several framings, which the first bytes tell apart; others have
	 * NULL. Called until it returns another framing than its own, instead of read(); moves the
	 * position behind the bytes that it has seen.
	 */
	const struct stream_framing *(*choose)(struct stream *s, const uint8_t *bytes,
					       uint32_t length);

	/* The connection ends: give back what read() has taken. NULL: there is nothing. */
	void (*release)(struct stream *s);
};

/*
 * `length`: a request is its length, u32 little-endian, and then that many bytes. Its answer:
 *
 *   0  4  length of what follows the status
 *   4  4  status: 0 the reply, or its last chunk; 256 a chunk, and more of this reply follow;
 *         1 to 255 a notice (notice.h) in place of the reply, or of the rest of it; length 0
 *   8     the reply's bytes
 *
 * Both words are u32, little-endian. Answers come in the order of requests. A length of 0, and one
 * above max_request, is answered by a notice; the connection lives.
 */
extern const struct stream_framing stream_length;
#define STREAM_LENGTH_MORE 256

/* `tagged`: the header of packet/request.h in front of everything; answers come in any order. */
extern const struct stream_framing stream_tagged;

/* `kserve`: KServe's protocol, version 2, over HTTP/1.1 or as gRPC; lb/kserve/README.md says what
 * of it. stream_kserve_any tells which of both a new connection speaks. */
#define STREAM_PREFACE "PRI" /* how HTTP/2 begins, and no method of HTTP/1.1 */
extern const struct stream_framing stream_kserve_any;
extern const struct stream_framing stream_kserve;
extern const struct stream_framing stream_grpc;

#endif
