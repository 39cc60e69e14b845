/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of the configuration file, as tables: config_schema.c holds the rows, config_read.c
 * walks them over the YAML tree, config_value.c turns one value into one field, config_format.c
 * turns a field into text again. Facade of these four, private to config*.c.
 */
#ifndef LB_CONFIG_SCHEMA_H
#define LB_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config_diff.h"
#include "config/config_yaml.h"

struct config_key;

/* A word that a key accepts and the value that is stored for it. */
struct config_choice {
	const char *name; /* NULL ends the list */
	size_t value;
};

/* How values of one type are read. Either <read> is set, or <parse> and <fix> are. */
struct config_kind {
	/* lists and blocks: read <node> into the struct at <base> */
	int (*read)(struct config_yaml *yaml, const struct config_key *key, yaml_node_t *node,
		    const char *path, void *base);
	/* single values: store the value of <text>; false: it has none */
	bool (*parse)(const struct config_key *key, const char *text, void *base);
	/* write the values that are allowed: "use 1 to 65535" */
	void (*fix)(const struct config_key *key, char *buf, size_t size);
};

/* A row: one key of a block. */
struct config_key {
	const char *name;
	const struct config_kind *kind;
	size_t offset, size;  /* the field; size 0 = checked but not stored here */
	size_t second;        /* offset of a prefix, a port or a list's count */
	uint32_t min, max;    /* of numbers; <max> also of list entries */
	const char *noun;     /* ends the sentence "'x' is not" */
	const char *example;  /* a valid value; of choices: which go together, in words */
	const char *fallback; /* used when the key is left out; parsed like a value */
	bool required;
	bool alias;                   /* a second name for another row's field */
	enum lb_config_effect effect; /* of a change; when left out, a restart */
	const struct config_choice *choices;
	const struct config_key *block; /* rows of a block, ended by a row without name */
	const struct config_key *item;  /* each entry of a list */
};

extern const struct config_kind config_number;          /* decimal, into 1, 2 or 4 bytes */
extern const struct config_kind config_size;            /* bytes, also as 16KiB, 1MiB, 1GiB */
extern const struct config_kind config_choice;          /* the value of one of <choices> */
extern const struct config_kind config_word;            /* one of <choices>, kept as text */
extern const struct config_kind config_flag;            /* sets the bool at the value of a choice */
extern const struct config_kind config_name;            /* text of letters, digits and ._- */
extern const struct config_kind config_label;           /* text without spaces */
extern const struct config_kind config_text;            /* text in printable ASCII */
extern const struct config_kind config_path;            /* an absolute path */
extern const struct config_kind config_path_or_off;     /* the same; off leaves it empty */
extern const struct config_kind config_address;         /* a unicast IP address */
extern const struct config_kind config_network;         /* address/prefix; prefix into <second> */
extern const struct config_kind config_endpoint;        /* address:port; port into <second> */
extern const struct config_kind config_endpoint_or_off; /* the same; off leaves family 0 */

extern const struct config_kind config_block; /* keys of <block>, in the same struct */
/* 1 to <max> of <item>, <size> bytes apart; count into <second> unless <size> is 0 */
extern const struct config_kind config_list;

/* The whole file, a block, into struct lb_config. */
extern const struct config_key config_root;
/* One service, a block, into struct lb_service_config. */
extern const struct config_key config_service_item;

/* Fill <base> from the tree, defaults included. 0, or -EINVAL with the error written. */
int config_read(struct config_yaml *yaml, const struct config_key *root, void *base);

/* Write the value as a file would have it; empty if it is not stored. Different values have
 * different texts. */
void config_format(const struct config_key *key, const void *base, char *buf, size_t size);

#define CONFIG_SIZE_TEXT 24

/* A number of bytes with the largest unit of which it is a multiple: "1472", "16KiB". Returns
 * <buf>. */
const char *config_size_text(uint64_t bytes, char buf[CONFIG_SIZE_TEXT]);

#endif
