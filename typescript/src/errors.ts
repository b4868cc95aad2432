// The errors of the package. A new code of the scripts goes into ERRORS_BY_CODE.

/**
 * The base of all errors of this client. Decide by `code` and `definite` (LQ-ERROR-2, LQ-ERROR-4), never by the text.
 *
 * No error has the command or its arguments: they hold the items' data, and errors end up in logs (LQ-SAFE-3).
 */
export abstract class LeaseqError extends Error {
  abstract readonly code: string;
  /**
   * True: the effect of the call is known. It is nothing, except for the `answers` of a PartialError or QueueFullError. False: the
   * call may have taken effect.
   */
  abstract readonly definite: boolean;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The scripts refused the call, or the client did before sending it: nothing has changed (LQ-ERROR-1). */
abstract class RefusedError extends LeaseqError {
  readonly definite: boolean = true;
}

/** An id is not 1 to 256 bytes of UTF-8 without NUL (LQ-ITEM-1). */
export class BadIdError extends RefusedError {
  readonly code = "LEASEQ_BAD_ID";
}

/** An argument has the wrong form or is out of range. The same call always fails. */
export class BadArgumentError extends RefusedError {
  readonly code = "LEASEQ_BAD_ARGUMENT";
}

/** Data, a result or headers are too long (LQ-ITEM-4, LQ-ITEM-6, LQ-OUTCOME-7). */
export class TooLargeError extends RefusedError {
  readonly code = "LEASEQ_TOO_LARGE";
}

/** A follow-up is for a queue of another group (LQ-CLIENT-9, LQ-HANDOFF-4). */
export class CrossGroupError extends RefusedError {
  readonly code = "LEASEQ_CROSS_GROUP";
}

/** The server's clock is outside 2025..2059. */
export class ClockError extends RefusedError {
  readonly code = "LEASEQ_CLOCK";
}

/** The queue was written by a newer version of the protocol, or is damaged. */
export class FormatError extends RefusedError {
  readonly code = "LEASEQ_FORMAT";
}

/** Something else uses a key of the queue (LQ-ERROR-3). */
export class WrongKeyTypeError extends RefusedError {
  readonly code = "LEASEQ_WRONG_TYPE";
}

/** The server reached its memory limit: nothing can be added (LQ-SCRIPT-6). */
export class OutOfMemoryError extends RefusedError {
  readonly code = "LEASEQ_OUT_OF_MEMORY";
}

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
    const notRun = REJECTED_BEFORE_RUN.has(this.code) && !message.startsWith(ACL_ERROR_IN_SCRIPT);
    this.definite = notRun || TOO_MANY_CLIENTS.test(message);
  }
}

/** The connection failed: before the call was sent (`UnavailableError`) or after (`ReplyLostError`). */
export abstract class ConnectionError extends LeaseqError {
  readonly code = "CONNECTION";
}

/** The server could not be reached. The call was not sent. */
export class UnavailableError extends ConnectionError {
  readonly definite = true;
}

/** No reply came after the call was sent. It may have run, and is not sent again. */
export class ReplyLostError extends ConnectionError {
  readonly definite = false;
}

/** The caller's signal was aborted, or the client was closed, while a call waited. Items it had leased are released. */
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

const ERRORS_BY_CODE = new Map<string, new (message: string) => LeaseqError>([
  ["LEASEQ_BAD_ID", BadIdError],
  ["LEASEQ_BAD_ARGUMENT", BadArgumentError],
  ["LEASEQ_TOO_LARGE", TooLargeError],
  ["LEASEQ_CROSS_GROUP", CrossGroupError],
  ["LEASEQ_CLOCK", ClockError],
  ["LEASEQ_FORMAT", FormatError],
  ["LEASEQ_WRONG_TYPE", WrongKeyTypeError],
  ["LEASEQ_OUT_OF_MEMORY", OutOfMemoryError],
]);

/** Codes of error replies after which the command did not run (3.5). */
const REJECTED_BEFORE_RUN = new Set(
  (
    "NOSCRIPT MOVED ASK TRYAGAIN CLUSTERDOWN CROSSSLOT LOADING BUSY MASTERDOWN READONLY MISCONF NOREPLICAS " +
    "NOAUTH WRONGPASS NOPERM EXECABORT UNBLOCKED"
  ).split(" "),
);

/** The error of a script that lacks a right. It may have written something before. */
const ACL_ERROR_IN_SCRIPT = "NOPERM ACL failure in script";

/** The reply of a server with too many connections, which has no special code. */
const TOO_MANY_CLIENTS = /^ERR max number of clients\b.* reached$/;

/** The error of an error reply: by its code, otherwise a ServerError. */
export function errorFromReply(message: string): LeaseqError {
  const Known = ERRORS_BY_CODE.get(errorCode(message));
  return Known ? new Known(message) : new ServerError(message);
}

/** The first word of an error reply. */
function errorCode(message: string): string {
  return message.split(" ", 1)[0] ?? "";
}
