// When the slots of a schedule are, in milliseconds since 1970; every program that knows the rule finds the same.
import { Cron } from "croner";
import { encodeMilliseconds } from "../encoding.js";
import { BadArgumentError } from "../errors.js";
import { WallClock } from "./wall-clock.js";

const HOURS_OF_A_DAY = 24;
const HOUR_MS = 3_600_000;

const NICKNAMES: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/** Slots without end. */
export interface Timetable {
  /** The rule, for people. */
  readonly rule: string;
  /** The slots later than `time`, in order. */
  after(time: number): Generator<number, void>;
}

/**
 * A line of crontab, in a time zone. A line that names hours gives one slot for each time of the clock (LQ-JOB-40), a line for every
 * hour one for each moment at which the clock shows a time of the line (LQ-JOB-41).
 */
export class CronTimetable implements Timetable {
  readonly rule: string;
  readonly #clock: WallClock;
  /** The times of the line, as if the zone were UTC. */
  readonly #times: Cron;
  readonly #isForEveryHour: boolean;

  /** Throws BadArgumentError. */
  constructor(line: string, zone: string) {
    this.#clock = new WallClock(zone);
    this.rule = `${line} ${zone}`;
    const fields = fieldsOf(line);
    this.#times = timesOf(fields, line);
    const hours = fields.length === 6 ? fields[2] : fields[1];
    const ofOneDay = timesOf(["0", hours as string, "*", "*", "*"], line).nextRuns(
      HOURS_OF_A_DAY,
      new Date(-HOUR_MS),
    );
    this.#isForEveryHour = ofOneDay.at(-1)?.getTime() === (HOURS_OF_A_DAY - 1) * HOUR_MS;
    if (!this.#times.nextRun(new Date(0)))
      throw new BadArgumentError(`${JSON.stringify(line)} has no slot: no day is like that`);
  }

  *after(time: number): Generator<number, void> {
    let found: number[] = [];
    let latest = time;
    let shown = this.#times.nextRun(new Date(this.#clock.lowest(time)));
    for (; shown; shown = this.#times.nextRun(shown)) {
      const moments = this.#moments(shown.getTime());
      const [first] = moments;
      if (first === undefined) continue;
      found = [...found, ...moments].sort((a, b) => a - b);
      // The second moment of a time can be later than those of later times.
      for (let slot = found[0]; slot !== undefined && slot <= first; slot = found[0]) {
        found.shift();
        if (slot > latest) {
          latest = slot;
          yield slot;
        }
      }
    }
  }

  #moments(shown: number): number[] {
    return this.#isForEveryHour ? this.#clock.moments(shown) : [this.#clock.first(shown)];
  }
}

/** The fields of a line: minute, hour, day of month, month, day of week; a second can stand before them. */
function fieldsOf(line: string): string[] {
  if (typeof line !== "string") throw new BadArgumentError(`a line of crontab is text, not ${typeof line}`);
  const name = line.trim().toLowerCase();
  const fields = (NICKNAMES[name] ?? line).trim().split(/\s+/);
  // croner puts the time of now in place of "?"
  if ((fields.length === 5 || fields.length === 6) && !line.includes("?")) return fields;
  throw notALine(line, "");
}

function timesOf(fields: readonly string[], line: string): Cron {
  try {
    return new Cron(fields.join(" "), { timezone: "UTC", paused: true, domAndDow: areBothNeeded(fields) });
  } catch (error) {
    throw notALine(line, `${(error as Error).message}; `);
  }
}

/** As in Debian's cron: a day has to be right by both fields if one of them starts with a star, else by one of them. */
function areBothNeeded(fields: readonly string[]): boolean {
  return [fields.at(-3), fields.at(-1)].some((field) => field?.startsWith("*"));
}

function notALine(line: string, why: string): BadArgumentError {
  return new BadArgumentError(
    `${JSON.stringify(line)} is no line of crontab: ${why}it has minute, hour, day of month, month and day of week, and may have a ` +
      `second before them, or is one of ${Object.keys(NICKNAMES).join(", ")}`,
  );
}

/** Slots at multiples of an interval since 1970. */
export class IntervalTimetable implements Timetable {
  readonly rule: string;
  readonly #step: number;

  /** Throws BadArgumentError. */
  constructor(milliseconds: number) {
    this.#step = Number(encodeMilliseconds(milliseconds, "an interval"));
    if (this.#step < 1) throw new BadArgumentError(`an interval is at least 1 ms, not ${milliseconds}`);
    this.rule = `every ${this.#step / 1000} s`;
  }

  *after(time: number): Generator<number, void> {
    for (let slot = time - (time % this.#step) + this.#step; ; slot += this.#step) yield slot;
  }
}
