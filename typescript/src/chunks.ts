// Long inputs, split into calls (LQ-CALL-8). queue.ts uses it for every operation on several entries.

import { LeaseqError, NotDurableError, PartialError, QueueFullError } from "./errors.js";
import { type FollowUp, type HandOff, targetQueues } from "./requests.js";
import { MAX_ENTRIES, MAX_FOLLOW_UPS, MAX_TARGETS } from "./scripts.generated.js";

/** Splits a list into chunks that one call can take. */
export function toChunks<Entry>(entries: readonly Entry[]): Entry[][] {
  const chunks: Entry[][] = [];
  for (let from = 0; from < entries.length; from += MAX_ENTRIES) {
    chunks.push(entries.slice(from, from + MAX_ENTRIES));
  }
  return chunks;
}

/** Splits hand-offs into chunks that one call can take. An entry is never split: it completes in one step. */
export function chunkHandOffs(entries: readonly HandOff[]): HandOff[][] {
  const chunks: HandOff[][] = [];
  let chunk: HandOff[] = [];
  for (const entry of entries) {
    const longer = [...chunk, entry];
    if (chunk.length > 0 && !fitsInCall(longer)) {
      chunks.push(chunk);
      chunk = [entry];
    } else {
      chunk = longer;
    }
  }
  if (chunk.length > 0) chunks.push(chunk);
  return chunks;
}

/** Whether one call can take these hand-offs. */
function fitsInCall(entries: readonly HandOff[]): boolean {
  const followUps = entries.flatMap((entry): readonly FollowUp[] => entry.followUps ?? []);
  return (
    entries.length <= MAX_ENTRIES &&
    followUps.length <= MAX_FOLLOW_UPS &&
    targetQueues(entries).length <= MAX_TARGETS
  );
}

/**
 * Runs one call after the other and returns a result for each entry. `prepare` encodes a chunk before the first call is sent: what the
 * caller changes afterwards is not sent (LQ-CLIENT-26). Throws PartialError if one of several calls fails.
 */
export async function runChunks<Entry, Result>(
  chunks: readonly (readonly Entry[])[],
  prepare: (chunk: readonly Entry[]) => () => Promise<readonly Result[]>,
): Promise<Result[]> {
  const calls = chunks.map(prepare);
  const results: Result[] = [];
  for (const [index, chunk] of chunks.entries()) {
    try {
      results.push(...((await calls[index]?.()) ?? []));
    } catch (error) {
      if (error instanceof NotDurableError) throw error.after(results);
      // A QueueFullError already has the answers of all chunks.
      const isWhole = chunks.length === 1 || error instanceof QueueFullError;
      if (isWhole || !(error instanceof LeaseqError)) throw error;
      throw new PartialError(results, chunk.length, error);
    }
  }
  return results;
}

/** Returns one result for one entry, or an array for an array. */
export async function oneOrAll<Entry, Result>(
  entries: Entry | readonly Entry[],
  run: (all: readonly Entry[]) => Promise<Result[]>,
): Promise<Result | Result[]> {
  if (Array.isArray(entries)) return await run(entries);
  const [result] = await run([entries as Entry]);
  return result as Result;
}
