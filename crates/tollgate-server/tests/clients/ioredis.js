// What an application does that has used redis-cell with ioredis; the port is the first argument.
const assert = require("assert");
const Redis = require("ioredis");

const port = Number(process.argv[2]);

async function main() {
  const client = new Redis({ port, password: "hunter2", connectionName: "js", retryStrategy: null });
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.client("GETNAME"), "js");
  assert.deepEqual(await client.call("CL.THROTTLE", "js", 15, 30, 60), [0, 16, 15, -1, 2]);
  assert.deepEqual(await client.call("TG.CHECK", "per-user", 1, "js"), [0, 3, 2, -1, 1200000]);
  const reserved = await client.call("TG.RESERVE", "per-user", 1, "js");
  assert.deepEqual(reserved.slice(0, 3), [0, 3, 1]);
  assert.deepEqual((await client.call("TG.CANCEL", reserved[5])).slice(0, 3), [0, 3, 2]);
  assert.equal((await client.call("TG.RESERVE", "per-user", 1, "js", 9))[5], null);

  const pipeline = client.pipeline();
  for (let i = 0; i < 200; i += 1) pipeline.call("CL.THROTTLE", "js-pipe", 99, 1, 3600);
  const answers = await pipeline.exec();
  assert.deepEqual(answers.map(([error, answer]) => [error, answer[0]]),
    answers.map((_, place) => [null, place < 100 ? 0 : 1]));

  // Commands that are sent while others are under way go out together.
  const together = await Promise.all(Array.from({ length: 50 }, () => client.call("CL.THROTTLE", "js-all", 24, 1, 3600)));
  assert.equal(together.filter((answer) => answer[0] === 0).length, 25);

  await assert.rejects(client.call("CL.THROTTLE", "js", 15, 0, 60), /Zero rates are not supported/);
  await client.quit();

  const stranger = new Redis({ port, password: "nope", retryStrategy: null, maxRetriesPerRequest: 0 });
  stranger.on("error", () => {});
  await assert.rejects(stranger.call("CL.THROTTLE", "js", 15, 30, 60));
  stranger.disconnect();
  console.log("ok");
}

main().catch((error) => { console.error(error); process.exit(1); });
