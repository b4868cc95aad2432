// The methods of job clients, with the public API of `leaseq/jobs`.
import {
  type App,
  Arguments,
  type CallOptions,
  type Format,
  type Handle,
  JobCancelled,
  JobFailed,
  ResultNotKept,
  ResultTimeout,
} from "leaseq/jobs";
import type { Method, MethodCall } from "./method.js";
import { type Json, number, waitOptions } from "./values.js";

const appOf = ({ session, queue, args }: MethodCall): App =>
  session.app(queue, (args.form ?? "json") as Format);
const handleOf = (call: MethodCall): Handle => appOf(call).handle(String(call.args.id));

export const JOB_METHODS: Record<string, Method> = {
  enqueue: {
    run: async (call) => {
      const { session, args } = call;
      const app = appOf(call);
      const options = { ...callOptions(args), id: args.id as string | undefined };
      const first = app.function(String(args.function)).call(callArguments(args), options);
      if (!args.then) {
        const [handle] = await app.enqueueMany([first]);
        return { id: handle?.id, added: handle?.added };
      }
      let chain = app.chain(first);
      for (const stage of args.then as Json[]) {
        const queue = stage.queue === undefined ? {} : { queue: session.queue(String(stage.queue)).name };
        const step = app.function(String(stage.function));
        chain = chain.next(step, { ...callOptions(stage), ...queue }, callArguments(stage));
      }
      const { stages, added } = await chain.enqueue();
      return { id: stages[0]?.id, added };
    },
  },
  job: {
    run: async (call) => {
      const { status, result = null, error, progress, worker } = await handleOf(call).info();
      const parts = progress && [progress.done, progress.total].filter((part) => part !== undefined);
      return { status, result, error, progress: parts ?? null, worker };
    },
  },
  job_result: {
    run: async (call) => {
      const { args, signal } = call;
      try {
        const result = await handleOf(call).result({ timeout: 0, ...waitOptions(args), signal });
        return { ended: "result", result };
      } catch (error) {
        return ending(error);
      }
    },
  },
  cancel_job: { run: async (call) => ({ cancelled: await handleOf(call).cancel() }) },
};

/** The answer about a job without a result. Throws errors of another kind. */
function ending(error: unknown): Json {
  if (error instanceof JobFailed) return { ended: "failure", kind: error.type, message: error.reason };
  if (error instanceof JobCancelled) return { ended: "cancelled" };
  if (error instanceof ResultNotKept) return { ended: "not_kept" };
  if (error instanceof ResultTimeout) return { ended: "waiting" };
  throw error;
}

function callOptions({ options = {} }: Json): CallOptions {
  const { delay_ms, priority, max_attempts, expires_in_ms, keep_ms, timeout_ms, headers } = options as Json;
  const optional = (value: unknown) => (value === undefined ? undefined : number(value));
  const attempts = optional(max_attempts);
  return {
    delay: optional(delay_ms),
    priority: optional(priority),
    retries: attempts === undefined ? undefined : attempts - 1,
    expires: optional(expires_in_ms),
    keep: optional(keep_ms),
    timeLimit: optional(timeout_ms),
    headers: headers as Record<string, string> | undefined,
  };
}

const callArguments = ({ args, kwargs }: Json): Arguments =>
  new Arguments(argument(args) as unknown[] | undefined, argument(kwargs) as Json | undefined);

/** An argument of a job: JSON, but for numbers that it does not have. */
function argument(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(argument);
  if (typeof given !== "object" || given === null) return given;
  if ("$number" in given) return Number(given.$number);
  return Object.fromEntries(Object.entries(given).map(([name, part]) => [name, argument(part)]));
}
