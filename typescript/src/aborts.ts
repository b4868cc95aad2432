// Listening for an abort. blocking.ts and worker.ts use it.

/** What is called when a signal is aborted. */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back once when one of the signals is aborted, at once if one is already, until the returned function is called. All
 * callbacks share one listener of a signal: Node warns of more than ten.
 */
export function onAbort(signals: readonly AbortSignal[], callback: () => void): () => void {
  if (signals.some((signal) => signal.aborted)) {
    callback();
    return () => {};
  }
  const leave = () => {
    for (const signal of signals) remove(signal, abort);
  };
  const abort = () => {
    leave();
    callback();
  };
  for (const signal of signals) add(signal, abort);
  return leave;
}

function add(signal: AbortSignal, callback: () => void): void {
  const callbacks = callbacksOf.get(signal) ?? new Set();
  if (callbacks.size === 0) {
    callbacksOf.set(signal, callbacks);
    signal.addEventListener("abort", callAll);
  }
  callbacks.add(callback);
}

function remove(signal: AbortSignal, callback: () => void): void {
  const callbacks = callbacksOf.get(signal);
  if (!callbacks?.delete(callback) || callbacks.size > 0) return;
  callbacksOf.delete(signal);
  signal.removeEventListener("abort", callAll);
}

function callAll(this: AbortSignal): void {
  for (const callback of callbacksOf.get(this) ?? []) callback();
}
