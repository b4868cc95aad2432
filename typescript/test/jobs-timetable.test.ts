// When the slots of schedules are, and what a turn does with them. Without a server.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { App, type Missed } from "../src/jobs/index.js";
import { Schedule } from "../src/jobs/schedule.js";
import { CronTimetable, IntervalTimetable } from "../src/jobs/timetable.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe("a line of crontab", () => {
  /** The slots of a line between two times, in UTC. */
  function slots(line: string, zone: string, from: string, to: string): string[] {
    const found: string[] = [];
    for (const slot of new CronTimetable(line, zone).after(Date.parse(from))) {
      if (slot > Date.parse(to)) break;
      found.push(new Date(slot).toISOString().slice(5, 16));
    }
    return found;
  }
  const berlin = (line: string, from: string, to: string) =>
    slots(line, "Europe/Berlin", `2026-${from}:00Z`, `2026-${to}:00Z`);

  test("that names hours has a slot for each local time when the clock is set forward (LQ-JOB-40)", () => {
    assert.deepEqual(berlin("30 2 * * *", "03-27T12:00", "03-30T12:00"), [
      "03-28T01:30",
      "03-29T01:00",
      "03-30T00:30",
    ]);
    assert.deepEqual(berlin("0,30 2,3 * * *", "03-29T00:00", "03-29T12:00"), ["03-29T01:00", "03-29T01:30"]);
  });

  test("that names hours has one slot for two equal times when the clock is set back (LQ-JOB-40)", () => {
    assert.deepEqual(berlin("30 2 * * *", "10-24T12:00", "10-26T12:00"), ["10-25T00:30", "10-26T01:30"]);
    assert.deepEqual(berlin("30 2 * * *", "10-25T00:45", "10-25T12:00"), []);
  });

  test("for every hour has a slot whenever the clock shows a time of the line (LQ-JOB-41)", () => {
    assert.equal(berlin("*/15 * * * *", "03-29T00:00", "03-29T02:00").length, 8);
    assert.equal(berlin("*/15 0-23 * * *", "10-25T00:00", "10-25T02:00").length, 8);
    assert.deepEqual(berlin("30 * * * *", "10-24T23:59", "10-25T02:00"), ["10-25T00:30", "10-25T01:30"]);
    assert.deepEqual(berlin("0 30 * * * *", "03-29T00:00", "03-29T02:00"), ["03-29T00:30", "03-29T01:30"]);
  });

  test("in a zone that is changed by half an hour", () => {
    const lordHowe = (from: string, to: string) => slots("15 2 * * *", "Australia/Lord_Howe", from, to);
    assert.deepEqual(lordHowe("2026-10-03T12:00:00Z", "2026-10-04T00:00:00Z"), ["10-03T15:30"]);
    assert.deepEqual(lordHowe("2026-04-04T12:00:00Z", "2026-04-05T00:00:00Z"), ["04-04T15:45"]);
  });

  test("an interval has its slots at its multiples", () => {
    const timetable = new IntervalTimetable(700);
    const slots = timetable.after(1400);
    assert.deepEqual([slots.next().value, slots.next().value, timetable.rule], [2100, 2800, "every 0.7 s"]);
  });

  test("may be a nickname", () => {
    const found = (line: string, from: string, to: string) =>
      slots(line, "UTC", `${from}:00:00Z`, `${to}:00:00Z`);
    assert.deepEqual(found("@hourly", "2026-03-01T00", "2026-03-01T02"), ["03-01T01:00", "03-01T02:00"]);
    for (const daily of ["@daily", "@midnight", " @Daily "]) {
      assert.deepEqual(found(daily, "2026-02-27T12", "2026-03-01T12"), ["02-28T00:00", "03-01T00:00"]);
    }
    assert.deepEqual(found("@weekly", "2026-02-25T00", "2026-03-08T00"), ["03-01T00:00", "03-08T00:00"]);
    assert.deepEqual(found("@monthly", "2026-01-31T12", "2026-03-31T00"), ["02-01T00:00", "03-01T00:00"]);
    for (const yearly of ["@yearly", "@annually"]) {
      assert.deepEqual(found(yearly, "2025-06-01T00", "2027-01-01T00"), ["01-01T00:00", "01-01T00:00"]);
    }
  });

  test("has days by both fields if one starts with a star, else by one of them", () => {
    const april = (line: string) =>
      slots(line, "UTC", "2026-03-31T12:00:00Z", "2026-04-30T12:00:00Z").map((slot) => slot.slice(3, 5));
    assert.deepEqual(april("0 0 13 * 5"), ["03", "10", "13", "17", "24"]);
    assert.deepEqual(april("0 0 */2 * 5"), ["03", "17"]);
    assert.deepEqual(april("0 0 1-15 * */5"), ["03", "05", "10", "12"]);
    assert.deepEqual(april("0 0 13 * *"), ["13"]);
    assert.deepEqual(april("0 0 * apr sun"), april("0 0 * 4 7"));
    assert.deepEqual(april("0 0 * 4 0"), ["05", "12", "19", "26"]);
  });

  test("has no slot in a month that lacks the day", () => {
    assert.deepEqual(slots("0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "2026-06-01T00:00:00Z"), [
      "03-31T00:00",
      "05-31T00:00",
    ]);
    assert.deepEqual(slots("0 0 29 2 *", "UTC", "2024-02-29T00:00:00Z", "2029-01-01T00:00:00Z"), [
      "02-29T00:00",
    ]);
  });

  test("may have seconds, and its slots are later than the given time", () => {
    const noon = Date.parse("2026-03-01T12:00:00Z");
    const found = new CronTimetable("15,45 0 12 * * *", "UTC").after(noon + 15_000);
    assert.deepEqual([found.next().value, found.next().value], [noon + 45_000, noon + DAY + 15_000]);
    assert.equal(new CronTimetable("@hourly", "UTC").after(noon).next().value, noon + HOUR);
    assert.equal(new CronTimetable("@hourly", "UTC").after(noon - 1).next().value, noon);
  });

  test("in zones far from UTC, and at the end of a year", () => {
    const found = (zone: string, line: string, from: string, to: string) =>
      slots(line, zone, `${from}:00Z`, `${to}:00Z`);
    assert.deepEqual(found("Asia/Kolkata", "0 3 * * *", "2026-03-01T00:00", "2026-03-02T00:00"), [
      "03-01T21:30",
    ]);
    assert.deepEqual(found("Pacific/Auckland", "0 0 1 1 *", "2026-06-01T00:00", "2027-02-01T00:00"), [
      "12-31T11:00",
    ]);
    assert.deepEqual(found("America/New_York", "30 1 * * *", "2026-10-31T12:00", "2026-11-02T12:00"), [
      "11-01T05:30",
      "11-02T06:30",
    ]);
    assert.deepEqual(found("America/New_York", "30 2 * * *", "2026-03-07T12:00", "2026-03-09T12:00"), [
      "03-08T07:00",
      "03-09T06:30",
    ]);
  });
});

describe("a turn of a schedule", () => {
  const app = new App({ path: "/nonexistent/leaseq" });
  const turn = (missed: Missed, step: number, until: number, now: number, isPaused = false) =>
    new Schedule("s", app.function("f").call(), new IntervalTimetable(step), missed).turn(
      until,
      now,
      isPaused,
    );

  test("has the slots behind the last turn, up to now (LQ-JOB-30, 31)", () => {
    const after = { until: 3000, next: 4000, due: 4000 };
    assert.deepEqual(turn("all", 1000, 1000, 3000), { slots: [2000, 3000], ...after });
    assert.deepEqual(turn("last", 1000, 1000, 3000), { slots: [3000], ...after });
    assert.deepEqual(turn("none", 1000, 1000, 3000), { slots: [3000], ...after });
    assert.deepEqual(turn("all", 1000, 3000, 3000), { slots: [], ...after });
    assert.deepEqual(turn("last", 1000, 3000, 3999), { slots: [], until: 3999, next: 4000, due: 4000 });
    assert.deepEqual(turn("last", 1000, 5500, 1000), { slots: [], until: 5500, next: 6000, due: 6000 });
    assert.deepEqual(turn("last", 1e7, 0, 1.9e7).slots, [1e7]); // far back
  });

  test("skips a slot that is more than a minute late, if missed ones are to be", () => {
    assert.deepEqual(turn("none", 1e6, 0, 1_060_000).slots, [1e6]);
    assert.deepEqual(turn("none", 1e6, 0, 1_060_001).slots, []);
  });

  test("has no slot while it is paused, which are over then (LQ-JOB-15)", () => {
    assert.deepEqual(turn("all", 1000, 1000, 3500, true), { slots: [], until: 3500, next: 4000, due: 4000 });
  });

  test("leaves slots behind the 64th to the next one, which is due at once", () => {
    const { slots, ...after } = turn("all", 1000, 0, 100_000);
    assert.deepEqual([slots.length, slots.at(-1)], [64, 64_000]);
    assert.deepEqual(after, { until: 64_000, next: 65_000, due: 65_000 });
    assert.equal(turn("all", 1000, 0, 63_500).until, 63_500);
  });

  test("is due in a minute if its next slot is later (LQ-JOB-32)", () => {
    assert.equal(turn("last", HOUR, 0, HOUR + 100).due, HOUR + 60_100);
    assert.equal(turn("last", HOUR, 2 * HOUR + 5, HOUR).due, 2 * HOUR + 60_005);
    assert.equal(turn("last", HOUR, HOUR, 2 * HOUR - 60_000).due, 2 * HOUR);
  });
});
