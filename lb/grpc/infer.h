/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inference.ModelInferRequest of KServe's protocol v2, from bytes that come in parts, cut anywhere,
 * with its fields in any order. What it says is collected in struct kserve_infer; the values of
 * typed contents become the bytes that workers take, a run at a time, and are not kept.
 * raw_input_contents are the bytes of workers as they are: the reader says that they come, and the
 * caller takes them from where they lie. Allocates nothing.
 *
 * Values that come before what describes them are kept, in memory of the caller.
 */
#ifndef LB_GRPC_INFER_H
#define LB_GRPC_INFER_H

#include "grpc/wire.h"
#include "kserve/infer.h"

/* Beside its bytes, of a number in a message: a tag, a length, a value. Packed ones of a byte have
 * none. */
#define GRPC_NUMBER_WORK 5

enum grpc_infer_step {
	GRPC_INFER_MORE,    /* all bytes were read */
	GRPC_INFER_INPUT,   /* run->input is described: name, datatype and shape */
	GRPC_INFER_RUN,     /* these are bytes of a tensor */
	GRPC_INFER_RAW,     /* raw_input_contents of run->input begin: <raw_bytes> of them */
	GRPC_INFER_DONE,    /* the message ended */
	GRPC_INFER_REFUSED, /* <status> and <error> of the request say why; it stays so */
};

/* A field of contents as it is read, of one input. */
struct grpc_contents {
	struct grpc_wire wire;
	uint64_t offset;   /* bytes of the tensor so far */
	uint64_t count;    /* elements so far */
	uint32_t as_bytes; /* the field that is read as bytes; 0: none is */
	uint8_t word[4];   /* the length of an element of BYTES that is not written yet: */
	uint8_t word_left; /* bytes of it */
};

struct grpc_infer {
	char model[KSERVE_NAME_MAX], version[KSERVE_VERSION_MAX];
	uint64_t raw_bytes; /* of GRPC_INFER_RAW */
	/* private */
	struct kserve_infer *to;
	struct grpc_wire wire;
	struct grpc_contents contents;
	uint64_t max_bytes; /* of one tensor */
	char key[40];       /* of a parameter, cut */
	uint64_t number;    /* its value, if <has_number>: an integer that is not negative */
	uint8_t *early;     /* values that came before their description: first raw ones, */
	uint32_t early_room, early_raw, early_length; /* then contents of the input that is open */
	uint32_t raw_length[KSERVE_TENSORS_MAX];      /* of the raw ones there; in order */
	uint32_t replay_at;
	uint32_t text_length;
	uint8_t raw_input[KSERVE_TENSORS_MAX]; /* and their inputs */
	uint8_t raws;                          /* raw_input_contents so far */
	uint8_t early_raws, replayed;
	uint8_t state; /* enum in infer.c */
	bool has_number;
	bool has_shape, has_name, described, has_contents, any_contents, keeps, is_done, begins;
};

/* The message has <length> bytes. <to> is zeroed. <early>: memory, which must live as long as the
 * message is read. */
void grpc_infer_init(struct grpc_infer *r, struct kserve_infer *to, uint64_t length,
		     uint64_t max_bytes, uint8_t *early, uint32_t early_room);

/* Reads from *at on, and moves *at behind what was read. Call again until GRPC_INFER_MORE. */
enum grpc_infer_step grpc_infer_read(struct grpc_infer *r, const uint8_t **at, const uint8_t *end,
				     struct kserve_run *run);

/* Bytes of raw_input_contents that come next; 0: other bytes come. */
static inline uint64_t grpc_infer_raw_left(const struct grpc_infer *r)
{
	return r->raw_bytes;
}

/* The caller took <n> of them, which no call was shown. */
void grpc_infer_take_raw(struct grpc_infer *r, uint64_t n);

#endif
