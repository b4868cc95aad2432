// One method of the adapter protocol, and a call of it.
import type { Session } from "./session.js";
import type { Json } from "./values.js";

export interface MethodCall {
  readonly session: Session;
  readonly queue: string | null;
  readonly args: Json;
  /** Ends a call that waits. */
  readonly signal: AbortSignal;
}

/** `shape` converts results to what the protocol has, also those in an error. */
export interface Method {
  run(call: MethodCall): Promise<unknown>;
  shape?(answers: never[], call: MethodCall): unknown;
}
