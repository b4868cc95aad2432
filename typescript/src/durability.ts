// Waits behind a call, until replicas or disks have it: the option `durable`. connection.ts sends them, queue.ts raises what is missing.

import { BadArgumentError, NotDurableError } from "./errors.js";

/** Wait until `replicas` replicas have the call in memory (WAIT). */
export interface Replicas {
  /** 1 to 1000. */
  replicas: number;
  disk?: false | undefined;
  /** Milliseconds, at least 1. */
  timeout: number;
}

/** Wait until the call is on the primary's disk, and on those of `replicas` replicas (WAITAOF): Redis or Valkey 7.2 or later. */
export interface Disk {
  disk: true;
  /** 0 to 1000. Default: 0. */
  replicas?: number | undefined;
  /** Milliseconds, at least 1. */
  timeout: number;
}

/** What a call waits for behind its answer. */
export type Durable = Replicas | Disk;

/** An option of calls that can wait for durability. */
export interface DurableOptions {
  /** Throws NotDurableError if too few have the call in time; it has the answers, and nothing is sent again. Default: no wait. */
  durable?: Durable | undefined;
}

const MAX_SERVERS = 1000;
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** A wait as it is sent. */
export interface DurableWait {
  readonly name: "WAIT" | "WAITAOF";
  readonly args: readonly string[];
  /** The same command, which shows at once whether the server can wait so. */
  readonly probe: readonly string[];
  readonly timeoutMs: number;
  readonly wanted: number;
  /** How many servers have the call. Further replicas do not stand in for the primary. */
  readonly reached: (reply: unknown) => number;
}

/** The result of a call, and how many servers have it. `reason` says why `reached` is unknown. */
export interface Confirmed<Result> {
  readonly result: Result;
  readonly reached: number | undefined;
  readonly reason: string;
}

/** The wait for an option, undefined without one. Throws BadArgumentError. */
export function toWait(durable: Durable | undefined): DurableWait | undefined {
  if (durable === undefined) return undefined;
  if (typeof durable !== "object" || durable === null) {
    throw new BadArgumentError("durable is { replicas: 1, timeout: 500 } or { disk: true, timeout: 1000 }");
  }
  const { disk = false, timeout } = durable;
  const replicas = durable.replicas ?? 0;
  const least = disk ? 0 : 1;
  if (!(Number.isInteger(replicas) && replicas >= least && replicas <= MAX_SERVERS)) {
    throw new BadArgumentError(`durable.replicas is ${least} to ${MAX_SERVERS}, not ${replicas}`);
  }
  // The server takes 0 for a wait without limit.
  const timeoutMs = typeof timeout === "number" ? Math.round(timeout) : Number.NaN;
  if (!(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS)) {
    throw new BadArgumentError(`durable.timeout is a number of milliseconds, at least 1, not ${timeout}`);
  }
  const servers = String(replicas);
  return disk
    ? {
        name: "WAITAOF",
        args: ["1", servers, String(timeoutMs)],
        probe: ["1", "0", "1"],
        timeoutMs,
        wanted: 1 + replicas,
        reached: (reply) => {
          const [ofPrimary, ofReplicas] = (reply as unknown[]).map(Number) as [number, number];
          return ofPrimary + Math.min(ofReplicas, replicas);
        },
      }
    : {
        name: "WAIT",
        args: [servers, String(timeoutMs)],
        probe: ["0", "1"],
        timeoutMs,
        wanted: replicas,
        reached: Number,
      };
}

/** Returns the answers. Throws NotDurableError, which has them, if too few servers have the call. */
export function delivered<Result>(
  { reached, reason }: Confirmed<unknown>,
  wait: DurableWait,
  answers: readonly Result[],
): readonly Result[] {
  if (reached !== undefined && reached >= wait.wanted) return answers;
  const found =
    reached === undefined ? reason : `${reached} of ${wait.wanted} have it after ${wait.timeoutMs} ms`;
  throw new NotDurableError(
    `the call was done, but it is not durable: ${found}`,
    answers,
    wait.wanted,
    reached,
  );
}
