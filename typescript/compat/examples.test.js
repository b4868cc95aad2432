// The programs of the pages about moving from BullMQ and about Fastify. python/tests/docs compares the pages with them.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, symlinkSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort, Server } from "../dist/test/server.js";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL(".", import.meta.url));
const LINES = ["failed: the mail server is busy", "receipt 17 is sent", "receipt 18 is sent", "nightly", ""];

describe("examples", { concurrency: false }, () => {
  let server;
  let env;
  before(async () => {
    const installed = `${HERE}node_modules/leaseq`;
    if (!existsSync(installed)) symlinkSync("../..", installed);
    const port = await freePort();
    server = await Server.start("--port", `${port}`, "--bind", "127.0.0.1");
    env = { ...process.env, REDIS_URL: `redis://127.0.0.1:${port}` };
  });
  after(() => server.end());

  for (const name of ["before", "after"]) {
    test(`a shop, ${name} it moves from BullMQ to leaseq`, async () => {
      await server.flush();
      const { stdout, stderr } = await run(process.execPath, [`moving/${name}.js`], {
        cwd: HERE,
        env,
        timeout: 60_000,
      });
      assert.deepEqual(stdout.split("\n"), LINES);
      // leaseq logs a failure by default
      assert.match(
        stderr,
        name === "before" ? /^$/ : /^leaseq worker: item "receipt-17" of mails, attempt 1, failed/,
      );
    });
  }

  test("a web application on Fastify, and its worker", async () => {
    await server.flush();
    const port = await freePort();
    const programs = ["server", "worker"].map((name) =>
      spawn(process.execPath, [`fastify/${name}.js`], {
        cwd: HERE,
        env: { ...env, PORT: `${port}` },
        stdio: "inherit",
      }),
    );
    try {
      const at = `http://127.0.0.1:${port}/images`;
      const post = (body) =>
        fetch(at, {
          method: "POST",
          body: JSON.stringify(body),
          headers: { "content-type": "application/json" },
        });
      let replied;
      while (!replied) replied = await post({ url: "https://example.org/a.png" }).catch(() => sleep(50));
      assert.equal(replied.status, 202);
      const { id } = await replied.json();
      let job = {};
      while (job.status !== "succeeded") {
        job = await (await fetch(`${at}/${id}`)).json();
        await sleep(20);
      }
      assert.deepEqual(job.result, { thumbnail: "https://example.org/a.png?width=200" });
      const refused = await post({ url: "no URL" });
      assert.equal(refused.status, 400);
      assert.match((await refused.json()).error, /url/);
      const worker = programs[1];
      worker.kill("SIGTERM");
      assert.deepEqual(await once(worker, "exit"), [0, null]);
    } finally {
      for (const program of programs) program.kill("SIGKILL");
    }
  });
});
