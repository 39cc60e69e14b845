#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A certificate authority for development and small sites, and what it signs: certificates that
# agents and load balancers show each other. Needs the openssl program, and nothing else.
#
#   deploy/make-ca.sh DIR                        the authority: ca.pem, ca.key
#   deploy/make-ca.sh DIR lb NAME|IP ...         lb.pem, lb.key, for what agents have in --lb
#   deploy/make-ca.sh DIR agent NAME ...         NAME.pem, NAME.key, each for the workers of one host; NAME,IP,model:MODEL
#                                                binds them to these addresses and models
#   deploy/make-ca.sh DIR token                  token, for load balancer and agents without all that
#
#   --days N    how long certificates are valid [365; the authority 3650]
#   --renew     make again what is there already; a new authority makes the old certificates useless
#
# May be run again any time: what is there is kept. Keys are for their owner only (0600). Keep
# ca.key away from load balancers and agents: they need ca.pem and their own two files.
set -euo pipefail

days='' renew='' arguments=()

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit "$1"
}

complain() {
    echo "make-ca.sh: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --days)
        days=${2:-}
        [[ $days =~ ^[1-9][0-9]{0,4}$ ]] || complain "--days: '$days' is not a number of days"
        shift
        ;;
    --renew) renew=yes ;;
    --help | -h) usage 0 ;;
    -*) complain "unknown option $1 (see --help)" ;;
    *) arguments+=("$1") ;;
    esac
    shift
done
[ ${#arguments[@]} -gt 0 ] || usage 2
dir=${arguments[0]}
what=${arguments[1]:-ca}
names=("${arguments[@]:2}")

command -v openssl >/dev/null || complain "there is no openssl program; apt-get install openssl"
umask 077
mkdir -p "$dir"
work=$(mktemp -d "$dir/.make-ca.XXXXXX")
trap 'rm -rf "$work"' EXIT
# The system's own configuration adds extensions of its own.
printf '[req]\ndistinguished_name = dn\n[dn]\n' >"$work/openssl.cnf"

# quietly COMMAND...: its output is of interest only when it fails
quietly() {
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        complain "failed: $*"
    }
}

# keep NAME: is there a certificate to be kept? Says so.
keep() {
    [ -z "$renew" ] && [ -s "$dir/$1.pem" ] && [ -s "$dir/$1.key" ] || return 1
    echo "kept $dir/$1.pem, valid until $(openssl x509 -noout -enddate -in "$dir/$1.pem" |
        cut -d= -f2)"
}

make_key() {
    quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/key"
}

# place NAME WHAT: what is made comes into place whole
place() {
    chmod 600 "$work/key"
    chmod 644 "$work/pem"
    mv "$work/key" "$dir/$1.key"
    mv "$work/pem" "$dir/$1.pem"
    echo "made $dir/$1.pem and $1.key: $2"
}

# A second authority must not pass for the first, so they differ in name.
make_authority() {
    keep ca && return
    make_key
    quietly openssl req -x509 -new -config "$work/openssl.cnf" -key "$work/key" -sha256 \
        -days "${days:-3650}" -subj "/CN=Doorbell authority $(openssl rand -hex 4)" \
        -addext basicConstraints=critical,CA:TRUE,pathlen:0 \
        -addext keyUsage=critical,keyCertSign,cRLSign -out "$work/pem"
    place ca "an authority"
}

# One call must not both throw away an authority and sign with the next.
make_authority_once() {
    local again=$renew
    renew=''
    make_authority
    renew=$again
}

# make_certificate NAME COMMON-NAME USAGE ALTERNATIVE-NAMES
make_certificate() {
    make_key
    quietly openssl req -new -config "$work/openssl.cnf" -key "$work/key" -subj "/CN=$2" \
        -out "$work/request"
    cat >"$work/extensions" <<END
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = $3
subjectAltName = $4
END
    quietly openssl x509 -req -in "$work/request" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -sha256 \
        -set_serial "0x$(openssl rand -hex 16)" -days "${days:-365}" -extfile "$work/extensions" \
        -out "$work/pem"
    place "$1" "$3 for ${4//,/, }"
}

# alternative NAME: as it stands in a certificate
alternative() {
    if [[ $1 =~ ^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$ || $1 == *:* ]]; then
        echo "IP:$1"
    else
        [[ $1 =~ ^[A-Za-z0-9*._-]+$ ]] || complain "'$1' is no name and no address"
        echo "DNS:$1"
    fi
}

make_lb() {
    local name list=
    [ ${#names[@]} -gt 0 ] || complain "lb: say what agents dial: a name or an address, or several"
    for name in "${names[@]}"; do
        list+=${list:+,}$(alternative "$name")
    done
    keep lb || make_certificate lb "${names[0]}" serverAuth "$list"
}

# "gpu-host-1", or "gpu-host-1,10.201.0.11,model:echo": with these addresses and models, and no others
make_agents() {
    local name list part parts
    [ ${#names[@]} -gt 0 ] || complain "agent: say the names of the workers"
    for name in "${names[@]}"; do
        IFS=, read -ra parts <<<"$name"
        name=${parts[0]}
        [[ $name =~ ^[A-Za-z0-9._-]{1,63}$ && $name != ca && $name != lb && $name != .* ]] ||
            complain "agent: '$name' cannot be a worker's name and its files'"
        list=DNS:$name
        for part in "${parts[@]:1}"; do
            if [[ $part =~ ^model:[A-Za-z0-9._-]+$ ]]; then
                list+=,URI:doorbell:$part
            else
                list+=,$(alternative "$part")
            fi
        done
        keep "$name" || make_certificate "$name" "$name" clientAuth "$list"
    done
}

make_token() {
    if [ -z "$renew" ] && [ -s "$dir/token" ]; then
        echo "kept $dir/token"
        return
    fi
    openssl rand -hex 32 >"$work/token"
    mv "$work/token" "$dir/token"
    echo "made $dir/token: for control.token_file and --token-file"
}

case $what in
ca) make_authority ;;
token) make_token ;;
lb)
    make_authority_once
    make_lb
    ;;
agent)
    make_authority_once
    make_agents
    ;;
*) complain "'$what' is none of lb, agent, token" ;;
esac
