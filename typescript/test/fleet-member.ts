// TypeScript's part of python/tests/fleets/test_four_languages.py: `fleet-member.js produce URL COUNT`, or `work URL`. The same program is
// in python/tests/programs/fleet_member.py, which says more.
import { writeSync } from "node:fs";
import { Client, derivedId, type LeasedItem, type Queue } from "../src/index.js";

const LANGUAGE = "typescript";
const LANGUAGES = ["python", "typescript", "go", "rust"] as const;
const [FACTOR, SHARED, DIRECTED] = [17, 17, 21];
/** Milliseconds. Items that a worker is late with, or held when it was killed, are made to expire by the test. */
const DURATION_MS = 60_000;
const HOUR_MS = 3_600_000;

const [role = "", url = "", count = "0"] = process.argv.slice(2);
const client = new Client(url);
const open = (name: string) => client.queue(name, { group: "fleet" });
let handedOff = 0;

/** Writes a line in one call, so that a kill leaves it whole or absent. */
const report = ({ id, token, queue }: LeasedItem) => writeSync(1, `completed ${queue.name} ${id} ${token}\n`);

async function produce(): Promise<void> {
  for (const language of LANGUAGES) {
    const items = Array.from({ length: Number(count) }, (_, number) => ({
      id: `${language}-${LANGUAGE}-${number}`,
      data: Buffer.of(number % 256),
    }));
    const added = await open(language).add(items);
    if (added.some((time) => time === 0)) throw new Error("an item was there already");
  }
  await client.close();
}

async function handOff(item: LeasedItem, shared: Queue, directed: readonly Queue[]): Promise<void> {
  const [byte = 0] = item.data;
  const target = directed[byte % LANGUAGES.length] as Queue;
  const followUp = (queue: Queue, a: number, step: string) => ({
    queue,
    id: derivedId(item.id.toString(), step),
    data: JSON.stringify({ a, b: (byte * FACTOR) % 256, from: LANGUAGE }),
    keep: HOUR_MS,
  });
  const followUps = [followUp(shared, SHARED, "shared"), followUp(target, DIRECTED, "directed")];
  const { completed } = await item.handOff(followUps);
  if (!completed) return;
  report(item);
  handedOff += 1;
  if (handedOff % 6 === 0 && (await item.handOff(followUps)).completed)
    throw new Error(`${item.id} was completed twice`);
}

async function finish(item: LeasedItem): Promise<void> {
  const { a, b } = JSON.parse(item.data.toString());
  const result = JSON.stringify({ a, sum: a + b, prod: a * b, worker: LANGUAGE });
  if (await item.complete({ result })) report(item);
}

async function work(): Promise<void> {
  const [shared, own] = [open("shared"), open(LANGUAGE)];
  const directed = LANGUAGES.map((language) => open(`to-${language}`));
  const queues = [directed[LANGUAGES.indexOf(LANGUAGE)] as Queue, own, shared];
  let late: LeasedItem | undefined;
  for (let leases = 1; ; leases += 1) {
    queues.push(queues.shift() as Queue); // each lease starts with another queue
    let [item] = await client.leaseAny(queues, {
      duration: DURATION_MS,
      timeout: Number.POSITIVE_INFINITY,
    });
    if (leases % 7 === 0) [item, late] = [late, item]; // in its place an older one, which another worker may have by now
    if (!item) continue;
    if (item.queue === own) await handOff(item, shared, directed);
    else await finish(item);
  }
}

await (role === "produce" ? produce() : work());
