// The errors of the job layer.
import { LeaseqError } from "../base-error.js";

/** The job is dead: it failed for the last time. */
export class JobFailed extends LeaseqError {
  readonly code = "JOB_FAILED";
  readonly definite = true;

  /**
   * `type`: the kind of failure in its worker, such as "TypeError"; empty if no worker wrote one. `reason`: its message.
   * `traceback`: as the worker had it. `attempt`: the number of the last attempt, as the function saw it.
   */
  constructor(
    readonly jobId: string,
    readonly type: string,
    readonly reason: string,
    readonly traceback: string,
    readonly attempt: number,
  ) {
    const what = (type ? `${type}: ${reason}` : reason) || "nothing is known why";
    super(`job ${JSON.stringify(jobId)} failed after ${attempt} attempts: ${what}`);
  }
}

/** The job was cancelled. */
export class JobCancelled extends LeaseqError {
  readonly code = "JOB_CANCELLED";
  readonly definite = true;
}

/** There is no result of this job, and none will come: none is kept, its time is over, or there is no such job. */
export class ResultNotKept extends LeaseqError {
  readonly code = "JOB_RESULT_NOT_KEPT";
  readonly definite = true;
}

/** The job has not ended within the time that a call waited. */
export class ResultTimeout extends LeaseqError {
  readonly code = "JOB_RESULT_TIMEOUT";
  readonly definite = true;
}

/** An item or an outcome is not a job or a result that this version can read (LQ-JOB-19). */
export class BadEnvelopeError extends LeaseqError {
  readonly code = "JOB_BAD_ENVELOPE";
  readonly definite = true;
}

/** The format of jobs cannot hold an argument or a result; nothing was sent (LQ-JOB-60). */
export class SerializationError extends LeaseqError {
  readonly code = "JOB_SERIALIZATION";
  readonly definite = true;
}

/** A function does not take these arguments, or its schema refused them. */
export class BadInputError extends LeaseqError {
  readonly code = "JOB_BAD_INPUT";
  readonly definite = true;
}

/** The kind of failure of an attempt that took longer than its time limit (LQ-JOB-20). */
export class JobTimeout extends LeaseqError {
  readonly code = "JOB_TIMEOUT";
  readonly definite = true;
}
