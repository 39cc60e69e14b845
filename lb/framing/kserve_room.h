/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An lcore's memory for the framing `kserve`, of a fixed size: readers, which requests have until
 * their last header or value was read; what is remembered of a request until it is answered; and
 * the models that they are for. Private to lb/framing and to the owner of the connections, which
 * fills in what concerns a call.
 */
#ifndef LB_KSERVE_ROOM_H
#define LB_KSERVE_ROOM_H

#include <sys/queue.h>

#include "description.h"
#include "framing/stream.h"
#include "grpc/infer.h"
#include "http/chunked.h"
#include "http/response.h"
#include "kserve/answer.h"
#include "kserve/elements.h"
#include "kserve/infer.h"
#include "kserve/model.h"

#define KSERVE_SLICE    2048 /* bytes of text that a call reads or writes at most */
/* Bytes of text that take as long as the owner needs to begin a row, and to give it its packet. */
#define KSERVE_ROW_WORK 8
#define KSERVE_HELD_MAX 4096 /* bytes of a request that are kept until its JSON was read */
#define KSERVE_DOCUMENT 32768
/* Requests and heads of replies that are remembered; bytes of such a request without its tensors.
 */
#define KSERVE_SEEN_SETS 16
#define KSERVE_SEEN_WAYS 4
#define KSERVE_SEEN_TEXT 1024
#define KSERVE_FRONT     32

#define KSERVE_ROWS_MAX 256 /* of a batch */

#define KSERVE_WATCHES           128 /* calls of Watch that are open at a time, */
#define KSERVE_WATCHES_OF_CLIENT 16  /* and those of a client */

#define KSERVE_CLIENT_GONE 499 /* status of a request whose client did not wait for its answer */

/* A model as it was when requests for it came. */
struct kserve_layout {
	struct kserve_layout *next; /* of the free ones */
	uint32_t users;             /* open requests; and one while it is a service's */
	uint64_t number;            /* no other one has it, also later */
	struct model_description description;
	uint32_t max_rows;
	struct kserve_model model;
};

/* A call that is told when a model gains its first worker, or loses its last one. */
struct kserve_watch {
	struct kserve_watch *next;  /* of the free ones */
	char name[KSERVE_NAME_MAX]; /* of the model; "": all of the address */
	uint8_t said;               /* enum grpc_health: what it was told last */
};

/* A client's part of the room. Its owner keeps it; it outlives all that is counted in it. */
struct kserve_share {
	uint32_t readers, asked, watches;
	uint32_t session_bytes; /* of its sessions of HTTP/2 */
};

/* Bytes of a body, and their place in the request. */
struct kserve_range {
	uint64_t offset, length;
	/* of a batch: bytes of a row, and those of the present one that are to come; bytes from the
	 * end of one to the beginning of the next */
	uint64_t each;
	union {
		struct {
			uint64_t left, skip;
		};
		/* of a tensor of BYTES, which is a range of its own without <each>: how many, and
		 * its place in the request and in the model */
		struct {
			uint64_t elements;
			uint8_t input, place;
			bool begun; /* its elements are followed */
		};
	};
};

/* The kind of answer that a request gets. */
enum kserve_mode {
	KSERVE_ANSWERS_TENSORS,
	KSERVE_ANSWERS_TEXT,   /* generate: one object */
	KSERVE_ANSWERS_EVENTS, /* generate_stream: one for each piece */
};

/* A body, until its last byte was read. */
struct kserve_body {
	uint64_t left; /* bytes of it, or of the chunk that is open, that were not read */
	uint32_t request;
	bool chunked;
	bool broken;  /* where it ends is not known */
	bool awaited; /* the client waits for 100 Continue */
	bool skips;   /* the request was answered */
	bool ended;   /* its last chunk was read */
	struct http_chunked chunks;
	/* behind the JSON */
	bool grows; /* chunks say how long the request is; in steps of <unit> bytes */
	uint64_t unit;
	uint64_t size;   /* of the request */
	uint64_t wanted; /* bytes of ranges that are not named yet */
	uint8_t range;   /* the next one */
	uint16_t of_elements; /* bit per range: it is of BYTES */
	/* not cleared */
	struct kserve_range range_of[KSERVE_TENSORS_MAX];
	struct kserve_elements elements; /* of the range that has begun */
};

/* An infer request from the end of its head until its answer was written. */
struct kserve_asked {
	struct kserve_asked *next; /* of its connection, or of the free ones */
	struct kserve_room *room;
	struct kserve_share *share;
	struct kserve_layout *layout; /* NULL: it was refused before a model was found */
	uint32_t number;              /* of the request */
	uint32_t max_request;         /* bytes, of its service */
	uint64_t json_length;         /* of the answer; of one with binary outputs */
	struct kserve_writer writer;
	uint32_t part_taken; /* bytes of the output that is written which were taken */
	/* of a reply: it is known where its outputs are; before that, the length that is looked
	 * for: where it is, bytes of it so far, elements of the output that are to come, bytes of
	 * those before, and the row */
	bool found, scanning;
	bool rows_fit; /* all rows of it have as many bytes */
	uint8_t scan_output, scan_got;
	uint8_t scan_word[4];
	uint32_t scan_at, scan_left, scan_bytes, scan_row;
	uint32_t scanned[KSERVE_TENSORS_MAX]; /* bytes of outputs of BYTES, of a row */
	uint16_t status;     /* that it was refused with; 0: it was not */
	uint16_t binary;     /* bit per output asked for */
	uint8_t outputs;     /* asked for; their places in the model: */
	uint8_t output[KSERVE_TENSORS_MAX];
	uint8_t part; /* the output that is written */
	const struct kserve_front *front; /* of its answer, whose bytes pass as they are */
	uint8_t minor;
	bool keep_alive;
	bool is_head; /* the method: its answer has no body */
	uint8_t mode; /* enum kserve_mode */
	bool streaming; /* of events: the head was sent */
	bool reading; /* its body is */
	bool answered;
	bool has_id;
	uint8_t id_length;
	const char *allow;
	/* of a request by gRPC */
	void *call;                  /* its struct grpc_stream; NULL: it has ended */
	struct kserve_asked *queued; /* the next whose answer is sent in the call */
	uint64_t written;            /* bytes of its answer's message so far */
	uint64_t to_send;            /* those that nghttp2 has not asked for */
	bool told;                   /* the owner knows of it */
	uint64_t said;               /* bytes of an answer in pieces so far */
	bool says_final;             /* an empty answer follows the last one */
	struct kserve_watch *watch;  /* more of its answer may follow; NULL: nothing else does */
	/* for who is told of requests */
	const char *endpoint; /* a constant; NULL: there is none */
	uint64_t bytes_in;    /* of its body, or message, as far as that is known */
	uint16_t service;     /* the one of its model, if <has_service> */
	bool is_grpc, has_service;
	struct kserve_body body;
	/* not cleared, but for the error's first byte */
	char id[KSERVE_ID_MAX];
	char error[KSERVE_ERROR_MAX];
};

enum kserve_reading {
	KSERVE_READS_HEAD,
	KSERVE_READS_JSON,
	KSERVE_READS_RAW,  /* the first bytes of a raw body in chunks */
	KSERVE_READS_ROWS, /* binary tensors of rows that differ in length */
};

/* A request whose head or JSON is being read. */
struct kserve_reader {
	TAILQ_ENTRY(kserve_reader) entry; /* of those in use, the oldest first; or of the free */
	struct kserve_room *room;
	struct kserve_share *share;
	void *owner;       /* the connection's, as in the room */
	uint32_t since_ms; /* when it was taken, or had read a good part since */
	uint32_t progress; /* bytes since then */
	uint8_t reading;   /* enum kserve_reading */
	uint8_t ahead;     /* bytes read beyond the stream's position */
	bool begun;        /* BEGIN was said */
	struct kserve_asked *asked;
	uint64_t json_left; /* bytes of it that were not read; UINT64_MAX: up to the body's end */
	uint64_t rows;
	uint32_t row_most; /* bytes of the longest of rows that differ; 0: they do not */
	uint64_t bytes_of[KSERVE_TENSORS_MAX]; /* of the model's inputs, by place */
	uint16_t known, seen;                  /* bit per place: its bytes are; it came */
	uint8_t place[KSERVE_TENSORS_MAX];     /* of the request's inputs in the model */
	struct kserve_run run;
	struct kserve_infer infer;
	struct grpc_infer grpc;
	struct kserve_elements elements; /* of raw_input_contents that come: of BYTES */
	uint8_t raw_input;               /* the request's input that they are of */
	struct http_head head;
	uint64_t text_from;   /* position of the request in its stream */
	uint64_t raw_at;      /* and of the first byte of raw_input_contents; 0: none came */
	uint32_t text_length; /* the first bytes of it that are kept here: */
	uint8_t text[KSERVE_SEEN_TEXT];
	uint32_t held_from, held_to, held_bytes; /* the part of <held> that is used */
	uint8_t held[KSERVE_HELD_MAX];
	char early[KSERVE_HELD_MAX];
};

TAILQ_HEAD(kserve_readers, kserve_reader);

/* A request that is over, as the owner is told of it. */
struct kserve_told {
	uint32_t request;             /* its number */
	uint16_t status;              /* of HTTP; or enum grpc_status */
	uint16_t service;             /* of its model, if <has_service> */
	uint64_t bytes_in, bytes_out; /* of bodies, or of messages */
	const char *call, *id;        /* <call>: a constant, or NULL */
	uint8_t id_length;
	bool is_grpc, has_service, has_id;
};

/* kserve_seen.h: a request that was read, without its tensors. */
struct kserve_seen {
	uint32_t length; /* of <text>; 0: there is none */
	uint32_t max_request;
	uint64_t limit; /* of the connection, when it was read */
	const struct kserve_layout *layout;
	uint64_t layout_number;    /* it is another one if its number is */
	uint64_t bytes_in;         /* as in struct kserve_asked */
	struct stream_begin begin; /* without tag and service */
	uint16_t binary;
	uint8_t outputs;
	uint8_t output[KSERVE_TENSORS_MAX];
	bool has_id;
	uint8_t id_length;
	char id[KSERVE_ID_MAX];
	uint8_t text[KSERVE_SEEN_TEXT];
};

struct kserve_seen_set {
	uint8_t next; /* the one that is replaced next */
	struct kserve_seen way[KSERVE_SEEN_WAYS];
};

/* kserve_front.h: what stands in front of a reply of <length> bytes. */
struct kserve_front {
	uint64_t layout_number; /* 0: there is none */
	uint32_t length;
	uint16_t text_length, date; /* where the date is in <text> */
	uint16_t head_length;       /* of HTTP, without what belongs to the body */
	char text[STREAM_HEAD_MAX];
};

struct kserve_room {
	struct kserve_readers readers, free_readers;
	struct kserve_asked *free_asked;
	struct kserve_layout *free_layout;
	struct kserve_watch *free_watch;
	uint32_t n_free_readers, n_free_asked;
	uint32_t n_readers, n_asked;     /* all */
	uint32_t readers_max, asked_max; /* of one client; all, unless the owner says less */
	int32_t text_left; /* bytes of text that may be read and written in this turn */
	/* The owner's: what others have of the turn beside that; a whole turn, 0: nothing waits for
	 * one. */
	int32_t text_kept, text_turn;
	/* The work that comes next is done in one go, and wants more of a turn than is left: it has
	 * no text before it has a turn that is whole. The owner takes note of it, and clears it. */
	bool text_waits;
	/* The owner's: of the connection's service, or of one with its address, which find() and
	 * next() made the current one for the rest of a call. */
	void *edge;
	struct kserve_layout *layout; /* NULL: the model is not described */
	const char *model;            /* the service's */
	bool serving;                 /* it has workers */
	uint16_t service;             /* its number, and that of the connection's */
	uint16_t service_of_connection;
	uint32_t max_request;
	/* The service of this model; false: there is none. */
	bool (*find)(struct kserve_room *room, const char *model);
	/* The next service; false: it is the connection's again. */
	bool (*next)(struct kserve_room *room);
	/* Adds up what the service's workers did. */
	void (*count)(const struct kserve_room *room, struct kserve_counters *counters);
	/* Says how a request of the stream ended; NULL: the owner need not know. */
	void (*tell)(struct kserve_room *room, const struct stream *s,
		     const struct kserve_told *told);
	struct grpc_room *grpc; /* memory of sessions */
	/* what concerns a call */
	bool may_open;        /* the client may have another session of HTTP/2 */
	bool may_begin;       /* and another request */
	uint32_t streams_max; /* open at once in a session */
	struct kserve_share *share; /* the client's; one for all, unless the owner says another */
	struct kserve_share all;
	void *owner;
	uint32_t now_ms;
	char date[HTTP_DATE_LENGTH];
	const char *version; /* the load balancer's */
	struct kserve_model counted; /* for documents of many models */
	uint64_t layouts;            /* that there were */
	struct kserve_watch watch[KSERVE_WATCHES];
	struct kserve_seen_set seen[KSERVE_SEEN_SETS];
	struct kserve_front front[KSERVE_FRONT], front_calls[KSERVE_FRONT], front_once;
	uint32_t row_ends[KSERVE_ROWS_MAX]; /* of a request with rows that differ, until the next
					       call */
	uint8_t scratch[HTTP_RESPONSE_MAX + KSERVE_DOCUMENT];
};

/* Bytes of a body that becomes a request of <max_request>: text takes more bytes than numbers. */
static inline uint64_t kserve_room_body_max(uint64_t max_request)
{
	return max_request * 16 + 65536;
}

/* Bytes of all rows of the largest batch, and some more, so that one with too many rows is told
 * so. */
static inline uint64_t kserve_room_batch_max(const struct kserve_model *m, uint64_t max_request)
{
	return m->max_batch > 1 ? 2 * max_request * m->max_batch : max_request;
}

/* Bytes that a room of so many takes. */
size_t kserve_room_bytes(uint32_t readers, uint32_t asked, uint32_t layouts);
void kserve_room_init(struct kserve_room *room, uint32_t readers, uint32_t asked, uint32_t layouts);

/* Makes the connection's service the current one. */
static inline void kserve_room_rewind(struct kserve_room *room)
{
	while (room->service != room->service_of_connection)
		room->next(room);
}
/* The current service's model, as far as documents of many have it; its counters are not. It is
 * valid until the next call. */
struct kserve_model *kserve_room_known(struct kserve_room *room);
/* Has each service of the address workers? The connection's is the current one then. */
bool kserve_room_all_serve(struct kserve_room *room);

/* Readers and requests are short when an eighth of them is left; that is for clients that have few.
 */
static inline bool kserve_room_readers_are_short(const struct kserve_room *room)
{
	return room->n_free_readers <= room->n_readers / 8;
}

static inline bool kserve_room_is_short(const struct kserve_room *room)
{
	return room->n_free_asked <= room->n_asked / 8;
}

/* May the client have another one? */
bool kserve_room_may_take_reader(const struct kserve_room *room);
bool kserve_room_may_ask(const struct kserve_room *room);
/* And one that is refused at once? Those beyond its share, so that its other requests go on. */
bool kserve_room_may_refuse(const struct kserve_room *room);

/* May <work>, in bytes of text, be done in one go? Much of it wants most of a turn. False: the
 * stream waits for the next one. */
bool kserve_room_may_work(struct kserve_room *room, uint32_t work);

/* May this stream read on? False: there is no reader, or too much text was read in this turn. */
bool kserve_room_ready(const struct kserve_room *room, const struct stream *s);

/* Is it in the middle of a request, behind its head? Then kserve_room_asked() is that request. */
bool kserve_room_is_inside(const struct stream *s);

struct kserve_asked *kserve_room_asked(const struct stream *s);

/* The stream's reader, taken if it has none. */
struct kserve_reader *kserve_room_reader(struct kserve_room *room, struct stream *s);
void kserve_room_give_reader(struct stream *s);
/* The same of those that belong to no stream; NULL: none is free. They have no request. */
struct kserve_reader *kserve_room_take_reader(struct kserve_room *room);
void kserve_room_return_reader(struct kserve_reader *r);
/* It has read a good part: its time begins anew. */
void kserve_room_keep_reader(struct kserve_room *room, struct kserve_reader *r);
/* Memory for what is known of a request; it joins the stream's. */
struct kserve_asked *kserve_room_ask(struct kserve_room *room, struct stream *s);
/* Memory for a call that is told of changes; NULL: there is none, or its client has its share. It
 * is given back with what is known of the request, or before. */
struct kserve_watch *kserve_room_watch(struct kserve_asked *asked);
void kserve_room_end_watch(struct kserve_asked *asked);
/* Its answer was written; its body was read: gives it back when both are so. */
void kserve_room_answered(struct stream *s, struct kserve_asked *asked);
void kserve_room_was_read(struct stream *s, struct kserve_asked *asked);
/* The model that it asks for is the current service's. */
static inline void kserve_room_found(struct kserve_asked *asked)
{
	asked->service = asked->room->service;
	asked->has_service = true;
}
/* Keeps the request's own name, if it has said it. */
void kserve_room_keep_id(struct kserve_asked *asked, const struct kserve_infer *infer);
/* Tells the owner how it ended; <bytes>: of its answer's body or message. */
void kserve_room_tell(const struct stream *s, const struct kserve_asked *asked, uint16_t status,
		      uint64_t bytes);
/* The same of all of a connection that were not answered: it ends. */
void kserve_room_lost(const struct stream *s);
/* Gives it back at once. */
void kserve_room_forget(struct stream *s, struct kserve_asked *asked);
/* The framing's release(). */
void kserve_room_release(struct stream *s);

/* A layout of this description, whose workers take <max_rows> rows at once; NULL: none is free.
 * kserve_layout_leave() gives it back. */
struct kserve_layout *kserve_layout_of(struct kserve_room *room, const char *name,
				       const struct model_description *description,
				       uint32_t max_rows);
void kserve_layout_leave(struct kserve_room *room, struct kserve_layout *layout);

#endif
