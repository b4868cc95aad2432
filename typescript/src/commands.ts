// Each operation as a command: the script, its keys and arguments, and how to read its reply. Nothing here sends: queue.ts does, or
// the caller by `appendTo`. One function for each script; callers of the package see them as `commands`. Durations are milliseconds.

import {
  type Argument,
  type Bytes,
  encodeId,
  encodeInteger,
  encodeMilliseconds,
  ReplyReader,
} from "./encoding.js";
import { CrossGroupError } from "./errors.js";
import type { QueueKeys } from "./keys.js";
import * as read from "./replies.js";
import * as write from "./requests.js";
import { SCRIPTS } from "./scripts.generated.js";

/** A script, as the specification names it. */
export type ScriptName = keyof typeof SCRIPTS;

/** A call of a script that has not been sent. */
export interface Command<Result> {
  readonly script: ScriptName;
  readonly keys: readonly Argument[];
  readonly args: readonly Argument[];
  /** Reads the reply. Its bytes must not have been decoded. */
  readonly read: (reply: unknown) => Result;
}

/** Which page of a list to read, from the first or the last id on. */
export interface ListOptions {
  /** Default: 0. */
  offset?: number;
  /** Default: 100. */
  limit?: number;
  order?: "forward" | "backward";
}

/** A command whose keys are those of one queue, and `moreKeys` behind them. */
function queueCommand<Result>(
  script: ScriptName,
  keys: QueueKeys,
  args: readonly Argument[],
  readReply: (reply: unknown) => Result,
  moreKeys: readonly Argument[] = [],
): Command<Result> {
  return { script, keys: [...keys.forParts(SCRIPTS[script].keys), ...moreKeys], args, read: readReply };
}

/** The arguments of a list of ids. */
const ids = (entries: readonly Bytes[]) => write.withCount(entries, (entry) => [encodeId(entry)]);

export function add(keys: QueueKeys, items: readonly write.NewItem[]): Command<number[]> {
  return queueCommand("add", keys, write.withCount(items, write.itemArgs), read.perEntry(read.asNumber));
}

export function lease(keys: QueueKeys, count: number, duration: number): Command<read.LeaseReply> {
  const args = [encodeInteger(count, "count"), encodeMilliseconds(duration, "duration")];
  return queueCommand("lease", keys, args, (reply) => read.readLease(new ReplyReader(reply)));
}

/** Leases from the first of several queues of one group that has an item. */
export function leaseAny(
  queues: readonly QueueKeys[],
  count: number,
  duration: number,
): Command<read.LeaseReply> {
  const partsOfEach = SCRIPTS.lease_any.moreKeys.queue;
  return {
    script: "lease_any",
    keys: queues.flatMap((keys) => keys.forParts(partsOfEach)),
    args: [String(queues.length), encodeInteger(count, "count"), encodeMilliseconds(duration, "duration")],
    read: read.readLeaseAny,
  };
}

export function complete(keys: QueueKeys, entries: readonly write.Completion[]): Command<boolean[]> {
  return queueCommand(
    "complete",
    keys,
    write.withCount(entries, write.completionArgs),
    read.perEntry(read.isOne),
  );
}

/** Throws CrossGroupError if a follow-up cannot go to `target`, which is of another group. */
export function checkTarget(keys: QueueKeys, target: QueueKeys): void {
  if (target.group !== keys.group) {
    throw new CrossGroupError(`queue ${target.name} is of group ${target.group} and not of ${keys.group}`);
  }
}

/** Throws CrossGroupError if a follow-up goes to another group (LQ-CLIENT-9). */
export function completeWith(keys: QueueKeys, entries: readonly write.HandOff[]): Command<read.Completed[]> {
  const targets = write.targetQueues(entries);
  for (const target of targets) checkTarget(keys, target);
  const followUp = (item: write.FollowUp): Argument[] => [
    String(targets.findIndex((target) => target.equals(item.queue.keys)) + 1),
    ...write.itemArgs(item),
  ];
  const entryArgs = entries.flatMap((entry) => [
    ...write.completionArgs(entry),
    ...write.withCount(entry.followUps ?? [], followUp),
  ]);
  const { moreKeys } = SCRIPTS.complete_with;
  return queueCommand(
    "complete_with",
    keys,
    [String(entries.length), String(targets.length), ...entryArgs],
    (reply) => {
      const reader = new ReplyReader(reply);
      return entries.map((entry) => ({
        completed: read.isOne(reader.number()),
        followUps: reader.repeat(entry.followUps?.length ?? 0, (r) => r.number()),
      }));
    },
    [
      ...targets.flatMap((target) => target.forParts(moreKeys["target queue"])),
      ...entries.filter(write.keepsOutcome).map((entry) => keys.resultKey(encodeId(entry.id))),
    ],
  );
}

/** Completes items and leases others. For entries without results and follow-ups. */
export function completeAndLease(
  keys: QueueKeys,
  entries: readonly write.Completion[],
  count: number,
  duration: number,
): Command<{ completed: boolean[]; leased: read.LeaseReply }> {
  const entryArgs = write.withCount(entries, write.completionArgs);
  const args = [encodeInteger(count, "count"), encodeMilliseconds(duration, "duration"), ...entryArgs];
  return queueCommand("complete_and_lease", keys, args, (reply) => {
    const reader = new ReplyReader(reply);
    const leased = read.readLease(reader, entries.length);
    return { completed: reader.repeat(entries.length, (r) => read.isOne(r.number())), leased };
  });
}

export function extend(keys: QueueKeys, entries: readonly write.Extension[]): Command<number[]> {
  return queueCommand(
    "extend",
    keys,
    write.withCount(entries, write.extensionArgs),
    read.perEntry(read.asNumber),
  );
}

export function release(keys: QueueKeys, entries: readonly write.ReleaseRequest[]): Command<read.Released[]> {
  const resultKeys = entries
    .filter((entry) => entry.keep !== undefined)
    .map((entry) => keys.resultKey(encodeId(entry.id)));
  const readStates = read.perEntry(read.asString<read.Released>());
  return queueCommand("release", keys, write.withCount(entries, write.releaseArgs), readStates, resultKeys);
}

export function revive(keys: QueueKeys, entries: readonly Bytes[]): Command<boolean[]> {
  return queueCommand("revive", keys, ids(entries), read.perEntry(read.isOne));
}

export function purge(keys: QueueKeys, entries: readonly Bytes[], olderThan: number): Command<boolean[]> {
  const args = [encodeMilliseconds(olderThan, "olderThan"), ...ids(entries)];
  return queueCommand("purge", keys, args, read.perEntry(read.isOne));
}

export function remove(keys: QueueKeys, entries: readonly Bytes[]): Command<read.State[]> {
  return queueCommand("remove", keys, ids(entries), read.perEntry(read.asString<read.State>()));
}

/** If contents are long, the reply is for fewer entries, at least one. Send the others again (LQ-OUTCOME-9). */
export function outcome(keys: QueueKeys, entries: readonly Bytes[]): Command<read.Outcome[]> {
  const resultKeys = entries.map((entry) => keys.resultKey(encodeId(entry)));
  return queueCommand("outcome", keys, ids(entries), read.readOutcomes, resultKeys);
}

export function settle(keys: QueueKeys): Command<boolean> {
  return queueCommand("settle", keys, [], read.isOne);
}

export function lightClean(keys: QueueKeys, limit: number): Command<read.LightClean> {
  return queueCommand("light_clean", keys, [encodeInteger(limit, "limit")], read.readLightClean);
}

export function deepClean(
  keys: QueueKeys,
  cursor: string,
  limit: number,
  dryRun: boolean,
): Command<read.DeepCleanPage> {
  const args = [cursor, encodeInteger(limit, "limit"), dryRun ? "1" : "0"];
  return queueCommand("deep_clean", keys, args, read.readDeepCleanPage);
}

export function stats(keys: QueueKeys): Command<Map<string, number>> {
  return queueCommand("stats", keys, [], (reply) => read.readCounts(new ReplyReader(reply)));
}

export function inspect(keys: QueueKeys, entries: readonly Bytes[]): Command<read.ItemInfo[]> {
  return queueCommand("inspect", keys, ids(entries), read.readItemInfos);
}

export function list(keys: QueueKeys, state: read.ListState, options: ListOptions = {}): Command<read.Page> {
  const { offset = 0, limit = 100, order = "forward" } = options;
  const args = [state, encodeInteger(offset, "offset"), encodeInteger(limit, "limit"), order];
  return queueCommand("list", keys, args, read.readPage);
}

export function configure(keys: QueueKeys, changes: write.Configuration): Command<boolean> {
  return queueCommand("configure", keys, write.configurationArgs(changes), read.isOne);
}
