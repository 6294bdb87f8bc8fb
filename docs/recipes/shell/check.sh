#!/bin/sh
# Ask Tollgate before doing the work. POSIX sh and curl 7.84 or later.
tollgate=${TOLLGATE_URL:-http://127.0.0.1:8081}
timeout=${TOLLGATE_TIMEOUT:-0.25} # seconds; a limiter that takes longer is worse than none
# What to do when Tollgate does not answer: open admits all requests, closed refuses them. Choose for each call site: a
# page view is worth more than its limit, a password guess is not.
fail=${FAIL:-open}

# Quotes the argument as a JSON string. Otherwise a client could add attributes.
string() { printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }

# Status 0: admitted. Status 1: refused, and $wait has the seconds to wait (empty: no wait helps). Status 2: the call
# is invalid.
check() {
    answer=$(curl --silent --max-time "$timeout" --output /dev/null --write-out '%{http_code} %header{retry-after}' \
        --json "{\"attributes\": {\"user\": $(string "$1"), \"action\": $(string "$2")}}" "$tollgate/v1/check")
    wait=${answer#* }
    case $answer in
        200*) return 0 ;;
        429* | 503*) return 1 ;; # refused, or a limit that fails closed could not be decided
        000*)
            echo "tollgate did not answer" >&2
            wait=1
            [ "$fail" = open ]
            ;;
        *)
            echo "the call itself is wrong: $answer" >&2
            return 2
            ;;
    esac
}

main() {
    for number in 1 2 3; do
        if check "${1:-42}" view; then
            echo "$number: allowed"
        else
            echo "$number: refused, try again in $wait s"
        fi
    done
}

# Only when this file is the program: sourcing it spends nothing.
case ${0##*/} in check.sh) main "$@" ;; esac
