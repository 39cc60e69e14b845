/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocol/scan.h"

static void scan_skip_blanks(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
		s->at++;
}

/* Take the next character if it is <c>. */
static bool scan_take(struct scan *s, char c)
{
	scan_skip_blanks(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

/* Start behind the opening quote, end behind the closing one. */
static bool scan_skip_string(struct scan *s)
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

/* Move to the end of the innermost array or object that is open at <at>, or of a lone value. */
static bool scan_skip_value(struct scan *s)
{
	unsigned int depth = 0;

	while (s->at < s->end) {
		char c = *s->at;

		if (depth == 0 && (c == ',' || c == ']' || c == '}'))
			return true;
		s->at++;
		if (c == '"' && !scan_skip_string(s))
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

static bool scan_take_value(struct scan *s, struct scan *value)
{
	scan_skip_blanks(s);
	value->at = s->at;
	if (!scan_skip_value(s))
		return false;
	value->end = s->at;
	return value->end > value->at;
}

bool scan_next_member(struct scan *rest, struct scan *name, struct scan *value)
{
	bool first = scan_take(rest, '{');
	struct scan next = *rest;

	/* on failure <*rest> stays in front, so that scan_object_ended() sees no end there */
	if ((!first && !scan_take(&next, ',')) || !scan_take(&next, '"'))
		return false;
	name->at = next.at;
	if (!scan_skip_string(&next))
		return false;
	name->end = next.at - 1;
	if (!scan_take(&next, ':') || !scan_take_value(&next, value))
		return false;
	*rest = next;
	return true;
}

bool scan_object_ended(struct scan rest)
{
	if (!scan_take(&rest, '}'))
		return false;
	do
		scan_skip_blanks(&rest);
	while (scan_take(&rest, '\r') || scan_take(&rest, '\n'));
	return rest.at == rest.end;
}

bool scan_element(struct scan *rest, struct scan *value)
{
	if (!scan_take(rest, '[') && !scan_take(rest, ','))
		return false;
	scan_skip_blanks(rest);
	if (rest->at < rest->end && *rest->at == ']')
		return false;
	return scan_take_value(rest, value);
}
