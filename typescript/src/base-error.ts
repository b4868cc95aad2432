// The base of all errors, in a separate file: the generated classes extend it.

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
export abstract class RefusedError extends LeaseqError {
  readonly definite: boolean = true;
}
