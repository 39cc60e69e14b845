/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "protocol/scan.h"

static void skip_blanks(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
		s->at++;
}

/* Take <c>, if that is what comes. */
static bool take(struct scan *s, char c)
{
	skip_blanks(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

/* <at> is behind the opening quote, then behind the closing one. */
static bool skip_string(struct scan *s)
{
	for (; s->at < s->end; s->at++) {
		if (*s->at == '"') {
			s->at++;
			return true;
		}
		if ((unsigned char)*s->at < ' ')
			return false;
		if (*s->at == '\\' && ++s->at == s->end)
			return false;
	}
	return false;
}

/* To the end of the innermost array or object that is open at <at>, or of a lone value. */
static bool skip_value(struct scan *s)
{
	unsigned int depth = 0;

	while (s->at < s->end) {
		char c = *s->at;

		if (depth == 0 && (c == ',' || c == ']' || c == '}'))
			return true;
		s->at++;
		if (c == '"' && !skip_string(s))
			return false;
		if ((unsigned char)c < ' ' && c != '\t')
			return false;
		if (c == '[' || c == '{')
			depth++;
		if ((c == ']' || c == '}') && --depth == 0)
			return true;
	}
	return depth == 0;
}

static bool take_value(struct scan *s, struct scan *value)
{
	skip_blanks(s);
	value->at = s->at;
	if (!skip_value(s))
		return false;
	value->end = s->at;
	return value->end > value->at;
}

bool scan_member(struct scan object, const char *name, struct scan *value)
{
	size_t n = strlen(name);

	if (!take(&object, '{'))
		return false;
	do {
		struct scan key;

		if (!take(&object, '"'))
			return false;
		key.at = object.at;
		if (!skip_string(&object))
			return false;
		key.end = object.at - 1;
		if (!take(&object, ':') || !take_value(&object, value))
			return false;
		if ((size_t)(key.end - key.at) == n && memcmp(key.at, name, n) == 0)
			return true;
	} while (take(&object, ','));
	return false;
}

bool scan_element(struct scan *rest, struct scan *value)
{
	if (!take(rest, '[') && !take(rest, ','))
		return false;
	skip_blanks(rest);
	if (rest->at < rest->end && *rest->at == ']')
		return false;
	return take_value(rest, value);
}
