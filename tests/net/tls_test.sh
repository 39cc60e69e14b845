#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Agents register over TLS 1.3. With certificates, and then with a token, two of them serve; one that
# does not belong is refused, and both sides log why. A stranger with neither gets no answer.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

command -v openssl >/dev/null || skip "needs the openssl program"
topology_up "story$$" 3
service="  - {name: echo, address: $vip, port: 8500, model: echo}"
make_ca=$root/deploy/make-ca.sh
ca=$dir/ca
other=$dir/other
{
    "$make_ca" "$ca" lb 10.201.0.254
    "$make_ca" "$ca" agent w1 w2 w3
    "$make_ca" "$ca" token
    "$make_ca" "$other" agent w3
    "$make_ca" "$other" token
} >"$dir/make-ca.log"
expect "keys that others may read" "$(find "$ca" "$other" -name '*.key' -perm /077)" = ""

# with CERTIFICATE-DIR NAME: prints options of an agent
with() {
    echo --tls-ca "$ca/ca.pem" --tls-certificate "$1/$2.pem" --tls-key "$1/$2.key"
}

# refused LB-TEXT AGENT-TEXT OPTIONS...: expects that w3 is refused and that both logs have the reason
refused() {
    local lb=$1 agent=$2
    shift 2
    : >"$dir/w3.log"
    start_agent 3 echo "$@"
    expect_log w3 "$agent"
    expect_log lb "$lb"
    worker_known w3 && fail "w3 is registered"
    stop "$pid_w3"
    expect "exit status of a refused agent" "$status" -eq 0
}

# From w3's host, without TLS: the answer is an alert and no other byte.
stranger() {
    local got
    got=$(ip netns exec "$tag-w3" timeout 10 bash -c \
        'exec 3<>/dev/tcp/10.201.0.254/4790; echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}" >&3; cat <&3' |
        wc -c)
    expect "bytes that a stranger got" "$got" -le 7
}

serve() {
    load "$1" echo --to "$vip:8500" --sockets 8 --requests 500 || true
    expect_all "$1" 4000
}

topology_config "$service"
sed -i "s|^control: {|&tls: {certificate: $ca/lb.pem, key: $ca/lb.key, ca: $ca/ca.pem}, |" "$dir/lb.yaml"
start_lb
# shellcheck disable=SC2046
{
    start_agent 1 echo $(with "$ca" w1)
    start_agent 2 echo $(with "$ca" w2)
    wait_for "w1 to be active" worker_is w1 active
    wait_for "w2 to be active" worker_is w2 active
    serve certificates
    refused "the agent's certificate is refused: " "ca did not sign --tls-certificate" $(with "$other" w3)
    refused "the agent's --tls-ca did not sign our certificate" \
        "the load balancer's certificate is refused: " $(with "$ca" w3) --tls-ca "$other/ca.pem"
    refused "the agent finds our certificate bad" "is not for the name or address in --lb" \
        $(with "$ca" w3) --tls-name lb.example
    refused "event=name_refused" "the agent's certificate is for w2, not for 'w3'" $(with "$ca" w2)
    "$make_ca" "$ca" agent "w3,10.201.0.99,10.201.0.98" --renew >>"$dir/make-ca.log"
    refused "event=address_refused" "address: the agent's certificate has IP addresses, and 10.201.0.13 is none" \
        $(with "$ca" w3)
    "$make_ca" "$ca" agent "w3,10.201.0.13,model:mlp" --renew >>"$dir/make-ca.log"
    refused "event=model_refused" "model: the agent's certificate is for other models than 'echo'" \
        $(with "$ca" w3)
    "$make_ca" "$ca" agent "w3,10.201.0.13,model:echo,model:mlp" --renew --days 3 >>"$dir/make-ca.log"
    refused "did not sign our certificate" "does not have our token, but certificates" \
        --token-file "$ca/token"
}
refused "that is not TLS" "does it want TLS"
stranger

# Renewed certificates are used from the next connection on, and no worker is thrown out.
"$make_ca" "$ca" lb 10.201.0.254 --renew >>"$dir/make-ca.log"
kill -HUP "$pid_lb"
expect_log lb "event=tls_reloaded"
# shellcheck disable=SC2046
start_agent 3 echo $(with "$ca" w3)
wait_for "w3 to be active" worker_is w3 active
expect_log w3 "event=certificate_validity reason=\"the certificate ends "
serve renewed
for w in 1 2 3; do
    p=pid_w$w
    stop "${!p}"
done
stop "$pid_lb"

expect_check 0 good
"$make_ca" "$ca" lb 10.201.0.254 --renew --days 3 >>"$dir/make-ca.log"
expect_check 0 "soon: control.tls.certificate: $ca/lb.pem ends "
rm "$ca/lb.key"
expect_check 1 "$ca/lb.key"

# Without either, strangers are accepted only if the file allows it.
topology_config "$service"
expect_check 0 good
sed -i 's|, allow_plain: true||' "$dir/lb.yaml"
expect_check 1 "control.agents: any host that reaches 10.201.0.254 port 4790 could register a worker"
sed -i 's|10.201.0.254:4790|127.0.0.1:4790|' "$dir/lb.yaml"
expect_check 0 good

topology_config "$service"
sed -i "s|, allow_plain: true||; s|^control: {|&token_file: $ca/token, |" "$dir/lb.yaml"
start_lb
start_agents 2 echo --token-file "$ca/token"
serve token
refused "the agent has another token, or none" "does it have the same token" --token-file "$other/token"
refused "that is not TLS" "does it want TLS"
stranger

echo "two workers served with certificates, then with a token; ten that do not belong were refused"
