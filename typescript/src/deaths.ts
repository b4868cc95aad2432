// The log of items that died where no handler ran: their leases expired, or no worker leased them in time.
import type { Outcome } from "./codecs.generated.js";
import type { LeasingQueue } from "./leased-item.js";
import type { ConnectionPool } from "./pool.js";

/** Reads in the background the outcomes of items that died, which writes them (LQ-CLIENT-8), and logs them. */
export function publishDeaths(queue: LeasingQueue, ids: readonly Buffer[], pool: ConnectionPool): void {
  if (ids.length === 0) return;
  const log = (outcomes: readonly Outcome[]): Promise<unknown> =>
    Promise.all(deaths(queue.keys.name, ids, outcomes).map((line) => pool.logger.warn(line)));
  pool.inBackground(queue.outcome(ids).then(log));
}

/** A line for each reason among the outcomes of a queue, whatever their number. */
function deaths(queue: string, ids: readonly Buffer[], outcomes: readonly Outcome[]): string[] {
  const died = new Map<string, string[]>();
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.state !== "failure") continue;
    // an item whose workers died has no error
    const reason = outcome.content.toString().split("\n", 1)[0] || "its attempts are used up";
    died.set(reason, [...(died.get(reason) ?? []), String(ids[index])]);
  }
  return [...died].map(([reason, [first, ...others]]) => {
    const items =
      others.length === 0
        ? `item ${JSON.stringify(first)} is a dead letter`
        : `${others.length + 1} items are dead letters, ${JSON.stringify(first)} and others`;
    return `leaseq: queue ${JSON.stringify(queue)}: ${items}: ${reason}`;
  });
}
