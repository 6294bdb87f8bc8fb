"""What an application does that has used redis-cell with redis-py; the port is the first argument."""
import sys

import redis

port = int(sys.argv[1])

for protocol in (2, 3):
    client = redis.Redis(port=port, password="hunter2", protocol=protocol, client_name="py")
    assert client.ping()
    assert client.client_getname() in ("py", b"py")
    key = f"py-{protocol}"
    assert client.execute_command("CL.THROTTLE", key, 15, 30, 60) == [0, 16, 15, -1, 2]
    assert client.execute_command("CL.THROTTLE", b"\xff\x00" + key.encode(), 15, 30, 60, 3)[:3] == [0, 16, 13]
    assert client.execute_command("TG.CHECK", "per-user", 1, key) == [0, 3, 2, -1, 1_200_000]
    reserved = client.execute_command("TG.RESERVE", "per-user", 1, key)
    assert reserved[:3] == [0, 3, 1] and len(reserved) == 6, reserved
    assert client.execute_command("TG.CANCEL", reserved[5])[:3] == [0, 3, 2]
    assert client.execute_command("TG.RESERVE", "per-user", 1, key, 9)[5] is None

    with client.pipeline(transaction=False) as pipeline:
        for _ in range(200):
            pipeline.execute_command("CL.THROTTLE", f"pipe-{protocol}", 99, 1, 3600)
        answers = pipeline.execute()
    assert [answer[0] for answer in answers] == [0] * 100 + [1] * 100
    assert [answer[2] for answer in answers[:100]] == list(range(99, -1, -1))

    try:
        client.execute_command("CL.THROTTLE", key, 15, 0, 60)
        raise SystemExit("a rate of zero was taken")
    except redis.ResponseError as error:
        assert str(error) == "Cell error: Store error: Zero rates are not supported", error
    assert client.info()["role"] == "master"
    client.close()

try:
    redis.Redis(port=port, password="nope").ping()
    raise SystemExit("a wrong password was taken")
except redis.AuthenticationError:
    pass
try:
    redis.Redis(port=port).ping()
    raise SystemExit("no password was needed")
except redis.AuthenticationError:
    pass
print("ok")
