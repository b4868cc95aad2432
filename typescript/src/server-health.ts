// The health of the server (page 13): which errors mean that the server is away or refuses for now, and how long to wait. worker.ts uses it.
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "./clock.js";
import {
  ClockError,
  ConnectionError,
  FormatError,
  isTurnedAway,
  NoScriptsError,
  OutOfMemoryError,
  ServerError,
  UnavailableError,
  WrongKeyTypeError,
} from "./errors.js";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5000;

/** Whether the call may work later as it is: the server is away, is loading, has no memory, refuses writes, and the like. */
export function isServerAway(error: unknown): boolean {
  return [ConnectionError, ServerError, OutOfMemoryError, ClockError].some((kind) => error instanceof kind);
}

/** Whether the queue cannot be read: a record is damaged, or of a newer version. It works again after a repair (page 07). */
export function isDamaged(error: unknown): boolean {
  return error instanceof FormatError || error instanceof WrongKeyTypeError;
}

/** Whether the server refuses because of the user, the password or the settings of the connection (LQ-WORK-14). */
export function isMisconfigured(error: unknown): boolean {
  const isConnecting = error instanceof UnavailableError;
  const refusal = isConnecting ? error.cause : error;
  if (refusal instanceof NoScriptsError) return true;
  if (!(refusal instanceof ServerError)) return false;
  const isSetting = isConnecting && refusal.code === "ERR" && !isTurnedAway(refusal.message);
  return isSetting || ["NOAUTH", "WRONGPASS", "NOPERM"].includes(refusal.code);
}

/** Milliseconds to wait after that many failures in a row, at random so that workers do not come back together (LQ-WORK-7). */
function pauseMs(failures: number): number {
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1)) * (0.75 + Math.random() / 4);
}

/** Whether the server is away, and since when. */
export class ServerHealth {
  readonly #onAway: (error: unknown) => void;
  readonly #onBack: (ms: number) => void;
  #awaySince: number | undefined;

  constructor(onAway: (error: unknown) => void, onBack: (ms: number) => void) {
    this.#onAway = onAway;
    this.#onBack = onBack;
  }

  get isAway(): boolean {
    return this.#awaySince !== undefined;
  }

  /** A call failed: the first one of an outage is reported. */
  callFailed(error: unknown): void {
    if (this.isAway) return;
    this.#awaySince = now();
    this.#onAway(error);
  }

  /** A call worked. */
  callWorked(): void {
    if (this.#awaySince === undefined) return;
    const ms = now() - this.#awaySince;
    this.#awaySince = undefined;
    this.#onBack(ms);
  }
}

/** Waits after that many failures in a row, until the signal is aborted. */
export async function pause(failures: number, signal: AbortSignal): Promise<void> {
  await sleep(pauseMs(failures), undefined, { signal }).catch(() => {});
}
