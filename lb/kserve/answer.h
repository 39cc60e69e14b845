/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON of an infer response, in pieces: the caller brings bytes of tensors as they come from
 * the worker, and room for text as it has it. A call takes what it can of the one and fills what it
 * can of the other, so no answer is ever held as a whole.
 *
 * Outputs with `binary` are only described; the caller sends their bytes behind the JSON. If all
 * outputs are binary, no bytes of tensors are needed.
 */
#ifndef LB_KSERVE_ANSWER_H
#define LB_KSERVE_ANSWER_H

#include "json/write.h"
#include "kserve/datatype.h"

#define KSERVE_ANSWER_ROOM 1536 /* room that a call wants; with less it may write nothing */

struct kserve_answer_output {
	const char *name;
	enum kserve_datatype type; /* FP16 and BF16 must be binary */
	uint8_t dims;
	bool binary;
	uint64_t shape[KSERVE_DIMS_MAX];
	uint64_t bytes;
};

/* Of gRPC, `triton_final_response`: do others follow this answer? */
enum kserve_final { KSERVE_FINAL_UNSAID, KSERVE_FINAL_FOLLOWS, KSERVE_FINAL };

struct kserve_answer {
	const char *model, *version;
	const char *id; /* NULL: the request had none */
	uint8_t id_length;
	uint8_t final; /* of gRPC, enum kserve_final */
	uint8_t outputs;
	struct kserve_answer_output output[KSERVE_TENSORS_MAX];
};

/* Zeroed memory is an answer of which nothing is written. */
struct kserve_writer {
	bool done;   /* all is written */
	bool failed; /* an output's bytes are not its datatype's: the answer cannot be completed */
	uint64_t tensor_left; /* bytes of the output that have not been taken */
	/* private */
	uint8_t step;   /* enum in answer.c */
	uint8_t output; /* the one that is written */
	uint8_t held_length;
	bool in_string, follows; /* follows: a comma goes in front of the next element */
	uint8_t held[8];         /* an element, or a length, that is cut */
	uint32_t string_left;
	struct json_escape escape;
};

/*
 * Takes bytes of the outputs that are not binary, in their order, from *bytes on, and moves *bytes
 * behind them; writes to <at>, and returns how much. If it took no byte and wrote nothing, it needs
 * more of either.
 */
uint32_t kserve_answer_write(const struct kserve_answer *answer, struct kserve_writer *w,
			     const uint8_t **bytes, const uint8_t *end, char *at, uint32_t room);

/*
 * The text of a tensor of BYTES, inside of a JSON string that the caller begins and ends: all
 * elements, one behind the other. w->tensor_left: its bytes that were not taken, set by the caller
 * when a tensor begins; a character may be cut between two of them. <o> must have 2 *
 * JSON_ESCAPED_MAX of room to get on.
 */
void kserve_answer_text(struct kserve_writer *w, const uint8_t **bytes, const uint8_t *end,
			struct json_out *o);
/* No tensor follows: a character that is still cut ends. */
void kserve_answer_text_end(struct kserve_writer *w, struct json_out *o);

/* An answer that is an error: {"error": ...}. Returns its length; the message is cut if the room,
 * 16 bytes at least, is too small. */
uint32_t kserve_error_write(const char *message, char *at, uint32_t room);

#endif
