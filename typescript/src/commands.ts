// The operations as values: which script, with which keys and arguments, and how its reply is read. Nothing here sends.
import * as read from "./answers.js";
import * as write from "./entries.js";
import { CrossGroupError } from "./errors.js";
import type { Address } from "./keys.js";
import { SCRIPTS } from "./scripts.generated.js";
import { type Bytes, id, integer, milliseconds, Reader, type Word } from "./wire.js";

export type ScriptName = keyof typeof SCRIPTS;

/** A call that has not been sent. */
export interface Call<Answer> {
  readonly script: ScriptName;
  readonly keys: readonly Word[];
  readonly args: readonly Word[];
  /** Reads the reply, whose bytes must not have been decoded. */
  readonly read: (reply: unknown) => Answer;
}

/** Which of the ids in a state to list, from the first or the last on. */
export interface ListOptions {
  /** 0 without it. */
  offset?: number;
  /** 100 without it. */
  limit?: number;
  order?: "forward" | "backward";
}

function call<Answer>(
  script: ScriptName,
  at: Address,
  args: readonly Word[],
  readReply: (reply: unknown) => Answer,
  moreKeys: readonly Word[] = [],
): Call<Answer> {
  return { script, keys: [...at.keys(SCRIPTS[script].keys), ...moreKeys], args, read: readReply };
}

const ids = (entries: readonly Bytes[]) => write.list(entries, (entry) => [id(entry)]);

export function add(at: Address, items: readonly write.NewItem[]): Call<number[]> {
  return call("add", at, write.list(items, write.newItem), read.each(read.number));
}

export function lease(at: Address, count: number, duration: number): Call<read.LeaseReply> {
  const args = [integer(count, "count"), milliseconds(duration, "duration")];
  return call("lease", at, args, (reply) => read.readLease(new Reader(reply)));
}

export function leaseAny(at: readonly Address[], count: number, duration: number): Call<read.LeaseReply> {
  const keysOfEach = SCRIPTS.lease_any.moreKeys.queue;
  return {
    script: "lease_any",
    keys: at.flatMap((address) => address.keys(keysOfEach)),
    args: [String(at.length), integer(count, "count"), milliseconds(duration, "duration")],
    read: read.readLeaseAny,
  };
}

export function complete(at: Address, entries: readonly write.Completion[]): Call<boolean[]> {
  return call("complete", at, write.list(entries, write.completion), read.each(read.yes));
}

/** Throws CrossGroupError for a queue that no follow-up can go to. */
export function checkTarget(at: Address, target: Address): void {
  if (target.group !== at.group) {
    throw new CrossGroupError(`queue ${target.name} is of group ${target.group} and not of ${at.group}`);
  }
}

/** Throws CrossGroupError where a follow-up goes to another group, before anything is sent (LQ-CLIENT-9). */
export function completeWith(at: Address, entries: readonly write.HandOff[]): Call<read.HandOffAnswer[]> {
  const targets = write.targetsOf(entries);
  for (const target of targets) checkTarget(at, target);
  const followUp = (item: write.FollowUp): Word[] => [
    String(targets.findIndex((target) => target.is(item.queue.address)) + 1),
    ...write.newItem(item),
  ];
  const words = entries.flatMap((entry) => [
    ...write.completion(entry),
    ...write.list(entry.followUps ?? [], followUp),
  ]);
  const { moreKeys } = SCRIPTS.complete_with;
  return call(
    "complete_with",
    at,
    [String(entries.length), String(targets.length), ...words],
    (reply) => {
      const reader = new Reader(reply);
      return entries.map((entry) => ({
        completed: read.yes(reader.number()),
        followUps: reader.times(entry.followUps?.length ?? 0, (r) => r.number()),
      }));
    },
    [
      ...targets.flatMap((target) => target.keys(moreKeys["target queue"])),
      ...entries.filter(write.keepsOutcome).map((entry) => at.resultKey(id(entry.id))),
    ],
  );
}

export function completeAndLease(
  at: Address,
  entries: readonly write.Completion[],
  count: number,
  duration: number,
): Call<{ completed: boolean[]; leased: read.LeaseReply }> {
  const words = write.list(entries, write.completion);
  const args = [integer(count, "count"), milliseconds(duration, "duration"), ...words];
  return call("complete_and_lease", at, args, (reply) => {
    const reader = new Reader(reply);
    const leased = read.readLease(reader, entries.length);
    return { completed: reader.times(entries.length, (r) => read.yes(r.number())), leased };
  });
}

export function extend(at: Address, entries: readonly write.Extension[]): Call<number[]> {
  return call("extend", at, write.list(entries, write.extension), read.each(read.number));
}

export function release(at: Address, entries: readonly write.Return[]): Call<read.Released[]> {
  const results = entries
    .filter((entry) => entry.keep !== undefined)
    .map((entry) => at.resultKey(id(entry.id)));
  const readWords = read.each(read.word<read.Released>());
  return call("release", at, write.list(entries, write.returned), readWords, results);
}

export function revive(at: Address, entries: readonly Bytes[]): Call<boolean[]> {
  return call("revive", at, ids(entries), read.each(read.yes));
}

export function purge(at: Address, entries: readonly Bytes[], olderThan: number): Call<boolean[]> {
  const args = [milliseconds(olderThan, "olderThan"), ...ids(entries)];
  return call("purge", at, args, read.each(read.yes));
}

export function remove(at: Address, entries: readonly Bytes[]): Call<read.Removed[]> {
  return call("remove", at, ids(entries), read.each(read.word<read.Removed>()));
}

/** May answer for fewer entries, at least one, where contents are long; ask again for the others (LQ-OUTCOME-9). */
export function outcome(at: Address, entries: readonly Bytes[]): Call<read.Outcome[]> {
  const results = entries.map((entry) => at.resultKey(id(entry)));
  return call("outcome", at, ids(entries), read.readOutcomes, results);
}

export function settle(at: Address): Call<boolean> {
  return call("settle", at, [], read.yes);
}

export function lightClean(at: Address, limit: number): Call<read.LightCleaning> {
  return call("light_clean", at, [integer(limit, "limit")], read.readLightCleaning);
}

export function deepClean(
  at: Address,
  cursor: string,
  limit: number,
  dryRun: boolean,
): Call<read.DeepCleaning> {
  const args = [cursor, integer(limit, "limit"), dryRun ? "1" : "0"];
  return call("deep_clean", at, args, read.readDeepCleaning);
}

export function stats(at: Address): Call<Map<string, number>> {
  return call("stats", at, [], (reply) => read.namedNumbers(new Reader(reply)));
}

export function inspect(at: Address, entries: readonly Bytes[]): Call<read.Inspection[]> {
  return call("inspect", at, ids(entries), read.readInspections);
}

export function list(at: Address, state: read.State | "kept", options: ListOptions = {}): Call<read.Listing> {
  const { offset = 0, limit = 100, order = "forward" } = options;
  const args = [state, integer(offset, "offset"), integer(limit, "limit"), order];
  return call("list", at, args, read.readListing);
}

export function configure(at: Address, wanted: write.Configuration): Call<boolean> {
  return call("configure", at, write.configuration(wanted), read.yes);
}
