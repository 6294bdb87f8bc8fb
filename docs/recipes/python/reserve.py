"""Reserve tokens before a call to a model, and settle the tokens that it used. Python 3.9 or later, nothing to install."""
import contextlib
import http.client
import json
import os
import sys
import urllib.parse

TOLLGATE = urllib.parse.urlsplit(os.environ.get("TOLLGATE_URL", "http://127.0.0.1:8081"))
TIMEOUT = float(os.environ.get("TOLLGATE_TIMEOUT", "0.25"))  # seconds
# What to do when Tollgate does not answer: True does the work without a reservation, False does not.
FAIL_OPEN = os.environ.get("FAIL", "open") == "open"


class Refused(Exception):
    """A limit is exhausted; retry after `wait` seconds, unless it is None."""

    def __init__(self, wait):
        super().__init__(f"try again in {wait} s" if wait else "no wait will help")
        self.wait = wait


def post(path, body):
    """Status and answer; (None, None) when Tollgate does not answer."""
    connection = http.client.HTTPConnection(TOLLGATE.hostname, TOLLGATE.port, timeout=TIMEOUT)
    try:
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException) as error:  # refused connection, time-out, reset, half an answer
        print(f"tollgate did not answer ({type(error).__name__})", file=sys.stderr)
        return None, None


def end(path, body):
    """Settles or cancels. Repeating the call does no harm, so it is repeated if there is no answer."""
    for _ in range(3):
        status, answer = post(path, body)
        if status == 200:
            return answer
        if status is not None:  # ended already, expired, or lost with the memory of a Tollgate that started again
            print(f"not ended: {answer.get('detail')}", file=sys.stderr)
            return None
    print("not ended: the estimate stays charged", file=sys.stderr)
    return None


@contextlib.contextmanager
def reserved(attributes, estimate, ttl="2m"):
    """Yields a list: append the tokens used. An exception cancels the reservation."""
    status, answer = post("/v1/reserve", {"attributes": attributes, "cost": estimate, "ttl": ttl})
    if status in (429, 503):
        raise Refused(answer.get("retry_after"))
    if status is None and not FAIL_OPEN:
        raise Refused(1)
    if status not in (200, None):
        raise RuntimeError(f"{answer.get('field')}: {answer.get('detail')}")
    used = []
    try:
        yield used
    except BaseException:
        if answer:
            end("/v1/cancel", {"reservation": answer["reservation"]})
        raise
    ended = answer and end("/v1/settle", {"reservation": answer["reservation"], "cost": sum(used)})
    if ended:
        print(f"charged {ended['charged']}, {ended['limits'][0]['remaining']} left")


def ask_model(prompt):
    """Replace this with your model; it returns the number of tokens used."""
    if not prompt:
        raise ValueError("nothing to answer")
    return prompt.upper(), 120


def main():
    who = {"user": sys.argv[1] if len(sys.argv) > 1 else "42", "action": "complete"}
    for prompt, estimate in [("hello", 500), ("", 500), ("a long story", 2000)]:
        try:
            with reserved(who, estimate) as used:
                text, tokens = ask_model(prompt)
                used.append(tokens)
                print(text)
        except ValueError as error:
            print(f"{error}; nothing charged")
        except Refused as refused:
            print(f"refused: {refused}")


if __name__ == "__main__":
    main()
