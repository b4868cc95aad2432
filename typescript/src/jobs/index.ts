// The public API of `leaseq/jobs`. What is not exported here may change at any time.
export { DeadLetter, Release } from "../retry-policy.js";
export {
  App,
  type AppOptions,
  type FunctionOptions,
  type JobWorkerOptions,
  type ScheduleOptions,
} from "./app.js";
export { Arguments } from "./arguments.js";
export type { CallBackoff, GrowingDelay } from "./backoff.js";
export type { Call } from "./call.js";
export type { Chain, ChainHandle } from "./chain.js";
export type { JobContext } from "./context.js";
export {
  BadEnvelopeError,
  BadInputError,
  JobCancelled,
  JobFailed,
  JobTimeout,
  ResultNotKept,
  ResultTimeout,
  SerializationError,
} from "./errors.js";
export type { Format } from "./format.js";
export type { Handle } from "./handle.js";
export type { JobInfo, Status } from "./info.js";
export type { JobFunction } from "./job-function.js";
export type { CallOptions } from "./options.js";
export type { Missed } from "./schedule.js";
export type { ScheduleInfo, Schedules } from "./schedules.js";
export type { Schema } from "./schema.js";
