// The public API. What is not exported here may change at any time.
export type { WaitOptions } from "./blocking.js";
export { Client, type ClientOptions } from "./client.js";
export type {
  Completed,
  DeepCleanPage,
  ItemInfo,
  LightClean,
  ListedItem,
  ListState,
  Outcome,
  OutcomeState,
  Page,
  Released,
  State,
} from "./codecs.generated.js";
export type { Command, ListOptions } from "./commands.js";
export * as commands from "./commands.js";
export type { Disk, Durable, DurableOptions, Replicas } from "./durability.js";
export type { Bytes } from "./encoding.js";
export {
  AbortError,
  BadArgumentError,
  BadIdError,
  ClockError,
  ConnectionError,
  CrossGroupError,
  FormatError,
  LeaseqError,
  NoDurabilityError,
  NoScriptsError,
  NotDurableError,
  OutOfMemoryError,
  PartialError,
  QueueFullError,
  ReplyLostError,
  ServerError,
  TooLargeError,
  UnavailableError,
  WrongKeyTypeError,
} from "./errors.js";
export { CompleteWith, type HandlerContext } from "./handler.js";
export type { Hooks } from "./hooks.js";
export { derivedId } from "./item-id.js";
export type { Handler } from "./item-run.js";
export type { ItemStream } from "./item-stream.js";
export { Cancellation, type CompleteOptions } from "./leased-item.js";
export type { Logger } from "./logger.js";
export { appendTo, type PipelineResult } from "./pipeline.js";
export type { HeldItem, WorkerInfo } from "./presence.js";
export type { LeasedItem, Queue } from "./queue.js";
export type { LeasedRecord, LeaseReply } from "./replies.js";
export type {
  Completion,
  Configuration,
  Extension,
  FollowUp,
  HandOff,
  LeaseRef,
  NewItem,
  ReleaseRequest,
} from "./requests.js";
export { type Backoff, DeadLetter, exponentialBackoff, Release } from "./retry-policy.js";
export { SCRIPTS } from "./scripts.generated.js";
export type { RedisInstance, Server } from "./server.js";
export type { Tracing } from "./tracing.js";
export type { LeaseOptions } from "./wait-targets.js";
export type { Worker } from "./worker.js";
export type { WorkerOptions } from "./worker-settings.js";
