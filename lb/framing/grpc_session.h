/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection that speaks HTTP/2 to the framing `kserve`, for gRPC. nghttp2 reads and writes the
 * frames and keeps the streams; it has its memory from grpc_memory.h. The bytes of DATA frames are
 * not for it: it is told how many came. Private to lb/framing; grpc_room is also for the owner of
 * the connections.
 */
#ifndef LB_GRPC_SESSION_H
#define LB_GRPC_SESSION_H

#include <nghttp2/nghttp2.h>

#include "framing/grpc_memory.h"
#include "framing/kserve_room.h"
#include "framing/kserve_tensors.h"
#include "grpc/infer.h"
#include "grpc/status.h"

#define GRPC_FRAME_HEADER 9
#define GRPC_STREAMS_MAX  64u /* open in a session: its budget is for as many */
/* Of a session, with those that ended and of which the owner does not know yet. */
#define GRPC_STREAMS_HELD (2 * GRPC_STREAMS_MAX)
/* Bytes of small pieces that a session has usually; and all of its memory. */
#define GRPC_SESSION_USUAL 24576
#define GRPC_SESSION_BYTES (GRPC_SESSION_USUAL + GRPC_MEMORY_LARGE + 64)

enum grpc_rpc {
	GRPC_NO_RPC,
	GRPC_SERVER_LIVE,
	GRPC_SERVER_READY,
	GRPC_SERVER_METADATA,
	GRPC_MODEL_READY,
	GRPC_MODEL_METADATA,
	GRPC_MODEL_CONFIG,
	GRPC_MODEL_INFER,
	GRPC_MODEL_STREAM_INFER,
	/* of one model, or of all: */
	GRPC_MODEL_STATISTICS,
	GRPC_HEALTH_CHECK,
	GRPC_HEALTH_WATCH,
	GRPC_REPOSITORY_INDEX,
};

enum grpc_reads {
	GRPC_READS_HEAD,
	GRPC_READS_PREFIX,
	GRPC_READS_SMALL, /* a message that is read as a whole */
	GRPC_READS_INFER,
	GRPC_READS_REST,    /* of a message, which is dropped */
	GRPC_READS_NOTHING, /* further bytes are dropped */
};

/* A stream of HTTP/2: a call. */
struct grpc_stream {
	TAILQ_ENTRY(grpc_stream) entry; /* of its session's, open or ended; or of the free ones */
	struct grpc_session *session;
	uint64_t timeout_us; /* grpc-timeout; 0: none */
	uint64_t left;       /* bytes of the message that were not read */
	/* where the bytes of raw_input_contents go, and how many of this one came */
	struct kserve_places raw_places;
	uint64_t raw_at;
	int32_t id;
	uint32_t open;                      /* messages that are not answered */
	struct kserve_asked *asked;         /* of the message that is read */
	struct kserve_reader *reader;       /* likewise */
	struct kserve_asked *first, **last; /* those whose answers are sent, in order */
	uint16_t http_status;               /* not 200: no call of gRPC */
	uint8_t rpc, reads;                 /* enum grpc_rpc, enum grpc_reads */
	uint8_t got;                        /* bytes of <prefix> */
	uint8_t ahead;                      /* bytes read beyond the connection's position */
	uint8_t prefix[GRPC_PREFIX];
	uint8_t status;      /* enum grpc_status, for the trailers */
	uint32_t head_bytes; /* of all fields that came, as SETTINGS_MAX_HEADER_LIST_SIZE counts */
	bool has_path, has_type, has_encoding, bad_timeout;
	bool headed;    /* its head was looked at */
	bool raw;       /* bytes of raw_input_contents come, and may be placed */
	bool rows_wait; /* its rows wait for a turn that has time for them, and its last byte */
	bool ended;     /* the client sends no more */
	bool responded; /* the answer's head was given to nghttp2 */
	bool complete;  /* all of the answer was */
};

TAILQ_HEAD(grpc_streams, grpc_stream);

/* Bounds how often a client does something: each time takes one, and time gives some back. */
struct grpc_meter {
	uint32_t left;
	uint32_t since_ms; /* time before it has given all that it had to */
};

struct grpc_session {
	nghttp2_session *h2;
	struct grpc_account account;
	struct grpc_room *room;
	struct grpc_streams streams, ended;
	uint32_t n_streams;        /* in both */
	struct grpc_stream *fresh; /* its head came in this call */
	/* the frame that is read */
	uint32_t left, padding;
	uint8_t header[GRPC_FRAME_HEADER];
	uint8_t got, magic; /* bytes of <header>; of the connection's preface that are to come */
	uint8_t type, flags;
	bool settled; /* SETTINGS came */
	bool padded; /* the length of its padding comes next */
	bool dead;   /* nothing more can be read or written */
	bool fault;  /* the client has made it end */
	bool flood; /* likewise, by frames for their own sake: it is told so, and nothing is read */
	bool drains;
	/* of this client: streams that are reset for its faults, frames that want an answer, and
	 * all that bring nothing */
	struct grpc_meter resets, answers, frames;
	struct grpc_stream *data; /* of the DATA frame that is read; NULL: nobody's */
	struct kserve_asked *over; /* answered without another byte, by <queued> */
	/* a DATA frame that nghttp2 sends */
	struct kserve_asked *sends; /* NULL: nobody's bytes */
	bool sent;
	uint8_t sent_header[GRPC_FRAME_HEADER];
	uint32_t sent_length;
};

/* An lcore's memory for all of it. */
struct grpc_room {
	struct grpc_memory memory;
	struct grpc_streams free_streams;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *options;
	struct kserve_room *kserve;
};

size_t grpc_room_bytes(uint32_t sessions, uint32_t streams);
/* -ENOMEM, or 0; then grpc_room_fini() must follow. <kserve> gets a pointer to it. */
int grpc_room_init(struct grpc_room *room, struct kserve_room *kserve, uint32_t sessions,
		   uint32_t streams);
void grpc_room_fini(struct grpc_room *room);

/* A method's name without its service; NULL: there is none. */
const char *grpc_rpc_name(uint8_t rpc);

/* NULL: no memory. <streams>: open at once. */
struct grpc_session *grpc_session_open(struct grpc_room *room, uint32_t streams);
void grpc_session_close(struct grpc_session *g);

/* A frame brings nothing that was asked for; <answered>: it wants an answer (PING, SETTINGS). The
 * session ends when the client has sent too many of them for what else it does. */
void grpc_session_count_frame(struct grpc_session *g, bool answered);

/* Shows nghttp2 bytes; those of a DATA frame may be any. */
void grpc_session_feed(struct grpc_session *g, const uint8_t *bytes, uint32_t length);

/* A message of <length> bytes, which the owner has, is the answer of <a>, or the next one of its.
 */
void grpc_stream_respond(struct grpc_stream *s, struct kserve_asked *a, uint32_t length);
/* Its end, with this status; NULL: no message. */
void grpc_stream_end(struct grpc_stream *s, enum grpc_status status, const char *message);
/* Gives an ended stream back. */
void grpc_stream_free(struct grpc_stream *s);

#endif
