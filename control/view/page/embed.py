#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turn the status page into a C header: its bytes, and a policy that allows its own script and style
and nothing else (Content Security Policy, by the hashes of what is between the tags).

usage: embed.py PAGE.html OUT.h
"""
import base64
import hashlib
import re
import sys


def hashes(page, tag):
    parts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    if len(parts) != page.count(f"<{tag}"):
        sys.exit(f"{sys.argv[1]}: a <{tag}> with attributes, which the policy would not allow")
    digests = (hashlib.sha256(part.encode()).digest() for part in parts)
    return " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    for word in (' style="', " onclick", "javascript:", "http:", "https:"):
        if word in page.replace("http://www.w3.org/2000/svg", ""):
            sys.exit(f"{sys.argv[1]}: has '{word.strip()}', which its policy does not allow")
    policy = (f"default-src 'none'; script-src {hashes(page, 'script')}; "
              f"style-src {hashes(page, 'style')}; connect-src 'self'; img-src data:; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    data = page.encode()
    with open(sys.argv[2], "w", encoding="ascii") as out:
        print("/* SPDX-License-Identifier: BSD-3-Clause */", file=out)
        print("/* Made from control/view/page/page.html by embed.py. */", file=out)
        print("#ifndef CONTROL_PAGE_H\n#define CONTROL_PAGE_H\n", file=out)
        print(f'#define PAGE_POLICY "{policy}"\n', file=out)
        print("static const unsigned char page_html[] = {", file=out)
        for at in range(0, len(data), 24):
            print("\t" + ", ".join(map(str, data[at:at + 24])) + ",", file=out)
        print("};\n\n#endif", file=out)


main()
