/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways of clients of the framing kserve to make a turn of an lcore long, kind by kind.
 * text_turns.c measures the turns; text_kinds.c, text_bytes.c, text_ends.c and text_acks.c have the
 * kinds.
 */
#ifndef WALK_TEXT_TURNS_H
#define WALK_TEXT_TURNS_H

#include "grpc_text.h"

/* A kind: the load balancer and its worker, and what is sent. */
struct text_kind {
	const char *name;
	const struct walk_params *params;
	void (*worker)(struct walk *w, const struct text_kind *k);
	void (*make)(const struct text_kind *k); /* puts what one client sends; or NULL */
	void (*run)(struct walk *w); /* does all by itself, with text_turn(); NULL: it is sent */
	enum datatype datatype;                  /* of those that have one */
	/* of those that ask for BYTES: the rows of a request, elements of a row, bytes of one; and
	 * how many requests there are, most of which are to be answered (0: not checked) */
	uint32_t rows, elements, length, requests;
};

/* A service of 1 MiB requests and replies, and packets for them. */
extern const struct walk_params text_large_params;

extern const struct text_kind text_kinds[], text_bytes[], text_ends[], text_acks[];
extern const unsigned int n_text_kinds, n_text_bytes, n_text_ends, n_text_acks;

/* Kinds over TLS: the first, or the next one, until there is none (NULL). It stays until then. */
const struct text_kind *text_tls_next(void);
/* One of the kinds without TLS. */
const struct text_kind *text_kind_find(const char *name);

/* A turn that is measured, and those that follow at once. */
void text_turn_all(struct walk *w);
/* The bytes that make() put. */
const void *text_sent(void);

/* A turn that is measured; then workers take what came and act. */
void text_turn(struct walk *w);
/* Turns that are measured, of some ms, with replies taken and acknowledged. */
void text_turns_pass(struct walk *w, struct http_client *any, unsigned int turns);

/* Adds to what the client of make() sends. */
void text_put(const void *bytes, uint32_t n);
/* Bytes so far. */
uint32_t text_length(void);
void text_put_text(const struct text *t);
void text_put_frame(uint8_t type, uint8_t flags, uint32_t id, const void *bytes, uint32_t n);
/* A request by HTTP/1.1 whose values follow its JSON. */
void text_put_binary(const char *json, uint32_t length, const char *values, uint32_t n);
/* Writes a number as protobuf has it. Returns its bytes. */
uint32_t text_varint(char *at, uint64_t value);
/* The beginning of a connection of HTTP/2. */
void text_begin_http2(void);

#endif
