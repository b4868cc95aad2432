// The replies of leases, whose items have properties behind them. The other replies are read by codecs.generated.ts.
import type { LeaseFields, LeaseItem } from "./codecs.generated.js";

/** One item in the reply of a lease. */
export interface LeasedRecord extends LeaseItem {
  /** Milliseconds. */
  keep: number | undefined;
  contentType: Buffer | undefined;
  headers: ReadonlyMap<string, Buffer>;
}

/** The reply of a lease. */
export interface LeaseReply {
  /** The index of the queue that the items are of, among those of the call; -1 if there are no items. */
  queue: number;
  items: LeasedRecord[];
  deadline: number;
  /** Milliseconds until an item is due. 0: lease again at once. Infinity: nothing is due (LQ-LEASE-7). */
  wait: number;
  /** Items that died in this call and keep an outcome. The client has to read their outcomes (LQ-CLIENT-8). */
  died: { queue: number; id: Buffer }[];
}

/** The reply of a lease; by default of one from one queue. */
export function leaseReply(fields: LeaseFields, queue = fields.items.length > 0 ? 0 : -1): LeaseReply {
  // A spread with members behind it takes V8 several times as long as all the rest here.
  const items = fields.items.map(({ id, data, token, attempt }) => ({
    id,
    data,
    token,
    attempt,
    keep: undefined as number | undefined,
    contentType: undefined as Buffer | undefined,
    headers: new Map<string, Buffer>(),
  }));
  const died: LeaseReply["died"] = [];
  for (const extra of fields.extras) {
    const name = extra.name.toString();
    const item = items[extra.item - 1];
    // Unknown names are skipped, whatever the type of their value: a later protocol may have more.
    if (name === "died" && extra.item <= 0) {
      died.push({ queue: Math.max(-extra.item - 1, 0), id: extra.value as Buffer });
    } else if (name === "keep" && item) {
      item.keep = extra.value as number;
    } else if (name === "content_type" && item) {
      item.contentType = extra.value as Buffer;
    } else if (name.startsWith("header:") && item) {
      item.headers.set(name.slice("header:".length), extra.value as Buffer);
    }
  }
  return { wait: fields.wait, deadline: fields.deadline, queue, items, died };
}
