// The package as it is published, in every runtime and module system that it promises: Node 20 to 24, Bun and Deno; ESM, CommonJS and
// a bundle; types under every way to resolve modules. `make typescript-compat` runs this, with Node alone.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { Server } from "../dist/test/server.js";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL(".", import.meta.url));
const MODULES = join(HERE, "node_modules");
const TIMEOUT_MS = 60_000;

/** What each runtime does with the package: all kinds of connections, a worker, and an end that leaves nothing. */
const PROGRAM = `
async function main() {
  const given = new Redis(process.env.SERVER, { lazyConnect: true });
  const client = new Client(given);
  const queue = client.queue("compat");
  const results = [];
  const worker = client.worker(queue, (item) => item.data.toString() + "!", {
    hooks: { completed: (item) => results.push(item.id.toString()), serverAway: (error) => console.error(error) },
  });
  const ran = worker.run();
  await queue.add({ id: "a", data: "abc", keep: 60_000 });
  const outcome = await queue.waitForOutcome("a", { timeout: 30_000 });
  await worker.close();
  const app = new App(client);
  const twice = app.define("twice", (number) => 2 * number);
  app.cron(twice, "@yearly");
  const jobWorker = app.worker();
  jobWorker.run();
  const doubled = await (await twice.enqueue(21)).result({ timeout: 30_000 });
  await jobWorker.close();
  await client.queue("compat").add({ id: "a", data: "", content: 1 }).catch((error) => {
    if (!(error instanceof LeaseqError)) throw error;
  });
  await client.close();
  given.disconnect();
  console.log(JSON.stringify({ content: outcome.content.toString(), results, ran: await ran, doubled }));
}
main();
`;
const EXPECTED = { content: "abc!", results: ["a"], ran: 1, doubled: 42 };
const SOURCES = {
  "esm.mjs": `import { Client, LeaseqError } from "leaseq";\nimport { App } from "leaseq/jobs";\nimport { Redis } from "ioredis";${PROGRAM}`,
  "commonjs.cjs": `const { Client, LeaseqError } = require("leaseq");\nconst { App } = require("leaseq/jobs");\nconst { Redis } = require("ioredis");${PROGRAM}`,
  "ioredis5.mjs": `import { Client, LeaseqError } from "leaseq";\nimport { App } from "leaseq/jobs";\nimport { Redis } from "ioredis5";${PROGRAM}`,
};
/** The same with spans, which need the packages of OpenTelemetry. */
const TRACED = `
async function main() {
  const exporter = new InMemorySpanExporter();
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
  const client = new Client({ path: process.env.SERVER }, { tracing });
  const app = new App(client);
  const spanId = app.define("spanId", async () => trace.getActiveSpan().spanContext().spanId);
  const worker = app.worker();
  worker.run();
  const [id, found] = await trace.getTracer("compat").startActiveSpan("enqueue", async (span) => {
    const handle = await spanId.enqueue();
    span.end();
    return [span.spanContext().spanId, await handle.result({ timeout: 30_000 })];
  });
  await worker.close();
  await client.close();
  const span = exporter.getFinishedSpans().find(({ name }) => name === "process default");
  console.log(JSON.stringify({ isChild: span.parentSpanContext.spanId === id, isActive: span.spanContext().spanId === found }));
}
main();
`;
const TRACED_EXPECTED = { isChild: true, isActive: true };
const OF_TRACED = Object.entries({
  leaseq: "Client",
  "leaseq/jobs": "App",
  "leaseq/otel": "tracing",
  "@opentelemetry/api": "trace",
  "@opentelemetry/sdk-trace-node": "InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor",
});
const TRACED_SOURCES = {
  "traced.mjs": OF_TRACED.map(([name, names]) => `import { ${names} } from "${name}";\n`).join("") + TRACED,
  "traced.cjs":
    OF_TRACED.map(([name, names]) => `const { ${names} } = require("${name}");\n`).join("") + TRACED,
};
const RUNTIMES = {
  "Node 20": [join(MODULES, "node20/bin/node")],
  "Node 22": [join(MODULES, "node22/bin/node")],
  "Node 24": [join(MODULES, "node24/bin/node")],
  Bun: [join(MODULES, "@oven/bun-linux-x64/bin/bun")],
  Deno: [join(MODULES, "@deno/linux-x64-glibc/deno"), "run", "--allow-all", "--no-check"],
};

/** A program of somebody who uses the package, for the compiler. */
const CONSUMER = `
import { Client, type LeasedItem, type WorkerOptions } from "leaseq";
import { App, type Handle } from "leaseq/jobs";
import { tracing } from "leaseq/otel";
const options: WorkerOptions = { concurrency: 2, timeLimit: undefined };
export async function first(url: string): Promise<string | undefined> {
  const client = new Client(url, { tracing });
  const item: LeasedItem | undefined = await client.queue("q").lease({ duration: 1000 });
  const worker = client.worker(client.queue("q"), (each, { signal }) => [each.id.toString(), signal.aborted], options);
  await worker.close({ force: true });
  // @ts-expect-error a queue has no such method: the types are there
  client.queue("q").nothing();
  return item?.data.toString();
}
export async function job(url: string): Promise<number> {
  const app = new App(url);
  const twice = app.define("twice", async (number: number, { attempt }) => attempt * 2 * number);
  // @ts-expect-error the function takes a number
  await twice.enqueue("7");
  const handle: Handle<number> = await twice.enqueue(7, { retries: 1, delay: undefined });
  return await handle.result();
}
`;
const COMPILERS = {
  "TypeScript 5": join(MODULES, "typescript5/bin/tsc"),
  "TypeScript 7": join(HERE, "../node_modules/typescript/bin/tsc"),
};

describe("the published package", { concurrency: false }, () => {
  let server;
  let folder;
  let traced;
  let tarball;

  before(async () => {
    server = await Server.start();
    folder = mkdtempSync(join(tmpdir(), "leaseq-ts-compat-"));
    // Of a copy that was never built: what is published is built when it is packed.
    const source = join(folder, "source");
    const own = join(HERE, "../node_modules");
    const sources = readdirSync(join(HERE, "..")).filter(
      (name) => !["compat", "dist", "node_modules"].includes(name),
    );
    for (const name of sources) cpSync(join(HERE, "..", name), join(source, name), { recursive: true });
    link(own, join(source, "node_modules"));
    await run("npm", ["pack", "--pack-destination", folder], { cwd: source, timeout: TIMEOUT_MS });
    tarball = join(
      folder,
      readdirSync(folder).find((name) => name.endsWith(".tgz")),
    );
    await install(folder, SOURCES, (name) => name !== "@opentelemetry");
    traced = join(folder, "traced");
    await install(traced, TRACED_SOURCES, () => true);
  });

  /** Installs the package, and beside it what npm would, as it is locked here, for programs in a folder. */
  async function install(into, programs, isThere) {
    const own = join(HERE, "../node_modules");
    const modules = join(into, "node_modules");
    mkdirSync(join(modules, "leaseq"), { recursive: true });
    await run("tar", ["xzf", tarball, "--strip-components=1", "-C", join(modules, "leaseq")]);
    for (const name of readdirSync(own).filter((each) => !each.startsWith(".") && isThere(each)))
      link(join(own, name), join(modules, name));
    link(join(MODULES, "ioredis5"), join(modules, "ioredis5"));
    writeFileSync(join(into, "package.json"), '{"private": true, "type": "module"}');
    for (const [name, source] of Object.entries(programs)) writeFileSync(join(into, name), source);
  }

  after(async () => {
    rmSync(folder, { recursive: true });
    await server.end();
  });

  /** Runs a program, which must end by itself, and reads what it says. */
  async function runs([command, ...args], file, cwd = folder, expected = EXPECTED) {
    assert.ok(
      existsSync(command),
      `${command} is missing: npm ci in typescript/compat installs it on Linux with x64`,
    );
    const env = { PATH: process.env.PATH, HOME: folder, SERVER: server.path, DENO_NO_UPDATE_CHECK: "1" };
    const { stdout, stderr } = await run(command, [...args, file], { cwd, env, timeout: TIMEOUT_MS });
    assert.deepEqual(JSON.parse(stdout), expected);
    assert.equal(stderr, "");
  }

  for (const [name, command] of Object.entries(RUNTIMES)) {
    for (const file of Object.keys(SOURCES)) {
      test(`runs in ${name}: ${file}`, async () => {
        await server.flush();
        await runs(command, file);
      });
    }
    for (const file of Object.keys(TRACED_SOURCES)) {
      test(`has spans in ${name}: ${file}`, async () => {
        await server.flush();
        await runs(command, file, traced, TRACED_EXPECTED);
      });
    }
  }

  for (const format of ["esm", "cjs"]) {
    test(`runs in a bundle of esbuild: ${format}`, async () => {
      await server.flush();
      const outfile = join(folder, `bundle.${format === "esm" ? "mjs" : "cjs"}`);
      const banner = {
        js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
      };
      await build({
        entryPoints: [join(folder, "esm.mjs")],
        outfile,
        bundle: true,
        minify: true,
        platform: "node",
        format,
        logLevel: "silent",
        ...(format === "esm" ? { banner } : {}),
      });
      await runs([process.execPath], outfile);
    });
  }

  for (const [compiler, tsc] of Object.entries(COMPILERS)) {
    for (const [resolution, module, type] of [
      ["nodenext", "nodenext", "module"],
      ["nodenext", "nodenext", "commonjs"],
      ["node16", "node16", "commonjs"],
      ["bundler", "esnext", "module"],
      ...(compiler === "TypeScript 5" ? [["node10", "commonjs", "commonjs"]] : []),
    ]) {
      test(`has types for ${compiler}, ${resolution}, ${type}`, async () => {
        const consumer = join(folder, `types-${resolution}-${type}`);
        mkdirSync(consumer, { recursive: true });
        writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type }));
        writeFileSync(join(consumer, "consumer.ts"), CONSUMER);
        const options = [
          "--strict",
          "--exactOptionalPropertyTypes",
          "--noEmit",
          "--target",
          "es2022",
          "--types",
          "node",
        ];
        const args = [
          ...options,
          "--skipLibCheck",
          "false",
          "--moduleResolution",
          resolution,
          "--module",
          module,
        ];
        try {
          await run(process.execPath, [tsc, ...args, "consumer.ts"], { cwd: consumer, timeout: TIMEOUT_MS });
        } catch (error) {
          assert.fail(error.stdout || String(error));
        }
      });
    }
  }

  for (const load of ['import("leaseq/otel")', 'require("leaseq/otel")']) {
    test(`needs OpenTelemetry for spans only, and says so: ${load}`, async () => {
      const failing = run(process.execPath, ["--eval", load], { cwd: folder, timeout: TIMEOUT_MS });
      await assert.rejects(failing, /Cannot find (package|module) '@opentelemetry\/api'/);
    });
  }

  test("says which version it is", async () => {
    const args = ["--print", 'require("leaseq/package.json").version'];
    const { stdout } = await run(process.execPath, args, { cwd: folder, timeout: TIMEOUT_MS });
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });

  test("is what publint and arethetypeswrong ask for", async () => {
    const env = { ...process.env, NO_COLOR: "1" };
    const bin = (name) => join(MODULES, ".bin", name);
    const linted = await run(bin("publint"), ["run", tarball, "--strict"], {
      cwd: folder,
      env,
      timeout: TIMEOUT_MS,
    });
    assert.match(linted.stdout, /All good!/);
    await run(bin("attw"), [tarball], { cwd: folder, env, timeout: TIMEOUT_MS }).catch((error) => {
      assert.fail(error.stdout || String(error));
    });
  });
});

function link(target, place) {
  if (!existsSync(place)) symlinkSync(target, place);
}
