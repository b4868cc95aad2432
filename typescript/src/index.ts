export type { LeaseOptions } from "./aims.js";
export type {
  DeepCleaning,
  HandOffAnswer,
  Inspection,
  LightCleaning,
  Listing,
  Outcome,
  Released,
  Removed,
  State,
} from "./answers.js";
export { appendTo, type BatchResult } from "./batch.js";
export { Client, type ClientOptions } from "./client.js";
export type { Call, ListOptions } from "./commands.js";
export * as calls from "./commands.js";
export type { Server } from "./connection.js";
export type {
  Completion,
  Configuration,
  Extension,
  FollowUp,
  HandOff,
  Held,
  NewItem,
  Return,
} from "./entries.js";
export {
  AbortError,
  BadArgumentError,
  BadIdError,
  ClockError,
  ConnectionError,
  CrossGroupError,
  FormatError,
  FullError,
  LeaseqError,
  OutOfMemoryError,
  PartialError,
  ServerError,
  TooLargeError,
  WrongKeyTypeError,
} from "./errors.js";
export type { CompleteOptions, Lease } from "./lease.js";
export type { LiveItem, LiveWorker } from "./live.js";
export type { Queue } from "./queue.js";
export { SCRIPTS } from "./scripts.generated.js";
export type { Patience } from "./waiting.js";
export type { Bytes } from "./wire.js";
export type { Handler, Worker, WorkerOptions } from "./worker.js";
