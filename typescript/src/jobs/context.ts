// What the function of a job gets beside its input.
import type { HandlerContext } from "../handler.js";

/** A job, as its function sees it. Times are milliseconds since 1970, 0 if they are not known. */
export interface JobContext extends Pick<HandlerContext, "signal" | "stopping"> {
  readonly id: string;
  /** The name of the function. */
  readonly function: string;
  readonly queue: string;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** When it was enqueued, by the clock of the program that did. */
  readonly enqueued: number;
  /** When it was due, by that clock; for the job of a schedule its slot. */
  readonly due: number;
  readonly headers: ReadonlyMap<string, Buffer>;
  /** The token of the lease, which works as a fencing token. */
  readonly token: number;
  /** The id of the worker. */
  readonly worker: string;
  /** Reports the progress: how much is done, and of how much. See `JobInfo.progress`. */
  progress(done: number, total?: number): void;
  /** Reports any value of JSON in its place, up to 4096 bytes. See `JobInfo.report`. Throws BadArgumentError. */
  report(value: unknown): void;
}
