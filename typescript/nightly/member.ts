// One process of a fleet under faults, and what it said.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { STOP_MS } from "./fleet.js";

/** What a process holds: bytes, and handles that keep it running. */
export interface Usage {
  readonly heap: number;
  readonly resources: number;
}

/** A process that prints lines of JSON, and ends after SIGTERM. */
export class Member<Line extends object> {
  readonly lines: Line[] = [];
  readonly errors: string[] = [];
  readonly exited: Promise<unknown[]>;
  /** Its first line: from then on it ends as it should after SIGTERM. */
  readonly #began: Promise<unknown>;
  readonly #process: ChildProcess;
  isKilled = false;

  constructor(command: readonly string[], environment: Record<string, string> = {}) {
    const [program = "", ...args] = command;
    this.#process = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    });
    this.exited = once(this.#process, "exit");
    const { stdout, stderr } = this.#process;
    if (!stdout || !stderr) throw new Error("no pipes");
    const output = createInterface(stdout);
    this.#began = once(output, "line");
    output.on("line", (text) => {
      if (text.endsWith("}")) this.lines.push(JSON.parse(text)); // otherwise killed in the middle of a line
    });
    createInterface(stderr).on("line", (text) => this.errors.push(text));
  }

  signal(name: NodeJS.Signals): void {
    this.isKilled ||= name === "SIGKILL";
    this.#process.kill(name);
  }

  /** Stops it, and says how it ended. */
  async stop(): Promise<void> {
    await Promise.race([this.#began, this.exited]);
    this.signal("SIGTERM");
    const late = sleep(STOP_MS, "late", { ref: false });
    const ended = await Promise.race([this.exited, late]);
    if (ended === "late") this.signal("SIGKILL");
    assert.notEqual(ended, "late", `a process did not end within ${STOP_MS} ms: ${this.errors.join("\n")}`);
    assert.deepEqual((ended as unknown[])[0], 0, this.errors.join("\n"));
  }
}

/** Checks that memory and handles are the same at the end as at the start. Returns both, for people. */
export function checkFlat(usage: readonly Usage[], mayGrowBytes: number): string {
  const least = (some: readonly Usage[], what: keyof Usage) => Math.min(...some.map((one) => one[what]));
  const [early, late] = [usage.slice(5, 15), usage.slice(-10)];
  const grown = least(late, "heap") - least(early, "heap");
  assert.ok(grown < mayGrowBytes, `the heap grew by ${grown} bytes`);
  const [before, after] = [least(early, "resources"), least(late, "resources")];
  assert.ok(after <= before + 4, `${before} resources became ${after}`);
  return `heap ${grown >= 0 ? "+" : ""}${grown} bytes, ${before} to ${after} resources`;
}
