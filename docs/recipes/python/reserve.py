"""Reserve tokens before a call to a model, settle what it used. Python 3.9 or later, nothing to install."""
import contextlib
import http.client
import json
import os
import sys
import urllib.parse

TOLLGATE = urllib.parse.urlsplit(os.environ.get("TOLLGATE_URL", "http://127.0.0.1:8081"))
TIMEOUT = float(os.environ.get("TOLLGATE_TIMEOUT", "0.25"))  # seconds


class Refused(Exception):
    """A limit is exhausted; `wait` seconds will help, unless it is None."""

    def __init__(self, wait):
        super().__init__(f"try again in {wait} s" if wait else "no wait will help")
        self.wait = wait


def post(path, body):
    connection = http.client.HTTPConnection(TOLLGATE.hostname, TOLLGATE.port, timeout=TIMEOUT)
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@contextlib.contextmanager
def reserved(attributes, estimate, ttl="2m"):
    """Yields a list: append what was really used. An exception gives everything back."""
    status, answer = post("/v1/reserve", {"attributes": attributes, "cost": estimate, "ttl": ttl})
    if status in (429, 503):
        raise Refused(answer.get("retry_after"))
    if status != 200:
        raise RuntimeError(f"{answer['field']}: {answer['detail']}")
    used = []
    try:
        yield used
    except BaseException:
        post("/v1/cancel", {"reservation": answer["reservation"]})
        raise
    # Settling twice does no harm, so a call that timed out may simply be made again.
    _, ended = post("/v1/settle", {"reservation": answer["reservation"], "cost": sum(used)})
    print(f"charged {ended['charged']}, {ended['limits'][0]['remaining']} left")


def ask_model(prompt):
    """Your model goes here; it says how many tokens it used."""
    if not prompt:
        raise ValueError("nothing to answer")
    return prompt.upper(), 120


if __name__ == "__main__":
    who = {"user": sys.argv[1] if len(sys.argv) > 1 else "42", "action": "complete"}
    with reserved(who, estimate=500) as used:
        text, tokens = ask_model("hello")
        used.append(tokens)
        print(text)
    try:
        with reserved(who, estimate=500):
            ask_model("")
    except ValueError as error:
        print(f"{error}; nothing charged")
    try:
        with reserved(who, estimate=2000):
            print("unreachable")
    except Refused as refused:
        print(f"refused: {refused}")
