// What the adapters on Node share; the same as common.py, which explains it.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

export const ORDERS = JSON.parse(process.env.LEASEQ_BENCH);
// Packages are in the environment's folder, not above this file.
export const load = createRequire(path.join(process.env.LEASEQ_BENCH_MODULES, "index.js"));

const now = () => process.hrtime.bigint(); // the monotonic clock, as Python's monotonic_ns
let handled = 0n;
let first = 0n;
let last = 0n;
let told = 0n;
let counts = -1;
let times = -1;
let server = null;

function tell() {
  if (handled === told) return;
  const record = Buffer.alloc(24);
  record.writeBigUInt64LE(handled, 0);
  record.writeBigUInt64LE(first, 8);
  record.writeBigUInt64LE(last, 16);
  fs.writeSync(counts, record, 0, 24, 0);
  told = handled;
}

function count() {
  if (counts < 0) {
    counts = fs.openSync(path.join(ORDERS.folder, `${process.pid}.count`), "w");
    setInterval(tell, 5);
  }
  last = now();
  if (first === 0n) first = last;
  handled += 1n;
}

function time(number) {
  if (times < 0) times = fs.openSync(path.join(ORDERS.folder, `${process.pid}.times`), "a");
  const record = Buffer.alloc(16);
  record.writeBigUInt64LE(BigInt(number), 0);
  record.writeBigUInt64LE(now(), 8);
  fs.writeSync(times, record);
}

async function record(number) {
  if (server === null) {
    const { Redis } = load("ioredis");
    server = new Redis({ host: "127.0.0.1", port: ORDERS.port });
  }
  await server.sadd("effects", number);
}

function holds() {
  const own = path.join(ORDERS.folder, `${process.pid}.holder`);
  fs.writeFileSync(own, String(process.pid));
  try {
    fs.linkSync(own, path.join(ORDERS.folder, "held")); // appears with its content
    return true;
  } catch {
    return false;
  }
}

export async function handle(data) {
  if (ORDERS.handler === "wait") await sleep(ORDERS.wait_ms);
  else if (ORDERS.handler === "hold" && holds()) await sleep(3600_000);
  const number = Number.parseInt(data.slice(0, 10), 10);
  if (ORDERS.handler === "times" || ORDERS.handler === "hold") time(number);
  else if (ORDERS.handler === "record") await record(number);
  count();
}

export const concurrency = (best) => ORDERS.concurrency || best;

function jobs({ first, count, size }) {
  return Array.from({ length: count }, (_, i) => {
    const number = String(first + i).padStart(10, "0");
    return { id: `item-${number}`, data: number.padEnd(size, "x") };
  });
}

/** Callers at once, each with single calls. */
const CROWD = 100;

async function crowd(all, one) {
  const caller = async (first) => {
    for (let at = first; at < all.length; at += CROWD) await one(all[at]);
  };
  await Promise.all(Array.from({ length: CROWD }, (_, first) => caller(first)));
}

const answer = (reply) => process.stdout.write(`${JSON.stringify(reply)}\n`);

export async function produce(one, bulk) {
  answer({ ready: true, bulk: true });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    const all = jobs(order);
    const sent = [];
    const began = now();
    const spent = process.cpuUsage();
    if (order.how === "bulk") await bulk(all);
    else if (order.how === "crowd") await crowd(all, one);
    else if (order.how === "paced") {
      const [low, high] = order.gap_ms;
      for (const job of all) {
        await sleep(low + Math.random() * (high - low));
        sent.push(Number(now()));
        await one(job);
      }
    } else for (const job of all) await one(job);
    const { user, system } = process.cpuUsage(spent);
    answer({ seconds: Number(now() - began) / 1e9, cpu: (user + system) / 1e6, sent });
  }
  process.exit(0);
}
