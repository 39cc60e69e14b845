/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks the schema's tables over the YAML tree. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config_schema.h"

static const char *const node_names[] = {
	[YAML_NO_NODE] = "nothing",
	[YAML_SCALAR_NODE] = "one value",
	[YAML_SEQUENCE_NODE] = "a list",
	[YAML_MAPPING_NODE] = "a block of keys",
};

static const char *found_name(const yaml_node_t *node)
{
	if (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0)
		return "nothing";
	return node_names[node->type];
}

static int expect_type(struct config_yaml *yaml, yaml_node_t *node, yaml_node_type_t type,
		       const char *path)
{
	if (node->type == type)
		return 0;
	return config_fail(yaml, config_node_line(node), path, "expected %s, found %s",
			   node_names[type], found_name(node));
}

static void path_join(char path[CONFIG_PATH_MAX], const char *outer, const char *name)
{
	snprintf(path, CONFIG_PATH_MAX, "%s%s%s", outer, *outer != '\0' ? "." : "", name);
}

static int read_value(struct config_yaml *yaml, const struct config_key *key, yaml_node_t *node,
		      const char *path, void *base)
{
	const char *text = (const char *)node->data.scalar.value;
	size_t length = node->data.scalar.length;
	char quote[CONFIG_QUOTE_MAX], fix[256];
	int rc = expect_type(yaml, node, YAML_SCALAR_NODE, path);

	if (rc < 0)
		return rc;
	/* a text that contains a NUL would be read in part */
	if (strlen(text) == length && key->kind->parse(key, text, base))
		return 0;
	key->kind->fix(key, fix, sizeof(fix));
	return config_fail(yaml, config_node_line(node), path, "'%s' is not %s; %s",
			   config_quote(text, length, quote), key->noun, fix);
}

static int read_key(struct config_yaml *yaml, const struct config_key *key, yaml_node_t *node,
		    const char *path, void *base)
{
	if (key->kind->read != NULL)
		return key->kind->read(yaml, key, node, path, base);
	return read_value(yaml, key, node, path, base);
}

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein distance; 32 for texts of 32 bytes or more, which is far from every key. */
static unsigned int distance(const char *a, size_t a_length, const char *b)
{
	unsigned int row[33];
	size_t b_length = strlen(b);

	if (a_length >= 32 || b_length >= 32)
		return 32;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned int diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			unsigned int above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_length];
}

/* Suggest the key that is nearest to the text; list all keys if none is near. */
static void hint_for(const struct config_key *rows, const char *text, size_t length, char *buf,
		     size_t size)
{
	const struct config_key *nearest = rows;
	size_t used;

	for (const struct config_key *row = rows; row->name != NULL; row++)
		if (distance(text, length, row->name) < distance(text, length, nearest->name))
			nearest = row;
	if (distance(text, length, nearest->name) <= 1 + length / 3) {
		snprintf(buf, size, "did you mean '%s'?", nearest->name);
		return;
	}
	used = snprintf(buf, size, "known are");
	for (const struct config_key *row = rows; row->name != NULL && used < size; row++)
		used += snprintf(buf + used, size - used, "%s %s", row == rows ? "" : ",",
				 row->name);
}

static const struct config_key *row_find(const struct config_key *rows, const char *text,
					 size_t length)
{
	for (const struct config_key *row = rows; row->name != NULL; row++)
		if (strlen(row->name) == length && memcmp(row->name, text, length) == 0)
			return row;
	return NULL;
}

static int read_pair(struct config_yaml *yaml, const struct config_key *rows, yaml_node_t *block,
		     const yaml_node_pair_t *pair, const char *path, void *base)
{
	yaml_node_t *name = yaml_document_get_node(&yaml->document, pair->key);
	yaml_node_t *value = yaml_document_get_node(&yaml->document, pair->value), *first;
	char inner[CONFIG_PATH_MAX], quote[CONFIG_QUOTE_MAX], hint[512];
	const struct config_key *row;
	const char *text;
	size_t length;

	if (name->type != YAML_SCALAR_NODE)
		return config_fail(yaml, config_node_line(name), path, "a key must be one word");
	text = (const char *)name->data.scalar.value;
	length = name->data.scalar.length;
	row = row_find(rows, text, length);
	if (row == NULL) {
		hint_for(rows, text, length, hint, sizeof(hint));
		return config_fail(yaml, config_node_line(name), path, "unknown key '%s'; %s",
				   config_quote(text, length, quote), hint);
	}
	path_join(inner, path, row->name);
	first = config_find(yaml, block, row->name);
	if (first != value)
		return config_fail(yaml, config_node_line(name), inner,
				   "given twice, first on line %zu; keep one",
				   config_node_line(first));
	return read_key(yaml, row, value, inner, base);
}

static void apply_defaults(const struct config_key *rows, void *base)
{
	for (const struct config_key *row = rows; row->name != NULL; row++) {
		if (row->fallback != NULL)
			row->kind->parse(row, row->fallback, base);
		if (row->kind == &config_block)
			apply_defaults(row->block, base);
	}
}

static int read_block(struct config_yaml *yaml, const struct config_key *key, yaml_node_t *node,
		      const char *path, void *base)
{
	int rc = expect_type(yaml, node, YAML_MAPPING_NODE, path);
	const yaml_node_pair_t *pair;

	if (rc < 0)
		return rc;
	apply_defaults(key->block, base);
	/* Go on after a fault: the other keys are independent of it. */
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++)
		if (read_pair(yaml, key->block, node, pair, path, base) < 0)
			rc = -EINVAL;
	for (const struct config_key *row = key->block; row->name != NULL; row++)
		if (row->required && config_find(yaml, node, row->name) == NULL)
			rc = config_fail(yaml, config_node_line(node), path,
					 "'%s' is missing; add e.g. '%s: %s'", row->name, row->name,
					 row->example);
	return rc;
}

static int read_sequence(struct config_yaml *yaml, const struct config_key *key, yaml_node_t *node,
			 const char *path, void *base)
{
	const yaml_node_item_t *item = node->data.sequence.items.start;
	size_t n;
	int rc = 0;

	if (node->type != YAML_SEQUENCE_NODE)
		return config_fail(yaml, config_node_line(node), path,
				   "expected a list, found %s; write e.g. '%s: %s'",
				   found_name(node), key->name, key->example);
	n = node->data.sequence.items.top - item;
	if (n == 0 || n > key->max)
		return config_fail(yaml, config_node_line(node), path,
				   "has %zu entries; use 1 to %u", n, key->max);
	for (size_t i = 0; i < n; i++) {
		yaml_node_t *entry = yaml_document_get_node(&yaml->document, item[i]);
		char inner[CONFIG_PATH_MAX];

		snprintf(inner, sizeof(inner), "%s[%zu]", path, i);
		if (read_key(yaml, key->item, entry, inner,
			     (char *)base + key->offset + i * key->size) < 0)
			rc = -EINVAL;
	}
	if (key->size != 0)
		*(unsigned int *)((char *)base + key->second) = n;
	return rc;
}

const struct config_kind config_block = {.read = read_block};
const struct config_kind config_list = {.read = read_sequence};

int config_read(struct config_yaml *yaml, const struct config_key *root, void *base)
{
	yaml_node_t *node = yaml_document_get_root_node(&yaml->document);

	return read_block(yaml, root, node, "", base);
}
