// Extensions of a lease that overlap: which duration stays, and when the lease is extended again (LQ-CLIENT-13, 28).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Heartbeater } from "../src/heartbeat.js";
import type { Queue } from "../src/index.js";
import { QueueKeys } from "../src/keys.js";
import { LeasedItem } from "../src/leased-item.js";
import { until } from "./server.js";

describe("extensions that overlap", () => {
  const replies: ((deadline: number) => void)[] = [];
  const sent: number[] = [];
  const extend = ({ duration }: { duration: number }) => {
    sent.push(duration);
    return new Promise<number>((resolve) => replies.push(resolve));
  };
  const holdOne = (duration: number) => {
    replies.length = sent.length = 0;
    const queue = { keys: new QueueKeys("q", "q"), extend, extendWithin: extend } as unknown as Queue;
    const record = { id: Buffer.from("a"), data: Buffer.from(""), token: 1, attempt: 1, headers: new Map() };
    const sentAt = performance.now() - duration / 3;
    return new LeasedItem(queue, record as never, 1, duration, sentAt, new Heartbeater());
  };

  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    test(`the duration of the caller stays, and is asked for again at once: replies ${order}`, async () => {
      const lease = holdOne(60_000);
      const { stop } = lease.heartbeat();
      await until(() => sent.length === 1);
      const asked = lease.extend(240_000);
      for (const index of order) replies[index]?.(2);
      await asked;
      await until(() => sent.length === 3);
      assert.deepEqual(sent, [60_000, 240_000, 240_000]);
      assert.equal(lease.duration, 240_000);
      assert.ok(lease.heldUntil < performance.now() + 60_000);
      replies[2]?.(3);
      await until(() => lease.deadline === 3);
      assert.ok(lease.heldUntil > performance.now() + 200_000);
      stop();
    });
  }

  test("of two calls of the caller the last sent counts", async () => {
    const lease = holdOne(60_000);
    const asked = [lease.extend(20_000), sleep(5).then(() => lease.extend(90_000))];
    await until(() => sent.length === 2);
    replies[1]?.(2);
    await asked[1];
    replies[0]?.(2);
    await asked[0];
    assert.equal(lease.duration, 90_000);
    assert.ok(lease.heldUntil <= performance.now() + 20_000);
  });
});
