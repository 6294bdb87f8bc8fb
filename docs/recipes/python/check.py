"""Ask Tollgate before doing the work. Python 3.9 or later, nothing to install."""
import http.client
import json
import os
import sys
import urllib.error
import urllib.request

TOLLGATE = os.environ.get("TOLLGATE_URL", "http://127.0.0.1:8081")
# What to do when Tollgate does not answer: True admits all requests, False refuses them. Choose for each call site: a
# page view is worth more than its limit, a password guess is not.
FAIL_OPEN = os.environ.get("FAIL", "open") == "open"
TIMEOUT = float(os.environ.get("TOLLGATE_TIMEOUT", "0.25"))  # seconds; a limiter that takes longer is worse than none


def check(attributes, cost=1):
    """Whether the request is admitted, and the seconds to wait if not (None: no wait helps)."""
    body = json.dumps({"attributes": attributes, "cost": cost}).encode()
    request = urllib.request.Request(
        TOLLGATE + "/v1/check", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT):
            return True, 0
    except urllib.error.HTTPError as answer:
        if answer.code in (429, 503):  # refused, or a limit that fails closed could not be decided
            wait = answer.headers.get("Retry-After")
            return False, int(wait) if wait else None
        raise  # 4xx: the call itself is wrong, and its body says where
    except (OSError, http.client.HTTPException) as error:  # refused connection, time-out, reset, half an answer
        print(f"tollgate did not answer ({type(error).__name__})", file=sys.stderr)
        return FAIL_OPEN, 1


if __name__ == "__main__":
    user = sys.argv[1] if len(sys.argv) > 1 else "42"
    for number in range(1, 4):
        allowed, wait = check({"user": user, "action": "view"})
        print(f"{number}: allowed" if allowed else f"{number}: refused, try again in {wait} s")
