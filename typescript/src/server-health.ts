// The health of the server (page 13): which errors mean that the server is away or refuses for now, and how long to wait. worker.ts uses it.
import { ClockError, ConnectionError, OutOfMemoryError, ServerError } from "./errors.js";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5000;

/** Whether the call may work later as it is: the server is away, is loading, has no memory, refuses writes, and the like. */
export function isServerAway(error: unknown): boolean {
  return [ConnectionError, ServerError, OutOfMemoryError, ClockError].some((kind) => error instanceof kind);
}

/** Milliseconds to wait after that many failures in a row, at random so that workers do not come back together (LQ-WORK-7). */
export function pauseMs(failures: number): number {
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1)) * (0.75 + Math.random() / 4);
}
