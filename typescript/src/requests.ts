// Entries and options of calls, and how they become arguments. The scripts check ranges (LQ-CALL-2). The order of options in the
// arguments is that of the specification (LQ-CALL-10). commands.ts uses the functions; the types are public.

import {
  type Argument,
  type Bytes,
  encodeBytes,
  encodeId,
  encodeInteger,
  encodeKeep,
  encodeMilliseconds,
} from "./encoding.js";
import type { QueueKeys } from "./keys.js";

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
  /** How often it may be leased before it is dead; 0 is unlimited. Default: as the queue is configured. */
  maxAttempts?: number;
  /** In ms from now: then it is dropped, unless it was leased before (LQ-LEASE-10). */
  expiresIn?: number;
  /** It becomes dead then, and is not dropped. */
  expiresTo?: "dead";
  /** For how many ms its outcome is kept (LQ-OUTCOME-1). Default: it is not kept. */
  keep?: number;
  /** Returned with each lease, as headers are (LQ-ITEM-5). */
  contentType?: Bytes;
  /** At most 16; with the content type, at most 4096 bytes (LQ-ITEM-6). */
  headers?: Iterable<readonly [string, Bytes]> | Readonly<Record<string, Bytes>>;
}

/** An item and the token of its lease. A `LeasedItem` is one. */
export interface LeaseRef {
  id: Bytes;
  token: number;
}

/** An item to complete. */
export interface Completion extends LeaseRef {
  /** Complete it only while this lease is the current one (LQ-COMPLETE-4). */
  onlyCurrent?: boolean;
  /**
   * For how many ms the result is kept. 0: as the item was added, and not at all if it was added without `keep`. Without this
   * option nothing is kept, even if the item was added with `keep` (LQ-CLIENT-7); a `LeasedItem` sets it automatically.
   */
  keep?: number | undefined;
  /** At most as long as data may be (LQ-OUTCOME-7). Dropped if nothing is kept. */
  result?: Bytes;
}

/** An item to complete, and its follow-ups. */
export interface HandOff extends Completion {
  /** At most 256, to at most 16 queues (LQ-HANDOFF-2). */
  followUps?: readonly FollowUp[];
}

/** An item to add, to a queue of the same group, if and only if this call completes its predecessor. */
export interface FollowUp extends NewItem {
  queue: { readonly keys: QueueKeys; readonly client?: object };
}

/** A lease to extend. */
export interface Extension extends LeaseRef {
  /** The new deadline in ms from now, earlier or later than the old one (LQ-EXTEND-1). */
  duration: number;
}

/** An item to release. */
export interface ReleaseRequest extends LeaseRef {
  /** In ms from now: when it can be leased again (LQ-RELEASE-2). */
  delay?: number;
  /** The attempt does not count, and the item gets its place by creation time back (LQ-RELEASE-4). */
  uncounted?: boolean;
  /** Its last error from now on, cut at 8192 bytes (LQ-DEAD-2). An empty one clears it. */
  error?: Bytes;
  /** Make it dead, whatever its attempts (LQ-DEAD-1). Not together with `delay` or `uncounted`. */
  dead?: boolean;
  /** For how many ms its failure is kept if it dies; 0: as the item was added (LQ-OUTCOME-3). */
  keep?: number | undefined;
}

/** The settings of a queue to change. A setting that is not given stays (LQ-CONFIG-4). */
export interface Configuration {
  /** Bytes (LQ-CONFIG-1). */
  maxData?: number;
  /** The most items it holds, without dead ones; 0 is unlimited (LQ-CONFIG-2). */
  maxItems?: number;
  /** For items added without `maxAttempts`; 0 is unlimited (LQ-CONFIG-3). */
  maxAttempts?: number;
  /** While it is true, nothing is leased (LQ-PAUSE-1). */
  paused?: boolean;
}

/** Name, value, name, value. */
type OptionPairs = Argument[];

/** Whether an option is given and not its default, 0. NaN counts as given: encoding it throws. */
const isNonzero = (value: number | undefined): value is number => value !== undefined && value !== 0;

/** Defaults are left out: an entry without options takes the shortest way through a script. */
function addOptionPairs(item: NewItem): OptionPairs {
  const pairs: OptionPairs = [];
  if (isNonzero(item.delay)) pairs.push("delay", encodeMilliseconds(item.delay, "delay"));
  if (item.notBefore !== undefined) {
    pairs.push("not_before", encodeMilliseconds(Number(item.notBefore), "notBefore"));
  }
  if (isNonzero(item.priority)) pairs.push("priority", encodeInteger(item.priority, "priority"));
  if (item.maxAttempts !== undefined)
    pairs.push("max_attempts", encodeInteger(item.maxAttempts, "maxAttempts"));
  if (item.expiresIn !== undefined) pairs.push("expires_in", encodeMilliseconds(item.expiresIn, "expiresIn"));
  if (item.expiresTo !== undefined) pairs.push("expires_to", item.expiresTo);
  if (item.keep !== undefined) pairs.push("keep", encodeKeep(item.keep, "keep"));
  if (item.contentType !== undefined)
    pairs.push("content_type", encodeBytes(item.contentType, "contentType"));
  const headers = item.headers ?? [];
  for (const [name, value] of Symbol.iterator in headers ? headers : Object.entries(headers)) {
    pairs.push(`header:${name}`, encodeBytes(value, "a header"));
  }
  return pairs;
}

/** `keep` is sent with every result: 0 keeps it as the item was added (LQ-CLIENT-7). */
function completionOptionPairs(entry: Completion): OptionPairs {
  const pairs: OptionPairs = [];
  if (entry.onlyCurrent) pairs.push("only_current", "1");
  if (keepsOutcome(entry)) pairs.push("keep", encodeKeep(entry.keep ?? 0, "keep"));
  if (entry.result !== undefined) pairs.push("result", encodeBytes(entry.result, "a result"));
  return pairs;
}

function releaseOptionPairs(entry: ReleaseRequest): OptionPairs {
  const pairs: OptionPairs = [];
  if (isNonzero(entry.delay)) pairs.push("delay", encodeMilliseconds(entry.delay, "delay"));
  if (entry.uncounted) pairs.push("uncounted", "1");
  if (entry.error !== undefined) pairs.push("error", encodeBytes(entry.error, "an error"));
  if (entry.dead) pairs.push("dead", "1");
  if (entry.keep !== undefined) pairs.push("keep", encodeKeep(entry.keep, "keep"));
  return pairs;
}

/** Options in a call: their number, then the pairs. */
function withOptionCount(options: OptionPairs): Argument[] {
  return [String(options.length / 2), ...options];
}

/** The id and the token, with which each entry about a lease starts. */
function leaseRefArgs(entry: LeaseRef): Argument[] {
  return [encodeId(entry.id), encodeInteger(entry.token, "a token")];
}

/** The arguments of an item to add. */
export function itemArgs(item: NewItem): Argument[] {
  return [encodeId(item.id), encodeBytes(item.data, "data"), ...withOptionCount(addOptionPairs(item))];
}

/** The arguments of an item to complete. */
export function completionArgs(entry: Completion): Argument[] {
  return [...leaseRefArgs(entry), ...withOptionCount(completionOptionPairs(entry))];
}

/** The arguments of a lease to extend. */
export function extensionArgs(entry: Extension): Argument[] {
  return [...leaseRefArgs(entry), encodeMilliseconds(entry.duration, "duration")];
}

/** The arguments of an item to release. */
export function releaseArgs(entry: ReleaseRequest): Argument[] {
  return [...leaseRefArgs(entry), ...withOptionCount(releaseOptionPairs(entry))];
}

/** The arguments of settings to change. */
export function configurationArgs(changes: Configuration): Argument[] {
  const pairs: OptionPairs = [];
  if (changes.maxData !== undefined) pairs.push("max_data", encodeInteger(changes.maxData, "maxData"));
  if (changes.maxItems !== undefined) pairs.push("max_items", encodeInteger(changes.maxItems, "maxItems"));
  if (changes.maxAttempts !== undefined) {
    pairs.push("max_attempts", encodeInteger(changes.maxAttempts, "maxAttempts"));
  }
  if (changes.paused !== undefined) pairs.push("paused", changes.paused ? "1" : "0");
  return withOptionCount(pairs);
}

/** The arguments of a list: the number of entries, then each. */
export function withCount<Entry>(
  entries: readonly Entry[],
  encode: (entry: Entry) => Argument[],
): Argument[] {
  return [String(entries.length), ...entries.flatMap(encode)];
}

/** Whether completing it keeps a result. */
export function keepsOutcome(entry: Completion): boolean {
  return entry.keep !== undefined || entry.result !== undefined;
}

/** Whether the script `complete` can do this. Otherwise it takes `complete_with`, which costs more. */
export function isSimple(entry: HandOff): boolean {
  return !keepsOutcome(entry) && !entry.followUps?.length;
}

/** The queues of the follow-ups, each once. */
export function targetQueues(entries: readonly HandOff[]): QueueKeys[] {
  const targets: QueueKeys[] = [];
  for (const { queue } of entries.flatMap((entry) => entry.followUps ?? [])) {
    if (!targets.some((target) => target.equals(queue.keys))) targets.push(queue.keys);
  }
  return targets;
}
