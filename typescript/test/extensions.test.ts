// Extensions of a lease: which duration stays if they overlap, when the lease is extended again (LQ-CLIENT-13, 28), and what ends that.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Heartbeater } from "../src/heartbeat.js";
import {
  BadArgumentError,
  Cancellation,
  type Queue,
  ReplyLostError,
  UnavailableError,
} from "../src/index.js";
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

describe("a heartbeat", () => {
  type Extend = (entry: { token: number; duration: number }) => Promise<number>;
  /** What was sent: the duration of each extension. */
  const holder = (extend: Extend, duration = 30) => {
    const sent: number[] = [];
    const heartbeater = new Heartbeater();
    const hold = (keys: QueueKeys, token = 1) => {
      const recorded: Extend = (entry) => {
        sent.push(entry.duration);
        return extend(entry);
      };
      const finish = (entry: { token: number }) =>
        heartbeater.whileFinishing(keys, [entry], () => Promise.resolve(true));
      const queue = { keys, extend: recorded, extendWithin: recorded, complete: finish } as unknown as Queue;
      const record = { id: Buffer.from("a"), data: Buffer.from(""), token, attempt: 1, headers: new Map() };
      return new LeasedItem(queue, record as never, 1, duration, performance.now(), heartbeater);
    };
    return { hold, sent, heartbeater };
  };
  const keys = new QueueKeys("q", "q");
  const works: Extend = () => Promise.resolve(2);
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

  test("extends no more once its handle is stopped, and leaves no timer", async () => {
    const { hold, sent } = holder(works);
    const before = timers();
    const { stop } = hold(keys).heartbeat();
    await until(() => sent.length > 1);
    stop();
    const { length } = sent;
    assert.ok(timers() <= before);
    await sleep(60);
    assert.equal(sent.length, length);
  });

  test("takes the place of an earlier one, whose handle may be stopped later", async () => {
    let deadline = 2;
    const { hold, sent } = holder(() => Promise.resolve(deadline), 60_000);
    const lease = hold(keys);
    const before = timers();
    const first = lease.heartbeat();
    const second = lease.heartbeat();
    assert.equal(timers(), before + 1);
    first.stop();
    // the completion finds the second one, which must not take its reply for a loss
    assert.equal(await lease.complete(), true);
    deadline = 0;
    assert.equal(await lease.extend(), 0);
    assert.equal(lease.lostSignal.aborted, false);
    assert.deepEqual(sent, [60_000]);
    second.stop();
  });

  test("of one queue is not ended by the completion of an item with the same token of another", async () => {
    const { hold, sent, heartbeater } = holder(works);
    const { stop } = hold(keys).heartbeat();
    for (const other of [new QueueKeys("q", "another"), new QueueKeys("another", "q")]) {
      await heartbeater.whileFinishing(other, [{ token: 1 }], () => Promise.resolve());
    }
    const { length } = sent;
    await until(() => sent.length > length + 1);
    stop();
  });

  test("that finds no lease reports no loss until the last call that may end the item was refused (LQ-CLIENT-4, 16)", async () => {
    let deadline = 2;
    const { hold, sent, heartbeater } = holder(() => Promise.resolve(deadline));
    const lease = hold(keys);
    lease.heartbeat();
    const refusals: ((error: Error) => void)[] = [];
    const calls = [0, 1].map(() =>
      heartbeater.whileFinishing(
        keys,
        [{ token: 1 }],
        () => new Promise((_, reject) => refusals.push(reject)),
      ),
    );
    deadline = 0;
    refusals[0]?.(new BadArgumentError("refused"));
    await assert.rejects(calls[0] as Promise<unknown>);
    const { length } = sent;
    await until(() => sent.length > length + 1);
    assert.equal(lease.lostSignal.aborted, false);
    refusals[1]?.(new BadArgumentError("refused"));
    await assert.rejects(calls[1] as Promise<unknown>);
    await until(() => lease.lostSignal.aborted);
    assert.equal(lease.held, false);
  });

  test("ends with a call whose reply was lost, also if another one is refused", async () => {
    let deadline = 2;
    const { hold, sent, heartbeater } = holder(() => Promise.resolve(deadline));
    const lease = hold(keys);
    lease.heartbeat();
    await until(() => sent.length > 0);
    const errors = [new ReplyLostError("lost"), new BadArgumentError("refused")];
    const calls = errors.map((error) =>
      heartbeater.whileFinishing(keys, [{ token: 1 }], () => Promise.reject(error)),
    );
    await Promise.all(calls.map((call, index) => assert.rejects(call, errors[index])));
    const { length } = sent;
    await sleep(60);
    assert.equal(sent.length, length);
    deadline = 0;
    assert.equal(await lease.extend(), 0);
    assert.equal(lease.lostSignal.aborted, false);
  });

  test("reports why the lease is lost: the server said so, or the error of its last extension", async () => {
    const away = new UnavailableError("away");
    for (const [extend, cause] of [
      [() => Promise.resolve(0), undefined],
      [() => Promise.reject(away), away],
    ] as const) {
      const lease = holder(extend).hold(keys);
      lease.heartbeat();
      await until(() => lease.lostSignal.aborted);
      const { reason } = lease.lostSignal;
      assert.ok(reason instanceof Cancellation && reason.name === "Cancellation");
      assert.equal(reason.why, "lost");
      assert.equal(reason.cause, cause);
      assert.equal(lease.held, false);
      if (cause) assert.ok(performance.now() >= lease.heldUntil);
    }
  });

  test("goes on for the duration that the caller last asked for, which is also that of `extend` without one", async () => {
    const { hold, sent } = holder(works, 60_000);
    const lease = hold(keys);
    const { stop } = lease.heartbeat();
    await lease.extend();
    await lease.extend(30);
    assert.equal(lease.duration, 30);
    await lease.extend();
    assert.deepEqual(sent, [60_000, 30, 30]);
    await until(() => sent.length > 4);
    assert.deepEqual(sent.slice(3, 5), [30, 30]);
    stop();
  });

  test("an extension by the caller that fails or finds no lease leaves duration and end as they were", async () => {
    let reply: () => Promise<number> = works as never;
    const { hold } = holder(() => reply(), 60_000);
    const lease = hold(keys);
    const before = [lease.duration, lease.deadline, lease.heldUntil];
    reply = () => Promise.reject(new UnavailableError("away"));
    await assert.rejects(lease.extend(1000), UnavailableError);
    assert.deepEqual([lease.duration, lease.deadline, lease.heldUntil], before);
    assert.equal(lease.held, true);
    reply = () => Promise.resolve(0);
    assert.equal(await lease.extend(1000), 0);
    assert.deepEqual([lease.duration, lease.deadline, lease.heldUntil], before);
    assert.equal(lease.lostSignal.reason.why, "lost");
    assert.equal(lease.held, false);
  });
});
