/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/config_yaml.h"

int config_fail(struct config_yaml *yaml, size_t line, const char *path, const char *format, ...)
{
	char sentence[768], full[1024];
	bool first = yaml->faults == 0 || yaml->error_size == 0;
	size_t used = first ? 0 : strnlen(yaml->error, yaml->error_size);
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	snprintf(full, sizeof(full), "%s:%zu: %s%s%s", yaml->name, line, path,
		 *path != '\0' ? ": " : "", sentence);
	yaml->faults++;
	if (yaml->faults == 1)
		snprintf(yaml->error, yaml->error_size, "%s", full);
	else if (yaml->faults <= CONFIG_FAULTS_MAX && used + 1 + strlen(full) < yaml->error_size)
		snprintf(yaml->error + used, yaml->error_size - used, "\n%s", full);
	return -EINVAL;
}

size_t config_node_line(const yaml_node_t *node)
{
	return node->start_mark.line + 1;
}

const char *config_quote(const char *text, size_t length, char quote[CONFIG_QUOTE_MAX])
{
	size_t shown = length < CONFIG_QUOTE_MAX ? length : CONFIG_QUOTE_MAX - 4;

	for (size_t i = 0; i < shown; i++)
		quote[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	strcpy(quote + shown, shown < length ? "..." : "");
	return quote;
}

/* libyaml reports undecodable bytes by their offset, everything else by line. */
static size_t problem_line(const yaml_parser_t *parser, const char *text, size_t length)
{
	size_t line = 1;

	if (parser->error != YAML_READER_ERROR)
		return parser->problem_mark.line + 1;
	for (size_t i = 0; i < length && i < parser->problem_offset; i++)
		line += text[i] == '\n';
	return line;
}

static int out_of_memory(struct config_yaml *yaml)
{
	config_fail(yaml, 1, "", "out of memory");
	return -ENOMEM;
}

/* Is line <number>, from 1, indented by a tab? YAML allows no tabs there. */
static bool is_tabbed(const char *text, size_t length, size_t number)
{
	size_t at = 0;

	for (; number > 1 && at < length; at++)
		number -= text[at] == '\n';
	while (at < length && text[at] == ' ')
		at++;
	return at < length && text[at] == '\t';
}

static int syntax_error(struct config_yaml *yaml, const yaml_parser_t *parser, const char *text,
			size_t length)
{
	size_t line = problem_line(parser, text, length);
	const char *problem = parser->problem != NULL ? parser->problem : "unreadable";

	if (parser->error == YAML_MEMORY_ERROR)
		return out_of_memory(yaml);
	if (is_tabbed(text, length, line))
		return config_fail(yaml, line, "",
				   "not YAML: a tab indents this line; indent with spaces");
	if (parser->context != NULL)
		return config_fail(yaml, line, "", "not YAML: %s %s that starts on line %zu",
				   problem, parser->context, parser->context_mark.line + 1);
	return config_fail(yaml, line, "", "not YAML: %s", problem);
}

static int check_event(struct config_yaml *yaml, const yaml_event_t *event, unsigned int *depth,
		       unsigned int *documents)
{
	size_t line = event->start_mark.line + 1;

	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (++*documents > 1)
			return config_fail(yaml, line, "",
					   "a second document starts here; keep one");
		return 0;
	case YAML_ALIAS_EVENT:
		return config_fail(yaml, line, "",
				   "aliases are not supported; write the value out");
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		if (++*depth > CONFIG_DEPTH_MAX)
			return config_fail(yaml, line, "", "nested too deep; use at most %d levels",
					   CONFIG_DEPTH_MAX);
		return 0;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		--*depth;
		return 0;
	default:
		return 0;
	}
}

/*
 * Check the stream of events before the tree is built: the tree would hide aliases, which can make
 * it a graph, and building it would recurse into a hostile depth.
 */
static int check_events(struct config_yaml *yaml, const char *text, size_t length)
{
	unsigned int depth = 0, documents = 0;
	yaml_parser_t parser;
	bool more = true;
	int rc = 0;

	if (!yaml_parser_initialize(&parser))
		return out_of_memory(yaml);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	while (rc == 0 && more) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event)) {
			rc = syntax_error(yaml, &parser, text, length);
			break;
		}
		rc = check_event(yaml, &event, &depth, &documents);
		more = event.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return rc;
}

static int load_tree(struct config_yaml *yaml, const char *text, size_t length)
{
	yaml_parser_t parser;
	int rc = 0;

	if (!yaml_parser_initialize(&parser))
		return out_of_memory(yaml);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	if (!yaml_parser_load(&parser, &yaml->document))
		rc = syntax_error(yaml, &parser, text, length);
	yaml_parser_delete(&parser);
	return rc;
}

int config_yaml_open(struct config_yaml *yaml, const char *text, size_t length)
{
	yaml_node_t *root;
	int rc;

	if (length > CONFIG_BYTES_MAX) {
		config_fail(yaml, 1, "", "larger than 1 MiB");
		return -EFBIG;
	}
	rc = check_events(yaml, text, length);
	if (rc == 0)
		rc = load_tree(yaml, text, length);
	if (rc < 0)
		return rc;
	root = yaml_document_get_root_node(&yaml->document);
	if (root != NULL && root->type == YAML_MAPPING_NODE)
		return 0;
	if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
		rc = config_fail(yaml, 1, "",
				 "the file is empty; it needs ports, services, lcores");
	else
		rc = config_fail(yaml, config_node_line(root), "",
				 "the file is not a mapping; write keys as 'ports:'");
	yaml_document_delete(&yaml->document);
	return rc;
}

void config_yaml_close(struct config_yaml *yaml)
{
	yaml_document_delete(&yaml->document);
}

yaml_node_t *config_find(struct config_yaml *yaml, yaml_node_t *mapping, const char *key)
{
	size_t length = strlen(key);
	yaml_node_pair_t *pair;

	if (mapping->type != YAML_MAPPING_NODE)
		return NULL;
	for (pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top;
	     pair++) {
		yaml_node_t *name = yaml_document_get_node(&yaml->document, pair->key);

		if (name->type == YAML_SCALAR_NODE && name->data.scalar.length == length &&
		    memcmp(name->data.scalar.value, key, length) == 0)
			return yaml_document_get_node(&yaml->document, pair->value);
	}
	return NULL;
}

static yaml_node_t *item_at(struct config_yaml *yaml, yaml_node_t *list, unsigned int index)
{
	yaml_node_item_t *start = list->data.sequence.items.start;

	if (list->type != YAML_SEQUENCE_NODE || index >= list->data.sequence.items.top - start)
		return NULL;
	return yaml_document_get_node(&yaml->document, start[index]);
}

size_t config_locate(struct config_yaml *yaml, const char *list, unsigned int index,
		     const char *key, char path[CONFIG_PATH_MAX])
{
	yaml_node_t *node = yaml_document_get_root_node(&yaml->document), *inner;

	snprintf(path, CONFIG_PATH_MAX, "%s[%u]%s%s", list, index, key != NULL ? "." : "",
		 key != NULL ? key : "");
	inner = config_find(yaml, node, list);
	if (inner == NULL)
		return config_node_line(node);
	node = item_at(yaml, inner, index);
	if (node == NULL)
		return config_node_line(inner);
	inner = key != NULL ? config_find(yaml, node, key) : NULL;
	return config_node_line(inner != NULL ? inner : node);
}

int config_fail_at(struct config_yaml *yaml, const char *list, unsigned int index, const char *key,
		   const char *format, ...)
{
	char path[CONFIG_PATH_MAX], sentence[512];
	size_t line = config_locate(yaml, list, index, key, path);
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return config_fail(yaml, line, path, "%s", sentence);
}

bool config_given(struct config_yaml *yaml, const char *list, unsigned int index, const char *key)
{
	yaml_node_t *node = yaml_document_get_root_node(&yaml->document);

	node = config_find(yaml, node, list);
	node = node == NULL ? NULL : item_at(yaml, node, index);
	return node != NULL && config_find(yaml, node, key) != NULL;
}
