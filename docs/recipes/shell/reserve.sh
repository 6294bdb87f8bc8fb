#!/bin/sh
# Reserve tokens before a call to a model, and settle the tokens that it used. POSIX sh, sed and curl 7.82 or later.
tollgate=${TOLLGATE_URL:-http://127.0.0.1:8081}
timeout=${TOLLGATE_TIMEOUT:-0.25} # seconds; a limiter that takes longer is worse than none
# What to do when Tollgate does not answer: open does the work without a reservation, closed does not.
fail=${FAIL:-open}

# Quotes the argument as a JSON string. Otherwise a client could add attributes.
string() { printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }

# Prints the answer. Any status except 0: Tollgate does not answer.
post() {
    curl --silent --max-time "$timeout" --json "$2" "$tollgate/v1/$1" && return 0
    echo "tollgate did not answer" >&2
    return 1
}

# Answers have no space between a name and its value, so sed can read them without a JSON parser.
member() { sed -n "s/.*\"$1\":\"*\([^\",}]*\).*/\1/p"; }

# Settles or cancels, and prints the answer. Repeating the call does no harm, so it is repeated if there is no answer.
end() {
    for attempt in 1 2 3; do
        if ended=$(post "$1" "$2"); then
            case $ended in
                *'"charged":'*) printf %s "$ended" && return 0 ;;
            esac
            # Already ended, expired, or lost when Tollgate restarted.
            echo "not ended: $(printf %s "$ended" | member detail)" >&2
            return 1
        fi
    done
    echo "not ended: the estimate stays charged" >&2
    return 1
}

# reserved USER ESTIMATE COMMAND...: runs the command, whose last line is the number of tokens used. If it fails, the
# reservation is cancelled.
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

# Replace this with your model; its last line is the number of tokens used.
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
