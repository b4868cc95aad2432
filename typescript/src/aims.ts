// What can be waited for: an item, room, an outcome. How waiting goes on is in waiting.ts.
import type { LeaseReply, Outcome } from "./answers.js";
import * as commands from "./commands.js";
import type { Connections } from "./connections.js";
import type { NewItem } from "./entries.js";
import type { Address } from "./keys.js";
import { Lease } from "./lease.js";
import type { Queue } from "./queue.js";
import { WAIT_CAP_MS } from "./scripts.generated.js";
import { type Aim, now, type Patience } from "./waiting.js";
import { type Bytes, id as idBytes, milliseconds } from "./wire.js";

export interface LeaseOptions extends Patience {
  /** Milliseconds, up to 30 days. */
  duration: number;
  /** How many items at most, up to 256; 1 without it. */
  count?: number;
}

/** Checks before anything is sent what every lease needs, and gives whole milliseconds. Throws BadArgumentError. */
export function checkedDuration(duration: number): number {
  return Number(milliseconds(duration, "duration"));
}

/** To lease from the first of some queues of one group. */
export function leaseAim(queues: readonly Queue[], options: LeaseOptions, lanes: Connections): Aim<Lease[]> {
  const duration = checkedDuration(options.duration);
  const count = options.count ?? 1;
  const addresses = queues.map((queue) => queue.address);
  const [alone] = addresses;
  const call =
    alone && addresses.length === 1
      ? commands.lease(alone, count, duration)
      : commands.leaseAny(addresses, count, duration);
  return {
    async look(on) {
      const sent = now();
      const reply = await on.run(call);
      const leases = asLeases(queues, reply, duration, sent, lanes);
      return leases.length > 0 ? { found: leases } : { pause: reply.wait };
    },
    block: { name: "BLPOP", args: addresses.map((address) => address.key("wake")) },
    settle: addresses.map((address) => commands.settle(address)),
    settleWhenFound: false,
    giveBack: (leases) => Promise.all(leases.map((lease) => lease.release({ uncounted: true }))),
  };
}

/** `sent`: when the call was sent, from which on its leases last at least (LQ-CLIENT-3). */
export function asLeases(
  queues: readonly Queue[],
  reply: LeaseReply,
  duration: number,
  sent: number,
  lanes: Connections,
): Lease[] {
  // A script cannot write an outcome whose key it was not passed; so who hears of a death asks for it, which does
  // (LQ-CLIENT-8).
  for (const [index, queue] of queues.entries()) {
    const dead = reply.died.filter((item) => item.queue === index).map((item) => item.id);
    if (dead.length > 0) lanes.inBackground(queue.outcome(dead));
  }
  const queue = queues[reply.queue];
  if (!queue) return [];
  if (reply.items.length > 0) lanes.enter(queue.address);
  return reply.items.map((item) => new Lease(queue, item, reply.deadline, duration, sent, lanes.heartbeats));
}

/**
 * To add items. `answers` are those so far, none at first: -1 is asked again, what was added is not, it may be completed by now.
 */
export function roomAim(at: Address, items: readonly NewItem[], answers: number[]): Aim<number[]> {
  return {
    async look(on) {
      const missing = [...items.keys()].filter((index) => (answers[index] ?? -1) === -1);
      const call = commands.add(
        at,
        missing.map((index) => items[index] as NewItem),
      );
      const latest = await on.run(call);
      for (const [place, index] of missing.entries()) answers[index] = latest[place] as number;
      return answers.includes(-1) ? { pause: WAIT_CAP_MS } : { found: answers };
    },
    block: { name: "BLPOP", args: [at.key("room")] },
    settle: [commands.settle(at)],
    // There may be more room than this producer took, and the element was for one (LQ-ROOM-3).
    settleWhenFound: true,
  };
}

const ABSENT: Outcome = {
  kind: "absent",
  created: 0,
  ended: 0,
  attempt: 0,
  keep: 0,
  content: Buffer.alloc(0),
};

/** To get an outcome; `latest` is the answer as far as it is known. */
export function outcomeAim(at: Address, id: Bytes): { aim: Aim<Outcome>; latest: () => Outcome } {
  const call = commands.outcome(at, [id]);
  const list = at.resultKey(idBytes(id));
  let created = 0;
  let latest = ABSENT;
  const aim: Aim<Outcome> = {
    async look(on) {
      const [outcome = ABSENT] = await on.run(call);
      created ||= outcome.created;
      // Another item of this id by now: of the one that was waited for, nothing will be known (LQ-BLOCK-13).
      const another = outcome.created !== 0 && outcome.created !== created;
      latest = another ? ABSENT : outcome;
      const over = ["result", "failure", "absent"].includes(latest.kind);
      return over ? { found: latest } : { pause: WAIT_CAP_MS };
    },
    // From the list to itself: the outcome stays, and every waiter is woken by it (LQ-BLOCK-12).
    block: { name: "BLMOVE", args: [list, list, "LEFT", "LEFT"] },
    settle: [],
    settleWhenFound: false,
  };
  return { aim, latest: () => latest };
}
