// What callers get, and how it is read. Points in time, tokens and `created` are µs since 1970 of the server's clock.
import { Reader, waitInMilliseconds } from "./wire.js";

export type State = "ready" | "delayed" | "leased" | "dead";
/** What a release made of the item; `lost`: the lease is not the current one, and nothing changed (LQ-RELEASE-1). */
export type Released = "ready" | "delayed" | "dead" | "lost";
/** The state an item was in; `none` is damage that `deepClean` repairs. */
export type Removed = State | "none" | "absent";

export interface LeasedItem {
  id: Buffer;
  data: Buffer;
  token: number;
  attempt: number;
  /** Milliseconds. */
  keep: number | undefined;
  contentType: Buffer | undefined;
  headers: ReadonlyMap<string, Buffer>;
}

export interface LeaseReply {
  /** Of the queues of the call, counted from 0, the one that gave the items; -1 where none did. */
  queue: number;
  items: LeasedItem[];
  deadline: number;
  /** Milliseconds until something is due, 0: ask again at once, Infinity: nothing to wait for (LQ-LEASE-7). */
  wait: number;
  /** Who died in this call and keeps an outcome: somebody has to ask for it (LQ-CLIENT-8). */
  died: { queue: number; id: Buffer }[];
}

export interface HandOffAnswer {
  completed: boolean;
  /** For each follow-up when it was created, 0 where its id existed, -1 where this call did not complete the item. */
  followUps: number[];
}

/** What became of an item. */
export interface Outcome {
  kind: "result" | "failure" | State | "none" | "absent";
  created: number;
  ended: number;
  attempt: number;
  /** Milliseconds for which the outcome will be kept; 0 where none will. */
  keep: number;
  /** The result, or the last error. */
  content: Buffer;
}

/** One item, looked at. */
export interface Inspection {
  state: State | "none" | "absent";
  /** Its place, due time, deadline or time of death. */
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

export interface LightCleaning {
  promoted: number;
  reclaimed: number;
  died: number;
  expired: number;
  pruned: number;
  /** Milliseconds until there is something to do, 0 when more is left, Infinity when there is nothing. */
  wait: number;
  /** Who died and keeps an outcome. */
  keepers: Buffer[];
}

export interface DeepCleaning {
  /** "0": the pass is over. */
  cursor: string;
  /** How often each kind of damage was found. */
  repairs: Map<string, number>;
}

/** A page of ids; `time` as in `Inspection`. */
export interface Listing {
  total: number;
  items: { id: Buffer; time: number }[];
}

export const number = (answer: unknown): number => answer as number;
export const yes = (answer: unknown): boolean => answer === 1;
/** A word of the protocol; an unknown one of a later protocol comes through as it is. */
export const word =
  <Word extends string>() =>
  (answer: unknown): Word =>
    String(answer) as Word;

/** One entry is answered bare, several with an array (LQ-CALL-4). */
export function each<Answer>(read: (answer: unknown) => Answer): (reply: unknown) => Answer[] {
  return (reply) => (Array.isArray(reply) ? reply.map(read) : [read(reply)]);
}

/** Reads the reply of a lease from one queue, of which `behind` elements are somebody else's. */
export function readLease(reader: Reader, behind = 0): LeaseReply {
  const answer = readLeased(reader, behind);
  return { ...answer, queue: answer.items.length > 0 ? 0 : -1 };
}

/** The same from several queues; the reply says which one gave. */
export function readLeaseAny(reply: unknown): LeaseReply {
  const reader = new Reader(reply);
  const queue = reader.number() - 1;
  return { ...readLeased(reader, 0), queue };
}

function readLeased(reader: Reader, behind: number): Omit<LeaseReply, "queue"> {
  const wait = waitInMilliseconds(reader.number());
  const deadline = reader.number();
  const items = reader.times(reader.number(), (r) => ({
    id: r.bytes(),
    data: r.bytes(),
    token: r.number(),
    attempt: r.number(),
    keep: undefined as number | undefined,
    contentType: undefined as Buffer | undefined,
    headers: new Map<string, Buffer>(),
  }));
  const died: LeaseReply["died"] = [];
  while (reader.left > behind) {
    const about = reader.number();
    const name = reader.text();
    const item = items[about - 1];
    // Names that are not known are skipped, whatever type their value has: a later protocol may tell more.
    if (name === "died" && about <= 0) {
      died.push({ queue: Math.max(-about - 1, 0), id: reader.bytes() });
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
  const reader = new Reader(reply);
  return reader.times(reader.left / 6, (r) => ({
    kind: r.text() as Outcome["kind"],
    created: r.number(),
    ended: r.number(),
    attempt: r.number(),
    keep: r.number(),
    content: r.bytes(),
  }));
}

export function readInspections(reply: unknown): Inspection[] {
  const reader = new Reader(reply);
  return reader.times(reader.left / 11, (r) => ({
    state: r.text() as Inspection["state"],
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

export function readLightCleaning(reply: unknown): LightCleaning {
  const reader = new Reader(reply);
  return {
    promoted: reader.number(),
    reclaimed: reader.number(),
    died: reader.number(),
    expired: reader.number(),
    pruned: reader.number(),
    wait: waitInMilliseconds(reader.number()),
    keepers: reader.times(reader.left, (r) => r.bytes()),
  };
}

export function readDeepCleaning(reply: unknown): DeepCleaning {
  const reader = new Reader(reply);
  return { cursor: reader.text(), repairs: namedNumbers(reader) };
}

export function readListing(reply: unknown): Listing {
  const reader = new Reader(reply);
  const total = reader.number();
  return { total, items: reader.times(reader.left / 2, (r) => ({ id: r.bytes(), time: r.number() })) };
}

/** Found by name and not by place (LQ-READ-2). */
export function namedNumbers(reader: Reader): Map<string, number> {
  return new Map(reader.times(reader.left / 2, (r) => [r.text(), r.number()] as const));
}
