// Faults at random, for a fleet whose members are replaced as they end.
import { setTimeout as sleep } from "node:timers/promises";
import { DURATION_MS, Random } from "./fleet.js";
import { checkFlat, type Member, type Usage } from "./member.js";
import { Pair } from "./pair.js";

const FLAT_HEAP_BYTES = 8 * 1024 * 1024;

/** A way to start a member. */
export type Start<Line extends object> = (path: string) => Member<Line>;

/** A pair of servers, and processes that use it. */
export class Campaign<Line extends object> {
  readonly pair: Pair;
  readonly random: Random;
  /** Never killed: its memory is watched. */
  readonly steady: Member<Line>;
  readonly #starts: readonly Start<Line>[];
  readonly #members: Member<Line>[];
  readonly #past: Member<Line>[] = [];
  readonly #counts = new Map<string, number>();

  private constructor(pair: Pair, seed: number, steady: Start<Line>, others: readonly Start<Line>[]) {
    this.pair = pair;
    this.random = new Random(seed);
    this.steady = steady(pair.proxy.path);
    this.#starts = others;
    this.#members = others.map((start) => start(pair.proxy.path));
  }

  static async start<Line extends object>(
    seed: number,
    steady: Start<Line>,
    others: readonly Start<Line>[],
  ): Promise<Campaign<Line>> {
    return new Campaign(await Pair.start(), seed, steady, others);
  }

  /** All processes, those of now and those before them. */
  get all(): Member<Line>[] {
    return [...this.#past, ...this.#members, this.steady];
  }

  /** What all said. */
  get lines(): Line[] {
    return this.all.flatMap((member) => member.lines);
  }

  /** Lets faults come for `seconds`. */
  async run(seconds: number): Promise<void> {
    const faults = this.#faults();
    const end = Date.now() + seconds * 1000;
    while (Date.now() < end) {
      const name = this.random.pick(Object.keys(faults));
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
      await faults[name]?.();
      await sleep(300 + this.random.below(700));
    }
  }

  /** Stops some of the members that run; all by default. */
  async stop(which: (index: number) => boolean = () => true): Promise<void> {
    for (const [index, member] of this.#members.entries()) if (which(index)) await member.stop();
  }

  /** Stops the steady one, and checks what all left. Returns what is known of them, for people. */
  async finish(): Promise<string> {
    await this.steady.stop();
    await Promise.all(this.#past.map((member) => member.exited));
    const errors = this.all.filter(({ isKilled }) => !isKilled).flatMap((member) => member.errors);
    if (errors.length > 0) throw new Error(`a process wrote to stderr: ${errors.slice(0, 50).join("\n")}`);
    const usage = (this.steady.lines as object[]).filter((line): line is Usage => "heap" in line);
    const counts = [...this.#counts].map(([name, count]) => `${name} ${count}`);
    return `${checkFlat(usage, FLAT_HEAP_BYTES)}; ${counts.join(", ")}`;
  }

  /** Kills what is left. */
  async end(): Promise<void> {
    for (const member of this.all) member.signal("SIGKILL");
    await this.pair.end();
  }

  #replace(): Member<Line> {
    const index = this.random.below(this.#members.length);
    const member = this.#members[index] as Member<Line>;
    this.#members[index] = (this.#starts[index] as Start<Line>)(this.pair.proxy.path);
    this.#past.push(member);
    return member;
  }

  #faults(): Record<string, () => Promise<unknown>> {
    const { pair, random } = this;
    return {
      kill: async () => this.#replace().signal("SIGKILL"),
      stop: async () => await this.#replace().stop(),
      freeze: async () => {
        const member = random.pick(this.#members);
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
  }
}
