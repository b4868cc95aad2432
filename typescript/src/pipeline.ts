// Commands in a pipeline or a transaction of the caller's own connection.
import { type ChainableCommander, ReplyError } from "ioredis";
import type { Command, ScriptName } from "./commands.js";
import { AbortError, errorFromReply, ReplyLostError } from "./errors.js";
import { SCRIPTS } from "./scripts.generated.js";

/** The scripts that each pipeline sends whole with their first use. */
const loadedScripts = new WeakMap<ChainableCommander, Set<ScriptName>>();

/** One entry of what `exec()` of a pipeline or a transaction resolves to. */
export type PipelineResult = [error: Error | null, reply: unknown];

/**
 * Appends a command to the caller's `redis.pipeline()` or `redis.multi()`. Returns the function that reads its entry of the
 * results of `exec()`.
 *
 * The caller's connection sends the command. Its retries may send it a second time, and its key prefix must be empty. What
 * `Queue` does around a command (splitting long inputs, reading the outcomes of dead items, choosing `completeWith`) is left to
 * the caller too.
 *
 * The reading function throws the errors of `Queue`, and AbortError if a watched key was changed, so that nothing ran. Their `definite` is about this command, not about the whole pipeline.
 */
export function appendTo<Result>(
  pipe: ChainableCommander,
  command: Command<Result>,
): (result: PipelineResult | null | undefined) => Result {
  const { sha1, source } = SCRIPTS[command.script];
  const loaded = loadedScripts.get(pipe) ?? new Set();
  loadedScripts.set(pipe, loaded);
  // A NOSCRIPT would fail one command in the middle, so the first use sends the whole script (LQ-SCRIPT-3).
  const call = loaded.has(command.script) ? ["EVALSHA", sha1] : ["EVAL", source];
  loaded.add(command.script);
  const [name, script] = call as [string, string];
  pipe.callBuffer(name, [script, String(command.keys.length), ...command.keys, ...command.args]);
  return (result) => {
    // `exec` resolves to null if a watched key was changed.
    if (!result) throw new AbortError(new Error("the transaction was not run, or it has no such result"));
    const [error, reply] = result;
    const failure = error ?? (reply instanceof Error ? reply : null);
    if (!failure) return command.read(reply);
    if (failure instanceof ReplyError) throw errorFromReply(failure.message);
    throw new ReplyLostError(failure.message);
  };
}
