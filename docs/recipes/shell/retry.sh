#!/bin/sh
# Wait as long as Tollgate says, plus a random time. POSIX sh, awk and curl 7.84 or later.
tollgate=${TOLLGATE_URL:-http://127.0.0.1:8081}
timeout=${TOLLGATE_TIMEOUT:-0.25} # seconds; a limiter that takes longer is worse than none
wait_at_most=${TOLLGATE_WAIT:-30} # whole seconds in all; someone is waiting for us, too
# What to do when Tollgate does not answer: open continues without it, closed tries again until $wait_at_most.
fail=${FAIL:-open}

# Quotes the argument as a JSON string. Otherwise a client could add attributes.
string() { printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }

# Status 0 once the request is admitted, 1 if that would take too long or no wait helps, 2 if the call is invalid.
wait_until_allowed() {
    try=0 started=$(date +%s)
    while [ $((try += 1)) -gt 0 ]; do
        answer=$(curl --silent --max-time "$timeout" --output /dev/null --write-out '%{http_code} %header{retry-after}' \
            --json "{\"attributes\": {\"user\": $(string "$1"), \"action\": \"send\"}, \"cost\": $2}" "$tollgate/v1/check")
        wait=${answer#* }
        case $answer in
            200*) return 0 ;;
            '429 ' | '503 ') return 1 ;;
            429* | 503*) ;;
            000*)
                echo "tollgate did not answer" >&2
                [ "$fail" != open ] || return 0
                wait=1
                ;;
            *)
                echo "the call itself is wrong: $answer" >&2
                return 2
                ;;
        esac
        [ $(($(date +%s) + wait - started)) -lt "$wait_at_most" ] || return 1
        # Clients refused together would return together: a random wait of up to half as long again spreads them.
        sleep "$(awk -v wait="$wait" -v seed="$$$try" 'BEGIN { srand(seed); print wait * (1 + rand() / 2) }')"
    done
}

main() {
    for number in 1 2 3; do
        if wait_until_allowed "${1:-42}" 1; then echo "$number: sent"; else echo "$number: given up"; fi
    done
    if wait_until_allowed "${1:-42}" 100; then echo "100 at once: sent"; else echo "100 at once: given up"; fi
}

# Only when this file is the program: sourcing it spends nothing.
case ${0##*/} in retry.sh) main "$@" ;; esac
