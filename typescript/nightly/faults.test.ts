// A fleet of workers under random faults: processes are killed, stopped and frozen, servers restarted and replaced by their replicas,
// connections cut, calls aborted, loops blocked. Nothing is lost, nothing stays held, no item is completed twice, and every process ends.
//
//     FAULT_SECONDS=600 FAULT_SEED=1 node --test dist/nightly/faults.test.js
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Redis } from "ioredis";
import { Client, LeaseqError } from "../src/index.js";
import { FaultProxy, freePort, Server, until } from "../test/server.js";
import { DURATION_MS, GRACE_MS, type Line, Random } from "./fleet.js";

const SECONDS = Number(process.env.FAULT_SECONDS || 600);
const SEED = Number(process.env.FAULT_SEED || Date.now() % 1_000_000);
const WORKERS = 4;
const PROGRAM = fileURLToPath(new URL("fleet-worker.js", import.meta.url));
/** A stop: the grace time, the calls behind it, and the start of a process on a busy machine. */
const STOP_MS = GRACE_MS + 2000 + 5000;
/** A call of the producer ends by then, whatever happens: its reply timeout, and one redirection of the loop that was busy. */
const CALL_MS = 3000 + 2000 + 2000;
const KEEP_MS = 3_600_000;
const FLAT_HEAP_BYTES = 8 * 1024 * 1024;

interface Usage {
  heap: number;
  resources: number;
}

/** One process of the fleet, and what it said. */
class Member {
  readonly completed: string[] = [];
  readonly usage: Usage[] = [];
  readonly errors: string[] = [];
  readonly exited: Promise<unknown[]>;
  readonly #process: ChildProcess;
  isKilled = false;

  constructor(path: string, queue: string) {
    this.#process = spawn(process.execPath, ["--expose-gc", PROGRAM, path, queue], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.exited = once(this.#process, "exit");
    const { stdout, stderr } = this.#process;
    if (!stdout || !stderr) throw new Error("no pipes");
    createInterface(stdout).on("line", (text) => {
      if (!text.endsWith("}")) return; // killed in the middle of a line
      const line: Line = JSON.parse(text);
      if ("completed" in line) this.completed.push(line.completed);
      if ("heap" in line) this.usage.push(line);
    });
    createInterface(stderr).on("line", (text) => this.errors.push(text));
  }

  signal(name: NodeJS.Signals): void {
    this.isKilled ||= name === "SIGKILL";
    this.#process.kill(name);
  }

  /** Stops it, and says how it ended. */
  async stop(): Promise<void> {
    this.signal("SIGTERM");
    const late = sleep(STOP_MS, "late", { ref: false });
    const ended = await Promise.race([this.exited, late]);
    if (ended === "late") this.signal("SIGKILL");
    assert.notEqual(ended, "late", `a worker did not end within ${STOP_MS} ms: ${this.errors.join("\n")}`);
    assert.deepEqual((ended as unknown[])[0], 0, this.errors.join("\n"));
  }
}

/** A primary and its replica behind one address, that of a proxy. The server keeps its data: each write is on the disk. */
class Pair {
  readonly proxy: FaultProxy;
  #primary: Server;
  #replica: Server;
  readonly #ports: Map<Server, number>;

  private constructor(primary: Server, replica: Server, ports: Map<Server, number>) {
    this.#primary = primary;
    this.#replica = replica;
    this.#ports = ports;
    this.proxy = new FaultProxy(() => this.#primary.path);
  }

  static async start(): Promise<Pair> {
    const ports = new Map<Server, number>();
    for (let count = 0; count < 2; count += 1) {
      const port = await freePort();
      const durable = ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"];
      ports.set(await Server.start("--port", `${port}`, "--bind", "127.0.0.1", ...durable), port);
    }
    const [primary, replica] = [...ports.keys()] as [Server, Server];
    const pair = new Pair(primary, replica, ports);
    await pair.#follow();
    await pair.proxy.open();
    return pair;
  }

  raw(): Redis {
    return this.#primary.raw();
  }

  async #follow(): Promise<void> {
    const raw = this.#replica.raw();
    await raw.replicaof("127.0.0.1", `${this.#ports.get(this.#primary)}`);
    await until(async () => /master_link_status:up/.test(await raw.info("replication")));
    raw.disconnect();
  }

  /** Restarts the primary, which is gone for `ms`. */
  async restart(ms: number, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    await this.#primary.stop(signal);
    await sleep(ms);
    await this.#primary.start();
    await this.#follow();
  }

  /** Lets the replica take over, once it has everything; the old primary refuses writes until the address has moved. */
  async failOver(): Promise<void> {
    const raw = this.#primary.raw();
    await raw.call("FAILOVER");
    await until(async () => /role:slave/.test(await raw.info("replication")));
    await sleep(200);
    raw.disconnect();
    [this.#primary, this.#replica] = [this.#replica, this.#primary];
    this.proxy.cut();
    await this.#follow();
  }

  async end(): Promise<void> {
    this.proxy.close();
    await this.#primary.end();
    await this.#replica.end();
  }
}

/** Adds items one after the other; some calls are aborted, some break. Knows which were added. */
class Producer {
  readonly added = new Set<string>();
  readonly unknown = new Set<string>();
  longest = 0;
  #number = 0;
  readonly #client: Client;
  readonly #random: Random;

  constructor(path: string, random: Random) {
    this.#client = new Client({ path, connectTimeout: 2000 }, { replyTimeout: 3000 });
    this.#random = random;
  }

  async run(queueName: string, stop: AbortSignal): Promise<void> {
    const queue = this.#client.queue(queueName);
    while (!stop.aborted) {
      const ids = Array.from({ length: 1 + this.#random.below(8) }, () => `item-${this.#number++}`);
      const abort = this.#random.below(10) === 0 ? AbortSignal.timeout(this.#random.below(5)) : undefined;
      const startedAt = Date.now();
      try {
        await queue.add(
          ids.map((id) => ({ id, data: `data of ${id}`, keep: KEEP_MS })),
          { signal: abort },
        );
        for (const id of ids) this.added.add(id);
      } catch (error) {
        assert.ok(error instanceof LeaseqError, `an error without a name: ${error}`);
        if (!error.definite) for (const id of ids) this.unknown.add(id);
        await sleep(50);
      }
      this.longest = Math.max(this.longest, Date.now() - startedAt);
      await sleep(this.#random.below(20));
    }
  }

  async close(): Promise<void> {
    const startedAt = Date.now();
    await this.#client.close();
    assert.ok(Date.now() - startedAt < 4000, "close took too long");
  }
}

test(`a fleet of workers under faults, ${SECONDS} s, FAULT_SEED=${SEED}`, {
  timeout: (SECONDS + 300) * 1000,
}, async (context) => {
  const random = new Random(SEED);
  const pair = await Pair.start();
  const queueName = "fleet";
  const start = () => new Member(pair.proxy.path, queueName);
  const steady = start(); // it is never killed: its memory is watched
  const members = Array.from({ length: WORKERS }, start);
  const past: Member[] = [];
  const stopping = new AbortController();
  const producer = new Producer(pair.proxy.path, new Random(SEED + 1));
  const producing = producer.run(queueName, stopping.signal);

  const replace = (index: number): Member => {
    const member = members[index] as Member;
    members[index] = start();
    past.push(member);
    return member;
  };
  const faults: Record<string, () => Promise<unknown>> = {
    kill: async () => replace(random.below(WORKERS)).signal("SIGKILL"),
    stop: async () => await replace(random.below(WORKERS)).stop(),
    freeze: async () => {
      const member = random.pick(members);
      member.signal("SIGSTOP");
      await sleep(DURATION_MS + random.below(1000)); // its leases end meanwhile
      member.signal("SIGCONT");
    },
    cut: async () => pair.proxy.cut(),
    silence: async () => {
      pair.proxy.silent = true;
      await sleep(random.below(4000));
      pair.proxy.silent = false;
      pair.proxy.cut(); // replies are missing
    },
    restart: async () => await pair.restart(random.below(3000), "SIGTERM"),
    crash: async () => await pair.restart(random.below(1000), "SIGKILL"),
    "fail over": async () => await pair.failOver(),
    "flush scripts": async () => {
      const raw = pair.raw();
      await raw.call("SCRIPT", "FLUSH");
      raw.disconnect();
    },
    pause: async () => {
      const raw = pair.raw();
      await raw.call("CLIENT", "PAUSE", `${random.below(1500)}`, "ALL");
      raw.disconnect();
    },
  };
  const counts: Record<string, number> = {};
  const end = Date.now() + SECONDS * 1000;
  try {
    while (Date.now() < end) {
      const name = random.pick(Object.keys(faults));
      counts[name] = (counts[name] ?? 0) + 1;
      await faults[name]?.();
      await sleep(300 + random.below(700));
    }
    stopping.abort();
    await producing;

    const client = new Client({ path: pair.proxy.path });
    const queue = client.queue(queueName);
    let stats = await queue.stats();
    await until(async () => {
      stats = await queue.stats();
      return ["ready", "delayed", "leased"].every((state) => !stats.get(state));
    }, 120_000).catch(() => assert.fail(`the queue is not empty: ${JSON.stringify([...stats])}`));
    assert.equal(stats.get("dead"), 0);

    for (const member of [...members, steady]) await member.stop();
    await Promise.all(past.map((member) => member.exited));

    const ids = [...producer.added, ...producer.unknown];
    const outcomes = await queue.outcome(ids);
    const lost = ids.filter((id, index) => producer.added.has(id) && outcomes[index]?.state !== "result");
    assert.deepEqual(lost, [], "items are lost");
    const completed = [...past, ...members, steady].flatMap((member) => member.completed);
    assert.equal(new Set(completed).size, completed.length, "an item was completed twice");
    const done = outcomes.filter((outcome) => outcome.state === "result").length;
    assert.ok(completed.length <= done, `${completed.length} answers of ${done} outcomes`);

    for (const member of [...past, ...members, steady].filter(({ isKilled }) => !isKilled)) {
      assert.deepEqual(member.errors, []);
    }
    assert.ok(producer.longest < CALL_MS, `a call took ${producer.longest} ms`);
    const early = steady.usage.slice(5, 15);
    const late = steady.usage.slice(-10);
    const least = (usages: readonly Usage[], what: keyof Usage) =>
      Math.min(...usages.map((usage) => usage[what]));
    const grown = least(late, "heap") - least(early, "heap");
    assert.ok(grown < FLAT_HEAP_BYTES, `the heap grew by ${grown} bytes`);
    const [before, after] = [least(early, "resources"), least(late, "resources")];
    assert.ok(after <= before + 4, `${before} resources became ${after}`);
    await producer.close();
    await client.close();
    context.diagnostic(
      `${producer.added.size} added, ${producer.unknown.size} perhaps, ${done} outcomes, ${completed.length} returned true; heap` +
        ` ${grown >= 0 ? "+" : ""}${grown} bytes, ${before} to ${after} resources; longest call ${producer.longest} ms;` +
        ` ${Object.entries(counts)
          .map(([name, count]) => `${name} ${count}`)
          .join(", ")}`,
    );
  } finally {
    stopping.abort();
    for (const member of [...members, steady, ...past]) member.signal("SIGKILL");
    await producing.catch(() => {});
    await pair.end();
  }
});
