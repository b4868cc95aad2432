// The errors of the package. Those that scripts raise are generated, with the codes of the server that did not run a script.

import { LeaseqError } from "./base-error.js";
import { NOT_RUN, SCRIPT_ERRORS, STOPPED_INSIDE, TURNED_AWAY } from "./script-errors.generated.js";

export { LeaseqError } from "./base-error.js";
export * from "./script-errors.generated.js";

/** The queue has no room for some of the items; `answers` has what became of each (LQ-CLIENT-6). */
export class QueueFullError extends LeaseqError {
  readonly code = "LEASEQ_FULL";
  readonly definite = true;
  /**
   * In the order of the items: when it was created, 0 if the id existed, -1 if there was no room. Items behind the first call in
   * which one found no room were not sent and have no answer.
   */
  readonly answers: readonly number[];

  /** `cause`: the error that ended the wait for room early. */
  constructor(answers: readonly number[], cause?: LeaseqError) {
    super(`no room for ${answers.filter((answer) => answer < 0).length} of ${answers.length} items`);
    if (cause) this.cause = cause;
    this.answers = answers;
  }
}

/** An error of the server, not of the protocol. The message is the server's; `code` is its first word. */
export class ServerError extends LeaseqError {
  readonly code: string;
  readonly definite: boolean;

  constructor(message: string) {
    super(message);
    this.code = errorCode(message);
    const stoppedInside = STOPPED_INSIDE.some((start) => message.startsWith(start));
    const notRun = NOT_RUN.includes(this.code) && !stoppedInside;
    this.definite = notRun || isTurnedAway(message);
  }
}

/** The server runs no Lua scripts: Valkey without its Lua module, Garnet without `--lua`, or EVAL renamed (LQ-ERROR-6). */
export class NoScriptsError extends LeaseqError {
  readonly code = "NO_SCRIPTS";
  readonly definite = true;

  constructor() {
    super(
      "the server runs no Lua scripts, nothing was done: load the Lua module of Valkey, start Garnet with --lua, do not rename " +
        "EVAL and EVALSHA, or take Redis 6.2 or later",
    );
  }
}

/** The server cannot wait as `durable` says: it has no WAITAOF, or no append-only file. Nothing was done. */
export class NoDurabilityError extends LeaseqError {
  readonly code = "NO_DURABILITY";
  readonly definite = true;
}

/** The call was done, but fewer servers have it than `durable` says. It is not sent again (LQ-CLIENT-1). */
export class NotDurableError<Result = unknown> extends LeaseqError {
  readonly code = "NOT_DURABLE";
  readonly definite = true;
  /** The results of the call, and of those before it that a long array was split into; later entries were not sent. */
  readonly answers: readonly Result[];
  readonly wanted: number;
  /** How many replicas, or disks, have it. Undefined: unknown, since the connection broke or the server refused to wait. */
  readonly reached: number | undefined;

  constructor(message: string, answers: readonly Result[], wanted: number, reached: number | undefined) {
    super(message);
    this.answers = answers;
    this.wanted = wanted;
    this.reached = reached;
  }

  /** The same error behind the results of earlier calls. */
  after(before: readonly Result[]): NotDurableError<Result> {
    return new NotDurableError(this.message, [...before, ...this.answers], this.wanted, this.reached);
  }
}

/** The connection failed: before the call was sent (`UnavailableError`) or after (`ReplyLostError`). */
export abstract class ConnectionError extends LeaseqError {
  readonly code = "CONNECTION";
}

/** The server could not be reached. The call was not sent. */
export class UnavailableError extends ConnectionError {
  readonly definite = true;

  /** `cause`: what the server replied while the connection was opened. */
  constructor(message: string, cause?: ServerError) {
    super(message);
    if (cause) this.cause = cause;
  }
}

/** No reply came after the call was sent. It may have run, and is not sent again. */
export class ReplyLostError extends ConnectionError {
  readonly definite = false;
}

/**
 * The caller's signal was aborted, or the client was closed, while a call waited. Items it had leased are released. Or a watched key
 * was changed before a transaction.
 */
export class AbortError extends LeaseqError {
  readonly code = "ABORTED";
  readonly definite = true;

  constructor(reason: unknown) {
    super("aborted");
    this.cause = reason;
  }
}

/** One of the several calls that a long input was split into has failed. The calls behind it were not sent (LQ-CLIENT-2). */
export class PartialError<Result = unknown> extends LeaseqError {
  readonly code: string;
  readonly definite: boolean;
  /** The results of the first entries. */
  readonly answers: readonly Result[];
  /** How many entries, behind those of `answers`, may have taken effect. */
  readonly inDoubt: number;
  override readonly cause: LeaseqError;

  constructor(answers: readonly Result[], failed: number, cause: LeaseqError) {
    super(`after ${answers.length} entries: ${cause.message}`);
    this.code = cause.code;
    this.cause = cause;
    this.answers = answers;
    this.inDoubt = cause.definite ? 0 : failed;
    this.definite = cause.definite;
  }
}

/** Whether the server did not take the connection: it has too many (3.5). */
export function isTurnedAway(message: string): boolean {
  return TURNED_AWAY.some((start) => message.startsWith(start));
}

/** The error of an error reply: by its code, otherwise a ServerError. */
export function errorFromReply(message: string): LeaseqError {
  const Known = SCRIPT_ERRORS.get(errorCode(message));
  return Known ? new Known(message) : new ServerError(message);
}

/** The first word of an error reply. */
function errorCode(message: string): string {
  return message.split(" ", 1)[0] ?? "";
}
