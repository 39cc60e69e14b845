/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON of an infer request, from bytes that come in parts, cut anywhere. What the request says
 * is collected in struct kserve_infer; the values of tensors are converted to the bytes that
 * workers take (little-endian, packed; BYTES: u32 length, bytes), a run at a time, and not kept.
 *
 * A call reads at most the bytes that it is shown and writes at most one run, so the caller decides
 * how long it takes: 4 KiB take 5 to 30 us, the latter if all numbers have one digit. Allocates
 * nothing. For each input there is one KSERVE_INPUT, before its first run: then name, datatype and
 * shape are known, and the caller may refuse it.
 *
 * Most clients send `data` last, but some sort the members of objects, so that it comes first. It
 * is then kept as text, in memory of the caller, until the object's end.
 */
#ifndef LB_KSERVE_INFER_H
#define LB_KSERVE_INFER_H

#include "json/reader.h"
#include "kserve/datatype.h"

#define KSERVE_RUN_MIN   512 /* room for a run that a call must have */
#define KSERVE_TEXT_MAX  256 /* a string that is kept in one piece; longer ones come in several */
#define KSERVE_ERROR_MAX 256

enum kserve_step {
	KSERVE_MORE,    /* all bytes were read */
	KSERVE_INPUT,   /* run->input is described */
	KSERVE_RUN,     /* these are bytes of a tensor */
	KSERVE_REFUSED, /* <status> and <error> of the request say why; it stays so */
};

struct kserve_input {
	char name[KSERVE_NAME_MAX];
	enum kserve_datatype type;
	uint8_t dims;
	bool binary; /* its bytes follow the JSON */
	uint64_t shape[KSERVE_DIMS_MAX];
	uint64_t elements; /* as the shape says */
	uint64_t bytes;    /* of a binary one: all; else: in runs so far */
};

struct kserve_output_choice {
	char name[KSERVE_NAME_MAX];
	bool binary;
	bool is_chosen; /* <binary> was said; otherwise <binary_outputs> of the request holds */
};

struct kserve_run {
	uint8_t *at;     /* the caller's */
	uint32_t room;   /* at least KSERVE_RUN_MIN */
	/* Work of a call: each byte that is read is one, and what it is part of some more. With
	 * <budget> the call ends when so much was done, with a run that may be empty; 0: it need
	 * not end. */
	uint32_t budget, work;
	uint32_t length; /* of KSERVE_RUN */
	uint64_t offset; /* in the tensor; of BYTES, a string's length may follow the string */
	uint8_t input;   /* of KSERVE_INPUT and KSERVE_RUN */
};

/* Beside its bytes, of a token of JSON. */
#define KSERVE_TOKEN_WORK 4

static inline bool kserve_run_is_over(const struct kserve_run *run)
{
	return run->budget > 0 && run->work >= run->budget;
}

/* The tensor whose values are being read. */
struct kserve_data {
	uint64_t count;                       /* elements so far */
	uint64_t offset;                      /* bytes in the tensor so far */
	uint64_t opened[KSERVE_DIMS_MAX + 1]; /* <count> where the array of a level began */
	uint64_t inside[KSERVE_DIMS_MAX + 1]; /* elements in an array of a level */
	uint8_t level;                        /* arrays that are open */
	uint8_t leaf;                         /* level of elements; 0: none came */
	/* a string of BYTES */
	bool open;
	bool is_long;    /* it began to leave before its length is known, */
	bool length_due; /* which leaves next */
	bool is_dropped; /* it is not valid; refused at its end */
	bool is_too_large;
	uint32_t string_length;
};

struct kserve_infer {
	/* what the request says */
	uint64_t timeout_us; /* 0: nothing */
	uint64_t priority;   /* 0: nothing */
	uint64_t sequence;   /* 0: none; a name gives a number, too: its hash */
	bool sequence_start, sequence_end;
	bool empty_final; /* of gRPC: triton_enable_empty_final_response */
	bool binary_outputs;
	bool has_id;
	uint8_t id_length;
	char id[KSERVE_ID_MAX];
	uint8_t inputs, outputs; /* of the arrays below */
	struct kserve_input input[KSERVE_TENSORS_MAX];
	struct kserve_output_choice output[KSERVE_TENSORS_MAX];
	uint64_t binary_bytes; /* that must follow the JSON */
	uint64_t text_bytes;   /* of a request of text: so far */
	/* KSERVE_REFUSED */
	uint16_t status; /* of HTTP */
	char error[KSERVE_ERROR_MAX];

	bool is_text; /* set by the caller before the first byte, see below */

	/* private: where the reader is */
	uint8_t place;     /* enum in infer.c */
	uint8_t member;    /* the one whose value is expected; 0: unknown */
	uint8_t outside;   /* the place around a value that is skipped */
	uint8_t depth;     /* of a value that is skipped or kept: where it ends */
	bool is_replay;    /* values come from <early> */
	bool has_data;     /* of the input */
	uint32_t seen;     /* bit per member */
	uint64_t position; /* bytes read before this call */
	uint64_t behind;   /* the last token ended before this byte */
	uint64_t max_bytes;
	struct json_reader json, early_json;
	struct kserve_data data;
	char *early;
	const char *early_at; /* what is read of <early> next */
	uint32_t early_room, early_length;
	uint32_t text_length;
	char text[KSERVE_TEXT_MAX];
};

/*
 * <max_bytes>: of one tensor. <early>: memory for values that come before their description, as
 * text; it must live as long as the request is read.
 */
void kserve_infer_init(struct kserve_infer *r, uint64_t max_bytes, char *early,
		       uint32_t early_room);

/* Reads from *at on, and moves *at behind what was read. Call again until KSERVE_MORE. */
enum kserve_step kserve_infer_read(struct kserve_infer *r, const char **at, const char *end,
				   struct kserve_run *run);

/*
 * With <is_text> it is a request of Triton's text extension: {"id", "text_input", "parameters"}.
 * The text, which may be empty, comes as runs of input 0, of which there is no KSERVE_INPUT;
 * <offset> counts from its first byte.
 */

/* All JSON was read. KSERVE_MORE: the request is valid; otherwise KSERVE_REFUSED. */
enum kserve_step kserve_infer_end(struct kserve_infer *r);

/* The number of a sequence that has a name: start with KSERVE_SEQUENCE; 0 would say that there is
 * none. FNV-1a. */
#define KSERVE_SEQUENCE 0xcbf29ce484222325
static inline uint64_t kserve_infer_sequence(uint64_t hash, const void *name, uint32_t length)
{
	const uint8_t *bytes = name;

	for (uint32_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	return hash == 0 ? 1 : hash;
}

/* The owner finds a fault. <format> as for printf. Returns KSERVE_REFUSED. */
__attribute__((format(printf, 3, 4))) enum kserve_step
kserve_infer_refuse(struct kserve_infer *r, uint16_t status, const char *format, ...);

/* For infer_data.c: refuse with the place in front, as in "inputs[1] ('x').data: ..."; and bytes
 * that are no JSON. */
__attribute__((format(printf, 3, 4))) enum kserve_step
kserve_infer_refuse_here(struct kserve_infer *r, uint16_t status, const char *format, ...);
enum kserve_step kserve_infer_refuse_syntax(struct kserve_infer *r, const char *error);

#endif
