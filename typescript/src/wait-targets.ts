// What a caller can wait for: items, room, an outcome. How the waiting works is in blocking.ts.

import type { WaitOptions, WaitTarget } from "./blocking.js";
import { now } from "./clock.js";
import type { Outcome } from "./codecs.generated.js";
import * as commands from "./commands.js";
import { publishDeaths } from "./deaths.js";
import type { Confirmed, DurableWait } from "./durability.js";
import { type Argument, type Bytes, encodeId, encodeMilliseconds } from "./encoding.js";
import type { QueueKeys } from "./keys.js";
import { LeasedItem, type LeasingQueue } from "./leased-item.js";
import type { ConnectionPool } from "./pool.js";
import type { LeaseReply } from "./replies.js";
import { itemArgs, type NewItem } from "./requests.js";
import { WAIT_CAP_MS } from "./scripts.generated.js";

/** How to lease, and how long to wait for an item. */
export interface LeaseOptions extends WaitOptions {
  /** Milliseconds, up to 30 days. */
  duration: number;
  /** The most items to lease, 1 to 256. Default: 1. */
  count?: number | undefined;
}

/** Returns the duration of a lease in whole milliseconds. Throws BadArgumentError before anything is sent. */
export function checkDuration(duration: number): number {
  return Number(encodeMilliseconds(duration, "duration"));
}

/** Waits for items of the first queue, of several of one group, that has any. */
export function leaseTarget<Q extends LeasingQueue>(
  queues: readonly Q[],
  options: LeaseOptions,
  pool: ConnectionPool,
): WaitTarget<LeasedItem<Q>[]> {
  const duration = checkDuration(options.duration);
  const count = options.count ?? 1;
  const queueKeys = queues.map((queue) => queue.keys);
  const [single] = queueKeys;
  const command =
    single && queueKeys.length === 1
      ? commands.lease(single, count, duration)
      : commands.leaseAny(queueKeys, count, duration);
  return {
    async check(on) {
      const sentAt = now();
      const reply = await on.run(command);
      const items = toLeasedItems(queues, reply, duration, sentAt, pool);
      return items.length > 0 ? { found: items } : { dueInMs: reply.wait };
    },
    block: { name: "BLPOP", args: queueKeys.map((keys) => keys.key("wake")) },
    settle: queueKeys.map((keys) => commands.settle(keys)),
    alwaysSettle: false,
    releaseFound: (items) => Promise.all(items.map((item) => item.release({ uncounted: true }))),
  };
}

/** The items of a reply. Their leases last at least from `sentAt`, when the call was sent (LQ-CLIENT-3). */
export function toLeasedItems<Q extends LeasingQueue>(
  queues: readonly Q[],
  reply: LeaseReply,
  duration: number,
  sentAt: number,
  pool: ConnectionPool,
): LeasedItem<Q>[] {
  // A script cannot write an outcome whose key it was not passed. The client that gets the id of a dead item reads its
  // outcome, which writes it (LQ-CLIENT-8).
  for (const [index, queue] of queues.entries()) {
    const dead = reply.died.filter((item) => item.queue === index).map((item) => item.id);
    publishDeaths(queue, dead, pool);
  }
  const queue = queues[reply.queue];
  if (!queue) return [];
  if (reply.items.length > 0) pool.register(queue.keys);
  return reply.items.map(
    (item) => new LeasedItem(queue, item, reply.deadline, duration, sentAt, pool.heartbeater),
  );
}

/**
 * Waits for room and adds items. `answers` is filled in as replies come. Items without room (-1) are sent again, and no others:
 * an item that was added may be completed by now. With `durably`, each call that added something tells there how durable it is.
 */
export function roomTarget(
  keys: QueueKeys,
  items: readonly NewItem[],
  answers: number[],
  durably?: {
    readonly wait: DurableWait;
    readonly pool: ConnectionPool;
    readonly confirmed: Confirmed<number[]>[];
  },
): WaitTarget<number[]> {
  const entries = items.map(itemArgs);
  return {
    async check(on) {
      const missing = [...entries.keys()].filter((index) => (answers[index] ?? -1) === -1);
      const command = commands.addEntries(
        keys,
        missing.map((index) => entries[index] as Argument[]),
      );
      let latest: number[];
      if (durably) {
        const { pool, wait, confirmed } = durably;
        const call = await pool.runDurably(command, wait);
        latest = call.result;
        if (latest.some((answer) => answer >= 0)) confirmed.push(call);
      } else {
        latest = await on.run(command);
      }
      for (const [position, index] of missing.entries()) answers[index] = latest[position] as number;
      return answers.includes(-1) ? { dueInMs: WAIT_CAP_MS } : { found: answers };
    },
    block: { name: "BLPOP", args: [keys.key("room")] },
    settle: [commands.settle(keys)],
    // There may be more room than this producer took, and the wake-up was for one producer (LQ-ROOM-3).
    alwaysSettle: true,
  };
}

const ABSENT: Outcome = {
  state: "absent",
  created: 0,
  ended: 0,
  attempt: 0,
  keep: 0,
  content: Buffer.alloc(0),
};

/** How to wait for an element of a list. It stays there, so that every waiter is woken by it (LQ-BLOCK-12). */
function onElement(list: Argument): Omit<WaitTarget<unknown>, "check"> {
  return {
    block: { name: "BLMOVE", args: [list, list, "LEFT", "LEFT"] },
    settle: [],
    alwaysSettle: false,
    // reading has no effect
    releaseFound: async () => {},
  };
}

/** Waits once for an element of a list, and finds what `command` replies behind the block, whether there was an element or not. */
export function elementTarget<Result>(list: Argument, command: commands.Command<Result>): WaitTarget<Result> {
  return { ...onElement(list), check: async (on) => ({ found: await on.run(command) }) };
}

/** Waits for an outcome. `latest` returns what the last check found. */
export function outcomeTarget(
  keys: QueueKeys,
  id: Bytes,
): { target: WaitTarget<Outcome>; latest: () => Outcome } {
  const command = commands.outcome(keys, [id]);
  let created = 0;
  let latest = ABSENT;
  const target: WaitTarget<Outcome> = {
    ...onElement(keys.resultKey(encodeId(id))),
    async check(on) {
      const [outcome = ABSENT] = await on.run(command);
      created ||= outcome.created;
      // A later item has this id by now: nothing more is known of the item that was waited for (LQ-BLOCK-13).
      const another = outcome.created !== 0 && outcome.created !== created;
      latest = another ? ABSENT : outcome;
      const finished = ["result", "failure", "absent"].includes(latest.state);
      return finished ? { found: latest } : { dueInMs: WAIT_CAP_MS };
    },
  };
  return { target, latest: () => latest };
}
