// The moments at which the clock of a time zone shows a time. Moments are milliseconds since 1970 UTC; times, as the clock shows
// them, are the milliseconds of the same time in UTC.
import { BadArgumentError } from "../errors.js";

/** No clock is changed by more. */
const DAY_MS = 86_400_000;

/** The clock of a time zone, which is changed at most once within two days. */
export class WallClock {
  readonly #format: Intl.DateTimeFormat | undefined;

  /** Throws BadArgumentError if there is no such zone. */
  constructor(readonly zone: string) {
    if (zone === "UTC") return;
    try {
      this.#format = new Intl.DateTimeFormat("en-US", {
        timeZone: zone,
        hourCycle: "h23",
        era: "short",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      });
    } catch {
      throw new BadArgumentError(
        `there is no time zone ${JSON.stringify(zone)} here: names are like "Europe/Berlin"`,
      );
    }
  }

  /** A time that it does not go below from this moment on. */
  lowest(moment: number): number {
    const now = this.#offset(moment);
    let later = this.#offset(moment + DAY_MS);
    if (later < now) later = this.#offset(moment + now - later); // it is set back below the time of now if that is soon
    return moment + Math.min(now, later);
  }

  /** The moments at which it shows a time: one, two if it is set back, none if it is set forward. */
  moments(time: number): number[] {
    const [before, after] = [this.#offset(time - DAY_MS), this.#offset(time + DAY_MS)];
    if (before === after) return [time - before];
    return [time - before, time - after]
      .filter((moment) => this.#offset(moment) === time - moment)
      .sort((a, b) => a - b);
  }

  /** The first moment at which it shows a time, or a later one. */
  first(time: number): number {
    const [moment] = this.moments(time);
    if (moment !== undefined) return moment;
    const [before, after] = [this.#offset(time - DAY_MS), this.#offset(time + DAY_MS)];
    // The time is skipped: the clock is set forward between these.
    let [low, high] = [time - after, time - before];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offset(middle) === after) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Milliseconds that it is ahead of UTC. */
  #offset(moment: number): number {
    if (!this.#format) return 0;
    const second = Math.floor(moment / 1000) * 1000;
    const parts = Object.fromEntries(
      this.#format.formatToParts(second).map(({ type, value }) => [type, value]),
    );
    const { year, month, day, hour, minute, second: seconds } = parts;
    const shown = Date.UTC(
      Number(year),
      Number(month) - 1,
      Number(day),
      Number(hour),
      Number(minute),
      Number(seconds),
    );
    return shown - second;
  }
}
