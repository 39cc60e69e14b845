#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Serves a load balancer's status page as it serves it, with a status in which every text is markup.

usage: forged_status.py URL-OF-THE-LOAD-BALANCER PORT
"""
import http.server
import json
import sys
import urllib.request

MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def forge(value):
    if isinstance(value, dict):
        return {key: forge(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [forge(inner) for inner in value]
    return MARKUP if isinstance(value, str) else value


def main():
    page = urllib.request.urlopen(sys.argv[1] + "/")
    body = page.read()
    status = json.load(urllib.request.urlopen(sys.argv[1] + "/api/status.json"))
    status["workers"][0]["reason"] = "x"
    answer = json.dumps(forge(status)).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = answer if self.path == "/api/status.json" else body
            self.send_response(200)
            for name in ("Content-Type", "Content-Security-Policy"):
                if content is body:
                    self.send_header(name, page.headers[name])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()


main()
