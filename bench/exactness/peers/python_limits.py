"""Python's `limits` with its memory storage, on a clock that this script sets.

python_limits.py STRATEGY COUNT WINDOW_SECONDS: each line of standard input is a time in microseconds and a cost; each answer is
`1` or `0`, the wait in microseconds and what is left. python_limits.py STRATEGY COUNT WINDOW_SECONDS THREADS EACH: how many pass.
"""

import sys
import threading
import time

NOW = [1_700_002_800.0]
time.time = lambda: NOW[0]

import limits  # noqa: E402
from limits.storage import MemoryStorage  # noqa: E402

strategy, count, window = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kinds = {
    "fixed": limits.strategies.FixedWindowRateLimiter,
    "moving": limits.strategies.MovingWindowRateLimiter,
    "counter": limits.strategies.SlidingWindowCounterRateLimiter,
}
limiter = kinds[strategy](MemoryStorage())
item = limits.RateLimitItemPerSecond(count, window)

if len(sys.argv) > 4:
    passed = []

    def work():
        passed.append(sum(limiter.hit(item, "key") for _ in range(int(sys.argv[5]))))

    workers = [threading.Thread(target=work) for _ in range(int(sys.argv[4]))]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    print(sum(passed))
else:
    for line in sys.stdin:
        wall_us, cost = map(int, line.split())
        NOW[0] = wall_us / 1e6
        admitted = limiter.hit(item, "key", cost=cost)
        reset, remaining = limiter.get_window_stats(item, "key")
        # The wait is about one unit; a refused cost of several may have to wait for longer.
        wait = round((reset - NOW[0]) * 1e6) if not admitted and cost == 1 else "-"
        print(int(admitted), wait, remaining, flush=True)
