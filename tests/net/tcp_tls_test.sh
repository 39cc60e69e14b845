#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Services with TLS: curl and Python's clients by TLS 1.2 and 1.3, small requests and 4 MiB; what is not TLS, and what
# would renegotiate, is refused and counted; a flood of handshakes leaves an open connection alone; a renewed
# certificate is taken without a restart, a bad one is refused.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

command -v curl >/dev/null || skip "no curl"
topology_up "story$$" 1
for address in 3 4; do
    ip -n "$tag-client" addr add "10.200.0.$address/24" dev c0
done

certificate first
certificate second
cp "$dir/first.pem" "$dir/service.pem"
install -m 600 "$dir/first.key" "$dir/service.key"

tls="tls: {certificate: $dir/service.pem, key: $dir/service.key}"
topology_config "
  - {name: kserve, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: echo, max_request: 4MiB, max_reply: 4MiB, $tls}
  - {name: length, protocol: tcp, framing: length, address: $vip, port: 8502, model: echo, max_request: 4MiB, max_reply: 4MiB, $tls}
  - {name: plain, protocol: tcp, framing: length, address: $vip, port: 8503, model: echo}" "
tcp: {handshake_ms: 1500}"
expect_check 0 "good"
start_lb
start_agents 1 echo --model-args max_request=4194304

# counter FIELD: of lcores[].tcp.tls
counter() {
    cli --json stats | jq "[.lcores[].tcp.tls.$1] | add"
}
counter_above() {
    [ "$(counter "$1")" -gt "$2" ]
}
# ask ARGUMENTS...: curl's status in $status, its answer in $dir/answer
ask() {
    status=$(ip netns exec "$tag-client" curl --silent --show-error --max-time 20 --cacert "$dir/ca.pem" \
        --output "$dir/answer" --write-out '%{http_code}' "$@") || fail "curl ended with $?: $*"
}
in_client() {
    ip netns exec "$tag-client" "$@"
}

# --- curl, both versions, small and large
url=https://$vip:8501/v2
head -c 3000000 /dev/urandom >"$dir/large"
for version in 1.2 1.3; do
    ask "--tlsv$version" --tls-max "$version" "$url/health/ready"
    expect "ready by TLS $version" "$status" -eq 200
    ask "--tlsv$version" --tls-max "$version" --data-binary "@$dir/large" -H "Inference-Header-Content-Length: 0" \
        "$url/models/echo/infer"
    expect "3 MB by TLS $version" "$status" -eq 200
    tail -c 3000000 "$dir/answer" | cmp - "$dir/large" || fail "other bytes came back by TLS $version"
done
expect "handshakes of TLS 1.2" "$(counter opened_12)" -eq 2
expect "handshakes of TLS 1.3" "$(counter opened_13)" -eq 2
in_client openssl s_client -connect "$vip:8501" -alpn h2,http/1.1 </dev/null >"$dir/alpn" 2>&1 || true
grep -q "ALPN protocol: http/1.1" "$dir/alpn" || fail "no ALPN: $(cat "$dir/alpn")"
in_client openssl s_client -connect "$vip:8501" -alpn h2 </dev/null >"$dir/alpn" 2>&1 || true
grep -q "ALPN protocol: h2" "$dir/alpn" || fail "no ALPN of HTTP/2: $(cat "$dir/alpn")"

# --- Python's client: framing length, all the ciphers there are, 4 MiB, pieces of all sizes
in_client /usr/bin/python3 "$here/tcp_tls.py" echo "$vip" 8502 "$dir/ca.pem" || fail "tcp_tls.py echo"
expect "resumed handshakes" "$(counter resumed)" -ge 2
expect "new keys, three times in each direction" "$(counter rekeys)" -eq 6

! in_client openssl s_client -connect "$vip:8502" -alpn h2 </dev/null >"$dir/alpn" 2>&1 || fail "a client of HTTP/2 was taken"
expect_log lb 'service=length event=handshake_failed reason="no application protocol" others=0'

# --- its version is shown
coproc holder { exec ip netns exec "$tag-client" /usr/bin/python3 "$here/tcp_tls.py" hold "$vip" 8502 "$dir/ca.pem" 2>"$dir/holder.log"; }
to=${holder[1]} from=${holder[0]}
# held COMMAND EXPECTED...: the client that holds a connection does what it is told
held() {
    echo "$1" >&"$to"
    read -r answer <&"$from" || fail "the client has ended: $(cat "$dir/holder.log")"
    [[ $answer == "$2"* ]] || fail "$1: $answer"
}
held echo "ok 1.3"
client_end=$(cli --json flows top --service length --limit 1 | jq -r '.flows[0].client')
expect "TLS of the flow" "$(cli --json flows show "$client_end" 2>/dev/null | jq -r '.flows[0].tcp.tls')" = 1.3

# --- what is not TLS
refused=$(drops tcp_tls)
! in_client curl --silent --max-time 5 "http://$vip:8501/v2/health/ready" >/dev/null || fail "HTTP was answered"
wait_for "HTTP to be counted" counter_above not_tls 0
expect "drops" "$(drops tcp_tls)" -gt "$refused"
in_client /usr/bin/python3 "$here/tcp_tls.py" bad "$vip" 8502 "$dir/ca.pem" || fail "tcp_tls.py bad"
wait_for "a renegotiation to be counted" counter_above renegotiations 0
wait_for "a forged record to be counted" counter_above bad_records 0
wait_for "a failed handshake to be counted" counter_above failed 0
wait_for "late handshakes to be counted" counter_above late 1
held echo "ok 1.3"

# --- a flood of handshakes, by two other addresses, beside the open connection
for address in 3 4; do
    start "flood$address" client /usr/bin/python3 "$here/tcp_tls.py" flood "$vip" 8502 "10.200.0.$address"
done
expect_log flood3 "begun"
expect_log flood4 "begun"
for ((i = 0; i < 50; i++)); do
    held echo "ok 1.3"
done
ask "$url/health/ready"
expect "a new client beside the flood" "$status" -eq 200
stop "$pid_flood3"
stop "$pid_flood4"

# --- a renewed certificate: new connections get it, the old one goes on
serial() {
    in_client openssl s_client -connect "$vip:$1" </dev/null 2>/dev/null | openssl x509 -noout -subject
}
expect "the first certificate" "$(serial 8502)" = "subject=CN = first"
cp "$dir/second.pem" "$dir/service.pem"
! cli config check >"$dir/said" 2>&1 || fail "a key that does not belong to its certificate is good"
! cli config apply >"$dir/said" 2>&1 || fail "a key that does not belong to its certificate was applied"
grep -qF "services[kserve].tls: cannot use the key $dir/service.key: it does not belong to the certificate" "$dir/said" ||
    fail "config apply says: $(cat "$dir/said")"
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$dir/service.key" 2>/dev/null
! cli config apply >"$dir/said" 2>&1 || fail "a key of another kind than its certificate's was applied"
grep -qF "it does not belong to the certificate" "$dir/said" || fail "config apply says: $(cat "$dir/said")"
expect "the first certificate still" "$(serial 8502)" = "subject=CN = first"
expect_check 1 "it does not belong to the certificate"
install -m 600 "$dir/second.key" "$dir/service.key"
cli config apply >"$dir/said" 2>&1 || fail "config apply says: $(cat "$dir/said")"
expect "the second certificate" "$(serial 8502)" = "subject=CN = second"
held echo "ok 1.3"
cp "$dir/first.pem" "$dir/service.pem"
install -m 600 "$dir/first.key" "$dir/service.key"
kill -HUP "$pid_lb"
is_first() {
    [ "$(serial 8502)" = "subject=CN = first" ]
}
wait_for "the first certificate after SIGHUP" is_first
chmod 644 "$dir/service.key"
! cli config apply >"$dir/said" 2>&1 || fail "a key that all may read was applied"
grep -qF "may be read by everybody" "$dir/said" || fail "config apply says: $(cat "$dir/said")"
chmod 600 "$dir/service.key"

# --- TLS on a service that was plain: its open connections go on
in_client /usr/bin/python3 "$here/tcp_tls.py" plain "$vip" 8503 || fail "tcp_tls.py plain"
sed -i "s|port: 8503, model: echo|&, $tls|" "$dir/lb.yaml"
cli config apply >"$dir/said" 2>&1 || fail "config apply says: $(cat "$dir/said")"
expect "the certificate of the third service" "$(serial 8503)" = "subject=CN = first"
held echo "ok 1.3"

# --- metrics
metrics=$(ip netns exec "$tag-lb" /usr/bin/python3 -c "import urllib.request as r
print(r.urlopen('http://127.0.0.1:9180/metrics', timeout=10).read().decode())") || fail "no metrics"
grep -q '^doorbell_tls_opened_13_total{lcore="0"} [1-9]' <<<"$metrics" || fail "no metric of handshakes"
grep -q '^doorbell_drops_total{reason="tcp_tls"} [1-9]' <<<"$metrics" || fail "no metric of drops"

# --- all is given back
held close "closed"
at_rest() {
    [ "$(cli --json stats | jq -c '[.lcores[].tcp | .busy, .held_packets, .pieces, .tls.handshakes] | add')" = 0 ]
}
wait_for "all to be given back" at_rest
echo "$story: TLS 1.2 and 1.3, $(counter opened_13) and $(counter opened_12) handshakes, $(counter records_in) records"
