// Long inputs, cut into calls (LQ-CALL-8).
import { type FollowUp, type HandOff, targetsOf } from "./entries.js";
import { FullError, LeaseqError, PartialError } from "./errors.js";
import { MAX_ENTRIES, MAX_FOLLOW_UPS, MAX_TARGETS } from "./scripts.generated.js";

/** Cuts a list into the parts that one call can take. */
export function inCalls<Entry>(entries: readonly Entry[]): Entry[][] {
  const parts: Entry[][] = [];
  for (let from = 0; from < entries.length; from += MAX_ENTRIES) {
    parts.push(entries.slice(from, from + MAX_ENTRIES));
  }
  return parts;
}

/** The same where each entry has follow-ups to some queues. An entry is never cut in two: it completes in one step. */
export function handOffsInCalls(entries: readonly HandOff[]): HandOff[][] {
  const parts: HandOff[][] = [];
  let part: HandOff[] = [];
  for (const entry of entries) {
    const longer = [...part, entry];
    if (part.length > 0 && !fitInCall(longer)) {
      parts.push(part);
      part = [entry];
    } else {
      part = longer;
    }
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

function fitInCall(entries: readonly HandOff[]): boolean {
  const followUps = entries.flatMap((entry): readonly FollowUp[] => entry.followUps ?? []);
  return (
    entries.length <= MAX_ENTRIES &&
    followUps.length <= MAX_FOLLOW_UPS &&
    targetsOf(entries).length <= MAX_TARGETS
  );
}

/** One call after the other, and one answer for each entry. Throws PartialError where one of several fails. */
export async function callEach<Entry, Answer>(
  parts: readonly (readonly Entry[])[],
  run: (part: readonly Entry[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const part of parts) {
    try {
      answers.push(...(await run(part)));
    } catch (error) {
      // An error that has all answers says more.
      const isWhole = parts.length === 1 || error instanceof FullError;
      if (isWhole || !(error instanceof LeaseqError)) throw error;
      throw new PartialError(answers, part.length, error);
    }
  }
  return answers;
}

/** One entry for one answer, or an array for an array. */
export async function oneOrAll<Entry, Answer>(
  entries: Entry | readonly Entry[],
  run: (all: readonly Entry[]) => Promise<Answer[]>,
): Promise<Answer | Answer[]> {
  if (Array.isArray(entries)) return await run(entries);
  const [answer] = await run([entries as Entry]);
  return answer as Answer;
}
