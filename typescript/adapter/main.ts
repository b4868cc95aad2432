// The adapter of this client for the conformance suite: node dist/adapter/main.js, spoken to on stdin and stdout.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import {
  AbortError,
  appendTo,
  Client,
  commands,
  LeaseqError,
  PartialError,
  type PipelineResult,
  QueueFullError,
  SCRIPTS,
} from "leaseq";
import type { MethodCall } from "./method.js";
import { METHODS } from "./methods.js";
import { HarnessError, Session } from "./session.js";
import { added, type Json, newItem } from "./values.js";

const CAPABILITIES = (
  "core blocking many fused heartbeat schedule expiry headers outcome handoff dead_letters limits many_queues cancel " +
  "look registry live_workers worker clean configure delete promote pipeline cluster jobs job_worker job_chains job_schedules"
).split(" ");

interface Request {
  id: number;
  op: string;
  queue: string;
  [field: string]: unknown;
}

let session: Session | undefined;
let url = "";
const running = new Map<number, AbortController>();

const OPS: Record<string, (request: Request) => Promise<Json> | Json> = {
  hello(request) {
    url = String(request.url);
    session = new Session(new Client(url));
    const { name, version } = JSON.parse(
      readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
    ) as Json;
    const scripts = Object.entries(SCRIPTS).map(([script, { sha1 }]) => [script, sha1]);
    const client = { name, version, language: "TypeScript" };
    return {
      ok: {
        protocol: 3,
        client,
        capabilities: CAPABILITIES,
        scripts: Object.fromEntries(scripts),
        job_worker: [process.execPath, fileURLToPath(new URL("job-worker.js", import.meta.url))],
      },
    };
  },
  open({ queue, name, group }) {
    openSession().open(queue, String(name), group as string | null);
    return { ok: {} };
  },
  close({ queue }) {
    openSession().close(queue);
    return { ok: {} };
  },
  async close_client() {
    const { client } = openSession();
    session = new Session(new Client(url));
    await client.close();
    return { ok: {} };
  },
  cancel({ call }) {
    running.get(call as number)?.abort();
    return { ok: {} };
  },
  async call(request) {
    const stop = new AbortController();
    running.set(request.id, stop);
    try {
      return await runMethod(request, stop);
    } finally {
      running.delete(request.id);
    }
  },
};

async function runMethod(request: Request, stop: AbortController): Promise<Json> {
  const args = request.args as Json;
  const single = request.queue === null ? [] : [request.queue];
  const waitedOn = (args.queues as string[] | undefined) ?? single;
  const signal = AbortSignal.any([stop.signal, ...waitedOn.map((handle) => openSession().closing(handle))]);
  const call: MethodCall = { session: openSession(), queue: request.queue, args, signal };
  const name = String(request.method);
  if (name === "pipeline") return { ok: await pipeline(call) };
  const method = METHODS[name];
  if (!method) throw new HarnessError(`there is no method ${name}`);
  const shape = (answers: unknown) => method.shape?.(answers as never[], call) ?? answers;
  try {
    return { ok: shape(await method.run(call)) };
  } catch (error) {
    if (signal.aborted || error instanceof AbortError) return { cancelled: true };
    if (!(error instanceof LeaseqError)) throw error;
    const { message, definite } = error;
    const code = error.code.startsWith("LEASEQ_") ? error.code : null;
    const hasAnswers = error instanceof PartialError || error instanceof QueueFullError;
    const answers = hasAnswers ? shape(error.answers) : [];
    return { error: { code, definite, message, answers, in_doubt: inDoubt(error, args) } };
  }
}

/** How many entries may have taken effect or not: all, if a call was not split. */
function inDoubt(error: LeaseqError, args: Json): number {
  if (error.definite) return 0;
  if (error instanceof PartialError) return error.inDoubt;
  return ((args.items ?? args.ids ?? [null]) as unknown[]).length;
}

/** Adds in one pipeline or transaction of a connection of the user's own. */
async function pipeline({ session, queue, args }: MethodCall): Promise<string[][]> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  try {
    await redis.connect();
    const pipe = args.transaction === true ? redis.multi() : redis.pipeline();
    const { keys } = session.queue(queue);
    const reads = (args.calls as { items: Json[]; options?: Json }[]).map(({ items, options }) =>
      appendTo(
        pipe,
        commands.add(
          keys,
          items.map((item) => newItem(item, options)),
        ),
      ),
    );
    const results = (await pipe.exec()) as PipelineResult[];
    return reads.map((read, index) => read(results[index]).map(added));
  } finally {
    redis.disconnect();
  }
}

function openSession(): Session {
  if (!session) throw new HarnessError("hello comes first");
  return session;
}

async function handle(request: Request): Promise<void> {
  let reply: Json;
  try {
    const op = OPS[request.op];
    if (!op) throw new HarnessError(`there is no op ${request.op}`);
    reply = await op(request);
  } catch (error) {
    if (error instanceof LeaseqError) {
      const code = error.code.startsWith("LEASEQ_") ? error.code : null;
      reply = { error: { code, definite: error.definite, message: error.message, answers: [], in_doubt: 0 } };
    } else {
      reply = { harness: String(error) };
    }
  }
  process.stdout.write(`${JSON.stringify({ id: request.id, ...reply })}\n`);
}

for await (const line of createInterface({ input: process.stdin })) void handle(JSON.parse(line));
await session?.client.close();
process.exit(0);
