#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The status page in a browser: workers and counters are shown and move, and markup in texts from
# elsewhere is text. With DOORBELL_SCREENSHOT=FILE.png it also leaves a picture of the page.
. "$(dirname "$0")/story.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no chromium (apt-get install chromium: 300 MB, so it is not among the packages)"

# browse URL OPTION...: runs a fresh browser beside the load balancer
browse() {
    local url=$1
    shift
    # the page asks once a second; virtual time covers some of these requests
    ip netns exec "$tag-lb" env HOME="$dir" timeout 60 "$browser" --headless --no-sandbox --disable-gpu \
        --disable-quic --no-first-run --disable-background-networking --disable-component-update \
        --disable-sync --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$dir/browser.$RANDOM" \
        --virtual-time-budget=4000 "$@" "$url" 2>>"$dir/browser.errors"
}

# cell FILE TABLE ROW COLUMN: prints the text of a cell; rows and columns from 1, the header is row 0
cell() {
    python3 - "$@" <<'END'
import html.parser
import sys


class Table(html.parser.HTMLParser):
    rows, on, cell = [], False, False

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.on = dict(attributes).get("id") == sys.argv[2]
        elif tag == "tr" and self.on:
            self.rows.append([])
        elif tag in ("td", "th") and self.on:
            self.rows[-1].append("")
        self.cell = tag in ("td", "th")

    def handle_endtag(self, tag):
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self.on and self.cell:
            self.rows[-1][-1] += data


table = Table()
table.feed(open(sys.argv[1], encoding="utf-8").read())
print(table.rows[int(sys.argv[3])][int(sys.argv[4]) - 1])
END
}

topology_up "story$$" 2
# on slow machines a worker may not be scheduled for a while, which is not tested here
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" "workers: {timeout_ms: 10000}"
start_lb
start_agents 2 echo
load_start run echo --to "$vip:8500" --sockets 16 --window 1 --rate 4000 --duration-s 120

browse http://127.0.0.1:9180/ --dump-dom >"$dir/one.html"
grep -q '>live<' "$dir/one.html" || fail "the page is not live: $(head -c 2000 "$dir/one.html")"
expect "workers on the page" "$(for row in 1 2; do cell "$dir/one.html" workers $row 1; done |
    sort | xargs)" = "w1 w2"
for row in 1 2; do
    expect "state of worker $row" "$(cell "$dir/one.html" workers $row 3)" = active
done
expect "service" "$(cell "$dir/one.html" services 1 1)" = echo
grep -q '<rect class="fill-wire"' "$dir/one.html" || fail "no split of latency is drawn"
browse http://127.0.0.1:9180/ --dump-dom >"$dir/two.html"
# compared as numbers: the page may write 12.3k
before=$(cell "$dir/one.html" services 1 7 | sed 's/k/ 1000/; s/M/ 1000000/' | awk '{ print $1 * ($2 ? $2 : 1) }')
after=$(cell "$dir/two.html" services 1 7 | sed 's/k/ 1000/; s/M/ 1000000/' | awk '{ print $1 * ($2 ? $2 : 1) }')
expect "requests on the page, later" "${after%.*}" -gt "${before%.*}"

start forged lb python3 "$here/forged_status.py" http://127.0.0.1:9180 9181
wait_for "the forged page" ip netns exec "$tag-lb" python3 -c \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9181/')"
browse http://127.0.0.1:9181/ --dump-dom >"$dir/forged.html"
grep -q '>live<' "$dir/forged.html" || fail "the forged page is not live"
expect "a worker's name with markup" "$(cell "$dir/forged.html" workers 1 1)" = \
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
! grep -q '<img' "$dir/forged.html" || fail "markup of a worker became part of the page"
grep -q '<title>Doorbell</title>' "$dir/forged.html" || fail "a worker's script ran"

if [ -n "${DOORBELL_SCREENSHOT:-}" ]; then
    browse http://127.0.0.1:9180/ --window-size=1320,900 --screenshot="$DOORBELL_SCREENSHOT" \
        --virtual-time-budget=20000 >/dev/null
fi
stop "$pid_run"
echo "both workers are on the page, counters rise, and markup is text"
