#!/bin/sh
# Reserve tokens before a call to a model, settle what it used. POSIX sh, sed and curl 7.82 or later.
tollgate=${TOLLGATE_URL:-http://127.0.0.1:8081}
timeout=${TOLLGATE_TIMEOUT:-0.25} # seconds; a limiter that takes longer is worse than none
# What to do when Tollgate does not answer: open does the work without a reservation, closed does not.
fail=${FAIL:-open}

# A JSON string of the argument, or anyone could add attributes of their own.
string() { printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }

# Prints the answer. Another status than 0: Tollgate does not answer.
post() {
    curl --silent --max-time "$timeout" --json "$2" "$tollgate/v1/$1" && return 0
    echo "tollgate did not answer" >&2
    return 1
}

# Answers have no space between a name and its value: enough for sed, where there is nothing better.
member() { sed -n "s/.*\"$1\":\"*\([^\",}]*\).*/\1/p"; }

# Settles or cancels, and prints the answer. Doing so twice does no harm, so a call without an answer is made again.
end() {
    for attempt in 1 2 3; do
        if ended=$(post "$1" "$2"); then
            case $ended in
                *'"charged":'*) printf %s "$ended" && return 0 ;;
            esac
            # Ended already, expired, or lost with the memory of a Tollgate that started again.
            echo "not ended: $(printf %s "$ended" | member detail)" >&2
            return 1
        fi
    done
    echo "not ended: the estimate stays charged" >&2
    return 1
}

# reserved USER ESTIMATE COMMAND...: runs the command, whose last line says how much it used. If it fails, all is given back.
reserved() {
    who=$1 estimate=$2
    shift 2
    if answer=$(post reserve "{\"attributes\": {\"user\": $(string "$who"), \"action\": \"complete\"}, \"cost\": $estimate, \"ttl\": \"2m\"}"); then
        id=$(printf %s "$answer" | member reservation)
        if [ -z "$id" ]; then
            case $(printf %s "$answer" | sed 's/,"limits".*//' | member retry_after) in
                '' | null) echo "refused: no wait will help" ;;
                *) echo "refused: try again in $(printf %s "$answer" | sed 's/,"limits".*//' | member retry_after) s" ;;
            esac
            return 1
        fi
    elif [ "$fail" = open ]; then
        id=
    else
        echo "refused: try again in 1 s"
        return 1
    fi
    if output=$("$@"); then
        printf '%s\n' "$output" | sed '$d'
        [ -n "$id" ] || return 0
        ended=$(end settle "{\"reservation\": \"$id\", \"cost\": $(printf '%s\n' "$output" | tail -n 1)}") || return 0
        echo "charged $(printf %s "$ended" | member charged), $(printf %s "$ended" | member remaining) left"
    else
        [ -z "$id" ] || end cancel "{\"reservation\": \"$id\"}" >/dev/null
        echo "it failed; nothing charged"
        return 1
    fi
}

# Your model goes here; its last line is how many tokens it used.
ask_model() {
    [ -n "$1" ] || return 1
    printf '%s\n120\n' "$(printf %s "$1" | tr a-z A-Z)"
}

main() {
    reserved "${1:-42}" 500 ask_model hello
    reserved "${1:-42}" 500 ask_model ""
    reserved "${1:-42}" 2000 ask_model "a long story"
    return 0
}

# Only when this file is the program: sourcing it spends nothing.
case ${0##*/} in reserve.sh) main "$@" ;; esac
