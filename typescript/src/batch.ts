// Calls in a pipeline or a transaction of the caller's own connection.
import { type ChainableCommander, ReplyError } from "ioredis";
import type { Call, ScriptName } from "./commands.js";
import { ConnectionError, fromReply } from "./errors.js";
import { SCRIPTS } from "./scripts.generated.js";

const taught = new WeakMap<ChainableCommander, Set<ScriptName>>();

/** One entry of what a pipeline or a transaction gives. */
export type BatchResult = [error: Error | null, reply: unknown];

/**
 * Appends a call to what the caller's `redis.pipeline()` or `redis.multi()` collects, and returns what reads its entry of
 * the results of `exec()`.
 *
 * The caller's connection sends it. Its retries may send it a second time, its key prefix must be empty, and what it
 * holds back comes late; none of this is so for calls that a `Client` sends. What `Queue` does around a call (splitting
 * long inputs, asking for outcomes of the dead, choosing `completeWith`) is the caller's too.
 *
 * Reading throws the errors of `Queue`, for which `definite` is about this call and not about its neighbours.
 */
export function appendTo<Answer>(
  pipe: ChainableCommander,
  call: Call<Answer>,
): (result: BatchResult | undefined) => Answer {
  const { sha1, source } = SCRIPTS[call.script];
  const known = taught.get(pipe) ?? new Set();
  taught.set(pipe, known);
  // A NOSCRIPT would leave a hole in the middle; so the first use brings the script along (LQ-SCRIPT-3).
  const first = known.has(call.script) ? ["EVALSHA", sha1] : ["EVAL", source];
  known.add(call.script);
  const [name, script] = first as [string, string];
  pipe.callBuffer(name, [script, String(call.keys.length), ...call.keys, ...call.args]);
  return (result) => {
    const [error, reply] = result ?? [new Error("there is no such result"), undefined];
    const failure = error ?? (reply instanceof Error ? reply : null);
    if (!failure) return call.read(reply);
    if (failure instanceof ReplyError) throw fromReply(failure.message);
    throw new ConnectionError(failure.message, false);
  };
}
