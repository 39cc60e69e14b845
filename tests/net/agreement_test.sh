#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Load balancers with the same cluster_secret_file send each flow to the same worker: here one after the
# other, the second with its ports in another order and workers that come in any order. Without the file
# each uses a hash of its own.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
topology_config "
  - {name: request, address: $vip, port: 8500, model: echo, policy: maglev}
  - {name: flow, address: $vip, port: 8501, model: echo, policy: maglev, affinity: flow}
  - {name: sticky, address: $vip, port: 8502, model: echo, policy: maglev, affinity: sticky}" \
    "workers: {suspect_ms: 0, timeout_ms: 3000}"
python3 -c 'import os; print(os.urandom(32).hex())' >"$dir/secret"
chmod 600 "$dir/secret"
flows=60

# member NAME: the worker of each flow, as this load balancer has it, in $dir/NAME
member() {
    local i
    start_lb
    for i in 1 2 3; do
        [ -n "${pid_w3:-}" ] || start_agent "$i" echo
    done
    for i in 1 2 3; do
        wait_for "w$i to be active" worker_is "w$i" active
    done
    for i in 8500 8501 8502; do
        ip netns exec "$tag-client" "$here/ask_from.py" "$vip" "$i" 20000 $flows
    done
    cli --json flows list --limit 1000 |
        jq -r '.flows[] | "\(.service) \(.client) \(.worker)"' | sort >"$dir/$1"
    stop "$pid_lb"
    expect "flows of $1" "$(wc -l <"$dir/$1")" -eq $((3 * flows))
    expect "workers of $1" "$(awk '{ print $NF }' "$dir/$1" | sort -u | wc -l)" -eq 3
}

# agreed A B SERVICE: flows that both send to the same worker
agreed() {
    comm -12 "$dir/$1" "$dir/$2" | grep -c "^$3 " || true
}

echo "cluster_secret_file: $dir/secret" >>"$dir/lb.yaml"
cp "$dir/lb.yaml" "$dir/one.yaml"
member one
# The clients port's block comes after the fabric port's.
awk '/name: clients/ { held = 1 } /name: fabric/ { held = 0 } /^services/ { printf "%s", port }
    held { port = port $0 "\n"; next } { print }' "$dir/one.yaml" >"$dir/lb.yaml"
expect "the first port of the second" "$(grep -m 1 -o 'name: [a-z]*' "$dir/lb.yaml")" = "name: fabric"
member two
sed -i '/^cluster_secret_file/d' "$dir/lb.yaml"
member alone
member again

for service in request flow sticky; do
    expect "$service: flows that both send alike" "$(agreed one two $service)" -eq $flows
    expect "$service: flows that both send alike by chance" "$(agreed alone again $service)" -lt $((flows * 3 / 4))
done
echo "with one secret both sent $flows of $flows flows alike, without $(agreed alone again request) (maglev)," \
    "$(agreed alone again flow) (and affinity: flow), $(agreed alone again sticky) (sticky)"
