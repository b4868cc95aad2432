// Spans join producers and workers. The SDK of OpenTelemetry records them.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { Client, CompleteWith, type Handler, type Queue, type WorkerOptions } from "../src/index.js";
import { App, JobFailed } from "../src/jobs/index.js";
import { tracing } from "../src/otel.js";
import { Server, until } from "./server.js";

const LONG_MS = 60_000;
const REMOTE = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
const TRACEPARENT = `00-${REMOTE.trace}-${REMOTE.span}-01`;

const exporter = new InMemorySpanExporter();
const lines: string[] = [];
const log = (text: string) => lines.push(text);
let server: Server;
let client: Client;
let queue: Queue;

before(async () => {
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
  server = await Server.start();
});
beforeEach(async () => {
  await client?.close();
  await server.flush();
  exporter.reset();
  lines.length = 0;
  client = new Client({ path: server.path }, { tracing, logger: { info: log, warn: log, error: log } });
  queue = client.queue("mails", { group: "shop" });
});
after(async () => {
  await client.close();
  await server.end();
});

const tracer = trace.getTracer("test");

/** Runs something in a span, and returns that. */
async function within<Result>(name: string, call: () => Promise<Result>): Promise<Span> {
  return await tracer.startActiveSpan(name, async (span) => {
    await call();
    span.end();
    return span;
  });
}

/** Works until `count` spans have ended. */
async function work(handler: Handler, count: number, options: WorkerOptions = {}): Promise<ReadableSpan[]> {
  const worker = client.worker(queue, handler, options);
  const ran = worker.run();
  await until(() => exporter.getFinishedSpans().length >= count);
  await worker.close();
  await ran;
  return exporter.getFinishedSpans();
}

const named = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name);

const isChild = (child: ReadableSpan | undefined, parent: Span | ReadableSpan | undefined): boolean => {
  const { traceId, spanId } = child?.parentSpanContext ?? {};
  const expected = parent?.spanContext();
  return expected !== undefined && traceId === expected.traceId && spanId === expected.spanId;
};

describe("a handler", { concurrency: false }, () => {
  test("runs in a child of the span in which its item was added", async () => {
    const produce = await within("produce", () =>
      queue.add([{ id: "a", data: "12345", headers: { tenant: "7" } }]),
    );
    const headers: string[][] = [];
    await work(async (item) => {
      headers.push([...item.headers].map(([name, value]) => `${name}: ${value}`));
      await sleep(1);
      tracer.startSpan("inner").end();
    }, 3);
    const { traceId, spanId } = produce.spanContext();
    assert.deepEqual(headers, [["tenant: 7", `traceparent: 00-${traceId}-${spanId}-01`]]);
    const [process] = named("process mails");
    assert.ok(isChild(process, produce));
    assert.ok(isChild(named("inner")[0], process));
    assert.equal(process?.kind, SpanKind.CONSUMER);
    assert.equal(process?.status.code, SpanStatusCode.UNSET);
    assert.deepEqual(process?.attributes, {
      "messaging.system": "leaseq",
      "messaging.operation.type": "process",
      "messaging.destination.name": "mails",
      "messaging.message.id": "a",
      "messaging.message.body.size": 5,
      "leaseq.attempt": 1,
    });
  });

  test("continues the trace of a program in another language, and passes it on", async () => {
    const headers = { traceparent: TRACEPARENT, tracestate: "vendor=1" };
    const received: string[] = [];
    await within("produce", () => queue.add({ id: "a", data: "", headers })); // a given header is not replaced
    await work((item) => {
      received.push(`${item.headers.get("traceparent")} ${item.headers.get("tracestate")}`);
    }, 2);
    assert.deepEqual(received, [`${TRACEPARENT} vendor=1`]);
    const parent = named("process mails")[0]?.parentSpanContext;
    assert.deepEqual([parent?.traceId, parent?.spanId], [REMOTE.trace, REMOTE.span]);
    assert.equal(parent?.traceState?.serialize(), "vendor=1");
  });

  test("takes headers that are null, as a queue without spans does", async () => {
    const headers = null as unknown as undefined;
    await within("produce", () => queue.add({ id: "a", data: "", headers }));
    await work(() => undefined, 2);
    const [produce] = named("produce");
    assert.equal(named("process mails")[0]?.parentSpanContext?.spanId, produce?.spanContext().spanId);
  });

  test("starts a trace if its item was added outside of a span, and its failure is recorded", async () => {
    await queue.add({ id: "a", data: "" });
    const added: number[] = [];
    await within("start", () =>
      work((item) => {
        added.push(item.headers.size);
        throw new RangeError("no such mail");
      }, 1),
    );
    const [process] = named("process mails");
    assert.deepEqual(added, [0]);
    assert.equal(process?.parentSpanContext, undefined);
    assert.deepEqual(process?.status, { code: SpanStatusCode.ERROR, message: "RangeError: no such mail" });
    const [event] = process?.events ?? [];
    assert.equal(event?.name, "exception");
    assert.equal(event?.attributes?.["exception.type"], "RangeError");
    assert.equal(event?.attributes?.["exception.message"], "no such mail");
  });

  test("that does not end leaves a span that has ended, at its limit or when its item is given back", async () => {
    await queue.add({ id: "a", data: "" });
    const never = () => new Promise(() => {});
    await work(never, 1, { timeLimit: 1, backoff: LONG_MS });
    await queue.add({ id: "b", data: "" });
    let isRunning = false;
    const worker = client.worker(queue, () => {
      isRunning = true;
      return never();
    });
    worker.run();
    await until(() => isRunning);
    await worker.close({ force: true });
    const messages = named("process mails").map(({ status }) => status.message);
    assert.deepEqual(messages, [
      "Cancellation: the handler ran longer than 1 ms",
      "Cancellation: the worker stopped",
    ]);
  });

  test("passes its span on to follow-ups", async () => {
    await queue.add([
      { id: "a", data: "" },
      { id: "b", data: "" },
    ]);
    const next = client.queue("next", { group: "shop" });
    await within("start", () =>
      work(async (item) => {
        const followUps = [{ id: item.id, data: "", queue: next }];
        await sleep(1);
        if (item.id.toString() === "a") return new CompleteWith(followUps);
        await item.handOff(followUps);
        return undefined;
      }, 2),
    );
    for (const process of named("process mails")) {
      const item = await next.lease({ duration: 1000 });
      assert.equal(item?.id.toString(), process.attributes["messaging.message.id"]);
      const { traceId, spanId } = process.spanContext();
      assert.equal(item?.headers.get("traceparent")?.toString(), `00-${traceId}-${spanId}-01`);
    }
  });

  test("runs if its span cannot start", async () => {
    const broken = { ...tracing, start: () => assert.fail("no tracer") };
    const path = server.path;
    const other = new Client({ path }, { tracing: broken, logger: { info: log, warn: log, error: log } });
    await queue.add({ id: "a", data: "" });
    const worker = other.worker(other.queue("mails", { group: "shop" }), () => worker.stop());
    assert.equal(await worker.run(), 1);
    assert.deepEqual(lines, ["leaseq worker: a span did not start"]);
    await other.close();
  });
});

describe("a job", { concurrency: false }, () => {
  test("runs in a child of the span in which it was enqueued, at each attempt, and so does a chain", async () => {
    const app = new App(client);
    const first = app.define("first", { retries: 1, backoff: 1 }, (input: number, { attempt }) => {
      tracer.startSpan(`attempt ${attempt}`).end();
      if (attempt === 1) throw new Error("not yet");
      return input + 1;
    });
    const second = app.define("second", (input: number) => 2 * input);
    await using worker = app.worker();
    worker.run();
    const produce = await within("produce", async () => {
      const chain = await app.chain(first.call(20)).next(second).enqueue();
      assert.equal(await chain.result({ timeout: 30_000 }), 42);
    });
    await worker.close();
    const [failed, succeeded, next] = named("process default");
    assert.ok(isChild(failed, produce));
    assert.ok(isChild(succeeded, produce));
    assert.ok(isChild(next, succeeded));
    assert.ok(isChild(named("attempt 2")[0], succeeded));
    assert.deepEqual(failed?.status, { code: SpanStatusCode.ERROR, message: "Error: not yet" });
    assert.deepEqual(
      [failed, succeeded].map((span) => span?.attributes["leaseq.attempt"]),
      [1, 2],
    );
  });

  test("that was enqueued outside of a span has no headers, and its failure is that of its function", async () => {
    const app = new App(client);
    const fail = app.define("fail", { retries: 0 }, (_: undefined, { headers }) => {
      throw new Error(`${headers.size} headers`);
    });
    await using worker = app.worker();
    worker.run();
    await assert.rejects((await fail.enqueue()).result({ timeout: 30_000 }), JobFailed);
    await worker.close();
    const [process] = named("process default");
    assert.equal(process?.parentSpanContext, undefined);
    assert.equal(process?.status.message, "Error: 0 headers");
  });

  test("of a schedule is in the trace of its turn, and no turn in that of another", async () => {
    const app = new App(client);
    let ticks = 0;
    const tick = app.define("tick", () => {
      ticks += 1;
    });
    app.every(tick, 50, { missed: "all" });
    await within("start", async () => {
      await using worker = app.worker();
      worker.run();
      await until(() => ticks >= 3);
    });
    const turns = named("process default.cron");
    assert.ok(turns.every((turn) => turn.parentSpanContext === undefined));
    for (const process of named("process default")) assert.ok(turns.some((turn) => isChild(process, turn)));
  });
});
