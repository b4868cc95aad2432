// What replies hold, and how they are read. Points in time are microseconds since 1970 on the server's clock, as tokens are.
// commands.ts uses the functions; the types are public.
import { decodeWaitMs, ReplyReader } from "./encoding.js";

/** The state of an item. `none` is damage that `deepClean` repairs; `absent` is no item. */
export type State = "ready" | "delayed" | "leased" | "dead" | "none" | "absent";
/** What can be listed: the items in a state, or as `kept` those that have an outcome. */
export type ListState = "ready" | "delayed" | "leased" | "dead" | "kept";
/** An outcome, or the state of an item that has none. */
export type OutcomeState = "result" | "failure" | State;
/** The state of an item after its release. `lost`: the lease is not the current one, and nothing changed (LQ-RELEASE-1). */
export type Released = "ready" | "delayed" | "dead" | "lost";

/** One item in the reply of a lease. */
export interface LeasedRecord {
  id: Buffer;
  data: Buffer;
  token: number;
  attempt: number;
  /** Milliseconds. */
  keep: number | undefined;
  contentType: Buffer | undefined;
  headers: ReadonlyMap<string, Buffer>;
}

/** The reply of a lease. */
export interface LeaseReply {
  /** The index of the queue that the items are of, among those of the call; -1 if there are no items. */
  queue: number;
  items: LeasedRecord[];
  deadline: number;
  /** Milliseconds until an item is due. 0: lease again at once. Infinity: nothing is due (LQ-LEASE-7). */
  wait: number;
  /** Items that died in this call and keep an outcome. The client has to read their outcomes (LQ-CLIENT-8). */
  died: { queue: number; id: Buffer }[];
}

/** Whether a call completed an item, and what it added. */
export interface Completed {
  completed: boolean;
  /** For each follow-up: when it was created, 0 if its id existed, -1 if this call did not complete the item. */
  followUps: number[];
}

/** The outcome of an item, or its state if it has none. */
export interface Outcome {
  state: OutcomeState;
  created: number;
  ended: number;
  attempt: number;
  /** For how many milliseconds the outcome will be kept; 0 if it will not. */
  keep: number;
  /** The result, or the last error. */
  content: Buffer;
}

/** One item as it is. */
export interface ItemInfo {
  state: State;
  /** The time that orders it in its state: its place, due time, deadline or time of death. */
  time: number;
  attempt: number;
  token: number;
  created: number;
  /** Bytes of data. */
  size: number;
  priority: number;
  maxAttempts: number;
  /** Milliseconds. */
  keep: number;
  expires: number;
  error: Buffer;
}

/** What a light clean did, by counts. */
export interface LightClean {
  promoted: number;
  reclaimed: number;
  died: number;
  expired: number;
  pruned: number;
  /** Milliseconds until there is something to do. 0: more is due now. Infinity: nothing is due. */
  wait: number;
  /** The ids of items that died and keep an outcome. */
  deadWithOutcome: Buffer[];
}

/** One page of a deep clean. */
export interface DeepCleanPage {
  /** The cursor of the next page; "0": this was the last one. */
  cursor: string;
  /** How often each kind of damage was found. */
  repairs: Map<string, number>;
}

/** An id of a list; `time` as in `ItemInfo`. */
export interface ListedItem {
  id: Buffer;
  time: number;
}

/** One page of a list; `total` counts all items in the state. */
export interface Page {
  total: number;
  items: ListedItem[];
}

export const asNumber = (element: unknown): number => element as number;
export const isOne = (element: unknown): boolean => element === 1;
/** A name of the protocol, such as a state. An unknown one of a later protocol is returned as it is. */
export const asString =
  <Name extends string>() =>
  (element: unknown): Name =>
    String(element) as Name;

/** The reply to one entry is a bare element, the reply to several an array (LQ-CALL-4). */
export function perEntry<Result>(read: (element: unknown) => Result): (reply: unknown) => Result[] {
  return (reply) => (Array.isArray(reply) ? reply.map(read) : [read(reply)]);
}

/** Reads the reply of a lease from one queue. Its last `trailing` elements are left for the caller. */
export function readLease(reader: ReplyReader, trailing = 0): LeaseReply {
  const leased = readLeased(reader, trailing);
  return { ...leased, queue: leased.items.length > 0 ? 0 : -1 };
}

/** Reads the reply of a lease from several queues, which has the number of the queue first. */
export function readLeaseAny(reply: unknown): LeaseReply {
  const reader = new ReplyReader(reply);
  const queue = reader.number() - 1;
  return { ...readLeased(reader, 0), queue };
}

/** What the replies of both have in common: the wait, the deadline, the items, then their options and the ids of dead items. */
function readLeased(reader: ReplyReader, trailing: number): Omit<LeaseReply, "queue"> {
  const wait = decodeWaitMs(reader.number());
  const deadline = reader.number();
  const items = reader.repeat(reader.number(), (r) => ({
    id: r.bytes(),
    data: r.bytes(),
    token: r.number(),
    attempt: r.number(),
    keep: undefined as number | undefined,
    contentType: undefined as Buffer | undefined,
    headers: new Map<string, Buffer>(),
  }));
  const died: LeaseReply["died"] = [];
  while (reader.remaining > trailing) {
    const itemNumber = reader.number();
    const name = reader.text();
    const item = items[itemNumber - 1];
    // Unknown names are skipped, whatever the type of their value: a later protocol may have more.
    if (name === "died" && itemNumber <= 0) {
      died.push({ queue: Math.max(-itemNumber - 1, 0), id: reader.bytes() });
    } else if (name === "keep" && item) {
      item.keep = reader.number();
    } else if (name === "content_type" && item) {
      item.contentType = reader.bytes();
    } else if (name.startsWith("header:") && item) {
      item.headers.set(name.slice("header:".length), reader.bytes());
    } else {
      reader.bytes();
    }
  }
  return { wait, deadline, items, died };
}

export function readOutcomes(reply: unknown): Outcome[] {
  const reader = new ReplyReader(reply);
  return reader.repeat(reader.remaining / 6, (r) => ({
    state: r.text() as OutcomeState,
    created: r.number(),
    ended: r.number(),
    attempt: r.number(),
    keep: r.number(),
    content: r.bytes(),
  }));
}

export function readItemInfos(reply: unknown): ItemInfo[] {
  const reader = new ReplyReader(reply);
  return reader.repeat(reader.remaining / 11, (r) => ({
    state: r.text() as ItemInfo["state"],
    time: r.number(),
    attempt: r.number(),
    token: r.number(),
    created: r.number(),
    size: r.number(),
    priority: r.number(),
    maxAttempts: r.number(),
    keep: r.number(),
    expires: r.number(),
    error: r.bytes(),
  }));
}

export function readLightClean(reply: unknown): LightClean {
  const reader = new ReplyReader(reply);
  return {
    promoted: reader.number(),
    reclaimed: reader.number(),
    died: reader.number(),
    expired: reader.number(),
    pruned: reader.number(),
    wait: decodeWaitMs(reader.number()),
    deadWithOutcome: reader.repeat(reader.remaining, (r) => r.bytes()),
  };
}

export function readDeepCleanPage(reply: unknown): DeepCleanPage {
  const reader = new ReplyReader(reply);
  return { cursor: reader.text(), repairs: readCounts(reader) };
}

export function readPage(reply: unknown): Page {
  const reader = new ReplyReader(reply);
  const total = reader.number();
  return { total, items: reader.repeat(reader.remaining / 2, (r) => ({ id: r.bytes(), time: r.number() })) };
}

/** Pairs of names and numbers. Their order does not matter (LQ-READ-2). */
export function readCounts(reader: ReplyReader): Map<string, number> {
  return new Map(reader.repeat(reader.remaining / 2, (r) => [r.text(), r.number()] as const));
}
