// Entries of calls as the package takes them, and how they become arguments. The scripts check ranges (LQ-CALL-2). Options and
// arguments are written by codecs.generated.ts; here stands what the client adds. commands.ts uses the functions; the types are public.

import * as codecs from "./codecs.generated.js";
import type { Argument, Bytes } from "./encoding.js";
import type { QueueKeys } from "./keys.js";
import type { Tracing } from "./tracing.js";

/** An item to add. Durations are milliseconds, rounded to the nearest. */
export interface NewItem extends codecs.AddOptions {
  /** 1 to 256 bytes of UTF-8 without NUL (LQ-ITEM-1). */
  id: Bytes;
  /** At most as long as the queue allows, 1 MiB unless it is configured (LQ-ITEM-4). */
  data: Bytes;
}

/** An item and the token of its lease. A `LeasedItem` is one. */
export interface LeaseRef {
  id: Bytes;
  token: number;
}

/**
 * An item to complete. Without `keep` and `result` nothing is kept, even if the item was added with `keep` (LQ-CLIENT-7); a
 * `LeasedItem` sets it automatically.
 */
export interface Completion extends LeaseRef, codecs.CompleteWithOptions {}

/** An item to complete, and its follow-ups. */
export interface HandOff extends Completion {
  /** At most 256, to at most 16 queues (LQ-HANDOFF-2). */
  followUps?: readonly FollowUp[] | undefined;
}

/** An item to add, to a queue of the same group, if and only if this call completes its predecessor. */
export interface FollowUp extends NewItem {
  queue: { readonly keys: QueueKeys; readonly client?: object; readonly tracing?: Tracing | undefined };
}

/** A lease to extend. */
export interface Extension extends LeaseRef {
  /** The new deadline in ms from now, earlier or later than the old one (LQ-EXTEND-1). */
  duration: number;
}

/** An item to release. */
export interface ReleaseRequest extends LeaseRef, codecs.ReleaseOptions {}

/** The settings of a queue to change. A setting that is not given stays (LQ-CONFIG-4). */
export type Configuration = codecs.ConfigureOptions;

/** An entry of `add`. */
export function itemArgs(item: NewItem): Argument[] {
  return codecs.encodeAddEntry(item.id, item.data, codecs.encodeAddOptions(item));
}

/** The options of a completion. `keep` is sent with every result: 0 keeps it as the item was added (LQ-CLIENT-7). */
function completionOptions(entry: Completion): Argument[] {
  const { onlyCurrent, result } = entry;
  const keep = keepsOutcome(entry) ? (entry.keep ?? 0) : undefined;
  return codecs.encodeCompleteWithOptions({ onlyCurrent, keep, result });
}

/** An entry of `complete` and `complete_and_lease`. */
export function completionArgs(entry: Completion): Argument[] {
  return codecs.encodeCompleteEntry(entry.id, entry.token, completionOptions(entry));
}

/** An entry of `complete_with`; `targets` are the queues of all follow-ups of the call. */
export function handOffArgs(entry: HandOff, targets: readonly QueueKeys[]): Argument[] {
  const followUps = (entry.followUps ?? []).map((item) => {
    const target = targets.findIndex((keys) => keys.equals(item.queue.keys)) + 1;
    return codecs.encodeCompleteWithFollowUp(target, itemArgs(item));
  });
  return codecs.encodeCompleteWithEntry(entry.id, entry.token, completionOptions(entry), followUps);
}

/** An entry of `extend`. */
export function extensionArgs(entry: Extension): Argument[] {
  return codecs.encodeExtendEntry(entry.id, entry.token, entry.duration);
}

/** An entry of `release`. */
export function releaseArgs(entry: ReleaseRequest): Argument[] {
  return codecs.encodeReleaseEntry(entry.id, entry.token, codecs.encodeReleaseOptions(entry));
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
