import { Redis, type RedisOptions, ReplyError } from "ioredis";
import type { Call } from "./commands.js";
import { BadArgumentError, ConnectionError, fromReply, type LeaseqError, ServerError } from "./errors.js";
import { SCRIPTS } from "./scripts.generated.js";
import type { Word } from "./wire.js";

/** What calls are sent to. `patience` is how many ms a reply may take. */
export interface Runner {
  run<Answer>(call: Call<Answer>, patience?: number): Promise<Answer>;
}

/** Where a server is: a URL, options of ioredis, or an ioredis instance, which is asked where it leads and not used. */
export type Server = string | RedisOptions | Redis;

/**
 * What an application may have set for its own commands and a queue cannot bear. A lease that ran twice has leased two
 * items and its caller hears of one; so nothing is ever sent again, nor kept for later, by ioredis (LQ-CLIENT-1).
 */
const NO_SECOND_TIME: RedisOptions = {
  retryStrategy: () => null,
  reconnectOnError: null,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  lazyConnect: true,
  // Keys are the protocol's, numbers are numbers, and calls go to the primary.
  keyPrefix: "",
  stringNumbers: false,
  readOnly: false,
  role: "master",
  // Both kinds of replies are the same; RESP2 needs no rights for HELLO, and no ready check none for INFO.
  protocol: 2,
  enableReadyCheck: false,
  disableClientInfo: true,
};

const URL_FORM = /^(rediss?:\/\/|\/(?!\/))/;

export function connectionOptions(to: Server): RedisOptions {
  // A connection that is handed in is only asked where it leads: its owner may go on using it as it is.
  const named = typeof to === "string" ? ofUrl(to) : to;
  if (typeof named !== "object" || named === null) {
    throw new BadArgumentError("a server is a URL, options of ioredis or an instance of it");
  }
  const given: RedisOptions = named instanceof Redis ? (named.options as RedisOptions) : named;
  const { commandTimeout: _1, socketTimeout: _2, blockingTimeout: _3, ...kept } = given;
  return { ...kept, ...NO_SECOND_TIME };
}

/** Throws BadArgumentError without the URL and without the error about it, which hold the password (LQ-SAFE-3). */
function ofUrl(url: string): Redis {
  // What begins otherwise is to ioredis the path of a socket, or a host, and an error would tell it.
  if (URL_FORM.test(url)) {
    try {
      return new Redis(url, { lazyConnect: true });
    } catch {
      // said below
    }
  }
  throw new BadArgumentError("the URL of the server is none: redis://, rediss:// or the path of a socket");
}

/**
 * One connection, opened when it is needed and again after it broke. Each ioredis instance lives as long as its socket:
 * there is no reconnecting in the background, of which a call would not know whether it was sent before or after.
 */
export class Connection implements Runner {
  readonly #options: RedisOptions;
  readonly #patience: number;
  #redis: Redis | undefined;
  #opening: Promise<Redis> | undefined;
  #closed = false;

  constructor(options: RedisOptions, patience: number) {
    this.#options = options;
    this.#patience = patience;
  }

  /** Resolves when the next command is written at once. */
  async open(): Promise<void> {
    this.#usable() ?? (await this.#open());
  }

  /** `asking`: the node is told each time that it shall answer for a slot it is only about to have (page 09). */
  async run<Answer>(call: Call<Answer>, patience?: number, asking = false): Promise<Answer> {
    const { sha1, source } = SCRIPTS[call.script];
    const rest = [String(call.keys.length), ...call.keys, ...call.args];
    try {
      return call.read(await this.command("EVALSHA", [sha1, ...rest], patience, asking));
    } catch (error) {
      // The server forgets scripts whenever it likes. EVAL teaches it this one (LQ-SCRIPT-2).
      if (!(error instanceof ServerError && error.code === "NOSCRIPT")) throw error;
      return call.read(await this.command("EVAL", [source, ...rest], patience, asking));
    }
  }

  async command(
    name: string,
    args: readonly Word[],
    patience = this.#patience,
    asking = false,
  ): Promise<unknown> {
    const redis = this.#usable() ?? (await this.#open());
    // Its error, if any, is that of the command right behind it.
    if (asking) redis.asking().catch(() => {});
    const reply = redis.callBuffer(name, args as Word[]);
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        // A program that was busy finds its timers before its sockets: what has arrived counts.
        setImmediate(() => {
          this.#discard(redis);
          reject(new ConnectionError(`no reply to ${name} within ${Math.round(patience)} ms`, false));
        });
      }, patience);
      reply.then(
        (value) => {
          clearTimeout(timer);
          resolve(value);
        },
        (error: Error) => {
          clearTimeout(timer);
          reject(this.#explain(error, redis));
        },
      );
    });
  }

  close(): void {
    this.#closed = true;
    if (this.#redis) this.#discard(this.#redis);
  }

  #usable(): Redis | undefined {
    return this.#redis?.status === "ready" ? this.#redis : undefined;
  }

  #open(): Promise<Redis> {
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<Redis> {
    if (this.#closed) throw new ConnectionError("the client is closed", true);
    const redis = new Redis({ ...this.#options, replyMapping: "legacy" });
    // ioredis tells by events why a connection failed, also that of SELECT, after which it would go on in database 0.
    let reason: Error | undefined;
    redis.on("error", (error: Error) => {
      reason ??= error;
    });
    // connectTimeout ends with the socket's handshake; a server that then does not answer AUTH is this timer's.
    const timer = setTimeout(() => {
      reason ??= new Error(`no answer within ${this.#patience} ms`);
      redis.disconnect();
    }, this.#patience);
    try {
      await redis.connect();
      if (reason instanceof ReplyError) throw reason;
      if (this.#closed) throw new Error("the client is closed");
    } catch (error) {
      redis.disconnect();
      throw new ConnectionError(`not connected: ${(reason ?? (error as Error)).message}`, true);
    } finally {
      clearTimeout(timer);
    }
    this.#redis = redis;
    return redis;
  }

  #explain(error: Error, redis: Redis): LeaseqError {
    if (error instanceof ReplyError) {
      const known = fromReply(error.message);
      // This is no primary any more. The next call looks for the one that is; replies under way still arrive.
      if (known.code === "READONLY" && this.#redis === redis) {
        this.#redis = undefined;
        redis.quit().catch(() => {});
      }
      return known;
    }
    // What is left of it is of no use, also where it has not noticed yet.
    this.#discard(redis);
    const notWritten = error.message.startsWith("Stream isn't writeable");
    return new ConnectionError(
      notWritten ? "not connected" : `connection lost: ${error.message}`,
      notWritten,
    );
  }

  #discard(redis: Redis): void {
    if (this.#redis === redis) this.#redis = undefined;
    redis.disconnect();
  }
}
