/**
 * Every error of this client is a LeaseqError and says two things to programs: its `code`, and whether it is
 * `definite` (LQ-ERROR-2, LQ-ERROR-4). Never decide by the text.
 *
 * No error carries the command or its arguments: they hold the items' data, and errors end up in logs
 * (LQ-SAFE-3).
 */
export abstract class LeaseqError extends Error {
  abstract readonly code: string;
  /**
   * True: the effect of the call is known, nothing but for what `answers` of a PartialError or FullError say. False: it may
   * have taken effect.
   */
  abstract readonly definite: boolean;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** A refusal by the scripts, or by the client in their place: nothing has changed (LQ-ERROR-1). */
abstract class Refusal extends LeaseqError {
  readonly definite: boolean = true;
}

/** An id is not 1 to 256 bytes of UTF-8 without NUL (LQ-ITEM-1). */
export class BadIdError extends Refusal {
  readonly code = "LEASEQ_BAD_ID";
}

/** Another argument cannot be taken; the same call never works. */
export class BadArgumentError extends Refusal {
  readonly code = "LEASEQ_BAD_ARGUMENT";
}

/** Data, a result or headers are too long (LQ-ITEM-4, LQ-ITEM-6, LQ-OUTCOME-7). */
export class TooLargeError extends Refusal {
  readonly code = "LEASEQ_TOO_LARGE";
}

/** A follow-up is for a queue of another group (LQ-CLIENT-9, LQ-HANDOFF-4). */
export class CrossGroupError extends Refusal {
  readonly code = "LEASEQ_CROSS_GROUP";
}

/** The server's clock is outside 2025..2059. */
export class ClockError extends Refusal {
  readonly code = "LEASEQ_CLOCK";
}

/** The queue holds what this client's scripts do not know: written by a newer client, or damaged. */
export class FormatError extends Refusal {
  readonly code = "LEASEQ_FORMAT";
}

/** Something else uses a key of the queue (LQ-ERROR-3). */
export class WrongKeyTypeError extends Refusal {
  readonly code = "LEASEQ_WRONG_TYPE";
}

/** The server reached its memory limit: nothing can be added (LQ-SCRIPT-6). */
export class OutOfMemoryError extends Refusal {
  readonly code = "LEASEQ_OUT_OF_MEMORY";
}

/** The queue has no room for some of the entries; `answers` tells of each what became of it (LQ-CLIENT-6). */
export class FullError extends LeaseqError {
  readonly code = "LEASEQ_FULL";
  readonly definite = true;
  /**
   * In the order of the entries: when it was created, 0 where the id existed, -1 where there was no room. Entries behind the
   * first call in which one found no room were not sent and have no answer.
   */
  readonly answers: readonly number[];

  /** `cause`: what ended the waiting for room before its time. */
  constructor(answers: readonly number[], cause?: LeaseqError) {
    super(`no room for ${answers.filter((answer) => answer < 0).length} of ${answers.length} items`);
    if (cause) this.cause = cause;
    this.answers = answers;
  }
}

/** An error of the server and not of the protocol. The message is the server's, `code` its first word. */
export class ServerError extends LeaseqError {
  readonly code: string;
  readonly definite: boolean;

  constructor(message: string) {
    super(message);
    this.code = firstWord(message);
    const nothingRan = NOTHING_RAN.has(this.code) && !message.startsWith(STOPPED);
    this.definite = nothingRan || TOO_MANY_CLIENTS.test(message);
  }
}

/** There was no connection (definite), or no reply came: then the call may have run, and is not sent again. */
export class ConnectionError extends LeaseqError {
  readonly code = "CONNECTION";
  readonly definite: boolean;

  constructor(message: string, definite: boolean) {
    super(message);
    this.definite = definite;
  }
}

/** The caller's signal was aborted, or the client was closed, while a call waited. What it held is given back. */
export class AbortError extends LeaseqError {
  readonly code = "ABORTED";
  readonly definite = true;

  constructor(reason: unknown) {
    super("aborted");
    this.cause = reason;
  }
}

/** One of the several calls into which a long input was split has failed; the rest was not sent (LQ-CLIENT-2). */
export class PartialError<Answer = unknown> extends LeaseqError {
  readonly code: string;
  readonly definite: boolean;
  /** The answers for the first entries. */
  readonly answers: readonly Answer[];
  /** The entries, from `answers.length` up to this index, of which it is not known whether they took effect. */
  readonly unknownUntil: number;
  override readonly cause: LeaseqError;

  constructor(answers: readonly Answer[], failed: number, cause: LeaseqError) {
    super(`after ${answers.length} entries: ${cause.message}`);
    this.code = cause.code;
    this.cause = cause;
    this.answers = answers;
    this.unknownUntil = answers.length + (cause.definite ? 0 : failed);
    this.definite = cause.definite;
  }
}

const REFUSALS = new Map<string, new (message: string) => LeaseqError>([
  ["LEASEQ_BAD_ID", BadIdError],
  ["LEASEQ_BAD_ARGUMENT", BadArgumentError],
  ["LEASEQ_TOO_LARGE", TooLargeError],
  ["LEASEQ_CROSS_GROUP", CrossGroupError],
  ["LEASEQ_CLOCK", ClockError],
  ["LEASEQ_FORMAT", FormatError],
  ["LEASEQ_WRONG_TYPE", WrongKeyTypeError],
  ["LEASEQ_OUT_OF_MEMORY", OutOfMemoryError],
]);

/** Error replies that a server gives in place of running the command (3.5). */
const NOTHING_RAN = new Set(
  (
    "NOSCRIPT MOVED ASK TRYAGAIN CLUSTERDOWN CROSSSLOT LOADING BUSY MASTERDOWN READONLY MISCONF NOREPLICAS " +
    "NOAUTH WRONGPASS NOPERM EXECABORT UNBLOCKED"
  ).split(" "),
);

/** How a script that lacks a right on its way says so: it may have written before. */
const STOPPED = "NOPERM ACL failure in script";

/** What a server answers to a connection that it has no room for has no code of its own. */
const TOO_MANY_CLIENTS = /^ERR max number of clients\b.* reached$/;

export function fromReply(message: string): LeaseqError {
  const Known = REFUSALS.get(firstWord(message));
  return Known ? new Known(message) : new ServerError(message);
}

function firstWord(message: string): string {
  return message.split(" ", 1)[0] ?? "";
}
