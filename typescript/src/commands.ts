// Each operation as a command: the script, its keys and arguments, and how to read its reply. Nothing here sends: queue.ts does, or
// the caller by `appendTo`. One function for each script; callers of the package see them as `commands`. Durations are milliseconds.

import * as codecs from "./codecs.generated.js";
import { type Argument, type Bytes, encodeId } from "./encoding.js";
import { CrossGroupError } from "./errors.js";
import type { QueueKeys } from "./keys.js";
import { type LeaseReply, leaseReply } from "./replies.js";
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
  offset?: number | undefined;
  /** Default: 100. */
  limit?: number | undefined;
  order?: codecs.ListOrder | undefined;
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

export function add(keys: QueueKeys, items: readonly write.NewItem[]): Command<number[]> {
  return addEntries(keys, items.map(write.itemArgs));
}

/** Adds items that are encoded already: what a caller changes in an item afterwards is not sent. */
export function addEntries(keys: QueueKeys, entries: readonly Argument[][]): Command<number[]> {
  return queueCommand("add", keys, codecs.encodeAddArguments(entries), codecs.readAddReply);
}

export function lease(keys: QueueKeys, count: number, duration: number): Command<LeaseReply> {
  const args = codecs.encodeLeaseArguments(count, duration);
  return queueCommand("lease", keys, args, (reply) => leaseReply(codecs.readLeaseReply(reply)));
}

/** Leases from the first of several queues of one group that has an item. */
export function leaseAny(queues: readonly QueueKeys[], count: number, duration: number): Command<LeaseReply> {
  const partsOfEach = SCRIPTS.lease_any.moreKeys.queue;
  return {
    script: "lease_any",
    keys: queues.flatMap((keys) => keys.forParts(partsOfEach)),
    args: codecs.encodeLeaseAnyArguments(queues.length, count, duration),
    read: (reply) => {
      const fields = codecs.readLeaseAnyReply(reply);
      return leaseReply(fields, fields.queue - 1);
    },
  };
}

export function complete(keys: QueueKeys, entries: readonly write.Completion[]): Command<boolean[]> {
  const args = codecs.encodeCompleteArguments(entries.map(write.completionArgs));
  return queueCommand("complete", keys, args, codecs.readCompleteReply);
}

/** Throws CrossGroupError if a follow-up cannot go to `target`, which is of another group. */
export function checkTarget(keys: QueueKeys, target: QueueKeys): void {
  if (target.group !== keys.group) {
    throw new CrossGroupError(`queue ${target.name} is of group ${target.group} and not of ${keys.group}`);
  }
}

/** Throws CrossGroupError if a follow-up goes to another group (LQ-CLIENT-9). */
export function completeWith(
  keys: QueueKeys,
  entries: readonly write.HandOff[],
): Command<codecs.Completed[]> {
  const targets = write.targetQueues(entries);
  for (const target of targets) checkTarget(keys, target);
  const entryArgs = entries.map((entry) => write.handOffArgs(entry, targets));
  const args = codecs.encodeCompleteWithArguments(entryArgs, targets.length);
  const followUps = entries.map((entry) => entry.followUps?.length ?? 0);
  const partsOfTarget = SCRIPTS.complete_with.moreKeys["target queue"];
  const moreKeys = [
    ...targets.flatMap((target) => target.forParts(partsOfTarget)),
    ...entries.filter(write.keepsOutcome).map((entry) => keys.resultKey(encodeId(entry.id))),
  ];
  const read = (reply: unknown) => codecs.readCompleteWithReply(reply, followUps);
  return queueCommand("complete_with", keys, args, read, moreKeys);
}

/** Completes items and leases others. For entries without results and follow-ups. */
export function completeAndLease(
  keys: QueueKeys,
  entries: readonly write.Completion[],
  count: number,
  duration: number,
): Command<{ completed: boolean[]; leased: LeaseReply }> {
  const entryArgs = entries.map(write.completionArgs);
  const args = codecs.encodeCompleteAndLeaseArguments(count, duration, entryArgs);
  return queueCommand("complete_and_lease", keys, args, (reply) => {
    const fields = codecs.readCompleteAndLeaseReply(reply, entries.length);
    return { completed: fields.entries, leased: leaseReply(fields) };
  });
}

export function extend(keys: QueueKeys, entries: readonly write.Extension[]): Command<number[]> {
  const args = codecs.encodeExtendArguments(entries.map(write.extensionArgs));
  return queueCommand("extend", keys, args, codecs.readExtendReply);
}

export function release(
  keys: QueueKeys,
  entries: readonly write.ReleaseRequest[],
): Command<codecs.Released[]> {
  const args = codecs.encodeReleaseArguments(entries.map(write.releaseArgs));
  const resultKeys = entries
    .filter((entry) => entry.keep !== undefined)
    .map((entry) => keys.resultKey(encodeId(entry.id)));
  return queueCommand("release", keys, args, codecs.readReleaseReply, resultKeys);
}

export function revive(keys: QueueKeys, entries: readonly Bytes[]): Command<boolean[]> {
  return queueCommand("revive", keys, codecs.encodeReviveArguments(entries), codecs.readReviveReply);
}

export function promote(keys: QueueKeys, entries: readonly Bytes[]): Command<boolean[]> {
  return queueCommand("promote", keys, codecs.encodePromoteArguments(entries), codecs.readPromoteReply);
}

export function purge(keys: QueueKeys, entries: readonly Bytes[], olderThan: number): Command<boolean[]> {
  return queueCommand("purge", keys, codecs.encodePurgeArguments(olderThan, entries), codecs.readPurgeReply);
}

export function remove(keys: QueueKeys, entries: readonly Bytes[]): Command<codecs.State[]> {
  return queueCommand("remove", keys, codecs.encodeRemoveArguments(entries), codecs.readRemoveReply);
}

/** If contents are long, the reply is for fewer entries, at least one. Send the others again (LQ-OUTCOME-9). */
export function outcome(keys: QueueKeys, entries: readonly Bytes[]): Command<codecs.Outcome[]> {
  const args = codecs.encodeOutcomeArguments(entries);
  const resultKeys = entries.map((entry) => keys.resultKey(encodeId(entry)));
  return queueCommand("outcome", keys, args, codecs.readOutcomeReply, resultKeys);
}

export function settle(keys: QueueKeys): Command<boolean> {
  return queueCommand("settle", keys, [], codecs.readSettleReply);
}

export function lightClean(keys: QueueKeys, limit: number): Command<codecs.LightClean> {
  return queueCommand(
    "light_clean",
    keys,
    codecs.encodeLightCleanArguments(limit),
    codecs.readLightCleanReply,
  );
}

export function deepClean(
  keys: QueueKeys,
  cursor: string,
  limit: number,
  dryRun: boolean,
): Command<codecs.DeepCleanPage> {
  const args = codecs.encodeDeepCleanArguments(cursor, limit, dryRun);
  return queueCommand("deep_clean", keys, args, codecs.readDeepCleanReply);
}

export function stats(keys: QueueKeys): Command<Map<string, number>> {
  return queueCommand("stats", keys, [], codecs.readStatsReply);
}

export function inspect(keys: QueueKeys, entries: readonly Bytes[]): Command<codecs.ItemInfo[]> {
  return queueCommand("inspect", keys, codecs.encodeInspectArguments(entries), codecs.readInspectReply);
}

export function list(
  keys: QueueKeys,
  state: codecs.ListState,
  options: ListOptions = {},
): Command<codecs.Page> {
  const { offset = 0, limit = 100, order = "forward" } = options;
  return queueCommand(
    "list",
    keys,
    codecs.encodeListArguments(state, offset, limit, order),
    codecs.readListReply,
  );
}

export const deleteQueue = (keys: QueueKeys): Command<boolean> =>
  queueCommand("delete", keys, [], codecs.readDeleteReply);

export function configure(keys: QueueKeys, changes: write.Configuration): Command<boolean> {
  const args = codecs.encodeConfigureArguments(codecs.encodeConfigureOptions(changes));
  return queueCommand("configure", keys, args, codecs.readConfigureReply);
}
