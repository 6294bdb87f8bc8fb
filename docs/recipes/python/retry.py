"""Wait as long as Tollgate says, plus a random time. Python 3.9 or later, nothing to install."""
import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

TOLLGATE = os.environ.get("TOLLGATE_URL", "http://127.0.0.1:8081")
TIMEOUT = float(os.environ.get("TOLLGATE_TIMEOUT", "0.25"))  # seconds
WAIT_AT_MOST = float(os.environ.get("TOLLGATE_WAIT", "30"))  # seconds in all; someone is waiting for us, too
# What to do when Tollgate does not answer: True continues without it, False tries again until WAIT_AT_MOST.
FAIL_OPEN = os.environ.get("FAIL", "open") == "open"


def wait_until_allowed(attributes, cost=1):
    """True once the request is admitted; False if that would take too long or no wait helps."""
    body = json.dumps({"attributes": attributes, "cost": cost}).encode()
    deadline = time.monotonic() + WAIT_AT_MOST
    while True:
        request = urllib.request.Request(
            TOLLGATE + "/v1/check", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT):
                return True
        except urllib.error.HTTPError as answer:
            wait = answer.headers.get("Retry-After")
            if answer.code not in (429, 503):
                raise
            if wait is None:
                return False
        except (OSError, http.client.HTTPException) as error:  # refused connection, time-out, reset, half an answer
            print(f"tollgate did not answer ({type(error).__name__})", file=sys.stderr)
            if FAIL_OPEN:
                return True
            wait = 1
        # Clients refused together would return together: a random wait of up to half as long again spreads them.
        pause = int(wait) * (1 + random.random() / 2)
        if time.monotonic() + pause > deadline:
            return False
        time.sleep(pause)


if __name__ == "__main__":
    user = sys.argv[1] if len(sys.argv) > 1 else "42"
    for number in range(1, 4):
        sent = wait_until_allowed({"user": user, "action": "send"})
        print(f"{number}: sent" if sent else f"{number}: given up")
    sent = wait_until_allowed({"user": user, "action": "send"}, cost=100)
    print("100 at once: sent" if sent else "100 at once: given up")
