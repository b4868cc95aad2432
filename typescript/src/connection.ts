// One connection to one node, on ioredis. Used by cluster.ts only. It decides of each failure whether the call can have run.
import { Redis, type RedisOptions, ReplyError } from "ioredis";
import { onLate, orLate } from "./clock.js";
import type { Command } from "./commands.js";
import type { Confirmed, DurableWait } from "./durability.js";
import type { Argument } from "./encoding.js";
import {
  ConnectionError,
  errorFromReply,
  LeaseqError,
  NoDurabilityError,
  NoScriptsError,
  ReplyLostError,
  ServerError,
  UnavailableError,
} from "./errors.js";
import { SCRIPTS } from "./scripts.generated.js";
import { type Server, serverOptions } from "./server.js";

/** Runs commands. `timeoutMs` is how long a reply may take. */
export interface Runner {
  run<Result>(command: Command<Result>, timeoutMs?: number): Promise<Result>;
}

/**
 * Overrides settings of an application that a queue cannot work with. A lease that ran twice would lease two items and return
 * one, so ioredis must not send a command again or hold it back (LQ-CLIENT-1).
 */
const NO_RETRY: RedisOptions = {
  retryStrategy: () => null,
  reconnectOnError: null,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  lazyConnect: true,
  // A connection is closed when nothing is expected of it. A server that is silent does not close its side.
  disconnectTimeout: 500,
  // Keys are the protocol's, numbers are numbers, and calls go to the primary.
  keyPrefix: "",
  stringNumbers: false,
  readOnly: false,
  role: "master",
  // RESP2 needs no right to run HELLO. Without a ready check, no right to run INFO is needed.
  protocol: 2,
  enableReadyCheck: false,
  disableClientInfo: true,
};

/** Options for a connection to `server`. Throws BadArgumentError. */
export function connectionOptions(server: Server): readonly RedisOptions[] {
  return serverOptions(server).map(
    ({ commandTimeout: _1, socketTimeout: _2, blockingTimeout: _3, ...kept }) => ({ ...kept, ...NO_RETRY }),
  );
}

/**
 * One connection, opened when it is needed and again after it broke. Each ioredis instance lives as long as its socket: if
 * ioredis reconnected in the background, a failed call could not know whether it had been sent.
 */
export class Connection implements Runner {
  readonly #options: RedisOptions;
  readonly #replyTimeoutMs: number;
  #redis: Redis | undefined;
  /** Every instance whose socket is open or opening: the one above, and those that end. */
  readonly #sockets = new Set<Redis>();
  #opening: Promise<Redis> | undefined;
  /** For calls that wait: the scripts and the kinds of waits that the server is known to have. */
  readonly #known = new WeakMap<Redis, Set<string>>();
  #closed = false;

  constructor(options: RedisOptions, replyTimeoutMs: number) {
    this.#options = options;
    this.#replyTimeoutMs = replyTimeoutMs;
  }

  /** Whether the next command is written at once. */
  get isReady(): boolean {
    return this.#ready() !== undefined;
  }

  /** Opens the connection, so that the next command is written at once. Throws UnavailableError, at the latest after `timeoutMs`. */
  async open(timeoutMs = this.#replyTimeoutMs): Promise<void> {
    if (this.isReady) return;
    await orLate(this.#open(), timeoutMs, () => {
      return new UnavailableError(`not connected within ${Math.round(timeoutMs)} ms`);
    });
  }

  /** Runs a command. With `asking`, ASKING goes before it: the node is importing the slot (page 09). */
  async run<Result>(command: Command<Result>, timeoutMs?: number, asking = false): Promise<Result> {
    const { sha1, source } = SCRIPTS[command.script];
    const args = [String(command.keys.length), ...command.keys, ...command.args];
    try {
      return command.read(await this.send("EVALSHA", [sha1, ...args], timeoutMs, asking));
    } catch (error) {
      // The server may drop its scripts at any time. EVAL loads this one again (LQ-SCRIPT-2).
      if (hasCode(error, "NOSCRIPT"))
        return await this.#runSource(command, [source, ...args], timeoutMs, asking);
      throw await this.#named(error);
    }
  }

  async #runSource<Result>(
    command: Command<Result>,
    args: readonly Argument[],
    timeoutMs: number | undefined,
    asking: boolean,
  ): Promise<Result> {
    try {
      return command.read(await this.send("EVAL", args, timeoutMs, asking));
    } catch (error) {
      throw await this.#named(error);
    }
  }

  /**
   * The error of a call. The texts of servers differ, so why a server replied ERR is asked with a script of no commands. It is refused if
   * the server runs no scripts, or wants a password: to a long command without one it replies ERR, and closes the connection. An ERR that
   * is definite says itself why: the server has too many connections.
   */
  async #named(error: unknown): Promise<unknown> {
    if (!isUnexplained(error)) return error;
    let refusal = await this.#probe();
    if (refusal instanceof ConnectionError) refusal = await this.#probe();
    if (isUnexplained(refusal)) return new NoScriptsError();
    return hasCode(refusal, "NOAUTH") ? refusal : error;
  }

  /** Returns the error of a script of no commands, undefined if it runs. */
  async #probe(): Promise<unknown> {
    return await this.send("EVAL", ["return 1", "0"]).then(
      () => undefined,
      (refusal) => refusal,
    );
  }

  /** Sends a Redis command and returns its reply, with bytes as Buffers. */
  async send(
    name: string,
    args: readonly Argument[],
    timeoutMs = this.#replyTimeoutMs,
    asking = false,
  ): Promise<unknown> {
    const redis = this.#ready() ?? (await this.#open());
    return await this.#sendOn(redis, name, args, timeoutMs, asking);
  }

  /** Sends a command over one socket. */
  #sendOn(
    redis: Redis,
    name: string,
    args: readonly Argument[],
    timeoutMs: number,
    asking = false,
  ): Promise<unknown> {
    // If ASKING fails, so does the command right behind it.
    if (asking) redis.asking().catch(() => {});
    const reply = redis.callBuffer(name, args as Argument[]);
    joinWrites(redis.stream);
    return this.#reply(redis, reply, name, timeoutMs);
  }

  /**
   * Runs a command with a wait behind it, over the same socket: another one would wait for other writes. The result of a call that ran is
   * never lost to an error of its wait. Throws NoDurabilityError, before it sends the call, if the server cannot wait so.
   */
  async runDurably<Result>(
    command: Command<Result>,
    wait: DurableWait,
    timeoutMs: number,
    asking = false,
  ): Promise<Confirmed<Result>> {
    const redis = this.#ready() ?? (await this.#open());
    const known = this.#known.get(redis) ?? new Set();
    this.#known.set(redis, known);
    if (!known.has(wait.name)) await this.#checkWait(redis, wait);
    known.add(wait.name);
    const { sha1, source } = SCRIPTS[command.script];
    const args = [String(command.keys.length), ...command.keys, ...command.args];
    const startWait = () => {
      const reply = this.#sendOn(redis, wait.name, wait.args, wait.timeoutMs + this.#replyTimeoutMs);
      reply.catch(() => {});
      return reply;
    };
    let waiting: Promise<unknown> | undefined;
    let result: Result;
    try {
      const reply = this.#sendOn(redis, "EVALSHA", [sha1, ...args], timeoutMs, asking);
      // A wait behind a script that the server does not know would keep the script's text waiting.
      if (known.has(command.script)) waiting = startWait();
      result = command.read(await reply);
    } catch (error) {
      // The next call does not wait for that wait.
      if (waiting) this.#discard(redis);
      if (!hasCode(error, "NOSCRIPT")) throw await this.#named(error);
      if (waiting) return await this.runDurably(command, wait, timeoutMs, asking);
      try {
        result = command.read(await this.#sendOn(redis, "EVAL", [source, ...args], timeoutMs, asking));
      } catch (refusal) {
        throw await this.#named(refusal);
      }
    }
    known.add(command.script);
    try {
      return { result, reached: wait.reached(await (waiting ?? startWait())), reason: "" };
    } catch (error) {
      this.#discard(redis);
      return { result, reached: undefined, reason: (error as Error).message };
    }
  }

  /** Asks whether the server waits so. A replica refuses to, and then the script says more. */
  async #checkWait(redis: Redis, { name, probe }: DurableWait): Promise<void> {
    try {
      await this.#sendOn(redis, name, probe, this.#replyTimeoutMs);
    } catch (error) {
      if (error instanceof ReplyLostError) throw new UnavailableError(`not connected: ${error.message}`);
      const text = (error as Error).message;
      if (text.includes("replica instances")) return;
      if (/unknown command/i.test(text)) {
        const advice =
          name === "WAITAOF" ? "take Redis or Valkey 7.2 or later, or { replicas }" : "leave out durable";
        throw new NoDurabilityError(`the server has no command ${name}, nothing was done: ${advice}`);
      }
      if (text.includes("appendonly")) {
        throw new NoDurabilityError(
          "the server keeps no append-only file, nothing was done: set appendonly yes, or use { replicas }",
        );
      }
      throw error instanceof LeaseqError ? error : new ServerError(text);
    }
  }

  /** Runs commands in one transaction and returns the reply of each, an Error for a command that failed. */
  async transaction(
    entries: readonly (readonly [string, ...Argument[]])[],
    timeoutMs: number,
  ): Promise<readonly unknown[]> {
    const redis = this.#ready() ?? (await this.#open());
    const multi = redis.multi();
    for (const [name, ...args] of entries) multi.callBuffer(name, ...args);
    const results = (await this.#reply(redis, multi.exec(), "EXEC", timeoutMs)) ?? [];
    return results.map(([error, reply]) => (error ? this.#toLeaseqError(error, redis) : reply));
  }

  /** A reply, within the time. */
  async #reply<Reply>(redis: Redis, reply: Promise<Reply>, name: string, timeoutMs: number): Promise<Reply> {
    return await new Promise((resolve, reject) => {
      const end = onLate(timeoutMs, () => {
        this.#discard(redis);
        reject(new ReplyLostError(`no reply to ${name} within ${Math.round(timeoutMs)} ms`));
      });
      reply.then(
        (value) => {
          end();
          resolve(value);
        },
        (error: Error) => {
          end();
          reject(this.#toLeaseqError(error, redis));
        },
      );
    });
  }

  /** Closes the connection for good: later calls throw UnavailableError. */
  close(): void {
    this.#closed = true;
    for (const redis of this.#sockets) this.#discard(redis);
  }

  /** The ioredis instance if it is connected. */
  #ready(): Redis | undefined {
    return this.#redis?.status === "ready" ? this.#redis : undefined;
  }

  /** Connects, once for all calls that wait for it. */
  #open(): Promise<Redis> {
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** Connects, with the reply timeout for all of it. Throws UnavailableError. */
  async #connect(): Promise<Redis> {
    if (this.#closed) throw new UnavailableError("the client is closed");
    const redis = new Redis({ ...this.#options, replyMapping: "legacy" });
    this.#sockets.add(redis);
    redis.once("end", () => this.#sockets.delete(redis));
    // ioredis reports by events why a connection failed. After a failed SELECT it would go on in database 0.
    let reason: Error | undefined;
    redis.on("error", (error: Error) => {
      reason ??= error;
    });
    // connectTimeout covers the socket's handshake only. This limit covers AUTH and SELECT too.
    const end = onLate(this.#replyTimeoutMs, () => {
      reason ??= new Error(`no reply within ${this.#replyTimeoutMs} ms`);
      this.#discard(redis);
    });
    try {
      await redis.connect();
      if (reason instanceof ReplyError) throw reason;
      if (this.#closed) throw new Error("the client is closed");
    } catch (error) {
      this.#discard(redis);
      const { message } = reason ?? (error as Error);
      const refusal = reason instanceof ReplyError ? new ServerError(message) : undefined;
      throw new UnavailableError(`not connected: ${message}`, refusal);
    } finally {
      end();
    }
    this.#redis = redis;
    return redis;
  }

  /** Converts an error of ioredis, and closes the connection unless it was an error reply. */
  #toLeaseqError(error: Error, redis: Redis): LeaseqError {
    if (error instanceof ReplyError) {
      const named = errorFromReply(error.message);
      // The server is no longer the primary. The next call connects to the new one; pending replies still arrive.
      if (named.code === "READONLY" && this.#redis === redis) {
        this.#redis = undefined;
        redis.quit().catch(() => {});
      }
      return named;
    }
    // The connection can no longer be used, even if ioredis has not noticed yet.
    this.#discard(redis);
    const isUnsent = error.message.startsWith("Stream isn't writeable");
    return isUnsent
      ? new UnavailableError("not connected")
      : new ReplyLostError(`connection lost: ${error.message}`);
  }

  /** Closes a connection. The next call opens another one. */
  #discard(redis: Redis): void {
    if (this.#redis === redis) this.#redis = undefined;
    // ioredis starts a timer for each time.
    if (this.#sockets.delete(redis)) redis.disconnect();
  }
}

/** Joins what is written behind this, until the event loop goes on, into one write. A command that comes alone does not wait. */
function joinWrites(stream: Redis["stream"]): void {
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

const hasCode = (error: unknown, code: string): error is ServerError =>
  error instanceof ServerError && error.code === code;

const isUnexplained = (error: unknown): boolean => hasCode(error, "ERR") && !error.definite;
