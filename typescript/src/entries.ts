// What callers give: entries and options, and how they are written. Ranges are for the scripts to check (LQ-CALL-2).
import type { Address } from "./keys.js";
import { type Bytes, bytes, id, integer, milliseconds, millisecondsKept, type Word } from "./wire.js";

/** An item to add. Durations are milliseconds, rounded to the nearest. */
export interface NewItem {
  /** 1 to 256 bytes of UTF-8 without NUL (LQ-ITEM-1). */
  id: Bytes;
  /** At most as long as the queue allows, 1 MiB unless it is configured (LQ-ITEM-4). */
  data: Bytes;
  /** When it is due, in ms from now (LQ-ADD-3). Not together with `notBefore`. */
  delay?: number;
  /** When it is due, by the server's clock; a number is ms since 1970 (LQ-ADD-3). */
  notBefore?: Date | number;
  /** -7..7, higher first (LQ-ORDER-1). */
  priority?: number;
  /** How often it may be leased before it is dead; 0 is unlimited; without it, as the queue is configured. */
  maxAttempts?: number;
  /** In ms from now: then it is over unless it was leased before (LQ-LEASE-10). */
  expiresIn?: number;
  /** It is dead then, and does not vanish. */
  expiresTo?: "dead";
  /** For how many ms its outcome is kept (LQ-OUTCOME-1); without it, it is not. */
  keep?: number;
  /** Given back with each lease, as headers are (LQ-ITEM-5). */
  contentType?: Bytes;
  /** At most 16; with the content type, at most 4096 bytes (LQ-ITEM-6). */
  headers?: Iterable<readonly [string, Bytes]> | Readonly<Record<string, Bytes>>;
}

/** An item and the lease with which something is done to it. A `Lease` is one. */
export interface Held {
  id: Bytes;
  token: number;
}

/** An item to complete. */
export interface Completion extends Held {
  /** Only while this lease is the current one (LQ-COMPLETE-4). */
  onlyCurrent?: boolean;
  /**
   * For how many ms the result is kept; 0: for as long as the item was added with, and not at all where it was added
   * without. Without it nothing is kept, even if the item asks for it (LQ-CLIENT-7): a `Lease` gives it by itself.
   */
  keep?: number | undefined;
  /** At most as long as data may be (LQ-OUTCOME-7); dropped where nothing is kept. */
  result?: Bytes;
}

/** An item to complete, and what follows it. */
export interface HandOff extends Completion {
  /** At most 256, to at most 16 queues (LQ-HANDOFF-2). */
  followUps?: readonly FollowUp[];
}

/** An item that is added, to a queue of the same group, if and only if its predecessor is completed by this call. */
export interface FollowUp extends NewItem {
  queue: { readonly address: Address; readonly client?: object };
}

/** A lease to extend. */
export interface Extension extends Held {
  /** In ms from now, sooner or later than the deadline was (LQ-EXTEND-1). */
  duration: number;
}

/** An item to release. */
export interface Return extends Held {
  /** In ms from now: when it can be leased again (LQ-RELEASE-2). */
  delay?: number;
  /** The attempt does not count, and the item gets back the place of its creation (LQ-RELEASE-4). */
  uncounted?: boolean;
  /** Its last error from now on, cut at 8192 bytes (LQ-DEAD-2); an empty one takes the last away. */
  error?: Bytes;
  /** It is dead, whatever its attempts (LQ-DEAD-1). Not together with `delay` or `uncounted`. */
  dead?: boolean;
  /** For how many ms its failure is kept if it dies; 0: for as long as the item was added with (LQ-OUTCOME-3). */
  keep?: number | undefined;
}

/** What a queue is to be set to; what is not named stays (LQ-CONFIG-4). */
export interface Configuration {
  /** Bytes (LQ-CONFIG-1). */
  maxData?: number;
  /** How many items it holds, dead ones aside; 0 is unlimited (LQ-CONFIG-2). */
  maxItems?: number;
  /** Of items without a limit of their own; 0 is unlimited (LQ-CONFIG-3). */
  maxAttempts?: number;
  /** Nothing can be leased from it meanwhile (LQ-PAUSE-1). */
  paused?: boolean;
}

/** Name, value, name, value. */
type Options = Word[];

/** Whether it has another value than its default of 0. What is no number, such as NaN, has. */
const isGiven = (value: number | undefined): value is number => value !== undefined && value !== 0;

/** What has its default value is left out: an entry without options takes the shortest way through a script. */
function addOptions(item: NewItem): Options {
  const words: Options = [];
  if (isGiven(item.delay)) words.push("delay", milliseconds(item.delay, "delay"));
  if (item.notBefore !== undefined) {
    words.push("not_before", milliseconds(Number(item.notBefore), "notBefore"));
  }
  if (isGiven(item.priority)) words.push("priority", integer(item.priority, "priority"));
  if (item.maxAttempts !== undefined) words.push("max_attempts", integer(item.maxAttempts, "maxAttempts"));
  if (item.expiresIn !== undefined) words.push("expires_in", milliseconds(item.expiresIn, "expiresIn"));
  if (item.expiresTo !== undefined) words.push("expires_to", item.expiresTo);
  if (item.keep !== undefined) words.push("keep", millisecondsKept(item.keep, "keep"));
  if (item.contentType !== undefined) words.push("content_type", bytes(item.contentType, "contentType"));
  const headers = item.headers ?? [];
  for (const [name, value] of Symbol.iterator in headers ? headers : Object.entries(headers)) {
    words.push(`header:${name}`, bytes(value, "a header"));
  }
  return words;
}

function completionOptions(entry: Completion): Options {
  const words: Options = [];
  if (entry.onlyCurrent) words.push("only_current", "1");
  if (keepsOutcome(entry)) words.push("keep", millisecondsKept(entry.keep ?? 0, "keep"));
  if (entry.result !== undefined) words.push("result", bytes(entry.result, "a result"));
  return words;
}

function returnOptions(entry: Return): Options {
  const words: Options = [];
  if (isGiven(entry.delay)) words.push("delay", milliseconds(entry.delay, "delay"));
  if (entry.uncounted) words.push("uncounted", "1");
  if (entry.error !== undefined) words.push("error", bytes(entry.error, "an error"));
  if (entry.dead) words.push("dead", "1");
  if (entry.keep !== undefined) words.push("keep", millisecondsKept(entry.keep, "keep"));
  return words;
}

function counted(options: Options): Word[] {
  return [String(options.length / 2), ...options];
}

function held(entry: Held): Word[] {
  return [id(entry.id), integer(entry.token, "a token")];
}

export function newItem(item: NewItem): Word[] {
  return [id(item.id), bytes(item.data, "data"), ...counted(addOptions(item))];
}

export function completion(entry: Completion): Word[] {
  return [...held(entry), ...counted(completionOptions(entry))];
}

export function extension(entry: Extension): Word[] {
  return [...held(entry), milliseconds(entry.duration, "duration")];
}

export function returned(entry: Return): Word[] {
  return [...held(entry), ...counted(returnOptions(entry))];
}

export function configuration(wanted: Configuration): Word[] {
  const words: Options = [];
  if (wanted.maxData !== undefined) words.push("max_data", integer(wanted.maxData, "maxData"));
  if (wanted.maxItems !== undefined) words.push("max_items", integer(wanted.maxItems, "maxItems"));
  if (wanted.maxAttempts !== undefined) {
    words.push("max_attempts", integer(wanted.maxAttempts, "maxAttempts"));
  }
  if (wanted.paused !== undefined) words.push("paused", wanted.paused ? "1" : "0");
  return counted(words);
}

/** A list begins with its count. */
export function list<Entry>(entries: readonly Entry[], write: (entry: Entry) => Word[]): Word[] {
  return [String(entries.length), ...entries.flatMap(write)];
}

export function keepsOutcome(entry: Completion): boolean {
  return entry.keep !== undefined || entry.result !== undefined;
}

/** Whether `complete` can do this; else it takes `complete_with`, which does more and costs more. */
export function isPlain(entry: HandOff): boolean {
  return !keepsOutcome(entry) && !entry.followUps?.length;
}

/** The queues that follow-ups go to, each once. */
export function targetsOf(entries: readonly HandOff[]): Address[] {
  const targets: Address[] = [];
  for (const { queue } of entries.flatMap((entry) => entry.followUps ?? [])) {
    if (!targets.some((target) => target.is(queue.address))) targets.push(queue.address);
  }
  return targets;
}
